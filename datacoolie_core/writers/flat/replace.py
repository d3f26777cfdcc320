"""``overwrite``, ``full_load`` and loads that begin anew: the batch takes the place of the files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from datacoolie_core.writers.flat.layout import staged_rows
from datacoolie_core.writers.flat.load import FlatLoad, result_of
from datacoolie_core.writers.flat.next_manifest import Change
from datacoolie_core.writers.load import Counts, nothing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datacoolie_core.writers.flat.place import Look
    from datacoolie_core.writers.request import WriteResult


def load(job: FlatLoad) -> WriteResult:
    """Replace all files of the folder, those of others too; with dated folders those of its date.

    Nothing is taken away before everything is staged, published and committed.
    """
    shaped = job.shaped(None)
    layout = job.layout(shaped.schema, None)
    files = job.stage(shaped, layout)
    rows = staged_rows(files)
    decided = job.finish(rows)
    if decided is None:
        return nothing()
    scope = _Scope(layout.prefix if job.request.mode == "load" else "")
    before = job.place.look()
    gone = scope.files(before)
    counts = Counts(rows_inserted=rows, rows_deleted=_rows(before, gone))
    if not (counts.changes or gone or decided.required):
        return nothing()
    if not files and not layout.partition_columns and layout.form != "jsonl":
        files = [job.staging.empty(layout)]
    change = Change(layout, files, job.info(decided, counts), scope.files, replaces=True)
    return result_of(job.commit(change), change, counts, _told(before, gone))


@dataclass(frozen=True)
class _Scope:
    prefix: str

    def files(self, look: Look) -> list[str]:
        """Return the files that the load replaces."""
        return [
            path for path in look.data if path.startswith(f"{self.prefix}/" * bool(self.prefix))
        ]


def _rows(look: Look, paths: Sequence[str]) -> int:
    named = look.contents.named
    return sum(named[path][1].rows for path in paths if path in named)


def _told(look: Look, paths: Sequence[str]) -> list[tuple[str, str]]:
    foreign = [path for path in paths if path in look.foreign]
    if not foreign:
        return []
    text = f"{len(foreign)} files that no dataflow wrote were replaced, such as {foreign[0]}"
    return [("foreign_files_replaced", text)]
