"""One folder that is written through the writer itself, without a pipeline around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from datacoolie_core.metadata.models import (
    Connection,
    ConnectionConfigure,
    Dataflow,
    Destination,
    DestinationConfigure,
    PartitionColumn,
    Source,
)
from datacoolie_core.writers.destination import writer_for
from datacoolie_core.writers.flat.place import Place
from datacoolie_core.writers.flat.stored import Stored
from datacoolie_core.writers.request import Commit, WriteRequest, WriteResult


@dataclass
class Folder:
    """``load`` makes a dataflow's next load."""

    uri: str
    form: str = "parquet"
    storage_options: dict[str, str] = field(default_factory=dict)
    dated: str | None = None
    phases: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    def dataflow(self, load_type: str, dataflow_id: str = "flow", **given: Any) -> Dataflow:
        configure = ConnectionConfigure(base_path="out", date_folder_partitions=self.dated)
        connection = Connection(
            name="files", connection_type="file", format=self.form, configure=configure
        )
        return Dataflow(
            name=dataflow_id,
            dataflow_id=dataflow_id,
            source=Source(connection=connection, table="t"),
            destination=Destination(
                connection=connection,
                table="t",
                load_type=load_type,
                partition_columns=tuple(
                    PartitionColumn(column=name) for name in given.get("partition_by", ())
                ),
                configure=DestinationConfigure(write_options=given.get("options", {})),
            ),
        )

    def sequence(self, dataflow_id: str = "flow") -> int | None:
        return self.state(dataflow_id).sequence

    def state(self, dataflow_id: str = "flow"):
        return self.writer.inspect(self.uri, dataflow_id, self.storage_options)

    @property
    def writer(self):
        return writer_for(self.dataflow("append").destination)

    def load(
        self, rows: pl.DataFrame | pl.LazyFrame, load_type: str = "append", **given: Any
    ) -> WriteResult:
        on_phase = given.pop("on_phase", None)
        required = given.pop("required", False)
        about = {
            key: given.pop(key)
            for key in ("dataflow_id", "partition_by", "options")
            if key in given
        }
        flow = self.dataflow(load_type, **about)
        there = self.sequence(flow.dataflow_id)
        sequence = (there or 0) + 1
        values = {
            "dataflow": flow,
            "uri": self.uri,
            "sequence": sequence,
            "run_id": f"run-{sequence}",
            "storage_options": self.storage_options,
            "expected_sequence": there,
        }

        def reached(phase: str) -> None:
            self.phases.append(phase)
            if on_phase is not None:
                on_phase(phase)

        return self.writer.write(
            WriteRequest(**{**values, **given}),
            rows.lazy(),
            lambda _: Commit({"format": 1}, required),
            reached,
            sleep=self.slept.append,
        )

    def look(self, dataflow_id: str = "flow"):
        return Place(self.uri, self.form, dataflow_id, self.storage_options, self.dated).look()

    def frame(self) -> pl.DataFrame:
        """All rows, typed, as they are read back."""
        look = self.look()
        with Stored(self.form, self.storage_options) as stored:
            files = [stored.one(look.stored(path), look.schema) for path in look.data]
            frames = pl.collect_all(files)
        return pl.concat([pl.DataFrame(schema=look.schema), *frames])

    def ids(self) -> list[int]:
        return sorted(self.frame()["id"])


def ids(*values: int) -> pl.DataFrame:
    return pl.DataFrame({"id": list(values)}, schema={"id": pl.Int64})
