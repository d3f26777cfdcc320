"""CSV files: what is read, and what is refused with file, line and column."""

from __future__ import annotations

import gzip
import zipfile

import polars as pl
import pytest
import zstandard

from datacoolie_core.errors import ReadError


def refused(reading, flow, **request) -> str:
    with pytest.raises(ReadError) as caught:
        reading.read(flow, **request)
    return str(caught.value)


def zipped(reading, name: str, members: dict[str, str]):
    path = reading.write(name, b"")
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return path


def test_everything_is_text_unless_the_options_say_else(reading):
    """csv-leading-zero-codes."""
    reading.write("t/a.csv", "code,town\n0870,Northvale\n0001,Alder\n")
    assert reading.rows(reading.flow()) == [("0870", "Northvale"), ("0001", "Alder")]
    inferred = reading.flow(options={"inferSchema": True})
    assert reading.rows(inferred) == [(870, "Northvale"), (1, "Alder")]


def test_a_declared_text_keeps_its_zeros_among_inferred_columns(reading):
    """csv-leading-zero-codes, csv-declared-columns-other-order: hints go by name."""
    reading.write("t/a.csv", "n,code\n1,0870\n2,0001\n")
    flow = reading.flow(options={"inferSchema": True}, hints={"code": "string", "n": "int"})
    assert reading.rows(flow) == [("1", "0870"), ("2", "0001")]


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_several_texts_can_stand_for_null(reading, names):
    for name in names:
        reading.write(f"t/{name}.csv", "# a comment\nx,y\nNA,1\n-,2\n")
    options = {"null_values": ["NA", "-"], "comment_prefix": "#"}
    flow = reading.flow(options=options)
    assert sorted(set(reading.rows(flow)), key=str) == [(None, "1"), (None, "2")]


def test_options_have_the_names_of_other_tools_too(reading):
    reading.write("t/a.csv", "1;'x;y';NA\n")
    flow = reading.flow(options={"header": "false", "sep": ";", "quote": "'", "nullValue": "NA"})
    assert reading.rows(flow) == [("1", "x;y", None)]


def test_an_unknown_option_is_refused_with_the_name_meant(reading):
    reading.write("t/a.csv", "a\n1\n")
    message = refused(reading, reading.flow(options={"separatr": ";"}))
    assert message == (
        "read, read_options: format 'csv' has no read option 'separatr'. Did you mean 'separator'?"
    )


def test_an_option_with_a_bad_value_is_refused(reading):
    reading.write("t/a.csv", "a\n1\n")
    assert "'long' is no value of the read option 'sep'" in refused(
        reading, reading.flow(options={"sep": "long"})
    )


@pytest.mark.parametrize("name", ["a.CSV", "a.csv.gz", "a.csv.zst", "a.csv.zip", "A.Csv.GZ"])
def test_packed_files_are_read_whatever_the_case_of_their_suffix(reading, name):
    """W30."""
    text = b"id,name\n1,Anna\n2,\n"
    path = reading.write(f"t/{name}", text)
    if name.lower().endswith(".gz"):
        path.write_bytes(gzip.compress(text))
    elif name.endswith(".zst"):
        path.write_bytes(zstandard.compress(text))
    elif name.endswith(".zip"):
        zipped(reading, f"t/{name}", {"whatever.csv": text.decode()})
    frame, batch = reading.read(reading.flow())
    assert frame.rows() == [("1", "Anna"), ("2", None)]
    assert batch.source_action["files"] == 1


def test_a_table_may_be_one_file_whatever_its_suffix(reading):
    reading.write("t.txt", "id\n1\n")
    reading.write("other.txt", "id\n2\n")
    assert reading.rows(reading.flow(table="t.txt")) == [("1",)]


