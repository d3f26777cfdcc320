"""What a dataflow's state is, and its JSON (docs/reference/state.md, "State record")."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from datacoolie_core.errors import WatermarkError
from datacoolie_core.plan.windows import Scalar, Watermark
from datacoolie_core.state.values import decode, decode_watermark, encode, encode_watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FORMAT = 1
_MIGRATIONS: dict[int | None, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {}
"""Format → what makes a document of the next one; format 1 is the first there was."""
BOUNDARY_BYTES = 4096
"""The most that a boundary's hashes may take as JSON, in the state file and the commit."""


@dataclass(frozen=True)
class Boundary:
    """Which rows at (or above) the watermark are loaded already.

    Attributes:
        hashes: Row hash → how many such rows are loaded. Used when ``compare`` is False.
        schema: Fingerprint of the source columns and types that the hashes were made from.
        compare: The hashes are not known: rows that are read again are compared with the
            destination's own rows instead.
        upto: With ``compare``, rows below this value of the first watermark column may be in
            the destination already; None has no upper end. With ``ties_only`` it is unused.
        ties_only: With ``compare``, only rows equal to the watermark may be there already.
        beyond: Rows above this instant did not move the watermark (``max_watermark``), but are
            loaded: their hashes are among ``hashes``. None if there are none.
    """

    hashes: Mapping[str, int] = field(default_factory=dict[str, int])
    schema: str = ""
    compare: bool = False
    upto: Scalar | None = None
    ties_only: bool = False
    beyond: Scalar | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        if self.compare:
            if self.ties_only:
                return {"v": 1, "compare": "ties"}
            return {"v": 1, "compare": "rows", "upto": encode(self.upto)}
        hashes = {"v": 1, "schema": self.schema, "hashes": dict(sorted(self.hashes.items()))}
        return hashes if self.beyond is None else {**hashes, "beyond": encode(self.beyond)}

    @staticmethod
    def from_json(document: Mapping[str, Any] | None) -> Boundary:
        """Return the boundary that :meth:`to_json` wrote; a newer version means *compare*."""
        if not document:
            return Boundary()
        if document.get("v") != 1:
            return Boundary(compare=True)
        if kind := document.get("compare"):
            return Boundary(
                compare=True, ties_only=kind == "ties", upto=decode(document.get("upto"))
            )
        return Boundary(
            hashes=document.get("hashes", {}),
            schema=document.get("schema", ""),
            beyond=decode(document.get("beyond")),
        )

    @property
    def rows(self) -> int:
        """How many boundary rows are remembered."""
        return sum(self.hashes.values())


def migrated(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record's document in the present format, from whichever older one it has.

    Raises:
        WatermarkError: For a newer format, or one that never was.
    """
    version = document.get("format")
    while version in _MIGRATIONS:
        document = _MIGRATIONS[version](document)
        version = document["format"]
    if version == FORMAT:
        return document
    newer = isinstance(version, int) and version > FORMAT
    raise WatermarkError(
        f"state of format {version}, this version reads format {FORMAT}",
        remedy="Upgrade datacoolie-dagster."
        if newer
        else "It is no state of ours: restore it, or delete it; the next run takes its state from"
        " the destination itself.",
        code="state_format",
    )


@dataclass(frozen=True)
class StateRecord:
    """A dataflow's state after its last durable load.

    Attributes:
        dataflow_id: Its key, alone.
        sequence: The dataflow's run counter; the ``txn`` version in its Delta table.
        watermark: Column → highest value that is durable.
        boundary: Which rows at the watermark are loaded.
        covered_from: Lowest value from which the watermark covers everything; None when it
            covers the source from its beginning.
        files: Which files of the source are loaded (``run/file_memory.py``); None where rows alone
            tell what is.
        table_id: The Delta table's id; None for other destinations.
        table_version: The table's version of the commit that this state belongs to.
        run_id: The run that wrote it.
        updated_at: ISO 8601, UTC.
        replace_next: The watermark was reset: the next load of an append replaces what is there.
        recovered: True when it was adopted from the destination at the start of a run.
    """

    dataflow_id: str
    sequence: int = 0
    watermark: Watermark = field(default_factory=dict[str, Scalar])
    boundary: Boundary = field(default_factory=Boundary)
    covered_from: Watermark | None = None
    files: Mapping[str, Any] | None = None
    table_id: str | None = None
    table_version: int | None = None
    run_id: str | None = None
    updated_at: str | None = None
    replace_next: bool = False
    recovered: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, versioned by ``format``."""
        document = {
            "format": FORMAT,
            "dataflow_id": self.dataflow_id,
            "sequence": self.sequence,
            "watermark": encode_watermark(self.watermark),
            "boundary": self.boundary.to_json(),
            "covered_from": None
            if self.covered_from is None
            else encode_watermark(self.covered_from),
            "table_id": self.table_id,
            "table_version": self.table_version,
            "run_id": self.run_id,
            "updated_at": self.updated_at,
        }
        if self.files is not None:
            document["files"] = dict(self.files)
        return {**document, "replace_next": True} if self.replace_next else document

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> StateRecord:
        """Return the record that :meth:`to_json` wrote.

        Raises:
            WatermarkError: For a newer format, or for fields that are missing or broken.
        """
        document = migrated(document)
        covered = document.get("covered_from")
        return StateRecord(
            dataflow_id=document["dataflow_id"],
            sequence=int(document["sequence"]),
            watermark=decode_watermark(document["watermark"]),
            boundary=Boundary.from_json(document.get("boundary")),
            covered_from=None if covered is None else decode_watermark(covered),
            files=document.get("files"),
            table_id=document.get("table_id"),
            table_version=document.get("table_version"),
            run_id=document.get("run_id"),
            updated_at=document.get("updated_at"),
            replace_next=bool(document.get("replace_next")),
        )

    def evolve(self, **changes: Any) -> StateRecord:
        """Return a copy with some fields changed."""
        return replace(self, **changes)
