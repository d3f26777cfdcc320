"""Paths, atomic and conditional writes, listing: on a disk and on a second scheme."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from datacoolie_core import storage
from datacoolie_core.clock import utc_now
from datacoolie_core.errors import MissingPathError, StorageError
from datacoolie_core.storage.filesystems import explained

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An own folder on each kind of storage."""
    return str(tmp_path) if request.param == "disk" else f"memory://{uuid4().hex}"


@pytest.mark.parametrize(
    ("base", "parts", "expected"),
    [
        ("lake", ("bronze", "orders"), "lake/bronze/orders"),
        ("lake/", ("/bronze/", "", "orders/"), "lake/bronze/orders"),
        ("/", ("lake",), "/lake"),
        ("memory://", ("lake", "orders"), "memory://lake/orders"),
        ("s3://bucket", (), "s3://bucket"),
        ("s3://bucket/lake/", ("strange [ID] folder",), "s3://bucket/lake/strange [ID] folder"),
    ],
)
def test_joining_gives_single_slashes(base: str, parts: tuple[str, ...], expected: str) -> None:
    assert storage.join(base, *parts) == expected


def test_all_spellings_of_one_place_resolve_to_one_string(tmp_path: Path) -> None:
    """Case path-same-table-two-spellings."""
    spellings = [
        "lake/orders",
        "./lake/orders/",
        "lake//orders",
        "lake/x/../orders",
        f"{tmp_path}/lake/orders",
        f"file://{tmp_path}/lake/orders/",
        f"FILE://localhost{tmp_path}/lake/orders",
    ]
    assert {storage.resolve(path, tmp_path) for path in spellings} == {f"{tmp_path}/lake/orders"}


def test_a_uri_is_not_made_relative_to_the_project(tmp_path: Path) -> None:
    assert storage.resolve("S3://bucket//lake/./orders/", tmp_path) == "s3://bucket/lake/orders"
    assert storage.resolve("memory:///lake/orders", tmp_path) == "memory://lake/orders"
    url = "https://host/a//b?x=./y"
    assert storage.resolve(url, tmp_path) == url


def test_a_project_root_can_be_a_uri() -> None:
    assert storage.resolve("lake/../sql", "memory://project") == "memory://project/sql"


def test_a_file_uri_keeps_odd_characters_of_its_name(tmp_path: Path) -> None:
    assert storage.resolve("file:///in/50%25%20[a].csv", tmp_path) == "/in/50% [a].csv"


def test_a_file_uri_of_another_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="another machine"):
        storage.resolve("file://lake/orders", tmp_path)


def test_what_is_written_is_read_back_and_nothing_else_is_left(folder: str) -> None:
    uri = storage.join(folder, "state", "a.json")
    storage.write_atomic(uri, b"one")
    storage.write_atomic(uri, "zwö")
    assert storage.read_bytes(uri) == "zwö".encode()
    assert storage.read_text(uri) == "zwö"
    listed = storage.list_files(storage.join(folder, "state"), include_hidden=True)
    assert [info.uri for info in listed] == [uri]


def test_a_byte_order_mark_is_not_part_of_a_text(folder: str) -> None:
    uri = storage.join(folder, "q.sql")
    storage.write_atomic(uri, b"\xef\xbb\xbfSELECT 1")
    assert storage.read_text(uri) == "SELECT 1"


def test_text_that_is_not_utf8_names_the_file_and_the_byte(folder: str) -> None:
    uri = storage.join(folder, "q.sql")
    storage.write_atomic(uri, b"ab\xff")
    with pytest.raises(StorageError, match=r"q\.sql: byte 2 is not UTF-8"):
        storage.read_text(uri)


def test_a_missing_file_is_named_with_a_remedy(folder: str) -> None:
    uri = storage.join(folder, "no.json")
    with pytest.raises(MissingPathError, match=r"no\.json: can't read: .* Check the path"):
        storage.read_bytes(uri)
    with pytest.raises(MissingPathError), storage.local_copy(uri):
        pass
    assert not storage.exists(uri)


