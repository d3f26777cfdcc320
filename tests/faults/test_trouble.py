"""A disk that is full, a state that can't be written or read: told as such, and nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import suppress

import pytest
from deltalake import DeltaTable

from tests.faults.cases import Case
from tests.faults.harness import Lab
from tests.faults.kinds import LOADS
from tests.faults.proof import RUN, lab_before, left_over, next_change, untouched

ALL = os.environ.get("FAULTS") == "all"
KINDS = [
    ("append", "Delta"),
    ("append, ties", "CSV"),
    ("append", "Parquet, partitioned"),
    ("overwrite", "JSON"),
    ("merge_upsert", "Delta"),
    ("scd2", "Delta"),
]
SIZES = [0, 40, 200, 500, 700, 1000, 1500, 2000, 2500, 3000, 4000, 6000]
"""Bytes that a file may have: one after the other, each file of a load is too large."""


def case_of(load: str, place: str, run: str = "next load", store: str = "file") -> Case:
    return Case(load, place, run, "", 1, "new run", store)


@pytest.fixture
def before(zygote, shared, tmp_path):
    """Gives a project before its next load, and what comes of it."""

    def made(load: str, place: str, run: str = "next load", store: str = "file"):
        case = case_of(load, place, run, store)
        right = untouched(zygote, shared, case)
        return lab_before(zygote, right, tmp_path / "project", case), right, case

    return made


def made_good(lab: Lab, right, case: Case) -> None:
    """The next run without trouble leaves what no fault touched."""
    kind = LOADS[case.load]
    lab.run()
    assert lab.content(kind.from_load) == right.after
    next_change(kind, case.run, lab.source)
    lab.run()
    assert lab.content(kind.from_load) == right.end
    assert lab.record() == right.record
    left_over(lab)


@pytest.mark.parametrize("size", SIZES if ALL else SIZES[::4])
@pytest.mark.parametrize(("load", "place"), KINDS if ALL else KINDS[:5:2])
@pytest.mark.parametrize("run", ["first load", "next load"])
def test_a_write_that_fails_anywhere_is_an_error_and_changes_nothing(
    before, load, place, run, size
):
    lab, right, case = before(load, place, run)
    child = lab.start(RUN, fsize=size)
    status = child.wait()
    (result,) = child.results[0]["dataflows"]
    assert status == (result["status"] == "failed"), child.log
    assert lab.content(LOADS[load].from_load) in (right.stages[0], right.after)
    if result["status"] == "failed":
        assert result["error"]["code"] != "internal_error", result["error"]
        assert "This is a fault of the product" not in result["error"]["message"]
    made_good(lab, right, case)


def test_a_full_disk_is_told_as_such(before):
    """A file system of its own, with nothing left."""
    lab, right, case = before("append", "Delta")
    lake = lab.root / "lake"
    shutil.move(lake, lab.root / "kept")
    lake.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(lake)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    try:
        shutil.copytree(lab.root / "kept", lake, dirs_exist_ok=True)
        ballast = lake / "ballast"
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        child = lab.start(RUN)
        assert child.wait() == 1
        (result,) = child.results[0]["dataflows"]
        assert (result["error"]["phase"], result["error"]["code"]) == ("write", "disk_full")
        assert "no space is left" in result["error"]["message"]
        assert lab.content() == right.stages[0]
        ballast.unlink()
        made_good(lab, right, case)
    finally:
        subprocess.run(["umount", str(lake)], check=True)


@pytest.mark.parametrize("place", ["Delta", "CSV"])
@pytest.mark.parametrize("run", ["first load", "next load"])
def test_a_state_folder_that_can_t_be_written_is_named_and_costs_nothing(before, place, run):
    """W37: the commit is there, the state is not. A file in the way stops root as well."""
    lab, right, case = before("append", place, run)
    folder, kept = lab.root / ".datacoolie" / "state", lab.root / "kept"
    if folder.exists():
        folder.rename(kept)
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("in the way")
    child = lab.start(RUN)
    assert child.wait() == 1
    (result,) = child.results[0]["dataflows"]
    assert str(folder) in result["error"]["message"]
    assert result["error"]["remedy"]
    assert lab.content() in (right.stages[0], right.after)
    folder.unlink()
    if kept.exists():
        kept.rename(folder)
    made_good(lab, right, case)


def test_a_state_database_that_can_t_be_opened_is_named_and_costs_nothing(before):
    lab, right, case = before("append", "Delta", "next load", "sql")
    database = lab.root / "state.db"
    database.rename(lab.root / "kept.db")
    database.mkdir()
    child = lab.start(RUN)
    assert child.wait() == 1
    (result,) = child.results[0]["dataflows"]
    assert "state.db" in result["error"]["message"]
    assert (result["error"]["code"], lab.content()) == ("state_not_read", right.stages[0])
    database.rmdir()
    (lab.root / "kept.db").rename(database)
    made_good(lab, right, case)


BROKEN = {
    "empty": lambda _: "",
    "cut": lambda text: text[: len(text) // 2],
    "null": lambda _: "null",
    "a list": lambda _: "[]",
    "no object": lambda _: '"x"',
    "binary": lambda _: "\0\1\2\udcff\udcfe",
    "no sequence": lambda text: text.replace('"sequence"', '"other"', 1),
    "no number": lambda text: text.replace('"sequence": 1', '"sequence": "many"'),
    "a bad watermark": lambda text: text.replace("__datetime__", "__moment__"),
    "another's": lambda text: text.replace('"dataflow_id": "f"', '"dataflow_id": "g"'),
    "from the future": lambda text: text.replace('"format": 1', '"format": 99'),
}


@pytest.mark.parametrize("how", BROKEN)
@pytest.mark.parametrize("place", ["Delta", "CSV"] if ALL else ["Delta"])
def test_a_broken_state_file_is_named_with_a_way_out_that_works(before, how, place):
    """W43."""
    lab, right, case = before("append", place)
    path = lab.root / ".datacoolie" / "state" / "f.json"
    text = path.read_text()
    broken = BROKEN[how](text)
    assert broken != text
    path.write_text(broken, errors="surrogateescape")
    child = lab.start(RUN)
    assert child.wait() == 1, child.results
    (result,) = child.results[0]["dataflows"]
    assert str(path) in result["error"]["message"]
    assert result["error"]["remedy"]
    assert lab.content() == right.stages[0]
    path.unlink()
    made_good(lab, right, case)


@pytest.mark.parametrize("how", [*BROKEN][: 9 : 1 if ALL else 3])
def test_a_broken_manifest_is_named_and_nothing_is_written(before, how):
    lab, right, _ = before("append", "CSV")
    path = lab.folder / "_datacoolie" / "_f.json"
    text = path.read_text()
    broken = BROKEN[how](text.replace('":', '": '))
    path.write_text(broken, errors="surrogateescape")
    files = lab.there()
    child = lab.start(RUN)
    assert child.wait() == 1, child.results
    (result,) = child.results[0]["dataflows"]
    assert result["error"]["code"] in ("manifest_broken", "state_broken", "state_format")
    assert str(lab.folder) in result["error"]["message"]
    assert lab.there() == files
    path.write_text(text)
    assert lab.content() == right.stages[0]


@pytest.mark.parametrize("how", ["no number", "a bad watermark", "no sequence"])
@pytest.mark.parametrize("place", ["Delta", "CSV"])
def test_a_broken_state_in_the_destination_is_named_with_a_way_out_that_works(before, how, place):
    """Somebody edited the log, or the manifest."""
    lab, right, _ = before("append", place)
    log = "_delta_log/00000000000000000000.json" if place == "Delta" else "_datacoolie/_f.json"
    path = lab.folder / log
    head, own, tail = path.read_text().partition('"state_watermark"')
    head, commit, start = head.rpartition('"datacoolie"' if place == "Delta" else '"commit"')
    spaced = f"{start}{own}{tail}".replace('":', '": ')
    broken = BROKEN[how](spaced)
    assert broken != spaced
    path.write_text(f"{head}{commit}{broken}")
    child = lab.start(RUN)
    assert child.wait() == 1, child.results
    (result,) = child.results[0]["dataflows"]
    assert result["error"]["code"] == "state_broken"
    assert str(lab.folder) in result["error"]["message"]
    assert "--full-refresh" in result["error"]["remedy"]
    lab.run({"do": "refresh"})
    assert lab.content() == right.after


def test_a_lock_that_can_t_be_taken_keeps_no_run_from_working(before):
    """A read-only project folder, as a container may have: the commit's fence still holds."""
    lab, right, case = before("append", "Delta")
    shutil.rmtree(lab.root / ".datacoolie" / "locks")
    (lab.root / ".datacoolie" / "locks").write_text("in the way")
    made_good(lab, right, case)


