"""Python functions as sources: how they are found, what they are given, what they may return."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from datacoolie_core import DataCoolieRunConfig, ReplayConfig
from datacoolie_core.errors import ReadError
from datacoolie_core.plan.windows import Window
from datacoolie_core.settings import load_settings
from tests.core.case_project import BIN

HEAD = "import polars as pl\n"


@pytest.fixture(autouse=True)
def forgotten():
    """Leaves no module of a test's project behind."""
    before, path = set(sys.modules), list(sys.path)
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("functions", "functions_evil", "jobs"):
            del sys.modules[name]
    sys.path[:] = path


@pytest.fixture
def source(reading):
    """Writes a module of the project and returns what reads one of its functions."""

    def write(code: str, module: str = "functions.sources", **given: Any):
        path = reading.root / Path(*module.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + code, encoding="utf-8")
        given.setdefault("python_function", f"{module}.load")
        return reading.flow(
            "function", source={"python_function": given.pop("python_function")}, **given
        )

    return write


def refused(reading, flow, **request) -> ReadError:
    with pytest.raises(ReadError) as caught:
        reading.read(flow, **request)
    return caught.value


# What it may return


FRAME = "pl.DataFrame({'id': [1, 2], 'v': ['a', None]})"


@pytest.mark.parametrize(
    "returned",
    [
        FRAME,
        f"{FRAME}.lazy()",
        f"{FRAME}.to_arrow()",
        f"{FRAME}.to_arrow().to_reader(max_chunksize=1)",
        f"iter([{FRAME}.head(1), {FRAME}.tail(1).lazy()])",
        f"[{FRAME}.head(1), {FRAME}.tail(1)]",
        f"({FRAME}.slice(at, 1) for at in range(2))",
    ],
)
def test_any_frame_is_taken(reading, source, returned):
    """W63: eager frames too."""
    found = source(f"def load(**_):\n    return {returned}", watermark=["id"])
    frame, batch = reading.read(found)
    assert frame.sort("id").rows() == [(1, "a"), (2, None)]
    assert batch.observation.candidate == {"id": 2}
    assert batch.source_action == {"function": "functions.sources.load"}


def test_a_generator_is_a_source_of_many_pages(reading, source):
    """Its frames are kept in files: it is run once, however often the rows are looked at."""
    code = """
from pathlib import Path
def load(**_):
    calls = Path(__file__).with_name("calls")
    calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
    for page in range(50):
        yield pl.DataFrame({"id": [page], "day": ["2024-01-01"]})
        yield pl.DataFrame({"id": [page + 0.5], "more": [True]})
"""
    frame, _ = reading.read(source(code, watermark=["day"]))
    assert frame.height == 100
    assert frame.dtypes == [pl.Float64, pl.String, pl.Boolean]
    assert (reading.root / "functions/calls").read_text() == "x"


@pytest.mark.parametrize("returned", ["None", "iter([])"])
def test_nothing_is_no_rows(reading, source, returned):
    assert reading.open(source(f"def load(**_):\n    return {returned}")).empty


def test_a_reader_without_batches_still_has_columns(reading, source):
    code = f"def load(**_):\n    return {FRAME}.clear().to_arrow().to_reader()"
    assert reading.read(source(code))[0].columns == ["id", "v"]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("[{'id': 1}]", "a list"),
        ("1", "an int"),
        ("pl.Series([1])", "a Series"),
        ("iter([1])", "an int"),
    ],
)
def test_what_is_no_frame_is_refused(reading, source, returned, said):
    error = refused(reading, source(f"def load(**_):\n    return {returned}"))
    assert error.message == f"it returned {said}"
    assert (error.code, error.retryable) == ("bad_result", False)


def test_frames_that_do_not_go_together_are_named(reading, source):
    code = (
        "def load(**_):\n    yield pl.DataFrame({'v': [1]})\n    yield pl.DataFrame({'v': ['a']})"
    )
    error = refused(reading, source(code))
    assert error.place == "function 'functions.sources.load', column 'v'"
    assert "Int64 in frame 1 and String in frame 2" in error.message


