"""Rows as CSV, JSON lines or one JSON array, a piece at a time."""

from __future__ import annotations

import gzip
import shutil
from io import BytesIO
from typing import IO, TYPE_CHECKING, Any, Protocol

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.flat.inside import columns_with

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl


_CHUNK = 1 << 20


class Encoder(Protocol):
    """Writes the files of one format, a piece of their rows at a time."""

    def append(self, path: Path, rows: pl.DataFrame, *, first: bool) -> None:
        """Add rows to a file; ``first`` begins it, also with no rows."""
        ...

    def finish(self, path: Path) -> None:
        """End a file."""
        ...


class Csv:
    """Delimited text.

    Args:
        options: As polars takes them.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._packed = _Packed(options)
        self._header = bool(options.get("include_header", True))
        self._options = {
            name: value
            for name, value in options.items()
            if name not in ("compression", "compression_level", "include_header")
        }

    def append(self, path: Path, rows: pl.DataFrame, *, first: bool) -> None:
        """Add rows, after a header where they are the first."""
        text = BytesIO()
        rows.write_csv(text, include_header=self._header and first, **self._options)
        self._packed.add(path, text.getvalue(), first=first)

    def finish(self, path: Path) -> None:
        """End a file."""
        self._packed.finish(path)


class JsonLines:
    """One object a line.

    Args:
        options: Compression.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._packed = _Packed(options)

    def append(self, path: Path, rows: pl.DataFrame, *, first: bool) -> None:
        """Add rows."""
        self._packed.add(path, _lines(rows), first=first)

    def finish(self, path: Path) -> None:
        """End a file."""
        self._packed.finish(path)


class Json:
    """One array of objects, a line for each.

    Args:
        options: Compression.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._packed = _Packed(options)
        self._filled: set[Path] = set()

    def append(self, path: Path, rows: pl.DataFrame, *, first: bool) -> None:
        """Add rows, parted by commas."""
        start = b"[" if first else b""
        lines = _lines(rows).rstrip(b"\n")
        if lines:
            start += b",\n" if path in self._filled else b"\n"
            self._filled.add(path)
        # inside a text a line end is escaped, so each one parts two objects
        self._packed.add(path, start + lines.replace(b"\n", b",\n"), first=first)

    def finish(self, path: Path) -> None:
        """Close the array."""
        self._packed.add(path, b"\n]\n", first=False)
        self._packed.finish(path)


def _lines(rows: pl.DataFrame) -> bytes:
    _refuse_non_finite(rows)
    text = BytesIO()
    if rows.height:
        rows.write_ndjson(text)
    return text.getvalue()


def _refuse_non_finite(rows: pl.DataFrame) -> None:
    bad = columns_with(rows, _non_finite)
    if bad:
        raise WriteError(
            f"JSON has no NaN and no infinity, and column '{bad[0]}' holds one",
            remedy="Make it null or a number in the transform (additional_columns), or write"
            " parquet.",
            code="value_lost",
        )


def _non_finite(value: pl.Expr, dtype: pl.DataType) -> pl.Expr | None:
    return ~value.is_finite() if dtype.is_float() else None


class _Packed:
    """Adds bytes to a file, and compresses it as a whole when it ends: many tools read one stream."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._compression = options.get("compression", "uncompressed")
        self._level = options.get("compression_level")

    def add(self, path: Path, content: bytes, *, first: bool) -> None:
        with path.open("wb" if first else "ab") as file:
            file.write(content)

    def finish(self, path: Path) -> None:
        if self._compression == "uncompressed":
            return
        plain = path.with_name(f"{path.name}.plain")
        path.rename(plain)
        with plain.open("rb") as source, path.open("wb") as target, self._squeezer(target) as file:
            shutil.copyfileobj(source, file, _CHUNK)
        plain.unlink()

    def _squeezer(self, target: IO[bytes]) -> Any:
        if self._compression == "gzip":
            return gzip.GzipFile("", "wb", self._level or 6, target, 0)
        import zstandard

        return zstandard.ZstdCompressor(level=self._level or 3).stream_writer(target)
