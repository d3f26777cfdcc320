"""Loads that meet in one folder: whoever commits first counts, and nothing is lost or doubled."""

from __future__ import annotations

import pytest

from datacoolie_core import storage
from datacoolie_core.errors import WatermarkError, WriteError
from datacoolie_core.state.manifest import put_manifest
from datacoolie_core.writers.request import SupersededError
from tests.core.flat_folder import Folder, ids

AFTER_CLAIM = ["claimed", "publishing", "published"]


@pytest.fixture(params=["disk", "store"])
def folder(request, tmp_path):
    if request.param == "disk":
        return Folder(str(tmp_path / "t"), form="csv")
    return Folder(f"memory://{tmp_path.name}/t", form="csv")


def at(phase, work):
    """Run something once, when a load reaches a phase."""
    waiting = [work]

    def reached(name):
        if name == phase and waiting:
            waiting.pop()()

    return reached


@pytest.mark.parametrize("phase", ["staging", "staged", "committing", *AFTER_CLAIM])
def test_a_load_that_another_run_of_the_dataflow_overtakes_adds_nothing(folder, phase):
    """W42, across processes: the overtaken batch is dropped, and read again by the run."""
    folder.load(ids(1))
    with pytest.raises(SupersededError):
        folder.load(ids(2), run_id="slow", on_phase=at(phase, lambda: folder.load(ids(3))))
    assert folder.ids() == [1, 3]
    assert set(folder.look().contents.files) == set(folder.look().data)


def test_a_load_that_fails_after_its_claim_takes_everything_back(folder):
    folder.load(ids(1))
    claims = []

    def fail(name):
        if name == "published":
            claims.append(folder.look().own)
            raise KeyError(name)

    with pytest.raises(KeyError):
        folder.load(ids(2), on_phase=fail)
    assert claims[0].pending.files
    assert folder.look().own.pending is None
    assert set(folder.look().contents.files) == set(folder.look().data)
    folder.load(ids(3))
    assert folder.ids() == [1, 3]


def test_a_claim_of_a_dead_run_is_taken_over_and_its_files_deleted(folder):
    """What a kill leaves behind: a claim, and files that are published."""
    folder.load(ids(1))
    claimed = []

    def stop(name):
        if name == "published":
            look = folder.look()
            claimed.append((look.place, look.own, dict(look.contents.files)))
            raise KeyError(name)

    with pytest.raises(KeyError):
        folder.load(ids(2), on_phase=stop)
    place, manifest, _ = claimed[0]
    left = place.path(manifest.pending.files[0])
    storage.write_atomic(left, b"id\n2\n")
    put_manifest(place.manifest, manifest.evolve(etag=folder.look().own.etag))
    assert folder.ids() == [1]
    folder.load(ids(3))
    assert folder.ids() == [1, 3]
    assert not storage.exists(left)


@pytest.mark.parametrize("phase", ["staged", *AFTER_CLAIM])
def test_two_dataflows_that_replace_one_folder_never_leave_both(folder, phase):
    """W38."""
    folder.load(ids(1), "overwrite", dataflow_id="a")

    def other():
        folder.load(ids(20), "overwrite", dataflow_id="b")

    folder.load(ids(2), "overwrite", dataflow_id="a", on_phase=at(phase, other))
    assert folder.ids() == [2]
    assert set(folder.look().contents.files) == set(folder.look().data)


@pytest.mark.parametrize("phase", ["staged", *AFTER_CLAIM])
def test_an_append_beside_an_overwrite_is_before_or_after_it(folder, phase):
    folder.load(ids(1), dataflow_id="a")

    def other():
        folder.load(ids(2), dataflow_id="a")

    folder.load(ids(30), "overwrite", dataflow_id="b", on_phase=at(phase, other))
    assert folder.ids() == [30]
    folder.load(ids(4), dataflow_id="a")
    assert folder.ids() == [4, 30]


def test_endless_rivals_are_named_after_ten_tries(folder):
    def rival(phase):
        if phase == "published":
            folder.load(ids(1), "overwrite", dataflow_id="b")

    def again(phase):
        # its claim is broken each time, because the other one replaces the folder too
        if phase in ("claimed", "published"):
            rival("published")

    with pytest.raises(WriteError) as caught:
        folder.load(ids(2), "overwrite", dataflow_id="a", on_phase=again)
    assert caught.value.code == "commit_conflict"
    assert caught.value.retryable
    assert len(folder.slept) == 9
    assert folder.ids() == [1]


def test_of_two_first_loads_one_makes_the_manifest(folder):
    with pytest.raises(SupersededError):
        folder.load(ids(1), on_phase=at("committing", lambda: folder.load(ids(2))))
    assert folder.ids() == [2]


def test_a_broken_manifest_is_named_with_the_way_out(tmp_path):
    """W43."""
    folder = Folder(str(tmp_path / "t"))
    folder.load(ids(1))
    path = tmp_path / "t" / "_datacoolie" / "_flow.json"
    path.write_text(path.read_text()[:100])
    with pytest.raises(WatermarkError) as caught:
        folder.load(ids(2))
    assert str(path) in str(caught.value)
    assert "--full-refresh" in str(caught.value)


def test_a_manifest_of_a_newer_version_is_refused(tmp_path):
    folder = Folder(str(tmp_path / "t"))
    folder.load(ids(1))
    path = tmp_path / "t" / "_datacoolie" / "_flow.json"
    path.write_text(path.read_text().replace('{"format":1', '{"format":9', 1))
    with pytest.raises(WatermarkError, match="Upgrade"):
        folder.state()


def test_a_reader_between_two_steps_sees_the_load_whole_or_not_at_all(folder):
    folder.load(ids(1))
    seen = []
    options = {"max_rows_per_file": 1}
    folder.load(
        ids(2, 3, 4), "overwrite", options=options, on_phase=lambda _: seen.append(folder.ids())
    )
    states = [one for index, one in enumerate(seen) if index == 0 or one != seen[index - 1]]
    assert states == [[1], [2, 3, 4]]
