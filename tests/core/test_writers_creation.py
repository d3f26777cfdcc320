"""A table is created once, by whoever is first."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.schema import PrimitiveType

from datacoolie_core.writers.creation import create_table
from datacoolie_core.writers.tables import Place

SCHEMA = Schema([Field("id", PrimitiveType("long"))])


def create(uri: str, number: int = 1) -> None:
    properties = CommitProperties(app_transactions=[Transaction("flow", number)])
    create_table(Place(uri, {}), SCHEMA, [], [], properties)


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "_delta_log").glob("*.json"))


def test_a_table_has_its_columns_its_transaction_and_its_own_place(tmp_path):
    uri = str(tmp_path / "größe" / "t")
    create(uri, 7)
    table = DeltaTable(uri)
    assert (table.version(), table.transaction_version("flow")) == (0, 7)
    assert [field.name for field in table.schema().fields] == ["id"]
    assert table.history()[0]["operationParameters"]["location"] == uri


def test_the_second_is_told_and_adds_nothing(tmp_path):
    create(str(tmp_path))
    with pytest.raises(FileExistsError):
        create(str(tmp_path), 2)
    assert entries(tmp_path) == ["00000000000000000000.json"]
    assert DeltaTable(str(tmp_path)).transaction_version("flow") == 1


def test_of_many_at_once_exactly_one_creates_the_table(tmp_path):
    """The library's own way puts the second one's rows on top of the first's."""
    for nth in range(10):
        folder, won, barrier = tmp_path / str(nth), [], threading.Barrier(6)

        def race(number, folder=folder, won=won, barrier=barrier):
            barrier.wait()
            try:
                create(str(folder), number)
            except FileExistsError:
                return
            won.append(number)

        threads = [threading.Thread(target=race, args=(number,)) for number in range(6)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert entries(folder) == ["00000000000000000000.json"]
        text = (folder / "_delta_log" / "00000000000000000000.json").read_text()
        found = [json.loads(line) for line in text.splitlines()]
        assert [one["txn"]["version"] for one in found if "txn" in one] == won
