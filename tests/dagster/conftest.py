"""A small lake in a temporary folder, loaded through a real Dagster instance on disk."""

import shutil
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.metadata.models import Metadata
from datacoolie_dagster import build_datacoolie_definitions

MONTHS = {"start": "2024-01-01", "end": "2024-05-01", "chunk_interval": {"months": 1}}


@dataclass
class Lake:
    """A project folder, its metadata, and a Dagster instance.

    Dataflows read CSV files of the connection ``landing`` and write ``lake/<stage>/<name>``.
    """

    root: Path
    home: Path
    stack: ExitStack = field(default_factory=ExitStack)
    dataflows: list[dict[str, Any]] = field(default_factory=list)
    connections: list[dict[str, Any]] = field(default_factory=list)
    arguments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.connect("landing", "csv", "landing")
        self.connect("raw", "delta", "lake/raw")
        self.connect("clean", "delta", "lake/clean")

    @cached_property
    def instance(self) -> dg.DagsterInstance:
        off = {"telemetry": {"enabled": False}}
        return self.stack.enter_context(
            dg.DagsterInstance.local_temp(str(self.home), overrides=off)
        )

    def connect(self, name: str, kind: str, base_path: str, **changes: Any) -> None:
        configure = {"base_path": base_path, **changes.pop("configure", {})}
        self.connections.append({"name": name, "format": kind, "configure": configure, **changes})

    def flow(self, name: str, *, options: Any = None, stage: str = "raw", **changes: Any) -> None:
        """Add a dataflow; one that is not said otherwise loads ``landing/<name>.csv`` whole."""
        reads = {"connection_name": "landing", "table": f"{name}.csv"}
        writes = {"connection_name": stage, "table": name, "load_type": "full_load"}
        made = {
            "name": name,
            "dataflow_id": f"{stage}/{name}",
            "stage": stage,
            "configure": {"datacoolie": options or {}},
            **changes,
            "source": {**reads, **changes.get("source", {})},
            "destination": {**writes, **changes.get("destination", {})},
        }
        self.dataflows = [
            one for one in self.dataflows if one["dataflow_id"] != made["dataflow_id"]
        ]
        self.dataflows.append(made)

    def events_flow(self, replay: Any = MONTHS, *, options: Any = None, **changes: Any) -> None:
        """Add the dataflow that appends ``landing/events.csv`` by its timestamps."""
        hints = [
            {"column_name": "id", "data_type": "int"},
            {"column_name": "at", "data_type": "timestamp"},
        ]
        self.flow(
            "events",
            options={**({"replay": replay} if replay else {}), **(options or {})},
            source={"watermark_columns": ["at"], **changes.pop("source", {})},
            destination={"load_type": "append", **changes.pop("destination", {})},
            transform={"schema_hints": hints},
            **changes,
        )

    def csv(self, name: str, *rows: str, header: str = "id,at") -> None:
        path = self.root / "landing" / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join([header, *rows]) + "\n")

    def events_csv(self, *times: str) -> None:
        """Write an event for each date or timestamp, with ids from 1 on."""
        rows = (f"{id},{at if 'T' in at else f'{at}T12:00:00Z'}" for id, at in enumerate(times, 1))
        self.csv("events", *rows)

    @property
    def document(self) -> dict[str, Any]:
        return {"connections": self.connections, "dataflows": self.dataflows}

    @property
    def metadata(self) -> Metadata:
        return metadata_from_documents([("flows.json", self.document)])

    @property
    def definitions(self) -> dg.Definitions:
        return build_datacoolie_definitions(
            self.metadata, **{"project_dir": self.root, **self.arguments}
        )

    def spec(self, key: str) -> dg.AssetSpec:
        wanted = dg.AssetKey(key.split("/"))
        return next(one for one in self.definitions.resolve_all_asset_specs() if one.key == wanted)

    def execute(self, job: str, **options: Any) -> dg.ExecuteInProcessResult:
        return self.definitions.resolve_job_def(job).execute_in_process(
            instance=self.instance, raise_on_error=False, **options
        )

    def incremental(self, stage: str = "raw", **config: Any) -> dg.ExecuteInProcessResult:
        run_config = {"ops": {"load": {"config": config}}} if config else None
        return self.execute(f"{stage}_incremental", run_config=run_config)

    def materialize(
        self, *keys: str, partitions: str | tuple[str, str] | None = None, **options: Any
    ) -> dg.ExecuteInProcessResult:
        """Run some assets of one stage, as the Materialize button does."""
        tags = dict(options.pop("tags", {}))
        if isinstance(partitions, tuple):
            tags["dagster/asset_partition_range_start"] = partitions[0]
            tags["dagster/asset_partition_range_end"] = partitions[1]
        return self.execute(
            options.pop("job", keys[0].split("/")[0]),
            asset_selection=[dg.AssetKey(key.split("/")) for key in keys],
            partition_key=partitions if isinstance(partitions, str) else None,
            tags=tags,
            **options,
        )

    def rows(self, path: str) -> pl.DataFrame:
        return pl.read_delta(str(self.root / "lake" / path))

    def ids(self, path: str) -> list[int]:
        return sorted(int(one) for one in self.rows(path)["id"])

    def events(self, key: str) -> list[dg.AssetMaterialization]:
        """Return an asset's materializations, oldest first."""
        found = self.instance.fetch_materializations(dg.AssetKey(key.split("/")), limit=1000)
        return [one.asset_materialization for one in reversed(found.records)]

    def marked(self, key: str) -> list[str | None]:
        """Return the partitions of an asset's materializations, oldest first."""
        return [event.partition for event in self.events(key)]

    def observations(self, key: str) -> list[dg.AssetObservation]:
        found = self.instance.fetch_observations(dg.AssetKey(key.split("/")), limit=100)
        return [one.asset_observation for one in reversed(found.records)]

    def newest(self, key: str) -> dict[str, Any]:
        """Return the metadata of an asset's newest materialization."""
        return self.values(self.events(key)[-1])

    def statuses(self, key: str) -> dict[str, str]:
        """Return partition key → materialized, failed or missing."""
        asset_key = dg.AssetKey(key.split("/"))
        partitions = self.definitions.resolve_asset_graph().get(asset_key).partitions_def
        keys = partitions.get_partition_keys()
        found = self.instance.get_status_by_partition(asset_key, keys, partitions)
        return {one: found[one].value.lower() if found[one] else "missing" for one in keys}

    @staticmethod
    def values(event: Any) -> dict[str, Any]:
        return {name: entry.value for name, entry in event.metadata.items()}

    @staticmethod
    def failure(result: dg.ExecuteInProcessResult) -> Any:
        """Return what the failed step of a run says."""
        failed = [one for one in result.all_events if one.event_type_value == "STEP_FAILURE"]
        return failed[-1].step_failure_data.user_failure_data


@pytest.fixture(autouse=True)
def _no_passing_api() -> Iterator[None]:
    """Fail on every warning of Dagster's about an API that may go away."""
    with warnings.catch_warnings():
        for category in (dg.BetaWarning, dg.PreviewWarning, dg.SupersessionWarning):
            warnings.filterwarnings("error", category=category)
        warnings.filterwarnings("error", category=DeprecationWarning, module="datacoolie_dagster")
        yield


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an instance without events; making its tables takes seconds."""
    home = tmp_path_factory.mktemp("dagster")
    off = {"telemetry": {"enabled": False}}
    with dg.DagsterInstance.local_temp(str(home), overrides=off) as instance:
        instance.get_runs()
        instance.all_asset_keys()
    return home


@pytest.fixture
def lake(tmp_path: Path, empty_home: Path) -> Iterator[Lake]:
    root, home = tmp_path / "project", tmp_path / "dagster"
    root.mkdir()
    shutil.copytree(empty_home, home)
    with ExitStack() as stack:
        yield Lake(root, home, stack)
