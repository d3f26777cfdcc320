"""JSON documents: a file is one array of objects, or one object.

A document becomes one object a line in a temporary file, an object at a time, and is read like JSON
lines from there: neither the file nor its objects are ever in memory as a whole.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from datacoolie_core.errors import ReadError
from datacoolie_core.readers.discovery import discover
from datacoolie_core.readers.json_lines import OPTIONS, open_lines, scanned_lines
from datacoolie_core.readers.json_records import Records, RecordTrouble
from datacoolie_core.readers.json_trouble import JsonFile
from datacoolie_core.readers.local_files import LocalFile, LocalFiles, opened
from datacoolie_core.readers.options import read_options, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.source import Source

_PLAIN = (".json",)
SUFFIXES = (".json", ".json.gz", ".json.zst", ".json.zip")
_LINES = tuple(
    f"{suffix}{packed}"
    for suffix in (".json", ".jsonl", ".ndjson")
    for packed in ("", ".gz", ".zst", ".zip")
)


def open_json(request: ReadRequest) -> Source:
    """Return the rows of a source's JSON documents; files with different keys are united by name.

    With ``multiLine: false`` the files are JSON lines.

    Raises:
        ReadError: A file or an option can't be used, or types of one field don't fit together.
    """
    options = read_options(request.dataflow, {**OPTIONS, "encoding": text}, {})
    encoding = options.pop("encoding", None)
    if not options.pop("multi_line", True):
        return open_lines(request, options, _LINES)
    found = discover(request, SUFFIXES)
    local = LocalFiles(
        storage_options=request.dataflow.source.connection.configure.storage_options,
        suffixes=_PLAIN,
        encoding=encoding,
        link_patterns=True,
        fetch_all=True,
    )
    try:
        files = [_by_line(file, local) for info in found.files for file in local.add(info)]
        return scanned_lines(files, found, request, options, local)
    except BaseException:
        local.close()
        raise


def _by_line(file: LocalFile, local: LocalFiles) -> JsonFile:
    def lines(raw: IO[bytes]) -> Iterator[bytes]:
        try:
            for record in Records(raw):
                yield record.encode("utf-8") + b"\n"
        except RecordTrouble as error:
            raise ReadError(
                str(error), place=file.info.uri, remedy=error.remedy, code="bad_json"
            ) from error
        except (UnicodeDecodeError, EOFError, OSError) as error:
            raise ReadError(
                f"the file can't be read: {error}",
                place=file.info.uri,
                remedy="Replace it by a whole file in UTF-8, or set read_options.encoding.",
                code="bad_file",
            ) from error

    return JsonFile(local.rewritten(file, lines), _place(file))


def _place(file: LocalFile) -> Callable[[int], str]:
    """Return what says where in the document the record of a temporary file's line is."""

    def place(number: int) -> str:
        with opened(file.path) as raw:
            records = Records(raw)
            for at, _ in enumerate(records, 1):
                if at == number:
                    return f"record {number} (line {records.line})"
        return f"record {number}"

    return place
