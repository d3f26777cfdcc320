"""Open a Delta table and look at it: schema, live files, what its features allow."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

import polars as pl

from datacoolie_core.errors import WriteError
from datacoolie_core.storage import is_remote, join
from datacoolie_core.storage.locations import local_path
from datacoolie_core.writers.partitions import encoded_value, path_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalake import DeltaTable


@dataclass(frozen=True)
class Place:
    """Where a table is.

    Attributes:
        uri: Absolute; a plain path, ``file://`` or any scheme that delta-rs knows.
        storage_options: For the object store, never logged.
    """

    uri: str
    storage_options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @cached_property
    def root(self) -> str:
        """The table's folder: a plain path on a disk, else a URI."""
        return self.uri if is_remote(self.uri) else str(local_path(self.uri))

    @cached_property
    def options(self) -> dict[str, str] | None:
        """The storage options as polars and delta-rs take them."""
        return dict(self.storage_options) or None

    def path(self, relative: str) -> str:
        """Return the absolute place of a file of the table."""
        return relative if "://" in relative else join(self.root, relative)


@dataclass(frozen=True)
class LiveFile:
    """One data file of the table as it is now.

    Attributes:
        path: As it is on the disk: relative to the table, or a URI.
        removable: Whether delta-rs can spell its path as the log does.
        size: Bytes.
        rows: None if the log has no statistics.
        partition: Column → value, typed.
        lowest: Column → minimum; columns without statistics are absent.
        highest: Column → maximum, or an upper bound of it.
        nulls: Column → null count.
    """

    path: str
    removable: bool
    size: int
    rows: int | None
    partition: Mapping[str, Any]
    lowest: Mapping[str, Any]
    highest: Mapping[str, Any]
    nulls: Mapping[str, int]

    @property
    def partition_values(self) -> dict[str, str | None]:
        """The partition values as the log holds them."""
        return {name: encoded_value(value) for name, value in self.partition.items()}


def open_table(place: Place) -> DeltaTable | None:
    """Return a fresh handle, None if there is no table.

    Raises:
        WriteError: The place can't be reached or read.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError, TableNotFoundError

    _refuse_escapes(place)
    if _is_absent(place):
        return None
    try:
        return DeltaTable(place.uri, storage_options=place.options)
    except TableNotFoundError as error:
        _raise_if_hidden(place, error)
        return None
    except (OSError, DeltaError) as error:
        raise unreachable(place, error) from error


def _refuse_escapes(place: Place) -> None:
    """Refuse a folder such as ``50%25``: delta-rs creates it, and opens ``50%`` the next time."""
    if not is_remote(place.uri) and unquote(place.root) != place.root:
        raise WriteError(
            "the path has a % that Delta's library takes for an escaped character",
            place=place.uri,
            remedy="Rename the folder, or choose another base_path, schema_name or table.",
            code="bad_path",
        )


def _is_absent(place: Place) -> bool:
    """Say whether a table on a disk has no log: a look that costs nothing."""
    if is_remote(place.uri):
        return False
    try:
        (local_path(place.root) / "_delta_log").stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


def _raise_if_hidden(place: Place, error: Exception) -> None:
    """A folder that may not be looked into is reported by delta-rs as *not found*."""
    if is_remote(place.uri):
        return
    try:
        (local_path(place.root) / "_delta_log").stat()
    except FileNotFoundError:
        return
    except OSError as trouble:
        raise unreachable(place, trouble) from error


def unreachable(place: Place, error: Exception) -> WriteError:
    """Return the error for a table that can't be opened."""
    from deltalake.exceptions import DeltaError

    told = _first_line(error)
    if isinstance(error, PermissionError) or "ermission denied" in told or "403" in told:
        return WriteError(
            f"the table can't be opened: {told}",
            place=place.uri,
            remedy="Give this user access to the path, or correct the credentials.",
            code="permission_denied",
        )
    if isinstance(error, NotADirectoryError) or _is_file(place):
        return WriteError(
            "there is a file where the table's folder should be",
            place=place.uri,
            remedy="Move the file, or choose another destination.table.",
            code="not_a_folder",
        )
    broken = isinstance(error, DeltaError)
    return WriteError(
        f"the table can't be opened: {told}",
        place=place.uri,
        remedy="Look at its _delta_log." if broken else "Check that the storage answers.",
        code="table_broken" if broken else "unreachable",
        retryable=not broken,
    )


def _is_file(place: Place) -> bool:
    return not is_remote(place.uri) and local_path(place.root).is_file()


def _first_line(error: Exception) -> str:
    lines = [line.strip(" ↳[0m\x1b31") for line in str(error).splitlines()]
    return next((line for line in lines if line), type(error).__name__)


def table_schema(table: DeltaTable) -> pl.Schema:
    """Return a table's columns as polars types."""
    return pl.Schema(cast("Any", table.schema()))


def delta_schema(schema: pl.Schema) -> Any:
    """Return polars columns as a Delta schema; every column may be null."""
    from deltalake import Schema

    return Schema.from_arrow(cast("Any", schema))


def live_files(table: DeltaTable, columns: Sequence[str] = ()) -> list[LiveFile]:
    """Return the table's data files.

    Args:
        table: Its present version is looked at.
        columns: Whose statistics are wanted; none by default, since reading them costs.
    """
    actions = pl.DataFrame(cast("Any", table.get_add_actions()))
    names = {
        part: _fields_of(actions, part, columns if part != "partition" else None)
        for part in ("partition", "min", "max", "null_count")
    }
    wide = actions.select(
        "path",
        "size_bytes",
        "num_records",
        *(
            pl.col(part).struct.field(name).alias(f"{part}\0{name}")
            for part, fields in names.items()
            for name in fields
        ),
    )
    return [_live_file(row, names) for row in wide.iter_rows(named=True)]


def _fields_of(actions: pl.DataFrame, part: str, wanted: Sequence[str] | None) -> list[str]:
    dtype = actions.schema.get(part)
    if not isinstance(dtype, pl.Struct):
        return []
    return [
        f.name
        for f in dtype.fields
        if wanted is None or (f.name in wanted and not isinstance(f.dtype, pl.Struct))
    ]


def _live_file(row: dict[str, Any], names: Mapping[str, list[str]]) -> LiveFile:
    def part(key: str, *, keep_null: bool = False) -> dict[str, Any]:
        values = {name: row[f"{key}\0{name}"] for name in names[key]}
        return {name: value for name, value in values.items() if keep_null or value is not None}

    path, removable = path_of(row["path"])
    return LiveFile(
        path=path,
        removable=removable,
        size=row["size_bytes"],
        rows=row["num_records"],
        partition=part("partition", keep_null=True),
        lowest=part("min"),
        highest=part("max"),
        nulls=part("null_count"),
    )


def field_metadata(table: DeltaTable) -> dict[str, Mapping[str, Any]]:
    """Return column → what the schema says of it beside its type."""
    document = json.loads(table.schema().to_json())
    return {f["name"]: f.get("metadata") or {} for f in document["fields"]}
