"""Merges over many groups of files give what a merge of one group gives."""

from __future__ import annotations

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core.writers import rewrite

KEYS = st.integers(0, 12) | st.none()
ROWS = st.lists(st.tuples(KEYS, st.integers(0, 3)), max_size=8)


@pytest.fixture
def one_file_a_group(monkeypatch):
    """Each file is a group of its own, as files of half a million rows are."""
    monkeypatch.setattr(rewrite, "ROWS_PER_FILE", 1)


def frame(rows):
    return pl.DataFrame(rows, schema={"id": pl.Int64, "v": pl.Int64}, orient="row")


def merged(stored, batch):
    """A merge as a dictionary does it: every stored row of a batch's key gives way to one."""
    new = dict(batch)
    kept = [row for row in stored if row[0] not in new]
    return sorted([*kept, *new.items()], key=str)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.lists(ROWS.filter(bool), max_size=5), batch=st.dictionaries(KEYS, st.integers(0, 3))
)
def test_any_split_into_groups_gives_the_rows_of_a_naive_merge(new_project, files, batch):
    for rows_per_file in (1, 1_000_000):
        project = new_project()
        project.flow(load_type="merge_upsert", merge_keys=["id"])
        for rows in files:
            write_deltalake(project.path(), frame(rows).to_arrow(), mode="append")
        project.write("t", "b.parquet", frame(list(batch.items())))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rewrite, "ROWS_PER_FILE", rows_per_file)
            result = project.run_one()
        if not batch and not files:
            continue
        stored = [row for rows in files for row in rows]
        found = sorted(project.table().select("id", "v").rows(), key=str)
        assert found == merged(stored, batch.items())
        updated, inserted = result.rows["rows_updated"], result.rows["rows_inserted"]
        known = {row[0] for row in stored}
        assert inserted == sum(key not in known for key in batch)
        assert updated + result.rows["rows_unchanged"] == len(batch) - inserted


def test_files_that_hold_none_of_the_keys_are_left_alone(project, one_file_a_group):
    for first in (0, 10, 20):
        rows = [(first, 1), (first + 9, 1)]
        write_deltalake(project.path(), frame(rows).to_arrow(), mode="append")
    before = set(DeltaTable(project.path()).file_uris())
    project.flow(load_type="merge_upsert", merge_keys=["id"])
    project.write("t", "b.parquet", frame([(5, 1), (10, 2), (25, 1)]))
    result = project.run_one()
    assert (result.rows["rows_inserted"], result.rows["rows_updated"]) == (2, 1)
    assert len(before & set(DeltaTable(project.path()).file_uris())) == 2


def test_a_key_that_is_stored_in_several_groups_is_one_row_afterwards(project, one_file_a_group):
    for value in (1, 2):
        write_deltalake(project.path(), frame([(7, value)]).to_arrow(), mode="append")
    project.flow(load_type="merge_upsert", merge_keys=["id"])
    project.write("t", "b.parquet", frame([(7, 1)]))
    result = project.run_one()
    assert project.table().select("id", "v").rows() == [(7, 1)]
    assert result.rows["rows_updated"] == 1
    staged = {path.name for path in (project.root / "lake" / "o").glob("part-*.parquet")}
    live = {uri.rpartition("/")[2] for uri in DeltaTable(project.path()).file_uris()}
    assert live <= staged | live
    assert len([name for name in staged if name not in live]) == 2


def test_rows_to_delete_are_dropped_over_all_groups(project, one_file_a_group):
    for key in (1, 2, 3):
        write_deltalake(project.path(), frame([(key, 0)]).to_arrow(), mode="append")
    project.flow(
        load_type="merge_upsert",
        merge_keys=["id"],
        destination={"configure": {"datacoolie": {"delete_when": "v = 9"}}},
    )
    project.write("t", "b.parquet", frame([(1, 9), (3, 5), (4, 9), (5, 1)]))
    result = project.run_one()
    assert project.table().select("id", "v").sort("id").rows() == [(2, 0), (3, 5), (5, 1)]
    assert (result.rows["rows_deleted"], result.rows["rows_unchanged"]) == (1, 1)
