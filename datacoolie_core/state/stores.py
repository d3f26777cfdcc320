"""Where state records live beside the destinations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from datacoolie_core import storage
from datacoolie_core.errors import DataCoolieError, WatermarkError
from datacoolie_core.state.record import StateRecord

_WAY_OUT = (
    "Delete the file: the next run takes its state from the destination, the Delta table's log or "
    "the manifest of a folder of files."
)


class StateStore(Protocol):
    """Keeps one record a dataflow, keyed by ``dataflow_id`` alone."""

    def load(self, dataflow_id: str) -> StateRecord | None:
        """Return the record, or None if the dataflow has none."""
        ...

    def save(self, record: StateRecord) -> None:
        """Store the record durably; it replaces the one before."""
        ...


@dataclass(frozen=True)
class FileStateStore:
    """One JSON file a dataflow, replaced atomically, in any folder that fsspec reaches.

    Args:
        root: The folder, as a path or URI.
    """

    root: str

    def path(self, dataflow_id: str) -> str:
        """Return the file of a dataflow."""
        return storage.join(self.root, f"{quote(dataflow_id, safe='')}.json")

    def load(self, dataflow_id: str) -> StateRecord | None:
        """Return the record, or None if there is no file.

        Raises:
            WatermarkError: For a file that can't be read as a record; it names the file and
                the way out.
        """
        path = self.path(dataflow_id)
        if not storage.exists(path):
            return None
        try:
            record = StateRecord.from_json(json.loads(storage.read_bytes(path)))
        except WatermarkError as error:
            raise WatermarkError(
                error.message,
                dataflow=dataflow_id,
                place=path,
                remedy=error.remedy or _WAY_OUT,
                code=error.code,
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise WatermarkError(
                f"the state file is broken ({error})",
                dataflow=dataflow_id,
                place=path,
                remedy=_WAY_OUT,
                code="state_broken",
            ) from error
        if record.dataflow_id != dataflow_id:
            raise WatermarkError(
                f"the state file belongs to dataflow '{record.dataflow_id}'",
                dataflow=dataflow_id,
                place=path,
                remedy="Move it to where it belongs.",
                code="state_broken",
            )
        return record

    def save(self, record: StateRecord) -> None:
        """Write the record beside its file and put it in its place in one step.

        Raises:
            WatermarkError: When the folder can't be written.
        """
        path = self.path(record.dataflow_id)
        document = json.dumps(record.to_json(), indent=2, ensure_ascii=False)
        try:
            storage.write_atomic(path, document.encode() + b"\n")
        except (OSError, DataCoolieError) as error:
            raise WatermarkError(
                f"the state can't be saved ({error})",
                dataflow=record.dataflow_id,
                place=path,
                remedy="Make the folder writable, or name another with --state. "
                "The data is safe: the next run takes up from the table's own log.",
                code="state_not_saved",
                retryable=True,
            ) from error
