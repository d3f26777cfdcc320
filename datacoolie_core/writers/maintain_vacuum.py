"""Delete files that no reader needs any more, and never one that somebody may still need.

delta-rs names the candidates, and everything that it names is checked again here, because its full
vacuum deletes files of running loads, of tables that lie in sub-folders, and whatever else is in
the folder. What stays, whatever the options say:

* files of the newest version, looked up after the candidates;
* files removed from the table within the retention, which readers of older versions need;
* files that the table has never named and that are younger than a day: a load may be about to
  commit them;
* everything that is not a data file in a place where the table's data files lie.
"""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datacoolie_core.errors import MissingPathError, StorageError, WriteError
from datacoolie_core.writers.maintain_properties import (
    WEEK,
    deleted_file_hours,
    why_no_files_removed,
)
from datacoolie_core.writers.maintain_request import Operation, megabytes
from datacoolie_core.writers.objects import FoundFile, delete_file, find_files, read_file
from datacoolie_core.writers.partitions import path_of
from datacoolie_core.writers.tables import live_files, open_table

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from deltalake import DeltaTable

    from datacoolie_core.writers.maintain_request import MaintainOptions, Upkeep
    from datacoolie_core.writers.tables import Place

YOUNGEST = 24.0
"""Hours for which a file may wait for its commit."""
_AT_ONCE = 8


@dataclass(frozen=True)
class Retention:
    """For how long files are kept, and which.

    Attributes:
        hours: Files removed from the table for longer go.
        lite: Only those; files that the table has never named stay.
        warning: Why it is not as it was asked for.
    """

    hours: int
    lite: bool
    warning: tuple[str, str] | None = None


def retention_of(options: MaintainOptions, configuration: Mapping[str, str]) -> Retention:
    """Return how long files are kept: never less than the table says, unless that is allowed.

    Args:
        options: What was asked for.
        configuration: The table's properties.
    """
    own, asked = deleted_file_hours(configuration), options.retention_hours
    if own is None:
        text = configuration["delta.deletedFileRetentionDuration"]
        known = f"the table's retention '{text}' (delta.deletedFileRetentionDuration) is unknown"
        hours = math.ceil(max(asked or 0, 10 * 366 * 24.0))
        return Retention(
            hours, lite=True, warning=("retention_unknown", f"{known}: nothing is removed")
        )
    if asked is None or asked >= own:
        hours = math.ceil(max(WEEK, own) if asked is None else asked)
        return Retention(hours, lite=not options.unreferenced)
    short = (
        f"a retention of {asked:g} hours is below the {own:g} hours for which the table keeps"
        " removed files (delta.deletedFileRetentionDuration)"
    )
    if options.allow_short_retention:
        text = f"{short}: only removed files were deleted, and readers of older versions fail"
        return Retention(math.ceil(asked), lite=True, warning=("short_retention", text))
    text = (
        f"{short}: refused, only files removed {own:g} hours ago were deleted. Set"
        " allow_short_retention if no reader needs the older versions."
    )
    return Retention(math.ceil(own), lite=True, warning=("short_retention_refused", text))


def vacuum(upkeep: Upkeep) -> Operation:
    """Delete what nobody needs; a dry run only counts it.

    Raises:
        WriteError: Some files could not be deleted; says how many were.
    """
    table = open_table(upkeep.place)
    if table is None:
        return Operation("vacuum", "skipped", "the table is not there")
    reason = why_no_files_removed(table)
    if reason is not None:
        return Operation("vacuum", "skipped", reason)
    kept = retention_of(upkeep.options, table.metadata().configuration)
    garbage = _unnamed(table, 0, full=True)
    doomed = _doomed(upkeep, table, kept)
    if not upkeep.options.dry_run:
        upkeep.on_phase("deleting")
        _delete(upkeep.place, doomed)
        upkeep.on_phase("cleaned")
    return _told(upkeep, kept, doomed, len(garbage))


