"""Scan a Delta table with polars, wherever it lies."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import polars as pl

if TYPE_CHECKING:
    from deltalake import DeltaTable


def scan_table(table: DeltaTable) -> pl.LazyFrame:
    """Return the rows of a table at the version of its handle, deletion vectors applied.

    polars takes the escaped spelling of a local root (``my%20table``) for the folder's own name,
    so it is given the plain one.

    Args:
        table: A handle of the caller's own; it may be changed.
    """
    local = "://" not in table.table_uri or table.table_uri.startswith("file://")
    if local and unquote(table.table_uri) != table.table_uri:
        table.__class__ = _plain_class()
    return pl.scan_delta(table)


@cache
def _plain_class() -> Any:
    from deltalake import DeltaTable

    class PlainPaths(DeltaTable):
        """A table that names its root and its files by their plain local paths."""

        @property
        def table_uri(self) -> str:
            return unquote(super().table_uri)

        def file_uris(self, *args: Any, **given: Any) -> list[str]:
            escaped = super().table_uri.removeprefix("file://")
            root = unquote(escaped)
            # a file's own name keeps its escapes: that is how partition folders are called
            return [root + uri.removeprefix(escaped) for uri in super().file_uris(*args, **given)]

    return PlainPaths
