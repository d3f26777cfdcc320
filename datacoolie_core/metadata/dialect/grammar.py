"""How an expression is read: the grammar of Spark, every function call under its own name."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

_CALLS = ("CAST", "TRY_CAST", "SAFE_CAST", "EXTRACT", "SUBSTRING", "SUBSTR", "TRIM", "POSITION")
_WORDS = ("CASE", "IF")
_SPARK: Any = Spark.Parser


def _some(parsers: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: parse for name, parse in parsers.items() if name in names}


class DialectError(ValueError):
    """A text that is no expression of the dialect."""

    def __init__(self, message: str, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.suggestion = suggestion


class ReadingError(DialectError):
    """A text that can't be read at all."""


class Dialect(Spark):
    """Spark's grammar; names may also stand in double quotes, and '' is a quote in a text.

    No function is known to it, so that what a call means is decided in one place, by its name.
    """

    class Tokenizer(Spark.Tokenizer):
        """Double quotes are for names, as in all other SQL."""

        IDENTIFIERS: ClassVar[list[Any]] = ["`", '"']
        QUOTES: ClassVar[list[Any]] = ["'"]
        STRING_ESCAPES: ClassVar[list[str]] = ["'", "\\"]
        DROP_UNKNOWN_ESCAPES = False  # so that '\d' is a pattern as well as '\\d'

    class Parser(Spark.Parser):
        """Only what has a syntax of its own is more than a name with arguments."""

        STRICT_CAST = True
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}  # array(1, 2)[0] is a call and an index
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _some(_SPARK.FUNCTION_PARSERS, _CALLS)
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _some(
            _SPARK.NO_PAREN_FUNCTION_PARSERS, _WORDS
        )
        RANGE_PARSERS: ClassVar[dict[Any, Any]] = {
            **_SPARK.RANGE_PARSERS,
            # x ~ 'pattern', as some have it; ~x is something else
            sqlglot.TokenType.TILDE: _SPARK.RANGE_PARSERS[sqlglot.TokenType.RLIKE],
        }


@lru_cache(maxsize=1 << 12)
def parsed(text: str) -> exp.Expr:
    """Return the tree of an expression; it is shared, so nobody may change it.

    Raises:
        DialectError: It is no expression.
    """
    try:
        tree: Any = sqlglot.parse_one(text, into=exp.Condition, dialect=Dialect)
    except SqlglotError as error:
        raise ReadingError(_reason(error)) from error
    except RecursionError as error:
        raise ReadingError("it is nested too deeply") from error
    if isinstance(tree, exp.Block) or _statement_end(text):
        raise ReadingError("a `;` ends a statement, and this is one expression")
    return tree


def _statement_end(text: str) -> bool:
    if ";" not in text:
        return False
    tokens = sqlglot.tokenize(text, read=Dialect)
    return any(token.token_type.name == "SEMICOLON" for token in tokens)


def _reason(error: SqlglotError) -> str:
    found: list[dict[str, Any]] = getattr(error, "errors", [])
    if not found:
        return "it can't be read"
    first = found[0]
    near = f"{first.get('highlight') or ''}".strip()
    return f"it can't be read near '{near}'" if near else "it ends too early"


def names_in(tree: exp.Expr) -> list[str]:
    """Return the names of columns in an expression, as written, each once."""
    return list(
        dict.fromkeys(names_of(column)[0] for column in tree.find_all(exp.Column, bfs=False))
    )


def names_of(column: exp.Expr) -> list[str]:
    """Return what a column reference names: a column, and fields inside it."""
    parts: list[exp.Expr] = getattr(column, "parts", [])
    return [part.name for part in parts]
