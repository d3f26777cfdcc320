"""Sources in folders that are named after dates."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given, strategies as st

from datacoolie_core import create_driver
from datacoolie_core.errors import MetadataError
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.plan.columns import DATE_FOLDER
from datacoolie_core.readers.date_folders import date_pattern

KEY = DATE_FOLDER


class Dated:
    """A source of dated folders, loaded into a table."""

    def __init__(self, root, pattern="{year}/{month}/{day}", place="delta", **flow):
        self.root, self.place = root, place
        source = {"connection_name": "in", "table": "t", **flow.pop("source", {})}
        destination = {"connection_name": "out", "table": "o", "load_type": "append"}
        self.document = {
            "connections": [
                {
                    "name": "in",
                    "format": "parquet",
                    "configure": {"base_path": "in", "date_folder_partitions": pattern},
                },
                {"name": "out", "format": place, "configure": {"base_path": "out"}},
            ],
            "dataflows": [
                {
                    "name": "f",
                    "dataflow_id": "f",
                    "source": source,
                    "destination": {**destination, **flow.pop("destination", {})},
                    **flow,
                }
            ],
        }

    def write(self, path, *ids):
        file = self.root / "in" / "t" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        pl.DataFrame({"id": list(ids)}).write_parquet(file)
        return file

    def run(self, **options):
        scope = metadata_from_documents([("x", self.document)])
        with create_driver(scope, project_dir=str(self.root)) as driver:
            (result,) = driver.run(**options).dataflows
        return result

    def ids(self):
        folder = self.root / "out" / "o"
        if self.place == "delta":
            frame = pl.read_delta(str(folder))
        else:
            frame = pl.concat(pl.read_parquet(one) for one in sorted(folder.glob("*.parquet")))
        return sorted(frame["id"].to_list())


@pytest.mark.parametrize("place", ["delta", "parquet"])
def test_the_newest_folder_is_not_loaded_again(tmp_path, place):
    """W28: 2, 3, 4 rows from one file."""
    dated = Dated(tmp_path, place=place)
    dated.write("2025/01/30/a.parquet", 1)
    dated.write("2025/01/31/a.parquet", 2)
    first = dated.run()
    assert first.state.watermark == {KEY: "2025-01-31T00:00:00+00:00"}
    for _ in range(2):
        again = dated.run()
        assert (again.status, again.reason) == ("skipped", "no new rows")
    assert dated.ids() == [1, 2]


@pytest.mark.parametrize("place", ["delta", "parquet"])
def test_a_late_file_of_the_newest_folder_is_loaded_once(tmp_path, place):
    dated = Dated(tmp_path, place=place)
    dated.write("2025/01/31/a.parquet", 1, 2)
    dated.run()
    dated.write("2025/01/31/b.parquet", 3)
    dated.write("2025/02/01/a.parquet", 4)
    assert dated.run().rows["rows_read"] == 2
    assert dated.run().status == "skipped"
    assert dated.ids() == [1, 2, 3, 4]


def test_older_folders_are_not_even_listed(tmp_path, monkeypatch):
    dated = Dated(tmp_path)
    for year in (2022, 2023, 2024):
        for month in range(1, 13):
            dated.write(f"{year}/{month:02}/01/a.parquet", year * 100 + month)
    dated.run()
    dated.write("2025/01/01/a.parquet", 202501)
    opened = []
    import os

    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: opened.append(str(path)) or scandir(path))
    assert dated.run().rows["rows_read"] == 1
    looked = {
        path.partition("/t/")[2]
        for path in opened
        if "/in/t/" in path and "_datacoolie" not in path
    }
    assert looked == {"2024", "2024/12", "2024/12/01", "2025", "2025/01", "2025/01/01"}


def test_a_changed_file_of_the_newest_folder_adds_only_the_rows_that_are_new(tmp_path):
    dated = Dated(tmp_path)
    dated.write("2025/01/31/a.parquet", 1, 2)
    dated.run()
    dated.write("2025/01/31/a.parquet", 1, 2, 3)
    assert dated.run().rows["rows_inserted"] == 1
    assert dated.ids() == [1, 2, 3]


def test_an_imported_position_reads_its_folder_and_doubles_nothing(tmp_path):
    """The framework's watermark says the folder, and not which files of it are loaded."""
    dated = Dated(tmp_path)
    dated.write("2025/01/31/a.parquet", 1, 2)
    scope = metadata_from_documents([("x", dated.document)])
    dated.run()
    with create_driver(scope, project_dir=str(tmp_path)) as driver:
        (flow,) = driver.metadata.dataflows
        state = driver.watermarks.show(flow).effective.evolve(files=None)
        driver.watermarks.store.save(state.evolve(sequence=state.sequence + 1))
    dated.write("2025/01/31/b.parquet", 3)
    dated.run()
    assert dated.ids() == [1, 2, 3]


