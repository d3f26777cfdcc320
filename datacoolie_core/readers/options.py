"""``read_options``: the connection's and the source's, under the names that the engine knows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from datacoolie_core.engines.names import remedy_for
from datacoolie_core.errors import ReadError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from datacoolie_core.metadata.models import Dataflow

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def read_options(
    dataflow: Dataflow, known: Mapping[str, Callable[[Any], Any]], aliases: Mapping[str, str]
) -> dict[str, Any]:
    """Return the read options of a dataflow: the source's win over the connection's.

    Names in camel case are read as snake case.

    Args:
        dataflow: Whose options.
        known: Option → function that checks and converts its value.
        aliases: Other names → options.

    Raises:
        ReadError: An option has no such name or value.
    """
    source = dataflow.source
    given = {**source.connection.configure.read_options, **source.configure.read_options}
    options: dict[str, Any] = {}
    for name, value in given.items():
        snake = _CAMEL.sub("_", name).lower()
        option = aliases.get(snake, snake)
        if option not in known:
            raise ReadError(
                f"format '{source.connection.format}' has no read option '{name}'",
                place="read_options",
                remedy=remedy_for(snake, [*known, *aliases]),
                code="unknown_option",
            )
        options[option] = _converted(name, value, known[option])
    return options


def _converted(name: str, value: Any, convert: Callable[[Any], Any]) -> Any:
    try:
        return convert(value)
    except (TypeError, ValueError) as error:
        raise ReadError(
            f"{value!r} is no value of the read option '{name}': {error}",
            place="read_options",
            remedy="Correct the option.",
            code="bad_option",
        ) from error


def flag(value: Any) -> bool:
    """Return a switch; options are often written as text.

    >>> flag("true"), flag(False)
    (True, False)
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in {"true", "false"}:
        return value.strip().lower() == "true"
    raise ValueError("expected true or false")


def count(value: Any) -> int:
    """Return a whole number that is not negative."""
    number = int(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ValueError("expected a whole number, 0 or more")
    return number


def count_or_all(value: Any) -> int | None:
    """Return a whole number, or None for *all rows*."""
    return None if value is None else count(value)


def text(value: Any) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError("expected a text")
    return value


def character(value: Any) -> str:
    r"""Return a single character; ``\t`` may be written as an escape."""
    written = text(value).replace("\\t", "\t").replace("\\n", "\n")
    if len(written.encode()) != 1:
        raise ValueError("expected one ASCII character")
    return written


def character_or_none(value: Any) -> str | None:
    """Return a single character, or None to switch it off (null or an empty text)."""
    return None if value in (None, "") else character(value)


def texts(value: Any) -> str | list[str] | dict[str, str]:
    """Return a text, a list of texts, or a text for each column."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return [str(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, dict):
        return {str(key): str(entry) for key, entry in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    raise ValueError("expected a text or a list of texts")


def one_of(*choices: str) -> Callable[[Any], str]:
    """Return a check that a value is one of some texts."""

    def check(value: Any) -> str:
        if value in choices:
            return value
        raise ValueError(f"expected {' or '.join(choices)}")

    return check
