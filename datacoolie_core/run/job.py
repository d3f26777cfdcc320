"""One load as a run sees it: what it has to do, and what it did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacoolie_core.run.bounds import Bounds, bound_chunk, bound_load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.plan.windows import Window
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.run.prepare import Prepared
    from datacoolie_core.run.results import Notice, RunKind
    from datacoolie_core.run.selected import Selected
    from datacoolie_core.state.reconcile import Baseline
    from datacoolie_core.state.record import StateRecord
    from datacoolie_core.writers.request import WriteResult


@dataclass(frozen=True)
class Loaded:
    """What one attempt did.

    Attributes:
        skipped: Why there was nothing to do; None when something was committed.
        state: The state now.
        run_kind: What bounded the read.
        rows: Row counts by name.
        write: What the writer did; None when the load was found done already.
        source_action: What was read.
        selected: What bounded it; None when the load was found done already.
        warnings: For the user.
        bad_values: Column → reason → values that did not fit their type.
        bad_sample: Some of the rows that went to quarantine.
    """

    skipped: str | None
    state: StateRecord
    run_kind: RunKind
    rows: Mapping[str, int | None]
    write: WriteResult | None = None
    source_action: Mapping[str, Any] | None = None
    selected: Selected | None = None
    warnings: tuple[Notice, ...] = ()
    bad_values: Mapping[str, Mapping[str, int]] = field(
        default_factory=dict[str, "Mapping[str, int]"]
    )
    bad_sample: tuple[Mapping[str, str | None], ...] = ()


@dataclass(frozen=True)
class Job:
    """What one attempt has to do: a normal load, or one chunk of a replay.

    Attributes:
        prepared: The dataflow.
        window: The chunk, None for a normal load.
        save_watermark: A replay's chunk moves the watermark too.
    """

    prepared: Prepared
    window: Window | None = None
    save_watermark: bool = False

    def bounds(self, baseline: Baseline, context: RunContext) -> Bounds:
        """Return what to read from this baseline."""
        if self.window is not None:
            return bound_chunk(self.prepared, self.window, context)
        return bound_load(self.prepared, baseline, context)
