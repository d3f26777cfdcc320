"""One Delta table at one version: the newest, a number, or what it was at an instant."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from datacoolie_core.engines.moments import moment_of
from datacoolie_core.errors import ReadError
from datacoolie_core.readers.options import count, read_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalake import DeltaTable

    from datacoolie_core.metadata.models import Dataflow

Version = int | datetime | None


def _instant(value: Any) -> datetime:
    moment = moment_of(value) if isinstance(value, str | date) else None
    if moment is None:
        raise ValueError("expected a date or a timestamp, such as 2024-01-31T06:00:00Z")
    whole = moment if isinstance(moment, datetime) else datetime.fromisoformat(moment.isoformat())
    return whole.replace(tzinfo=UTC) if whole.tzinfo is None else whole.astimezone(UTC)


def _version(value: Any) -> int | datetime:
    if isinstance(value, str) and not value.strip().isdigit():
        return _instant(value)
    return count(value)


OPTIONS: dict[str, Any] = {"version": _version, "timestamp": _instant}
ALIASES = {"version_as_of": "version", "timestamp_as_of": "timestamp"}


def asked_version(dataflow: Dataflow) -> Version:
    """Return which version the read options want, None for the newest.

    A timestamp without an offset is in UTC.

    Raises:
        ReadError: An option is unknown, has no meaning, or both a version and a timestamp are given.
    """
    options = read_options(dataflow, OPTIONS, ALIASES)
    if len(options) < 2:
        return next(iter(options.values()), None)
    # a source's own option takes the place of the connection's, whichever of the two that is
    alone = dataflow.source.connection.model_copy(
        update={"configure": type(dataflow.source.connection.configure)()}
    )
    source = dataflow.source.model_copy(update={"connection": alone})
    own = read_options(dataflow.model_copy(update={"source": source}), OPTIONS, ALIASES)
    if len(own) == 1:
        return next(iter(own.values()))
    raise ReadError(
        "both a version and a timestamp are given",
        place="read_options",
        remedy="Keep one of them.",
        code="bad_option",
    )


def opened_table(uri: str, storage_options: Mapping[str, str], version: Version) -> DeltaTable:
    """Return a handle of a table at a version.

    Raises:
        ReadError: There is no such table or version, or it can't be opened.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    options = dict(storage_options) or None
    number = version if isinstance(version, int) else None
    try:
        table = DeltaTable(uri, version=number, storage_options=options)
        return _as_of(table, version, uri) if isinstance(version, datetime) else table
    except TableNotFoundError as error:
        raise ReadError(
            "there is no Delta table",
            place=uri,
            remedy="Check base_path, schema_name and table, or load the table first.",
            code="missing_table",
        ) from error
    except (DeltaError, OSError, ValueError, OverflowError) as error:
        if number is not None:
            raise _no_version(uri, options, number, error) from error
        raise ReadError(
            f"the Delta table can't be opened: {str(error).splitlines()[0]}",
            place=uri,
            remedy="Check that the storage answers and that the table is whole.",
            code="read_failed",
            retryable=True,
        ) from error


def _as_of(table: DeltaTable, moment: datetime, uri: str) -> DeltaTable:
    # the library gives the first version for any instant before it
    first = min((int(entry["timestamp"]) for entry in table.history()), default=None)
    if first is not None and moment.timestamp() * 1000 < first:
        since = datetime.fromtimestamp(first / 1000, UTC).isoformat()
        raise ReadError(
            f"the Delta table has nothing as old as {moment.isoformat()}",
            place=uri,
            remedy=f"Name an instant from {since} on.",
            code="missing_version",
        )
    table.load_as_version(moment)
    return table


def _no_version(
    uri: str, options: dict[str, str] | None, number: int, error: Exception
) -> ReadError:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        newest = DeltaTable(uri, storage_options=options).version()
    except (DeltaError, OSError):
        newest = None
    if newest is not None and newest < number:
        what = f"the Delta table has no version {number}, its newest is {newest}"
    else:
        what = f"the Delta table's version {number} can't be opened: {str(error).splitlines()[0]}"
    return ReadError(
        what,
        place=uri,
        remedy="Name a version that the table still has.",
        code="missing_version",
    )


def files_are_gone(uri: str, version: int) -> ReadError:
    """Return the error of a version whose files were cleaned up."""
    return ReadError(
        f"files of version {version} are no longer there: the table was cleaned up since",
        place=uri,
        remedy="Name a newer version.",
        code="missing_version",
    )
