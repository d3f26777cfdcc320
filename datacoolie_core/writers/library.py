"""Write through delta-rs's own writer: for table features that plain file actions can't serve.

The batch is staged all the same, so that it is consumed once; the library then reads the staged
files, and they are deleted after its commit.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.writers.commit import Change, check_fence, commit_properties, run_commit
from datacoolie_core.writers.load import Counts, Load, Outcome, result_of
from datacoolie_core.writers.tables import field_metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_APPEND: Mapping[str, Any] = {"mode": "append", "schema_mode": "merge"}

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from datacoolie_core.writers.ranges import Range
    from datacoolie_core.writers.region import Region
    from datacoolie_core.writers.request import WriteResult
    from datacoolie_core.writers.staging import StagedFile
    from datacoolie_core.writers.tables import Place


def staged_frame(place: Place, files: Sequence[StagedFile], schema: pl.Schema) -> pl.LazyFrame:
    """Return the rows of staged files, partition columns included."""
    if not files:
        return pl.LazyFrame(schema=schema)
    groups: dict[tuple[tuple[str, Any], ...], list[str]] = {}
    for file in files:
        groups.setdefault(tuple(file.partition.items()), []).append(place.path(file.path))
    parts = (
        pl.scan_parquet(
            paths, glob=False, hive_partitioning=False, storage_options=place.options
        ).with_columns(pl.lit(value, dtype=schema[name]).alias(name) for name, value in key)
        for key, paths in groups.items()
    )
    return pl.concat(list(parts), how="vertical").select(list(schema))


def append(job: Load, table: DeltaTable, change: Change, counts: Counts) -> WriteResult:
    """Append staged rows; constraints and generated columns are the library's business.

    Raises:
        WriteError: A row breaks a constraint; nothing is changed.
    """
    frame = staged_frame(job.place, change.added, change.schema)
    generated = absent_generated(job, table)
    # the library computes a generated column only if the data does not have it
    return _write(job, table, frame.drop(generated), change, counts, _APPEND)


def overwrite(job: Load, table: DeltaTable, change: Change, counts: Counts) -> WriteResult:
    """Replace the table's rows, columns and partition columns by staged rows."""
    frame = staged_frame(job.place, change.added, change.schema)
    options = {
        "mode": "overwrite",
        "schema_mode": "overwrite",
        "partition_by": list(change.partition_columns),
    }
    return _write(job, table, frame, change, counts, options)


def replace_region(
    job: Load, table: DeltaTable, change: Change, counts: Counts, region: Region
) -> WriteResult:
    """Replace the rows of a region by staged rows."""
    frame = staged_frame(job.place, change.added, change.schema)
    options: dict[str, Any] = {"mode": "overwrite", "schema_mode": "merge"}
    condition = region_predicate(region)
    if condition is not None:
        options["predicate"] = condition
    generated = absent_generated(job, table)
    return _write(job, table, frame.drop(generated), change, counts, options)


def absent_generated(job: Load, table: DeltaTable) -> list[str]:
    """Return the generated columns that the batch leaves to the table."""
    present = job.frame.collect_schema()
    return [
        name
        for name, metadata in field_metadata(table).items()
        if "delta.generationExpression" in metadata and name not in present
    ]


def region_predicate(region: Region) -> str | None:
    """Return a region as SQL, None for the whole table.

    Raises:
        WriteError: A column holds text that is compared as another type.
    """
    parts = [f"({predicate(one)})" for one in region.ranges]
    if region.valueless:
        nulls = " AND ".join(f"{quoted(one.column)} IS NULL" for one in region.ranges)
        parts.append(f"({nulls})")
    within = [f"({' OR '.join(parts)})"] if parts else []
    own = [] if region.own is None else [f"({region.own.sql})"]
    return " AND ".join([*within, *own]) or None


def predicate(window: Range) -> str:
    """Return a range as SQL; text stands for times, which the engine casts to the column.

    Raises:
        WriteError: The column holds text that is compared as another type.
    """
    if window.typed is not None:
        raise WriteError(
            "a window of a text column can't be replaced in this table, which is written by the"
            " Delta library",
            place=f"column '{window.column}'",
            remedy="Type the column by a schema hint.",
            code="bound_type",
        )
    name = quoted(window.column)
    upper = "<=" if window.upper_inclusive else "<"
    bounds = [(">=", window.lower), (upper, window.upper)]
    parts = [f"{name} {sign} {_literal(bound)}" for sign, bound in bounds if bound is not None]
    return " AND ".join(parts) or f"{name} IS NOT NULL"


def quoted(name: str) -> str:
    """Return a column's name for an SQL text."""
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Any) -> str:
    if isinstance(value, str | date):
        text = value if isinstance(value, str) else value.isoformat()
        return "'" + text.replace("'", "''") + "'"
    return str(value)


def _write(
    job: Load,
    table: DeltaTable,
    frame: pl.LazyFrame,
    change: Change,
    counts: Counts,
    options: Mapping[str, Any],
) -> WriteResult:
    from deltalake import write_deltalake

    properties = commit_properties(job.request, change.info, blind=False)
    batches = frame.collect_batches(lazy=True, maintain_order=False)
    return run(
        job,
        table,
        change,
        counts,
        lambda: write_deltalake(
            table, cast("Any", batches), commit_properties=properties, **options
        ),
    )


def run(
    job: Load, table: DeltaTable, change: Change, counts: Counts, submit: Callable[[], Any]
) -> WriteResult:
    """Let the library commit, and tell what it did.

    Args:
        job: The load.
        table: The handle that commits.
        change: What is committed; its staged files are the library's input only.
        counts: Rows.
        submit: Calls the library.
    """
    check_fence(table, job.request)
    job.on_phase("committing")
    version = run_commit(job.place, job.request, table.version(), submit)
    job.on_phase("committed")
    made = replace(change, added=(), removed=())
    return result_of(job.place, Outcome(table, made, version, None), counts)
