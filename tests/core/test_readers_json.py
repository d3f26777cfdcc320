"""JSON documents, and what the engine's JSON parser would change without a word."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from decimal import Decimal

import polars as pl
import pytest
import zstandard
from hypothesis import given, settings, strategies as st

from datacoolie_core.errors import ReadError
from datacoolie_core.readers import json_records
from datacoolie_core.readers.json_records import Records, RecordTrouble


def refused(reading, flow, **request) -> str:
    with pytest.raises(ReadError) as caught:
        reading.read(flow, **request)
    return str(caught.value)


def zipped(name: str, content: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(name, content)
    return target.getvalue()


def test_an_array_is_a_row_for_each_object(reading):
    reading.write("t/a.json", '[{"a": 1},\n {"b": "x",\n  "a": 2}]')
    frame, _ = reading.read(reading.flow("json"))
    assert frame.sort("a").to_dicts() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]


def test_one_object_is_one_row(reading):
    reading.write("t/a.json", '{"a": 1, "b": {"c": [1, 2]}}')
    assert reading.rows(reading.flow("json")) == [(1, {"c": [1, 2]})]


@pytest.mark.parametrize(
    ("suffix", "packed"),
    [
        ("json.gz", gzip.compress(b'[{"id": 1}]')),
        ("json.zst", zstandard.compress(b'[{"id": 1}]')),
        ("JSON.zip", zipped("x.json", '[{"id": 1}]')),
        ("json", b'\xef\xbb\xbf[{"id": 1}]'),
    ],
    ids=["gzip", "zstandard", "zip", "mark"],
)
def test_packed_and_marked_documents_are_read(reading, suffix, packed):
    """W30."""
    reading.write(f"t/a.{suffix}", packed)
    assert reading.rows(reading.flow("json")) == [(1,)]


@pytest.mark.parametrize("content", ["", " \n ", "[]", "[ ]"])
def test_a_document_without_objects_is_no_row(reading, content):
    """W64."""
    reading.write("t/a.json", content)
    batch = reading.open(reading.flow("json"))
    assert batch.empty
    reading.write("t/b.json", '[{"id": 1}]')
    assert reading.rows(reading.flow("json")) == [(1,)]


def test_an_object_without_keys_is_a_row_of_nulls(reading):
    reading.write("t/a.json", "[{}]")
    reading.write("t/b.json", '[{"id": 1}, {}]')
    assert reading.rows(reading.flow("json")) == [(None,), (1,), (None,)]


@pytest.mark.parametrize("names", [("one.json", "two.json"), ("two.json", "one.json")])
def test_files_with_different_keys_are_united_in_either_order(reading, names):
    """W64, json-files-with-and-without-key."""
    reading.write(f"t/{names[0]}", '[{"k1": "v", "k2": ["x"]}]')
    reading.write(f"t/{names[1]}", '[{"k1": "w"}]')
    frame, _ = reading.read(reading.flow("json"))
    assert frame.sort("k1").to_dicts() == [{"k1": "v", "k2": ["x"]}, {"k1": "w", "k2": None}]


def test_a_key_that_appears_late_in_a_document_is_not_lost(reading):
    """json-late-key, W26."""
    documents = [{"a": n, **({"b": n * 10} if n >= 1000 else {})} for n in range(1050)]
    reading.write("t/a.json", json.dumps(documents, indent=1))
    frame, _ = reading.read(reading.flow("json"))
    assert frame["b"].drop_nulls().to_list() == [n * 10 for n in range(1000, 1050)]


def test_json_lines_under_the_format_json_need_the_option(reading):
    reading.write("t/a.json", '{"a": 1}\n{"a": 2}\n')
    message = refused(reading, reading.flow("json"))
    assert "line 2, column 1: more follows after the document" in message
    assert "multiLine" in message
    assert reading.rows(reading.flow("json", options={"multiLine": "false"})) == [(1,), (2,)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[{"a": 1},\n {"a":]', "line 2, column 7: Expecting value"),
        ('[{"a": 1},\n 5]', "line 2, column 2: record 2 is a number, not an object"),
        ("[null]", "record 1 is null, not an object"),
        ('[{"a": 1}', "line 1, column 10: expecting ',' or ']'"),
        ('[{"a": 1} {"a": 2}]', "expecting ',' or ']'"),
        ('[{"a": 1},\n]', "line 2, column 1: Expecting value"),
        ('[{"a": 1},\n{"a": NaN}]', "line 2, column 1: NaN is no JSON number"),
        ('[{"a": 1},\n\n{"a": 1e400}]', "record 2 (line 3) is no JSON document: 1e400 is too big"),
        ('[{"a": 1, "a": 2}]', "the key 'a' is there twice"),
        ('[{"a": "x\ny"}]', "Invalid control character"),
        ('["\\ud800"]', "record 1 is text, not an object"),
        ('[{"a": "\\ud800"}]', "record 1 (line 1) has half of a surrogate pair"),
    ],
)
def test_a_broken_document_names_file_and_line(reading, content, said):
    path = reading.write("t/a.json", content)
    message = refused(reading, reading.flow("json"))
    assert message.startswith(f"read, {path}: ")
    assert said in message


def test_a_document_in_another_encoding_is_refused_or_read_as_told(reading):
    path = reading.write("t/a.json", '[{"a": "é"}]'.encode("latin-1"))
    assert str(path) in refused(reading, reading.flow("json"))
    assert reading.rows(reading.flow("json", options={"encoding": "latin-1"})) == [("é",)]


@pytest.mark.parametrize(
    ("content", "line"),
    [('{"a": NaN}', "NaN"), ('{"a": 1e400}', "1e400"), ('{"a": ' + "1" * 50 + "}", "1111")],
)
def test_a_number_that_no_column_holds_names_its_line(reading, content, line):
    path = reading.write("t/a.jsonl", f'{{"a": 1}}\n{content}\n')
    message = refused(reading, reading.flow("jsonl"))
    assert message.startswith(f"read, {path}: line 2 is no JSON document: {line}")


@pytest.mark.parametrize("form", ["json", "jsonl"])
@pytest.mark.parametrize(
    ("big", "fraction", "field"),
    [
        ('{"a": 9007199254740993}', '{"a": 0.5}', "a"),
        ('{"a": {"b": 9007199254740993}}', '{"a": {"b": 0.5}}', "a.b"),
        ('{"a": [9007199254740993]}', '{"a": [1, 0.5]}', "a[]"),
    ],
)
def test_an_integer_beside_fractions_is_never_rounded(reading, form, big, fraction, field):
    lines = [big, fraction] if form == "jsonl" else [f"[{big},", f"{fraction}]"]
    path = reading.write(f"t/a.{form}", "\n".join(lines))
    message = refused(reading, reading.flow(form))
    assert message.startswith(f"read, {path}, column '{field}': 9007199254740993 in ")
    assert "line 1" in message
    rows = reading.rows(reading.flow(form, hints={"a": "string"}))
    assert "9007199254740993" in rows[0][0]


def test_an_integer_is_not_rounded_for_a_fraction_in_another_file(reading):
    reading.write("t/a.jsonl", '{"a": 9007199254740993}\n')
    reading.write("t/b.jsonl", '{"a": 0.5}\n')
    assert "9007199254740993" in refused(reading, reading.flow("jsonl"))


def test_integers_that_a_double_holds_may_stand_beside_fractions(reading):
    reading.write("t/a.jsonl", '{"a": 9007199254740992}\n{"a": 0.5}\n{"a": 12345678901234.5678}\n')
    assert reading.rows(reading.flow("jsonl")) == [
        (9007199254740992.0,),
        (0.5,),
        (12345678901234.5678,),
    ]


def test_big_integers_keep_every_digit(reading):
    digits = ["9223372036854775807", "9007199254740993"]
    reading.write("t/a.jsonl", "".join(f'{{"id": {n}}}\n' for n in digits))
    assert reading.rows(reading.flow("jsonl")) == [(int(n),) for n in digits]
    reading.write("t/b.jsonl", '{"id": 123456789012345678901234567890}\n')
    rows = reading.rows(reading.flow("jsonl"))
    assert rows == [*((n,) for n in digits), ("123456789012345678901234567890",)]


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_hinted_numbers_have_the_digits_that_were_written(reading, form):
    lines = ['{"d": 12345678901234567.89, "s": 1.50}', '{"d": 3, "s": 100000000000000000001}']
    content = "\n".join(lines) if form == "jsonl" else f"[{','.join(lines)}]"
    reading.write(f"t/a.{form}", content)
    frame, _ = reading.read(reading.flow(form, hints={"D": "decimal(38,2)", "s": "string"}))
    assert frame.rows() == [
        ("12345678901234567.89", "1.50"),
        ("3", "100000000000000000001"),
    ]


def test_a_decimal_hint_reaches_the_table_exactly(new_project):
    project = new_project()
    project.source_format = "json"
    folder = project.root / "in/t"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text('[{"amount": 12345678901234567.89}, {"amount": 0.10}]')
    hints = [{"column_name": "amount", "data_type": "decimal(20,2)"}]
    project.flow(load_type="full_load", transform={"schema_hints": hints})
    project.run_one()
    amounts = project.table()["amount"].sort().to_list()
    assert amounts == [Decimal("0.10"), Decimal("12345678901234567.89")]


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("1", "true", "a number in line 1 and true or false in line 2: true"),
        ("[1]", "2", "a list in line 1 and a number in line 2: 2"),
        ("1", '{"b": 2}', 'a number in line 1 and an object in line 2: {"b": 2}'),
    ],
)
def test_values_of_two_kinds_name_field_and_lines_and_a_text_hint_takes_both(
    reading, one, other, said
):
    path = reading.write("t/a.jsonl", f'{{"a": {one}}}\n{{"a": {other}}}\n')
    message = refused(reading, reading.flow("jsonl"))
    assert message.startswith(f"read, {path}, column 'a': it is {said}")
    rows = reading.rows(reading.flow("jsonl", hints={"A": "string"}))
    assert [json.loads(value) for (value,) in rows] == [json.loads(one), json.loads(other)]


def test_a_number_here_and_a_text_in_another_file_are_text(reading):
    """json-int-then-text."""
    reading.write("t/a.json", '[{"code": 1}, {"code": 123456789012345678}]')
    reading.write("t/b.json", '[{"code": "7A"}]')
    assert reading.rows(reading.flow("json")) == [("1",), ("123456789012345678",), ("7A",)]


def test_without_inference_all_is_text(reading):
    reading.write("t/a.json", '[{"n": 1.50, "b": true, "t": "x", "z": null}]')
    flow = reading.flow("json", options={"inferSchema": "false"})
    assert reading.rows(flow) == [("1.50", "true", "x", None)]


@pytest.mark.parametrize("half", [r"x\ud83dy", r"\ude00", r"\ude00\ud83d"])
def test_half_of_a_surrogate_pair_is_refused(reading, half):
    path = reading.write("t/a.jsonl", f'{{"a": "😀 \\ud83d\\ude00"}}\n{{"a": "{half}"}}\n')
    message = refused(reading, reading.flow("jsonl"))
    assert message.startswith(f"read, {path}: line 2 ")
    assert "surrogate pair" in message


def test_escaped_characters_are_those_that_they_stand_for(reading):
    reading.write("t/a.jsonl", '{"a": "\\ud83d\\ude00", "b": "\\\\ud800"}\n')
    assert reading.rows(reading.flow("jsonl")) == [("😀", "\\ud800")]


def test_types_come_from_every_piece_of_a_file(reading, monkeypatch):
    monkeypatch.setattr("datacoolie_core.readers.json_trouble._PIECE", 64)
    lines = [f'{{"id": {n}, "late": null}}' for n in range(50)] + ['{"late": "x"}', '{"new": 1}']
    reading.write("t/a.jsonl", "\n".join(lines))
    frame, _ = reading.read(reading.flow("jsonl"))
    assert frame.schema == {"id": pl.Int64, "late": pl.String, "new": pl.Int64}
    assert frame.height == 52


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@settings(max_examples=60)
@given(
    st.lists(st.dictionaries(st.text(max_size=4), _VALUES, max_size=4), max_size=8),
    st.sampled_from([None, 1]),
    st.integers(1, 40),
    st.booleans(),
)
def test_a_document_is_taken_apart_exactly_however_it_is_read(documents, indent, chunk, ascii_only):
    written = json.dumps(documents, indent=indent, ensure_ascii=ascii_only)
    raw = io.BytesIO(written.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_records, "_CHUNK", chunk)
        found = list(Records(raw))
    assert [json.loads(one) for one in found] == documents
    assert not any("\n" in one for one in found)


_WHOLE = b'[{"a": 1.25, "b": "x"},\n{"a": true, "b": null}, {"a": [12]}]'


@given(st.integers(1, 30), st.integers(1, len(_WHOLE) - 1))
def test_a_document_that_is_cut_anywhere_is_refused(chunk, cut):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_records, "_CHUNK", chunk)
        with pytest.raises(RecordTrouble, match=r"line [12], column \d+"):
            list(Records(io.BytesIO(_WHOLE[:cut])))
