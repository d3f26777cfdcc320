"""Slot 90: column names that every engine can use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.engines.names import listed
from datacoolie_core.errors import TransformError
from datacoolie_core.plan.columns import clean_name
from datacoolie_core.transforms.slots import Shaped, Slot, TransformContext

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Dataflow


def _wanted(_dataflow: Dataflow) -> bool:
    return True


def _apply(shaped: Shaped, dataflow: Dataflow, _context: TransformContext) -> Shaped:
    mode = dataflow.transform.configure.column_name_mode
    cleaned = {name: clean_name(name, mode) for name in shaped.schema}
    by_clean: dict[str, list[str]] = {}
    for name, clean in cleaned.items():
        # Delta tables can't hold two names that differ in case only
        by_clean.setdefault(clean.casefold(), []).append(name)
    for names in by_clean.values():
        if len(names) > 1:
            raise TransformError(
                f"the columns {listed(names)} would all be called '{cleaned[names[0]]}'",
                place="transform.configure.column_name_mode",
                remedy="Rename one of them with rename_columns, or drop it.",
                code="name_collision",
            )
    return shaped.rename({name: clean for name, clean in cleaned.items() if name != clean})


SLOT = Slot(90, "names", _wanted, _apply)
