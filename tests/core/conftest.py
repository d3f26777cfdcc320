"""A Delta table that is written through the writer itself, without a pipeline around it."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable

from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.metadata.models import (
    Connection,
    Dataflow,
    Destination,
    DestinationConfigure,
    PartitionColumn,
    Source,
    Transform,
    TransformConfigure,
)
from datacoolie_core.metadata.options import DestinationOptions
from datacoolie_core.readers.batch import Batch, ReadRequest
from datacoolie_core.readers.read import open_batch
from datacoolie_core.transforms.explain import explain
from datacoolie_core.writers import delta
from datacoolie_core.writers.request import Commit, WriteRequest, WriteResult
from tests.core.case_project import Case

CONNECTION = Connection(name="lake", connection_type="lakehouse", format="delta")


def dataflow(
    load_type: str = "append",
    *,
    keys: tuple[str, ...] = (),
    partition_by: tuple[str, ...] = (),
    delete_when: str | None = None,
    replay_filter: str | None = None,
    zone: str | None = None,
    dataflow_id: str = "flow",
) -> Dataflow:
    return Dataflow(
        name="flow",
        dataflow_id=dataflow_id,
        source=Source(connection=CONNECTION, table="t"),
        destination=Destination(
            connection=CONNECTION,
            table="t",
            load_type=load_type,
            merge_keys=keys,
            partition_columns=tuple(PartitionColumn(column=name) for name in partition_by),
            configure=DestinationConfigure(
                datacoolie=DestinationOptions(delete_when=delete_when, replay_filter=replay_filter)
            ),
        ),
        transform=Transform(configure=TransformConfigure(timestamp_timezone=zone)),
    )


def _nulls_first(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((v is not None, str(v) if isinstance(v, dict | list) else v) for v in row)


@dataclass
class Lake:
    """One table; ``load`` makes the dataflow's next load."""

    path: Path
    phases: list[str] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    @property
    def uri(self) -> str:
        return str(self.path)

    def request(self, flow: Dataflow, **given: Any) -> WriteRequest:
        there = self.sequence(flow.dataflow_id)
        sequence = given.pop("sequence", (there or 0) + 1)
        values = {
            "dataflow": flow,
            "uri": self.uri,
            "sequence": sequence,
            "run_id": f"run-{sequence}",
            "expected_sequence": there,
        }
        return WriteRequest(**{**values, **given})

    def write(
        self,
        request: WriteRequest,
        frame: pl.DataFrame | pl.LazyFrame,
        *,
        required: bool = False,
        commit: bool = True,
        on_phase: Any = None,
    ) -> WriteResult:
        def finish(rows: int) -> Commit | None:
            self.asked.append(rows)
            return Commit({"format": 1}, required) if commit else None

        def reached(phase: str) -> None:
            self.phases.append(phase)
            if on_phase is not None:
                on_phase(phase)

        return delta.write(request, frame.lazy(), finish, reached, sleep=self.slept.append)

    def load(
        self, frame: pl.DataFrame | pl.LazyFrame, load_type: str = "append", **given: Any
    ) -> WriteResult:
        how = {k: given.pop(k) for k in ("required", "commit", "on_phase") if k in given}
        about = {
            k: given.pop(k)
            for k in (
                "keys",
                "partition_by",
                "delete_when",
                "replay_filter",
                "zone",
                "dataflow_id",
            )
            if k in given
        }
        return self.write(self.request(dataflow(load_type, **about), **given), frame, **how)

    def merge(
        self, frame: pl.DataFrame, keys: tuple[str, ...] = ("id",), **given: Any
    ) -> WriteResult:
        return self.load(frame, "merge_upsert", keys=keys, **given)

    def sequence(self, dataflow_id: str = "flow") -> int | None:
        if not DeltaTable.is_deltatable(self.uri):
            return None
        return self.table.transaction_version(dataflow_id)

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.uri)

    def rows(self, *columns: str, sort: bool = True) -> list[tuple[Any, ...]]:
        """The rows as polars reads them; delta-rs's own reader must see the same."""
        frame = pl.scan_delta(self.uri).collect()
        chosen = list(columns) or frame.columns
        found = frame.select(chosen).rows()
        if "deletionVectors" not in (self.table.protocol().reader_features or []):
            other = pl.DataFrame(self.table.to_pyarrow_table()).select(chosen).rows()
            assert sorted(map(str, found)) == sorted(map(str, other))
        return sorted(found, key=_nulls_first) if sort else found

    def files(self) -> set[str]:
        """The data files on the disk."""
        return {
            str(path.relative_to(self.path))
            for path in self.path.rglob("*.parquet")
            if "_delta_log" not in path.parts
        }

    def live(self) -> set[str]:
        """The data files that the table's present version names."""
        return {str(Path(uri).relative_to(self.path)) for uri in self.table.file_uris()}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake" / "t")


