"""The metadata of our events is read by every later version: its golden file."""

import json
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden" / "event_format_1.json"
CHANGING = {"datacoolie/duration_seconds", "datacoolie/lag_seconds", "dagster/uri"}


def plain(found):
    """Return an event's metadata without what differs from run to run."""
    document = {
        name: value for name, value in found.items() if not name.startswith("dagster/column")
    }
    for name in CHANGING & document.keys():
        document[name] = "…"
    state = dict(document["datacoolie/watermark"])
    state |= {"run_id": "…", "table_id": "…", "updated_at": "…"}
    return {**document, "datacoolie/watermark": state}


def test_an_event_of_a_load_has_the_golden_files_metadata(lake):
    lake.events_flow(replay=None)
    lake.events_csv("2024-01-01", "2024-01-02")
    assert lake.materialize("raw/events").success
    found = plain(lake.newest("raw/events"))
    assert json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) + "\n" == (
        GOLDEN.read_text(encoding="utf-8")
    )


def test_the_golden_files_state_is_where_the_next_load_starts(lake):
    from datacoolie_core.state.record import StateRecord

    document = json.loads(GOLDEN.read_text(encoding="utf-8"))["datacoolie/watermark"]
    record = StateRecord.from_json(document)
    assert record.sequence == 1
    assert list(record.watermark) == ["at"]
    assert record.boundary.compare
    assert record.boundary.ties_only
