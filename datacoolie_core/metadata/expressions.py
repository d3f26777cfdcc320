"""Whether a SQL expression can be read at all; what it means is for the engine."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_DIALECTS = {
    "postgresql": "postgres",
    "mysql": "mysql",
    "mssql": "tsql",
    "oracle": "oracle",
    "sqlite": "sqlite",
}
_GUESSES = ("", "postgres", "spark", "duckdb")
"""Dialects tried in turn; what one of them can read may be right."""

# Most expressions are simple comparisons. To recognise these costs a hundredth of parsing them,
# and saves the import of the parser, so that thousands of dataflows load in a second.
_RESERVED = (
    "all|and|any|as|asc|between|by|case|cast|cross|delete|desc|distinct|drop|else|end|except|exists"
    "|extract|false|from|full|group|having|in|inner|insert|intersect|interval|into|is|join|left"
    "|like|limit|natural|not|null|on|or|order|outer|over|partition|right|select|set|table|then"
    "|true|union|unique|update|using|values|when|where|with"
)
_NAME = rf'(?:(?!(?:{_RESERVED})\b)[a-z_]\w*(?:\.[a-z_]\w*)*|"[^"]+")'
_LITERAL = r"(?:-?\d+(?:\.\d+)?|'[^']*'|true\b|false\b|null\b)"
_CALL = rf"(?:{_NAME}\((?:\s*(?:{_NAME}|{_LITERAL})\s*(?:,\s*(?:{_NAME}|{_LITERAL})\s*)*)?\))"
_OPERAND = rf"(?:{_CALL}|{_NAME}|{_LITERAL})"
_TERM = rf"{_OPERAND}(?:\s*(?:=|<>|!=|<=|>=|<|>|\+|-|\*|/)\s*{_OPERAND}|\s+is\s+(?:not\s+)?null\b)?"
_SIMPLE = re.compile(rf"\s*{_TERM}(?:\s+(?:and|or)\s+{_TERM})*\s*", re.IGNORECASE)


@lru_cache(maxsize=1 << 15)
def sql_problem(text: str, database_type: str | None = None) -> str | None:
    """Return what is wrong with a SQL expression, None if it can be read.

    >>> sql_problem("amount > 0 AND status <> 'new'") is None
    True
    >>> sql_problem("amount >")
    "'amount >' is not a SQL expression"

    Args:
        text: One expression, such as a condition.
        database_type: The database that will read it; None for the engine's own SQL.
    """
    if _SIMPLE.fullmatch(text):
        return None
    known = _DIALECTS.get(database_type or "")
    dialects = (known, "") if known else _GUESSES
    if any(_is_expression(text, dialect) for dialect in dialects):
        return None
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    return f"'{shown}' is not a SQL expression"


def _is_expression(text: str, dialect: str) -> bool:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tree: Any = sqlglot.parse_one(text, into=exp.Condition, dialect=dialect or None)
        return not isinstance(tree, exp.Star | exp.Block) and not _has_statement_end(text, dialect)
    except (SqlglotError, RecursionError):
        return False


def _has_statement_end(text: str, dialect: str) -> bool:
    if ";" not in text:
        return False
    import sqlglot

    tokens = sqlglot.tokenize(text, read=dialect or None)
    return any(token.token_type.name == "SEMICOLON" for token in tokens)
