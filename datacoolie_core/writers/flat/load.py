"""One load into one folder: what every load type needs, whatever its files in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from datacoolie_core import clock
from datacoolie_core.errors import WriteError
from datacoolie_core.plan.columns import destination_column
from datacoolie_core.plan.replay import chunk_column
from datacoolie_core.writers.flat.commit import Committer
from datacoolie_core.writers.flat.layout import Layout, staged_rows
from datacoolie_core.writers.flat.options import write_options
from datacoolie_core.writers.flat.partitions import check_partitions, dated_folder
from datacoolie_core.writers.flat.place import partitions_of
from datacoolie_core.writers.flat.shape import Shaped, shape
from datacoolie_core.writers.load import Counts, commit_info
from datacoolie_core.writers.request import WriteResult
from datacoolie_core.writers.types import delta_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from datacoolie_core.writers.commit import Sleep
    from datacoolie_core.writers.flat.commit import Done
    from datacoolie_core.writers.flat.layout import Staged
    from datacoolie_core.writers.flat.next_manifest import Change
    from datacoolie_core.writers.flat.place import Look, Place
    from datacoolie_core.writers.flat.staging import Staging
    from datacoolie_core.writers.request import Commit, Finish, OnPhase, WriteRequest


@dataclass(frozen=True)
class FlatLoad:
    """What a load type works with.

    Attributes:
        request: What is asked for.
        place: The folder.
        frame: The batch, consumed once.
        finish: Asked once, after the batch has been consumed.
        on_phase: Told of each phase.
        sleep: Waits between tries.
        staging: Where new files wait.
    """

    request: WriteRequest
    place: Place
    frame: pl.LazyFrame
    finish: Finish
    on_phase: OnPhase
    sleep: Sleep
    staging: Staging

    def shaped(self, look: Look | None) -> Shaped:
        """Return the batch in the shape of a folder's files; None replaces them all.

        Raises:
            WriteError: Types that conflict, or that the format does not have.
        """
        there = None if look is None else look.schema
        return shape(self.frame, there, self.place.form)

    def layout(self, schema: pl.Schema, look: Look | None) -> Layout:
        """Return how new files look.

        Args:
            schema: Their columns.
            look: The folder whose files stay; None where all are replaced.

        Raises:
            WriteError: Options or partition columns that can't be, or not those of the folder.
        """
        destination = self.request.dataflow.destination
        named = tuple(one.column for one in destination.partition_columns)
        kept = None if look is None or not look.entries else partitions_of(look.own)
        if kept is not None and named != kept:
            raise WriteError(
                f"the files are parted by {list(kept)}, the metadata says {list(named)}",
                place=self.place.uri,
                remedy="Set partition_columns as the files have them, or load the folder anew by"
                " a full refresh.",
                code="partition_mismatch",
            )
        check_partitions(named, schema)
        now = clock.utc_now()
        return Layout(
            form=self.place.form,
            schema=schema,
            partition_columns=named,
            options=write_options(destination, self.place.form),
            tracked=self._tracked(),
            stem=self._stem(f"{now:%Y%m%dT%H%M%S}"),
            prefix=dated_folder(self.place.dated, now),
        )

    def _stem(self, moment: str) -> str:
        table = self.request.dataflow.destination.table.replace("\\", "/").rpartition("/")[2]
        safe = "".join(one if one.isalnum() or one in "-_" else "-" for one in table).lstrip("_-")
        return f"{safe or 'part'}_{moment}_{self.request.sequence}-{uuid4().hex[:8]}"

    def _tracked(self) -> tuple[str, ...]:
        request, dataflow = self.request, self.request.dataflow
        chunks = chunk_column(dataflow)
        sources = [*dataflow.source.watermark_columns, *([chunks] if chunks else [])]
        named = [found for one in sources if (found := destination_column(dataflow, one))]
        window = [] if request.window is None else [request.window.column]
        return (*window, *request.order_columns, *named)

    def stage(self, shaped: Shaped, layout: Layout) -> list[Staged]:
        """Consume the batch into files that nobody sees.

        Raises:
            WriteError: A value that the format can't hold.
        """
        self.on_phase("staging")
        files = self.staging.write(shaped.frame, layout)
        shaped.check()
        self.on_phase("staged")
        return files

    def commit(self, change: Change) -> Done:
        """Publish and commit a change, telling of the phases."""
        return Committer(self.place, self.request, self.on_phase, self.sleep).commit(change)

    def info(self, decided: Commit, counts: Counts) -> dict[str, object]:
        """Return the ``datacoolie`` object of the commit."""
        return commit_info(self.request, decided, counts)


def result_of(
    done: Done, change: Change, counts: Counts, warnings: Sequence[tuple[str, str]] = ()
) -> WriteResult:
    """Return the result of a commit."""
    before = done.before
    removed = [before.data[path] for path in done.removed if path in before.data]
    left = [path for path in before.data if path not in done.removed]
    known = before.contents.named
    rows = [known[path][1].rows if path in known else None for path in left]
    old = None if None in rows else sum(one for one in rows if one is not None)
    told = [*warnings]
    if done.leftover:
        told.append(
            (
                "cleanup_failed",
                f"{len(done.leftover)} files that were replaced can't be deleted, such as"
                f" {done.leftover[0]}: other readers of the folder see them until the next load",
            )
        )
    return WriteResult(
        committed=True,
        table_id=done.manifest.table_id,
        table_version=done.manifest.sequence,
        info=change.info,
        rows_written=counts.rows_inserted + counts.rows_updated,
        files_added=len(change.added),
        files_removed=len(removed),
        bytes_added=sum(file.size for file in change.added),
        bytes_removed=sum(info.size for info in removed),
        table_rows=None if old is None else old + staged_rows(change.added),
        schema={name: delta_name(dtype) for name, dtype in change.layout.schema.items()},
        warnings=tuple(told),
        **vars(counts),
    )
