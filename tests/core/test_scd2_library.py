"""History in tables whose features need the library's own writer."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from datacoolie_core.metadata.options import DestinationOptions

INSTANT = pl.Datetime("us", "UTC")
VALIDITY = ("__valid_from", "__valid_to", "__is_current")


def at(day, month=1):
    return datetime(2025, month, day, tzinfo=UTC)


def versions(*rows, columns=("id", "v"), schema=None, load=1):
    """A batch as the transforms give it: the columns, then the instant."""
    frame = pl.DataFrame(
        list(rows), schema=[*columns, "__valid_from"], orient="row", infer_schema_length=None
    )
    return frame.with_columns(
        *(pl.col(name).cast(kind) for name, kind in (schema or {}).items()),
        pl.col("__valid_from").cast(INSTANT),
        pl.lit(None, dtype=INSTANT).alias("__valid_to"),
        pl.lit(value=True).alias("__is_current"),
        pl.lit(at(load, 6), dtype=INSTANT).alias("__created_at"),
        pl.lit(at(load, 6), dtype=INSTANT).alias("__updated_at"),
        pl.lit(f"run-{load}").alias("__dataflow_run_id"),
    )


@pytest.fixture
def flow(make_dataflow):
    def make(keys=("id",), effective="ts", close=False, **given):
        made = make_dataflow("scd2", keys=keys, **given)
        configure = made.destination.configure.model_copy(
            update={
                "scd2_effective_column": effective,
                "datacoolie": DestinationOptions(scd2_close_missing=close),
            }
        )
        destination = made.destination.model_copy(update={"configure": configure})
        return made.model_copy(update={"destination": destination})

    return make


@pytest.fixture
def keep(lake, flow):
    """Makes a load into the lake's table."""

    def load(frame, *, request=None, **given):
        return lake.write(lake.request(flow(**given), **(request or {})), frame)

    return load


def history(lake, *names):
    return lake.rows(*(names or ("id", "v")), *VALIDITY)


def settings_of(feature):
    names = {
        "deletion vectors": {"delta.enableDeletionVectors": "true"},
        "change data feed": {"delta.enableChangeDataFeed": "true"},
    }
    return names[feature]


@pytest.mark.parametrize("feature", ["deletion vectors", "change data feed", "constraints"])
def test_tables_that_need_the_library_keep_the_same_history(lake, keep, feature):
    rows = versions((1, "a", at(1)), (1, "b", at(9)), (2, "x", at(1)), (None, "n", at(1)))
    rows = rows.with_columns(pl.col("id").cast(pl.Int64))
    keep(rows)
    if feature == "constraints":
        lake.table.alter.add_constraint({"low": "id IS NULL OR id < 100"})
    else:
        lake.table.alter.set_table_properties(settings_of(feature))
    result = keep(versions((1, "c", at(4)), (1, "a", at(9)), (3, "y", at(1)), (None, "m", at(2))))
    assert history(lake) == [
        (None, "m", at(2), None, True),
        (None, "n", at(1), at(2), False),
        (1, "a", at(1), at(4), False),
        (1, "a", at(9), None, True),
        (1, "c", at(4), at(9), False),
        (2, "x", at(1), None, True),
        (3, "y", at(1), None, True),
    ]
    assert (result.rows_inserted, result.rows_updated, result.rows_deleted) == (3, 3, 0)
    assert not keep(versions((1, "c", at(4)))).committed


def test_rows_that_are_one_now_are_one_in_a_table_that_needs_the_library_too(lake, keep):
    keep(versions((1, "a", at(1)), (1, "b", at(9))))
    lake.table.alter.set_table_properties(settings_of("change data feed"))
    keep(versions((1, "a", at(9))))
    assert history(lake) == [(1, "a", at(1), None, True)]
