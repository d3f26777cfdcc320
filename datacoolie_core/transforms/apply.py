"""From the source's frame to the destination's: every wanted slot, in order, nothing computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.names import listed, match, pattern_names, remedy_for
from datacoolie_core.errors import TransformError
from datacoolie_core.plan.columns import clean_name
from datacoolie_core.transforms import (
    clean_names,
    columns,
    dedupe,
    hashes,
    masking,
    partitions,
    projection,
    row_filter,
    scd2,
    schema,
    system,
    values,
)
from datacoolie_core.transforms.plugins import plugin_slots
from datacoolie_core.transforms.slots import PLUGIN_SLOTS, Shaped, Slot, TransformContext
from datacoolie_core.transforms.tolerant import with_source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacoolie_core.metadata.models import Dataflow

__all__ = ["BUILT_IN", "TransformContext", "apply", "slots"]

BUILT_IN: tuple[Slot, ...] = (
    values.SLOT,
    schema.SLOT,
    hashes.SLOT,
    dedupe.SLOT,
    columns.SLOT,
    row_filter.SLOT,
    scd2.SLOT,
    system.SLOT,
    partitions.SLOT,
    masking.SLOT,
    projection.SLOT,
    clean_names.SLOT,
)


def apply(
    frame: pl.LazyFrame, dataflow: Dataflow, context: TransformContext
) -> tuple[pl.LazyFrame, tuple[str, ...]]:
    """Return the frame that the destination gets, and the names of the slots that it passed.

    Args:
        frame: The source's rows.
        dataflow: What to do with them.
        context: The run and its instant.

    Raises:
        TransformError: Metadata and columns don't fit together.
    """
    shaped = _kept(Shaped(frame, dict(frame.collect_schema())), dataflow, context)
    applied: list[str] = []
    for slot in slots(dataflow, context):
        if slot.wanted(dataflow):
            before, shaped = shaped, _passed(slot, shaped, dataflow, context)
            if shaped is not before:
                applied.append(slot.name)
    _check_plan(shaped, dataflow)
    _check_keys(shaped.schema, dataflow)
    return shaped.frame, tuple(applied)


def slots(dataflow: Dataflow, context: TransformContext) -> list[Slot]:
    """Return all slots in order, those of plug-ins too.

    Args:
        dataflow: May name plug-ins.
        context: Says where these may come from.

    Raises:
        TransformError: A plug-in is not there, not allowed, or takes a slot that is not free.
    """
    found = [*BUILT_IN, *plugin_slots(dataflow, context.allowed)]
    return sorted(found, key=lambda slot: (slot.number, slot.name))


def _kept(shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> Shaped:
    """Keep rows as they were read, where one may be quarantined after its values were cleaned."""
    quarantines = context.bad_rows is not None and context.bad_rows.policy == "quarantine"
    needed = values.SLOT.wanted(dataflow) and schema.SLOT.wanted(dataflow)
    return with_source(shaped) if quarantines and needed else shaped


def _passed(slot: Slot, shaped: Shaped, dataflow: Dataflow, context: TransformContext) -> Shaped:
    after = slot.apply(shaped, dataflow, context)
    if slot.number not in PLUGIN_SLOTS or after is shaped:
        return after
    # who writes a plug-in need not keep account of the columns
    return Shaped(after.frame, dict(_schema(after.frame, f"slot '{slot.name}'")))


def _check_plan(shaped: Shaped, dataflow: Dataflow) -> None:
    """Let the engine resolve the whole plan, so that a wrong expression fails before a write."""
    patterns = pattern_names(shaped.schema)
    if patterns:
        raise TransformError(
            f"columns can't be called {listed(patterns)}: such a name means several columns",
            remedy="Give them other names.",
            code="unsupported_column_name",
        )
    _schema(shaped.frame, f"transform of '{dataflow.label}'")


def _schema(frame: pl.LazyFrame, place: str) -> pl.Schema:
    try:
        return frame.collect_schema()
    except pl.exceptions.PolarsError as error:
        raise TransformError(
            str(error).splitlines()[0],
            place=place,
            remedy="Correct the expression or the types that it works on.",
            code="bad_expression",
        ) from error


def _check_keys(names: Iterable[str], dataflow: Dataflow) -> None:
    known = list(names)
    mode = dataflow.transform.configure.column_name_mode
    destination = dataflow.destination
    for field, wanted in (
        ("merge_keys", destination.merge_keys),
        ("partition_columns", [column.column for column in destination.partition_columns]),
    ):
        for name in wanted:
            if match(name, known) is None and match(clean_name(name, mode), known) is None:
                raise TransformError(
                    f"there is no column '{name}' after the transforms",
                    place=f"destination.{field}",
                    remedy=remedy_for(name, known),
                    code="missing_column",
                )
