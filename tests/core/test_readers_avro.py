"""Avro files: types, unions, codecs, several schemas, damage."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from datacoolie_core.errors import ReadError
from datacoolie_core.readers import avro_files
from datacoolie_core.readers.avro_blocks import blocks, read_container, small_file
from datacoolie_core.readers.avro_decoders import (
    by_engine,
    by_fastavro,
    engine_decodes,
    undressed,
)
from datacoolie_core.readers.avro_types import arrow_fields, engine_schema

NOON = dt.datetime(2024, 3, 1, 12, 30, 15, 250000, tzinfo=dt.UTC)


def record(**fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "R",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }


def packed(schema: dict[str, Any], rows: list[dict[str, Any]], **given: Any) -> bytes:
    target = io.BytesIO()
    fastavro.writer(target, schema, rows, **given)
    return target.getvalue()


def logical(kind: str, meaning: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": meaning, **more}


def refused(reading, flow) -> str:
    with pytest.raises(ReadError) as caught:
        reading.read(flow)
    return str(caught.value)


_PLAIN = [
    ("boolean", True, pl.Boolean),
    ("int", 7, pl.Int32),
    ("long", 2**60, pl.Int64),
    ("float", 1.5, pl.Float32),
    ("double", 0.1, pl.Float64),
    ("string", "é", pl.String),
    ("bytes", b"\x00\xff", pl.Binary),
]
_LOGICAL = [
    (logical("int", "date"), dt.date(1969, 12, 31), pl.Date),
    (logical("int", "time-millis"), dt.time(1, 2, 3, 4000), pl.Time),
    (logical("long", "time-micros"), dt.time(1, 2, 3, 4), pl.Time),
    (logical("long", "timestamp-millis"), NOON, pl.Datetime("ms", "UTC")),
    (logical("long", "timestamp-micros"), NOON, pl.Datetime("us", "UTC")),
    (logical("long", "local-timestamp-micros"), NOON.replace(tzinfo=None), pl.Datetime("us")),
    (logical("bytes", "decimal", precision=20, scale=2), Decimal("-0.01"), pl.Decimal(20, 2)),
    (logical("string", "uuid"), uuid.UUID(int=5), pl.String),
]
_OTHER = [
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", pl.String),
    ({"type": "fixed", "name": "F", "size": 2}, b"ab", pl.Binary),
    (
        logical("fixed", "decimal", name="D", size=20, precision=38, scale=0),
        Decimal(10**37),
        pl.Decimal(38, 0),
    ),
    ({"type": "array", "items": ["null", "string"]}, ["a", None], pl.List(pl.String)),
    (record(x=["null", "long"]) | {"name": "S"}, {"x": None}, pl.Struct({"x": pl.Int64})),
]


@pytest.mark.parametrize(("kind", "value", "dtype"), [*_PLAIN, *_LOGICAL, *_OTHER])
def test_a_type_has_its_column_type_and_null_is_null(reading, kind, value, dtype):
    schema = record(must=kind, may=["null", kind])
    if isinstance(kind, dict) and "name" in kind:
        schema = record(may=["null", kind])
    names = [field["name"] for field in schema["fields"]]
    rows = [dict.fromkeys(names, value), {name: None if name == "may" else value for name in names}]
    reading.write("t/a.avro", packed(schema, rows))
    frame, _ = reading.read(reading.flow("avro"))
    shown = str(value) if isinstance(value, uuid.UUID) else value
    assert frame["may"].dtype == dtype
    assert frame["may"].to_list() == [shown, None]
    assert set(frame.columns) == set(names)
    assert "must" not in names or frame["must"].to_list() == [shown, shown]


def test_moments_in_nanoseconds_keep_them(reading):
    schema = record(t=logical("long", "timestamp-nanos"))
    reading.write("t/a.avro", packed(schema, [{"t": 1_700_000_000_000_000_001}]))
    frame, _ = reading.read(reading.flow("avro"))
    assert frame.schema["t"] == pl.Datetime("ns", "UTC")
    assert frame["t"].cast(pl.Int64).to_list() == [1_700_000_000_000_000_001]


def test_a_map_is_a_list_of_keys_and_values(reading):
    kind = {"type": "map", "values": ["null", logical("long", "timestamp-micros")]}
    reading.write("t/a.avro", packed(record(m=kind), [{"m": {"x": NOON, "y": None}}, {"m": {}}]))
    assert reading.rows(reading.flow("avro")) == [
        ([{"key": "x", "value": NOON}, {"key": "y", "value": None}],),
        ([],),
    ]


@pytest.mark.parametrize(
    ("union", "values", "dtype", "expected"),
    [
        (["int", "long"], [1, 2**40], pl.Int64, [1, 2**40]),
        (["null", "int", "double"], [1, 0.5, None], pl.Float64, [1.0, 0.5, None]),
        (["null", "int", "string"], [1, "x", None], pl.String, ["1", "x", None]),
        (["boolean", "string"], [True, "x"], pl.String, ["true", "x"]),
        (["null"], [None], pl.Null, [None]),
    ],
)
def test_a_union_has_the_type_that_holds_its_values(reading, union, values, dtype, expected):
    reading.write("t/a.avro", packed(record(u=union), [{"u": value} for value in values]))
    frame, _ = reading.read(reading.flow("avro"))
    assert frame["u"].dtype == dtype
    assert frame["u"].to_list() == expected


def test_a_union_that_rounds_a_number_is_refused(reading):
    schema = record(u=["long", "double"])
    path = reading.write("t/a.avro", packed(schema, [{"u": 2**53 + 1}, {"u": 0.5}]))
    message = refused(reading, reading.flow("avro"))
    assert message.startswith(f"read, {path}, column 'u': ")
    assert str(2**53 + 1) in message


def _itself() -> dict[str, Any]:
    return {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (["boolean", "int"], 1, "field 'a': it is a union of types that share no column"),
        (_itself(), {"next": None}, "field 'a.next': its type 'N' contains itself"),
        (
            logical("bytes", "decimal", precision=40, scale=2),
            Decimal(1),
            "field 'a': no column holds decimal(40,2)",
        ),
    ],
)
def test_a_field_that_no_column_holds_is_named(reading, kind, value, said):
    path = reading.write("t/a.avro", packed(record(a=kind), [{"a": value}]))
    assert refused(reading, reading.flow("avro")).startswith(f"read, {path}: {said}")


def test_a_named_type_may_be_used_again(reading):
    point = {"type": "record", "name": "geo.P", "fields": [{"name": "x", "type": "int"}]}
    reading.write(
        "t/a.avro", packed(record(p=point, q=["null", "geo.P"]), [{"p": {"x": 1}, "q": None}])
    )
    assert reading.rows(reading.flow("avro")) == [({"x": 1}, None)]


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz", "zstandard", "snappy"])
def test_every_usual_way_to_pack_blocks_is_unpacked(reading, codec):
    rows = [{"id": n, "s": "x" * (n % 50)} for n in range(3000)]
    if codec in ("zstandard", "snappy"):
        content = _packed_here(record(id="long", s="string"), rows, codec)
    else:
        content = packed(record(id="long", s="string"), rows, codec=codec)
    reading.write("t/a.avro", content)
    assert reading.rows(reading.flow("avro")) == [(row["id"], row["s"]) for row in rows]


def _packed_here(schema: dict[str, Any], rows: list[dict[str, Any]], codec: str) -> bytes:
    """fastavro needs more packages for these."""
    import zlib

    import pyarrow as pa
    import zstandard

    raw = io.BytesIO(packed(schema, rows))
    plain = read_container(raw)
    assert plain is not None
    parts: list[tuple[int, bytes]] = []
    for count, data in blocks(raw, plain):
        if codec == "snappy":
            squeezed = pa.compress(data, "snappy", asbytes=True) + zlib.crc32(data).to_bytes(4)
        else:
            squeezed = zstandard.compress(data)
        parts.append((count, squeezed))
    return small_file(schema, parts).replace(
        b"\x08null", bytes([2 * len(codec)]) + codec.encode(), 1
    )


def test_files_of_different_schemas_are_united_by_name(reading):
    """W26."""
    reading.write("t/a.avro", packed(record(id="int", a="string"), [{"id": 1, "a": "x"}]))
    reading.write("t/b.avro", packed(record(b=["null", "int"], id="long"), [{"b": 2, "id": 2**40}]))
    frame, batch = reading.read(reading.flow("avro"))
    assert frame.to_dicts() == [
        {"id": 1, "a": "x", "b": None},
        {"id": 2**40, "a": None, "b": 2},
    ]
    assert batch.source_action["files"] == 2


def test_a_file_without_records_gives_its_columns_and_one_without_bytes_none(reading):
    """W64."""
    reading.write("t/a.avro", packed(record(id="int", a="string"), []))
    reading.write("t/b.avro", b"")
    assert reading.rows(reading.flow("avro")) == []
    reading.write("t/c.avro", packed(record(id="int"), [{"id": 1}]))
    assert reading.rows(reading.flow("avro")) == [(1, None)]


def test_a_file_that_is_cut_anywhere_is_refused(reading):
    rows = [{"id": n, "s": f"row {n}"} for n in range(40)]
    content = packed(record(id="long", s="string"), rows, codec="deflate")
    for end in range(1, len(content), 7):
        path = reading.write("t/a.avro", content[:end])
        message = refused(reading, reading.flow("avro"))
        assert message.startswith(f"read, {path}: the file is no whole Avro file: ")


def test_text_that_is_called_avro_is_refused(reading):
    path = reading.write("t/a.avro", "id,name\n1,x\n")
    assert refused(reading, reading.flow("avro")) == (
        f"read, {path}: the file is no whole Avro file: it does not start as an Avro file does. "
        "Replace or remove the file."
    )


def test_blocks_come_one_after_another(reading, monkeypatch):
    """A file is never in memory as a whole."""
    monkeypatch.setattr(avro_files, "_ROWS", 10)
    rows = [{"id": n} for n in range(1000)]
    reading.write("t/a.avro", packed(record(id="long"), rows, sync_interval=16))
    batch = reading.open(reading.flow("avro"))
    assert batch.frame.select("id").head(15).collect(engine="streaming")["id"].to_list() == [
        *range(15)
    ]
    assert batch.frame.filter(pl.col("id") > 995).collect()["id"].to_list() == [*range(996, 1000)]
    batch.close()
    flow = reading.flow("avro", options={"n_rows": 12})
    assert len(reading.rows(flow)) == 12


_SCALAR = [*_PLAIN, *(one for one in _LOGICAL if one[2] != pl.String)]
_CELL = st.sampled_from(_SCALAR).map(lambda one: (one[0], one[1]))
_NULLABLE = st.tuples(_CELL, st.booleans()).map(
    lambda given: (["null", given[0][0]], None if given[1] else given[0][1])
)
_LISTED = _NULLABLE.map(lambda cell: ({"type": "array", "items": cell[0]}, [cell[1], None]))
_FIELD = st.one_of(_CELL, _NULLABLE, _LISTED)


@settings(max_examples=60)
@given(st.lists(_FIELD, min_size=1, max_size=4), st.booleans())
def test_both_decoders_give_the_same_rows(cells, nested):
    """The engine's own decoder is fast; it must be right wherever it is used."""
    schema = record(**{f"c{at}": kind for at, (kind, _) in enumerate(cells)})
    row = {f"c{at}": value for at, (_, value) in enumerate(cells)}
    if nested:
        schema, row = record(s=["null", schema | {"name": "S"}]), {"s": row}
    rows = [row, {"s": None}, row] if nested else [row, row]
    assert engine_decodes(schema)
    fields = arrow_fields(schema)
    types = engine_schema(fields)
    raw = io.BytesIO(packed(schema, rows))
    container = read_container(raw)
    assert container is not None
    parts = list(blocks(raw, container))
    ours = by_fastavro(fields, types, "a.avro")(small_file(undressed(schema), parts))
    assert by_engine(types)(small_file(schema, parts)).equals(ours)
