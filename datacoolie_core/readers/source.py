"""What one format's reader gives: the rows as they are, before any watermark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from datacoolie_core.errors import ReadError
    from datacoolie_core.readers.tracked import Tracked


def _nothing() -> None:
    """Do nothing."""


def _no_diagnosis(_error: Exception) -> None:
    """Know nothing about an error."""


@dataclass(frozen=True)
class Source:
    """A source that was found, and how to scan it.

    Attributes:
        frame: All its rows, lazy.
        action: What is read, for the run's record: ``path``, ``files``, ``version``, ``query``.
        warnings: Code and message.
        tracked: What is known of whole files once they are loaded.
        empty: There is nothing to read (no file); ``frame`` may have no columns then.
        filtered: The source's ``filter_expression`` is applied already.
        diagnose: Says which file and line an error of the engine comes from, None if unknown.
        close: Removes temporary files.
    """

    frame: pl.LazyFrame
    action: Mapping[str, Any] = field(default_factory=dict[str, Any])
    warnings: tuple[tuple[str, str], ...] = ()
    tracked: Tracked | None = None
    empty: bool = False
    filtered: bool = False
    diagnose: Callable[[Exception], ReadError | None] = _no_diagnosis
    close: Callable[[], None] = _nothing
