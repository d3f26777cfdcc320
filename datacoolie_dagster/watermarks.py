"""Watermarks in asset metadata: the newest event that carries one is the state.

A record reaches the instance with the materialization of its load, not before. A process that is
killed in between loses nothing: the destination's own log has the record too, and the next run
adopts it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import dagster as dg

from datacoolie_core.errors import WatermarkError
from datacoolie_core.state.record import StateRecord
from datacoolie_dagster.results import WATERMARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PAGES = (20, 500)
_MOST_EVENTS = 10_000


class AssetMetadataStateStore:
    """Keeps state records in the metadata of materializations; a ``StateStore``.

    Args:
        instance: The Dagster instance.
        keys: Dataflow id → the key of its asset.
        ahead: Ids that this run will ask for: they are read together, at the first question.
    """

    def __init__(
        self,
        instance: dg.DagsterInstance,
        keys: Mapping[str, dg.AssetKey],
        ahead: Iterable[str] = (),
    ) -> None:
        self._instance = instance
        self._keys = keys
        self._ahead = [one for one in ahead if one in keys]
        self._read: dict[str, StateRecord | None] = {}
        self._saved: dict[str, StateRecord] = {}
        self._lock = threading.Lock()

    def load(self, dataflow_id: str) -> StateRecord | None:
        """Return the record of the newest materialization that carries one.

        Events without one, such as those that a user reports, are passed over. What this process
        saved and has not yet logged comes first. An event is read once: when another run goes
        further meanwhile, the destination's log says so.

        Raises:
            WatermarkError: For a record that can't be read; it names the asset and the way out.
        """
        with self._lock:
            if dataflow_id in self._saved:
                return self._saved[dataflow_id]
            if dataflow_id not in self._keys:
                return None
            if dataflow_id not in self._read:
                self._fetch([dataflow_id, *self._ahead])
                self._ahead = []
            return self._read[dataflow_id]

    def save(self, record: StateRecord) -> None:
        """Keep a record for the event that this run logs."""
        with self._lock:
            self._saved[record.dataflow_id] = record

    def _fetch(self, dataflow_ids: Iterable[str]) -> None:
        wanted = {one: self._keys[one] for one in dict.fromkeys(dataflow_ids)}
        newest = self._instance.get_latest_materialization_events(list(wanted.values()))
        for dataflow_id, key in wanted.items():
            entry = newest.get(key)
            event = entry.asset_materialization if entry else None
            if event is None:
                self._read[dataflow_id] = None
                continue
            record = _record(event, dataflow_id)
            self._read[dataflow_id] = record or self._search(key, dataflow_id)

    def _search(self, key: dg.AssetKey, dataflow_id: str) -> StateRecord | None:
        for event in self._events(key):
            record = _record(event, dataflow_id)
            if record is not None:
                return record
        return None

    def _events(self, key: dg.AssetKey) -> Iterator[dg.AssetMaterialization]:
        cursor, seen, size = None, 0, _PAGES[0]
        while seen < _MOST_EVENTS:
            page = self._instance.fetch_materializations(key, limit=size, cursor=cursor)
            for record in page.records:
                if record.asset_materialization is not None:
                    yield record.asset_materialization
            if not page.has_more:
                return
            cursor, seen, size = page.cursor, seen + size, _PAGES[1]


def _record(event: dg.AssetMaterialization, dataflow_id: str) -> StateRecord | None:
    """Return the record that an event carries for a dataflow, None if it carries none."""
    document = getattr(event.metadata.get(WATERMARK), "value", None)
    if not isinstance(document, Mapping):
        return None
    document = cast("Mapping[str, Any]", document)
    if document.get("dataflow_id") != dataflow_id:
        return None
    try:
        return StateRecord.from_json(document)
    except WatermarkError as error:
        raise _broken(event, dataflow_id, error.message, error.remedy, error.code) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        remedy = "Wipe the asset's events: the next run takes its state from the Delta table's log."
        problem = f"the metadata '{WATERMARK}' is broken ({error})"
        raise _broken(event, dataflow_id, problem, remedy, "state_broken") from error


def _broken(
    event: dg.AssetMaterialization, dataflow_id: str, problem: str, remedy: str | None, code: str
) -> WatermarkError:
    return WatermarkError(
        problem,
        dataflow=dataflow_id,
        place=f"asset {event.asset_key.to_user_string()}",
        remedy=remedy,
        code=code,
    )
