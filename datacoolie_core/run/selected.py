"""What one attempt read, as the logs tell it: bounds, operators, the watermark before and after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from datacoolie_core.state.values import encode_watermark

if TYPE_CHECKING:
    from datetime import datetime

    from datacoolie_core.plan.windows import Scalar, Watermark
    from datacoolie_core.run.bounds import Bounds
    from datacoolie_core.run.job import Job
    from datacoolie_core.state.reconcile import Baseline


@dataclass(frozen=True)
class Selected:
    """What one attempt read.

    Attributes:
        mode: Everything, what is above the watermark, or a window.
        lower: Column → lower bound.
        upper: Column → upper bound, exclusive.
        inclusive: Whether a row at a lower bound is read.
        reference_time: The instant that look-backs and limits count from.
        loaded_watermark: The watermark that the attempt started from.
        candidate: What the rows lead to.
        transforms: The slots that the rows passed.
    """

    mode: Literal["all", "watermark", "window"]
    reference_time: datetime
    lower: Watermark = field(default_factory=dict[str, "Scalar"])
    upper: Watermark = field(default_factory=dict[str, "Scalar"])
    inclusive: bool = True
    loaded_watermark: Watermark = field(default_factory=dict[str, "Scalar"])
    candidate: Watermark = field(default_factory=dict[str, "Scalar"])
    transforms: tuple[str, ...] = ()

    def read_request(self) -> dict[str, Any]:
        """Return the ``read_request`` object of the execution log."""
        return {
            "watermark_start": _encoded(self.lower),
            "watermark_end": _encoded(self.upper),
            "watermark_start_operator": self.lower_operator,
            "watermark_end_operator": "<" if self.upper else None,
            "read_range": self.mode,
            "reference_time": self.reference_time.isoformat(),
        }

    @property
    def lower_operator(self) -> str | None:
        """How the lower bound is compared, None without one."""
        if not self.lower:
            return None
        return ">=" if self.inclusive else ">"

    def to_json(self) -> dict[str, Any]:
        """Return the ``selection`` object of an attempt in the execution log."""
        operators = {"lower": self.lower_operator, "upper": "<" if self.upper else None}
        return {
            "mode": self.mode,
            "lower": _encoded(self.lower),
            "upper": _encoded(self.upper),
            "operators": operators,
            "upper_origin": "replay" if self.upper else None,
        }


def _encoded(values: Watermark) -> Any:
    return encode_watermark(values) if values else None


def selected(
    job: Job, bounds: Bounds, baseline: Baseline, *, candidate: Watermark, now: datetime
) -> Selected:
    """Return what an attempt read, once its batch has been consumed."""
    window, request = job.window, bounds.request
    before = baseline.state.watermark
    if window is not None:
        return Selected(
            "window",
            now,
            lower={} if window.lower is None else {window.column: window.lower},
            upper={} if window.upper is None else {window.column: window.upper},
            loaded_watermark=before,
            candidate=candidate,
        )
    return Selected(
        "watermark" if request.lower else "all",
        now,
        lower=request.lower,
        inclusive=request.inclusive,
        loaded_watermark=before,
        candidate=candidate,
    )
