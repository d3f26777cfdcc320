"""Prints what the fault tests strike, and writes it into docs/reliability.md.

``make faults`` runs it with the results of the tests: the page gets its ticks only if each case
has passed. A test compares the page with the cases, so that neither grows without the other.
"""

from __future__ import annotations

import os
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    os.environ["FAULTS"] = "all"

from tests.faults.cases import POINTS, all_cases  # noqa: E402
from tests.faults.kinds import LOADS, PLACES, REPAIRS, RUNS, STORES  # noqa: E402

PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- matrix: made by make faults -->", "<!-- end of matrix -->"


def block() -> str:
    """Return the tables of the page."""
    cases = all_cases()
    return "\n\n".join(
        [
            BEGIN,
            f"{len(cases):,} runs are killed, each in a project of its own: every kind of load on"
            f" every destination, in each of {_list(RUNS)}, at every point that it reaches. What"
            f" was killed is repeated by {_list(REPAIRS)} in turn; the state is kept in"
            f" {_list(STORES)} in turn.",
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


def _ticks(number: int) -> str:
    return f"✓ {number}" if number else ""


def _loads() -> str:
    found = Counter((case.load, case.place) for case in all_cases())
    lines = [_row(["kills by kind of load", *PLACES]), _row(["---"] * (1 + len(PLACES)))]
    lines += [_row([load, *(_ticks(found[load, place]) for place in PLACES)]) for load in LOADS]
    return "\n".join(lines)


def _points() -> str:
    found = Counter(
        (case.point, "flat" if PLACES[case.place].flat else "delta") for case in all_cases()
    )
    lines = [_row(["kills by point", "what has happened there", "Delta", "flat files"])]
    lines.append(_row(["---"] * 4))
    lines += [
        _row([f"`{name}`", meaning, _ticks(found[name, "delta"]), _ticks(found[name, "flat"])])
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


def written(page: str) -> str:
    """Return the page with new tables."""
    head, rest = page.split(BEGIN)
    return head + block() + rest.split(END)[1]


def main() -> None:
    """Write the page, if every case has passed."""
    absent = missing(Path(sys.argv[1]))
    if absent:
        print(f"{len(absent)} cases have not passed, such as {absent[0]}", file=sys.stderr)
        sys.exit(1)
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
    print(f"{len(all_cases())} cases passed; {PAGE.relative_to(ROOT)} says so")


if __name__ == "__main__":
    main()
