"""The manifest of a dataflow in a folder of files: which of them are its rows, and its state.

A folder of files has no log. Each dataflow that writes there keeps one JSON file,
``_datacoolie/_<dataflow_id>.json``, and replaces it only if it still is what it read: that
replacement is the commit. Format: docs/reference/state.md, "Manifest of a folder of files".
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from datacoolie_core import storage
from datacoolie_core.errors import WatermarkError
from datacoolie_core.storage.conditional import etag_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from datacoolie_core.storage import FileInfo

FOLDER = "_datacoolie"
"""Holds the manifests and what is staged; readers pass over names that start like this."""
FORMAT = 1


@dataclass(frozen=True)
class FileEntry:
    """A file whose rows are loaded.

    Attributes:
        path: Relative to the folder.
        sequence: The load that wrote it.
        rows: Row count.
        size: Bytes.
        layout: Which of the manifest's layouts it has.
        partition: Partition column → value as in the folder's name, None for null.
        ranges: Column → ``low``, ``high`` (as in a state record) and ``nulls``.
    """

    path: str
    sequence: int
    rows: int
    size: int
    layout: str
    partition: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    ranges: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])


@dataclass(frozen=True)
class Removed:
    """A file that a load replaced, until it is deleted.

    Attributes:
        path: Relative to the folder.
        size: Bytes.
        modified: ISO 8601.
        ours: A dataflow wrote it, so its name is never used again. A file of somebody else may
            come back under its name, newer.
    """

    path: str
    size: int
    modified: str
    ours: bool

    @staticmethod
    def of(path: str, info: FileInfo, *, ours: bool) -> Removed:
        """Return the mark for a file that is there."""
        return Removed(path, info.size, info.modified_at.isoformat(), ours)

    def is_of(self, info: FileInfo) -> bool:
        """Return whether the file of this path is the one that was replaced."""
        same = (self.size, self.modified) == (info.size, info.modified_at.isoformat())
        return self.ours or same


@dataclass(frozen=True)
class Pending:
    """A load that publishes its files, and has not committed yet.

    Attributes:
        run_id: Whose it is.
        sequence: What it will be.
        files: The paths that it uses.
        replaces: It takes the place of everything, so two such loads must not pass each other.
        at: ISO 8601.
    """

    run_id: str
    sequence: int
    files: tuple[str, ...]
    replaces: bool
    at: str


@dataclass(frozen=True)
class Manifest:
    """What one dataflow says of its files in a folder.

    Attributes:
        dataflow_id: Whose it is.
        table_id: Names this manifest since it was made; one made anew is another table.
        claim: Grows with each load of this dataflow that begins to publish.
        sequence: The newest load, None before the first.
        commit: Its ``datacoolie`` object, as in a Delta commit.
        files: Those whose rows are loaded.
        layouts: Key → columns, partition columns and write options of files.
        layout: That of the newest load.
        pending: A load that is about to commit, or was killed then.
        abandoned: Path → ISO 8601: files of loads that never committed.
        removed: Files that this dataflow's loads replaced, its own and those of others.
        etag: Of the text that it was read from; not part of it.
    """

    dataflow_id: str
    table_id: str
    claim: int = 0
    sequence: int | None = None
    commit: Mapping[str, Any] | None = None
    files: tuple[FileEntry, ...] = ()
    layouts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])
    layout: str | None = None
    pending: Pending | None = None
    abandoned: Mapping[str, str] = field(default_factory=dict[str, str])
    removed: tuple[Removed, ...] = ()
    etag: str | None = field(default=None, compare=False)

    def evolve(self, **changes: Any) -> Manifest:
        """Return a copy with some fields changed."""
        return replace(self, **changes)

    def without_pending(self) -> Manifest:
        """Return the manifest with the pending load given up."""
        if self.pending is None:
            return self
        given_up = dict.fromkeys(self.pending.files, self.pending.at)
        return replace(self, pending=None, abandoned={**self.abandoned, **given_up})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, versioned by ``format``."""
        pending = None if self.pending is None else {**vars(self.pending)}
        return {
            "format": FORMAT,
            "dataflow_id": self.dataflow_id,
            "table_id": self.table_id,
            "claim": self.claim,
            "sequence": self.sequence,
            "commit": None if self.commit is None else dict(self.commit),
            "layout": self.layout,
            "layouts": {key: dict(one) for key, one in self.layouts.items()},
            "pending": pending,
            "abandoned": dict(self.abandoned),
            "removed": [vars(one) for one in self.removed],
            "files": [vars(one) for one in self.files],
        }

    @staticmethod
    def from_json(document: Mapping[str, Any], etag: str | None = None) -> Manifest:
        """Return the manifest that :meth:`to_json` wrote.

        Raises:
            WatermarkError: For a newer format.
        """
        if document.get("format") != FORMAT:
            raise WatermarkError(
                f"a manifest of format {document.get('format')}, this version reads format"
                f" {FORMAT}",
                remedy="Upgrade datacoolie-dagster.",
                code="state_format",
            )
        given: dict[str, Any] | None = document["pending"]
        pending = None if given is None else replace(Pending(**given), files=tuple(given["files"]))
        return Manifest(
            dataflow_id=document["dataflow_id"],
            table_id=document["table_id"],
            claim=int(document["claim"]),
            sequence=None if document["sequence"] is None else int(document["sequence"]),
            commit=document["commit"],
            files=tuple(FileEntry(**one) for one in document["files"]),
            layouts=document["layouts"],
            layout=document["layout"],
            pending=pending,
            abandoned=document["abandoned"],
            removed=tuple(Removed(**one) for one in document["removed"]),
            etag=etag,
        )


