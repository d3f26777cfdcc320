"""The slots that a frame passes, in their order; each is one file of this package.

====  ==================  =====================================================
slot  name                what it does
====  ==================  =====================================================
5     values              value rules: text is cleaned before it is typed
10    schema              types from schema hints, wall clock times to instants
18    hashes              hash columns
20    dedupe              one row a key, the newest
30    columns             computed columns
35    filter              rows that stay
40-50 *plug-ins*          what packages register, what a dataflow names
60    scd2                validity columns
70    system              ``__created_at`` and its siblings
80    partitions          partition columns
84    masking             masking rules
85    projection          select, drop and rename
90    names               clean names
====  ==================  =====================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from datacoolie_core.plan.columns import AUDIT_COLUMNS, FILE_COLUMNS, SCD2_COLUMNS
from datacoolie_core.plan.scd2 import keeps_history

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    import polars as pl

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.transforms.quarantine import BadRows

PLUGIN_SLOTS = range(40, 51)
SYSTEM_COLUMNS = AUDIT_COLUMNS
_TRAILING = (*FILE_COLUMNS, *SYSTEM_COLUMNS)


def trailing_columns(dataflow: Dataflow) -> tuple[str, ...]:
    """Return the columns of ours, which stand at the end of a table, in their order.

    Without scd2, validity columns are the source's own and stand where it has them.
    """
    return (*SCD2_COLUMNS, *_TRAILING) if keeps_history(dataflow) else _TRAILING


@dataclass(frozen=True)
class TransformContext:
    """What a transform knows besides the metadata.

    Attributes:
        run_id: The run, for ``__dataflow_run_id``.
        now: One instant for the whole load, aware.
        allowed: Packages and modules that plug-ins may come from; empty allows every one.
        warnings: Code and message of what is odd; the slots add to it.
        bad_rows: Sees values that do not fit their type; None where the first one ends the load.
    """

    run_id: str
    now: datetime
    allowed: tuple[str, ...] = ()
    warnings: list[tuple[str, str]] = field(
        default_factory=list[tuple[str, str]], compare=False, repr=False
    )
    bad_rows: BadRows | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Shaped:
    """A lazy frame and its columns, so that nobody has to ask the engine for them.

    Attributes:
        frame: The rows.
        schema: Name → type, in order; ``pl.Unknown`` where an expression decides.
    """

    frame: pl.LazyFrame
    schema: dict[str, pl.DataType]

    def with_columns(self, **columns: tuple[pl.Expr, pl.DataType]) -> Shaped:
        """Return the frame with columns added at its end, or replaced."""
        added = [value.alias(name) for name, (value, _) in columns.items()]
        types = {name: dtype for name, (_, dtype) in columns.items()}
        return Shaped(self.frame.with_columns(added), {**self.schema, **types})

    def select(self, names: list[str]) -> Shaped:
        """Return the frame with these columns only, in this order."""
        return Shaped(self.frame.select(names), {name: self.schema[name] for name in names})

    def drop(self, names: list[str]) -> Shaped:
        """Return the frame without some columns."""
        if not names:
            return self
        return self.select([name for name in self.schema if name not in names])

    def rename(self, names: dict[str, str]) -> Shaped:
        """Return the frame with other names."""
        if not names:
            return self
        renamed = {names.get(name, name): dtype for name, dtype in self.schema.items()}
        return Shaped(self.frame.rename(names), renamed)

    def with_ours_last(self, dataflow: Dataflow) -> Shaped:
        """Return the frame with the columns of ours at its end."""
        ours = [name for name in trailing_columns(dataflow) if name in self.schema]
        names = [*(name for name in self.schema if name not in ours), *ours]
        return self if names == list(self.schema) else self.select(names)

    def with_frame(self, frame: pl.LazyFrame) -> Shaped:
        """Return other rows of the same columns."""
        return replace(self, frame=frame)


@dataclass(frozen=True)
class Slot:
    """One step between source and destination.

    Attributes:
        number: Its place in the order.
        name: As the run's record shows it.
        wanted: Whether a dataflow's metadata asks for it.
        apply: Does it; returning the same object means that nothing was to be done.
    """

    number: int
    name: str
    wanted: Callable[[Dataflow], bool]
    apply: Callable[[Shaped, Dataflow, TransformContext], Shaped]
