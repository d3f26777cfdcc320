"""Two to eight processes on one table, and on one dataflow, some of them killed."""

from __future__ import annotations

import json
import os
import random
import signal

import polars as pl
import pytest

from tests.faults.cases import points_of
from tests.faults.kinds import put, rows

ALL = os.environ.get("FAULTS") == "all"
MANY = (2, 4, 8) if ALL else (3,)


def document(load_type: str, number: int, form: str = "delta") -> dict:
    """One dataflow of several that write one table."""
    destination = {"connection_name": "lake", "table": "o", "load_type": load_type}
    if load_type != "append":
        destination["merge_keys"] = ["id"]
    return {
        "connections": [
            {"name": "in", "format": "parquet", "configure": {"base_path": "in"}},
            {"name": "lake", "format": form, "configure": {"base_path": "lake"}},
        ],
        "dataflows": [
            {
                "name": f"f{number}",
                "dataflow_id": f"f{number}",
                "source": {
                    "connection_name": "in",
                    "table": f"t{number}",
                    "watermark_columns": ["ts"],
                },
                "destination": destination,
            }
        ],
    }


def write(lab, load_types: list[str], form: str = "delta") -> list[str]:
    """Write a metadata file for each process; return their paths."""
    paths = []
    for number, load_type in enumerate(load_types):
        path = lab.root / f"metadata{number}.json"
        path.write_text(json.dumps(document(load_type, number, form)))
        paths.append(str(path))
    lab.write(document(load_types[0], 0, form))
    return paths


def together(lab, paths: list[str], **faults):
    """Start a child for each metadata file, all at the same instant."""
    gate = lab.scratch / f"{random.random()}.barrier"
    children = [
        lab.start({"do": "run"}, metadata=path, barrier=str(gate), fault=faults.get(f"f{number}"))
        for number, path in enumerate(paths)
    ]
    gate.touch()
    return children


def source(lab, number: int):
    return lab.root / "in" / f"t{number}"


def ended_well(children) -> None:
    for child in children:
        assert child.wait() == 0, f"{child.log}{lab_errors(child)}"


def lab_errors(child) -> str:
    return str([one["error"] for result in child.results for one in result["dataflows"]])


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("form", ["delta", "csv", "parquet"])
def test_several_processes_that_append_to_one_place_add_each_row_once(lab, many, form):
    """W38 to W42: also the first load, when there is no table yet."""
    paths = write(lab, ["append"] * many, form)
    expected = set()
    for turn in range(1, 4):
        for number in range(many):
            keys = [1000 * number + 10 * turn + n for n in range(8)]
            put(source(lab, number), f"{turn}.parquet", rows(*((k, turn, "v") for k in keys)))
            expected |= set(keys)
        ended_well(together(lab, paths))
        assert sorted(map(int, lab.rows()["id"])) == sorted(expected)


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("load_type", ["merge_upsert", "merge_overwrite"])
def test_several_processes_that_merge_other_keys_add_each_key_once(lab, many, load_type):
    paths = write(lab, [load_type] * many)
    for turn in range(1, 4):
        for number in range(many):
            values = [(1000 * number + n, turn, f"turn{turn}") for n in range(8)]
            put(source(lab, number), f"{turn}.parquet", rows(*values))
        ended_well(together(lab, paths))
        frame = lab.rows()
        assert sorted(frame["id"]) == sorted(1000 * p + n for p in range(many) for n in range(8))
        assert set(frame["v"]) == {f"turn{turn}"}


@pytest.mark.parametrize("many", MANY)
def test_several_processes_that_merge_the_same_keys_leave_the_newest_of_each(lab, many):
    """Whoever commits last: a row that is older than the stored one is not applied."""
    paths = write(lab, ["merge_upsert"] * many)
    for turn in range(3):
        newest = {}
        for number in range(many):
            order = 1 + turn * many + number
            values = [(n, order, f"from{order}") for n in range(8)]
            put(source(lab, number), f"{turn}.parquet", rows(*values))
            newest = dict.fromkeys(range(8), f"from{order}")
        ended_well(together(lab, paths))
        assert dict(lab.rows().select("id", "v").rows()) == newest
        assert lab.rows().height == 8


