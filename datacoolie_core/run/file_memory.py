"""Where the files that a dataflow has loaded are remembered: in the commit that loads them.

A short list stands in the commit itself. A long one is a file of its own beside the table, written
before the commit that names it, so that rows and memory are one step: a kill in between leaves a file
that nobody names. Format: docs/reference/state.md, "Known files".
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

from datacoolie_core import storage
from datacoolie_core.errors import DataCoolieError, StorageError
from datacoolie_core.plan.tracking import keeps_registry
from datacoolie_core.state.known_files import KnownFiles
from datacoolie_core.state.manifest import FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.metadata.models import Dataflow
    from datacoolie_core.run.context import RunContext
    from datacoolie_core.run.prepare import Prepared
    from datacoolie_core.state.record import StateRecord

INLINE = 128
"""Files that a commit can name itself: two kilobytes of digests."""
_ALL, _NEWEST = "source", "folder"
_KEPT = 5
"""Loads whose lists stay, so that a table that is restored a little still has its own."""
_NAME = re.compile(r"@(\d+)-[0-9a-f]{8}\.files$")


def recall(prepared: Prepared, state: StateRecord, context: RunContext) -> KnownFiles | None:
    """Return the files that a state knows, None if it has never known any.

    Nor does it where the list is gone, as after a restore far back: every file is then read again, and
    its rows are compared with those that are there. The run tells of it.
    """
    stored = state.files
    if stored is None:
        return None
    try:
        if "digests" in stored:
            return KnownFiles.from_text(stored["digests"])
        uri = _uri(prepared, stored["file"])
        return KnownFiles.from_bytes(
            storage.read_bytes(uri, storage_options=prepared.storage_options)
        )
    except (StorageError, ValueError, KeyError, TypeError) as error:
        why = error.message if isinstance(error, DataCoolieError) else error
        context.warn(
            prepared.original,
            f"the list of the files that load {state.sequence} knew can't be read ({why}): every"
            " file is read again, and compared with what is there",
        )
        return None


def covers(dataflow: Dataflow, state: StateRecord) -> bool:
    """Say whether a state's list holds every loaded file that a run may meet.

    The list of a source with dated folders holds those of the newest one alone.
    """
    kind = None if state.files is None else state.files.get("of")
    return kind == _ALL or (kind == _NEWEST and not keeps_registry(dataflow))


def remember(prepared: Prepared, known: KnownFiles, sequence: int) -> dict[str, Any]:
    """Return what a commit says of the known files, after writing a long list beside the table.

    Raises:
        StorageError: It can't be written.
    """
    count = len(known.versions)
    kind = _ALL if keeps_registry(prepared.dataflow) else _NEWEST
    head = {"v": 1, "of": kind, "count": count}
    if count <= INLINE:
        return {**head, "digests": known.to_text()}
    name = f"{_prefix(prepared)}{sequence}-{uuid4().hex[:8]}.files"
    uri = _uri(prepared, name)
    storage.write_atomic(uri, known.to_bytes(), storage_options=prepared.storage_options)
    return {**head, "file": name}


def forget(prepared: Prepared, files: Mapping[str, Any] | None, sequence: int) -> None:
    """Delete lists that no load of late names; what can't be deleted stays."""
    if files is None or "file" not in files:
        return
    folder = storage.join(prepared.uri, FOLDER)
    with suppress(StorageError):
        for info in storage.list_files(
            folder, include_hidden=True, storage_options=prepared.storage_options
        ):
            name = info.uri.rpartition("/")[2]
            found = _NAME.search(name)
            old = found is not None and int(found[1]) <= sequence - _KEPT
            if old and name.startswith(_prefix(prepared)):
                storage.delete(info.uri, storage_options=prepared.storage_options)


def _prefix(prepared: Prepared) -> str:
    return f"_{quote(prepared.dataflow.dataflow_id, safe='')}@"


def _uri(prepared: Prepared, name: str) -> str:
    return storage.join(prepared.uri, FOLDER, name)
