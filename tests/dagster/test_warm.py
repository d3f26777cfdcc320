"""The warm executor in real runs: what a step finds in its process, and what it need not do again."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from tempfile import TemporaryDirectory

import dagster as dg
import pytest

from datacoolie_dagster.warm import warm_executor

BUILD = """
import os, sys
from pathlib import Path
from tempfile import TemporaryDirectory
import dagster as dg
from datacoolie_dagster import build_datacoolie_definitions
from datacoolie_dagster.warm import warm_executor

ROOT = Path({root!r})


def note(name, text=""):
    with (ROOT / name).open("a") as file:
        file.write(f"{{os.getpid()}} {{text}}\\n")


@dg.asset
def probe():
    note("steps", sorted({{"polars", "deltalake"}} & set(sys.modules)))


def build():
    note("builds")
    ours = build_datacoolie_definitions(ROOT / "flows.json", project_dir=ROOT)
    mine = dg.Definitions(
        [probe],
        jobs=[dg.define_asset_job("all", dg.AssetSelection.all(), executor_def=warm_executor())],
    )
    return dg.Definitions.merge(ours, mine)
"""
IN_A_FILE = {"flows.py": BUILD + "\n\ndefs = build()\n"}
IN_A_FUNCTION = {"flows.py": BUILD + "\n\n@dg.definitions\ndef defs():\n    return build()\n"}
IN_A_FOLDER = {
    "pyproject.toml": "[tool.dg]\ndirectory_type = 'project'\n[tool.dg.project]\nroot_module = 'project'\n",
    "project/__init__.py": "",
    "project/defs/__init__.py": "",
    "project/defs/flows.py": IN_A_FUNCTION["flows.py"],
}
FLOWS = 3


@pytest.fixture
def project(lake):
    """Return a lake whose dataflows multiply ids, and a function that runs all of them."""
    for index in range(FLOWS):
        lake.csv(f"f{index}", *(f"{row},{index}" for row in range(1000)), header="id,n")
        doubled = [{"column": "doubled", "expression": "cast(id as bigint) * 2"}]
        lake.flow(f"f{index}", transform={"additional_columns": doubled})
    (lake.root / "flows.json").write_text(json.dumps(lake.document))
    return lake


def run(lake, files, *target, config=""):
    """Run the job ``all`` as Dagster's command line does, in processes of its own."""
    for name, text in files.items():
        path = lake.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(root=str(lake.root)))
    (lake.home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    (lake.root / "config.yaml").write_text(config or "{}")
    command = ["-X", "faulthandler", "-m", "dagster", "job", "execute", "-j", "all"]
    done = subprocess.run(
        [sys.executable, *command, "-c", "config.yaml", *target],
        cwd=lake.root,
        env={**os.environ, "DAGSTER_HOME": str(lake.home), "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def processes(lake, name):
    """Return the ids of processes that wrote into a file, and what they wrote."""
    lines = (lake.root / name).read_text().splitlines()
    return dict(line.split(" ", 1) for line in lines)


@pytest.mark.parametrize(
    ("files", "target"),
    [
        (IN_A_FILE, ["-f", "flows.py"]),
        (IN_A_FILE, ["-m", "flows"]),
        (IN_A_FUNCTION, ["-m", "flows"]),
        (IN_A_FOLDER, ["--autoload-defs-module-name", "project.defs"]),
    ],
    ids=["file", "module", "function", "folder"],
)
def test_no_step_builds_the_definitions_again_and_all_of_them_load_with_polars(
    project, files, target
):
    out = run(project, files, *target)
    builds, steps = processes(project, "builds"), processes(project, "steps")
    # the process of the run, and the server that its steps are forked from
    assert len(builds) == 2, out[-3000:]
    assert list(steps.values()) == ["[]"], "polars is imported after the fork, not before"
    assert not steps.keys() & builds.keys()
    assert "DataCoolie:" not in out, "the server has something to say"
    for index in range(FLOWS):
        assert project.rows(f"raw/f{index}")["doubled"].sum() == 999 * 1000


def test_nothing_is_left_of_what_the_run_told_the_server(project, monkeypatch):
    with TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        run(project, IN_A_FILE, "-f", "flows.py")
        assert not list(Path(folder).glob("datacoolie_*"))


def test_a_folder_for_temporary_files_with_a_long_path_costs_warmth_alone(
    project, monkeypatch, tmp_path
):
    """A socket's path has a limit; steps are then started as Dagster's own."""
    folder = tmp_path / ("temporary-" * 8)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    run(project, IN_A_FILE, "-f", "flows.py")
    assert len(processes(project, "builds")) == 1 + FLOWS + 1, "the run, and each of its steps"


def test_definitions_that_import_polars_are_not_forked_and_their_steps_are_right(project):
    files = {"flows.py": "import polars\n" + IN_A_FILE["flows.py"]}
    run(project, files, "-f", "flows.py")
    assert len(processes(project, "builds")) == 1 + FLOWS + 1, "the run, and each of its steps"
    assert project.rows("raw/f2")["doubled"].sum() == 999 * 1000


@pytest.mark.parametrize(
    ("config", "builds"),
    [
        ("multiprocess: {start_method: {spawn: {}}, max_concurrent: 1}", 1 + FLOWS + 1),
        ("in_process: {}", 1),
    ],
    ids=["spawn", "in_process"],
)
def test_what_the_run_config_says_of_processes_is_done(project, config, builds):
    run(project, IN_A_FILE, "-f", "flows.py", config=f"execution: {{config: {{{config}}}}}")
    assert len(processes(project, "builds")) == builds
    assert project.rows("raw/f2")["doubled"].sum() == 999 * 1000


def test_definitions_that_have_it_can_be_merged():
    parts = [dg.Definitions(executor=warm_executor()) for _ in range(2)]
    assert dg.Definitions.merge(*parts).executor is warm_executor()


@pytest.mark.parametrize(
    "plan",
    [b"nothing that can be read", b"\x80\x04}\x94\x8c\x03job\x94K\x07s."],
    ids=["broken", "a job without the private names"],
)
def test_a_server_that_can_not_build_says_so_and_goes_on(tmp_path, plan):
    """Steps then build the definitions themselves, as Dagster's own do."""
    (tmp_path / "plan").write_bytes(plan)
    done = subprocess.run(
        [sys.executable, "-c", "import datacoolie_dagster.warm_server; print('it goes on')"],
        env={**os.environ, "DATACOOLIE_WARM_STEPS": str(tmp_path / "plan")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0
    assert "it goes on" in done.stdout
    assert "DataCoolie: steps start slowly" in done.stderr


def test_a_server_with_threads_says_what_to_do(tmp_path):
    """A process with threads must not be forked; only its owner can change what it imports."""
    (tmp_path / "starts_threads.py").write_text(
        textwrap.dedent(
            """
            import threading
            threading.Thread(target=threading.Event().wait, daemon=True).start()
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "-c", "import starts_threads, datacoolie_dagster.warm_server"],
        env={
            **os.environ,
            "DATACOOLIE_WARM_STEPS": str(tmp_path / "none"),
            "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path.cwd())]),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Import it within functions" in done.stderr
