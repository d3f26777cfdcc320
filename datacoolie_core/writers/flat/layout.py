"""How new files look, and a file that is written and not yet published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core.writers.flat.avro import Avro
from datacoolie_core.writers.flat.encode import Csv, Encoder, Json, JsonLines
from datacoolie_core.writers.flat.options import MAX_ROWS, ROWS_PER_FILE, suffix_of
from datacoolie_core.writers.flat.partitions import folder_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from datacoolie_core.writers.flat.bounds import Bounds
    from datacoolie_core.writers.flat.types import FileFormat


@dataclass(frozen=True)
class Layout:
    """How new files look.

    Attributes:
        form: Their format.
        schema: All columns, in order.
        partition_columns: Kept in the names of folders, not in the files.
        options: Write options.
        tracked: Columns whose bounds the manifest keeps.
        stem: How the names of the files begin.
        prefix: The dated folder that they go to; empty without one.
    """

    form: FileFormat
    schema: pl.Schema
    partition_columns: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tracked: tuple[str, ...] = ()
    stem: str = "part"
    prefix: str = ""

    @property
    def data(self) -> pl.Schema:
        """The columns inside the files."""
        return pl.Schema(
            {
                name: dtype
                for name, dtype in self.schema.items()
                if name not in self.partition_columns
            }
        )

    @property
    def encoder_options(self) -> dict[str, Any]:
        """The options of the format itself."""
        return {name: value for name, value in self.options.items() if name != MAX_ROWS}

    @property
    def rows_per_file(self) -> int:
        """Where a new file is begun."""
        return self.options.get(MAX_ROWS, ROWS_PER_FILE)

    def path(self, partition: Mapping[str, Any], name: str) -> str:
        """Return the place of a file, relative to the destination's folder."""
        suffix = suffix_of(self.form, self.options)
        parts = (self.prefix, folder_of(partition), f"{name}{suffix}")
        return "/".join(part for part in parts if part)

    def encoder(self) -> Encoder:
        """Return what writes a text or Avro file.

        Raises:
            WriteError: Names or a package that the format needs.
        """
        if self.form == "avro":
            return Avro(self.data, self.encoder_options)
        kinds = {"csv": Csv, "json": Json, "jsonl": JsonLines}
        return kinds[self.form](self.encoder_options)


@dataclass(frozen=True)
class Staged:
    """A whole file that nobody sees yet.

    Attributes:
        path: Where it will be, relative to the destination's folder.
        place: Where it is now.
        rows: Row count.
        size: Bytes.
        partition: Column → value, typed.
        bounds: Of the tracked columns inside the file.
    """

    path: str
    place: Path
    rows: int
    size: int
    partition: Mapping[str, Any]
    bounds: Mapping[str, Bounds]


def staged_rows(files: Sequence[Staged]) -> int:
    """Return the rows of some files."""
    return sum(file.rows for file in files)