def test_every_row_says_which_file_it_comes_from(reading):
    path = zipped(reading, "t/b.csv.zip", {"in.csv": "id\n2\n"})
    first = reading.write("t/a.csv", "id,__file_name\n1,of an earlier load\n")
    batch = reading.open(reading.flow())
    frame = batch.frame.collect()
    batch.close()
    assert frame.columns == ["id", "__file_name", "__file_path", "__file_modification_time"]
    assert frame["__file_name"].to_list() == ["a.csv", "b.csv.zip"]
    assert frame["__file_path"].to_list() == [str(first), str(path)]
    moment = frame["__file_modification_time"]
    assert moment.dtype == pl.Datetime("us", "UTC")
    assert moment[0].timestamp() == pytest.approx(first.stat().st_mtime, abs=1e-5)


def test_an_archive_leaves_no_temporary_file(reading, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    zipped(reading, "t/a.csv.zip", {"a.csv": "id\n1\n"})
    batch = reading.open(reading.flow())
    assert len(list((tmp_path / "temporary").iterdir())) == 1
    batch.frame.collect()
    batch.close()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_an_archive_that_can_not_be_opened_leaves_no_temporary_file(reading, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    zipped(reading, "t/a.csv.zip", {"a.csv": "id,id\n1,2\n"})
    assert "more than once" in refused(reading, reading.flow())
    assert list((tmp_path / "temporary").iterdir()) == []


def test_all_csv_files_of_an_archive_count_and_nothing_else(reading):
    members = {
        "a.csv": "id\n1\n",
        "sub/b.csv": "id\n2\n",
        "readme.txt": "no",
        "__MACOSX/._a.csv": "x",
    }
    zipped(reading, "t/a.zip", members)
    assert reading.rows(reading.flow()) == [("1",), ("2",)]


def test_an_archive_without_data_is_refused(reading):
    path = zipped(reading, "t/a.zip", {"x.txt": "", "y.txt": ""})
    message = refused(reading, reading.flow())
    assert str(path) in message
    assert "'x.txt', 'y.txt'" in message


def test_a_broken_archive_is_refused_by_name(reading):
    path = reading.write("t/a.csv.zip", b"PK no")
    assert f"read, {path}: the archive can't be unpacked" in refused(reading, reading.flow())


def test_a_byte_order_mark_is_not_part_of_the_first_name(reading):
    """csv-bom-quoted-header."""
    reading.write("t/a.csv", b'\xef\xbb\xbf"Order ID","Name"\r\n"1","Bo, Jr"\r\n')
    frame, _ = reading.read(reading.flow())
    assert frame.columns == ["Order ID", "Name"]
    assert frame.rows() == [("1", "Bo, Jr")]


@pytest.mark.parametrize(
    ("text", "repeated"),
    [("id,amount,amount\n1,10,20\n", "'amount'"), ("a,a,a_duplicated_0\n1,2,3\n", "'a'")],
)
def test_a_header_that_repeats_a_name_is_refused(reading, text, repeated):
    """csv-duplicate-headers."""
    path = reading.write("t/a.csv", text)
    assert refused(reading, reading.flow()) == (
        f"read, {path}: the header names {repeated} more than once. Give each column its own name, "
        "or read without the header: header: false."
    )


def test_a_column_may_be_called_like_a_renamed_one(reading):
    reading.write("t/a.csv", "a,a_duplicated_0\n1,2\n")
    assert reading.read(reading.flow())[0].columns == ["a", "a_duplicated_0"]


def test_a_row_with_more_fields_is_refused_with_file_and_line(reading):
    """csv-ragged-rows."""
    path = reading.write("t/ragged.csv", 'id,name\n1,"a\nb"\n2,b,EXTRA\n3\n')
    assert refused(reading, reading.flow()) == (
        f"read, {path}: line 4 has 3 fields, 2 are expected. Correct the line, or set "
        "read_options.truncate_ragged_lines to drop what stands behind the last column."
    )


def test_a_ragged_row_never_fills_a_column_that_only_another_file_has(reading):
    reading.write("t/a.csv", "id,name\n1,a\n2,b,EXTRA\n")
    reading.write("t/b.csv", "id,name,more\n3,c,x\n")
    assert "line 3 has 3 fields" in refused(reading, reading.flow())


def test_ragged_rows_are_cut_if_the_options_say_so(reading):
    reading.write("t/a.csv", "id,name\n1,a\n2,b,EXTRA\n3\n")
    flow = reading.flow(options={"truncate_ragged_lines": True})
    frame, batch = reading.read(flow)
    assert frame.rows() == [("1", "a"), ("2", "b"), ("3", None)]
    assert [code for code, _ in batch.warnings] == ["ragged_lines_cut"]
    assert "1 row has more fields than columns" in batch.warnings[0][1]


def test_ragged_rows_are_counted_over_all_files_and_none_is_no_warning(reading):
    reading.write("t/a.csv", "id,name\n1,a\n2,b,EXTRA\n3,c,,\n")
    reading.write("t/b.csv", "id\n1\n2,b\n")
    flow = reading.flow(options={"truncate_ragged_lines": True})
    _, batch = reading.read(flow)
    assert "3 rows have more fields than columns" in batch.warnings[0][1]
    reading.write("t/a.csv", "id,name\n1,a\n")
    reading.write("t/b.csv", "id\n1\n")
    assert reading.read(flow)[1].warnings == ()


@pytest.mark.parametrize(
    ("options", "before", "line"),
    [
        ({"skip_rows": 2}, "one\ntwo\n", 5),
        ({"skip_rows": 1}, '"one\ntwo"\n', 5),
        ({"skip_lines": 2}, 'o"ne\ntwo\n', 5),
        ({"comment_prefix": "#"}, "# a,b,c,d\n", 4),
        ({"comment_prefix": "#", "skip_rows": 1}, "# a\n\nx,y,z\n\n", 7),
        ({"header": False}, "", 3),
    ],
)
def test_a_ragged_line_is_counted_as_an_editor_counts(reading, options, before, line):
    path = reading.write("t/ragged.csv", before + "id,name\n1,a\n2,b,EXTRA\n")
    message = refused(reading, reading.flow(options=options))
    assert message.startswith(f"read, {path}: line {line} has 3 fields, 2 are expected.")


@pytest.mark.parametrize(
    ("text", "line"), [('a,b\n0,z\n1,"open\n2,x\n', 3), ('a,b\n1,"op"en\n2,x\n', 2)]
)
def test_a_quote_that_is_not_closed_is_refused_with_file_and_line(reading, text, line):
    path = reading.write("t/a.csv", text)
    message = refused(reading, reading.flow())
    assert f"{path}: a quote of the row in line {line} is not closed" in message


def test_integers_of_any_length_keep_their_digits(reading):
    """csv-int-overflow."""
    reading.write("t/a.csv", "id\n12345678901234567890\n99999999999999999999\n")
    digits = [("12345678901234567890",), ("99999999999999999999",)]
    assert reading.rows(reading.flow()) == digits
    assert reading.rows(reading.flow(options={"inferSchema": True})) == digits


def test_files_are_united_by_column_name(reading):
    """csv-files-missing-column, W26."""
    reading.write("t/part1.csv", "b\nb1\n")
    reading.write("t/part2.csv", "a,b\na1,b2\n")
    reading.write("t/part3.csv", "b,a\nb3,a3\n")
    frame, _ = reading.read(reading.flow())
    assert frame.sort("b").to_dicts() == [
        {"b": "b1", "a": None},
        {"b": "b2", "a": "a1"},
        {"b": "b3", "a": "a3"},
    ]


def test_a_missing_column_can_be_an_error(reading):
    path = reading.write("t/part1.csv", "b\nb1\n")
    reading.write("t/part2.csv", "a,b\na1,b2\n")
    message = refused(reading, reading.flow(options={"missing_columns": "raise"}))
    assert f"{path}: the file has no column 'a', others have" in message


def test_inferred_types_of_several_files_are_widened(reading):
    reading.write("t/a.csv", "n,m\n1,1\n")
    reading.write("t/b.csv", "n,m\n1.5,2\n")
    flow = reading.flow(options={"infer_schema": True})
    assert reading.rows(flow) == [(1.0, 1), (1.5, 2)]


def test_inferred_types_that_do_not_fit_name_both_files(reading):
    one = reading.write("t/a.csv", "n\n1\n")
    other = reading.write("t/b.csv", "n\nx\n")
    message = refused(reading, reading.flow(options={"infer_schema": True}))
    assert f"column 'n': its type is Int64 in {one} and String in {other}" in message


def test_a_value_that_does_not_fit_the_inferred_type_is_named(reading):
    reading.write("t/a.csv", "n\n" + "1\n" * 200 + "oops\n")
    message = refused(reading, reading.flow(options={"infer_schema": True}))
    assert "a.csv, column 'n': 'oops' is no i64 (line 202)" in message


@pytest.mark.parametrize("hint_name", ["code", "CODE"])
def test_a_hinted_column_is_read_as_text_beside_inferred_ones(reading, hint_name):
    """csv-leading-zero."""
    reading.write("t/a.csv", "code,price,n\n0870,1234567890123456.80,1\n0001,0.10,2\n")
    hints = {hint_name: "string", "price": "decimal(20,2)"}
    flow = reading.flow(options={"infer_schema": True}, hints=hints, watermark=["code"])
    frame, batch = reading.read(flow)
    assert frame.rows() == [("0870", "1234567890123456.80", 1), ("0001", "0.10", 2)]
    assert batch.observation.candidate == {"code": "0870"}


def test_a_blank_first_line_is_no_header(reading):
    """csv-blank-first-line."""
    reading.write("t/a.csv", "\ncol1\nval1\nval2\n")
    frame, _ = reading.read(reading.flow())
    assert (frame.columns, frame.rows()) == (["col1"], [("val1",), ("val2",)])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"comment_prefix": "#"}, "# x\n\na,b\n1,2\n"),
        ({"comment_prefix": "#"}, "\n# x,y,z\n\n# x\na,b\n1,2\n"),
        ({"skip_rows": 1}, "x\n\na,b\n1,2\n"),
        ({"skip_lines": 1}, "x\n\n\na,b\n1,2\n"),
        ({}, "a,b\n1,2\n\n\n"),
        ({}, "a,b\n\n1,2\n"),
        ({"comment_prefix": "#"}, 'a,b\n# say "\n\n1,2\n\n'),
    ],
)
def test_a_blank_line_is_neither_header_nor_row(reading, options, text, end):
    """csv-blank-first-line."""
    reading.write("t/a.csv", text.replace("\n", end))
    frame, _ = reading.read(reading.flow(options=options))
    assert (frame.columns, frame.rows()) == (["a", "b"], [("1", "2")])


