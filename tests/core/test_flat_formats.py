"""What each format of files keeps: everything that it has a place for, and an error for the rest."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import math
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
import zstandard
from hypothesis import given, settings, strategies as st
from polars.testing import assert_frame_equal

from datacoolie_core.errors import WriteError
from tests.core.flat_files import FORMATS
from tests.core.flat_folder import Folder, ids

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
MOMENT = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1))
BERLIN = pl.Datetime("us", "Europe/Berlin")
PLAIN = {
    pl.Int8(): st.integers(-128, 127),
    pl.UInt32(): st.integers(0, 2**32 - 1),
    pl.Int64(): st.integers(-(2**63), 2**63 - 1),
    pl.UInt64(): st.integers(0, 2**64 - 1),
    pl.Int128(): st.integers(-(10**37), 10**37),
    pl.Float32(): st.floats(width=32, allow_nan=False, allow_infinity=False),
    pl.Float64(): st.floats(allow_nan=False, allow_infinity=False),
    pl.Decimal(12, 3): st.decimals(-(10**6), 10**6, places=3),
    pl.Boolean(): st.booleans(),
    pl.String(): TEXT,
    pl.Date(): st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    pl.Datetime("us"): MOMENT,
    pl.Datetime("ms"): MOMENT.map(lambda one: one.replace(microsecond=0)),
    pl.Datetime("us", "UTC"): MOMENT.map(lambda one: one.replace(tzinfo=dt.UTC)),
    pl.Time(): st.times(),
}
NESTED = {
    pl.List(pl.Int64()): st.lists(st.none() | st.integers(-5, 5), max_size=3),
    pl.List(pl.Date()): st.lists(st.none() | st.dates(), max_size=2),
    pl.Struct({"a": pl.Decimal(5, 2), "b": pl.List(pl.String())}): st.fixed_dictionaries(
        {
            "a": st.none() | st.decimals(-99, 99, places=2),
            "b": st.none() | st.lists(TEXT, max_size=2),
        }
    ),
}
BINARY = {pl.Binary(): st.binary(max_size=5)}
KEPT = {
    "parquet": {**PLAIN, **NESTED, **BINARY},
    "csv": PLAIN,
    "json": {**PLAIN, **NESTED},
    "jsonl": {**PLAIN, **NESTED},
    "avro": {**PLAIN, **NESTED, **BINARY},
}


@st.composite
def frames(draw, form):
    kinds = draw(st.lists(st.sampled_from(list(KEPT[form])), min_size=1, max_size=6))
    rows = draw(st.integers(1, 6))
    columns = {
        f"c{number}": pl.Series(
            [draw(st.none() | KEPT[form][kind]) for _ in range(rows)], dtype=kind, strict=False
        )
        for number, kind in enumerate(kinds)
    }
    return pl.DataFrame({"id": range(rows), **columns})


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=60)
@given(data=st.data())
def test_any_frame_comes_back_as_it_was(form, data, tmp_path_factory):
    frame = data.draw(frames(form))
    folder = Folder(str(tmp_path_factory.mktemp("any") / "t"), form=form)
    folder.load(frame)
    again = folder.frame().sort("id").select(frame.columns)
    kept = frame.cast(dict(zip(again.columns, again.dtypes, strict=True)))
    assert_frame_equal(again, kept)
    if form != "avro":
        assert again.schema == frame.schema


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=25)
@given(
    keys=st.lists(
        st.tuples(
            st.none() | TEXT.filter(bool),
            st.none() | st.dates(dt.date(1000, 1, 1)),
            st.none() | st.decimals(-9, 9, places=2),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_any_partition_value_comes_back_as_it_was(form, keys, tmp_path_factory):
    schema = {"k": pl.String(), "d": pl.Date(), "n": pl.Decimal(5, 2)}
    frame = pl.DataFrame(keys, schema=schema, orient="row").with_row_index("id")
    folder = Folder(str(tmp_path_factory.mktemp("any") / "t"), form=form)
    folder.load(frame, partition_by=("k", "d", "n"))
    again = folder.frame().select(frame.columns).cast({"id": pl.UInt32}).sort("id")
    assert_frame_equal(again, frame)


@pytest.mark.parametrize(
    ("form", "values", "told"),
    [
        ("csv", pl.Series([[1]]), "'x' is array<long>"),
        ("csv", pl.Series([{"a": 1}]), "'x' is struct"),
        ("csv", pl.Series([b"\0"]), "'x' is binary"),
        ("json", pl.Series([b"\0"]), "'x' is binary"),
        ("jsonl", pl.Series([{"a": b"\0"}]), "'x' is struct"),
        ("avro", pl.Series([dt.timedelta(1)]), "'x' is duration"),
        ("csv", pl.Series([dt.timedelta(1)]), "cast it to a whole number"),
        ("parquet", pl.Series([object()], dtype=pl.Object), "'x' is object"),
    ],
)
def test_a_type_that_a_format_lacks_is_refused_with_its_column(tmp_path, form, values, told):
    folder = Folder(str(tmp_path / "t"), form=form)
    with pytest.raises(WriteError) as caught:
        folder.load(pl.DataFrame({"id": [1]}).with_columns(x=values))
    assert caught.value.code == "unsupported_type"
    assert told in str(caught.value)
    assert not Path(folder.uri).exists()


@pytest.mark.parametrize("form", ["json", "jsonl"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("nested", [False, True])
def test_json_refuses_numbers_that_it_would_turn_into_null(tmp_path, form, value, nested):
    folder = Folder(str(tmp_path / "t"), form=form)
    x = [{"deep": [1.0, value]}] if nested else [value]
    with pytest.raises(WriteError, match="column 'x'") as caught:
        folder.load(pl.DataFrame({"id": [1], "x": x}))
    assert caught.value.code == "value_lost"


def test_csv_and_parquet_keep_nan_and_infinity(tmp_path):
    for form in ("csv", "parquet", "avro"):
        folder = Folder(str(tmp_path / form), form=form)
        folder.load(pl.DataFrame({"id": [1, 2, 3], "x": [math.nan, math.inf, -math.inf]}))
        assert [str(one) for one in folder.frame()["x"]] == ["nan", "inf", "-inf"]


def test_avro_refuses_what_it_would_cut(tmp_path):
    folder = Folder(str(tmp_path / "t"), form="avro")
    fine = pl.DataFrame({"id": [1], "x": pl.Series([1]).cast(pl.Time)})
    with pytest.raises(WriteError, match="column 'x'"):
        folder.load(fine)
    nanoseconds = pl.DataFrame({"id": [1], "x": pl.Series([1]).cast(pl.Datetime("ns"))})
    with pytest.raises(WriteError, match=r"column 'x': .* is not exact"):
        folder.load(nanoseconds)
    with pytest.raises(WriteError, match="column 'größe'"):
        folder.load(pl.DataFrame({"id": [1], "größe": [1]}))


def test_avro_files_carry_avro_types(tmp_path):
    import fastavro

    folder = Folder(str(tmp_path / "t"), form="avro")
    moment = dt.datetime(2026, 1, 2, 3, 4, 5, 6, dt.UTC)
    row = {"id": [1], "d": [dt.date(2026, 1, 2)], "m": [moment], "n": [Decimal("1.50")]}
    folder.load(pl.DataFrame(row))
    (path,) = Path(folder.uri).glob("*.avro")
    with path.open("rb") as file:
        (read,) = fastavro.reader(file)
    assert read == {name: values[0] for name, values in row.items()}


def test_json_is_one_document_and_json_lines_are_many(tmp_path):
    rows = pl.DataFrame({"id": [1, 2], "s": ['a"\n', None], "n": [Decimal("1.50"), None]})
    for form in ("json", "jsonl"):
        folder = Folder(str(tmp_path / form), form=form)
        folder.load(rows)
    (one,) = (tmp_path / "json").glob("*.json")
    (lines,) = (tmp_path / "jsonl").glob("*.jsonl")
    expected = [{"id": 1, "s": 'a"\n', "n": "1.50"}, {"id": 2, "s": None, "n": None}]
    assert json.loads(one.read_text()) == expected
    assert [json.loads(line) for line in lines.read_text().splitlines()] == expected


def test_many_batches_make_one_whole_document(tmp_path):
    folder = Folder(str(tmp_path / "t"), form="json")
    folder.load(pl.DataFrame({"id": range(250_000)}))
    (one,) = Path(folder.uri).glob("*.json")
    assert len(json.loads(one.read_text())) == 250_000


@pytest.mark.parametrize("form", ["csv", "json", "jsonl"])
@pytest.mark.parametrize(("name", "ending"), [("gzip", ".gz"), ("zstd", ".zst")])
def test_text_is_compressed_as_one_stream_where_it_is_asked_for(tmp_path, form, name, ending):
    folder = Folder(str(tmp_path / "t"), form=form)
    folder.load(pl.DataFrame({"id": range(250_000)}), options={"compression": name})
    (path,) = Path(folder.uri).glob(f"*.{form}{ending}")
    if name == "gzip":
        text = gzip.decompress(path.read_bytes())
    else:
        with zstandard.open(path, "rb") as file:
            text = file.read()
    assert text.count(b"\n") >= 250_000
    assert folder.ids() == list(range(250_000))


def test_csv_options_shape_the_text_and_are_known_when_it_is_read_back(tmp_path):
    folder = Folder(str(tmp_path / "t"), form="csv")
    options = {"sep": ";", "nullValue": "-", "decimal_comma": True, "header": "false"}
    rows = pl.DataFrame({"id": [1, 2], "x": [1.5, None], "s": ["a;b", ""]})
    folder.load(rows, options=options)
    (path,) = Path(folder.uri).glob("*.csv")
    assert path.read_text() == '1;1,5;"a;b"\n2;-;""\n'
    assert_frame_equal(folder.frame(), rows)


@pytest.mark.parametrize(
    ("form", "options", "told"),
    [
        ("csv", {"separater": ";"}, "no write option 'separater'. Did you mean 'separator'?"),
        ("csv", {"separator": ";;"}, "';;' is no value of the write option 'separator'"),
        ("parquet", {"compression": "rar"}, "'rar' is no value of the write option 'compression'"),
        ("jsonl", {"mergeSchema": True}, "format 'jsonl' has no write option 'mergeSchema'"),
    ],
)
def test_an_unknown_option_is_named(tmp_path, form, options, told):
    folder = Folder(str(tmp_path / "t"), form=form)
    with pytest.raises(WriteError) as caught:
        folder.load(ids(1), options=options)
    assert told in str(caught.value)


@pytest.mark.parametrize("form", FORMATS)
def test_a_column_without_any_value_takes_the_type_of_the_first_one(tmp_path, form):
    """se-all-null-column, for files."""
    folder = Folder(str(tmp_path / "t"), form=form)
    folder.load(pl.DataFrame({"id": [1], "x": [None]}))
    folder.load(pl.DataFrame({"id": [2], "x": [2.5]}))
    folder.load(pl.DataFrame({"id": [3], "x": [None]}))
    assert folder.frame().sort("id").rows() == [(1, None), (2, 2.5), (3, None)]


@pytest.mark.parametrize("form", ["parquet", "csv", "json", "avro"])
def test_an_emptied_folder_keeps_a_file_that_tells_its_columns(tmp_path, form):
    folder = Folder(str(tmp_path / "t"), form=form)
    folder.load(ids(1), "overwrite")
    folder.load(ids(), "overwrite", required=True)
    assert len(folder.look().data) == 1
    assert folder.ids() == []
    assert folder.writer.table_row_count(folder.uri, {}) == 0
    if form == "parquet":
        assert pl.read_parquet(Path(folder.uri) / "*.parquet").schema == {"id": pl.Int64}


def test_a_partition_value_that_reads_as_null_is_refused(tmp_path):
    """pb-null-and-empty-partition-values."""
    for form in ("parquet", "csv"):
        folder = Folder(str(tmp_path / form), form=form)
        with pytest.raises(WriteError, match="partition column 'k' holds the text ''"):
            folder.load(pl.DataFrame({"id": [1], "k": [""]}), partition_by=("k",))
        assert not Path(folder.uri).exists()
