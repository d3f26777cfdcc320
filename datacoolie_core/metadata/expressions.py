"""Whether a SQL expression can be read, and whether its functions are there."""

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

# Most expressions are simple comparisons. To recognise these costs a hundredth of parsing them,
# and saves the import of the parser, so that thousands of dataflows load in a second.
_RESERVED = (
    "all|and|any|as|asc|between|by|case|cast|cross|delete|desc|distinct|drop|else|end|except|exists"
    "|extract|false|from|full|group|having|in|inner|insert|intersect|interval|into|is|join|left"
    "|like|limit|natural|not|null|on|or|order|outer|over|partition|right|select|set|table|then"
    "|true|union|unique|update|using|values|when|where|with"
)
_NAME = rf'(?:(?!(?:{_RESERVED})\b)[a-z_]\w*(?:\.[a-z_]\w*)*|"[^"]+"|`[^`]+`)'
_LITERAL = r"(?:-?\d+(?:\.\d+)?|'[^'\\]*'|true\b|false\b|null\b)"
_ARGUMENT = rf"(?:{_NAME}|{_LITERAL})"
_CALL = rf"(?:[a-z_]\w*\((?:\s*{_ARGUMENT}\s*(?:,\s*{_ARGUMENT}\s*)*)?\))"
_OPERAND = rf"(?:{_CALL}|{_NAME}|{_LITERAL})"
_TERM = rf"{_OPERAND}(?:\s*(?:=|<>|!=|<=|>=|<|>|\+|-|\*|/)\s*{_OPERAND}|\s+is\s+(?:not\s+)?null\b)?"
_SIMPLE = re.compile(rf"\s*{_TERM}(?:\s+(?:and|or)\s+{_TERM})*\s*", re.IGNORECASE)
_CALLS = re.compile(rf"(?P<name>[a-z_]\w*)\((?P<given>[^()]*)\)|{_LITERAL}", re.IGNORECASE)
_ARGUMENTS = re.compile(_ARGUMENT, re.IGNORECASE)
_SYNTAX = frozenset(("cast", "try_cast", "extract", "substring", "substr", "trim", "position"))


@lru_cache(maxsize=1 << 15)
def sql_problem(text: str, database_type: str | None = None) -> str | None:
    """Return what is wrong with a SQL expression, None if it can be read.

    >>> sql_problem("amount > 0 AND status <> 'new'") is None
    True
    >>> sql_problem("amount >")
    "'amount >' is not a SQL expression"

    Args:
        text: One expression, such as a condition.
        database_type: The database that will read it; None for the SQL of docs/reference/sql.md.
    """
    found = sql_finding(text, database_type)
    return None if found is None else found[0]


@lru_cache(maxsize=1 << 15)
def sql_finding(text: str, database_type: str | None = None) -> tuple[str, str | None] | None:
    """Return what is wrong with a SQL expression and the name probably meant.

    >>> sql_finding("date_trunk('month', day)")[1]
    'date_trunc'

    Args:
        text: One expression, such as a condition.
        database_type: The database that will read it; None for the SQL of docs/reference/sql.md.
    """
    known = _DIALECTS.get(database_type or "")
    if _SIMPLE.fullmatch(text) and (known or _known_calls(text)):
        return None
    if known:
        readable = any(_is_expression(text, dialect) for dialect in (known, ""))
        return None if readable else (f"'{_shown(text)}' is not a SQL expression", None)
    return _own_finding(text)


def _known_calls(text: str) -> bool:
    """Return whether every call of a simple expression is one of a function that is there."""
    if "(" not in text:
        return True
    from datacoolie_core.metadata.dialect.catalogue import functions

    for call in _CALLS.finditer(text):
        if call["name"] is None:
            continue
        function, given = functions().get(call["name"].lower()), call["given"]
        if function is None or call["name"].lower() in _SYNTAX:
            return False
        number = len(_ARGUMENTS.findall(given))
        if number < function.least or (function.most is not None and number > function.most):
            return False
    return True


def _own_finding(text: str) -> tuple[str, str | None] | None:
    from datacoolie_core.metadata.dialect.check import checked
    from datacoolie_core.metadata.dialect.grammar import DialectError, ReadingError

    try:
        checked(text)
    except ReadingError:
        return f"'{_shown(text)}' is not a SQL expression", None
    except DialectError as error:
        return f"{error}, in '{_shown(text)}' (see docs/reference/sql.md)", error.suggestion
    return None


def _shown(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


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
