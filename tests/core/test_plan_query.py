"""What a query is, and which files may be read for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from datacoolie_core import storage
from datacoolie_core.errors import PreparationError
from datacoolie_core.metadata.models import Dataflow
from datacoolie_core.plan.query import (
    ArtifactRef,
    FileRef,
    Inline,
    classify,
    load_query,
    query_reader,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM orders",
        "select a.sql from a",
        "SELECT * FROM a.sql",
        "-- notes\nSELECT 1",
        "--x.sql",
        "/* x.sql */ SELECT 1",
        "  \n-- indented\nSELECT 1",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "orders",
        "SELECT 'a#b?c%2f'",
        "(SELECT 1)",
    ],
)
def test_what_is_no_path_is_sql_as_it_stands(query: str) -> None:
    assert classify(query) == Inline(query)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("orders.sql", "orders.sql"),
        ("orders/new-2.v1.SQL", "orders/new-2.v1.SQL"),
        ("  sql/orders.sql \n", "sql/orders.sql"),
        ("./sql//orders.sql", "sql/orders.sql"),
        ("größe/übersicht.sql", "größe/übersicht.sql"),
    ],
)
def test_words_dots_dashes_and_slashes_that_end_in_sql_are_a_file(query: str, path: str) -> None:
    assert classify(query) == FileRef(query.strip(), path)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("artifact:/sql/orders.sql", "sql/orders.sql"),
        ("artifact:/my queries/orders of today.txt", "my queries/orders of today.txt"),
    ],
)
def test_the_artifact_form_takes_spaces_and_any_ending(query: str, path: str) -> None:
    assert classify(query) == ArtifactRef(query, path)


@pytest.mark.parametrize(
    "query",
    [
        "../secret.sql",
        "sub/../orders.sql",
        "..",
        "/etc/hostname.sql",
        "/etc/my file.sql",
        "~/orders.sql",
        "../sql_private/x.sql",
        "sub\\..\\..\\secret.sql",
        "\\\\server\\x.sql",
        "C:\\x.sql",
        "C:/x.sql",
        "orders.sql%00",
        "..%2fsecret.sql",
        "%2e%2e/secret.sql",
        "a%5cb.sql",
        "orders.sql?x=1",
        "orders.sql#top",
        "file:///etc/x.sql",
        "s3://bucket/x.sql",
        "or\x00ders.sql",
        "artifact:/../secret.sql",
        "artifact:/sub/../orders.sql",
        "artifact://etc/x.sql",
        "artifact:/~/x.sql",
        "artifact:/a?b",
        "artifact:/a#b",
        "artifact:/a%2Fb",
        "artifact:/a\\b",
        "artifact:/a\x07b.sql",
        "artifact:/manifest.json",
    ],
)
def test_a_path_that_could_lead_elsewhere_is_refused(query: str) -> None:
    """Case path-sql-file-escapes-root; a traversal that comes back is refused too."""
    with pytest.raises(PreparationError, match="leads outside the SQL root"):
        classify(query)


@pytest.mark.parametrize("query", ["artifact:", "artifact:/", "artifact:orders.sql"])
def test_an_artifact_reference_without_a_file_says_how_to_write_one(query: str) -> None:
    with pytest.raises(PreparationError, match=r"Write artifact:/folder/file\.sql"):
        classify(query)


def flow(query: str | None) -> Dataflow:
    source: dict[str, Any] = {"connection": {"name": "lake", "format": "delta"}, "query": query}
    if query is None:
        source["table"] = "t"
    destination = {"connection": {"name": "lake", "format": "delta"}, "table": "out"}
    return Dataflow.model_validate(
        {"name": "f", "dataflow_id": "id-f", "source": source, "destination": destination}
    )


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".sql").write_text(text)


def test_no_query_and_inline_sql_read_no_file(tmp_path: Path) -> None:
    assert load_query(flow(None), project_dir=str(tmp_path)) is None
    assert load_query(flow("SELECT 1"), project_dir=str(tmp_path)) == "SELECT 1"


def test_without_roots_a_file_is_named_from_the_project_root(tmp_path: Path) -> None:
    write(tmp_path, sql__orders="SELECT 2")
    assert load_query(flow("sql/orders.sql"), project_dir=str(tmp_path)) == "SELECT 2"
    assert load_query(flow("artifact:/sql/orders.sql"), project_dir=str(tmp_path)) == "SELECT 2"


def test_one_root_takes_a_path_with_its_folder_name_and_without(tmp_path: Path) -> None:
    write(tmp_path, sql__orders="SELECT 3", sql__sql__inner="SELECT 4")
    for written in ("orders.sql", "sql/orders.sql"):
        found = load_query(flow(written), project_dir=str(tmp_path), sql_roots=("sql",))
        assert found == "SELECT 3"
    inner = load_query(flow("sql/inner.sql"), project_dir=str(tmp_path), sql_roots=("sql/",))
    assert inner == "SELECT 4"


def test_several_roots_are_told_apart_by_their_folder_names(tmp_path: Path) -> None:
    write(tmp_path, sql1__orders="SELECT 1", sql2__orders="SELECT 2")
    roots = ("sql1", "sql2")
    found = load_query(flow("sql2/orders.sql"), project_dir=str(tmp_path), sql_roots=roots)
    assert found == "SELECT 2"
    with pytest.raises(PreparationError, match="one of several SQL roots: 'sql1', 'sql2'"):
        load_query(flow("orders.sql"), project_dir=str(tmp_path), sql_roots=roots)
    twins = ("a/sql", "b/sql")
    with pytest.raises(PreparationError, match="give roots different folder names"):
        load_query(flow("sql/orders.sql"), project_dir=str(tmp_path), sql_roots=twins)


def test_equal_roots_count_once(tmp_path: Path) -> None:
    write(tmp_path, sql__orders="SELECT 3")
    roots = ("sql", str(tmp_path / "sql"), "./sql/")
    assert load_query(flow("orders.sql"), project_dir=str(tmp_path), sql_roots=roots) == "SELECT 3"


def test_a_missing_file_names_the_dataflow_the_reference_and_the_path_tried(tmp_path: Path) -> None:
    (tmp_path / "sql").mkdir()
    with pytest.raises(PreparationError) as caught:
        load_query(flow("orders.sql"), project_dir=str(tmp_path), sql_roots=("sql",))
    assert str(caught.value) == (
        f"dataflow 'id-f', prepare, source.query: 'orders.sql': there is no file "
        f"{tmp_path}/sql/orders.sql. Correct the name, or set the SQL root (--sql-path)."
    )


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, orders="  \n\t")
    with pytest.raises(PreparationError, match="is empty"):
        load_query(flow("orders.sql"), project_dir=str(tmp_path))


def test_a_file_that_is_not_utf8_is_an_error_of_preparation(tmp_path: Path) -> None:
    (tmp_path / "orders.sql").write_bytes(b"SELECT '\xff'")
    with pytest.raises(PreparationError, match="not UTF-8"):
        load_query(flow("orders.sql"), project_dir=str(tmp_path))


@pytest.mark.parametrize("outside", ["secret.sql", "sql_private/secret.sql"])
def test_a_link_that_leads_out_is_refused_without_showing_the_file(
    tmp_path: Path, outside: str
) -> None:
    secret = tmp_path / outside
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("SELECT 'top secret'")
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "linked.sql").symlink_to(secret)
    with pytest.raises(PreparationError, match="leads outside the SQL root") as caught:
        load_query(flow("linked.sql"), project_dir=str(tmp_path), sql_roots=("sql",))
    assert "top secret" not in str(caught.value)
    assert caught.value.dataflow == "id-f"


def test_a_linked_folder_that_leads_out_is_refused(tmp_path: Path) -> None:
    write(tmp_path, elsewhere__x="SELECT 1")
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "sub").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PreparationError, match="leads outside"):
        load_query(flow("sub/x.sql"), project_dir=str(tmp_path), sql_roots=("sql",))


def test_a_link_inside_the_root_and_a_linked_root_are_fine(tmp_path: Path) -> None:
    write(tmp_path, real__orders="SELECT 5")
    (tmp_path / "real" / "alias.sql").symlink_to(tmp_path / "real" / "orders.sql")
    (tmp_path / "sql").symlink_to(tmp_path / "real")
    assert (
        load_query(flow("alias.sql"), project_dir=str(tmp_path), sql_roots=("sql",)) == "SELECT 5"
    )


def test_files_of_another_scheme_are_read() -> None:
    root = f"memory://{uuid4().hex}"
    storage.write_atomic(f"{root}/sql/orders.sql", "SELECT 6")
    assert load_query(flow("sql/orders.sql"), project_dir=root) == "SELECT 6"
    assert query_reader(root, ("sql",))(flow("orders.sql")) == "SELECT 6"