def test_a_blank_line_before_rows_without_a_header_is_no_row(reading):
    reading.write("t/a.csv", "\n1,2\n\n3,4\n")
    rows = reading.rows(reading.flow(options={"header": False}))
    assert rows == [("1", "2"), ("3", "4")]


def test_blank_lines_inside_quotes_and_rows_of_nothing_stay(reading):
    reading.write("t/a.csv", 'a,b\n"x\n\ny",1\n\n,\n')
    assert reading.rows(reading.flow()) == [("x\n\ny", "1"), (None, None)]


def test_a_blank_line_of_a_single_column_is_a_null(reading):
    reading.write("t/a.csv", "a\n1\n\n2\n")
    assert reading.rows(reading.flow()) == [("1",), (None,), ("2",)]


def test_a_ragged_line_behind_a_blank_one_keeps_its_number(reading):
    path = reading.write("t/a.csv", "a,b\n1,2\n\n3,4,5\n")
    assert f"{path}: line 4 has 3 fields" in refused(reading, reading.flow())


def test_files_of_one_header_may_begin_at_different_lines(reading):
    for number in range(70):
        reading.write(f"t/{number:02}.csv", "# x\n" * (number % 3) + f"a,b\n{number},x\n")
    rows = reading.rows(reading.flow(options={"comment_prefix": "#"}))
    assert sorted(int(row[0]) for row in rows) == list(range(70))


