"""Tables with features that plain file actions can't serve: the library writes, or it is refused."""

from __future__ import annotations

import json
import struct

import polars as pl
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake

from datacoolie_core.errors import WriteError
from datacoolie_core.plan.windows import Window
from datacoolie_core.writers import delta
from datacoolie_core.writers.request import Overlap

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def deletion_vector(positions):
    """An inline deletion vector, as the Delta protocol and the Roaring format have it."""
    body = struct.pack("<iqI", 1681511377, 1, 0)
    body += struct.pack("<IIHHI", 12346, 1, 0, len(positions) - 1, 16)
    body += b"".join(struct.pack("<H", position) for position in positions)
    body += bytes(-len(body) % 4)
    text = ""
    for start in range(0, len(body), 4):
        number = int.from_bytes(body[start : start + 4], "big")
        text += "".join(Z85[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": len(body),
        "cardinality": len(positions),
    }


def delete_by_vector(lake, positions):
    """What another engine's DELETE leaves: the same file, some rows of it struck out."""
    version = lake.table.version()
    log = lake.path / "_delta_log"
    lines = (log / f"{version:020}.json").read_text().splitlines()
    (add,) = [json.loads(line)["add"] for line in lines if '"add"' in line]
    remove = {
        "path": add["path"],
        "deletionTimestamp": 1,
        "dataChange": True,
        "partitionValues": {},
        "size": add["size"],
    }
    actions = [
        {"commitInfo": {"timestamp": 1, "operation": "DELETE", "operationParameters": {}}},
        {"remove": remove},
        {"add": {**add, "deletionVector": deletion_vector(positions)}},
    ]
    text = "\n".join(json.dumps(action) for action in actions)
    (log / f"{version + 1:020}.json").write_text(text)


ROWS = pl.DataFrame({"id": [1, 2], "v": ["a", "b"]})


def with_constraint(lake):
    write_deltalake(lake.uri, ROWS)
    lake.table.alter.add_constraint({"positive": "id > 0"})


def with_change_feed(lake):
    write_deltalake(lake.uri, ROWS, configuration={"delta.enableChangeDataFeed": "true"})


def with_deletion_vectors(lake):
    write_deltalake(lake.uri, ROWS, configuration={"delta.enableDeletionVectors": "true"})


def with_generated_column(lake):
    double = Field("double", "long", metadata={"delta.generationExpression": "id * 2"})
    DeltaTable.create(lake.uri, Schema([Field("id", "long"), Field("v", "string"), double]))
    write_deltalake(lake.uri, ROWS, mode="append", schema_mode="merge")


def with_invariant(lake):
    rule = json.dumps({"expression": {"expression": "v <> 'bad'"}})
    fields = [Field("id", "long"), Field("v", "string", metadata={"delta.invariants": rule})]
    DeltaTable.create(lake.uri, Schema(fields))
    write_deltalake(lake.uri, ROWS, mode="append")


FEATURES = [
    with_constraint,
    with_change_feed,
    with_deletion_vectors,
    with_generated_column,
    with_invariant,
]


@pytest.fixture(params=FEATURES, ids=lambda make: make.__name__)
def special(lake, request):
    request.param(lake)
    return lake


def check_commit(lake, sequence=1):
    (newest,) = lake.table.history(1)
    assert newest["datacoolie"]["sequence"] == sequence
    assert lake.sequence() == sequence
    doubled = lake.table.schema().fields[-1].name == "double"
    if doubled:
        assert all(double == 2 * i for i, double in lake.rows("id", "double"))


def test_appends_are_right(special):
    result = special.load(pl.DataFrame({"id": [3], "v": ["c"]}))
    assert special.rows("id", "v") == [(1, "a"), (2, "b"), (3, "c")]
    assert result.rows_inserted == 1
    check_commit(special)


def test_merges_are_right(special):
    batch = pl.DataFrame({"id": [1, 2, 3, 4], "v": ["a", "B", "gone", "d"], "new": [None, 1, 1, 1]})
    special.load(pl.DataFrame({"id": [3], "v": ["c"]}))
    result = special.merge(batch, delete_when="v = 'gone'")

    assert special.rows("id", "v", "new") == [(1, "a", None), (2, "B", 1), (4, "d", 1)]
    assert (result.rows_unchanged, result.rows_updated) == (1, 1)
    assert (result.rows_deleted, result.rows_inserted) == (1, 1)
    check_commit_new(special)
    assert not special.merge(batch.filter(pl.col("id") != 3)).committed


def check_commit_new(lake):
    assert lake.table.history(1)[0]["datacoolie"]["sequence"] == 2
    assert lake.sequence() == 2
    assert not [name for name in lake.live() if "run-2" in name]


def test_overwrites_are_right(special):
    if special.table.schema().fields[-1].name == "double":
        pytest.skip("an overwrite replaces the schema, generated columns as well")
    special.load(pl.DataFrame({"id": [7], "v": ["z"]}), "overwrite")
    assert special.rows("id", "v") == [(7, "z")]
    check_commit(special)


def test_windows_are_right(special):
    window = Window("id", 2, 5)
    result = special.load(
        pl.DataFrame({"id": [3], "v": ["c"]}), mode="replace_window", window=window
    )
    assert special.rows("id", "v") == [(1, "a"), (3, "c")]
    assert (result.rows_deleted, result.rows_inserted) == (1, 1)
    check_commit(special)


def test_overlaps_are_right(special):
    result = special.load(pl.DataFrame({"id": [2, 3], "v": ["b", "c"]}), overlap=Overlap("id", 2))
    assert special.rows("id", "v") == [(1, "a"), (2, "b"), (3, "c")]
    assert (result.rows_unchanged, result.rows_inserted) == (1, 1)
    check_commit(special)


def test_null_keys_merge_through_the_library_too(lake):
    with_constraint(lake)
    lake.table.alter.drop_constraint("positive")
    lake.table.alter.add_constraint({"short": "v <> 'far too long'"})
    batch = pl.DataFrame(
        {"id": [None, 1], "v": ["n", "A"]}, schema={"id": pl.Int64, "v": pl.String}
    )
    for _ in range(2):
        lake.merge(batch, required=True)
    assert lake.rows() == [(None, "n"), (1, "A"), (2, "b")]


@pytest.mark.parametrize("load_type", ["append", "merge_upsert"])
@pytest.mark.parametrize(
    ("make", "bad"), [(with_constraint, (-1, "x")), (with_invariant, (5, "bad"))]
)
def test_rows_that_break_a_constraint_are_refused(lake, make, bad, load_type):
    make(lake)
    before = lake.rows()
    keys = ("id",) if load_type == "merge_upsert" else ()
    with pytest.raises(WriteError, match="break a constraint") as raised:
        lake.load(pl.DataFrame([bad], schema=["id", "v"], orient="row"), load_type, keys=keys)
    assert raised.value.code == "constraint_violated"
    assert lake.rows() == before
    assert lake.files() == lake.live()


def test_the_change_feed_tells_of_a_merge(lake):
    with_change_feed(lake)
    lake.merge(pl.DataFrame({"id": [2], "v": ["B"]}))
    changes = pl.DataFrame(lake.table.load_cdf(starting_version=1).read_all())
    assert sorted(changes["_change_type"]) == ["update_postimage", "update_preimage"]


def test_column_mapping_is_refused(lake):
    write_deltalake(lake.uri, ROWS, configuration={"delta.columnMapping.mode": "name"})
    for load_type, keys in (("append", ()), ("overwrite", ()), ("merge_upsert", ("id",))):
        with pytest.raises(WriteError, match="column mapping") as raised:
            lake.load(ROWS, load_type, keys=keys)
        assert raised.value.code == "unsupported_table_feature"


def test_merges_into_an_append_only_table_are_refused_before_reading(lake):
    write_deltalake(lake.uri, ROWS, configuration={"delta.appendOnly": "true"})
    with pytest.raises(WriteError, match="append only"):
        lake.merge(ROWS)
    assert lake.asked == []


def test_a_backtick_that_the_library_cannot_take_is_named(lake):
    write_deltalake(
        lake.uri,
        pl.DataFrame({"id": [1], "tick`s": [1]}),
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    with pytest.raises(WriteError, match="'tick`s' has a backtick"):
        lake.merge(pl.DataFrame({"id": [1], "tick`s": [2]}))


@pytest.mark.parametrize("load_type", ["overwrite", "merge_upsert"])
def test_paths_that_another_engine_spelled_differently_are_not_removed_in_vain(lake, load_type):
    """A removal is spelled by delta-rs: it would not meet the file, and its rows would stay."""
    write_deltalake(lake.uri, pl.DataFrame({"id": [1, 2], "p": ["x!y", "z"]}), partition_by=["p"])
    log = lake.path / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace("p=x%2521y", "p=x%252%31y"))
    keys = ("id",) if load_type == "merge_upsert" else ()

    with pytest.raises(WriteError, match="'p=x%21y/part") as raised:
        lake.load(pl.DataFrame({"id": [1, 3], "p": ["q", "q"]}), load_type, keys=keys)
    assert raised.value.code == "unsupported_path"
    assert lake.rows("id", "p") == [(1, "x!y"), (2, "z")]

    lake.merge(pl.DataFrame({"id": [2], "p": ["q"]}))
    assert lake.rows("id", "p") == [(1, "x!y"), (2, "q")]


@pytest.fixture
def struck(lake):
    """Rows 1 and 4 are left; 2 and 3 are struck out by a deletion vector."""
    frame = pl.DataFrame({"id": [1, 2, 3, 4], "v": ["a", "b", "c", "d"]})
    write_deltalake(
        lake.uri, frame, configuration={"delta.enableDeletionVectors": "true"}, mode="overwrite"
    )
    delete_by_vector(lake, [1, 2])
    assert lake.rows() == [(1, "a"), (4, "d")]
    return lake


def test_rows_that_are_struck_out_stay_gone_after_a_merge(struck):
    result = struck.merge(pl.DataFrame({"id": [2, 4], "v": ["B", "D"]}))
    assert struck.rows() == [(1, "a"), (2, "B"), (4, "D")]
    assert (result.rows_inserted, result.rows_updated) == (1, 1)


def test_rows_that_are_struck_out_are_not_counted_or_compared(struck):
    assert delta.table_row_count(struck.uri) == 2
    assert delta.count_windows(struck.uri, "id", [Window("id", 1, 4)]) == [1]
    result = struck.load(pl.DataFrame({"id": [1, 2], "v": ["a", "b"]}), overlap=Overlap())
    assert (result.rows_inserted, result.rows_unchanged) == (1, 1)
    assert struck.rows() == [(1, "a"), (2, "b"), (4, "d")]
    assert result.table_rows is None


def test_windows_and_overwrites_replace_rows_beside_a_deletion_vector(struck):
    window = Window("id", 3, 9)
    result = struck.load(
        pl.DataFrame({"id": [5], "v": ["e"]}), mode="replace_window", window=window
    )
    assert struck.rows() == [(1, "a"), (5, "e")]
    assert result.rows_deleted == 1
    struck.load(pl.DataFrame({"id": [7], "v": ["z"]}), "overwrite")
    assert struck.rows() == [(7, "z")]
