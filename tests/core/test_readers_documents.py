"""What holds for file sources of every format."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import json
import os
import zipfile
from typing import TYPE_CHECKING, Any

import fastavro
import openpyxl
import polars as pl
import pytest

from datacoolie_core.errors import ReadError
from datacoolie_core.plan.windows import Window

if TYPE_CHECKING:
    from pathlib import Path

Rows = list[dict[str, Any]]
DAY = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)


def _avro(rows: Rows) -> bytes:
    kinds = {int: ["null", "long"], str: ["null", "string"]}
    fields = [{"name": name, "type": kinds[type(value)]} for name, value in rows[0].items()]
    target = io.BytesIO()
    fastavro.writer(target, {"type": "record", "name": "R", "fields": fields}, rows)
    return target.getvalue()


def _excel(rows: Rows) -> bytes:
    workbook = openpyxl.Workbook()
    sheet = workbook["Sheet"]
    sheet.append(list(rows[0]))
    for row in rows:
        sheet.append(list(row.values()))
    target = io.BytesIO()
    workbook.save(target)
    return target.getvalue()


def _parquet(rows: Rows) -> bytes:
    target = io.BytesIO()
    pl.DataFrame(rows).write_parquet(target)
    return target.getvalue()


def _csv(rows: Rows) -> bytes:
    return pl.DataFrame(rows).write_csv().encode()


def _lines(rows: Rows) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


FORMATS = {
    "avro": (".avro", _avro),
    "csv": (".csv", _csv),
    "excel": (".xlsx", _excel),
    "json": (".json", lambda rows: json.dumps(rows).encode()),
    "jsonl": (".jsonl", _lines),
    "parquet": (".parquet", _parquet),
}
each_format = pytest.mark.parametrize("form", sorted(FORMATS))
HINTS = {"id": "bigint"}


def write(reading, form: str, name: str, rows: Rows, day: int = 0) -> Path:
    suffix, made = FORMATS[form]
    path = reading.write(f"t/{name}{suffix}", made(rows))
    moment = (DAY + dt.timedelta(days=day)).timestamp()
    os.utime(path, (moment, moment))
    return path


def ids(frame: pl.DataFrame) -> list[int]:
    return sorted(frame["id"].cast(pl.Int64).to_list())


@each_format
def test_each_row_says_which_file_it_is_from(reading, form):
    path = write(reading, form, "a [1]", [{"id": 1}], day=3)
    write(reading, form, "b", [{"id": 2}])
    batch = reading.open(reading.flow(form))
    frame = batch.frame.collect(engine="streaming")
    batch.close()
    row = frame.filter(pl.col("id").cast(pl.Int64) == 1).row(0, named=True)
    assert row["__file_name"] == path.name
    assert row["__file_path"] == str(path)
    assert row["__file_modification_time"] == DAY + dt.timedelta(days=3)


@each_format
def test_columns_of_many_files_are_united_by_name(reading, form):
    """W26."""
    write(reading, form, "a", [{"id": 1, "one": "x"}])
    write(reading, form, "b", [{"other": "y", "id": 2}])
    frame, _ = reading.read(reading.flow(form))
    assert frame.select(pl.col("id").cast(pl.Int64), "one", "other").sort("id").rows() == [
        (1, "x", None),
        (2, None, "y"),
    ]


@each_format
def test_many_files_are_read_as_few_are(reading, form):
    """More than are scanned one by one."""
    for number in range(70):
        write(reading, form, f"{number:02}", [{"id": number}])
    batch = reading.open(reading.flow(form))
    frame = batch.frame.collect(engine="streaming")
    batch.close()
    assert ids(frame) == [*range(70)]
    assert all(
        f"{row['id']:02}" == row["__file_name"][:2]
        for row in frame.with_columns(pl.col("id").cast(pl.Int64)).to_dicts()
    )


@each_format
def test_files_that_are_older_than_the_watermark_are_not_scanned(reading, form):
    for day in range(4):
        write(reading, form, str(day), [{"id": day}], day=day)
    flow = reading.flow(form, watermark=["__file_modification_time"])
    _, first = reading.read(flow)
    (bound,) = first.observation.candidate.values()
    assert bound == DAY + dt.timedelta(days=3)
    lower = {"__file_modification_time": DAY + dt.timedelta(days=2)}
    frame, batch = reading.read(flow, lower=lower, stored=lower)
    assert ids(frame) == [2, 3]
    assert batch.source_action["files_scanned"] == 2
    frame, batch = reading.read(flow, lower=lower, stored=lower, inclusive=False)
    assert ids(frame) == [3]
    assert batch.source_action["files_scanned"] == 1


@each_format
def test_a_window_over_the_time_of_files_reads_those_of_the_window(reading, form):
    for day in range(4):
        write(reading, form, str(day), [{"id": day}], day=day)
    flow = reading.flow(form, watermark=["__file_modification_time"])
    upper = DAY + dt.timedelta(days=3)
    window = Window("__file_modification_time", DAY + dt.timedelta(days=1), upper)
    frame, batch = reading.read(flow, window=window)
    assert ids(frame) == [1, 2]
    assert batch.source_action["files_scanned"] == 2


@each_format
def test_a_column_that_only_old_files_have_is_still_there(reading, form):
    write(reading, form, "a", [{"id": 1, "old": "x"}])
    write(reading, form, "b", [{"id": 2}], day=1)
    lower = {"__file_modification_time": DAY + dt.timedelta(days=1)}
    flow = reading.flow(form, watermark=["__file_modification_time"])
    frame, _ = reading.read(flow, lower=lower, stored=lower)
    assert frame["old"].to_list() == [None]


@each_format
def test_a_hint_types_a_watermark_before_it_is_compared(reading, form):
    """W1, W8."""
    write(reading, form, "a", [{"id": 1, "v": "9"}, {"id": 2, "v": "10"}, {"id": 3, "v": "11"}])
    flow = reading.flow(form, watermark=["v"], hints={"v": "bigint"})
    frame, batch = reading.read(flow, lower={"v": 9}, stored={"v": 9}, inclusive=False)
    assert ids(frame) == [2, 3]
    assert batch.observation.candidate == {"v": 11}


@each_format
def test_a_key_is_a_column_of_hive_folders(reading, form):
    write(reading, form, "code=007/a", [{"id": 1}])
    write(reading, form, "code=010/a", [{"id": 2}])
    flow = reading.flow(form, connection={"use_hive_partitioning": True})
    frame, _ = reading.read(flow)
    assert sorted(frame["code"].to_list()) == ["007", "010"]


@each_format
def test_the_limit_counts_over_all_files(reading, form):
    for number in range(3):
        write(reading, form, str(number), [{"id": number}, {"id": number}])
    frame, _ = reading.read(reading.flow(form, options={"n_rows": 3}))
    assert frame.height == 3


@pytest.mark.parametrize("form", ["avro", "csv", "json", "jsonl"])
def test_an_archive_may_hold_several_data_files(reading, form):
    """W30."""
    suffix, made = FORMATS[form]
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(2):
            archive.writestr(f"in/{number}{suffix}", made([{"id": number}]))
        archive.writestr("in/readme.txt", "no data")
    reading.write(f"t/all{suffix}.zip", target.getvalue())
    frame, batch = reading.read(reading.flow(form))
    assert ids(frame) == [0, 1]
    assert batch.source_action["files"] == 1


@each_format
def test_temporary_files_are_removed(reading, form, monkeypatch):
    folder = reading.root / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    write(reading, form, "a", [{"id": 1}])
    reading.read(reading.flow(form))
    assert list(folder.iterdir()) == []
    reading.write(f"t/b{FORMATS[form][0]}", b"\x00 broken")
    # some formats take this for data
    with contextlib.suppress(ReadError):
        reading.read(reading.flow(form))
    assert list(folder.iterdir()) == []


@each_format
def test_files_of_another_machine_are_read(reading, form):
    import fsspec

    memory = fsspec.filesystem("memory")
    suffix, made = FORMATS[form]
    for number in range(2):
        memory.pipe(f"/documents/{form}/t/{number}{suffix}", made([{"id": number}]))
    frame, _ = reading.read(reading.flow(form, base_path=f"memory://documents/{form}"))
    assert ids(frame) == [0, 1]


@pytest.mark.parametrize("form", ["avro", "excel", "json", "jsonl"])
def test_a_second_load_appends_the_new_file_only(new_project, form):
    project = new_project()
    project.source_format = form
    folder = project.root / "in/t"
    folder.mkdir(parents=True)
    suffix, made = FORMATS[form]
    project.flow(watermark=["__file_modification_time"])
    for number, status in enumerate(["succeeded", "succeeded"]):
        path = folder / f"{number}{suffix}"
        path.write_bytes(made([{"id": number, "name": "x"}]))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        assert project.run_one().status == status
    assert project.run_one().status == "skipped"
    assert project.ids() == [0, 1]
