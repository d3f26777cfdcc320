"""The file of a SQLite database: found below the project, opened to be read, never made."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from datacoolie_core import storage
from datacoolie_core.errors import ReadError

if TYPE_CHECKING:
    import sqlite3

    from datacoolie_core.readers.database_rows import Ask

_URL = re.compile(r"^(?:jdbc:)?sqlite(?:\+\w+)?:(?:///)?", re.IGNORECASE)
_WAIT = 30.0
"""Seconds that a read waits for a writer's lock."""


def connected(ask: Ask) -> sqlite3.Connection:
    """Return a connection that can only read.

    Raises:
        ReadError: Nothing names a file, it is not there, or it is no database.
    """
    import sqlite3

    path = _path(ask)
    shown = _shown(ask, path)
    if not path.is_file():
        raise ReadError(
            f"there is no database file{shown}",
            place=ask.place,
            remedy="Check configure.database of the connection; relative paths start at the"
            f" project root ({ask.request.project_dir}).",
            code="missing_database",
        )
    # what a killed writer left is rolled back by whoever comes next, which needs to write
    for mode in ("ro", "rw"):
        try:
            return _opened(path, mode)
        except sqlite3.Error as error:
            if mode == "ro" and "readonly" in str(error):
                continue
            raise _unreadable(error, ask, shown) from error
    raise AssertionError("one of two modes opens or raises")


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    import sqlite3

    uri = f"file:{quote(str(path))}?mode={mode}"
    handle = sqlite3.connect(
        uri, uri=True, timeout=_WAIT, isolation_level=None, check_same_thread=False
    )
    try:
        # copies of rows may be larger than the memory
        handle.execute("PRAGMA temp_store = FILE")
        handle.execute("SELECT count(*) FROM sqlite_master").fetchone()
        # from Python 3.12 on, "nme" is no text where there is no column nme
        configure = getattr(handle, "setconfig", None)
        if configure is not None:
            configure(getattr(sqlite3, "SQLITE_DBCONFIG_DQS_DML"), False)  # noqa: B009
    except BaseException:
        handle.close()
        raise
    return handle


def _unreadable(error: Exception, ask: Ask, shown: str) -> ReadError:
    locked = "locked" in str(error)
    return ReadError(
        f"the database{shown} can't be read: {error}",
        place=ask.place,
        remedy="Wait until the other program has finished writing."
        if locked
        else "Check that the file is a whole SQLite database, and that it may be read.",
        code="database_locked" if locked else "unreadable_database",
        retryable=locked,
    )


def _path(ask: Ask) -> Path:
    settings = ask.settings
    url = settings.url()
    written = settings.get("database") if url is None else _of_url(url, ask)
    if not written or written == ":memory:":
        raise ReadError(
            "a database in memory has no rows to read" if written else "nothing names its file",
            place=f"connection '{settings.connection}'",
            remedy="Set configure.database to the path of the file.",
            code="bad_database",
        )
    resolved = storage.resolve(written, ask.request.project_dir)
    if storage.is_remote(resolved):
        raise ReadError(
            "a SQLite database has to be a file of this machine",
            place=f"connection '{settings.connection}'",
            remedy="Copy the file here, and set configure.database to its path.",
            code="bad_database",
        )
    return Path(resolved)


def _of_url(url: str, ask: Ask) -> str:
    path = _URL.sub("", url, count=1)
    path, mark, options = path.partition("?")
    if mark:
        names = ", ".join(sorted({pair.partition("=")[0] for pair in options.split("&")}))
        raise ReadError(
            f"configure.url has options that SQLite does not take here: {names}",
            place=f"connection '{ask.settings.connection}'",
            remedy="Write sqlite:///path/to/file.db.",
            code="bad_database",
        )
    return path


def _shown(ask: Ask, path: Path) -> str:
    """Return the path for messages, nothing if a secret gave it."""
    return "" if ask.settings.secret & {"database", "url"} else f" {path}"
