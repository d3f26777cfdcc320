"""Read back the rows of files, typed as they were when they were written."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core import storage
from datacoolie_core.errors import WriteError
from datacoolie_core.writers.flat.avro import read_avro
from datacoolie_core.writers.flat.partitions import value_of
from datacoolie_core.writers.flat.shape import cast_by_name
from datacoolie_core.writers.flat.texts import as_text, from_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from datacoolie_core.writers.flat.types import FileFormat

_PATTERN = frozenset("*?[]")


@dataclass(frozen=True)
class StoredFile:
    """A file of a destination.

    Attributes:
        path: Relative to the folder.
        uri: Absolute.
        partition: Partition column → value as in the folder's name.
        schema: The columns inside it, None if only the file knows.
        options: How it was written.
    """

    path: str
    uri: str
    partition: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    schema: pl.Schema | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Stored:
    """Scans files; remote ones are copied, and the copies dropped when it is closed.

    Args:
        form: The files' format.
        storage_options: For the object store.
    """

    def __init__(self, form: FileFormat, storage_options: Mapping[str, str]) -> None:
        self._form = form
        self._options = storage_options
        self._stack = ExitStack()

    def __enter__(self) -> Stored:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def scan(self, files: Sequence[StoredFile], schema: pl.Schema) -> pl.LazyFrame:
        """Return the rows of some files.

        Args:
            files: Any.
            schema: The columns wanted; a file that lacks one gives nulls.
        """
        if not files:
            return pl.LazyFrame(schema=schema)
        return pl.concat([self.one(file, schema) for file in files], how="vertical")

    def one(self, file: StoredFile, schema: pl.Schema) -> pl.LazyFrame:
        """Return the rows of one file, under the columns wanted."""
        inside = pl.Schema({n: t for n, t in schema.items() if n not in file.partition})
        own = {n: t for n, t in (file.schema or inside).items() if n in inside}
        rows = self._rows(file, pl.Schema(own))
        there = rows.collect_schema()
        columns = [
            pl.lit(value_of(file.partition[name], kind), dtype=kind).alias(name)
            if name in file.partition
            else cast_by_name(pl.col(name), there[name], kind).alias(name)
            if name in there
            else pl.lit(None, dtype=kind).alias(name)
            for name, kind in schema.items()
        ]
        return rows.select(columns)

    def _rows(self, file: StoredFile, own: pl.Schema) -> pl.LazyFrame:
        path = self._stack.enter_context(
            storage.local_copy(file.uri, storage_options=self._options)
        )
        if self._form == "parquet":
            scan = pl.scan_parquet(path, glob=False, hive_partitioning=False)
            return scan.select([name for name in scan.collect_schema() if name in own])
        if self._form == "avro":
            return pl.concat(list(read_avro(path, own))).lazy()
        if self._form == "csv":
            return _typed(_csv(path, file), own, file)
        texts = pl.Schema({name: as_text(dtype) for name, dtype in own.items()})
        return _typed(_json(path, texts, array=self._form == "json"), own, file)


def _typed(rows: pl.LazyFrame, own: pl.Schema, file: StoredFile) -> pl.LazyFrame:
    texts = rows.collect_schema()
    return rows.select(
        from_text(pl.col(name), texts[name], own[name], file.options).alias(name)
        for name in own
        if name in texts
    )


def _csv(path: Path, file: StoredFile) -> pl.LazyFrame:
    options = file.options
    headed = options.get("include_header", True)
    scan = partial(
        pl.scan_csv,
        path,
        has_header=headed,
        separator=options.get("separator", ","),
        quote_char=options.get("quote_char", '"'),
        eol_char="\n",
        null_values=options.get("null_value"),
        infer_schema=False,
        glob=False,
        raise_if_empty=False,
    )
    if headed:
        return scan()
    return scan(new_columns=list(file.schema or ()))


def _json(path: Path, texts: pl.Schema, *, array: bool) -> pl.LazyFrame:
    if array:
        return pl.read_json(_unpacked(path), schema=texts).lazy()
    if _PATTERN.isdisjoint(str(path)):
        return pl.scan_ndjson(path, schema=texts)
    # the engine takes such a name for a pattern
    return pl.scan_ndjson(_unpacked(path), schema=texts)


def _unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".gz":
        import gzip

        return gzip.decompress(content)
    if path.suffix == ".zst":
        import zstandard

        frames = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
        return frames.decompress(content)
    return content


def unreadable(error: Exception, place: str) -> WriteError:
    """Return the error for a file whose rows can't be told."""
    return WriteError(
        f"rows that are there can't be read: {str(error).splitlines()[0]}",
        place=place,
        remedy="A file of the folder is not of the destination's columns: move it away. Where rows"
        " that tie with the watermark are looked for, watermark_boundary: exclusive accepts that"
        " they are lost instead.",
        code="unreadable_file",
    )