def test_empty_files_among_others_hold_no_rows(reading):
    """W64."""
    reading.write("t/a.csv", "")
    reading.write("t/b.csv", "id\n1\n")
    reading.write("t/c.csv", "\n\n")
    reading.write("t/d.csv", "id\n")
    frame, batch = reading.read(reading.flow())
    assert frame.rows() == [("1",)]
    assert batch.warnings == (("empty_file", "nothing in 'a.csv', 'c.csv'"),)


@pytest.mark.parametrize("files", [{}, {"a.csv": ""}])
def test_no_data_at_all_is_an_empty_batch(reading, files):
    (reading.root / "in" / "t").mkdir(parents=True)
    for name, text in files.items():
        reading.write(f"t/{name}", text)
    batch = reading.open(reading.flow(watermark=["id"], hints={"id": "int", "other": "date"}))
    assert batch.empty
    assert batch.frame.collect().height == 0
    assert batch.observation.rows_read == 0


def test_a_header_alone_has_no_rows(reading):
    reading.write("t/a.csv", "id,name\n")
    frame, batch = reading.read(reading.flow(watermark=["id"]), track_boundary=True)
    assert frame.columns == ["id", "name"]
    assert (batch.observation.rows_read, batch.observation.candidate) == (0, {})
    assert not batch.empty