@dataclass
class Reading:
    """One source of files or tables below ``in``, read through ``open_batch``."""

    root: Path

    def write(self, name: str, content: str | bytes | pl.DataFrame) -> Path:
        path = self.root / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pl.DataFrame):
            content.write_parquet(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def flow(self, form: str = "csv", table: str = "t", **given: Any) -> Dataflow:
        """Return a dataflow; ``options`` are read options, ``hints`` types by column."""
        hints = [
            {"column_name": name, **({"data_type": hint} if isinstance(hint, str) else hint)}
            for name, hint in given.pop("hints", {}).items()
        ]
        connection = {
            "name": "in",
            "format": form,
            "configure": {
                "base_path": given.pop("base_path", "in"),
                "read_options": given.pop("options", {}),
                **given.pop("connection", {}),
            },
        }
        source = {"connection_name": "in", "table": table, **given.pop("source", {})}
        if "watermark" in given:
            source["watermark_columns"] = given.pop("watermark")
        if "query" in given:
            del source["table"]
            source["query"] = given.pop("query")
        destination = {"connection_name": "lake", "table": "o", **given.pop("destination", {})}
        transform = {"schema_hints": hints, **given.pop("transform", {})}
        document = {
            "connections": [
                connection,
                {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
            ],
            "dataflows": [
                {
                    "name": "f",
                    "source": source,
                    "destination": destination,
                    "transform": transform,
                    **given,
                }
            ],
        }
        return metadata_from_documents([("test.json", document)]).dataflows[0]

    def open(self, flow: Dataflow, **request: Any) -> Batch:
        return open_batch(ReadRequest(dataflow=flow, project_dir=str(self.root), **request))

    def read(self, flow: Dataflow, **request: Any) -> tuple[pl.DataFrame, Batch]:
        """Consume a batch; the file columns are left out of the frame."""
        batch = self.open(flow, **request)
        try:
            try:
                frame = batch.frame.collect(engine="streaming")
            except Exception as error:
                raise explain(error, batch, flow) from error
        finally:
            batch.close()
        return frame.select([name for name in frame.columns if not name.startswith("__")]), batch

    def rows(self, flow: Dataflow, **request: Any) -> list[tuple[Any, ...]]:
        return self.read(flow, **request)[0].rows()


@pytest.fixture
def reading(tmp_path):
    return Reading(tmp_path)


@pytest.fixture
def make_dataflow() -> Any:
    return dataflow


@pytest.fixture
def case(tmp_path):
    """A project of one dataflow, seen from the front doors."""
    return Case(tmp_path)


@pytest.fixture
def cases(tmp_path_factory):
    """Makes such projects, for tests that need several."""
    return lambda form="delta": Case(tmp_path_factory.mktemp("case"), form=form)


@pytest.fixture(scope="session")
def spark():
    """Spark Connect, served by Sail in this process on the loopback address."""
    from pysail.spark import SparkConnectServer

    # Where the main module has no file, as in a worker of pytest-xdist, the client of Spark takes
    # the process for a run of its own doctests, and wants a Spark with Java.
    main = sys.modules["__main__"]
    if not hasattr(main, "__file__"):
        main.__file__ = __file__

    server = SparkConnectServer(ip="127.0.0.1", port=0)
    server.start(background=True)
    _, port = server.listening_address
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        from pyspark.sql import SparkSession

        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session
    session.stop()
    server.stop()
