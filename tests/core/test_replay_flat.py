"""Replays of flat files: windows are replaced there too, each dataflow its own files."""

from __future__ import annotations

from datetime import date
from typing import Any

import polars as pl
import pytest

from datacoolie_core import DataCoolieDriver, ReplayConfig
from datacoolie_core.metadata.loader import metadata_from_documents

DAYS = ReplayConfig("2025-01-01", "2025-01-05", {"days": 1})
FIRST = [(1, 1), (2, 2), (3, 2), (4, 3), (5, 4)]
FORMATS = ["parquet", "csv", "jsonl", "json", "avro"]


def rows(*given):
    return pl.DataFrame(
        [(one, date(2025, 1, day)) for one, day in given],
        schema={"id": pl.Int64, "day": pl.Date},
        orient="row",
    )


class Flat:
    """A project whose dataflows append to, or replace, folders of files."""

    def __init__(self, project, form):
        self.project, self.form, self.flows = project, form, {}

    def flow(self, name="f", load_type="append", **given: Any):
        replay = {"start": "2025-01-01", "chunk_column": "day"}
        watermark = ["day"] if load_type == "append" else []
        source = {"connection_name": "in", "table": given.pop("reads", "t")}
        self.flows[name] = {
            "name": name,
            "source": {**source, "watermark_columns": watermark},
            "destination": {
                "connection_name": "out",
                "table": given.pop("table", "o"),
                "load_type": load_type,
                **given,
            },
            "configure": {"datacoolie": {"replay": replay}},
        }

    def driver(self):
        connections = [
            {"name": "in", "format": "parquet", "configure": {"base_path": "in"}},
            {"name": "out", "format": self.form, "configure": {"base_path": "out"}},
        ]
        document = {"connections": connections, "dataflows": list(self.flows.values())}
        metadata = metadata_from_documents([("test.json", document)])
        return DataCoolieDriver(metadata, project_dir=str(self.project.root))

    def run(self):
        with self.driver() as driver:
            results = driver.run().dataflows
        assert not [one.error.message for one in results if one.error]

    def replay(self, config=DAYS, names=()):
        with self.driver() as driver:
            flows = [one for one in driver.metadata.dataflows if not names or one.name in names]
            results = driver.run_replay(flows, config).dataflows
        assert not [one.error.message for one in results if one.error]
        return results

    def ids(self, table="o"):
        """Ids of all data files, whichever dataflow wrote them."""
        folder = self.project.root / "out" / table
        read = {
            "parquet": pl.read_parquet,
            "csv": pl.read_csv,
            "jsonl": pl.read_ndjson,
            "json": pl.read_json,
            "avro": pl.read_avro,
        }[self.form]
        files = [
            path
            for path in folder.rglob(f"*.{self.form}")
            if "_datacoolie" not in path.parts and not path.name.startswith((".", "_"))
        ]
        return sorted(one for path in files for one in read(path)["id"].to_list())


@pytest.fixture(params=FORMATS)
def flat(project, request):
    return Flat(project, request.param)


@pytest.mark.parametrize("load_type", ["append", "overwrite"])
def test_replays_that_repeat_and_overlap_double_nothing(flat, load_type):
    """W46, W11 for files."""
    flat.flow(load_type=load_type)
    flat.project.write("t", "a.parquet", rows(*FIRST))
    flat.run()
    for config in (DAYS, ReplayConfig("2025-01-02", "2025-01-04"), DAYS):
        flat.replay(config)
        assert flat.ids() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("load_type", ["append", "overwrite"])
def test_a_window_is_what_the_source_says_now(flat, load_type):
    """W12 for files: changed, gone and emptied."""
    flat.flow(load_type=load_type)
    flat.project.write("t", "a.parquet", rows(*FIRST))
    flat.run()
    flat.project.write("t", "a.parquet", rows((1, 1), (7, 2), (5, 4)))
    for _ in range(2):
        flat.replay(ReplayConfig("2025-01-02", "2025-01-04", {"days": 1}))
        assert flat.ids() == [1, 5, 7]


def test_a_replay_before_the_first_load_and_a_load_after_it(project):
    flat = Flat(project, "parquet")
    flat.flow()
    project.write("t", "a.parquet", rows(*FIRST))
    flat.replay(ReplayConfig("2025-01-02", "2025-01-04"))
    assert flat.ids() == [2, 3, 4]
    flat.run()
    assert flat.ids() == [1, 2, 3, 4, 5]
    flat.run()
    assert flat.ids() == [1, 2, 3, 4, 5]


def test_two_that_append_to_one_folder_replay_their_own_files(project):
    """No filter is needed: the folder knows whose each file is."""
    flat = Flat(project, "parquet")
    flat.flow("eu", reads="eu")
    flat.flow("us", reads="us")
    project.write("eu", "a.parquet", rows((1, 1), (2, 2)))
    project.write("us", "a.parquet", rows((11, 1), (12, 2)))
    flat.run()
    project.write("eu", "a.parquet", rows((3, 2)))
    flat.replay(DAYS, names=("eu",))
    assert flat.ids() == [3, 11, 12]


def test_a_plan_asks_folders_whether_they_fit(project):
    flat = Flat(project, "parquet")
    flat.flow()
    project.write("t", "a.parquet", rows(*FIRST))
    flat.run()
    project.write("t", "b.parquet", rows((6, 5)).with_columns(v=pl.lit("x")))
    with flat.driver() as driver:
        (found,) = driver.connect(driver.plan()).values()
    assert found.notes == ("new columns: v",)
    project.write("t", "a.parquet", pl.DataFrame({"id": ["x"], "day": [date(2025, 2, 1)]}))
    (project.root / "in/t/b.parquet").unlink()
    with flat.driver() as driver:
        (found,) = driver.connect(driver.plan()).values()
    assert found.error is not None
    assert found.error.code == "type_conflict"