def test_a_failed_write_leaves_the_old_file_whole(tmp_path: Path) -> None:
    """W43: a state file is never half written."""
    target = tmp_path / "a.json"
    target.mkdir()
    (target / "keep").write_text("old")
    with pytest.raises(StorageError):
        storage.write_atomic(str(target), b"new")
    assert (target / "keep").read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_path_below_a_file_ends_in_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="file/inner"):
        storage.read_bytes(str(tmp_path / "file" / "inner"))


def test_a_denied_path_says_permission_and_who_can_help() -> None:
    """Through the translation alone, since the super-user is never denied."""
    with pytest.raises(StorageError) as caught, explained("/lake/closed", "list"):
        raise PermissionError(13, "Permission denied", "/lake/closed")
    assert str(caught.value) == (
        "/lake/closed: can't list: permission denied. "
        "Give this user access to the path, or correct the credentials."
    )
    assert (caught.value.code, caught.value.retryable) == ("permission_denied", False)


def test_only_trouble_that_can_pass_may_be_tried_again() -> None:
    with pytest.raises(StorageError) as caught, explained("s3://lake/a", "read"):
        raise TimeoutError(110, "Connection timed out")
    assert caught.value.retryable
    with pytest.raises(StorageError) as full, explained("/lake/a", "write"):
        raise OSError(28, "No space left on device")
    assert (full.value.code, full.value.retryable) == ("disk_full", False)


def test_an_unknown_scheme_is_an_error_with_the_scheme() -> None:
    with pytest.raises(StorageError, match="nonsense") as caught:
        storage.read_bytes("nonsense://lake/a")
    assert caught.value.code == "unknown_scheme"


def test_deleting_twice_is_fine(folder: str) -> None:
    uri = storage.join(folder, "a[1]*.txt")
    other = storage.join(folder, "a1.txt")
    storage.write_atomic(uri, b"x")
    storage.write_atomic(other, b"x")
    storage.delete(uri)
    storage.delete(uri)
    assert not storage.exists(uri)
    assert storage.exists(other)


def test_exactly_one_of_many_creates_a_file(folder: str) -> None:
    uri = storage.join(folder, "deep", "claim")
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: storage.put_if_absent(uri, str(n)), range(16)))
    assert won.count(True) == 1
    assert storage.read_text(uri) == str(won.index(True))


def test_a_replacement_needs_the_content_that_was_read(folder: str) -> None:
    uri = storage.join(folder, "manifest.json")
    assert storage.read_with_etag(uri) is None
    assert storage.put_if_match(uri, "1", None)
    assert not storage.put_if_match(uri, "2", None)
    found = storage.read_with_etag(uri)
    assert found is not None
    data, etag = found
    assert data == b"1"
    assert storage.put_if_match(uri, "2", etag)
    assert not storage.put_if_match(uri, "3", etag)
    assert storage.read_text(uri) == "2"


def test_no_increment_is_lost_when_many_replace_one_file(folder: str) -> None:
    uri = storage.join(folder, "count")
    storage.write_atomic(uri, "0")

    def increment(_: int) -> None:
        while True:
            found = storage.read_with_etag(uri)
            assert found is not None
            if storage.put_if_match(uri, str(int(found[0]) + 1), found[1]):
                return

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(increment, range(12)))
    assert storage.read_text(uri) == "12"


def test_a_lock_of_a_dead_writer_is_taken_over() -> None:
    folder = f"memory://{uuid4().hex}"
    uri, lock = f"{folder}/m.json", f"{folder}/.m.json.lock"
    storage.write_atomic(uri, "1")
    old = (utc_now() - timedelta(hours=1)).isoformat()
    storage.write_atomic(lock, f'{{"owner": "dead", "at": "{old}"}}')
    found = storage.read_with_etag(uri)
    assert found is not None
    assert storage.put_if_match(uri, "2", found[1])
    assert not storage.exists(lock)


def test_lines_are_added_in_order(folder: str) -> None:
    uri = storage.join(folder, "logs", "run.jsonl")
    storage.append_line(uri, '{"a": 1}')
    storage.append_line(uri, '{"a": 2}')
    assert storage.read_text(uri) == '{"a": 1}\n{"a": 2}\n'


def test_lines_of_several_threads_do_not_mix(tmp_path: Path) -> None:
    uri = str(tmp_path / "run.jsonl")
    lines = [str(n) * 5000 for n in range(10)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda line: storage.append_line(uri, line), lines))
    assert sorted(storage.read_text(uri).splitlines()) == lines


