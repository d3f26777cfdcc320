"""A destination's folder: which of its files are data, whose they are and which columns they have."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from datacoolie_core import storage
from datacoolie_core.errors import WriteError
from datacoolie_core.state.folder import Contents, read_contents
from datacoolie_core.state.manifest import Manifest, manifest_uri
from datacoolie_core.writers.flat.bounds import Bounds
from datacoolie_core.writers.flat.errors import storing
from datacoolie_core.writers.flat.partitions import dated_pattern, value_of, values_in
from datacoolie_core.writers.flat.stored import StoredFile
from datacoolie_core.writers.flat.types import type_from_json, united
from datacoolie_core.writers.tables import LiveFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from datacoolie_core.state.manifest import FileEntry
    from datacoolie_core.storage import FileInfo
    from datacoolie_core.writers.flat.types import FileFormat

_PACKED = ("", ".gz", ".zst", ".zip")
SUFFIXES: dict[FileFormat, tuple[str, ...]] = {
    "parquet": (".parquet", ".parq"),
    "csv": (*(f".csv{packed}" for packed in _PACKED), ".zip"),
    "json": tuple(f".json{packed}" for packed in _PACKED),
    "jsonl": tuple(f".{name}{p}" for name in ("jsonl", "ndjson", "json") for p in _PACKED),
    "avro": (".avro",),
}
"""Endings of the files that readers of a format read."""


@dataclass(frozen=True)
class Place:
    """A folder that one dataflow writes to.

    Attributes:
        uri: Absolute.
        form: What is written.
        dataflow_id: Whose manifest is meant.
        storage_options: For the object store, never logged.
        dated: ``date_folder_partitions``.
    """

    uri: str
    form: FileFormat
    dataflow_id: str
    storage_options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    dated: str | None = None

    @property
    def manifest(self) -> str:
        """The manifest of the dataflow."""
        return manifest_uri(self.uri, self.dataflow_id)

    def path(self, relative: str) -> str:
        """Return the absolute place of a file."""
        return storage.join(self.uri, relative)

    def look(self) -> Look:
        """Return what the folder holds now.

        Raises:
            WriteError: It can't be read.
        """
        with storing():
            return Look(self, read_contents(self.uri, self.storage_options))

    def split(self, path: str) -> tuple[str, str]:
        """Return the dated folder at the front of a path, and the rest."""
        if not self.dated:
            return "", path
        found = dated_pattern(self.dated).match(path)
        return ("", path) if found is None else (found[0], path[found.end() :])

    def is_data(self, path: str) -> bool:
        """Return whether a file of nobody is data: of the format, and not deep in other folders."""
        inside = self.split(path)[1].split("/")
        ends = path.lower().endswith(SUFFIXES[self.form])
        return ends and all("=" in folder for folder in inside[:-1])


@dataclass(frozen=True)
class Look:
    """A folder at one instant.

    Attributes:
        place: The folder.
        contents: Its manifests and files.
    """

    place: Place
    contents: Contents

    @property
    def own(self) -> Manifest | None:
        """The dataflow's manifest."""
        return self.contents.of(self.place.dataflow_id)

    @cached_property
    def data(self) -> Mapping[str, FileInfo]:
        """The files whose rows make up the destination."""
        named = self.contents.named
        return {
            path: info
            for path, info in self.contents.visible.items()
            if path in named or self.place.is_data(path)
        }

    @cached_property
    def entries(self) -> Mapping[str, FileEntry]:
        """The dataflow's own files that are there."""
        own = self.own
        return {} if own is None else {e.path: e for e in own.files if e.path in self.data}

    @cached_property
    def foreign(self) -> tuple[str, ...]:
        """The data files that no dataflow wrote."""
        return tuple(path for path in self.data if path not in self.contents.named)

    @property
    def rows(self) -> int | None:
        """The rows of the folder, None if there are files that only they themselves know."""
        if self.foreign:
            return None
        named = self.contents.named
        return sum(named[path][1].rows for path in self.data)

    @cached_property
    def schema(self) -> pl.Schema:
        """The columns of the files, and of the newest load where there is no file any more."""
        found: dict[str, pl.DataType] = {}
        named = self.contents.named
        writers = {named[path][0].dataflow_id for path in self.data if path in named}
        own = self.own
        if own is not None and own.layout and (own.dataflow_id in writers or not writers):
            writers = writers | {own.dataflow_id}
        known = [one for one in self.contents.manifests if one.dataflow_id in writers]
        known.sort(key=lambda one: one.dataflow_id != self.place.dataflow_id)
        for manifest in known:
            _join(found, _columns(manifest, manifest.layout))
        for path in self.foreign if self.place.form == "parquet" else ():
            _join(found, self._footer(path))
        return pl.Schema(found)

    def _footer(self, path: str) -> Mapping[str, pl.DataType]:
        """Return the columns inside a parquet file that nobody of us wrote."""
        uri = self.data[path].uri
        with storing(), storage.local_copy(uri, storage_options=self.place.storage_options) as copy:
            try:
                return cast("Mapping[str, pl.DataType]", pl.read_parquet_schema(copy))
            except (pl.exceptions.PolarsError, OSError) as error:
                raise WriteError(
                    f"the file is no whole parquet file: {str(error).splitlines()[0]}",
                    place=uri,
                    remedy="Nothing was written. Replace the file or move it away.",
                    code="bad_file",
                ) from error

    def stored(self, path: str) -> StoredFile:
        """Return a data file as it can be read back."""
        uri = self.data[path].uri
        owner = self.contents.named.get(path)
        if owner is None:
            partition = values_in(self.place.split(path)[1])
            return StoredFile(path, uri, partition, None, _options(self.own))
        manifest, entry = owner
        columns = pl.Schema(
            {n: t for n, t in _columns(manifest, entry.layout).items() if n not in entry.partition}
        )
        return StoredFile(path, uri, entry.partition, columns, _options(manifest, entry))

    def live(self, path: str, schema: pl.Schema) -> LiveFile:
        """Return a file with what is known of its values.

        Args:
            path: Of a data file.
            schema: The columns of the destination.
        """
        owner = self.contents.named.get(path)
        partition = values_in(self.place.split(path)[1]) if owner is None else owner[1].partition
        typed = {
            name: value_of(text, schema[name])
            for name, text in partition.items()
            if name in schema and owner is not None
        }
        ranges = () if owner is None else owner[1].ranges.items()
        known = {name: Bounds.from_json(one) for name, one in ranges}
        return LiveFile(
            path=path,
            removable=True,
            size=self.data[path].size,
            rows=None if owner is None else owner[1].rows,
            partition=typed,
            lowest={name: one.low for name, one in known.items() if one.low is not None},
            highest={name: one.high for name, one in known.items() if one.high is not None},
            nulls={name: one.nulls for name, one in known.items()},
        )


def _columns(manifest: Manifest, layout: str | None) -> Mapping[str, pl.DataType]:
    if layout is None:
        return {}
    listed: Sequence[Sequence[Any]] = manifest.layouts[layout]["columns"]
    return {name: type_from_json(kind) for name, kind in listed}


def partitions_of(manifest: Manifest | None) -> tuple[str, ...] | None:
    """Return the partition columns of a manifest's newest load, None before the first."""
    if manifest is None or manifest.layout is None:
        return None
    return tuple(manifest.layouts[manifest.layout]["partition_columns"])


def _options(manifest: Manifest | None, entry: FileEntry | None = None) -> Mapping[str, Any]:
    """Return the write options of a file, or of the newest load."""
    if manifest is None or manifest.layout is None:
        return {}
    return manifest.layouts[manifest.layout if entry is None else entry.layout]["options"]


def _join(found: dict[str, pl.DataType], more: Mapping[str, pl.DataType]) -> None:
    for name, dtype in more.items():
        known = found.get(name)
        # of two types that go together the wider one holds both
        found[name] = dtype if known is None else united(known, dtype) or known
