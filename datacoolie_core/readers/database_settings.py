"""Where a database is: what the connection's ``configure`` says, with its secrets in place."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from datacoolie_core.errors import ReadError
from datacoolie_core.metadata.hint_types import HintTypeError, dialect_name
from datacoolie_core.secrets import Secret

if TYPE_CHECKING:
    from datacoolie_core.metadata.models import Connection

_SCHEME = re.compile(r"^(?:jdbc:)?([A-Za-z][A-Za-z0-9]*)(?:\+\w+)?:")
_PLACEHOLDER = re.compile(r"\{(user|username|password|host|port|database)\}")
_SCHEMES = {"postgres": "postgresql", "mariadb": "mysql", "sqlserver": "mssql"}
KEYS = ("database", "host", "port", "username", "password", "url")


@dataclass(frozen=True)
class DatabaseSettings:
    """A connection's own settings; what was a secret is never shown.

    Attributes:
        connection: The connection's name.
        kind: ``sqlite``, ``postgresql``, ``mysql``, ``mssql`` or ``oracle``.
        values: Those of :data:`KEYS` that are given.
        secret: Names of those that secrets gave.
    """

    connection: str
    kind: str
    values: dict[str, str] = field(repr=False)
    secret: frozenset[str] = frozenset()

    def get(self, key: str) -> str | None:
        """Return a setting, None if it is not given."""
        return self.values.get(key)

    def url(self) -> str | None:
        """Return the URL with its placeholders filled in; never show it."""
        written = self.values.get("url")
        if written is None:
            return None
        return _PLACEHOLDER.sub(self._filled, written)

    def _filled(self, found: re.Match[str]) -> str:
        key = "username" if found[1] == "user" else found[1]
        value = self.values.get(key)
        if value is None:
            raise ReadError(
                f"configure.url names {{{found[1]}}}, but configure.{key} is not given",
                place=f"connection '{self.connection}'",
                remedy=f"Add configure.{key}, or take {{{found[1]}}} out of the url.",
                code="bad_database",
            )
        return quote(value, safe="") if key in ("username", "password") else value


def database_settings(connection: Connection) -> DatabaseSettings:
    """Return where a connection's database is.

    Raises:
        ReadError: Nothing says of what kind it is.
    """
    values: dict[str, str] = {}
    secret: set[str] = set()
    for key in KEYS:
        value: Any = getattr(connection.configure, key, None)
        if isinstance(value, Secret):
            value = value.reveal()
            secret.add(key)
        if value is not None and str(value).strip():
            values[key] = str(value)
    if connection.database and "database" not in values:
        values["database"] = connection.database
    return DatabaseSettings(
        connection.name, _kind(connection, values.get("url")), values, frozenset(secret)
    )


def _kind(connection: Connection, url: str | None) -> str:
    named = connection.configure.database_type
    found = _SCHEME.match(url or "")
    if named is None and found is not None:
        named = found[1].lower()
        named = _SCHEMES.get(named, named)
    try:
        # metadata checks the name; a URL's scheme is seen here for the first time
        return dialect_name(named) if named else ""
    except HintTypeError:
        return str(named)
