"""Where each part of a document was written, for messages."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.errors import Problem
    from datacoolie_core.metadata.problems import Finding

Path = tuple[str | int, ...]
"""Keys and indices, from the top of a document or of an entry inwards."""

_STEP = re.compile(r"\[(\d+)\]|[^.\[\]]+")


@dataclass(frozen=True)
class Place:
    """Where something was written.

    Attributes:
        source: The name of the file.
        line: The line of the file, or the row of the sheet, from 1 on.
        sheet: The sheet of a workbook.
        column: The name of the sheet's column.
    """

    source: str
    line: int | None = None
    sheet: str | None = None
    column: str | None = None


class Origin(Protocol):
    """Tells where the parts of a document are."""

    @property
    def ready(self) -> bool:
        """Whether telling a place costs nothing: then warnings get theirs too."""
        ...

    def place(self, path: Path) -> Place:
        """Return the place of the innermost part that exists on a path."""
        ...


@dataclass(frozen=True)
class Unplaced:
    """The origin of what was never in a file."""

    source: str
    ready: bool = True

    def place(self, path: Path) -> Place:
        """Return the source alone."""
        del path
        return Place(self.source)


@dataclass(frozen=True)
class Document:
    """What one source holds.

    Attributes:
        source: Its name, for messages.
        content: A mapping with sections, if it is right.
        origin: Tells where its parts are.
        problems: What was found while it was read.
        found: Section and index → what was found in that entry.
    """

    source: str
    content: Any
    origin: Origin
    problems: Sequence[Problem] = ()
    found: Mapping[tuple[str, int], Sequence[Finding]] = field(
        default_factory=dict[tuple[str, int], "Sequence[Finding]"]
    )


def steps_of(field_path: str) -> Path:
    """Return the steps of a field's path.

    >>> steps_of("transform.value_rules[1].columns")
    ('transform', 'value_rules', 1, 'columns')
    """
    return tuple(
        int(match[1]) if match[1] is not None else match[0] for match in _STEP.finditer(field_path)
    )
