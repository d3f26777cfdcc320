"""Rules of our own keys, those under ``configure.datacoolie``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.metadata.options import CronOptions
from datacoolie_core.metadata.problems import Finding
from datacoolie_core.metadata.replay_checks import check_replay
from datacoolie_core.metadata.times import is_cron, is_limit, is_timezone, parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacoolie_core.metadata.models import Dataflow

_FIELD = "configure.datacoolie"


def check_options(flow: Dataflow) -> Iterator[Finding]:
    """Yield what is wrong with the keys of ours of one dataflow."""
    options = flow.options
    if options.model_fields_set:
        if options.replay is not None:
            yield from check_replay(options.replay, flow.source.watermark_columns)
        yield from _cron(flow)
        yield from _freshness(flow)
    yield from _source(flow)


def _cron(flow: Dataflow) -> Iterator[Finding]:
    cron = flow.options.cron
    if flow.options.automation == "on_cron" and cron is None:
        yield Finding(f"{_FIELD}.automation", "on_cron needs cron beside it")
    if cron is None:
        return
    line, zone = (cron.cron, cron.timezone) if isinstance(cron, CronOptions) else (cron, "UTC")
    if not is_cron(line):
        message = f"'{line}' is no cron line; write five fields such as 0 6 * * *"
        yield Finding(f"{_FIELD}.cron", message)
    if not is_timezone(zone):
        message = f"unknown timezone '{zone}'; write one such as Europe/Berlin"
        yield Finding(f"{_FIELD}.cron.timezone", message)


def _freshness(flow: Dataflow) -> Iterator[Finding]:
    freshness = flow.options.freshness
    if freshness is None:
        return
    for name, text in (("warn", freshness.warn), ("fail", freshness.fail)):
        if text is not None and parse_duration(text) is None:
            message = f"'{text}' is no duration; write a number and s, min, h, d or w, such as 6h"
            yield Finding(f"{_FIELD}.freshness.{name}", message)


def _source(flow: Dataflow) -> Iterator[Finding]:
    limit = flow.source.configure.datacoolie.max_watermark
    if limit is not None and not is_limit(limit):
        message = f"'{limit}' is no limit; write now, now + 1d or a timestamp"
        yield Finding("source.configure.datacoolie.max_watermark", message)
