"""Every path of the product: URIs, atomic and conditional writes, listing.

Plain functions over plain paths, ``file://`` and every scheme that fsspec knows. Nothing else in
the product opens a file of the lake, of the state or of the metadata. ``storage_options`` are the
ones that Delta takes (``AWS_REGION`` …) or fsspec's own.
"""

from __future__ import annotations

from datacoolie_core.storage.conditional import put_if_absent, put_if_match, read_with_etag
from datacoolie_core.storage.files import (
    append_line,
    delete,
    exists,
    local_copy,
    read_bytes,
    read_text,
    write_atomic,
)
from datacoolie_core.storage.listing import FileInfo, list_files, list_folders
from datacoolie_core.storage.locations import is_remote, join, resolve

__all__ = [
    "FileInfo",
    "append_line",
    "delete",
    "exists",
    "is_remote",
    "join",
    "list_files",
    "list_folders",
    "local_copy",
    "put_if_absent",
    "put_if_match",
    "read_bytes",
    "read_text",
    "read_with_etag",
    "resolve",
    "write_atomic",
]
