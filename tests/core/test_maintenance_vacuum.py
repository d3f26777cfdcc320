"""Clean-up: what nobody needs is gone, and nothing that a reader or a running load needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake

from datacoolie_core import clock
from datacoolie_core.errors import WriteError
from datacoolie_core.writers import delta
from datacoolie_core.writers.maintain_layout import compact
from datacoolie_core.writers.maintain_log import checkpoint, log_cleanup
from datacoolie_core.writers.maintain_properties import hours_of
from datacoolie_core.writers.maintain_request import MaintainOptions, Upkeep
from datacoolie_core.writers.maintain_vacuum import retention_of, vacuum
from datacoolie_core.writers.tables import Place

OWN = "delta.deletedFileRetentionDuration"


def upkeep(lake, later=0, **options):
    """``later``: hours from now at which the clean-up takes place."""
    now = clock.utc_now() + timedelta(hours=later)
    return Upkeep(Place(lake.uri), MaintainOptions(**options), "m1", now=now)


def age(path, hours):
    moment = path.stat().st_mtime - hours * 3600
    os.utime(path, (moment, moment))


def replaced(lake, **properties):
    """Three versions, of which the last names one file of four."""
    configuration = {key: str(value) for key, value in properties.items()}
    for n in range(3):
        write_deltalake(
            lake.uri, pl.DataFrame({"id": [n]}), mode="append", configuration=configuration
        )
    compact(upkeep(lake))


def test_files_within_the_tables_retention_stay_and_older_versions_can_be_read(lake):
    """W45: the default never breaks a reader."""
    replaced(lake)
    before = lake.files()
    done = vacuum(upkeep(lake))
    assert (done.files_removed, done.details["unnamed_files_kept"]) == (0, 3)
    assert lake.files() == before
    for version in range(4):
        assert pl.scan_delta(lake.uri, version=version).collect().height == min(version + 1, 3)


@pytest.mark.parametrize("hours", [0, 1, 100])
def test_a_retention_below_the_tables_own_is_refused_with_a_word(lake, hours):
    """W45, maint-vacuum-too-eager."""
    replaced(lake)
    done = vacuum(upkeep(lake, retention_hours=hours))
    ((code, text),) = done.warnings
    assert code == "short_retention_refused"
    assert "168 hours" in text
    assert f"retention of {hours} hours" in text
    assert "allow_short_retention" in text
    assert done.details["retention_hours"] == 168
    assert pl.scan_delta(lake.uri, version=0).collect().height == 1


def test_a_short_retention_that_is_allowed_is_named_and_takes_only_removed_files(lake):
    """maint-vacuum-too-eager: with the named override the result lists the retention used."""
    replaced(lake)
    stray = lake.path / "stray.parquet"
    pl.DataFrame({"id": [7]}).write_parquet(stray)
    age(stray, 1000)
    done = vacuum(upkeep(lake, retention_hours=0, allow_short_retention=True))
    assert (done.details["retention_hours"], done.details["mode"]) == (0, "lite")
    assert done.warnings[0][0] == "short_retention"
    assert done.files_removed == 3
    assert lake.files() == lake.live() | {"stray.parquet"}


@pytest.mark.parametrize("spelling", ["absolute", "relative", "file"])
def test_what_is_reported_is_really_gone(lake, monkeypatch, spelling):
    """maint-vacuum-reports-but-keeps-files."""
    replaced(lake, **{OWN: "interval 0 hours"})
    monkeypatch.chdir(lake.path.parent)
    uris = {"absolute": lake.uri, "relative": lake.path.name, "file": f"file://{lake.uri}"}
    options = MaintainOptions(retention_hours=0)
    size = sum((lake.path / name).stat().st_size for name in lake.files() - lake.live())
    dry = vacuum(
        Upkeep(Place(uris[spelling]), MaintainOptions(retention_hours=0, dry_run=True), "m")
    )
    assert (dry.status, dry.files_removed, dry.details["files_planned"]) == ("skipped", 0, 3)
    assert dry.message.startswith("dry run: 3 files")
    assert len(lake.files()) == 4

    done = vacuum(Upkeep(Place(uris[spelling]), options, "m"))
    assert (done.status, done.files_removed, done.bytes_removed) == ("succeeded", 3, size)
    assert len(lake.files()) == 1
    assert lake.rows() == [(0,), (1,), (2,)]


def test_nothing_is_left_once_checkpoints_have_forgotten_what_was_removed(lake):
    """maint-light-cleanup-leaves-files."""
    for n in range(40):
        write_deltalake(
            lake.uri,
            pl.DataFrame({"id": [n]}),
            mode="append",
            configuration={OWN: "interval 0 hours", "delta.checkpointInterval": "7"},
        )
        if n % 6 == 5:
            compact(upkeep(lake))
    for name in lake.files() - lake.live():
        age(lake.path / name, 200)
    checkpoint(upkeep(lake))
    assert not lake.table.vacuum(0, enforce_retention_duration=False)
    done = vacuum(upkeep(lake, retention_hours=0))
    assert lake.files() == lake.live()
    assert done.details["unnamed_files_kept"] == 0
    assert len(lake.rows()) == 40


@pytest.mark.parametrize(("hours", "gone"), [(0, False), (23, False), (25, True)])
def test_files_that_the_table_never_named_go_after_a_day_at_the_earliest(lake, hours, gone):
    write_deltalake(lake.uri, pl.DataFrame({"id": [1]}), configuration={OWN: "interval 0 hours"})
    stray = lake.path / "p=1" / "stray.parquet"
    stray.parent.mkdir()
    pl.DataFrame({"id": [7]}).write_parquet(stray)
    age(stray, hours)
    done = vacuum(upkeep(lake, retention_hours=0))
    assert stray.exists() is not gone
    assert done.files_removed == int(gone)


def test_files_removed_within_a_retention_longer_than_the_tables_own_stay(lake):
    replaced(lake, **{OWN: "interval 0 hours"})
    for name in lake.files() - lake.live():
        age(lake.path / name, 1000)
    checkpoint(upkeep(lake))
    done = vacuum(upkeep(lake, retention_hours=500))
    assert done.files_removed == 0
    assert pl.scan_delta(lake.uri, version=0).collect().height == 1


@pytest.mark.parametrize("text", ["interval 6 months", "INTERVAL 90 DAYS", "3 weeks", "for ever"])
def test_a_retention_that_delta_rs_can_not_read_is_kept_all_the_same(lake, text):
    """delta-rs takes it for a week, and deletes what the table wants to keep."""
    replaced(lake, **{OWN: text})
    kept = retention_of(MaintainOptions(), lake.table.metadata().configuration)
    assert kept.hours >= 500
    assert (kept.warning is not None) == (text == "for ever")
    assert vacuum(upkeep(lake)).files_removed == 0


def test_what_is_no_data_file_of_this_table_is_left_alone(lake):
    """delta-rs's full vacuum empties every table that lies in a folder below."""
    write_deltalake(lake.uri, pl.DataFrame({"id": [1]}), configuration={OWN: "interval 0 hours"})
    inner = lake.path / "inner"
    write_deltalake(str(inner), pl.DataFrame({"id": [2]}))
    (lake.path / "README.md").write_text("mine")
    (lake.path / "_manifest.parquet").write_text("hidden")
    for path in lake.path.rglob("*"):
        if path.is_file() and path.name not in lake.live():
            age(path, 1000)
    done = vacuum(upkeep(lake, retention_hours=0))
    assert done.files_removed == 0
    assert (lake.path / "README.md").exists()
    assert pl.read_delta(str(inner)).rows() == [(2,)]


