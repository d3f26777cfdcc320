"""What a source function is handed as ``engine``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from datacoolie_core import storage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True)
class FunctionEngine:
    """The engine as a source function sees it: where the project is, and how tables are read.

    Whatever else a function needs it imports itself; polars is the engine.

    Attributes:
        project_dir: The project root, absolute or a URI.
        name: Always ``polars``.
        storage_options: Those of the source's connection.
    """

    project_dir: str
    name: str = "polars"
    storage_options: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def path(self, location: str) -> str:
        """Return a path as an absolute one; relative ones start at the project root.

        >>> FunctionEngine("/project").path("lake/orders")
        '/project/lake/orders'
        """
        return storage.resolve(location, self.project_dir)

    def scan_delta(self, location: str, version: int | datetime | None = None) -> pl.LazyFrame:
        """Return the rows of a Delta table.

        Args:
            location: The table's folder or URI; relative ones start at the project root.
            version: A version or a point in time; None is the newest version.
        """
        options = dict(self.storage_options) or None
        return pl.scan_delta(self.path(location), version=version, storage_options=options)

    def sql(self, query: str, **tables: Any) -> pl.LazyFrame:
        """Return the rows of a query over frames, in the SQL of polars.

        Args:
            query: Names the frames by their keywords.
            tables: Frames, lazy or not.
        """
        return pl.SQLContext(tables, eager=False).execute(query)
