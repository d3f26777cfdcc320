"""Progress on stderr while a run goes on, and its table at the end."""

from __future__ import annotations

import sys
import threading
from datetime import datetime
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress as Bar,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from datacoolie_core.run.events import (
    AdmissionStopped,
    ChunkFinished,
    DataflowFinished,
    DataflowStarted,
    Message,
    RetryScheduled,
    RunFinished,
    RunStarted,
)

if TYPE_CHECKING:
    from datacoolie_core.plan.windows import Scalar
    from datacoolie_core.run.events import Event
    from datacoolie_core.run.results import DataflowResult, ExecutionResult

STYLES = {"succeeded": "green", "failed": "red", "skipped": "dim", "pending": "yellow"}


class Progress:
    """A bar in a terminal, log lines elsewhere; keeps the run's result."""

    def __init__(self) -> None:
        self.result: ExecutionResult | None = None
        self._console = Console(stderr=True, soft_wrap=True, highlight=False)
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not sys.stderr.isatty(),
            transient=True,
        )
        self._task = self._bar.add_task("loading", total=None)
        self._running: dict[str, None] = {}
        self._guard = threading.Lock()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, event: Event) -> None:
        """Take an event of the run."""
        with self._guard:
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._bar.update(self._task, total=event.dataflows)
        elif isinstance(event, DataflowStarted):
            self._running[event.dataflow.label] = None
            self._bar.update(self._task, description=", ".join(list(self._running)[:3]))
        elif isinstance(event, DataflowFinished):
            self._running.pop(event.result.dataflow.label, None)
            self._bar.advance(self._task)
            self._line(_summary(event.result))
        elif isinstance(event, RunFinished):
            self.result = event.result
        else:
            self._say(event)

    def _say(self, event: Event) -> None:
        if isinstance(event, RetryScheduled):
            self._line(
                f"{event.dataflow.label}: attempt {event.attempt} failed, "
                f"again in {event.delay_seconds:g} s: {event.error.message}"
            )
        elif isinstance(event, ChunkFinished):
            self._line(_summary(event.result))
        elif isinstance(event, AdmissionStopped):
            self._line(f"{event.reason}: {event.waiting} dataflows do not start")
        elif isinstance(event, Message) and event.level in ("warning", "error"):
            place = f"{event.dataflow.label}: " if event.dataflow else ""
            self._line(f"{place}{event.level}: {event.text}")

    def _line(self, text: str) -> None:
        self._console.print(text, markup=False)


def _summary(result: DataflowResult) -> str:
    label = result.dataflow.label
    if result.window is not None:
        label = f"{label} {result.window.key}"
    seconds = f"{result.duration_seconds or 0:.1f} s"
    if result.status == "failed" and result.error is not None:
        return f"{label}: failed after {seconds}"
    if result.status == "succeeded":
        return f"{label}: {result.rows.get('rows_written') or 0:,} rows in {seconds}"
    return f"{label}: {result.status}, {result.reason}"


def _short(value: Scalar) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}{'' if value.tzinfo is None else 'Z'}"
    return str(value)


def show_result(result: ExecutionResult) -> None:
    """Print the run's table, then each failure whole."""
    console = Console(soft_wrap=True, highlight=False)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("dataflow", "status", "rows", "table", "watermark", "seconds"):
        table.add_column(
            title, justify="right" if title in ("rows", "table", "seconds") else "left"
        )
    for one in result.dataflows:
        watermark = ", ".join(_short(value) for value in one.watermark.values())
        table.add_row(
            one.dataflow.label,
            f"[{STYLES.get(one.status, '')}]{one.status}[/]",
            f"{one.rows.get('rows_written') or 0:,}",
            "" if one.table_rows is None else f"{one.table_rows:,}",
            watermark,
            f"{one.duration_seconds or 0:.1f}",
        )
    for broken in result.invalid:
        table.add_row(broken.label, "[red]failed[/]", "0", "", "", "0.0")
    console.print(table)
    for broken in result.invalid:
        for problem in broken.problems:
            console.print(str(problem), markup=False, style="red")
    for one in result.dataflows:
        if one.error is not None:
            console.print(one.error.message, markup=False, style="red")
        for notice in one.warnings:
            console.print(f"{one.dataflow.label}: warning: {notice.message}", markup=False)
    counts = ", ".join(
        f"{count} {name}"
        for name in ("succeeded", "skipped", "failed", "pending")
        if (count := getattr(result, name))
    )
    console.print(f"{counts or 'nothing to run'} in {result.duration_seconds:.1f} s")