@pytest.mark.parametrize("point", ["entry-written", "committed", "saving", "saved"])
def test_a_table_that_is_restored_after_a_kill_is_loaded_again(before, point):
    """The store may be ahead of the table then: the table counts."""
    lab, right, case = before("append, ties", "Delta")
    lab.kill(RUN, point)
    DeltaTable(str(lab.folder)).restore(0)
    assert lab.content() == right.stages[0]
    made_good(lab, right, case)


@pytest.mark.parametrize("load", ["append", "merge_upsert", "scd2", "overwrite"])
@pytest.mark.parametrize("point", ["staged", "committed", "saved"])
def test_a_table_that_is_restored_while_a_run_stands_still_is_loaded_again(before, load, point):
    lab, right, case = before(load, "Delta")
    DeltaTable(str(lab.folder)).optimize.compact()  # so that there is a version to go back from
    slow = lab.pause(RUN, point)
    DeltaTable(str(lab.folder)).restore(0)
    slow.go_on()
    assert slow.wait() == 0, f"{slow.log}{slow.results}"
    kind = LOADS[load]
    assert lab.content(kind.from_load) in (right.stages[0], right.after)
    made_good(lab, right, case)


@pytest.mark.parametrize("place", ["Delta", "CSV"])
@pytest.mark.parametrize("point", ["committed", "saved", "staged"])
def test_a_destination_that_is_deleted_after_a_kill_is_loaded_from_the_beginning(
    before, place, point
):
    lab, right, _ = before("append", place)
    lab.kill(RUN, point)
    shutil.rmtree(lab.folder)
    ((result,),) = (one["dataflows"] for one in lab.run())
    assert result["status"] == "succeeded"
    assert lab.content() == right.after


