"""What a reader is asked for, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from datacoolie_core.state.record import Boundary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    import polars as pl

    from datacoolie_core.errors import ReadError
    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.plan.windows import Scalar, Watermark, Window
    from datacoolie_core.readers.tracked import Tracked
    from datacoolie_core.state.known_files import KnownFiles


@dataclass(frozen=True)
class ReadRequest:
    """One bounded read of one dataflow's source.

    Attributes:
        dataflow: Prepared: secrets and SQL are in place.
        project_dir: Root of relative paths.
        query: The SQL to run, as prepared; None reads the table or files.
        lower: Per watermark column, the effective lower bound (after look-back). A row is read
            if any column is above its bound, or at it when ``inclusive``. Empty: everything.
        inclusive: Rows that tie with the bound are read again (and known ones left out).
        stored: The watermark before look-back; the candidate never falls below it.
        boundary: The rows at the stored watermark that are loaded already.
        track_boundary: Remember the rows at the new watermark (append and overwrite only).
        window: Replay: only rows of this window, whatever the watermark says.
        null_watermark: What to do with rows whose watermark is null or NaN in *this* read.
        max_watermark: Values above do not move the watermark.
        known_files: The files that are loaded already; None if none is remembered.
        now: The instant of the load, for SQL.
        allowed_functions: Packages, modules and functions that a source may call; empty allows all.
        peek: Only columns and types are wanted: nothing is run or copied for rows.
    """

    dataflow: Dataflow
    project_dir: str
    query: str | None = None
    lower: Watermark = field(default_factory=dict[str, "Scalar"])
    inclusive: bool = True
    stored: Watermark = field(default_factory=dict[str, "Scalar"])
    boundary: Boundary = field(default_factory=Boundary)
    track_boundary: bool = False
    window: Window | None = None
    null_watermark: Literal["include", "exclude", "fail"] = "include"
    max_watermark: datetime | None = None
    known_files: KnownFiles | None = None
    now: datetime | None = None
    allowed_functions: tuple[str, ...] = ()
    peek: bool = False


def _nothing() -> None:
    """Do nothing."""


def _no_diagnosis(_error: Exception) -> None:
    """Know nothing about an error."""


@dataclass
class Observation:
    """What passed through the frame; complete once the frame has been consumed.

    Attributes:
        rows_read: Rows handed on to the transforms.
        rows_known: Rows at the watermark that were read again and left out as loaded before.
        rows_null_watermark: Rows whose watermark is null or NaN (left out or not).
        rows_beyond_max: Rows above ``max_watermark``: loaded, but they move nothing.
        candidate: Column → the watermark that the rows lead to: the greatest of the stored value and
            of the rows that may move it; columns without any value are absent.
        lowest: Column → minimum over the same rows.
        columns: Name → type of the source columns, as read.
        boundary_usable: The hashes of the request's boundary were made from the same columns and
            types, so known rows were left out; False: compare with the destination instead.
        tracked: What is known of whole files once they are loaded; None where rows alone tell.
        settle: Makes the boundary; called once, when :attr:`boundary` is first asked for.
    """

    rows_read: int = 0
    rows_known: int = 0
    rows_null_watermark: int = 0
    rows_beyond_max: int = 0
    candidate: dict[str, Scalar] = field(default_factory=dict)
    lowest: dict[str, Scalar] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    boundary_usable: bool = True
    tracked: Tracked | None = None
    settle: Callable[[], Boundary] = Boundary

    @cached_property
    def boundary(self) -> Boundary:
        """The rows at the new watermark; ask once the frame has been consumed."""
        return self.settle()


@dataclass(frozen=True)
class Batch:
    """A lazy frame and what will be known once it has been consumed.

    Attributes:
        frame: Not yet computed; consume it once, with the streaming engine.
        observation: Filled while the frame is consumed.
        source_action: What was read, for the run's record (files, version, SQL as sent).
        warnings: Code and message of what the reader should tell the user.
        empty: There is nothing to read at all (no file); the frame may have no columns then.
        source: The same rows, not observed: to look for a bad value after a failure.
        window: The request's window in values of its column's type; None without one.
        diagnose: Says which file and line an error of the engine comes from, None if unknown.
        close: Removes temporary files; call it when the frame is no longer needed.
    """

    frame: pl.LazyFrame
    observation: Observation
    source_action: Mapping[str, Any] = field(default_factory=dict[str, Any])
    warnings: tuple[tuple[str, str], ...] = ()
    empty: bool = False
    source: pl.LazyFrame | None = None
    window: Window | None = None
    diagnose: Callable[[Exception], ReadError | None] = _no_diagnosis
    close: Callable[[], None] = _nothing
