"""The first commit of a table: there is exactly one, whoever else creates it at the same time.

The library looks whether there is a table, and looks again when it commits. Where another process
creates the table in between, it puts its own commit on top, rows and all. So, on a disk, it writes
the commit into a folder of ours, and the entry goes into the table's log only if the log has none.
In an object store it makes a table without rows, which may happen twice; the rows follow in a
commit with the fences of every other one.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from datacoolie_core import storage
from datacoolie_core.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import CommitProperties, Schema

    from datacoolie_core.writers.tables import Place

FIRST_ENTRY = "_delta_log/00000000000000000000.json"


def create_table(
    place: Place,
    schema: Schema,
    actions: Sequence[Any],
    partition_by: Sequence[str],
    properties: CommitProperties,
) -> bool:
    """Create a table by one commit.

    Args:
        place: Where.
        schema: Its columns.
        actions: The files that it has from the beginning.
        partition_by: Its partition columns.
        properties: What names the commit.

    Returns:
        Whether the files are in it; else there is an empty table now, and they are yet to come.

    Raises:
        FileExistsError: Somebody else was first; nothing was written.
        DeltaError: The library refuses what the commit holds.
        StorageError: The log can't be written.
    """
    from deltalake.transaction import create_table_with_add_actions

    if is_remote(place.uri):
        create_table_with_add_actions(
            place.uri,
            schema,
            [],
            mode="error",
            partition_by=list(partition_by),
            storage_options=place.options,
        )
        return False
    with TemporaryDirectory(prefix="datacoolie-") as folder:
        create_table_with_add_actions(
            folder,
            schema,
            list(actions),
            mode="error",
            partition_by=list(partition_by),
            commit_properties=properties,
        )
        written = (Path(folder) / FIRST_ENTRY).read_text("utf-8")
    publish(place, _at_home(written, place.uri))
    return True


def publish(place: Place, entry: str) -> None:
    """Write the first entry of a log, unless there is one.

    Raises:
        FileExistsError: There is one.
    """
    uri = storage.join(place.uri, FIRST_ENTRY)
    if not storage.put_if_absent(uri, entry):
        raise FileExistsError(f"{uri} is there")


def _at_home(entry: str, uri: str) -> str:
    """Return the entry with the table's own place in its commit info."""
    lines: list[str] = []
    for line in entry.splitlines():
        action: dict[str, Any] = json.loads(line)
        if "commitInfo" in action:
            action["commitInfo"]["operationParameters"]["location"] = uri
            line = json.dumps(action, ensure_ascii=False, separators=(",", ":"))
        lines.append(line)
    return "\n".join(lines)