@pytest.mark.parametrize("load", ["append", "merge_upsert", "scd2"])
@pytest.mark.parametrize("left", [None, ""], ids=["gone", "empty"])
def test_a_commit_that_a_power_failure_took_is_loaded_again(before, load, left):
    """The state is synced, the log is not: the state may be ahead of the table."""
    lab, right, case = before(load, "Delta")
    lab.run()
    newest = max((lab.folder / "_delta_log").glob("*.json"))
    newest.unlink() if left is None else newest.write_text(left)
    ((result,),) = (one["dataflows"] for one in lab.run())
    assert (result["status"], result["sequence"]) == ("succeeded", 3)
    assert "state_ahead" in [one["code"] for one in result["warnings"]]
    made_good(lab, right, case)


@pytest.mark.parametrize("load", ["append", "append, ties", "merge_upsert"])
@pytest.mark.parametrize("point", ["staged", "committing", "committed", "saved"])
def test_rows_of_others_that_come_meanwhile_stay(before, load, point):
    import polars as pl
    from deltalake import write_deltalake

    lab, right, _ = before(load, "Delta")
    theirs = pl.DataFrame({"id": [1000], "v": ["theirs"]})
    slow = lab.pause(RUN, point)
    write_deltalake(str(lab.folder), theirs.to_arrow(), mode="append", schema_mode="merge")
    slow.go_on()
    assert slow.wait() == 0, f"{slow.log}{slow.results}"
    mine = [one for one in lab.content() if "theirs" not in one]
    assert mine == right.after
    assert len(lab.content()) == len(mine) + 1
    ((result,),) = (one["dataflows"] for one in lab.run())
    assert result["status"] == "skipped"


def test_the_record_of_a_run_is_written_last_and_may_miss(before):
    """A log that can't be written never fails a load, and a kill before it loses no row."""
    lab, right, case = before("append", "Delta")
    logs = lab.root / "logs"
    logs.write_text("in the way")
    child = lab.start(RUN, logs=str(logs))
    assert child.wait() == 0, child.log
    assert lab.content() == right.after
    assert json.loads((lab.root / ".datacoolie/state/f.json").read_text())["sequence"] == 2
    next_change(LOADS["append"], case.run, lab.source)
    lab.run()
    assert lab.content() == right.end
