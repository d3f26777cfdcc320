"""From the source's columns to the destination's."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest

from datacoolie_core import registry
from datacoolie_core.errors import TransformError
from datacoolie_core.transforms.apply import TransformContext, apply
from datacoolie_core.transforms.slots import Slot

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
CONTEXT = TransformContext(run_id="run-1", now=NOW)
SYSTEM = ["__created_at", "__updated_at", "__updated_by", "__dataflow_run_id"]


def shaped(reading, frame: pl.DataFrame, **given) -> pl.DataFrame:
    """Return the transformed frame with its system columns."""
    lazy, _ = apply(frame.lazy(), reading.flow(**given), CONTEXT)
    return lazy.collect(engine="streaming")


def rows(reading, frame: pl.DataFrame, **given) -> list[dict]:
    return shaped(reading, frame, **given).drop(SYSTEM).to_dicts()


def refused(reading, frame: pl.DataFrame, **given) -> str:
    with pytest.raises(TransformError) as caught:
        apply(frame.lazy(), reading.flow(**given), CONTEXT)
    return str(caught.value)


# Types


def test_hints_type_the_columns_that_they_name_in_any_case(reading):
    frame = pl.DataFrame({"ID": ["1"], "Amount": ["2.50"], "note": ["x"]})
    found = rows(reading, frame, hints={"id": "INT", "amount": "DECIMAL(10,2)"})
    assert found == [{"id": 1, "amount": Decimal("2.50"), "note": "x"}]


def test_a_hint_for_a_column_that_is_not_there_is_refused_with_the_name_meant(reading):
    message = refused(reading, pl.DataFrame({"amount": ["1"]}), hints={"amuont": "INT"})
    assert message == (
        "transform, transform.schema_hints: there is no column 'amuont'. Did you mean 'amount'?"
    )


def test_missing_columns_can_be_ignored(reading):
    transform = {
        "configure": {"missing_column_policy": "ignore"},
        "drop_columns": ["gone"],
        "rename_columns": {"away": "x"},
    }
    frame = pl.DataFrame({"a": ["1"]})
    assert rows(
        reading, frame, hints={"b": "INT"}, transform={"schema_hints": [], **transform}
    ) == [{"a": "1"}]


def test_hints_can_be_switched_off(reading):
    off = {"use_schema_hint": False}
    assert rows(reading, pl.DataFrame({"a": ["1"]}), hints={"a": "INT"}, connection=off) == [
        {"a": "1"}
    ]


def test_a_default_value_stands_in_for_null(reading):
    """W65."""
    hints = {"a": {"data_type": "DECIMAL(10,2)", "default_value": "1.5"}}
    found = rows(reading, pl.DataFrame({"a": ["2", None]}), hints=hints)
    assert found == [{"a": Decimal("2.00")}, {"a": Decimal("1.50")}]


@pytest.mark.parametrize(
    "hint",
    [
        {"data_type": "DATE", "format": "yyyy-QQ"},
        {"data_type": "INT", "default_value": "many"},
        {"data_type": "DECIMAL(10,2)", "default_value": "1.234"},
    ],
)
def test_a_hint_that_can_not_be_applied_is_refused_before_anything_is_read(reading, hint):
    hint = {"column_name": "a", **hint}
    flow = reading.flow()
    from datacoolie_core.metadata.models import SchemaHint

    transform = flow.transform.model_copy(update={"schema_hints": (SchemaHint(**hint),)})
    with pytest.raises(TransformError, match="can't be applied"):
        apply(pl.LazyFrame({"a": ["x"]}), flow.model_copy(update={"transform": transform}), CONTEXT)


def test_local_times_become_instants_if_asked(reading):
    frame = pl.DataFrame({"t": [datetime(2024, 7, 1, 12)], "d": [date(2024, 7, 1)]})
    configure = {"convert_timestamp_ntz": True, "timestamp_timezone": "America/New_York"}
    found = rows(reading, frame, transform={"configure": configure})
    assert found == [{"t": datetime(2024, 7, 1, 16, tzinfo=UTC), "d": date(2024, 7, 1)}]
    assert rows(reading, frame) == frame.to_dicts()


# One row a key

KEYED = {"deduplicate_columns": ["K"], "latest_data_columns": ["TS"]}


def test_the_newest_row_of_a_key_stays(reading):
    frame = pl.DataFrame({"k": [1, 1, 2], "ts": [1, 2, 1], "v": ["old", "new", "only"]})
    found = rows(reading, frame, transform=KEYED)
    assert sorted((row["k"], row["v"]) for row in found) == [(1, "new"), (2, "only")]


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_row_without_an_order_value_is_the_oldest(reading, nothing):
    """W23."""
    frame = pl.DataFrame(
        {"k": [1, 1, 2], "ts": [nothing, 5.0, nothing], "v": ["null", "five", "only"]}
    )
    found = rows(reading, frame, transform=KEYED)
    assert sorted((row["k"], row["v"]) for row in found) == [(1, "five"), (2, "only")]


def test_null_keys_are_one_key(reading):
    frame = pl.DataFrame({"k": [None, None], "ts": [1, 2]}, schema={"k": pl.Int64, "ts": pl.Int64})
    assert rows(reading, frame, transform=KEYED) == [{"k": None, "ts": 2}]


def test_ties_are_settled_by_the_other_columns_whatever_the_order_of_rows(reading):
    """W25."""
    frame = pl.DataFrame(
        {
            "k": [n % 7 for n in range(500)],
            "ts": [1] * 500,
            "v": list(range(500)),
            "n": [None] * 500,
        }
    )
    results = [
        sorted(tuple(row.values()) for row in rows(reading, frame.sample(fraction=1, shuffle=True, seed=seed), transform=KEYED))
        for seed in (1, 2, 3)
    ]  # fmt: skip
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 7


def test_rank_keeps_the_rows_that_tie(reading):
    """W24."""
    transform = {**KEYED, "configure": {"deduplicate_by_rank": True}}
    frame = pl.DataFrame({"k": [1, 1, 1, 2, 2], "ts": [5, 5, 4, None, None], "v": [1, 2, 3, 4, 5]})
    found = rows(reading, frame, transform=transform)
    assert sorted(row["v"] for row in found) == [1, 2, 4, 5]


def test_merge_keys_and_watermark_are_what_is_meant_without_more_words(reading):
    merge = {"load_type": "merge_upsert", "merge_keys": ["id"]}
    frame = pl.DataFrame({"id": [1, 1], "ts": [1, 2]})
    assert rows(reading, frame, destination=merge, watermark=["ts"]) == [{"id": 1, "ts": 2}]
    assert len(rows(reading, frame, destination=merge)) == 2


def test_numbers_in_text_are_ordered_as_numbers(reading):
    frame = pl.DataFrame({"k": [1, 1], "ts": ["9", "10"]})
    assert rows(reading, frame, transform=KEYED) == [{"k": 1, "ts": "10"}]


# Computed columns and filter


def test_computed_columns_may_use_earlier_ones_and_replace_others(reading):
    columns = [
        {"column": "double", "expression": "Amount * 2"},
        {"column": "AMOUNT", "expression": "double + 1"},
    ]
    frame = pl.DataFrame({"amount": [2]})
    assert rows(reading, frame, transform={"additional_columns": columns}) == [
        {"amount": 5, "double": 4}
    ]


def test_names_in_another_case_are_found_inside_expressions(reading):
    frame = pl.DataFrame({"Order ID": [1, 2], "Kind": ["Kind", "b"], "kind_of": [1, 1]})
    transform = {"filter_expression": "kind = 'Kind' AND \"order id\" = kind_of"}
    assert rows(reading, frame, transform=transform) == [
        {"order_id": 1, "kind": "Kind", "kind_of": 1}
    ]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("amuont > 1", "there is no column 'amuont' in `amuont > 1`. Did you mean 'amount'?"),
        ("amount > > 1", "in `amount > > 1`. Correct the expression"),
        ("no_such_function(amount)", "no_such_function"),
    ],
)
def test_a_wrong_expression_is_refused_with_its_place(reading, expression, says):
    flow = reading.flow()
    transform = flow.transform.model_copy(update={"filter_expression": expression})
    with pytest.raises(TransformError) as caught:
        apply(
            pl.LazyFrame({"amount": [1]}), flow.model_copy(update={"transform": transform}), CONTEXT
        )
    assert "transform.filter_expression: " in str(caught.value)
    assert says in str(caught.value)
    assert not caught.value.retryable


def test_an_expression_over_the_wrong_type_is_refused_before_anything_is_read(reading):
    columns = [{"column": "x", "expression": "amount + 1"}]
    message = refused(
        reading, pl.DataFrame({"amount": ["1"]}), transform={"additional_columns": columns}
    )
    assert message.startswith("transform, transform.additional_columns[0].expression: ")
    assert "in `amount + 1`" in message


# System columns


def test_system_columns_stand_at_the_end_and_are_the_products_own(reading):
    frame = pl.DataFrame(
        {"__file_name": ["f"], "__Updated_By": ["somebody"], "__created_at": ["never"], "a": [1]}
    )
    found = shaped(reading, frame)
    assert found.columns == ["a", "__file_name", *SYSTEM]
    assert found.row(0) == (1, "f", NOW, NOW, "DataCoolie", "run-1")
    assert found.schema["__created_at"] == pl.Datetime("us", "UTC")


def test_system_columns_of_the_source_order_rows_before_they_are_replaced(reading):
    frame = pl.DataFrame({"id": [1, 1], "__updated_at": [2, 1], "v": ["new", "old"]})
    merge = {"load_type": "merge_upsert", "merge_keys": ["id"]}
    found = rows(reading, frame, destination=merge, watermark=["__updated_at"])
    assert found == [{"id": 1, "v": "new"}]


# Partitions


def test_partition_columns_are_computed_and_stand_before_the_system_columns(reading):
    partition = [{"column": "year", "expression": "EXTRACT(YEAR FROM day)"}]
    frame = pl.DataFrame({"day": [date(2024, 5, 1)], "__file_name": ["f"]})
    found = shaped(reading, frame, destination={"partition_columns": partition})
    assert found.columns == ["day", "year", "__file_name", *SYSTEM]
    assert found["year"].to_list() == [2024]


@pytest.mark.parametrize(
    "destination",
    [
        {"partition_columns": ["regin"]},
        {"load_type": "merge_upsert", "merge_keys": ["regin"]},
    ],
)
def test_a_key_that_is_not_in_the_data_is_refused_at_the_first_load(reading, destination):
    """W52."""
    message = refused(reading, pl.DataFrame({"region": [1]}), destination=destination)
    assert "there is no column 'regin' after the transforms. Did you mean 'region'?" in message


@pytest.mark.parametrize("key", ["Order ID", "order_id", "ORDER_ID"])
def test_a_key_may_be_written_as_in_the_source_or_as_in_the_table(reading, key):
    """W53."""
    frame = pl.DataFrame({"Order ID": [1]})
    assert rows(reading, frame, destination={"load_type": "merge_upsert", "merge_keys": [key]}) == [
        {"order_id": 1}
    ]


# Projection and names


def test_selected_columns_come_in_their_order_and_keep_the_system_columns(reading):
    frame = pl.DataFrame({"a": [1], "b": [2], "c": [3], "__file_name": ["f"]})
    transform = {"select_columns": ["C", "a"], "rename_columns": {"c": "Sea"}}
    found = shaped(reading, frame, transform=transform)
    assert found.columns == ["sea", "a", "__file_name", *SYSTEM]


def test_dropped_columns_are_gone(reading):
    frame = pl.DataFrame({"a": [1], "B": [2]})
    assert rows(reading, frame, transform={"drop_columns": ["b"]}) == [{"a": 1}]


@pytest.mark.parametrize("field", ["select_columns", "drop_columns"])
def test_a_projection_of_a_column_that_is_not_there_is_refused(reading, field):
    message = refused(reading, pl.DataFrame({"amount": [1]}), transform={field: ["amuont"]})
    assert f"transform.{field}: there is no column 'amuont'. Did you mean 'amount'?" in message


def test_a_rename_may_not_hide_another_column(reading):
    frame = pl.DataFrame({"a": [1], "B": [2]})
    message = refused(reading, frame, transform={"rename_columns": {"a": "b"}})
    assert "'a' can't be renamed to 'b': there is a column 'B'" in message


def test_two_columns_may_swap_their_names(reading):
    frame = pl.DataFrame({"a": [1], "b": [2]})
    flow = reading.flow()
    transform = flow.transform.model_copy(update={"rename_columns": {"a": "b", "b": "a"}})
    lazy, _ = apply(frame.lazy(), flow.model_copy(update={"transform": transform}), CONTEXT)
    assert lazy.collect().select("a", "b").rows() == [(2, 1)]


def test_names_keep_the_letters_of_every_script(reading):
    """W69."""
    frame = pl.DataFrame({"Ünïcode Näme": [1], "数量 (kg)": [2], "2nd": [3]})
    assert list(rows(reading, frame)[0]) == ["ünïcode_näme", "数量_kg", "_2nd"]


def test_names_that_become_one_are_refused(reading):
    frame = pl.DataFrame({"Order ID": [1], "order-id": [2]})
    message = refused(reading, frame)
    assert "the columns 'Order ID', 'order-id' would all be called 'order_id'" in message


def test_names_that_differ_in_case_only_are_refused_even_uncleaned(reading):
    frame = pl.DataFrame({"ID": [1], "id": [2]})
    none = {"configure": {"column_name_mode": "none"}}
    assert "would all be called" in refused(reading, frame, transform=none)


# The mechanism


def test_the_record_names_the_slots_that_did_something(reading):
    flow = reading.flow(
        hints={"a": "INT"},
        transform={
            "schema_hints": [{"column_name": "A b", "data_type": "INT"}],
            "filter_expression": "1 = 1",
        },
    )
    _, applied = apply(pl.LazyFrame({"A b": ["1"]}), flow, CONTEXT)
    assert applied == ("schema", "filter", "system", "names")


@pytest.fixture
def plugin():
    def register(number: int) -> None:
        slot = Slot(
            number,
            "shout",
            lambda _flow: True,
            lambda shaped, _flow, _context: shaped.with_frame(
                shaped.frame.with_columns(pl.col("word").str.to_uppercase())
            ),
        )
        registry.transforms.register("shout", slot)

    yield register
    registry.transforms.unregister("shout")


def test_a_plug_in_takes_a_free_slot(reading, plugin):
    plugin(45)
    columns = [{"column": "word", "expression": "'quiet'"}]
    frame = pl.DataFrame({"a": [1]})
    flow = reading.flow(transform={"additional_columns": columns})
    lazy, applied = apply(frame.lazy(), flow, CONTEXT)
    assert lazy.collect()["word"].to_list() == ["QUIET"]
    assert applied == ("columns", "shout", "system")


def test_a_plug_in_on_a_slot_that_is_taken_is_refused(reading, plugin):
    plugin(20)
    assert "the plug-in 'shout' takes slot 20" in refused(reading, pl.DataFrame({"word": ["a"]}))


@pytest.mark.parametrize(
    "given",
    [
        {"transform": {"value_rules": [{"operation": "trim", "columns": ["a"]}]}},
        {"transform": {"hash_columns": [{"target_column": "h", "columns": ["a"]}]}},
        {"transform": {"masking_rules": [{"method": "nullify", "columns": ["b"]}]}},
    ],
)
def test_what_is_not_built_yet_is_refused_not_ignored(reading, given):
    message = refused(reading, pl.DataFrame({"a": ["x"], "b": ["x"]}), **given)
    assert "this version can't do that yet" in message


def test_nothing_is_computed_before_the_frame_is_consumed(reading):
    def exploding(_frame: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError("computed")

    schema = {"k": pl.Int64, "ts": pl.Int64}
    frame = pl.LazyFrame({"k": [1], "ts": [1]}).map_batches(exploding, schema=schema)
    flow = reading.flow(hints={"k": "STRING"}, transform=KEYED)
    lazy, _ = apply(frame, flow, CONTEXT)
    with pytest.raises(AssertionError, match="computed"):
        lazy.collect()
