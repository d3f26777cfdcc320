"""References to secrets into values, and values that can't leak by accident."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, final

from datacoolie_core.errors import PreparationError

Resolver = Callable[[str, str], str | None]
"""From the argument after the prefix and the key to the value; None where there is none."""

_MAY_BE_BLANK = frozenset({"password"})
"""Fields for which blank is a value of its own."""


@final
class Secret:
    """A value that does not print, log, pickle, hash or compare.

    >>> Secret("hunter2"), str(Secret("hunter2")), Secret("hunter2").reveal()
    (Secret('***'), '***', 'hunter2')
    """

    __hash__ = None  # pyright: ignore[reportAssignmentType]
    __slots__ = ("__value",)

    def __init__(self, value: str) -> None:
        self.__value = value

    def reveal(self) -> str:
        """Return the value; only the call that needs it should."""
        return self.__value

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __format__(self, format_spec: str) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        raise TypeError("secrets can't be compared")

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("secrets can't be pickled")


def resolve(
    configure: Mapping[str, Any],
    secrets_ref: Mapping[str, Sequence[str]],
    *,
    connection: str,
    resolvers: Mapping[str, Resolver] | None = None,
) -> dict[str, Secret]:
    """Return the secret fields of a connection, each with its value.

    A source ``prefix:argument`` goes to the resolver of that prefix; ``env:`` is built in and
    reads the environment variable argument + key. Any other source reads the environment
    variable source + key; one without a known prefix goes to the resolver named by an empty
    prefix, if there is one, else to that of ``env``.

    Args:
        configure: The connection's configure; the value of a secret field is its *key*.
        secrets_ref: Source → names of the fields that it resolves.
        connection: The connection's name, for messages.
        resolvers: Resolvers by prefix, beside the built-in ``env``.

    Raises:
        PreparationError: A value is not there, or is blank.
    """
    return {
        field: _resolve_one(source, field, configure.get(field), connection, resolvers or {})
        for source, fields in secrets_ref.items()
        for field in fields
    }


def _resolve_one(
    source: str, field: str, key: Any, connection: str, resolvers: Mapping[str, Resolver]
) -> Secret:
    place = f"connection '{connection}', configure.{field}"
    if not isinstance(key, str) or not key:
        raise PreparationError(
            "secrets_ref names this field, but it holds no key",
            place=place,
            remedy="Write the name of the secret as its value.",
            code="missing_secret",
        )
    prefix, colon, argument = source.partition(":")
    if colon and prefix in resolvers:
        value = _ask(resolvers[prefix], prefix, argument, key, place)
        name, remedy = f"'{key}' of '{source}'", f"Add it to what '{prefix}' reads."
    elif "" in resolvers and prefix != "env":
        value = _ask(resolvers[""], source, source, key, place)
        name, remedy = f"'{key}' of '{source}'", "Add it to what the secret provider reads."
    else:
        variable = f"{argument if prefix == 'env' and colon else source}{key}"
        if not colon and "env" in resolvers:
            value = _ask(resolvers["env"], "env", "", variable, place)
        else:
            value = os.environ.get(variable)
        name, remedy = f"the environment variable {variable}", f"Set {variable}."
        if colon and prefix != "env":
            remedy = f"Set {variable}, or pass a resolver for '{prefix}'."
    return Secret(_present(value, field, name, place, remedy))


def _ask(resolver: Resolver, prefix: str, argument: str, key: str, place: str) -> str | None:
    try:
        return resolver(argument, key)
    except Exception as error:
        # the resolver's own message may hold what must not be shown
        raise PreparationError(
            f"the secret resolver '{prefix}' failed for '{key}' ({type(error).__name__})",
            place=place,
            remedy="Check that the resolver can reach its store.",
            code="secret_resolver_failed",
        ) from error


def _present(value: str | None, field: str, name: str, place: str, remedy: str) -> str:
    if value is None:
        raise PreparationError(
            f"{name} is not set", place=place, remedy=remedy, code="missing_secret"
        )
    if not value.strip() and field not in _MAY_BE_BLANK:
        raise PreparationError(
            f"{name} is set, but blank", place=place, remedy=remedy, code="blank_secret"
        )
    return value
