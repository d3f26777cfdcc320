"""From where the state is kept to the store that keeps it there."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from datacoolie_core import storage
from datacoolie_core.errors import SettingsError
from datacoolie_core.state.stores import FileStateStore

if TYPE_CHECKING:
    from datacoolie_core.state.sql_store import SqlStateStore

_SQL = re.compile(r"(sqlite|postgresql|postgres|mysql|mariadb|mssql|oracle)(\+\w+)?://")
_LOCAL_SQLITE = re.compile(r"sqlite(\+\w+)?:///(?!/|[A-Za-z]:)")
_VARIABLE = re.compile(r"\$\{env:([^}]+)\}")


def open_store(location: str, project_dir: str) -> FileStateStore | SqlStateStore:
    """Return the store at a place.

    Args:
        location: A folder, as a path or URI, or the URL of a database: ``sqlite:///state.db``
            (relative to the project root), ``postgresql://user:${env:PASSWORD}@host/database``.
        project_dir: Root of relative paths.

    Raises:
        SettingsError: An environment variable that it names is not set.
    """
    if not _SQL.match(location):
        return FileStateStore(storage.resolve(location, project_dir))
    from datacoolie_core.state.sql_store import SqlStateStore

    if match := _LOCAL_SQLITE.match(location):
        path = location[match.end() :]
        if path and not path.startswith(":memory:"):
            location = f"{match[0]}{storage.resolve(path, project_dir)}"
    return SqlStateStore(_VARIABLE.sub(_value, location))


def _value(match: re.Match[str]) -> str:
    from urllib.parse import quote

    value = os.environ.get(match[1])
    if value is None:
        raise SettingsError(
            f"the environment variable {match[1]} is not set",
            place="state",
            remedy=f"Set {match[1]}: the state's database needs it.",
        )
    return quote(value, safe="")
