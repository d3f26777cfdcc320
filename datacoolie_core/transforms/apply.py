"""From the source's frame to the destination's: every wanted slot, in order, nothing computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core import registry
from datacoolie_core.engines.names import listed, match, pattern_names, remedy_for
from datacoolie_core.errors import TransformError
from datacoolie_core.plan.columns import clean_name
from datacoolie_core.transforms import (
    clean_names,
    columns,
    dedupe,
    partitions,
    projection,
    row_filter,
    scd2,
    schema,
    system,
)
from datacoolie_core.transforms.slots import PLUGIN_SLOTS, Shaped, Slot, TransformContext

if TYPE_CHECKING:
    from collections.abc import Iterable

    from datacoolie_core.metadata.models import Dataflow

__all__ = ["BUILT_IN", "TransformContext", "apply", "check_supported", "slots"]

BUILT_IN: tuple[Slot, ...] = (
    schema.SLOT,
    dedupe.SLOT,
    columns.SLOT,
    row_filter.SLOT,
    scd2.SLOT,
    system.SLOT,
    partitions.SLOT,
    projection.SLOT,
    clean_names.SLOT,
)


def check_supported(dataflow: Dataflow) -> None:
    """Refuse metadata that asks for a slot that is not built yet, before anything is read.

    Raises:
        TransformError: It does.
    """
    transform = dataflow.transform
    asked = {
        "transform.value_rules": bool(transform.value_rules),
        "transform.hash_columns": bool(transform.hash_columns),
        "transform.masking_rules": bool(transform.masking_rules),
        "configure.datacoolie.on_cast_error": dataflow.configure.datacoolie.on_cast_error != "fail",
    }
    for field, wanted in asked.items():
        if wanted:
            raise TransformError(
                "this version can't do that yet",
                place=field,
                remedy="Remove it, or wait for a later version.",
                code="unsupported_transform",
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
    check_supported(dataflow)
    shaped = Shaped(frame, dict(frame.collect_schema()))
    applied: list[str] = []
    for slot in slots():
        if slot.wanted(dataflow):
            before, shaped = shaped, slot.apply(shaped, dataflow, context)
            if shaped is not before:
                applied.append(slot.name)
    _check_plan(shaped, dataflow)
    _check_keys(shaped.schema, dataflow)
    return shaped.frame, tuple(applied)


def slots() -> list[Slot]:
    """Return all slots in order, those of plug-ins too.

    Raises:
        TransformError: A plug-in takes a slot that is not free.
    """
    plugins: list[Slot] = list(registry.transforms.all().values())
    for slot in plugins:
        if slot.number not in PLUGIN_SLOTS:
            raise TransformError(
                f"the plug-in '{slot.name}' takes slot {slot.number}",
                place="transforms",
                remedy=f"Plug-ins may take slots {PLUGIN_SLOTS[0]} to {PLUGIN_SLOTS[-1]}.",
                code="bad_slot",
            )
    return sorted([*BUILT_IN, *plugins], key=lambda slot: (slot.number, slot.name))


def _check_plan(shaped: Shaped, dataflow: Dataflow) -> None:
    """Let the engine resolve the whole plan, so that a wrong expression fails before a write."""
    patterns = pattern_names(shaped.schema)
    if patterns:
        raise TransformError(
            f"columns can't be called {listed(patterns)}: such a name means several columns",
            remedy="Give them other names.",
            code="unsupported_column_name",
        )
    try:
        shaped.frame.collect_schema()
    except pl.exceptions.PolarsError as error:
        raise TransformError(
            str(error).splitlines()[0],
            place=f"transform of '{dataflow.label}'",
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
