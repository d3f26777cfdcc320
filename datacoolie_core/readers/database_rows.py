"""What every kind of database is asked for, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.readers.database_settings import DatabaseSettings

FETCH_SIZE = 20_000
"""Rows that are fetched at once; about that many are in memory as Python values."""


@dataclass(frozen=True)
class Ask:
    """One read of a table or a query.

    Attributes:
        request: What bounds it.
        settings: Where the database is.
        place: How messages name what is read.
        fetch_size: Rows that are fetched at once.
    """

    request: ReadRequest
    settings: DatabaseSettings
    place: str
    fetch_size: int = FETCH_SIZE

    @property
    def query(self) -> str | None:
        """The query as prepared, None if a table is read."""
        return self.request.query

    @property
    def table(self) -> tuple[str, ...]:
        """The table's name in its parts: schema, if there is one, and table."""
        source = self.request.dataflow.source
        return tuple(part for part in (source.schema_name, source.table) if part)


@dataclass(frozen=True)
class Rows:
    """The rows that a database gives: the same ones however often they are asked for.

    Attributes:
        schema: Column → type.
        batches: Yields the rows of some columns (None is all of them), a frame at a time.
        sql: As sent.
        parameters: The values of its bounds.
        close: Ends the connection.
    """

    schema: dict[str, pl.DataType]
    batches: Callable[[Sequence[str] | None], Iterator[pl.DataFrame]]
    sql: str
    parameters: tuple[Any, ...] = field(default=())
    close: Callable[[], None] = lambda: None