# What it is given


def test_it_is_given_the_engine_the_source_and_its_bounds(reading, source):
    code = """
def load(*, engine, source, watermark_start, watermark_end):
    assert (engine.name, engine.path("a/b")) == ("polars", engine.project_dir + "/a/b")
    engine.sql("SELECT * FROM t", t=pl.LazyFrame({"a": [1]})).collect()
    return pl.DataFrame({"said": [f"{source.table} {watermark_start} {watermark_end}"], "id": [9]})
"""
    found = source(code, watermark=["id"])
    assert reading.read(found)[0]["said"][0] == "t None None"
    frame, _ = reading.read(found, lower={"id": 3}, stored={"id": 4})
    assert frame["said"][0] == "t {'id': 3} None"
    frame, _ = reading.read(found, window=Window("id", 1, 10))
    assert frame["said"][0] == "t {'id': 1} {'id': 10}"


def test_a_function_that_asks_for_the_range_of_a_replay_gets_it(reading, source):
    code = """
def load(engine, source, watermark_start, watermark_end, read_range=None):
    return pl.DataFrame({"id": [5], "said": [str(read_range)]})
"""
    found = source(code, watermark=["id"])
    assert reading.read(found)[0]["said"][0] == "None"
    frame, _ = reading.read(found, window=Window("id", 1, None))
    assert frame["said"][0] == "{'column': 'id', 'start': 1, 'end': None}"


def test_the_engine_reads_delta_tables_of_the_project(reading, source):
    pl.DataFrame({"id": [1]}).write_delta(str(reading.root / "lake/t"))
    pl.DataFrame({"id": [2]}).write_delta(str(reading.root / "lake/t"), mode="append")
    code = """
def load(engine, **_):
    old = engine.scan_delta("lake/t", version=0)
    return engine.scan_delta("lake/t").join(old, on="id", how="anti")
"""
    assert reading.rows(source(code)) == [(2,)]


def test_a_function_that_ignores_its_bounds_doubles_nothing(project, source):
    folder = project.root / "functions"
    folder.mkdir()
    code = "def load(**_):\n    return pl.DataFrame({'id': [1, 2, 3], 'v': ['a', 'b', 'c']})"
    (folder / "sources.py").write_text(HEAD + code)
    flow = project.flow(watermark=["id"])
    flow["source"] = {
        "connection": {"name": "f", "format": "function"},
        "python_function": "functions.sources.load",
        "watermark_columns": ["id"],
    }
    assert project.run_one().rows["rows_written"] == 3
    assert project.run_one().status == "skipped"
    with project.driver() as driver:
        dataflows = driver.metadata.dataflows
        (result,) = driver.run_replay(dataflows, ReplayConfig(start=2, end=3, step=1)).dataflows
    assert (result.status, result.rows["rows_read"]) == ("succeeded", 1)
    assert project.ids() == [1, 2, 3]


# How it is found


def test_a_module_of_the_project_comes_before_an_installed_one(
    reading, source, tmp_path_factory, monkeypatch
):
    other = tmp_path_factory.mktemp("installed")
    (other / "functions").mkdir()
    (other / "functions/__init__.py").touch()
    (other / "functions/sources.py").write_text(f"{HEAD}def load(**_):\n    return None")
    monkeypatch.syspath_prepend(str(other))
    code = "def load(**_):\n    from functions.more import frame\n    return frame()"
    source(f"def frame():\n    return {FRAME}", "functions.more")
    assert reading.read(source(code))[0].height == 2


def test_two_projects_of_one_process_have_their_own_functions(reading, source, tmp_path_factory):
    assert reading.rows(source("def load(**_):\n    return pl.DataFrame({'id': [1]})")) == [(1,)]
    first = reading.root
    reading.root = tmp_path_factory.mktemp("second")
    assert reading.rows(source("def load(**_):\n    return pl.DataFrame({'id': [2]})")) == [(2,)]
    reading.root = first
    assert reading.rows(
        reading.flow("function", source={"python_function": "functions.sources.load"})
    ) == [(1,)]


