"""Whether an expression is one of the dialect: its syntax, its functions and its types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core.errors import nearest
from datacoolie_core.metadata.dialect.catalogue import REFUSED, functions
from datacoolie_core.metadata.dialect.grammar import DialectError, parsed
from datacoolie_core.metadata.dialect.type_names import type_of

if TYPE_CHECKING:
    from sqlglot import exp

_FAR = 3


def checked(text: str) -> exp.Expr:
    """Return the tree of an expression of the dialect; nobody may change it.

    Raises:
        DialectError: It is none, with the reason as a phrase.
    """
    from sqlglot import exp

    tree = parsed(text)
    for node in tree.walk():
        if isinstance(node, exp.Anonymous):
            check_call(node.name, len(node.expressions))
        elif isinstance(node, exp.DataType) and isinstance(node.parent, exp.Cast | exp.TryCast):
            type_of(node)
        elif isinstance(node, exp.Substring):
            check_call("substring", len(list(node.iter_expressions())))
        else:
            _refuse(node)
    return tree


def check_call(name: str, given: int) -> None:
    """Refuse a call of a function that is not there, or with too few or too many arguments.

    Raises:
        DialectError: So it is.
    """
    known = functions().get(name.lower())
    if known is None:
        reason = REFUSED.get(name.lower())
        if reason is not None:
            raise DialectError(f"the function '{name}' can't be used: {reason}")
        message = f"there is no function '{name}' in this SQL"
        # a short name such as e is inside every other one, and never meant
        alike = [one for one in functions() if abs(len(one) - len(name)) <= _FAR]
        raise DialectError(message, nearest(name.lower(), alike))
    if given < known.least or (known.most is not None and given > known.most):
        shown = f"{known.name}({known.arguments})"
        raise DialectError(f"'{name}' has {given} arguments; it is {shown}")


def _refuse(node: exp.Expr) -> None:
    from sqlglot import exp

    refused = {
        exp.Window: "a window looks at many rows, and an expression sees one row at a time",
        exp.Query: "a query can't stand inside an expression",
        exp.Subquery: "a query can't stand inside an expression",
        exp.Lambda: "functions as arguments (x -> …) are not part of this SQL",
        exp.Star: "* is no value; name a column",
        exp.Placeholder: "? and :name have no value here",
        exp.Parameter: "@name has no value here",
        exp.Alias: "a name with AS has no meaning inside an expression",
        exp.AtTimeZone: "AT TIME ZONE is not part of this SQL; use from_utc_timestamp(time, zone)",
    }
    for kind, reason in refused.items():
        if isinstance(node, kind):
            raise DialectError(reason)