def test_appends_and_merges_beside_each_other_lose_nothing(lab):
    paths = write(lab, ["append", "merge_upsert", "append", "merge_overwrite"])
    for turn in range(1, 4):
        for number in range(4):
            base = 1000 * number + (10 * turn if number in (0, 2) else 0)
            values = [(base + n, turn, f"turn{turn}") for n in range(5)]
            put(source(lab, number), f"{turn}.parquet", rows(*values))
        ended_well(together(lab, paths))
    frame = lab.rows()
    appended = frame.filter((pl.col("id") // 1000).is_in([0, 2]))
    merged = frame.filter((pl.col("id") // 1000).is_in([1, 3]))
    assert (appended.height, appended["id"].n_unique()) == (30, 30)
    assert (merged.height, set(merged["v"])) == (10, {"turn3"})


@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("form", ["delta", "csv"])
@pytest.mark.parametrize("apart", [False, True], ids=["one machine", "several machines"])
def test_several_processes_of_one_dataflow_add_each_row_once(lab, tmp_path, many, form, apart):
    """W42: with the lock all but one are skipped or go on after it; without it the fence counts."""
    (path,) = write(lab, ["append"], form)
    roots = [lab.root]
    for number in range(1, many if apart else 1):
        other = tmp_path / f"machine{number}"
        other.mkdir()
        (lab.root / "lake").mkdir(exist_ok=True)
        for name in ("lake", "in"):
            (other / name).symlink_to(lab.root / name)
        roots.append(other)
    state = str(lab.root / ".datacoolie" / "state")
    for turn in range(1, 4):
        put(
            source(lab, 0), f"{turn}.parquet", rows(*((10 * turn + n, turn, "v") for n in range(9)))
        )
        gate = lab.scratch / f"{turn}.barrier"
        children = [
            lab.start(
                {"do": "run"},
                metadata=path,
                barrier=str(gate),
                project=str(roots[number % len(roots)]),
                state=state,
            )
            for number in range(many)
        ]
        gate.touch()
        ended_well(children)
        statuses = [one["status"] for c in children for r in c.results for one in r["dataflows"]]
        assert set(statuses) <= {"succeeded", "skipped"}
        assert sorted(map(int, lab.rows()["id"])) == sorted(
            10 * t + n for t in range(1, turn + 1) for n in range(9)
        )


@pytest.mark.parametrize("seed", range(12 if ALL else 2))
@pytest.mark.parametrize("load_type", ["append", "merge_upsert"])
def test_a_kill_among_several_processes_loses_and_doubles_nothing(lab, load_type, seed):
    """One of three is killed at a point that is drawn, and comes again in the next turn."""
    draw = random.Random(seed)
    paths = write(lab, [load_type] * 3)
    points = points_of("append, ties", "Delta", "next load")
    for turn in range(1, 4):
        for number in range(3):
            values = [(100 * number + 10 * turn + n, turn, "v") for n in range(6)]
            put(source(lab, number), f"{turn}.parquet", rows(*values))
        struck = draw.randrange(3)
        fault = {"point": draw.choice(points), "action": "SIGKILL"}
        children = together(lab, paths, **{f"f{struck}": fault})
        for number, child in enumerate(children):
            status = child.wait()
            assert status == (-signal.SIGKILL if number == struck else 0), child.log
    ended_well(together(lab, paths))
    assert sorted(lab.rows()["id"]) == sorted(
        100 * p + 10 * t + n for p in range(3) for t in range(1, 4) for n in range(6)
    )


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_a_dead_run_left_is_cleared_and_what_a_live_one_stages_is_not(lab, form):
    """Three dataflows of one folder: one stands still, one dies, the third one clears up."""
    paths = write(lab, ["append"] * 3, form)
    for number in range(3):
        put(source(lab, number), "a.parquet", rows(*((100 * number + n, 1, "v") for n in range(7))))
    pause = {"point": "staged", "action": "pause"}
    live = lab.start({"do": "run"}, metadata=paths[0], fault=pause)
    live.wait_until_paused()
    dead = lab.start(
        {"do": "run"}, metadata=paths[1], fault={"point": "staged", "action": "SIGKILL"}
    )
    assert dead.wait() == -signal.SIGKILL
    staging = lab.folder / "_datacoolie" / "staging"
    folders = [one for one in staging.iterdir() if one.is_dir()]
    assert len(folders) == 2
    lab.run({"do": "run"}, metadata=paths[2])
    assert len([one for one in staging.iterdir() if one.is_dir()]) == 1
    live.go_on()
    assert live.wait() == 0, f"{live.log}{lab_errors(live)}"
    ended_well(together(lab, paths))
    assert sorted(map(int, lab.rows()["id"])) == sorted(
        100 * p + n for p in range(3) for n in range(7)
    )
    assert lab.there() == lab.seen()