@pytest.mark.parametrize("path", ["functions.sources:Orders.load", "functions.sources.Orders.load"])
def test_a_method_of_a_class_can_be_named(reading, source, path):
    code = f"class Orders:\n    @staticmethod\n    def load(**_):\n        return {FRAME}"
    assert reading.read(source(code, python_function=path))[0].height == 2


@pytest.mark.parametrize(
    ("allowed", "function", "fine"),
    [
        ((), "functions.sources.load", True),
        (("functions",), "functions.sources.load", True),
        (("functions.",), "functions.sources.load", True),
        (("functions.sources",), "functions.sources.load", True),
        (("functions.sources.load",), "functions.sources.load", True),
        (("other", "functions"), "functions.sources.load", True),
        (("functions",), "functions_evil.sources.load", False),
        (("functions.source",), "functions.sources.load", False),
        (("functions.sources.load_all",), "functions.sources.load", False),
        (("",), "functions.sources.load", False),
        ((), "os.system", False),
        ((), "builtins.exec", False),
        ((), "subprocess.run", False),
    ],
)
def test_only_whole_packages_are_allowed(reading, source, allowed, function, fine):
    source(f"def load(**_):\n    return {FRAME}", "functions_evil.sources")
    found = source(f"def load(**_):\n    return {FRAME}", python_function=function)
    if fine:
        assert reading.read(found, allowed_functions=allowed)[0].height == 2
    else:
        error = refused(reading, found, allowed_functions=allowed)
        assert (error.code, error.retryable) == ("not_allowed", False)
        assert "allowed_function_prefixes" in error.remedy
        assert "functions_evil.sources" not in sys.modules


def test_the_allow_list_of_a_run_counts(project, tmp_path, monkeypatch):
    flow = project.flow()
    flow["source"] = {
        "connection": {"name": "f", "format": "function"},
        "python_function": "functions.sources.load",
    }
    config = DataCoolieRunConfig(allowed_function_prefixes=("jobs",))
    (result,) = project.run(
        config={"allowed_function_prefixes": config.allowed_function_prefixes}
    ).dataflows
    assert result.error.code == "not_allowed"
    (tmp_path / "datacoolie.toml").write_text('allowed_function_prefixes = ["jobs", "functions"]')
    assert load_settings(str(tmp_path)).allowed_function_prefixes == ("jobs", "functions")
    monkeypatch.setenv("DATACOOLIE_ALLOWED_FUNCTION_PREFIXES", "jobs")
    assert load_settings(str(tmp_path)).allowed_function_prefixes == ("jobs",)


