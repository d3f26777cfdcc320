"""How a run goes: counts, limits and policies; never what to run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datacoolie_core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.metadata.options import UpstreamFailure


DEFAULT_RETENTION_HOURS = 168.0
"""A week; who asks for it asks for nothing in particular, and gets a table's own if longer."""


@dataclass(frozen=True)
class DataCoolieRunConfig:
    """How a run goes.

    Args:
        job_id: The caller's own id of the job, for the logs; None gives one of ours.
        job_num: How many jobs share the metadata.
        job_index: Which of them this is, 0 to ``job_num - 1``.
        max_workers: Dataflows that run at once, over everything.
        stop_on_error: After the first failure, start nothing new.
        retry_count: Attempts after the first, unless the dataflow says otherwise.
        retry_delay: Seconds before the second attempt; doubles, capped at 60.
        on_upstream_failure: ``continue`` runs what comes later against the last good version,
            ``block`` skips it; a dataflow's own setting wins.
        run_attributes: Free JSON that is written to the run's records.
        retries: False when whoever called us retries: then nothing is tried twice here, so
            that the two never multiply.
        dry_run: Check preparation alone: every target is skipped, or failed.
        allowed_function_prefixes: Dotted prefixes of functions that a source may name; empty
            allows every importable one.
        retention_hours: For how long maintenance keeps files that a table no longer names.

    Raises:
        SettingsError: For a value out of range.
    """

    job_id: str | None = None
    job_num: int = 1
    job_index: int = 0
    max_workers: int = 8
    stop_on_error: bool = False
    retry_count: int = 0
    retry_delay: float = 5.0
    on_upstream_failure: UpstreamFailure = "continue"
    run_attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    retries: bool = True
    retention_hours: float = DEFAULT_RETENTION_HOURS
    dry_run: bool = False
    allowed_function_prefixes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rules = (
            (self.job_id is None or self.job_id.strip(), "job_id is blank", "Name the job."),
            (
                _is_json(self.run_attributes),
                "run_attributes is no JSON object",
                "Give JSON values.",
            ),
            (self.job_num >= 1, f"job_num is {self.job_num}", "Give 1 or more."),
            (
                0 <= self.job_index < self.job_num,
                f"job_index is {self.job_index} of {self.job_num} jobs",
                "Give 0 to job_num - 1.",
            ),
            (self.max_workers >= 1, f"max_workers is {self.max_workers}", "Give 1 or more."),
            (self.retry_count >= 0, f"retry_count is {self.retry_count}", "Give 0 or more."),
            (self.retry_delay >= 0, f"retry_delay is {self.retry_delay}", "Give 0 or more."),
            (
                self.retention_hours >= 0,
                f"retention_hours is {self.retention_hours}",
                "Give 0 or more.",
            ),
        )
        for holds, problem, remedy in rules:
            if not holds:
                raise SettingsError(problem, remedy=remedy)


def _is_json(value: object) -> bool:
    try:
        return json.dumps(value).startswith("{")
    except (TypeError, ValueError):
        return False
