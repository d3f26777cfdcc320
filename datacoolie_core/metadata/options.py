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
    """The first bound, inclusive: a date, a timestamp or a number."""
    end: Annotated[str | int | None, IsoText] = None
    """The last bound, exclusive; up to now if not given."""
    chunk_interval: Annotated[dict[str, int] | None, BeforeValidator(has_unit)] = None
    """How long a chunk is: years, months, weeks, days, hours, minutes."""
    step: int | None = None
    """How long a chunk of numbers is."""
    timezone: str = "UTC"
    """The zone of the bounds."""
    chunk_column: str | None = None
    """The column that is cut; the first watermark column if not given."""
    respect_order: bool = False
    """Whether groups and orders count in a replay."""


class CronOptions(Model):
    """When a dataflow's schedule ticks."""

    cron: str
    """Five fields, such as 0 6 * * *."""
    timezone: str = "UTC"
    """The zone that it ticks in."""


class FreshnessOptions(Model):
    """How old a table may be: durations such as ``6h`` or ``1d``."""

    warn: str | None = None
    """Older than this is a warning."""
    fail: str | None = None
    """Older than this is a failure."""


class DataflowOptions(Model):
    """``configure.datacoolie`` of a dataflow."""

    depends_on: Names = ()
    """Dataflows to wait for: name, stage/name or id."""
    replay: ReplayOptions | None = None
    """The range that can be replayed."""
    on_upstream_failure: UpstreamFailure | None = None
    """Whether it still runs when one that it waits for failed."""
    on_cast_error: OnCastError = "fail"
    """What happens to values that do not fit a hint."""
    transforms: Names = ()
    """Plug-ins for the slots 40 to 50: package.module:NAME of a Slot."""
    owners: Names = ()
    """Who answers for it: e-mail addresses or team:name."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Labels."""
    cron: CronOptions | str | None = None
    """When it is due."""
    automation: Literal["eager", "on_cron"] | None = None
    """When Dagster loads it by itself."""
    freshness: FreshnessOptions | None = None
    """How old its table may be."""
    checks: Annotated[tuple[Anything, ...], Listed] = ()
    """Checks of its rows."""
    granularity: Literal["auto", "dataflow", "group"] = "auto"
    """A step in Dagster of its own, or one for its group."""
    retry_count: int | None = Field(default=None, ge=0)
    """Attempts after the first; else that of the run."""
    retry_delay: float | None = Field(default=None, ge=0)
    """Seconds before the second attempt; it doubles from there."""


class SourceOptions(Model):
    """``configure.datacoolie`` of a source."""

    watermark_boundary: Literal["inclusive", "exclusive"] = "inclusive"
    """Whether rows that tie with the watermark are read again, so that none is lost."""
    null_watermark: NullWatermark = "first_load"
    """What happens to rows without a watermark value."""
    max_watermark: Annotated[str | None, IsoText] = None
    """Rows above it do not move the watermark: now, now + 1d or a timestamp."""
    file_registry: bool = False
    """Whether each file is remembered, so that a late one is loaded too."""
    pool: str | None = None
    """The Dagster pool whose slots say how many read at once; for databases and APIs the connection's name."""


class DestinationOptions(Model):
    """``configure.datacoolie`` of a destination."""

    delete_when: str | None = None
    """SQL condition on the new row: matched rows are deleted (merge_upsert)."""
    empty_source: Literal["skip", "overwrite"] = "skip"
    """Whether an emptied source empties the table (overwrite)."""
    scd2_close_missing: bool = False
    """Whether keys that are no longer there are closed (scd2)."""
    on_foreign_change: Literal["warn", "fail", "reload"] = "warn"
    """What happens when others changed the table."""
    replay_filter: str | None = None
    """SQL condition that tells this dataflow's rows from those of others."""


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
