"""Dated folders of a source: which files lie in one, and which folders a bounded read looks into."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from datacoolie_core import storage
from datacoolie_core.errors import MissingPathError
from datacoolie_core.metadata.date_folders import DatePattern as _Pattern, date_pattern as _parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True)
class DatePattern:
    """A pattern of dated folders.

    Attributes:
        folders: The pattern, level by level.
    """

    folders: _Pattern

    @property
    def text(self) -> str:
        """The pattern as written."""
        return self.folders.text

    @property
    def levels(self) -> tuple[object, ...]:
        """One entry for each level of folders."""
        return self.folders.levels

    def instant_of(self, relative: str) -> datetime | None:
        """Return the date of the folder that a file lies in, in UTC; None if it lies in none.

        Args:
            relative: The file's path below the source's folder.
        """
        return self.folders.start(relative.split("/")[:-1])


def date_pattern(text: str) -> DatePattern:
    """Return a pattern of dated folders.

    Raises:
        DatePatternError: It names no dates.
    """
    return DatePattern(_parsed(text))


def read_instant(value: object) -> datetime | None:
    """Return a stored date of a folder as an instant in UTC; None without one.

    Raises:
        ValueError: It is no date.
    """
    if value is None:
        return None
    text = value.isoformat() if isinstance(value, date) else value
    if not isinstance(text, str):
        raise ValueError(f"{value!r} is no date")  # noqa: TRY004 - a broken state, not a wrong call
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def folders_from(
    uri: str,
    pattern: DatePattern,
    lower: datetime,
    storage_options: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the dated folders whose time is not all before a bound; others are not listed.

    Args:
        uri: The source's folder.
        pattern: Of the folders inside.
        lower: The bound, aware.
        storage_options: For the object store.

    Raises:
        MissingPathError: There is no such folder.
        StorageError: It can't be listed.
    """
    names = storage.list_folders(uri, storage_options=storage_options)
    return list(_below(uri, pattern.folders, lower, storage_options, (), names))


def _below(
    uri: str,
    pattern: _Pattern,
    lower: datetime,
    options: Mapping[str, str] | None,
    above: tuple[str, ...],
    names: list[str],
) -> Iterator[str]:
    for name in names:
        folders = (*above, name)
        hidden = name.startswith(("_", "."))
        if hidden or pattern.parts(folders) is None:
            continue
        period = pattern.period(folders)
        if period is not None and period.end <= lower:
            continue
        here = storage.join(uri, *folders)
        if len(folders) == len(pattern.levels):
            yield here
            continue
        try:
            inside = storage.list_folders(here, storage_options=options)
        except MissingPathError:  # deleted since the folder above was listed
            continue
        yield from _below(uri, pattern, lower, options, folders, inside)