def manifest_uri(folder: str, dataflow_id: str) -> str:
    """Return the manifest's place: the id percent-encoded, as in the state folder.

    The file's own name starts with an underscore too: a reader of JSON files that looks into every
    folder would take it for data.
    """
    return storage.join(folder, FOLDER, f"_{quote(dataflow_id, safe='')}.json")


def is_manifest(uri: str) -> bool:
    """Return whether a file of the manifests' folder is one: not a lock, nor half of a new one."""
    name = uri.rpartition("/")[2]
    return name.startswith("_") and name.endswith(".json")


def read_manifest(uri: str, storage_options: Mapping[str, str] | None = None) -> Manifest | None:
    """Return a manifest, None if there is none.

    Raises:
        WatermarkError: It is broken or of a newer version; names the file and the way out.
    """
    found = storage.read_with_etag(uri, storage_options=storage_options)
    if found is None:
        return None
    data, etag = found
    try:
        return Manifest.from_json(json.loads(data), etag)
    except WatermarkError as error:
        raise WatermarkError(
            error.message, place=uri, remedy=error.remedy, code=error.code
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WatermarkError(
            f"the manifest is broken ({error})",
            place=uri,
            remedy="Restore it from a backup. Without it nothing tells the files of this dataflow"
            " from those of others: delete it and run with --full-refresh to load the folder"
            " anew.",
            code="manifest_broken",
        ) from error


def put_manifest(
    uri: str, manifest: Manifest, storage_options: Mapping[str, str] | None = None
) -> Manifest | None:
    """Replace a manifest if it still is what was read; None if somebody else was first.

    Args:
        uri: Its place.
        manifest: The new one; its ``etag`` is that of the old one, None to create it.
        storage_options: For the object store.

    Returns:
        The manifest with its new etag.
    """
    text = json.dumps(manifest.to_json(), ensure_ascii=False, separators=(",", ":"))
    content = text.encode()
    done = storage.put_if_match(uri, content, manifest.etag, storage_options=storage_options)
    return manifest.evolve(etag=etag_of(content)) if done else None
