"""Prints what the fault tests strike, and writes it into docs/reliability.md.

``make faults`` runs it with the results of the tests: the page gets the day of a complete run only
if each case has passed. A test compares the page with the cases, so that neither grows without the
other.
"""

from __future__ import annotations

import os
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    os.environ["FAULTS"] = "all"

from datacoolie_core import clock  # noqa: E402
from tests.faults.cases import POINTS, all_cases  # noqa: E402
from tests.faults.kinds import LOADS, PLACES, REPAIRS, RUNS, STORES  # noqa: E402

PAGE = ROOT / "docs" / "reliability.md"
RECORD = "Newest complete run: "
BEGIN, END = "<!-- matrix: made by make faults -->", "<!-- end of matrix -->"


def block(record: str) -> str:
    """Return the tables of the page.

    Args:
        record: The newest complete run.
    """
    cases = all_cases()
    return "\n\n".join(
        [
            BEGIN,
            f"{len(cases):,} runs are killed, each in a project of its own: every kind of load on"
            f" every destination, in each of {_list(RUNS)}, at every point that it reaches. What"
            f" was killed is repeated by {_list(REPAIRS)} in turn; the state is kept in"
            f" {_list(STORES)} in turn.",
            f"{RECORD}{record}",
            _loads(),
            _points(),
            END,
        ]
    )


def _list(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _count(number: int) -> str:
    return str(number) if number else ""


def _loads() -> str:
    found = Counter((case.load, case.place) for case in all_cases())
    lines = [_row(["kills by kind of load", *PLACES]), _row(["---"] * (1 + len(PLACES)))]
    lines += [_row([load, *(_count(found[load, place]) for place in PLACES)]) for load in LOADS]
    return "\n".join(lines)


def _points() -> str:
    found = Counter(
        (case.point, "flat" if PLACES[case.place].flat else "delta") for case in all_cases()
    )
    lines = [_row(["kills by point", "what has happened there", "Delta", "flat files"])]
    lines.append(_row(["---"] * 4))
    lines += [
        _row([f"`{name}`", meaning, _count(found[name, "delta"]), _count(found[name, "flat"])])
        for name, meaning in POINTS.items()
    ]
    return "\n".join(lines)


def missing(results: Path) -> list[str]:
    """Return the cases that a JUnit report does not show as passed."""
    passed = {
        case.get("name", "")
        for case in ElementTree.parse(results).iter("testcase")
        if not any(child.tag in ("failure", "error", "skipped") for child in case)
    }
    inside = {name.partition("[")[2].rstrip("]") for name in passed}
    return [str(case) for case in all_cases() if str(case) not in inside]


def written(page: str, record: str | None = None) -> str:
    """Return the page with new tables.

    Args:
        page: The page as it is.
        record: A complete run; None keeps the one that the page names.
    """
    head, rest = page.split(BEGIN)
    known = re.search(rf"^{RECORD}(.+)$", page, re.MULTILINE)
    return head + block(record or (known[1] if known else "none on record.")) + rest.split(END)[1]


def main() -> None:
    """Write the page, if every case has passed."""
    absent = missing(Path(sys.argv[1]))
    if absent:
        print(f"{len(absent)} cases have not passed, such as {absent[0]}", file=sys.stderr)
        sys.exit(1)
    record = f"{clock.utc_now():%d %B %Y}, {len(all_cases()):,} cases, all passed."
    PAGE.write_text(written(PAGE.read_text("utf-8"), record), "utf-8")
    print(f"{len(all_cases())} cases passed; {PAGE.relative_to(ROOT)} says so")


if __name__ == "__main__":
    main()
