"""State records in a table of a SQL database: SQLite, PostgreSQL, or what SQLAlchemy reaches."""

from __future__ import annotations

import json
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from datacoolie_core.errors import WatermarkError
from datacoolie_core.state.database import open_engine, shown
from datacoolie_core.state.record import StateRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine, Table

R = TypeVar("R")
TABLE = "datacoolie_state"
_WAY_OUT = "Delete the row: the next run takes its state from the destination itself."


class SqlStateStore:
    """One row a dataflow, replaced by one statement.

    The table ``datacoolie_state`` is made when it is missing. Its columns are in
    docs/reference/state.md.

    Args:
        url: An SQLAlchemy URL; a password in it is never shown.
        schema: The database schema of the table; None is the default one.
    """

    def __init__(self, url: str, schema: str | None = None) -> None:
        self._url = url
        self._schema = schema
        self._made = False
        self._guard = threading.Lock()

    def __repr__(self) -> str:
        return f"SqlStateStore({self.place!r})"

    @cached_property
    def place(self) -> str:
        """The URL without its secrets, for messages."""
        return shown(self._url)

    def load(self, dataflow_id: str) -> StateRecord | None:
        """Return the record, or None if there is no row.

        Raises:
            WatermarkError: The database does not answer, or the row can't be read as a record.
        """
        from sqlalchemy import select

        table = self._table
        query = select(table.c.document).where(table.c.dataflow_id == dataflow_id)

        def read(link: Connection) -> str | None:
            return link.execute(query).scalar()

        text = self._run("read", dataflow_id, read)
        if text is None:
            return None
        try:
            record = StateRecord.from_json(json.loads(text))
        except WatermarkError as error:
            remedy = error.remedy or _WAY_OUT
            raise self._broken(dataflow_id, error.message, remedy, error.code) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._broken(
                dataflow_id,
                f"the state is broken ({error})",
                _WAY_OUT,
                "state_broken",
            ) from error
        if record.dataflow_id != dataflow_id:
            raise self._broken(
                dataflow_id,
                f"the state belongs to dataflow '{record.dataflow_id}'",
                "Correct the row.",
                "state_broken",
            )
        return record

    def save(self, record: StateRecord) -> None:
        """Replace the dataflow's row in one transaction.

        Raises:
            WatermarkError: The database does not take it.
        """
        row = {
            "dataflow_id": record.dataflow_id,
            "sequence": record.sequence,
            "document": json.dumps(record.to_json(), ensure_ascii=False),
            "run_id": record.run_id,
            "updated_at": record.updated_at,
        }

        def write(link: Connection) -> None:
            self._upsert(link, row)

        self._run("save", record.dataflow_id, write)

    def close(self) -> None:
        """Give the connections back."""
        if "_engine" in self.__dict__:
            self._engine.dispose()

    def _upsert(self, link: Connection, row: dict[str, Any]) -> None:
        from sqlalchemy.dialects import postgresql, sqlite

        dialect = link.dialect.name
        if dialect in ("sqlite", "postgresql"):
            insert = (sqlite if dialect == "sqlite" else postgresql).insert(self._table)
            rest = {name: insert.excluded[name] for name in row if name != "dataflow_id"}
            link.execute(
                insert.values(row).on_conflict_do_update(index_elements=["dataflow_id"], set_=rest)
            )
            return
        key = self._table.c.dataflow_id == row["dataflow_id"]
        if not link.execute(self._table.update().where(key).values(row)).rowcount:
            link.execute(self._table.insert().values(row))

    def _run(self, verb: str, dataflow_id: str, work: Callable[[Connection], R]) -> R:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            self._make()
            with self._engine.begin() as link:
                return work(link)
        except (SQLAlchemyError, OSError) as error:
            # the driver's own words: SQLAlchemy adds the statement with its values
            cause = str(getattr(error, "orig", None) or type(error).__name__).strip()
            first = cause.splitlines()[0] if cause else type(error).__name__
            code = "state_not_saved" if verb == "save" else "state_not_read"
            raise WatermarkError(
                f"the state can't be {verb if verb == 'read' else 'saved'} ({first})",
                dataflow=dataflow_id,
                place=self.place,
                remedy="Check that the database answers and that the user may write its table."
                + (" The rows are safe: the next run finds them." if verb == "save" else ""),
                code=code,
                retryable=True,
            ) from error

    def _make(self) -> None:
        """Make the table once; another process may make it at the same moment."""
        from sqlalchemy import inspect
        from sqlalchemy.exc import SQLAlchemyError

        with self._guard:
            if self._made:
                return
            try:
                self._table.create(self._engine, checkfirst=True)
            except SQLAlchemyError:
                if not inspect(self._engine).has_table(TABLE, schema=self._schema):
                    raise
            self._made = True

    def _broken(
        self, dataflow_id: str, message: str, remedy: str | None, code: str
    ) -> WatermarkError:
        return WatermarkError(
            message,
            dataflow=dataflow_id,
            place=f"{self.place}, table {TABLE}, dataflow_id '{dataflow_id}'",
            remedy=remedy,
            code=code,
        )

    @cached_property
    def _table(self) -> Table:
        from sqlalchemy import BigInteger, Column, MetaData, String, Table, Text

        return Table(
            TABLE,
            MetaData(schema=self._schema),
            Column("dataflow_id", String(500), primary_key=True),
            Column("sequence", BigInteger, nullable=False),
            Column("document", Text, nullable=False),
            Column("run_id", String(500)),
            Column("updated_at", String(40)),
        )

    @cached_property
    def _engine(self) -> Engine:
        return open_engine(self._url)
