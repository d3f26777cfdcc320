"""What every record of every log says, and how large it may be."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from datacoolie_core.run.logs.config import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from datacoolie_core.run.logs.config import LogConfig

_DETAILS = ("attempts", "source_action", "configure", "exc_info")
"""What a record that is too large gives up, in this order."""


@cache
def product_version() -> str:
    """Return the version of this product, ``0`` when it is not installed."""
    try:
        return version("datacoolie-dagster")
    except PackageNotFoundError:
        return "0"


@dataclass(frozen=True)
class Job:
    """Which job a record belongs to.

    Attributes:
        session_id: One for each driver.
        job_id: The caller's own id of the job, or one of ours.
        job_num: How many jobs share the metadata.
        job_index: Which of them this is.
        started_at: Names the files.
    """

    session_id: str
    job_id: str
    job_num: int
    job_index: int
    started_at: datetime

    def columns(self, kind: str) -> dict[str, Any]:
        """Return the first columns of every record of a kind."""
        return {
            "log_schema_version": SCHEMA_VERSION,
            "_type": kind,
            "datacoolie_version": product_version(),
            "log_session_id": self.session_id,
            "job_id": self.job_id,
            "job_num": self.job_num,
            "job_index": self.job_index,
        }

    def file(self, kind: str) -> str:
        """Return a log's file, relative to its folder: ``__run_date=…/kind_….json``."""
        day = f"__run_date={self.started_at:%Y-%m-%d}"
        stamp = f"{self.started_at:%Y%m%d_%H%M%S_%f}"
        safe = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.job_id)
        return f"{day}/{kind}_{stamp}_{self.job_num}_{self.job_index}_{safe}.json"


def line(record: Mapping[str, Any], config: LogConfig) -> str:
    """Return a record as one line of JSON, cut to the size that a line may have.

    A record that had to be cut says so in ``diagnostic_issues``.
    """
    issues: list[str] = []
    kept = {
        key: _short(value, config.diagnostic_bytes, key, issues) for key, value in record.items()
    }
    text = _dumps(kept, issues)
    for detail in _DETAILS:
        if len(text.encode()) <= config.record_bytes:
            return text
        if kept.get(detail):
            kept[detail] = None
            issues.append(f"{detail} left out: the record was too large")
            text = _dumps(kept, issues)
    if len(text.encode()) > config.record_bytes:
        first = {key: kept[key] for key in list(kept)[:17]}
        issues.append("all but the first columns left out: the record was too large")
        text = _dumps(first, issues)
    return text


def _short(value: Any, most: int, key: str, issues: list[str]) -> Any:
    if isinstance(value, str) and len(value.encode()) > most:
        issues.append(f"{key} cut: it was longer than {most} bytes")
        return value.encode()[:most].decode(errors="ignore")
    return value


def _dumps(record: Mapping[str, Any], issues: list[str]) -> str:
    told = {**record, "diagnostic_issues": issues} if issues else record
    return json.dumps(told, ensure_ascii=False, default=str)
