"""Writes the tables of docs/reference/sql.md and hints.md.

The functions and type names come from the catalogue, the results of the examples from the engine.
Run without arguments to write the pages, with ``--check`` to see whether they are up to date.
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import polars as pl

from datacoolie_core.engines.polars_sql import Session, typed_expression
from datacoolie_core.engines.sql.kinds import kind_of, shown
from datacoolie_core.metadata.dialect.catalogue import REFUSED, groups
from datacoolie_core.metadata.hint_type_names import KINDS, Kind

REFERENCE = Path(__file__).parent / "reference"
PAGES = (REFERENCE / "sql.md", REFERENCE / "hints.md")
NOW = datetime(2024, 5, 17, 10, 30, tzinfo=UTC)
_BLOCK = re.compile(
    r"<!-- (?P<what>functions|operators|refused|types) -->.*?<!-- end -->", re.DOTALL
)
_SQL_NAMES = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
}

# What has a syntax of its own: how it is written, what it gives, an example.
OPERATORS = [
    ("a + b, a - b, a * b", "Exact, or an error. `-a` too.", "1.25 * 3.1"),
    ("a / b", "DOUBLE, or a decimal of decimals; 0 as divisor stops the load.", "7 / 2"),
    ("a DIV b", "The whole part, as BIGINT.", "-7 DIV 2"),
    ("a % b", "The remainder, with the sign of `a`.", "-7 % 3"),
    ("a || b", "As concat.", "'a' || 1"),
    ("=, ==, <>, !=, <, <=, >, >=", "Null if a side is null.", "NULL = NULL"),
    ("a <=> b", "Equal, or both null: never null itself.", "NULL <=> NULL"),
    ("a IS [NOT] DISTINCT FROM b", "Its opposite, and itself.", "1 IS DISTINCT FROM NULL"),
    ("AND, OR, NOT, !", "With three values: true, false, null.", "NULL OR true"),
    ("a IS [NOT] NULL, TRUE, FALSE", "Never null.", "NULL IS TRUE"),
    ("a [NOT] IN (b, c)", "Null if it is none of them and one of them is null.", "1 IN (2, NULL)"),
    ("a [NOT] BETWEEN b AND c", "Both ends included.", "2 BETWEEN 1 AND 2"),
    (
        "a [NOT] LIKE 'x%' [ESCAPE '!']",
        "`%` is any text, `_` one character; ILIKE ignores case; LIKE ANY ('x%', 'y%').",
        "'50%' LIKE '50!%' ESCAPE '!'",
    ),
    (
        "a [NOT] RLIKE 'x+', a ~ 'x+'",
        "A part of the text matches; REGEXP too.",
        "'a1' RLIKE '[0-9]'",
    ),
    (
        "CASE WHEN c THEN x ELSE y END",
        "Also CASE a WHEN 1 THEN x END. Only rows that reach a branch can fail in it.",
        "CASE WHEN 1 > 2 THEN 'a' ELSE 'b' END",
    ),
    (
        "CAST(a AS type), a::type",
        "An error where a value does not fit.",
        "CAST('2.345' AS DECIMAL(10,2))",
    ),
    ("TRY_CAST(a AS type)", "Null where a value does not fit.", "TRY_CAST('x' AS INT)"),
    (
        "EXTRACT(field FROM a)",
        "As date_part.",
        "EXTRACT(SECOND FROM TIMESTAMP '2024-05-17 10:30:01.5')",
    ),
    ("DATE '…', TIMESTAMP '…', TIMESTAMP_NTZ '…'", "Constants.", "DATE '2024-05-17'"),
    (
        "a + INTERVAL 1 MONTH",
        "Also INTERVAL '1' DAY, INTERVAL '1 day 2 hours'; with a date, + 1 is a day.",
        "DATE '2024-01-31' + INTERVAL 1 MONTH",
    ),
    ("SUBSTRING(a FROM 2 FOR 3)", "As substring(a, 2, 3).", "SUBSTRING('lakehouse' FROM 5 FOR 3)"),
    ("TRIM(BOTH 'x' FROM a)", "Also LEADING and TRAILING.", "TRIM(LEADING '0' FROM '007')"),
    ("POSITION('x' IN a)", "As locate.", "POSITION('c' IN 'abc')"),
    ("a.b, a['b']", "A field of a struct.", "named_struct('b', 1).b"),
    ("a[0]", "An element of a list; beyond its end the load stops.", "array(5, 6)[1]"),
    ("1, 1L, 1.5, 1.5D, 1e3", "INT, BIGINT, a decimal, DOUBLE, DOUBLE.", "1.5"),
    ("true, false, NULL", "Constants.", "NOT true"),
]


def text_of(value: Any) -> str:
    """Return a result as the page shows it."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S") + (" UTC" if value.tzinfo else "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def result_of(example: str) -> tuple[str, str]:
    """Return what an example gives, and its type."""
    expr, dtype = typed_expression(example, {}, place="docs", session=Session(NOW))
    name = shown(dtype)
    sql = _SQL_NAMES.get(name, name.upper())
    kind = "LIST" if kind_of(dtype) == "list" else "VOID" if sql == "NULL" else sql
    return text_of(pl.select(expr).item()), kind


def table(rows: list[list[str]]) -> str:
    """Return a Markdown table; a pipe inside a cell is escaped."""
    return "\n".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows
    )