@pytest.mark.parametrize("command", ["run", "plan", "replay"])
def test_the_command_line_names_the_packages_that_may_be_called(case, command):
    folder = case.root / "functions"
    folder.mkdir()
    (folder / "sources.py").write_text(f"{HEAD}def load(**_):\n    return {FRAME}")
    flow = case.flow(watermark=["id"])
    flow["source"] = {
        "connection": {"name": "f", "format": "function"},
        "python_function": "functions.sources.load",
        "watermark_columns": ["id"],
    }
    case.write_metadata()
    more = {"plan": ["--connect"], "replay": ["--start", "0", "--end", "9", "--step", "9"]}
    given = [str(BIN), command, "--metadata", "metadata", *more.get(command, []), "--json"]
    for allowed, code in (("jobs", 1), ("functions", 0)):
        asked = [*given, "--allow-functions", allowed]
        done = subprocess.run(asked, cwd=case.root, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert ("not_allowed" in done.stdout or "may be called" in done.stdout) == (code == 1)


# What goes wrong


@pytest.mark.parametrize(
    ("code", "said", "line"),
    [
        ("def load(**_):\n    rows = []\n    return rows[0]", "IndexError: list index", 4),
        (
            "def load(**_):\n    return helper()\ndef helper():\n    raise ValueError('no key')",
            "no key",
            5,
        ),
        ("def load(**_):\n    yield pl.DataFrame({'a': [1]})\n    int('x')", "invalid literal", 4),
        ("def load(**_):\n    return pl.LazyFrame({'a': [1]}).select('b')", "unable to find", None),
        ("def load(**_):\n    assert False", "AssertionError", 3),
    ],
)
def test_an_exception_is_told_with_the_line_of_the_user_s_code(reading, source, code, said, line):
    error = refused(reading, source(code))
    assert said in error.message
    assert error.message.startswith("it failed: ")
    where = "function 'functions.sources.load'"
    assert error.place == (where if line is None else f"{where}, functions/sources.py:{line}")
    assert (error.code, error.retryable) == ("function_failed", False)


@pytest.mark.parametrize(
    "raised", ["ConnectionError('reset')", "TimeoutError()", "RuntimeError('503')"]
)
def test_what_may_pass_is_tried_again(reading, source, raised):
    error = refused(reading, source(f"def load(**_):\n    raise {raised}"))
    assert error.retryable


@pytest.mark.parametrize(
    ("code", "function", "said"),
    [
        (
            "def load(**_): pass",
            "functions.sources.laod",
            "'functions.sources' has no function 'laod'",
        ),
        ("def load(**_): pass", "functions.source.load", "'functions' has no function"),
        ("def load(**_): pass", "jobs.sources.load", "there is no module 'jobs'"),
        ("def load(**_): pass", "load", "'load' is no dotted path"),
        ("def load(**_): pass", "functions..load", "is no dotted path"),
        ("load = 5", "functions.sources.load", "is a int, not a function"),
        ("async def load(**_): pass", "functions.sources.load", "it is async"),
        (
            "def load(engine): pass",
            "functions.sources.load",
            "it can't be called with the keywords",
        ),
        (
            "def load(path, **_): pass",
            "functions.sources.load",
            "missing a required argument: 'path'",
        ),
    ],
)
def test_what_can_not_be_called_says_why(reading, source, code, function, said):
    error = refused(reading, source(code, python_function=function))
    assert said in error.message
    assert error.remedy
    assert not error.retryable


@pytest.mark.parametrize(
    ("code", "said", "line"),
    [
        ("import no_such_package\ndef load(**_): pass", "No module named 'no_such_package'", 2),
        ("from functions.gone import x\ndef load(**_): pass", "functions.gone", 2),
        ("def load(**_):\n    return (", "SyntaxError", 3),
        ("x = 1 / 0", "ZeroDivisionError: division by zero", 2),
    ],
)
def test_a_module_that_can_not_be_imported_says_where(reading, source, code, said, line):
    error = refused(reading, source(code))
    assert said in error.message
    assert error.place == f"function 'functions.sources.load', functions/sources.py:{line}"
    assert (error.code, error.retryable) == ("bad_function", False)


def test_plan_connect_finds_the_function_and_does_not_run_it(project, reading, source):
    folder = project.root / "functions"
    folder.mkdir()
    marks = "from pathlib import Path\ndef load(**_):\n    Path(__file__).with_name('ran').touch()"
    (folder / "sources.py").write_text(marks)
    flow = project.flow()
    flow["source"] = {
        "connection": {"name": "f", "format": "function"},
        "python_function": "functions.sources.load",
    }
    with project.driver() as driver:
        (found,) = driver.connect(driver.plan()).values()
        assert found.error is None
        assert found.notes == (
            "'functions.sources.load' is there, but it is not run: it alone knows its columns",
        )
        assert [path.name for path in folder.iterdir()] == ["sources.py"]
    flow["source"]["python_function"] = "functions.sources.laod"
    with project.driver() as driver:
        (found,) = driver.connect(driver.plan()).values()
    assert "Did you mean 'load'?" in found.error.message
