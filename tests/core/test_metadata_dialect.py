"""Expressions are checked when metadata is loaded: their syntax, functions and types."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from datacoolie_core.engines.sql.library import FUNCTIONS
from datacoolie_core.metadata.dialect.catalogue import REFUSED, functions, groups
from datacoolie_core.metadata.expressions import sql_finding, sql_problem


@pytest.mark.parametrize(
    ("text", "says", "meant"),
    [
        ("date_trunk('month', day)", "there is no function 'date_trunk' in this SQL", "date_trunc"),
        ("nvl(a)", "'nvl' has 1 arguments; it is nvl(value, instead)", None),
        ("year(a, b)", "'year' has 2 arguments; it is year(date)", None),
        ("upper(lower(a), 1)", "'upper' has 2 arguments", None),
        ("sum(a) > 1", "the function 'sum' can't be used: it looks at many rows", None),
        ("CAST(a AS DECIMAL(50,2))", "CAST: 'DECIMAL(50, 2)' has precision 50", None),
        ("CAST(a AS ARRAY<INT>)", "CAST: a value can't be made a array<int> here", None),
        ("lead(a) OVER (ORDER BY b)", "a window looks at many rows", None),
        ("filter(a, x -> x > 1)", "there is no function 'filter'", None),
    ],
)
def test_what_can_not_be_run_is_found_at_load_with_the_name_meant(text, says, meant):
    found = sql_finding(text)
    assert found is not None
    assert says in found[0]
    assert "docs/reference/sql.md" in found[0]
    assert found[1] == meant


@pytest.mark.parametrize("name", sorted(functions()))
def test_every_function_is_known_by_each_of_its_names(name):
    function = functions()[name]
    if name in ("extract", "position", "trim", "substring", "substr"):
        return
    arguments = ", ".join(["a"] * function.least)
    assert sql_problem(f"{name}({arguments}) IS NULL") is None
    assert sql_problem(f"{name.upper()}({arguments}) IS NULL AND 1 = 1") is None


def test_every_function_of_the_reference_is_built_and_no_other():
    listed = [function.name for group in groups() for function in group.functions]
    assert sorted(listed) == sorted(set(listed))
    assert set(listed) == set(FUNCTIONS)
    assert not set(functions()) & set(REFUSED)


def test_a_database_reads_its_own_sql():
    assert sql_problem("no_such_function(a) = 1", "postgresql") is None
    assert sql_problem("a >", "postgresql") is not None


def test_simple_expressions_need_no_parser():
    script = (
        "import sys; from datacoolie_core.metadata.expressions import sql_problem\n"
        "assert sql_problem(\"upper(region) = 'NORTH' AND amount > 0\") is None\n"
        "assert 'sqlglot' not in sys.modules and 'polars' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_thousands_of_expressions_are_checked_in_a_blink():
    texts = [f"coalesce(column_{n}, 0) > {n} AND region <> 'x{n}'" for n in range(5000)]
    sql_problem("cast(a as int)")
    started = time.perf_counter()
    assert all(sql_problem(text) is None for text in texts)
    assert time.perf_counter() - started < 1.5
