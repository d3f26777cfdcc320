"""``compact_options`` and ``cleanup_options`` of a destination, as maintenance takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from datacoolie_core.errors import PreparationError, nearest
from datacoolie_core.run.config import DEFAULT_RETENTION_HOURS
from datacoolie_core.run.results import Notice
from datacoolie_core.writers.maintain_properties import size_of
from datacoolie_core.writers.maintain_request import MaintainOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from datacoolie_core.metadata.models import Destination
    from datacoolie_core.run.config import DataCoolieRunConfig

_COMPACT = ("target_size", "zorder_columns")
_CLEANUP = (
    "retention_hours",
    "allow_short_retention",
    "remove_orphan_files",
    "checkpoint",
    "log_cleanup",
)
_ICEBERG = {
    "compact_options": (
        "rewrite_data_files",
        "rewrite_position_delete_files",
        "rewrite_manifests",
    ),
    "cleanup_options": ("expire_snapshots", "remove_orphan_files"),
}
"""What other formats know: taken without a word of error, so that metadata can be shared."""


def options_of(
    destination: Destination,
    config: DataCoolieRunConfig,
    *,
    allow_short_retention: bool,
    dry_run: bool,
) -> tuple[MaintainOptions, tuple[Notice, ...]]:
    """Return the options of a destination's maintenance, and what is odd about them.

    Args:
        destination: Its own options win over those of the run.
        config: The run's.
        allow_short_retention: The run's.
        dry_run: The run's.

    Raises:
        PreparationError: A value that makes no sense.
    """
    compact = destination.configure.compact_options
    cleanup = destination.configure.cleanup_options
    asked: float | None = config.retention_hours
    if asked == DEFAULT_RETENTION_HOURS:
        asked = None  # nothing in particular was asked for: the table's own may be longer
    options = MaintainOptions(
        target_size=_size(compact),
        zorder_columns=_names(compact),
        retention_hours=_hours(cleanup, asked),
        allow_short_retention=_flag(
            cleanup, "allow_short_retention", default=allow_short_retention
        ),
        unreferenced=_flag(cleanup, "remove_orphan_files", default=True),
        checkpoint=_flag(cleanup, "checkpoint", default=True),
        log_cleanup=_flag(cleanup, "log_cleanup", default=True),
        dry_run=dry_run,
    )
    told = (
        *_unknown("compact_options", compact, _COMPACT),
        *_unknown("cleanup_options", cleanup, _CLEANUP),
    )
    return options, told


def _unknown(where: str, given: Mapping[str, Any], known: Sequence[str]) -> Iterator[Notice]:
    for key in given:
        if key in known:
            continue
        if key in _ICEBERG[where]:
            yield Notice("option_without_effect", f"{where}.{key} has no effect on a Delta table")
            continue
        near = nearest(key, known)
        hint = f" Did you mean '{near}'?" if near else f" There are {', '.join(known)}."
        yield Notice("unknown_option", f"{where}.{key} is unknown and has no effect.{hint}")


def _size(given: Mapping[str, Any]) -> int | None:
    value = given.get("target_size")
    if value is None:
        return None
    size = None if isinstance(value, bool) else size_of(str(value))
    if not size:
        raise _wrong("compact_options.target_size", value, "a size in bytes, or such as 128 MB")
    return size


def _names(given: Mapping[str, Any]) -> tuple[str, ...]:
    value = given.get("zorder_columns") or ()
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple):
        raise _wrong("compact_options.zorder_columns", value, "a list of columns")
    names = cast("Sequence[Any]", value)
    return tuple(str(name).strip() for name in names if str(name).strip())


def _hours(given: Mapping[str, Any], default: float | None) -> float | None:
    value = given.get("retention_hours", default)
    if value is None:
        return None
    try:
        hours = float(value)
    except (TypeError, ValueError):
        hours = -1.0
    if isinstance(value, bool) or not 0 <= hours < float("inf"):
        raise _wrong("cleanup_options.retention_hours", value, "a number of hours, 0 or more")
    return hours


def _flag(given: Mapping[str, Any], key: str, *, default: bool) -> bool:
    value = given.get(key, default)
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise _wrong(f"cleanup_options.{key}", value, "true or false")
    return value


def _wrong(key: str, value: object, wanted: str) -> PreparationError:
    return PreparationError(
        f"{value!r} is not {wanted}",
        place=f"destination.configure.{key}",
        remedy=f"Write {wanted}.",
        code="bad_option",
    )
