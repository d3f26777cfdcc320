"""The writer of flat files, as a run uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import polars as pl

from datacoolie_core import clock
from datacoolie_core.errors import WriteError
from datacoolie_core.state.destination import DestinationState, ForeignChange
from datacoolie_core.writers.flat import append, replace, window
from datacoolie_core.writers.flat.load import FlatLoad
from datacoolie_core.writers.flat.place import Place
from datacoolie_core.writers.flat.staging import Staging, drop_left_behind
from datacoolie_core.writers.flat.stored import Stored, unreadable
from datacoolie_core.writers.ranges import range_of
from datacoolie_core.writers.types import delta_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacoolie_core.metadata.models import Destination
    from datacoolie_core.plan.windows import Scalar, Window
    from datacoolie_core.state.manifest import Manifest
    from datacoolie_core.writers.commit import Sleep
    from datacoolie_core.writers.flat.place import Look
    from datacoolie_core.writers.flat.types import FileFormat
    from datacoolie_core.writers.request import Finish, OnPhase, WriteRequest, WriteResult

_LOADS: dict[str, Callable[[FlatLoad], WriteResult]] = {
    "append": append.load,
    "overwrite": replace.load,
    "full_load": replace.load,
}


@dataclass(frozen=True)
class FlatFiles:
    """Writes and looks at folders of files of one format.

    Attributes:
        form: The format.
        dated: ``date_folder_partitions`` of the connection.
    """

    form: FileFormat
    dated: str | None = None

    @staticmethod
    def of(destination: Destination) -> FlatFiles:
        """Return the writer of a destination of connection type ``file``."""
        connection = destination.connection
        form = cast("FileFormat", connection.format)
        return FlatFiles(form, connection.configure.date_folder_partitions)

    def write(
        self,
        request: WriteRequest,
        frame: pl.LazyFrame,
        finish: Finish,
        on_phase: OnPhase,
        *,
        sleep: Sleep = clock.sleep,
    ) -> WriteResult:
        """Load a batch into a folder by one commit of the dataflow's manifest.

        Args:
            request: What to write, where, and as which load.
            frame: The batch, after all transforms; consumed once.
            finish: Called once with the number of rows, after the frame has been consumed; gives
                what is to be committed, or None to leave the folder as it is.
            on_phase: Told of each phase as it is reached.
            sleep: Waits for a number of seconds between tries.

        Raises:
            SupersededError: The dataflow has committed since the run looked at the folder.
            WriteError: Nothing was changed, unless the code is ``commit_unknown``.
        """
        load = _load_for(request, self.form)
        place = self._place(request.uri, request.dataflow.dataflow_id, request.storage_options)
        staging = Staging(place.uri)
        try:
            result = load(FlatLoad(request, place, frame, finish, on_phase, sleep, staging))
        finally:
            staging.discard()
        drop_left_behind(place.uri)
        return result

    def inspect(
        self, uri: str, dataflow_id: str, storage_options: Mapping[str, str]
    ) -> DestinationState:
        """Return what a folder's manifests say of a dataflow's loads.

        Raises:
            WriteError: The folder can't be read.
        """
        look = self._look(uri, storage_options, dataflow_id)
        own = look.own
        if own is None or own.sequence is None:
            return DestinationState(
                exists=bool(look.data), sequence=None, unmarked=bool(look.foreign)
            )
        return DestinationState(
            exists=True,
            table_id=own.table_id,
            version=own.sequence,
            sequence=own.sequence,
            commit=own.commit,
            commit_version=own.sequence,
            foreign=_taken_away(look, own),
        )

    def column_maximum(
        self, uri: str, column: str, storage_options: Mapping[str, str]
    ) -> Scalar | None:
        """Return the highest value of a column, nulls and NaN left aside; None without any."""
        look = self._look(uri, storage_options)
        schema = look.schema
        if column not in schema:
            raise WriteError(
                f"the files have no column '{column}'", place=uri, code="missing_column"
            )
        values = pl.col(column)
        kept = values.drop_nans() if schema[column].is_float() else values
        return cast("Scalar | None", self._figures(look, schema, [kept.max()])[0])

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
        look = self._look(uri, storage_options)
        schema = look.schema
        if not look.data or not windows:
            return [0] * len(windows)
        ranges = [
            range_of(column, schema, (w.lower, w.upper), zone=zone, written_in=w.zone)
            for w in windows
        ]
        counts = [one.rows.sum().cast(pl.Int64).alias(str(at)) for at, one in enumerate(ranges)]
        return [int(cast("int", rows)) for rows in self._figures(look, schema, counts)]

    def no_rows(self, uri: str, storage_options: Mapping[str, str]) -> pl.LazyFrame | None:
        """Return a frame of the folder's columns without rows, None if they are not known."""
        schema = self._look(uri, storage_options).schema
        return pl.LazyFrame(schema=schema) if schema else None

    def read_schema(self, uri: str, storage_options: Mapping[str, str]) -> dict[str, str] | None:
        """Return column → type as Delta names it, None if they are not known."""
        schema = self._look(uri, storage_options).schema
        return {name: delta_name(dtype) for name, dtype in schema.items()} or None

    def table_row_count(self, uri: str, storage_options: Mapping[str, str]) -> int | None:
        """Return the number of rows, None if there is a file that only it knows."""
        look = self._look(uri, storage_options)
        return look.rows if look.data or look.contents.manifests else None

    def _place(self, uri: str, dataflow_id: str, storage_options: Mapping[str, str]) -> Place:
        return Place(uri, self.form, dataflow_id, storage_options, self.dated)

    def _look(self, uri: str, storage_options: Mapping[str, str], dataflow_id: str = "") -> Look:
        return self._place(uri, dataflow_id, storage_options).look()

    def _figures(
        self, look: Look, schema: pl.Schema, wanted: Sequence[pl.Expr]
    ) -> tuple[object, ...]:
        with Stored(self.form, look.place.storage_options) as stored:
            rows = stored.scan([look.stored(path) for path in look.data], schema)
            try:
                return rows.select(wanted).collect(engine="streaming").row(0)
            except pl.exceptions.PolarsError as error:
                raise unreadable(error, look.place.uri) from error


def _load_for(request: WriteRequest, form: FileFormat) -> Callable[[FlatLoad], WriteResult]:
    load_type = request.dataflow.destination.load_type
    if load_type not in _LOADS:
        raise WriteError(
            f"{form} files can't do {load_type}",
            remedy=f"Use one of {', '.join(_LOADS)}, or a lakehouse connection.",
            code="unsupported_load_type",
        )
    if request.mode == "replace_all":
        return replace.load
    return window.load if request.mode == "replace_window" else _LOADS[load_type]


def _taken_away(look: Look, own: Manifest) -> tuple[ForeignChange, ...]:
    """Return what others did to the dataflow's files since its newest load."""
    missing = {entry.path for entry in own.files} - set(look.entries)
    changes: list[ForeignChange] = []
    for other in look.contents.manifests:
        marked = missing & {mark.path for mark in other.removed}
        if marked and other is not own and other.commit is not None:
            kind = str(other.commit.get("load_type", "load"))
            changes.append(ForeignChange(own.sequence or 0, kind, other.dataflow_id))
            missing -= marked
    if missing:
        changes.append(ForeignChange(own.sequence or 0, "DELETE"))
    return tuple(changes)