def test_a_missing_folder_is_refused_with_its_path(reading):
    message = refused(reading, reading.flow())
    assert message.startswith(
        f"read, {reading.root / 'in' / 't'}: there is no such file or folder."
    )
    assert "base_path, schema_name and table" in message


def test_files_of_another_kind_only_are_refused(reading):
    """W30."""
    reading.write("t/a.tsv", "id\n1\n")
    assert "there are files, but none ends in .csv" in refused(reading, reading.flow())


def test_files_of_another_kind_beside_the_data_are_told(reading):
    reading.write("t/a.csv", "id\n1\n")
    reading.write("t/a.tsv", "id\n1\n")
    _, batch = reading.read(reading.flow())
    assert batch.warnings == (
        ("files_ignored", f"{reading.root}/in/t: files of another kind are not read: 'a.tsv'"),
    )


def test_files_in_sub_folders_are_never_left_out_silently(reading):
    """W30."""
    reading.write("t/2020/a.csv", "id\n1\n")
    assert "all files are in sub-folders: '2020/a.csv'" in refused(reading, reading.flow())
    reading.write("t/b.csv", "id\n2\n")
    frame, batch = reading.read(reading.flow())
    assert frame.rows() == [("2",)]
    assert [code for code, _ in batch.warnings] == ["files_in_subfolders"]


@pytest.mark.parametrize("name", ["x[1].csv", "x*.csv", "x?.csv", "[ab]/x.csv"])
def test_names_with_pattern_characters_are_names(reading, name):
    reading.write("t/x1.csv", "id\nwrong\n")
    reading.write("t/a/x.csv", "id\nwrong\n")
    reading.write(f"t/{name}", "id\nright\n")
    assert reading.rows(reading.flow(table=f"t/{name}")) == [("right",)]


def test_another_encoding_is_read_when_named(reading):
    reading.write("t/a.csv", "name\nGrün\n".encode("cp1252"))
    assert reading.rows(reading.flow(options={"encoding": "cp1252"})) == [("Grün",)]


def test_text_that_is_not_utf8_is_refused_with_file_and_line(reading):
    path = reading.write("t/a.csv", "name\nok\nGrün\n".encode("cp1252"))
    message = refused(reading, reading.flow())
    assert message.startswith(f"read, {path}: line 3 is not UTF-8. Set read_options.encoding")


