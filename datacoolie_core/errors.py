"""Every deliberate error of the product.

The tree::

    DataCoolieError
    ├── MetadataError        metadata is wrong; carries every problem found
    ├── SettingsError        a setting, an environment variable or a path of the run is wrong
    ├── StorageError         a file or folder could not be read, written or listed
    │   └── MissingPathError it is not there
    ├── SelectionError       a stage, a name or a selection that matches nothing
    ├── PreparationError     a dataflow can't start: its SQL file, its secrets
    ├── LoadError            a dataflow failed while it ran
    │   ├── ReadError
    │   ├── TransformError
    │   ├── WriteError
    │   └── WatermarkError   reading, comparing or saving state
    ├── BusyError            the same dataflow is running elsewhere
    └── LifecycleError       a driver used when it may not be

A message reads *where: what is wrong. What to do.*
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Phase = Literal["metadata", "prepare", "read", "transform", "write", "state"]


def nearest(name: str, known: Iterable[str], *, cutoff: float = 70) -> str | None:
    """Return the known name that a misspelt one probably means, or None.

    >>> nearest("custmers", ["customers", "orders"])
    'customers'

    Args:
        name: What was written.
        known: What could have been meant.
        cutoff: How alike they must be, 0 to 100.
    """
    from rapidfuzz import fuzz, process, utils

    choices = list(known)
    # WRatio also finds parts of a name: "upsert" in "merge_upsert"
    scorers = [(fuzz.ratio, cutoff), *([(fuzz.WRatio, 85)] if cutoff <= 85 else [])]
    for scorer, least in scorers:
        found = process.extractOne(
            name, choices, scorer=scorer, processor=utils.default_process, score_cutoff=least
        )
        if found is not None:
            return found[0]
    return None


class DataCoolieError(Exception):
    """Base of all errors that the product raises on purpose.

    Args:
        message: What is wrong, as a sentence without its full stop.
        place: Where it is: a file and field, a dataflow and phase.
        remedy: What the reader should do, as a sentence.
        code: A short stable name for scripts, such as ``missing_column``.
    """

    code: str = "error"

    def __init__(
        self,
        message: str,
        *,
        place: str | None = None,
        remedy: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message.rstrip(".")
        self.place = place
        self.remedy = remedy
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        what = self.message if self.message.endswith(("?", "!")) else f"{self.message}."
        return f"{where}{what}{f' {self.remedy}' if self.remedy else ''}"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in the metadata.

    Attributes:
        message: What was found and what was expected.
        source: The file (or ``<memory>``) that holds it.
        dataflow: The name of the dataflow or connection concerned, if it has one.
        field: The path of the field, such as ``destination.load_type``.
        suggestion: The name probably meant, for a near miss.
        severity: A warning does not stop a run.
        kind: Which section of the metadata ``dataflow`` names an entry of.
        line: The line in the file, where it is known; in a workbook, the row of the sheet.
        sheet: The sheet, in a workbook.
        column: The name of the sheet's column.
    """

    message: str
    source: str = "<memory>"
    dataflow: str | None = None
    field: str | None = None
    suggestion: str | None = None
    severity: Literal["error", "warning"] = "error"
    kind: Literal["dataflow", "connection", "schema_hints"] = "dataflow"
    line: int | None = None
    sheet: str | None = None
    column: str | None = None

    def __str__(self) -> str:
        entry = f"{self.kind} '{self.dataflow}'" if self.dataflow else None
        inside = ", ".join(part for part in (entry, self.field) if part)
        hint = f" Did you mean '{self.suggestion}'?" if self.suggestion else ""
        what = f"{self.message.rstrip('.')}.{hint}"
        return f"{self._place()}: {f'{inside}: ' if inside else ''}{what}"

    def _place(self) -> str:
        if self.sheet is None:
            return f"{self.source}:{self.line}" if self.line else self.source
        cell = [f"row {self.line}"] if self.line else []
        cell += [f"column {self.column}"] if self.column else []
        return ", ".join([self.source, f"sheet {self.sheet}", *cell])


class MetadataError(DataCoolieError):
    """The metadata is wrong; every problem found is in ``problems``."""

    code = "invalid_metadata"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = f"{count} problem{'s' if count != 1 else ''} in the metadata"
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems)]))

    def __str__(self) -> str:
        return self.message


class SettingsError(DataCoolieError):
    """A setting, an environment variable or a path of the run is wrong."""

    code = "invalid_settings"


class StorageError(DataCoolieError):
    """A file or folder could not be read, written or listed.

    Args:
        message: What is wrong.
        place: The path or URI.
        remedy: What to do.
        code: A short stable name.
        retryable: Whether the same call can succeed later without a change.
    """

    code = "storage_failed"

    def __init__(
        self,
        message: str,
        *,
        place: str | None = None,
        remedy: str | None = None,
        code: str | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message, place=place, remedy=remedy, code=code)
        self.retryable = retryable


class MissingPathError(StorageError):
    """A file or folder is not there."""

    code = "missing_path"


class SelectionError(DataCoolieError):
    """A stage, a name or a selection that matches nothing."""

    code = "unknown_selection"


class LifecycleError(DataCoolieError):
    """A driver was used while it was busy, or after it was closed."""

    code = "lifecycle"


class _DataflowError(DataCoolieError):
    phase: Phase = "prepare"

    def __init__(
        self,
        message: str,
        *,
        dataflow: str | None = None,
        place: str | None = None,
        remedy: str | None = None,
        code: str | None = None,
    ) -> None:
        self.dataflow = dataflow
        super().__init__(message, place=place, remedy=remedy, code=code)

    def __str__(self) -> str:
        where = f"dataflow '{self.dataflow}', {self.phase}" if self.dataflow else self.phase
        inner = f", {self.place}" if self.place else ""
        what = self.message if self.message.endswith(("?", "!")) else f"{self.message}."
        return f"{where}{inner}: {what}{f' {self.remedy}' if self.remedy else ''}"


class PreparationError(_DataflowError):
    """A dataflow can't start: its SQL file or its secrets. Never retried."""

    code = "preparation_failed"


class BusyError(_DataflowError):
    """The same dataflow is running in another process or thread."""

    code = "already_running"


class LoadError(_DataflowError):
    """A dataflow failed while it ran.

    Args:
        message: What is wrong.
        dataflow: Its id; the pipeline fills it in when the raiser does not know.
        place: Column, file or table.
        remedy: What to do.
        code: A short stable name.
        retryable: Whether the same load can succeed later without a change.
    """

    code = "load_failed"
    phase: Phase = "read"

    def __init__(
        self,
        message: str,
        *,
        dataflow: str | None = None,
        place: str | None = None,
        remedy: str | None = None,
        code: str | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message, dataflow=dataflow, place=place, remedy=remedy, code=code)
        self.retryable = retryable


class ReadError(LoadError):
    """The source could not be read."""

    code = "read_failed"
    phase = "read"


class TransformError(LoadError):
    """A transform could not be built or applied."""

    code = "transform_failed"
    phase = "transform"


class WriteError(LoadError):
    """The destination could not be written."""

    code = "write_failed"
    phase = "write"


class WatermarkError(LoadError):
    """State could not be read, compared or saved."""

    code = "state_failed"
    phase = "state"