def _unnamed(table: DeltaTable, hours: int, *, full: bool) -> set[str]:
    """Return paths that the present version does not name and that are old enough."""
    found = table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=full)
    return set(found)


def _doomed(upkeep: Upkeep, table: DeltaTable, kept: Retention) -> list[FoundFile]:
    removed = _unnamed(table, kept.hours, full=False)
    candidates = set(removed)
    if not kept.lite:
        stray = _unnamed(table, kept.hours, full=True) - removed
        candidates |= {path for path in stray if _is_data_file(path)}
        own = deleted_file_hours(table.metadata().configuration) or 0
        if kept.hours > own:
            # the table forgets after its own retention what it removed
            candidates -= _removed_within(upkeep, table.version(), kept.hours)
    found = find_files(upkeep.place, sorted(candidates))
    old = [
        file
        for file in found
        if file.path in removed or upkeep.hours_since(file.modified) >= YOUNGEST
    ]
    needed = _live_now(upkeep.place)
    return [file for file in old if file.path not in needed]


def _is_data_file(path: str) -> bool:
    """Say whether a path is where data files of a table lie: its root, its partition folders.

    >>> _is_data_file("region=eu/part-1.parquet"), _is_data_file("other_table/part-1.parquet")
    (True, False)
    """
    *folders, name = path.split("/")
    return name.endswith(".parquet") and all("=" in one.strip("=") for one in folders)


def _removed_within(upkeep: Upkeep, newest: int, hours: float) -> set[str]:
    """Return the files that commits of the last hours took out of the table."""
    found: set[str] = set()
    for version in range(newest, -1, -1):
        try:
            data = read_file(upkeep.place, f"_delta_log/{version:020}.json")
        except MissingPathError:
            return found
        actions: list[dict[str, Any]] = [json.loads(line) for line in data.splitlines() if line]
        found |= {path_of(one["remove"]["path"])[0] for one in actions if "remove" in one}
        moments = [one["commitInfo"].get("timestamp", 0) for one in actions if "commitInfo" in one]
        if upkeep.hours_since(moments[0] if moments else 0) > hours:
            return found
    return found


def _live_now(place: Place) -> set[str]:
    table = open_table(place)
    if table is None:
        raise WriteError(
            "the table was deleted meanwhile", place=place.uri, code="table_changed", retryable=True
        )
    return {file.path for file in live_files(table)}


def _delete(place: Place, files: Collection[FoundFile]) -> None:
    def one(file: FoundFile) -> StorageError | None:
        try:
            delete_file(place, file.path)
        except StorageError as error:
            return error
        return None

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="vacuum") as pool:
        failed = [error for error in pool.map(one, files) if error is not None]
    if failed:
        raise WriteError(
            f"{len(failed)} of {len(files)} files could not be deleted, such as {failed[0]}",
            place=place.uri,
            remedy="Allow this user to delete there; the next run goes on.",
            code="vacuum_failed",
            retryable=True,
        ) from failed[0]


def _told(
    upkeep: Upkeep, kept: Retention, doomed: Collection[FoundFile], garbage: int
) -> Operation:
    dry = upkeep.options.dry_run
    size = sum(file.size for file in doomed)
    what = "would be deleted" if dry else "deleted"
    head = "dry run: " if dry else ""
    mode = "lite" if kept.lite else "full"
    return Operation(
        "vacuum",
        "skipped" if dry else "succeeded",
        f"{head}{len(doomed)} files ({megabytes(size)}) {what}, {garbage - len(doomed)} kept;"
        f" {mode}, retention {kept.hours} hours",
        files_removed=0 if dry else len(doomed),
        bytes_removed=0 if dry else size,
        details={
            "mode": mode,
            "retention_hours": kept.hours,
            "files_planned": len(doomed),
            "unnamed_files": garbage,
            "unnamed_files_kept": garbage - len(doomed),
        },
        warnings=() if kept.warning is None else (kept.warning,),
    )
