"""Loads the flights example through Dagster, step by step: the driver of ``make demo``.

A first run loads everything. A later one loads what is new: months that are not materialized
yet, rows above the watermarks, and the tables that are always loaded whole.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
import warnings
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from fetch import fetch
from rich.console import Console
from rich.table import Table
from ui import HOME, prepare_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import dagster as dg

STYLES = {"succeeded": "green", "skipped": "dim", "failed": "bold red"}
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
FLIGHTS = ("bronze", "flights")
INCREMENTAL = {"ops": {"load": {"config": {"select": ["bronze/flights", "bronze/weather"]}}}}


@dataclass
class Line:
    """What the table says of one asset, over all runs of this demo."""

    status: str = ""
    rows: int | None = None
    watermark: str = ""
    seconds: dict[tuple[str, str | None], float] = field(default_factory=dict)

    def add(self, metadata: dict[str, Any], run_id: str, partition: str | None) -> None:
        """Take in what one event says: the newest counts, the best status, all seconds."""
        status = metadata.get("datacoolie/status", "succeeded")
        if status != "skipped" or not self.status:
            self.status = status
        self.rows = metadata.get("dagster/row_count", self.rows)
        if (value := metadata.get("datacoolie/watermark_value")) is not None:
            self.watermark = instant_text(value)
        # Partitions that an incremental load marks all say how long that one load took.
        is_chunk = metadata.get("datacoolie/run_kind") == "replay"
        place = (run_id, partition if is_chunk else None)
        self.seconds[place] = metadata.get("datacoolie/duration_seconds", 0.0)


def instant_text(value: Any) -> str:
    """Return a watermark for people; Dagster keeps an instant as seconds since 1970."""
    if isinstance(value, float):
        return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(value))
    return str(value)


@dataclass
class Demo:
    """Runs jobs in this process, on the instance of the UI, and collects what happened."""

    instance: dg.DagsterInstance
    defs: dg.Definitions
    console: Console
    lines: dict[tuple[str, ...], Line] = field(default_factory=dict)

    def run(
        self,
        title: str,
        job: str,
        assets: Sequence[dg.AssetKey] | None = None,
        tags: dict[str, str] | None = None,
        config: dict[str, Any] | None = None,
    ) -> bool:
        """Run a job, show its progress, and say whether it succeeded."""
        run_id = str(uuid.uuid4())
        since = time.monotonic()
        with self.console.status(title) as status:
            self.instance.add_event_listener(
                run_id, lambda entry: self.listen(entry, lambda text: status.update(text))
            )
            result = self.defs.resolve_job_def(job).execute_in_process(
                instance=self.instance,
                run_id=run_id,
                asset_selection=assets,
                tags=tags,
                run_config={**QUIET, **(config or {})},
                raise_on_error=False,
            )
        mark = "[green]✓[/]" if result.success else "[red]✗[/]"
        self.console.print(f"{mark} {title}  [dim]{time.monotonic() - since:.1f} s[/]")
        return result.success

    def listen(self, entry: Any, show: Any) -> None:
        """Take one event of a running job."""
        event = entry.dagster_event
        if event is None:
            return
        if event.is_step_materialization or event.is_asset_observation:
            data = event.event_specific_data
            fact = data.materialization if event.is_step_materialization else data.asset_observation
            values = {name: one.value for name, one in fact.metadata.items()}
            line = self.lines.setdefault(tuple(fact.asset_key.path), Line())
            line.add(values, entry.run_id, fact.partition)
            name = " ".join(filter(None, [fact.asset_key.to_user_string(), fact.partition]))
            show(f"{name}: {values.get('datacoolie/status', 'done')}")
        elif event.is_step_start:
            show(f"{event.step_key}: running")
        elif event.is_step_failure:
            self.fail(event)

    def fail(self, event: Any) -> None:
        """Show why a step failed, and keep it for the table."""
        data = event.step_failure_data
        said = data.user_failure_data.description if data.user_failure_data else None
        self.console.print(said or data.error.message, style="red", markup=False, soft_wrap=True)
        for key in self.keys_of(event.step_key):
            self.lines.setdefault(key, Line()).status = "failed"

    def keys_of(self, step: str) -> Iterator[tuple[str, ...]]:
        """Yield the assets that a step loads."""
        for spec in self.defs.resolve_all_asset_specs():
            if "__".join(spec.key.path) == step.split("[")[0]:
                yield tuple(spec.key.path)


def missing_months(demo: Demo, flights: dg.AssetSpec) -> Iterator[tuple[str, str]]:
    """Yield the first and last month of each gap in what is materialized."""
    done = demo.instance.get_materialized_partitions(flights.key)
    months = flights.partitions_def.get_partition_keys() if flights.partitions_def else []
    for is_done, run in groupby(months, key=lambda month: month in done):
        if not is_done:
            gap = list(run)
            yield gap[0], gap[-1]


def load(demo: Demo) -> bool:
    """Run the steps in turn, until one fails."""
    specs = {tuple(spec.key.path): spec for spec in demo.defs.resolve_all_asset_specs()}
    flights = specs[FLIGHTS]
    whole = [
        spec.key for key, spec in specs.items() if key[0] == "bronze" and not spec.partitions_def
    ]
    ok = demo.run("bronze: airlines, airports, planes, weather", "bronze", assets=whole)
    for first, last in missing_months(demo, flights) if ok else ():
        tags = {
            "dagster/asset_partition_range_start": first,
            "dagster/asset_partition_range_end": last,
        }
        title = f"bronze: flights, months {first} to {last} in one run"
        ok = ok and demo.run(title, "bronze", assets=[flights.key], tags=tags)
    return (
        ok
        and demo.run("bronze: incremental load", "bronze_incremental", config=INCREMENTAL)
        and demo.run("silver", "silver")
        and demo.run("gold", "gold")
        and demo.run("bronze: incremental, once more", "bronze_incremental", config=INCREMENTAL)
    )


def show(demo: Demo, seconds: float) -> None:
    """Print the table of all assets."""
    table = Table(title="The flights example", title_justify="left")
    for title in ("asset", "status", "rows", "watermark", "seconds"):
        side = "right" if title in ("rows", "seconds") else "left"
        table.add_column(title, justify=side, no_wrap=True)
    for key, line in demo.lines.items():
        style = STYLES.get(line.status, "")
        rows = "" if line.rows is None else f"{line.rows:,}"
        status = f"[{style}]{line.status}[/]" if style else line.status
        table.add_row(
            "/".join(key), status, rows, line.watermark, f"{sum(line.seconds.values()):.1f}"
        )
    demo.console.print(table)
    demo.console.print(f"[dim]All in {seconds:.0f} s.[/]")


def main() -> int:
    """Load the example, print the table, and return the exit code."""
    since = time.monotonic()
    console = Console(highlight=False)
    warnings.simplefilter("ignore")
    os.environ["DAGSTER_HOME"] = str(HOME)
    prepare_home()
    copied = fetch()
    console.print(f"[green]✓[/] data: {len(copied)} files copied" if copied else "✓ data is there")
    with console.status("Starting Dagster"):
        import dagster as dg
        from definitions import defs
    with dg.DagsterInstance.get() as instance:
        demo = Demo(instance, defs, console)
        ok = load(demo)
        show(demo, time.monotonic() - since)
    if ok:
        console.print("Next: [bold]make ui[/] shows all of it; run [bold]make demo[/] once more.")
        return 0
    console.print("[red]A step failed[/]; its error is above. What was loaded is kept.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
