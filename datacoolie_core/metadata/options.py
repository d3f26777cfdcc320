"""Our own keys, under ``configure.datacoolie`` of a dataflow, source or destination."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from datacoolie_core.metadata.base import Model
from datacoolie_core.metadata.coercions import Anything, IsoText, Listed, Names, has_unit

OnCastError = Literal["fail", "null", "quarantine"]
UpstreamFailure = Literal["continue", "block"]
NullWatermark = Literal["first_load", "include", "exclude", "fail"]


class ReplayOptions(Model):
    """The range that can be replayed, and its chunks; Dagster shows them as partitions."""

    start: Annotated[str | int, IsoText]
    end: Annotated[str | int | None, IsoText] = None
    chunk_interval: Annotated[dict[str, int] | None, BeforeValidator(has_unit)] = None
    step: int | None = None
    timezone: str = "UTC"
    chunk_column: str | None = None
    respect_order: bool = False


class CronOptions(Model):
    """When a dataflow's schedule ticks."""

    cron: str
    timezone: str = "UTC"


class FreshnessOptions(Model):
    """How old a table may be: durations such as ``6h`` or ``1d``."""

    warn: str | None = None
    fail: str | None = None


class DataflowOptions(Model):
    """``configure.datacoolie`` of a dataflow."""

    depends_on: Names = ()
    replay: ReplayOptions | None = None
    on_upstream_failure: UpstreamFailure | None = None
    on_cast_error: OnCastError = "fail"
    owners: Names = ()
    tags: dict[str, str] = Field(default_factory=dict)
    cron: CronOptions | str | None = None
    automation: Literal["eager", "on_cron"] | None = None
    freshness: FreshnessOptions | None = None
    checks: Annotated[tuple[Anything, ...], Listed] = ()
    granularity: Literal["auto", "dataflow", "group"] = "auto"
    retry_count: int | None = Field(default=None, ge=0)
    retry_delay: float | None = Field(default=None, ge=0)


class SourceOptions(Model):
    """``configure.datacoolie`` of a source."""

    watermark_boundary: Literal["inclusive", "exclusive"] = "inclusive"
    null_watermark: NullWatermark = "first_load"
    max_watermark: Annotated[str | None, IsoText] = None
    file_registry: bool = False


class DestinationOptions(Model):
    """``configure.datacoolie`` of a destination."""

    delete_when: str | None = None
    empty_source: Literal["skip", "overwrite"] = "skip"
    scd2_close_missing: bool = False
    on_foreign_change: Literal["warn", "fail", "reload"] = "warn"
    replay_filter: str | None = None


OPTION_KEYS: dict[str, tuple[str, ...]] = {
    "configure.datacoolie": tuple(DataflowOptions.model_fields),
    "source.configure.datacoolie": tuple(SourceOptions.model_fields),
    "destination.configure.datacoolie": tuple(DestinationOptions.model_fields),
}
"""Where each of our keys belongs, for messages about one that is in the wrong place."""


def home_of(key: str) -> str | None:
    """Return the full path of one of our keys, or None if it is none of ours.

    >>> home_of("depends_on")
    'configure.datacoolie.depends_on'
    """
    for place, keys in OPTION_KEYS.items():
        if key in keys:
            return f"{place}.{key}"
    return None
