"""The example of the page about files runs as it stands, and its tables name every option."""

from __future__ import annotations

import re
from pathlib import Path

import openpyxl
import polars as pl
import yaml

from datacoolie_core import DataCoolieDriver
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.readers import csv_files, excel_options, json_lines

PAGE = (Path(__file__).resolve().parents[2] / "docs/sources-files.md").read_text("utf-8")


def test_the_example_of_files_loads(tmp_path):
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "exports/orders").mkdir(parents=True)
    (tmp_path / "events/clicks").mkdir(parents=True)
    workbook = openpyxl.Workbook()
    sheet = workbook.create_sheet("Orders")
    for row in (["order_id", "amount"], [1001, 5], ["US1", "n/a"]):
        sheet.append(row)
    workbook.save(tmp_path / "exports/orders/may.xlsx")
    (tmp_path / "events/clicks/1.json").write_text('[{"at": "2024-05-01"}, {"at": null}]')
    metadata = metadata_from_documents([("page.yaml", yaml.safe_load(example))])
    with DataCoolieDriver(metadata, project_dir=str(tmp_path)) as driver:
        found = [one.status for one in driver.run().dataflows]
        again = [one.status for one in driver.run().dataflows]
    assert (found, again) == (["succeeded"] * 2, ["succeeded", "skipped"])
    orders = pl.read_delta(str(tmp_path / "lake/orders"))
    assert orders.select("order_id", "amount").rows() == [("1001", 5), ("US1", None)]


def test_every_option_of_excel_and_json_is_on_the_page():
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", PAGE).lower()
    engine = {"low_memory", "ignore_errors", "batch_size", "engine"}
    for option in {*excel_options.OPTIONS, *json_lines.OPTIONS} - engine:
        assert f"`{option}`" in snake, option


def test_every_packing_of_csv_is_on_the_page():
    for suffix in csv_files.SUFFIXES:
        assert f"`.{suffix.rpartition('.')[2]}`" in PAGE
