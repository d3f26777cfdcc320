"""docs/reliability.md says what the harness does, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

from tests.faults.cases import POINTS, all_cases, sample
from tests.faults.kinds import LOADS, PLACES
from tests.faults.matrix import PAGE, block, missing, written


def test_the_page_shows_the_matrix_of_the_harness():
    page = PAGE.read_text("utf-8")
    assert written(page) == page, "run: make faults"


def test_the_page_lists_exactly_the_kinds_of_the_harness():
    tables = block("none")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in tables.splitlines()]
    rows = [row[0].strip("`") for row in cells if any(cell.isdigit() for cell in row)]
    assert rows == [*LOADS, *POINTS]
    header = next(line for line in tables.splitlines() if line.startswith("| kills by kind"))
    assert [one.strip() for one in header.strip("|").split("|")][1:] == list(PLACES)


def test_the_page_keeps_the_newest_complete_run_until_there_is_another():
    page = PAGE.read_text("utf-8")
    told = written(page, "1 May 2030, all passed.")
    assert "Newest complete run: 1 May 2030, all passed.\n" in told
    assert written(told) == told


def test_every_test_file_that_the_page_names_exists():
    named = set(re.findall(r"`(test_[a-z_]+\.py)`", PAGE.read_text("utf-8")))
    there = {path.name for path in Path(__file__).parent.glob("test_*.py")}
    assert named == there - {"test_reliability_page.py"}


def test_a_complete_run_needs_a_result_of_each_case_that_passed(tmp_path):
    first, second, *_ = all_cases()
    report = tmp_path / "results.xml"
    report.write_text(
        f'<testsuites><testsuite><testcase name="t[{first}]"/>'
        f'<testcase name="t[{second}]"><failure/></testcase></testsuite></testsuites>'
    )
    absent = missing(report)
    assert str(first) not in absent
    assert str(second) in absent


def test_the_sample_is_small_and_the_same_each_time():
    """A normal test run is to take no more than five minutes for it on two slow cores."""
    assert len(sample()) < 220
    sample.cache_clear()
    again = sample()
    sample.cache_clear()
    assert sample() == again