def test_a_file_that_is_committed_while_the_clean_up_looks_around_stays(lake, monkeypatch):
    """A load that staged its file a week ago commits at the worst moment."""
    from datacoolie_core.writers import maintain_vacuum

    lake.load(pl.DataFrame({"id": [1]}))
    real = maintain_vacuum._live_now

    def at_worst(phase):
        if phase != "committing":
            return
        (staged,) = lake.files() - lake.live()
        age(lake.path / staged, 1000)
        with monkeypatch.context() as patch:
            patch.setattr(maintain_vacuum, "_live_now", lambda place: real(place) | {staged})
            assert vacuum(upkeep(lake)).files_removed == 0

    lake.load(pl.DataFrame({"id": [2]}), on_phase=at_worst)
    assert lake.rows() == [(1,), (2,)]


EVERY_WAY = """
import itertools, json, sys
from datacoolie_core.writers.maintain import operations
from datacoolie_core.writers.maintain_request import MaintainOptions, Upkeep
from datacoolie_core.writers.tables import Place
done = []
for hours, short, stray, z in itertools.product(
    (None, 0, 1), (False, True), (False, True), ((), ("id",))
):
    options = MaintainOptions(
        retention_hours=hours, allow_short_retention=short, unreferenced=stray, zorder_columns=z
    )
    for name, work in operations(options):
        done.append([name, work(Upkeep(Place(sys.argv[1]), options, "m")).status])
print(json.dumps(done))
"""


