"""Files as the engine can scan them: remote ones copied, archives unpacked, odd names linked."""

from __future__ import annotations

import codecs
import shutil
import zipfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, cast

from datacoolie_core import storage
from datacoolie_core.engines.names import listed
from datacoolie_core.errors import ReadError, StorageError
from datacoolie_core.storage.locations import local_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from datacoolie_core.storage import FileInfo

_ENGINE_READS = ("s3://", "s3a://", "gs://", "gcs://", "az://", "azure://", "abfs://", "abfss://")
_PATTERN = frozenset("*?[]")
_CHUNK = 1 << 20


@dataclass(frozen=True)
class LocalFile:
    """A file and where the engine finds it.

    Attributes:
        info: The file as it was found.
        path: What the engine scans: the file itself, or a temporary copy.
    """

    info: FileInfo
    path: str

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.info.uri.rpartition("/")[2]

    @property
    def is_local(self) -> bool:
        """Whether Python can read it too; the engine reads object stores itself."""
        return not self.path.startswith(_ENGINE_READS)


class LocalFiles:
    """Makes files scannable and remembers what it has to remove again.

    Args:
        storage_options: Of the connection.
        suffixes: Endings of data files inside an archive, in lower case.
        encoding: Encoding of the text; anything but UTF-8 is re-written as UTF-8.
        link_patterns: Whether names with ``* ? [ ]`` need another name, since the engine would
            take them for patterns.
        fetch_all: The engine does not read the format itself: remote files are always copied.
    """

    def __init__(
        self,
        *,
        storage_options: Mapping[str, str],
        suffixes: Sequence[str],
        encoding: str | None = None,
        link_patterns: bool = False,
        fetch_all: bool = False,
    ) -> None:
        self._stack = ExitStack()
        self._storage_options = storage_options
        self._suffixes = tuple(suffixes)
        self._encoding = encoding
        self._link_patterns = link_patterns
        self._fetch_all = fetch_all
        self._folder: Path | None = None
        self._count = 0

    @property
    def close(self) -> Callable[[], None]:
        """Removes every temporary file."""
        return self._stack.close

    def add(self, info: FileInfo) -> list[LocalFile]:
        """Return a file, or the data files inside an archive, ready to be scanned.

        Raises:
            ReadError: The file is no archive, or holds no data file.
        """
        path = self._fetched(info)
        if info.uri.lower().endswith(".zip"):
            return [
                LocalFile(info, self._recoded(str(member))) for member in self._unzip(info, path)
            ]
        return [LocalFile(info, self._linked(self._recoded(path)))]

    def without_mark(self, file: LocalFile, mark: bytes) -> LocalFile:
        """Return a file that does not start with some bytes (a byte order mark)."""
        if not file.is_local:
            return file
        with opened(file.path) as raw:
            if raw.read(len(mark)) != mark:
                return file
            target = self.temporary("")
            with target.open("wb") as plain:
                shutil.copyfileobj(raw, plain, _CHUNK)
        return LocalFile(file.info, str(target))

    def rewritten(
        self, file: LocalFile, change: Callable[[IO[bytes]], Iterable[bytes]]
    ) -> LocalFile:
        """Return a copy of a file with other content.

        Args:
            file: It must be local.
            change: Makes the new content from the old one, both unpacked.
        """
        target = self.temporary("")
        with opened(file.path) as raw, target.open("wb") as plain:
            plain.writelines(change(raw))
        return LocalFile(file.info, str(target))

    def _fetched(self, info: FileInfo) -> str:
        ours = self._fetch_all or self._encoding is not None or info.uri.lower().endswith(".zip")
        if info.uri.startswith(_ENGINE_READS) and not ours:
            return info.uri
        if not storage.is_remote(info.uri):
            return str(local_path(info.uri))
        try:
            copy = storage.local_copy(info.uri, storage_options=self._storage_options)
            return str(self._stack.enter_context(copy))
        except StorageError as error:
            raise ReadError(
                error.message, place=error.place, remedy=error.remedy, retryable=error.retryable
            ) from error

    def temporary(self, name: str) -> Path:
        """Return a place for a temporary file that ends as a name does."""
        if self._folder is None:
            self._folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="datacoolie-")))
        self._count += 1
        return self._folder / f"{self._count}{''.join(Path(name).suffixes[-2:])}"

    def _unzip(self, info: FileInfo, path: str) -> list[Path]:
        try:
            with zipfile.ZipFile(path) as archive:
                members = [name for name in archive.namelist() if not _is_clutter(name)]
                fitting = [name for name in members if name.lower().endswith(self._suffixes)]
                # a single file is the data, whatever its name
                chosen = fitting or (members if len(members) == 1 else [])
                if not chosen:
                    raise ReadError(
                        f"the archive holds no file that ends in {', '.join(self._suffixes)}:"
                        f" {listed(members) or 'it is empty'}",
                        place=info.uri,
                        remedy="Pack the data file, and only it.",
                        code="bad_archive",
                    )
                return [self._member(archive, name) for name in chosen]
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            raise ReadError(
                f"the archive can't be unpacked: {error}",
                place=info.uri,
                remedy="Replace the file by a whole zip archive without a password.",
                code="bad_archive",
            ) from error

    def _member(self, archive: zipfile.ZipFile, name: str) -> Path:
        target = self.temporary(".csv")
        with archive.open(name) as packed, target.open("wb") as plain:
            shutil.copyfileobj(packed, plain, _CHUNK)
        return target

    def _recoded(self, path: str) -> str:
        if self._encoding is None:
            return path
        target = self.temporary(".csv")
        with opened(path) as raw, target.open("w", encoding="utf-8", newline="") as plain:
            try:
                shutil.copyfileobj(codecs.getreader(self._encoding)(raw), plain, _CHUNK)
            except UnicodeDecodeError as error:
                raise ReadError(
                    f"the file is not encoded as {self._encoding}: {error.reason}",
                    place=path,
                    remedy="Set read_options.encoding to the file's encoding.",
                    code="bad_encoding",
                ) from error
        return str(target)

    def _linked(self, path: str) -> str:
        if not self._link_patterns or not _PATTERN.intersection(path):
            return path
        link = self.temporary(path)
        link.symlink_to(Path(path).absolute())
        return str(link)


def _is_clutter(name: str) -> bool:
    return (
        name.endswith("/")
        or name.startswith("__MACOSX/")
        or name.rpartition("/")[2].startswith(".")
    )


def opened(path: str) -> IO[bytes]:
    """Open a file for reading, unpacked by its ending (``.gz``, ``.zst``)."""
    if path.lower().endswith(".gz"):
        import gzip

        return cast("IO[bytes]", gzip.open(path, "rb"))
    if path.lower().endswith(".zst"):
        import zstandard

        return cast("IO[bytes]", zstandard.open(path, "rb"))  # pyright: ignore[reportUnknownMemberType]
    return Path(path).open("rb")
