"""Where a run starts from: each row of docs/reference/state.md, "Reconciliation"."""

from __future__ import annotations

import pytest

from datacoolie_core.errors import WatermarkError
from datacoolie_core.metadata.loader import metadata_from_documents
from datacoolie_core.plan.windows import Window
from datacoolie_core.state.destination import DestinationState, ForeignChange
from datacoolie_core.state.reconcile import reconcile
from datacoolie_core.state.record import StateRecord


def flow(load_type="append", policy=None, merge_keys=()):
    destination = {"connection_name": "lake", "table": "t", "load_type": load_type}
    if merge_keys:
        destination["merge_keys"] = list(merge_keys)
    if policy:
        destination["configure"] = {"datacoolie": {"on_foreign_change": policy}}
    document = {
        "connections": [
            {"name": "in", "format": "parquet", "configure": {"base_path": "in"}},
            {"name": "lake", "format": "delta", "configure": {"base_path": "lake"}},
        ],
        "dataflows": [
            {
                "name": "f",
                "dataflow_id": "f",
                "source": {"connection_name": "in", "table": "t", "watermark_columns": ["id"]},
                "destination": destination,
            }
        ],
    }
    return metadata_from_documents([("test", document)]).dataflows[0]


def commit(sequence, watermark, run_id="r"):
    return {
        "format": 1,
        "run_id": run_id,
        "dataflow_id": "f",
        "sequence": sequence,
        "state_watermark": {"id": watermark},
        "boundary": {"v": 1, "schema": "s", "hashes": {"h": 1}},
        "covered_from": None,
        "window": None,
    }


def table(sequence, watermark, **more):
    highest = more.pop("highest", sequence)
    return DestinationState(
        exists=True,
        table_id="T",
        version=sequence,
        sequence=highest,
        commit=commit(sequence, watermark, more.pop("run_id", "r")),
        commit_version=sequence,
        **more,
    )


def test_a_first_run_starts_from_nothing_with_sequence_one():
    baseline = reconcile(flow(), None, DestinationState())
    assert (baseline.state.watermark, baseline.sequence) == ({}, 1)
    assert not baseline.warnings


def test_a_destination_ahead_of_the_store_is_adopted_as_recovered():
    stored = StateRecord("f", 3, {"id": 30}, table_id="T", table_version=3)
    baseline = reconcile(flow(), stored, table(4, 40))
    assert baseline.recovered
    assert baseline.state.watermark == {"id": 40}
    assert (baseline.sequence, baseline.expected_sequence) == (5, 4)


def test_a_lost_store_is_made_good_from_the_destination():
    baseline = reconcile(flow(), None, table(4, 40))
    assert baseline.recovered
    assert baseline.state.watermark == {"id": 40}


def test_a_store_without_hashes_gets_them_from_the_commit():
    stored = StateRecord("f", 4, {"id": 40}, table_id="T", table_version=4)
    baseline = reconcile(flow(), stored, table(4, 40))
    assert not baseline.recovered
    assert baseline.state.boundary.hashes == {"h": 1}


def test_a_store_ahead_of_the_destination_gives_way_with_a_warning():
    stored = StateRecord("f", 9, {"id": 90}, table_id="T", table_version=9)
    baseline = reconcile(flow(), stored, table(4, 40))
    assert baseline.state.watermark == {"id": 40}
    assert baseline.sequence == 10
    assert [code for code, _ in baseline.warnings] == ["state_ahead"]


def test_after_a_restore_the_newest_commit_in_effect_counts():
    stored = StateRecord("f", 5, {"id": 50}, table_id="T", table_version=5)
    baseline = reconcile(flow(), stored, table(3, 30, highest=5, rewound=True))
    assert baseline.state.watermark == {"id": 30}
    assert baseline.sequence == 6
    assert [code for code, _ in baseline.warnings] == ["table_restored"]


def test_a_table_that_is_gone_means_a_load_from_the_beginning():
    stored = StateRecord("f", 5, {"id": 50}, table_id="T", table_version=5)
    baseline = reconcile(flow(), stored, DestinationState())
    assert (dict(baseline.state.watermark), baseline.sequence) == ({}, 6)
    assert [code for code, _ in baseline.warnings] == ["table_gone"]


def test_a_table_that_was_dropped_and_made_again_means_the_same():
    stored = StateRecord("f", 5, {"id": 50}, table_id="T", table_version=5)
    baseline = reconcile(flow(), stored, DestinationState(exists=True, table_id="U", version=0))
    assert dict(baseline.state.watermark) == {}


def test_a_seeded_watermark_holds_for_a_table_that_never_saw_the_dataflow():
    stored = StateRecord("f", 0, {"id": 50})
    baseline = reconcile(flow(), stored, DestinationState(exists=True, table_id="U", version=0))
    assert baseline.state.watermark == {"id": 50}


CHANGED = (ForeignChange(7, "DELETE"),)


def test_a_foreign_change_warns_by_default_and_goes_on():
    baseline = reconcile(flow(), None, table(4, 40, foreign=CHANGED))
    assert not baseline.reload
    assert "DELETE (version 7)" in baseline.warnings[0][1]


def test_a_foreign_change_can_fail():
    with pytest.raises(WatermarkError, match="DELETE"):
        reconcile(flow(policy="fail"), None, table(4, 40, foreign=CHANGED))


def test_a_foreign_change_can_reload():
    assert reconcile(flow(policy="reload"), None, table(4, 40, foreign=CHANGED)).reload


def test_a_load_that_replaces_the_table_does_not_care_for_foreign_changes():
    baseline = reconcile(flow("overwrite", policy="fail"), None, table(4, 40, foreign=CHANGED))
    assert not baseline.warnings


def test_a_cleaned_log_and_a_store_that_is_current_go_on():
    stored = StateRecord("f", 4, {"id": 40}, table_id="T", table_version=4)
    cleaned = DestinationState(True, "T", 90, 4, history_lost=True)
    baseline = reconcile(flow(), stored, cleaned)
    assert baseline.state.watermark == {"id": 40}
    assert not baseline.destination_maximum


def test_a_cleaned_log_and_a_store_behind_take_the_destinations_maximum():
    stored = StateRecord("f", 3, {"id": 30}, table_id="T", table_version=3)
    cleaned = DestinationState(True, "T", 90, 4, history_lost=True)
    baseline = reconcile(flow(), stored, cleaned)
    assert baseline.destination_maximum
    assert baseline.sequence == 5


def test_a_commit_of_this_run_is_known_as_its_own():
    baseline = reconcile(flow(), None, table(4, 40, run_id="mine"))
    assert baseline.is_done_by("mine", None)
    assert not baseline.is_done_by("other", None)
    assert not baseline.is_done_by("mine", Window("d", 1, 2, "2013-01"))


def test_chunks_without_a_key_are_told_apart_by_their_bounds():
    """Else the second chunk of a replay would be taken for done, and its rows never load."""
    made = {"column": "d", "key": "", "lower": 1, "upper": 2}
    info = {**commit(4, 40, "mine"), "window": made}
    baseline = reconcile(flow(), None, DestinationState(True, "T", 4, 4, info, 4))
    assert baseline.is_done_by("mine", Window("d", 1, 2))
    assert not baseline.is_done_by("mine", Window("d", 2, 3))
    assert not baseline.is_done_by("mine", None)


def test_a_commit_of_a_newer_version_is_refused():
    newer = DestinationState(True, "T", 4, 4, {**commit(4, 40), "format": 2}, 4)
    with pytest.raises(WatermarkError, match="format 2"):
        reconcile(flow(), None, newer)
