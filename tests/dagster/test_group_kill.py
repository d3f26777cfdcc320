"""A group step that is killed: what was loaded is recorded, and nothing is lost or doubled."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import dagster as dg
import pytest

from tests.dagster.located import execute, write

ROOT = Path(__file__).parents[2]
CODE = """
    import time
    from pathlib import Path
    import polars as pl

    HERE = Path(__file__).parent

    def load(*, source, **_):
        name = source.configure.name
        (HERE / f"asked-{name}").touch()
        while (HERE / f"hold-{name}").exists():
            time.sleep(0.02)
        return pl.DataFrame({"id": [1, 2, 3]})
"""
RUN = """
    import sys
    import dagster as dg
    from tests.dagster.located import IN_PROCESS, job_of
    with dg.DagsterInstance.local_temp(sys.argv[2]) as instance:
        job_of(sys.argv[1], 0, False).execute_in_process(instance=instance)
"""


@pytest.fixture
def held(lake):
    """Five tables of a group: the last but one holds the step up, the last one waits for it."""
    (lake.root / "held.py").write_text(textwrap.dedent(CODE))
    lake.connect("code", "function", ".", connection_type="function")
    lake.arguments["granularity"] = "group"
    for index, order in enumerate([0, 0, 0, 0, 1]):
        name = f"t{index}"
        lake.flow(
            name,
            group_number=1,
            execution_order=order,
            source={
                "connection_name": "code",
                "python_function": "held.load",
                "watermark_columns": ["id"],
                "configure": {"name": name},
            },
            destination={"load_type": "append"},
        )
    write(lake)
    (lake.root / "hold-t3").touch()
    return lake


def kill_while_held(lake):
    """Run the group in a process, and kill it once the others are recorded."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(RUN), str(lake.root), str(lake.home)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    )
    wanted = {"t0", "t1", "t2"}
    while not wanted <= recorded(lake):
        assert process.poll() is None, process.communicate()[1]
    while not (lake.root / "asked-t3").exists():
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()


def recorded(lake):
    keys = [dg.AssetKey(["raw", one["name"]]) for one in lake.dataflows]
    newest = lake.instance.get_latest_materialization_events(keys)
    return {key.path[-1] for key, event in newest.items() if event is not None}


def test_what_was_loaded_is_recorded_and_a_new_run_loads_the_rest(held):
    kill_while_held(held)
    assert recorded(held) == {"t0", "t1", "t2"}
    (held.root / "hold-t3").unlink()
    result = execute(held)
    assert result.success
    for index in range(5):
        assert held.ids(f"raw/t{index}") == [1, 2, 3]
    kinds = {one: held.newest(f"raw/{one}")["datacoolie/status"] for one in ("t0", "t3", "t4")}
    assert kinds == {"t0": "skipped", "t3": "succeeded", "t4": "succeeded"}


def test_what_was_committed_and_not_recorded_is_found_in_the_table(held):
    """The instance lost its events between the commit and now."""
    kill_while_held(held)
    held.instance.wipe_assets([dg.AssetKey(["raw", "t0"])])
    (held.root / "hold-t3").unlink()
    assert execute(held).success
    assert held.ids("raw/t0") == [1, 2, 3]
    assert held.newest("raw/t0")["datacoolie/recovered"] is True