def test_a_listing_is_sorted_and_leaves_out_what_is_hidden(folder: str) -> None:
    for name in ("b.csv", "a.csv", "_SUCCESS", ".tmp", "sub/c.csv", "_log/d.csv", "sub/.e"):
        storage.write_atomic(storage.join(folder, name), b"12")
    flat = storage.list_files(folder)
    assert [info.uri for info in flat] == [f"{folder}/a.csv", f"{folder}/b.csv"]
    deep = storage.list_files(folder, recursive=True)
    assert [info.uri.removeprefix(f"{folder}/") for info in deep] == ["a.csv", "b.csv", "sub/c.csv"]
    everything = storage.list_files(folder, recursive=True, include_hidden=True)
    assert len(everything) == 7
    assert {info.size for info in everything} == {2}
    assert all(abs(info.modified_at - utc_now()) < timedelta(minutes=5) for info in everything)


def test_a_folder_below_a_hidden_one_can_be_listed(folder: str) -> None:
    inner = storage.join(folder, "_datacoolie", "x")
    storage.write_atomic(storage.join(inner, "a.json"), b"1")
    assert [info.uri for info in storage.list_files(inner)] == [f"{inner}/a.json"]


def test_brackets_and_stars_are_names_not_patterns(folder: str) -> None:
    """Case path-brackets-are-not-patterns."""
    for place in ("strange [ID] folder", "strange I folder", "a*b?{c}"):
        storage.write_atomic(storage.join(folder, place, "data[1].csv"), place)
    for place in ("strange [ID] folder", "a*b?{c}"):
        listed = storage.list_files(storage.join(folder, place))
        assert [info.uri for info in listed] == [storage.join(folder, place, "data[1].csv")]
        assert storage.read_text(listed[0].uri) == place
        with storage.local_copy(listed[0].uri) as path:
            assert path.read_text() == place
            assert path.name == "data[1].csv"


def test_a_missing_folder_is_an_error_and_an_empty_one_is_not(tmp_path: Path) -> None:
    """W60."""
    with pytest.raises(MissingPathError, match="nowhere: can't list"):
        storage.list_files(str(tmp_path / "nowhere"))
    with pytest.raises(MissingPathError, match="nowhere: can't list"):
        storage.list_files(f"memory://{uuid4().hex}/nowhere")
    assert storage.list_files(str(tmp_path)) == []


def test_listing_a_file_gives_that_file(folder: str) -> None:
    uri = storage.join(folder, "a.csv")
    storage.write_atomic(uri, b"123")
    listed = storage.list_files(uri)
    assert [(info.uri, info.size) for info in listed] == [(uri, 3)]


def test_times_of_files_are_exact_to_the_microsecond(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"")
    os.utime(file, ns=(0, 1_357_000_000_123_456_789))
    (info,) = storage.list_files(str(tmp_path))
    assert info.modified_at == datetime(2013, 1, 1, 0, 26, 40, 123456, tzinfo=UTC)


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    outside = tmp_path / "elsewhere"
    inside.mkdir()
    outside.mkdir()
    (outside / "a.csv").write_bytes(b"1")
    (inside / "linked").symlink_to(outside)
    (outside / "back").symlink_to(inside)
    listed = storage.list_files(str(inside), recursive=True)
    assert [info.uri for info in listed] == [f"{inside}/linked/a.csv"]


def test_a_link_that_leads_nowhere_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(MissingPathError, match=r"a\.csv: can't list: this link leads nowhere"):
        storage.list_files(str(tmp_path))


def test_a_local_copy_of_a_remote_file_is_dropped_after() -> None:
    uri = f"memory://{uuid4().hex}/flights.csv.zip"
    storage.write_atomic(uri, b"zip")
    with storage.local_copy(uri) as path:
        assert path.name == "flights.csv.zip"
        assert path.read_bytes() == b"zip"
    assert not path.exists()


def test_importing_storage_is_cheap_and_a_local_disk_needs_no_fsspec(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = (
        "import sys; from datacoolie_core import storage;"
        f"storage.write_atomic({str(tmp_path / 'a')!r}, b'1'); storage.list_files({str(tmp_path)!r});"
        "print([m for m in ('fsspec', 'filelock', 'polars') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