def test_a_look_back_reads_late_files_of_older_folders_and_doubles_nothing(tmp_path):
    """W29, with a look-back over folders."""
    source = {"configure": {"backward": {"days": 2}}}
    dated = Dated(tmp_path, source=source)
    dated.write("2025/01/28/a.parquet", 0)
    dated.write("2025/01/30/a.parquet", 1)
    dated.write("2025/01/31/a.parquet", 2)
    dated.run()
    dated.write("2025/01/27/late.parquet", 9)
    dated.write("2025/01/30/late.parquet", 3)
    result = dated.run()
    assert result.rows["rows_inserted"] == 1
    assert result.state.watermark == {KEY: "2025-01-31T00:00:00+00:00"}
    assert dated.ids() == [0, 1, 2, 3]


def test_a_registry_finds_late_files_in_any_folder(tmp_path):
    """W29: a late file in an older dated folder, and one that was copied with an old time."""
    dated = Dated(tmp_path, source={"configure": {"datacoolie": {"file_registry": True}}})
    dated.write("2025/01/31/a.parquet", 1)
    dated.run()
    dated.write("2024/06/01/late.parquet", 2)
    dated.run()
    assert dated.run().status == "skipped"
    assert dated.ids() == [1, 2]


def test_dated_folders_may_become_a_registry(tmp_path):
    dated = Dated(tmp_path)
    dated.write("2025/01/30/a.parquet", 1)
    dated.write("2025/01/31/a.parquet", 2)
    dated.run()
    dated.write("2025/01/01/late.parquet", 3)
    options = {"configure": {"datacoolie": {"file_registry": True}}}
    dated.document["dataflows"][0]["source"] |= options
    dated.run()
    assert dated.run().status == "skipped"
    assert dated.ids() == [1, 2, 3]


def test_an_overwrite_takes_the_whole_newest_folder(tmp_path):
    dated = Dated(tmp_path, destination={"load_type": "overwrite"})
    dated.write("2025/01/31/a.parquet", 1)
    dated.run()
    dated.write("2025/01/31/b.parquet", 2)
    dated.run()
    assert dated.run().status == "skipped"
    assert dated.ids() == [1, 2]


def test_a_folder_far_in_the_future_does_not_move_the_watermark(tmp_path):
    options = {"configure": {"datacoolie": {"max_watermark": "now + 1d"}}}
    dated = Dated(tmp_path, source=options)
    dated.write("9999/12/31/a.parquet", 1)
    dated.write("2024/01/01/a.parquet", 2)
    dated.run()
    dated.write("2024/01/02/a.parquet", 3)
    dated.run()
    assert dated.run().status == "skipped"
    assert dated.ids() == [1, 2, 3]


def test_the_folder_can_be_set_by_hand(tmp_path):
    dated = Dated(tmp_path)
    for day in ("01", "02", "03"):
        dated.write(f"2025/01/{day}/a.parquet", int(day))
    dated.run()
    dated.write("2025/01/01/late.parquet", 9)
    scope = metadata_from_documents([("x", dated.document)])
    with create_driver(scope, project_dir=str(tmp_path)) as driver:
        (flow,) = driver.metadata.dataflows
        driver.watermarks.set(flow, {KEY: "2025-01-01"})
    dated.run()
    assert dated.ids() == [1, 2, 3, 9]


