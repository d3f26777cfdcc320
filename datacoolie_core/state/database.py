"""Databases by their URL: opened, and named without their secrets."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from datacoolie_core import storage
from datacoolie_core.errors import SettingsError

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

_SQL = re.compile(r"(sqlite|postgresql|postgres|mysql|mariadb|mssql|oracle)(\+\w+)?:")
_LOCAL_SQLITE = re.compile(r"sqlite(\+\w+)?:///(?!/|[A-Za-z]:|:memory:)")
_VARIABLE = re.compile(r"\$\{env:([^}]+)\}")


def is_database(location: str) -> bool:
    """Say whether a place is a database and no folder."""
    return _SQL.match(location) is not None


def database_url(location: str, project_dir: str) -> str:
    """Return a database's URL with its variables filled in and its file's whole path.

    Args:
        location: As written: ``sqlite:///state.db``, ``postgresql://me:${env:PASSWORD}@host/db``.
        project_dir: Root of relative paths.

    Raises:
        SettingsError: An environment variable that it names is not set.
    """
    if match := _LOCAL_SQLITE.match(location):
        path, mark, options = location[match.end() :].partition("?")
        if path:
            location = f"{match[0]}{storage.resolve(path, project_dir)}{mark}{options}"
    return _VARIABLE.sub(_value, location)


def shown(url: str) -> str:
    """Return a database's URL without its password and its options, for messages."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        # options may hold a password too
        return make_url(url).set(query={}).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return "the database"


def open_engine(url: str) -> Engine:
    """Return an engine for a database; nothing is connected yet.

    Raises:
        SettingsError: The URL is none, or a package is missing.
    """
    from sqlalchemy import create_engine, make_url
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    try:
        parsed = make_url(url)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        waits: dict[str, int] = {}
        if parsed.get_backend_name() == "sqlite":
            _make_room(parsed)
            waits = {"timeout": 60}
        return create_engine(parsed, pool_pre_ping=True, connect_args=waits)
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        # the cause may quote the URL
        raise SettingsError(
            f"the database is not understood ({type(error).__name__})",
            place=shown(url),
            remedy="Write sqlite:///path/to/file.db or postgresql://user@host/database.",
            code="bad_database_url",
        ) from None
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"the database needs the package '{error.name}'",
            place=shown(url),
            remedy="Install datacoolie-dagster[postgresql], or the database's own driver.",
            code="missing_package",
        ) from error


def _make_room(url: URL) -> None:
    """Make the folder of a database's file, as a folder of state files is made."""
    if url.database in (None, "", ":memory:"):
        raise SettingsError(
            "a database in memory is gone with its process",
            place=str(url),
            remedy="Name a file: sqlite:///state.db.",
            code="bad_database_url",
        )
    # an error here is told by the database itself, with the file's name
    if not str(url.database).startswith("file:"):
        Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)


def _value(match: re.Match[str]) -> str:
    from urllib.parse import quote

    value = os.environ.get(match[1])
    if value is None:
        raise SettingsError(
            f"the environment variable {match[1]} is not set",
            place="database",
            remedy=f"Set {match[1]}: the database's URL names it.",
            code="missing_variable",
        )
    return quote(value, safe="")
