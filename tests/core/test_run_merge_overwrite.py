"""merge_overwrite and replay_filter through the whole pipeline."""

from __future__ import annotations

from datetime import UTC, date, datetime

import polars as pl
import pytest

from datacoolie_core.plan.windows import Window

DAYS = [date(2025, 1, day) for day in range(1, 6)]


def orders(*rows):
    schema = {"id": pl.Int64, "d": pl.Date, "v": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def replay(project, name, *bounds):
    """Replay windows of one dataflow, which must succeed."""
    with project.driver() as driver:
        flows = [one for one in driver.metadata.dataflows if one.name == name]
        windows = [Window("d", lower, upper) for lower, upper in bounds]
        (result,) = driver.run_replay(flows, {name: windows}).dataflows
    assert result.status == "succeeded", result.error
    return result


def by_watermark(project, **given):
    destination = {
        "configure": {
            "replace_by_watermark": True,
            **({"datacoolie": given.pop("own")} if "own" in given else {}),
        },
        **given.pop("destination", {}),
    }
    return project.flow(
        load_type="merge_overwrite",
        merge_keys=["id"],
        watermark=["d"],
        source={
            "configure": {"backward": {"days": 1}, **given.pop("source_configure", {})},
            **given.pop("source", {}),
        },
        destination=destination,
        **given,
    )


def test_without_a_watermark_the_keys_of_each_batch_are_replaced(project):
    project.flow(load_type="merge_overwrite", merge_keys=["id"])
    project.write("t", "a.parquet", pl.DataFrame({"id": [1, 1, 2], "v": ["a", "b", "c"]}))
    project.run_one()
    project.write("t", "a.parquet", pl.DataFrame({"id": [1], "v": ["x"]}))
    result = project.run_one()

    assert project.table().rows() == [(1, "x"), (2, "c")]
    assert (result.rows["rows_updated"], result.rows["rows_deleted"]) == (1, 1)


class TestReplaceByWatermark:
    def test_rows_that_vanished_from_what_is_read_again_go(self, project):
        by_watermark(project)
        project.write("t", "a.parquet", orders(*((n, DAYS[n], "old") for n in range(4))))
        project.run_one()
        project.write(
            "t", "a.parquet", orders((0, DAYS[0], "new"), (3, DAYS[3], "new"), (4, DAYS[4], "new"))
        )
        result = project.run_one()

        # read again from day 3 on: id 2 is gone there, id 1 lies below
        assert project.table().rows() == [
            (0, DAYS[0], "old"),
            (1, DAYS[1], "old"),
            (3, DAYS[3], "new"),
            (4, DAYS[4], "new"),
        ]
        assert (
            result.rows["rows_inserted"],
            result.rows["rows_updated"],
            result.rows["rows_deleted"],
        ) == (1, 1, 1)

    def test_an_unchanged_source_changes_nothing(self, project):
        by_watermark(project)
        project.write("t", "a.parquet", orders(*((n, DAYS[n], "old") for n in range(4))))
        version = project.run_one().state.table_version
        result = project.run_one()
        assert (result.status, result.rows["rows_unchanged"]) == ("succeeded", 2)
        assert pl.read_delta(project.path(), version=version).height == 4

    def test_an_emptied_window_is_emptied_by_a_normal_run(self, project):
        """W12: no row is read at all."""
        by_watermark(project)
        project.write("t", "a.parquet", orders(*((n, DAYS[n], "old") for n in range(4))))
        project.run_one()
        project.write("t", "a.parquet", orders((0, DAYS[0], "old"), (1, DAYS[1], "old")))
        result = project.run_one()

        assert project.ids() == [0, 1]
        assert (result.status, result.rows["rows_deleted"]) == ("succeeded", 2)
        again = project.run_one()
        assert (again.status, again.reason) == ("skipped", "no new rows")
        assert project.ids() == [0, 1]

    def test_rows_of_vanished_files_go(self, project):
        """The reader finds not even a file; the window is known from the state."""
        by_watermark(project)
        file = project.write("t", "a.parquet", orders((0, DAYS[0], "a"), (1, DAYS[1], "b")))
        project.run_one()
        file.unlink()
        result = project.run_one()
        assert result.rows["rows_deleted"] == 2
        assert project.ids() == []

    def test_a_replay_replaces_exactly_its_chunks(self, project):
        """W12: the only row of a day was deleted at the source."""
        by_watermark(project)
        project.write("t", "a.parquet", orders(*((n, DAYS[n], "old") for n in range(5))))
        project.run_one()
        project.write(
            "t", "a.parquet", orders(*((n, DAYS[n], "new") for n in (0, 1, 4)), (9, DAYS[1], "new"))
        )
        result = replay(project, "f", (DAYS[1], DAYS[2]), (DAYS[2], DAYS[3]))
        assert [one.rows["rows_deleted"] for one in result.chunks] == [0, 1]

        assert [(row[0], row[2]) for row in project.table().rows()] == [
            (0, "old"),
            (1, "new"),
            (3, "old"),
            (4, "old"),
            (9, "new"),
        ]

    def test_a_full_refresh_replaces_everything(self, project):
        by_watermark(project)
        project.write("t", "a.parquet", orders((0, DAYS[0], "a"), (3, DAYS[3], "b")))
        project.run_one()
        project.write("t", "a.parquet", orders((3, DAYS[3], "c")))
        project.run_one(full_refresh=True)
        assert project.table().rows() == [(3, DAYS[3], "c")]

    def test_created_at_survives(self, project):
        by_watermark(project)
        project.write("t", "a.parquet", orders((0, DAYS[0], "a")))
        project.run_one()
        created = pl.read_delta(project.path())["__created_at"].item()
        project.write("t", "a.parquet", orders((0, DAYS[0], "b")))
        project.run_one()
        row = pl.read_delta(project.path()).row(0, named=True)
        assert (row["v"], row["__created_at"]) == ("b", created)
        assert row["__updated_at"] > created

    def test_a_watermark_column_that_does_not_arrive_is_an_error(self, project):
        by_watermark(project, transform={"drop_columns": ["d"]})
        project.write("t", "a.parquet", orders((0, DAYS[0], "a")))
        project.run()
        (result,) = project.run().dataflows
        assert result.error.code == "column_not_followed"
        assert "drop_columns drop it" in result.error.message

    def test_timestamps_in_another_zone(self, project):
        by_watermark(project)
        at = [datetime(2025, 1, day, 23, 30) for day in (1, 2, 3)]
        frame = pl.DataFrame({"id": [1, 2, 3], "d": at, "v": ["a", "b", "c"]}).with_columns(
            pl.col("d").dt.replace_time_zone("America/New_York")
        )
        project.write("t", "a.parquet", frame)
        project.run_one()
        project.write("t", "a.parquet", frame.filter(pl.col("id") != 2))
        assert project.run_one().rows["rows_deleted"] == 1
        assert project.ids() == [1, 3]


def two_regions(project, load_type="append", **given):
    """Two dataflows that write one table, each its own region."""
    for region in ("eu", "us"):
        flow = {
            "source_table": region,
            "load_type": load_type,
            "destination": {
                "configure": {
                    **given.get("configure", {}),
                    "datacoolie": {"replay_filter": f"Region = '{region}'"},
                }
            },
            "watermark": ["d"],
        }
        if "merge" in load_type:
            flow["merge_keys"] = ["id"]
        if "backward" in given:
            flow["source"] = {"configure": {"backward": given["backward"]}}
        project.flow(region, **flow)


def region(name, *rows):
    return orders(*rows).with_columns(region=pl.lit(name))


class TestReplayFilter:
    @pytest.mark.parametrize("load_type", ["append", "merge_upsert", "merge_overwrite"])
    def test_a_full_refresh_of_a_shared_table_takes_only_its_own_rows(self, project, load_type):
        two_regions(project, load_type)
        project.write("eu", "a.parquet", region("eu", (1, DAYS[0], "a"), (2, DAYS[1], "b")))
        project.write("us", "a.parquet", region("us", (3, DAYS[0], "c"), (4, DAYS[1], "d")))
        assert not project.run().failed
        project.write("eu", "a.parquet", region("eu", (2, DAYS[1], "B")))
        (result,) = project.run(include=["eu"], full_refresh=True).dataflows

        assert result.status == "succeeded", result.error.message
        assert [row[::2] for row in project.table().rows()] == [(2, "B"), (3, "c"), (4, "d")]

    def test_a_replay_of_a_shared_table_takes_only_its_own_rows(self, project):
        two_regions(project)
        project.write("eu", "a.parquet", region("eu", (1, DAYS[0], "a"), (2, DAYS[1], "b")))
        project.write("us", "a.parquet", region("us", (3, DAYS[0], "c"), (4, DAYS[1], "d")))
        project.run()
        project.write("eu", "a.parquet", region("eu", (9, DAYS[0], "x")))
        replay(project, "eu", DAYS[:2])
        assert project.ids() == [2, 3, 4, 9]

    def test_an_overwrite_takes_only_its_own_rows(self, project):
        two_regions(project, "overwrite")
        project.write("eu", "a.parquet", region("eu", (1, DAYS[0], "a")))
        project.write("us", "a.parquet", region("us", (3, DAYS[0], "c")))
        project.run()
        assert project.ids() == [1, 3]

    def test_windows_of_a_shared_table_need_a_filter(self, project):
        two_regions(
            project,
            "merge_overwrite",
            configure={"replace_by_watermark": True},
            backward={"days": 1},
        )
        project.write("eu", "a.parquet", region("eu", (1, DAYS[0], "a"), (2, DAYS[1], "b")))
        project.write("us", "a.parquet", region("us", (3, DAYS[0], "c"), (4, DAYS[1], "d")))
        for _ in range(2):
            assert not project.run().failed
            assert project.ids() == [1, 2, 3, 4]
        for flow in project.flows:
            del flow["destination"]["configure"]["datacoolie"]
        codes = {one.error.code for one in project.run().dataflows}
        assert codes == {"shared_destination"}
        assert project.ids() == [1, 2, 3, 4]

    @pytest.mark.parametrize("load_type", ["append", "merge_upsert", "merge_overwrite"])
    def test_a_row_that_breaks_the_filter_is_an_error(self, project, load_type):
        two_regions(project, load_type)
        project.write("eu", "a.parquet", region("uk", (1, DAYS[0], "a")))
        (result,) = project.run(include=["eu"], full_refresh=True).dataflows
        assert result.error.code == "outside_filter"
        assert "'region' = 'uk'" in result.error.message

    def test_a_filter_that_cannot_be_is_an_error(self, lake):
        batch = pl.DataFrame({"id": [1]})
        with pytest.raises(Exception, match="there is no column 'nope'") as raised:
            lake.load(batch, replay_filter="nope = 1", mode="replace_all")
        assert raised.value.code == "bad_replay_filter"


def test_an_instant_with_an_offset_bounds_what_is_replaced(project):
    """The state holds instants in UTC whatever zone the source shows."""
    by_watermark(project)
    at = [datetime(2025, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    project.write("t", "a.parquet", pl.DataFrame({"id": [1, 2, 3], "d": at}))
    project.run_one()
    project.write("t", "a.parquet", pl.DataFrame({"id": [1, 3], "d": [at[0], at[2]]}))
    assert project.run_one().rows["rows_deleted"] == 1
