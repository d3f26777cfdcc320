"""What a table says of its own maintenance: retentions, sizes, and features that forbid it.

delta-rs takes every interval that it can't read for the default, a longer one too, and then
removes what the table wants to keep. So these are read here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from datacoolie_core.errors import WriteError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalake import DeltaTable

WEEK = 168.0
_MONTH = 30 * 24.0
_HOURS = {
    "nanosecond": 1 / 3.6e12,
    "microsecond": 1 / 3.6e9,
    "millisecond": 1 / 3.6e6,
    "second": 1 / 3600,
    "minute": 1 / 60,
    "hour": 1.0,
    "day": 24.0,
    "week": WEEK,
    # the longest ones: too long keeps too much, too short loses what was promised
    "month": 31 * 24.0,
    "year": 366 * 24.0,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?\b")
_AS_DELTA_RS = re.compile(r"^interval \d+ (?:(?:nano|micro|milli)?second|minute|hour|day|week)s?$")
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*$", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}

_HARMLESS = {
    *("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
    *("identityColumns", "timestampNtz", "v2Checkpoint", "variantType", "allowColumnDefaults"),
    *("vacuumProtocolCheck", "domainMetadata", "deletionVectors"),
}
_PATHS_UNCHANGED = _HARMLESS | {
    *("columnMapping", "rowTracking", "typeWidening", "clustering", "inCommitTimestamp"),
    *("variantShredding", "collations", "checkpointProtection"),
}


def hours_of(text: str) -> float | None:
    """Return an interval in hours, None if it can't be read.

    >>> hours_of("interval 2 weeks"), hours_of("INTERVAL 1 day 12 hours"), hours_of("soon")
    (336.0, 36.0, None)
    """
    core = re.sub(r"^(calendar)?\s*interval\s+", "", text.strip().lower())
    parts = _PART.findall(core)
    if not parts or _PART.sub("", core).strip(" ,"):
        return None
    units = [_HOURS.get(unit) for _, unit in parts]
    if None in units:
        return None
    return sum(float(n) * (hours or 0) for (n, _), hours in zip(parts, units, strict=True))


def deleted_file_hours(configuration: Mapping[str, str]) -> float | None:
    """Return how long the table keeps removed files, None if it says so in unknown words."""
    text = configuration.get("delta.deletedFileRetentionDuration")
    return WEEK if text is None else hours_of(text)


def why_log_is_kept(configuration: Mapping[str, str]) -> str | None:
    """Return why expired commits are not removed from the log, None if they may be."""
    if configuration.get("delta.enableExpiredLogCleanup") == "false":
        return "switched off by the table (delta.enableExpiredLogCleanup)"
    text = configuration.get("delta.logRetentionDuration")
    if text is None or _AS_DELTA_RS.match(text):
        return None
    hours = hours_of(text)
    if hours is not None and hours <= _MONTH:
        return None  # delta-rs takes it for a month, which is long enough
    return f"the library can't read the table's retention '{text}' (delta.logRetentionDuration)"


def size_of(text: str) -> int | None:
    """Return a size in bytes, None if it can't be read.

    >>> size_of("104857600"), size_of("128 MB"), size_of("big")
    (104857600, 134217728, None)
    """
    match = _SIZE.match(text)
    if match is None:
        return None
    return int(float(match.group(1)) * 1024 ** _POWERS[match.group(2).lower()])


def why_not_rewritten(table: DeltaTable) -> str | None:
    """Return what forbids writing files of this table anew, None if nothing does."""
    configuration = table.metadata().configuration
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        return _by_its_engine("column mapping")
    if configuration.get("delta.enableRowTracking") == "true":
        return _by_its_engine("row tracking")
    unknown = sorted(_features(table) - _HARMLESS)
    if unknown:
        return _by_its_engine(f"the feature {unknown[0]}")
    if "deletionVectors" in _features(table) and _has_deletion_vectors(table):
        return _by_its_engine("deletion vectors")
    return None


def why_no_files_removed(table: DeltaTable) -> str | None:
    """Return what forbids deleting files that the table does not name, None if nothing does.

    A feature that nobody here knows may name files in a place where nobody here looks.
    """
    unknown = sorted(_features(table) - _PATHS_UNCHANGED)
    return _by_its_engine(f"the feature {unknown[0]}") if unknown else None


def _features(table: DeltaTable) -> set[str]:
    protocol = table.protocol()
    return {*(protocol.writer_features or []), *(protocol.reader_features or [])}


def _has_deletion_vectors(table: DeltaTable) -> bool:
    from deltalake.exceptions import DeltaError

    try:
        return any(batch.num_rows for batch in table.deletion_vectors())
    except (OSError, DeltaError) as error:
        raise WriteError(
            f"the deletion vectors can't be read: {error}", code="table_broken"
        ) from error


def _by_its_engine(what: str) -> str:
    return f"the table uses {what}: leave it to the engine that wrote it"
