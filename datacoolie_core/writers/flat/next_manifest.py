"""The manifest that a commit leaves behind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from datacoolie_core.clock import utc_now
from datacoolie_core.state.manifest import FileEntry, Manifest, Removed
from datacoolie_core.writers.flat.partitions import text_of
from datacoolie_core.writers.flat.types import type_to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from datacoolie_core.writers.flat.layout import Layout, Staged
    from datacoolie_core.writers.flat.place import Look

KEPT = timedelta(days=7)
"""How long a manifest remembers files that never came to be: a load that slow is dead."""


@dataclass(frozen=True)
class Change:
    """What one commit does to a folder.

    Attributes:
        layout: Of the load.
        added: Staged files.
        info: The ``datacoolie`` object.
        removed: Of a look, the paths that no longer count after it.
        replaces: It removes files of others, so that no other such load may pass it.
    """

    layout: Layout
    added: Sequence[Staged]
    info: Mapping[str, Any]
    removed: Callable[[Look], Sequence[str]]
    replaces: bool = False


def committed(
    claimed: Manifest, look: Look, change: Change, removed: Sequence[str], sequence: int
) -> Manifest:
    """Return the manifest of a commit.

    Args:
        claimed: As the claim left it.
        look: The folder just before.
        change: What is committed.
        removed: The paths that go.
        sequence: Of the load.
    """
    key, layout = layout_document(change.layout)
    # a file that somebody deleted is let go; if it comes back, it counts as a file of nobody
    kept = [entry for path, entry in look.entries.items() if path not in removed]
    added = [_entry(file, sequence, key) for file in change.added]
    files = (*kept, *added)
    layouts = {**claimed.layouts, key: layout}
    used = {key, *(entry.layout for entry in files)}
    named = look.contents.named
    marks = [Removed.of(path, look.data[path], ours=path in named) for path in removed]
    return claimed.evolve(
        sequence=sequence,
        commit=dict(change.info),
        files=files,
        layouts={name: one for name, one in layouts.items() if name in used},
        layout=key,
        pending=None,
        abandoned=_still_abandoned(claimed, look),
        removed=(*_still_removed(claimed, look), *marks),
    )


def _still_abandoned(claimed: Manifest, look: Look) -> dict[str, str]:
    since = utc_now() - KEPT
    return {
        path: at
        for path, at in claimed.abandoned.items()
        if path in look.contents.files or datetime.fromisoformat(at) > since
    }


def _still_removed(claimed: Manifest, look: Look) -> list[Removed]:
    files, named = look.contents.files, look.contents.named
    return [
        mark
        for mark in claimed.removed
        if mark.path in named or (mark.path in files and mark.is_of(files[mark.path]))
    ]


def layout_document(layout: Layout) -> tuple[str, dict[str, Any]]:
    """Return a layout as the manifest holds it, and the key under which it does."""
    document = {
        "format": layout.form,
        "columns": [[name, type_to_json(dtype)] for name, dtype in layout.schema.items()],
        "partition_columns": list(layout.partition_columns),
        "options": layout.encoder_options,
    }
    text = json.dumps(document, sort_keys=True)
    return sha256(text.encode()).hexdigest()[:8], document


def _entry(file: Staged, sequence: int, layout: str) -> FileEntry:
    return FileEntry(
        path=file.path,
        sequence=sequence,
        rows=file.rows,
        size=file.size,
        layout=layout,
        partition={name: text_of(value) for name, value in file.partition.items()},
        ranges={name: one.to_json() for name, one in file.bounds.items()},
    )
