"""``file_registry``: each file is remembered, and loaded once, however late it comes."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime

import polars as pl
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core.state.known_files import KnownFiles
from datacoolie_core.storage import FileInfo

REGISTRY = {"configure": {"datacoolie": {"file_registry": True}}}


def frame(*ids):
    return pl.DataFrame({"id": list(ids)})


def test_files_below_the_watermark_are_loaded_once(project):
    """W29, with a watermark of rows."""
    project.flow(watermark=["id"], source=REGISTRY)
    project.write("t", "a.parquet", frame(10, 11))
    assert project.run_one().watermark == {"id": 11}
    project.write("t", "b.parquet", frame(1, 2, 11))
    result = project.run_one()
    assert (result.rows["rows_inserted"], result.watermark) == (3, {"id": 11})
    assert project.run_one().status == "skipped"
    assert project.ids() == [1, 2, 10, 11, 11]


def test_a_file_that_was_copied_with_an_old_time_is_loaded(project):
    """W29, with a watermark of file times."""
    project.flow(watermark=["__file_modification_time"], source=REGISTRY)
    project.write("t", "a.parquet", frame(1))
    project.run_one()
    old = project.write("t", "b.parquet", frame(2))
    os.utime(old, (1, 1))
    project.run_one()
    assert project.ids() == [1, 2]


@pytest.mark.parametrize(
    ("load_type", "more", "expected"),
    [("append", {}, [1, 2, 3]), ("merge_upsert", {"merge_keys": ["id"]}, [1, 2, 3])],
)
def test_a_changed_file_is_read_again_and_doubles_nothing(project, load_type, more, expected):
    project.flow(source=REGISTRY, load_type=load_type, **more)
    project.write("t", "a.parquet", frame(1, 2))
    project.run_one()
    project.write("t", "a.parquet", frame(1, 2, 3))
    assert project.run_one().rows["rows_inserted"] == 1
    assert project.run_one().status == "skipped"
    assert project.ids() == expected


def test_a_registry_that_begins_late_doubles_nothing(project):
    project.flow(watermark=["id"])
    project.write("t", "a.parquet", frame(1, 2))
    project.run_one()
    project.flow(watermark=["id"], source=REGISTRY)
    project.write("t", "b.parquet", frame(0, 3))
    project.run_one()
    assert project.ids() == [0, 1, 2, 3]
    assert project.run_one().status == "skipped"


def test_many_files_are_remembered_beside_the_table(project, monkeypatch):
    monkeypatch.setattr("datacoolie_core.run.file_memory.INLINE", 3)
    project.flow(source=REGISTRY)
    for number in range(12):
        project.write("t", f"{number}.parquet", frame(number))
        if number > 2:
            project.run_one()
    state = project.run(full_refresh=False).dataflows[0].state
    assert state.files["count"] == 12
    assert project.ids() == list(range(12))
    lists = sorted(path.name for path in (project.root / "lake/o/_datacoolie").iterdir())
    assert len(lists) == 5
    assert state.files["file"] in lists


def test_a_table_that_is_restored_has_the_list_of_its_version(project, monkeypatch):
    monkeypatch.setattr("datacoolie_core.run.file_memory.INLINE", 1)
    project.flow(source=REGISTRY)
    project.write("t", "a.parquet", frame(1))
    project.write("t", "b.parquet", frame(2))
    version = project.run_one().state.table_version
    project.write("t", "c.parquet", frame(3))
    project.run_one()
    DeltaTable(project.path()).restore(version)
    project.run_one()
    assert project.ids() == [1, 2, 3]


def test_a_list_that_is_gone_costs_a_comparison_and_no_row(project, monkeypatch):
    monkeypatch.setattr("datacoolie_core.run.file_memory.INLINE", 0)
    project.flow(source=REGISTRY)
    project.write("t", "a.parquet", frame(1))
    project.run_one()
    for path in (project.root / "lake/o/_datacoolie").iterdir():
        path.unlink()
    project.write("t", "b.parquet", frame(1))
    told = []
    with project.driver([told.append]) as driver:
        assert driver.run().failed == 0
    assert "can't be read" in "".join(one.text for one in told if hasattr(one, "text"))
    assert project.ids() == [1, 1]
    assert project.run_one().status == "skipped"


def test_a_new_row_of_a_changed_file_may_equal_one_of_another_file(project):
    project.flow(source=REGISTRY)
    project.write("t", "a.parquet", frame(1))
    project.write("t", "b.parquet", frame(2))
    project.run_one()
    project.write("t", "b.parquet", frame(2, 1))
    project.write("t", "c.parquet", frame(1))
    project.run_one()
    assert project.ids() == [1, 1, 1, 2]


def test_files_that_were_moved_and_touched_are_known_by_their_rows(project, new_project):
    project.flow(source=REGISTRY)
    project.write("t", "a.parquet", frame(1))
    project.run_one()
    other = new_project()
    shutil.copytree(project.root, other.root, dirs_exist_ok=True)
    other.flows = project.flows
    os.utime(other.root / "in/t/a.parquet", (1, 1))
    assert other.run_one().status == "skipped"
    assert other.ids() == [1]


def test_an_overwrite_takes_all_files_as_soon_as_one_is_new(project):
    project.flow(source=REGISTRY, load_type="overwrite")
    project.write("t", "a.parquet", frame(1))
    project.run_one()
    assert project.run_one().status == "skipped"
    project.write("t", "b.parquet", frame(2))
    project.run_one()
    assert project.ids() == [1, 2]


@pytest.mark.parametrize("watermark", [[], ["id"]])
def test_a_registry_may_come_and_go(project, watermark):
    for number, source in enumerate([REGISTRY, {}, REGISTRY, {}, REGISTRY], 1):
        project.flow(source=source, watermark=["id"] if source == {} else watermark)
        project.write("t", f"{number}.parquet", frame(number))
        project.run_one()
        assert project.ids() == list(range(1, number + 1))


def test_without_the_files_path_a_changed_file_is_refused(project):
    project.flow(source=REGISTRY, transform={"select_columns": ["id"]})
    project.write("t", "a.parquet", frame(1))
    project.run_one()
    if "__file_path" in pl.read_delta(project.path()).columns:
        pytest.skip("projection keeps the columns of files")
    project.write("t", "a.parquet", frame(1, 2))
    assert project.run().dataflows[0].error.code == "no_file_path"


def test_a_replay_does_not_make_later_runs_double_rows(project):
    days = [datetime(2025, 1, n, tzinfo=UTC) for n in (1, 2, 3)]
    project.flow(watermark=["ts"], source=REGISTRY)
    project.write("t", "a.parquet", pl.DataFrame({"id": [1, 2], "ts": days[:2]}))
    project.run_one()
    project.write("t", "b.parquet", pl.DataFrame({"id": [3], "ts": days[1:2]}))
    from datacoolie_core import ReplayConfig

    with project.driver() as driver:
        replay = ReplayConfig(start="2025-01-02", end="2025-01-04", chunk_interval={"days": 1})
        assert driver.run_replay(driver.metadata.dataflows, replay).failed == 0
    assert project.ids() == [1, 2, 3]
    project.run_one()
    assert project.ids() == [1, 2, 3]
    project.write("t", "c.parquet", pl.DataFrame({"id": [4], "ts": days[:1]}))
    project.run_one()
    project.run_one()
    assert project.ids() == [1, 2, 3, 4]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 6), min_size=1, max_size=3),
            st.sampled_from(["run", "lost state", "refresh"]),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_every_file_is_loaded_once_whatever_happens_to_the_state(new_project, steps):
    """Files arrive in any order; sometimes the state's store is lost."""
    project = new_project()
    project.flow(watermark=["id"], source=REGISTRY)
    arrived = set()
    for numbers, what in steps:
        for number in numbers:
            if number not in arrived:
                arrived.add(number)
                project.write("t", f"{number}.parquet", frame(number, 10 - number))
        if what == "lost state":
            for path in (project.root / ".datacoolie").rglob("*.json"):
                path.unlink()
        project.run(full_refresh=what == "refresh")
        assert project.ids() == sorted([*arrived, *(10 - one for one in arrived)])


@given(st.dictionaries(st.text(min_size=1), st.integers(0, 9)), st.text(min_size=1))
def test_known_files_survive_text_and_tell_versions(files, other):
    def info(size):
        return FileInfo("x", size, datetime(2025, 1, 1, tzinfo=UTC))

    known = KnownFiles().with_files((path, info(size)) for path, size in files.items())
    again = KnownFiles.from_text(known.to_text())
    assert again == known
    for path, size in files.items():
        assert again.kind_of(path, info(size)) == "known"
        assert again.kind_of(path, info(size + 1)) == "changed"
    if other not in files:
        assert again.kind_of(other, info(1)) == "new"