def test_rows_with_a_watermark_of_their_own_are_told_by_it(tmp_path):
    dated = Dated(tmp_path, source={"watermark_columns": ["id"]})
    dated.write("2025/01/31/a.parquet", 1, 2)
    first = dated.run()
    assert first.state.watermark == {KEY: "2025-01-31T00:00:00+00:00", "id": 2}
    assert first.state.files is None
    dated.write("2025/01/31/b.parquet", 2, 3)
    dated.write("2025/02/01/a.parquet", 4)
    dated.run()
    assert dated.ids() == [1, 2, 2, 3, 4]


def test_a_full_refresh_reads_every_folder_again(tmp_path):
    dated = Dated(tmp_path)
    dated.write("2025/01/30/a.parquet", 1)
    dated.write("2025/01/31/a.parquet", 2)
    dated.run()
    dated.write("2025/01/29/a.parquet", 0)
    dated.run(full_refresh=True)
    assert dated.ids() == [0, 1, 2]


def test_folders_that_say_no_date_are_an_error_if_there_are_no_others(tmp_path):
    """W30: nothing matched, and the load was skipped without a word."""
    dated = Dated(tmp_path)
    dated.write("2025-01-31/a.parquet", 1)
    result = dated.run()
    assert result.error.code == "no_matching_files"
    assert "no folder looks like '{year}/{month}/{day}': \"2025-01-31/a.parquet\"" in (
        result.error.message.replace("'2025-01-31/a.parquet'", '"2025-01-31/a.parquet"')
    )


def test_files_beside_the_folders_are_told(tmp_path):
    dated = Dated(tmp_path)
    dated.write("2025/01/31/a.parquet", 1)
    dated.write("archive/a.parquet", 2)
    result = dated.run()
    assert [one.code for one in result.warnings] == ["files_outside_pattern"]
    assert dated.ids() == [1]


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("{year}/{month}/{day}", "2025/1/5/a.csv", datetime(2025, 1, 5, tzinfo=UTC)),
        ("{year}{month}{day}", "20250105/a.csv", datetime(2025, 1, 5, tzinfo=UTC)),
        ("{year}-{month}/{day}", "2025-01/05/a.csv", datetime(2025, 1, 5, tzinfo=UTC)),
        ("year={year}/month={month}", "year=2025/month=3/a", datetime(2025, 3, 1, tzinfo=UTC)),
        ("{year}/{month}/{day}/{hour}", "2025/01/05/7/x", datetime(2025, 1, 5, 7, tzinfo=UTC)),
        ("{year}", "2025/deep/a.csv", datetime(2025, 1, 1, tzinfo=UTC)),
        ("{year}/{month}", "2025/13/a.csv", None),
        ("{year}/{month}", "2025/a.csv", None),
        ("{year}/{month}/{day}", "2025/02/30/a.csv", None),
    ],
)
def test_a_pattern_may_have_several_parts_in_a_level_and_lack_zeros(pattern, path, expected):
    """W30."""
    assert date_pattern(pattern).instant_of(path) == expected


@pytest.mark.parametrize("pattern", ["{month}", "{date}", "2025", "{year}/{day}"])
def test_a_pattern_that_says_no_date_is_refused_with_the_metadata(tmp_path, pattern):
    with pytest.raises(MetadataError, match="date_folder_partitions"):
        metadata_from_documents([("x", Dated(tmp_path, pattern=pattern).document)])


@given(
    st.datetimes(datetime(1000, 1, 1), datetime(9999, 1, 1)),
    st.sampled_from(
        ["{year}/{month}/{day}/{hour}", "{year}{month}{day}/{hour}", "d{year}-{month}"]
    ),
)
def test_a_folder_is_read_as_it_is_written(instant, pattern):
    from datacoolie_core.writers.flat.partitions import dated_folder

    found = date_pattern(pattern).instant_of(f"{dated_folder(pattern, instant)}/a.csv")
    zeros = {"minute": 0, "second": 0, "microsecond": 0, "tzinfo": UTC}
    expected = instant.replace(**zeros)
    if "{hour}" not in pattern:
        expected = expected.replace(hour=0, day=1)
    assert found == expected
