"""History through the driver: watermarks, replays, snapshots."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core.plan.chunks import generate_chunks

VALIDITY = ["__valid_from", "__valid_to", "__is_current"]


def at(day, month=1):
    return datetime(2025, month, day, tzinfo=UTC)


def frame(*rows):
    schema = {"id": pl.Int64, "v": pl.String, "ts": pl.Datetime("us", "UTC")}
    return pl.DataFrame(list(rows), schema=schema, orient="row")


def history(project, *names):
    chosen = [*(names or ("id", "v")), *VALIDITY]
    return pl.read_delta(project.path()).select(chosen).sort(chosen[0], "__valid_from").rows()


def events(project, **given):
    """A dataflow over event rows with their own instants."""
    configure = {"scd2_effective_column": "ts", **given.pop("configure", {})}
    destination = {"configure": configure}
    project.flow(load_type="scd2", merge_keys=["id"], destination=destination, **given)


def snapshots(project, **given):
    """A dataflow over whole reads: what is missing is closed, valid from the load."""
    own = {"scd2_close_missing": True, **given.pop("own", {})}
    configure = {"datacoolie": own, **given.pop("configure", {})}
    project.flow(load_type="scd2", merge_keys=["id"], destination={"configure": configure}, **given)


def replace_source(project, rows, name="a.parquet"):
    for old in (project.root / "in" / "t").glob("*"):
        old.unlink()
    project.write("t", name, rows)


def replay(project, start, end, **unit):
    with project.driver() as driver:
        flows = driver.metadata.dataflows
        windows = {
            one.dataflow_id: generate_chunks(start, end, column="ts", **unit) for one in flows
        }
        (result,) = driver.run_replay(flows, windows).dataflows
        return result


def test_a_run_without_a_watermark_can_be_repeated(project):
    """W13."""
    events(project)
    project.write("t", "a.parquet", frame((1, "a", at(1)), (2, "b", at(1))))
    first = project.run_one()
    assert first.rows["rows_inserted"] == 2
    assert project.run_one().status == "succeeded"
    assert history(project) == [(1, "a", at(1), None, True), (2, "b", at(1), None, True)]
    assert DeltaTable(project.path()).version() == 0


def test_columns_of_ours_stand_at_the_end_validity_first(project):
    events(project, transform={"select_columns": ["id", "ts"]})
    project.write("t", "a.parquet", frame((1, "a", at(1))))
    project.run_one()
    assert pl.read_delta(project.path()).columns == [
        "id",
        "ts",
        *VALIDITY,
        "__file_name",
        "__file_path",
        "__file_modification_time",
        "__created_at",
        "__updated_at",
        "__updated_by",
        "__dataflow_run_id",
    ]


def test_late_rows_within_the_look_back_go_into_their_place(project):
    """W14, with a watermark."""
    events(project, watermark=["ts"], source={"configure": {"backward_days": 30}})
    project.write("t", "a.parquet", frame((1, "a", at(1)), (1, "b", at(1, 2))))
    project.run_one()
    project.write("t", "b.parquet", frame((1, "c", at(15))))
    project.run_one()
    assert history(project) == [
        (1, "a", at(1), at(15), False),
        (1, "c", at(15), at(1, 2), False),
        (1, "b", at(1, 2), None, True),
    ]
    assert project.run_one().status == "succeeded"


def test_the_versions_of_a_batch_are_kept_although_merge_keys_would_make_them_one(project):
    """W15; elsewhere the merge keys and the watermark leave the newest row of a key."""
    events(project, watermark=["ts"])
    project.write("t", "a.parquet", frame((1, "a", at(1)), (1, "b", at(2)), (1, "c", at(3))))
    project.run_one()
    assert [row[1] for row in history(project)] == ["a", "b", "c"]


def test_the_watermark_stands_in_for_the_instant(project):
    project.flow(load_type="scd2", merge_keys=["id"], watermark=["ts"])
    project.write("t", "a.parquet", frame((1, "a", at(1)), (1, "b", at(2))))
    project.run_one()
    assert history(project) == [(1, "a", at(1), at(2), False), (1, "b", at(2), None, True)]


def test_a_null_instant_stops_the_load_and_names_the_key(project):
    """W16."""
    events(project)
    project.write("t", "a.parquet", frame((1, "a", at(1)), (5, "b", None)))
    (result,) = project.run().dataflows
    assert (result.error.phase, result.error.code) == ("transform", "null_effective_value")
    assert "id=5" in result.error.message
    assert not Path(project.path()).exists()


def test_replays_give_the_same_table(project):
    """W17."""
    events(project, watermark=["ts"])
    rows = [(key, f"v{key}{day}", at(day)) for key in range(1, 6) for day in (1, 9)]
    project.write("t", "a.parquet", frame(*rows))
    project.run_one()
    before = history(project)
    for _ in range(2):
        result = replay(project, at(1), at(11), chunk_interval={"days": 5})
        assert result.status in ("succeeded", "skipped")
        assert history(project) == before
    assert len(before) == 10


def test_a_replay_before_any_load_builds_the_history_and_the_load_adds_nothing(project):
    events(project, watermark=["ts"])
    project.write("t", "a.parquet", frame(*((1, f"v{day}", at(day)) for day in range(1, 9))))
    replay(project, at(1), at(9), chunk_interval={"days": 3})
    before = history(project)
    assert [row[1] for row in before] == [f"v{day}" for day in range(1, 9)]
    assert project.run_one().rows["rows_written"] == 0
    assert history(project) == before


def test_a_replay_corrects_and_keeps_what_the_source_has_forgotten(project):
    """A source that holds only the newest row of a key must not take the older ones away."""
    events(project, watermark=["ts"])
    project.write("t", "a.parquet", frame((1, "a", at(1)), (2, "x", at(2))))
    project.run_one()
    replace_source(project, frame((1, "b", at(5)), (2, "X", at(2))))
    project.run_one()
    replay(project, at(1), at(6), chunk_interval={"days": 1})
    assert history(project) == [
        (1, "a", at(1), at(5), False),
        (1, "b", at(5), None, True),
        (2, "X", at(2), None, True),
    ]


def test_a_full_refresh_reads_everything_and_forgets_nothing(project):
    events(project, watermark=["ts"])
    project.write("t", "a.parquet", frame((1, "a", at(1))))
    project.run_one()
    replace_source(project, frame((1, "b", at(5))))
    project.run_one(full_refresh=True)
    assert history(project) == [(1, "a", at(1), at(5), False), (1, "b", at(5), None, True)]


def test_a_load_time_replay_is_refused(project):
    project.flow(load_type="scd2", merge_keys=["id"])
    project.write("t", "a.parquet", frame((1, "a", at(1))))
    project.run_one()
    result = replay(project, at(1), at(3), chunk_interval={"days": 1})
    assert result.status == "failed"
    assert "scd2_effective_column" in str(result.error)
    assert len(history(project)) == 1


def test_a_row_that_disappears_and_returns_has_two_versions_of_the_same_values(project):
    """scd2-row-comes-back."""
    snapshots(project)
    both = pl.DataFrame({"id": [1, 2], "c1": ["foo", "bar"]})
    replace_source(project, both)
    project.run_one()
    replace_source(project, both.tail(1))
    gone = project.run_one()
    assert (gone.rows["rows_updated"], gone.rows["rows_inserted"]) == (1, 0)
    replace_source(project, both)
    project.run_one()
    first, again, second = history(project, "id", "c1")
    assert [row[:2] for row in (first, again, second)] == [(1, "foo"), (1, "foo"), (2, "bar")]
    assert first[2] == second[2] < first[3] < again[2]
    assert (again[3], second[3]) == (None, None)
    assert project.run_one().status == "succeeded"


def test_an_emptied_source_closes_all_keys_only_if_asked_to(project):
    rows = pl.DataFrame({"id": [1, 2], "c1": ["foo", "bar"]})
    snapshots(project)
    replace_source(project, rows)
    project.run_one()
    replace_source(project, rows.clear())
    assert project.run_one().status == "skipped"
    assert all(row[-1] for row in history(project, "id"))
    snapshots(project, own={"empty_source": "overwrite"})
    result = project.run_one()
    assert (result.status, result.rows["rows_updated"]) == ("succeeded", 2)
    assert not any(row[-1] for row in history(project, "id"))


def test_missing_keys_of_a_shared_table_are_not_closed(project):
    snapshots(project, name="one")
    snapshots(project, name="two", source_table="u")
    project.write("t", "a.parquet", pl.DataFrame({"id": [1]}))
    project.write("u", "a.parquet", pl.DataFrame({"id": [2]}))
    for result in project.run().dataflows:
        assert result.error.code == "shared_destination"


def test_names_that_are_cleaned_or_renamed_are_followed(project):
    project.flow(
        load_type="scd2",
        merge_keys=["Order ID"],
        destination={"configure": {"scd2_effective_column": '"Updated At"'}},
        transform={"rename_columns": {"Updated At": "Changed At"}},
    )
    for day in (1, 2):
        rows = {"Order ID": [1], "Größe (cm)": [5], "Updated At": [at(day)]}
        replace_source(project, pl.DataFrame(rows))
        result = project.run_one()
    assert result.status == "succeeded"
    assert history(project, "order_id", "größe_cm", "changed_at") == [
        (1, 5, at(1), at(1), None, True)
    ]


def test_a_fixed_instant_of_the_first_load_is_not_remembered(project):
    """scd2-fixed-boundary-sticks."""
    project.flow(
        load_type="scd2",
        merge_keys=["id"],
        destination={"configure": {"scd2_effective_column": "DATE '2024-12-12'"}},
    )
    replace_source(project, pl.DataFrame({"id": [1], "v": [1]}))
    project.run_one()
    project.flow(load_type="scd2", merge_keys=["id"])
    replace_source(project, pl.DataFrame({"id": [1], "v": [2]}))
    before = datetime.now(UTC)
    project.run_one()
    old, new = history(project)
    assert old[2] == datetime(2024, 12, 12, tzinfo=UTC)
    assert before <= old[3] == new[2] <= datetime.now(UTC)


EVENTS = st.lists(
    st.tuples(st.sampled_from([1, 2]), st.integers(1, 20), st.sampled_from("ab")),
    min_size=1,
    max_size=10,
    unique_by=lambda one: one[:2],
)


@given(EVENTS, st.randoms())
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_loads_replays_and_full_reads_in_any_mixture_end_in_one_history(new_project, made, random):
    whole, mixed = new_project(), new_project()
    rows = sorted(made, key=lambda one: one[1])
    for project in (whole, mixed):
        events(project, watermark=["ts"])
    whole.write("t", "a.parquet", frame(*((k, v, at(day)) for k, day, v in rows)))
    whole.run_one()
    cuts = sorted(random.sample(range(1, 21), 3))
    for low, high in zip([0, *cuts], [*cuts, 21], strict=True):
        part = [(k, v, at(day)) for k, day, v in rows if low < day <= high]
        mixed.write("t", f"p{low}.parquet", frame(*part))
        for what in random.sample(["run", "replay", "refresh"], 2):
            if what == "run":
                mixed.run_one()
            elif what == "refresh":
                mixed.run_one(full_refresh=True)
            else:
                replay(mixed, at(1), at(21), chunk_interval={"days": random.randint(2, 9)})
    mixed.run_one()
    assert history(mixed) == history(whole)


def test_rows_with_the_same_instant_as_the_watermark_are_read_again_and_known(project):
    """W2."""
    events(project, watermark=["ts"])
    project.write("t", "a.parquet", frame((1, "a", at(1))))
    project.run_one()
    project.write("t", "b.parquet", frame((2, "b", at(1))))
    result = project.run_one()
    assert result.rows["rows_inserted"] == 1
    assert [row[0] for row in history(project)] == [1, 2]


def test_an_hour_that_the_clock_shows_twice_keeps_its_order(project):
    events(project, transform={"configure": {"timestamp_timezone": "Europe/Berlin"}})
    base = datetime(2025, 10, 26, 0, 30, tzinfo=UTC)
    rows = frame((1, "a", base), (1, "b", base + timedelta(hours=1)))
    project.write("t", "a.parquet", rows)
    project.run_one()
    (_, _, since, until, _), (_, _, after, _, _) = history(project)
    assert (until - since, after) == (timedelta(hours=1), until)


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("extra", [0, 1])
def test_an_instant_that_the_table_can_not_hold_is_an_error(project, zone, extra):
    events(project, transform={"drop_columns": ["ts"]})
    moment = pl.Series([int(at(1).timestamp()) * 10**9 + extra])
    made = moment.cast(pl.Datetime("ns", zone))
    project.write("t", "a.parquet", pl.DataFrame({"id": [1], "ts": made}))
    (result,) = project.run().dataflows
    if extra:
        assert result.error.code == "value_lost"
        assert "__valid_from" in result.error.message
    else:
        assert history(project, "id") == [(1, at(1), None, True)]