def functions_block() -> str:
    """Return a section for each group of functions."""
    sections: list[str] = []
    for group in groups():
        rows = [["function", "gives", "example", "result", "type"], ["---"] * 5]
        for function in group.functions:
            calls = ", ".join(f"`{name}`" for name in function.names[1:])
            also = f" Also {calls}." if calls else ""
            shown_call = f"`{function.name}({function.arguments})`"
            result, kind = result_of(function.example)
            cells = [
                shown_call,
                f"{function.says}{also}",
                f"`{function.example}`",
                f"`{result}`",
                kind,
            ]
            rows.append(cells)
        sections.append(f"### {group.title}\n\n{table(rows)}")
    return "\n\n".join(sections)


def operators_block() -> str:
    """Return the table of what is no function."""
    rows = [["written", "gives", "example", "result", "type"], ["---"] * 5]
    for written, says, example in OPERATORS:
        result, kind = result_of(example)
        rows.append([f"`{written}`", says, f"`{example}`", f"`{result}`", kind])
    return table(rows)


def refused_block() -> str:
    """Return why functions of Spark are left out."""
    reasons: dict[str, list[str]] = {}
    for name, reason in REFUSED.items():
        reasons.setdefault(reason, []).append(f"`{name}`")
    rows = [["functions", "why not"], ["---", "---"]]
    rows += [[", ".join(sorted(names)), reason] for reason, names in reasons.items()]
    return table(rows)


def types_block() -> str:
    """Return what the type names of each dialect mean."""
    rows = [["type", *KINDS], ["---"] * (len(KINDS) + 1)]
    for kind in get_args(Kind):
        cells = [
            ", ".join(f"`{name}`" for name, meant in names.items() if meant == kind) or "-"
            for names in KINDS.values()
        ]
        rows.append([kind, *cells])
    return table(rows)


def page(written: str) -> str:
    """Return the page with its tables made anew."""
    blocks = {
        "functions": functions_block,
        "operators": operators_block,
        "refused": refused_block,
        "types": types_block,
    }

    def block(found: re.Match[str]) -> str:
        what = found["what"]
        return f"<!-- {what} -->\n\n{blocks[what]()}\n\n<!-- end -->"

    return _BLOCK.sub(block, written)


def pages() -> dict[Path, str]:
    """Return what each page should be."""
    return {path: page(path.read_text(encoding="utf-8")) for path in PAGES}


def main() -> int:
    """Write or check the pages."""
    stale = {path: text for path, text in pages().items() if path.read_text("utf-8") != text}
    for path, text in stale.items():
        if "--check" in sys.argv:
            print(f"{path} is not up to date. Run: python docs/generate_sql.py")
            continue
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