@pytest.mark.parametrize(
    ("load_type", "phase", "own"),
    [
        ("append", "staged", "interval 0 hours"),
        ("merge_upsert", "committing", "interval 0 hours"),
        ("overwrite", "staged", "interval 1 week"),
    ],
)
def test_no_option_of_another_process_deletes_files_in_flight(lake, own, load_type, phase):
    for n in range(2):
        lake.load(pl.DataFrame({"id": [n], "v": [0]}), load_type, keys=("id",))
    lake.table.alter.set_table_properties({OWN: own})
    reached = []

    def clean(at):
        if at != phase or reached:
            return
        reached.append(at)
        told = subprocess.run(
            [sys.executable, "-c", EVERY_WAY, lake.uri],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        statuses = {status for _, status in json.loads(told.stdout)}
        assert statuses <= {"succeeded", "skipped"}

    lake.load(pl.DataFrame({"id": [1, 2], "v": [1, 1]}), load_type, keys=("id",), on_phase=clean)
    expected = {
        "append": [(0, 0), (1, 0), (1, 1), (2, 1)],
        "merge_upsert": [(0, 0), (1, 1), (2, 1)],
        "overwrite": [(1, 1), (2, 1)],
    }
    assert reached == [phase]
    assert lake.rows() == expected[load_type]
    assert lake.live() <= lake.files()


def test_a_file_that_can_not_be_deleted_is_told_and_the_others_go(lake, monkeypatch):
    from datacoolie_core.errors import StorageError
    from datacoolie_core.writers import maintain_vacuum

    replaced(lake, **{OWN: "interval 0 hours"})
    stuck = min(lake.files() - lake.live())
    real = maintain_vacuum.delete_file

    def denied(place, path):
        if path == stuck:
            raise StorageError("permission denied", place=path)
        real(place, path)

    monkeypatch.setattr(maintain_vacuum, "delete_file", denied)
    with pytest.raises(WriteError, match="1 of 3 files could not be deleted") as raised:
        vacuum(upkeep(lake, retention_hours=0))
    assert raised.value.code == "vacuum_failed"
    assert lake.files() == lake.live() | {stuck}


def test_a_checkpoint_is_written_once(lake):
    replaced(lake)
    assert checkpoint(upkeep(lake)).message == "of version 3"
    assert (lake.path / "_delta_log/00000000000000000003.checkpoint.parquet").exists()
    assert checkpoint(upkeep(lake)).message == "version 3 has one"
    assert lake.rows() == [(0,), (1,), (2,)]


def with_old_log(lake, **properties):
    """Five loads and their checkpoint, all of them two months old."""
    for n in range(5):
        lake.load(pl.DataFrame({"id": [n]}))
    lake.table.alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 2 days", **properties}
    )
    checkpoint(upkeep(lake))
    for path in (lake.path / "_delta_log").iterdir():
        age(path, 60 * 24)


def logs(lake):
    return sum(path.suffix == ".json" for path in (lake.path / "_delta_log").iterdir())


def test_a_load_goes_on_after_the_log_was_cleaned(lake):
    with_old_log(lake)
    done = log_cleanup(upkeep(lake))
    assert done.files_removed >= 5
    found = delta.inspect(lake.uri, "flow", {})
    assert (found.sequence, found.history_lost, found.rewound) == (5, True, False)
    lake.load(pl.DataFrame({"id": [5]}))
    assert [row[0] for row in lake.rows()] == list(range(6))


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.enableExpiredLogCleanup": "false"},
        {"delta.logRetentionDuration": "interval 12 months"},
        {"delta.logRetentionDuration": "long enough"},
    ],
)
def test_a_log_that_the_table_wants_to_keep_is_kept(lake, properties):
    with_old_log(lake, **properties)
    before = logs(lake)
    log_cleanup(upkeep(lake))
    assert logs(lake) == before


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("interval 36 hours", 36),
        ("interval 1 week 2 days", 216),
        ("90 minutes", 1.5),
        ("interval 1.5 days", 36),
        ("calendar interval 1 day", 24),
        ("interval 5 parsecs", None),
        ("", None),
        ("interval", None),
        ("interval 5 days ago", None),
    ],
)
def test_intervals_are_read_or_are_unknown(text, hours):
    assert hours_of(text) == hours


def test_a_table_handle_of_before_reads_on(lake):
    replaced(lake)
    handle = DeltaTable(lake.uri, version=1)
    vacuum(upkeep(lake))
    assert handle.to_pyarrow_table().num_rows == 2
