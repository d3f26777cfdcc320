"""From where the state is kept to the store that keeps it there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datacoolie_core import storage
from datacoolie_core.state.database import database_url, is_database
from datacoolie_core.state.stores import FileStateStore

if TYPE_CHECKING:
    from datacoolie_core.state.sql_store import SqlStateStore


def open_store(location: str, project_dir: str) -> FileStateStore | SqlStateStore:
    """Return the store at a place.

    Args:
        location: A folder, as a path or URI, or the URL of a database: ``sqlite:///state.db``
            (relative to the project root), ``postgresql://user:${env:PASSWORD}@host/database``.
        project_dir: Root of relative paths.

    Raises:
        SettingsError: An environment variable that it names is not set.
    """
    if not is_database(location):
        return FileStateStore(storage.resolve(location, project_dir))
    from datacoolie_core.state.sql_store import SqlStateStore

    return SqlStateStore(database_url(location, project_dir))