def test_an_encoding_that_nobody_knows_is_refused(reading):
    reading.write("t/a.csv", "name\nx\n")
    assert "no encoding 'klingon'" in refused(
        reading, reading.flow(options={"encoding": "klingon"})
    )


def test_folders_with_keys_become_text_columns(reading):
    """parquet-hive-code-zeros, for CSV."""
    reading.write("t/code=01001/a.csv", "id\n1\n")
    reading.write("t/code=01002/day=2024-05-01/a.csv", "id\n2\n")
    flow = reading.flow(connection={"use_hive_partitioning": True})
    frame, _ = reading.read(flow)
    assert frame.to_dicts() == [
        {"id": "1", "code": "01001", "day": None},
        {"id": "2", "code": "01002", "day": "2024-05-01"},
    ]


def test_the_folder_of_nulls_holds_nulls(reading):
    reading.write("t/code=__HIVE_DEFAULT_PARTITION__/a.csv", "id\n1\n")
    reading.write("t/code=x/a.csv", "id\n2\n")
    flow = reading.flow(connection={"use_hive_partitioning": True})
    assert sorted(reading.rows(flow)) == [("1", None), ("2", "x")]


def test_the_folder_can_be_in_memory(reading):
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe_file("/lab/in/t/a.csv", b"id\n1\n")
    memory.pipe_file("/lab/in/t/b.csv.gz", gzip.compress(b"id\n2\n"))
    batch = reading.open(reading.flow(base_path="memory://lab/in"))
    frame = batch.frame.collect()
    batch.close()
    assert frame["id"].to_list() == ["1", "2"]
    assert frame["__file_path"].to_list() == [
        "memory://lab/in/t/a.csv",
        "memory://lab/in/t/b.csv.gz",
    ]


def test_a_filter_of_the_source_counts_before_the_rows(reading):
    reading.write("t/a.csv", "ID,kind\n1,a\n2,b\n3,a\n")
    flow = reading.flow(source={"filter_expression": "kind = 'a' and id <> '3'"})
    frame, batch = reading.read(flow)
    assert frame.rows() == [("1", "a")]
    assert batch.observation.rows_read == 1


def test_a_filter_over_a_column_that_is_not_there_is_refused(reading):
    reading.write("t/a.csv", "id,kind\n1,a\n")
    flow = reading.flow(source={"filter_expression": "kynd = 'a'"})
    message = refused(reading, flow)
    assert "source.filter_expression: there is no column 'kynd'" in message
    assert "Did you mean 'kind'?" in message


def test_a_format_without_a_reader_names_the_ones_that_there_are(reading):
    reading.write("t/a.parquet", b"")
    message = refused(reading, reading.flow("iceberg"))
    assert "format 'iceberg' can't be read yet" in message
    assert "avro, csv, delta, excel, function, json, jsonl, parquet, sql" in message


def test_many_files_of_two_headers_are_read_as_few_are(reading):
    """More files than are scanned one by one."""
    for number in range(150):
        header = "id,odd" if number % 2 else "id"
        row = f"{number},x" if number % 2 else f"{number}"
        reading.write(f"t/day={number % 3}/{number:03}.csv", f"{header}\n{row}\n")
    flow = reading.flow(connection={"use_hive_partitioning": True})
    batch = reading.open(flow)
    frame = batch.frame.collect(engine="streaming")
    batch.close()
    expected = {(str(n), "x" if n % 2 else None, str(n % 3), f"{n:03}.csv") for n in range(150)}
    assert set(frame.select("id", "odd", "day", "__file_name").rows()) == expected
    assert frame.height == 150


def test_a_limit_of_rows_counts_over_all_files(reading):
    reading.write("t/a.csv", "id\n1\n2\n")
    reading.write("t/b.csv", "id\n3\n")
    assert len(reading.rows(reading.flow(options={"n_rows": 2}))) == 2
