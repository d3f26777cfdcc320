"""Which writer serves a destination: all of them have the same functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from datacoolie_core import clock
from datacoolie_core.errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from datacoolie_core.metadata.models import Destination
    from datacoolie_core.plan.windows import Scalar, Window
    from datacoolie_core.state.destination import DestinationState
    from datacoolie_core.writers.commit import Sleep
    from datacoolie_core.writers.request import Finish, OnPhase, WriteRequest, WriteResult


class DestinationWriter(Protocol):
    """What a run asks of a destination. Locations are absolute, options hold plain secrets."""

    def write(
        self,
        request: WriteRequest,
        frame: pl.LazyFrame,
        finish: Finish,
        on_phase: OnPhase,
        *,
        sleep: Sleep = clock.sleep,
    ) -> WriteResult:
        """Load a batch, all of it or nothing."""
        ...

    def inspect(
        self, uri: str, dataflow_id: str, storage_options: Mapping[str, str]
    ) -> DestinationState:
        """Return what the destination itself says of a dataflow's loads."""
        ...

    def column_maximum(
        self, uri: str, column: str, storage_options: Mapping[str, str]
    ) -> Scalar | None:
        """Return the highest value of a column, None without any."""
        ...

    def count_windows(
        self,
        uri: str,
        column: str,
        windows: Sequence[Window],
        storage_options: Mapping[str, str],
        *,
        zone: str | None = None,
    ) -> list[int]:
        """Return how many rows lie in each window of a column, from one pass."""
        ...

    def no_rows(self, uri: str, storage_options: Mapping[str, str]) -> pl.LazyFrame | None:
        """Return a frame of the destination's columns without rows, None if it is absent."""
        ...

    def read_schema(self, uri: str, storage_options: Mapping[str, str]) -> Mapping[str, str] | None:
        """Return column name → type, None if the destination is absent."""
        ...

    def table_row_count(self, uri: str, storage_options: Mapping[str, str]) -> int | None:
        """Return the number of rows, None if unknown."""
        ...


def writer_for(destination: Destination) -> DestinationWriter:
    """Return the writer of a destination's format.

    Raises:
        WriteError: For a format that nothing writes.
    """
    chosen = destination.connection.format
    if chosen == "delta":
        from datacoolie_core.writers import delta

        return delta
    if chosen in ("parquet", "csv", "json", "jsonl", "avro"):
        from datacoolie_core.writers.flat.writer import FlatFiles

        return FlatFiles.of(destination)
    raise WriteError(
        f"format {chosen} can be read, but not written",
        place=f"connection '{destination.connection.name}'",
        remedy="Use a connection of format delta, parquet, csv, json, jsonl or avro.",
        code="unsupported_format",
    )
