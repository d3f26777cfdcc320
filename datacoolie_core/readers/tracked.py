"""Files that a run leaves out as loaded: those of a registry, and those of the newest dated folder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING

from datacoolie_core.errors import WatermarkError
from datacoolie_core.plan.columns import DATE_FOLDER
from datacoolie_core.plan.tracking import dated, keeps_registry, tracks_files
from datacoolie_core.readers.date_folders import read_instant
from datacoolie_core.state.known_files import KnownFiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from datacoolie_core.readers.batch import ReadRequest
    from datacoolie_core.storage import FileInfo


_REPLACING = ("overwrite", "full_load")
"""Load types that need all files, or none."""


@dataclass(frozen=True)
class Tracked:
    """What a read of whole files leaves behind.

    Attributes:
        known: The files that are loaded once the batch is; None where rows alone tell.
        changed: Some files were loaded when they were others: their rows may be there.
        folder: The newest dated folder that was looked at; None without dated folders.
    """

    known: KnownFiles | None = None
    changed: bool = False
    folder: datetime | None = None


def folder_bound(request: ReadRequest) -> datetime | None:
    """Return the first dated folder that a read looks into; None for all.

    Raises:
        WatermarkError: The stored position is no date.
    """
    if request.window is not None or keeps_registry(request.dataflow):
        return None
    return _position(request.lower.get(DATE_FOLDER))


def track(
    files: Sequence[tuple[str, FileInfo]],
    placed: Mapping[str, datetime],
    request: ReadRequest,
) -> tuple[list[FileInfo], Tracked | None]:
    """Return which files are to be read, and what will be known of them.

    Args:
        files: Path relative to the source, and file; those of the format.
        placed: Path → date of its folder; empty without dated folders.
        request: Says what is known.
    """
    dataflow = request.dataflow
    every = [info for _, info in files]
    if request.window is not None or not (tracks_files(dataflow) or dated(dataflow)):
        return every, None
    limit = request.max_watermark
    dates = (one for one in placed.values() if limit is None or one <= _aware(limit))
    newest = max(dates, default=None)
    stored = _position(request.stored.get(DATE_FOLDER))
    folder = max((one for one in (newest, stored) if one is not None), default=None)
    if not tracks_files(dataflow):
        return every, Tracked(folder=folder)
    known = request.known_files or KnownFiles()
    kinds = {path: known.kind_of(path, info) for path, info in files}
    again = _looked_back_at(request) or (
        dataflow.destination.load_type in _REPLACING and any(k != "known" for k in kinds.values())
    )
    wanted = [(path, info) for path, info in files if again or kinds[path] != "known"]
    tracked = Tracked(
        known=_after(files, placed, request, known, folder),
        changed=any(kinds[path] == "changed" for path, _ in wanted),
        folder=folder,
    )
    return [info for _, info in wanted], tracked


def _after(
    files: Sequence[tuple[str, FileInfo]],
    placed: Mapping[str, datetime],
    request: ReadRequest,
    known: KnownFiles,
    folder: datetime | None,
) -> KnownFiles:
    if keeps_registry(request.dataflow):
        return known.with_files(files)
    # older folders are never looked into again, so that theirs need not be remembered
    late = (one for one in files if folder is None or placed.get(one[0], folder) >= folder)
    return KnownFiles().with_files(late)


def _looked_back_at(request: ReadRequest) -> bool:
    """Return whether the read goes back on purpose, to folders whose files are loaded."""
    if keeps_registry(request.dataflow):
        return False
    lower, stored = request.lower.get(DATE_FOLDER), request.stored.get(DATE_FOLDER)
    return lower is not None and _position(lower) != _position(stored)


def _aware(limit: datetime) -> datetime:
    return limit if limit.tzinfo else limit.replace(tzinfo=UTC)


def folder_position(value: object) -> str:
    """Return the date of a folder as a state holds it.

    Raises:
        WatermarkError: It is no date.
    """
    found = _position(value)
    if found is None:
        raise WatermarkError(
            f"{value!r} is no date of a folder",
            place=DATE_FOLDER,
            remedy="Write for example 2025-01-31.",
            code="bad_watermark",
        )
    return found.isoformat()


def _position(value: object) -> datetime | None:
    try:
        return read_instant(value)
    except ValueError as error:
        raise WatermarkError(
            f"the stored folder position {value!r} is no date",
            place=DATE_FOLDER,
            remedy="Set it anew (datacoolie watermark set), or load with --full-refresh.",
            code="bad_watermark",
        ) from error
