"""One physical table has one identity, however it is written."""

from __future__ import annotations

import pytest

from datacoolie_core.metadata.identity import destination_identity, table_path
from datacoolie_core.metadata.models import Connection, Destination, Source
from datacoolie_core.secrets import Secret


def identity(base_path="lake", table="orders", schema=None, **connection):
    place = Connection(name="c", format="delta", configure={"base_path": base_path}, **connection)
    return destination_identity(Destination(connection=place, table=table, schema_name=schema))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"base_path": "lake/bronze"}, {"base_path": "lake", "schema": "bronze"}),
        ({"base_path": "./lake/"}, {"base_path": "lake//."}),
        ({"base_path": "x/../lake"}, {"base_path": "lake"}),
        ({"base_path": "lake\\bronze"}, {"base_path": "lake/bronze"}),
        ({"base_path": "file:///lake"}, {"base_path": "/lake"}),
        ({"base_path": "s3a://bucket/lake/"}, {"base_path": "S3://bucket/lake"}),
        ({"table": "/orders/"}, {"table": "orders"}),
    ],
)
def test_spellings_of_one_place_are_one_identity(one, other):
    assert identity(**one) == identity(**other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"base_path": "/lake"}, {"base_path": "lake"}),
        ({"base_path": "s3://a"}, {"base_path": "gs://a"}),
        ({"table": "orders"}, {"table": "Orders"}),
        ({"base_path": "../lake"}, {"base_path": "lake"}),
    ],
)
def test_different_places_differ(one, other):
    assert identity(**one) != identity(**other)


def test_a_catalog_names_the_table():
    found = identity(catalog="main", database="sales", schema="silver")
    assert found == "table:main.sales.silver.orders"


def source_path(**parts):
    place = Connection(name="c", configure=parts.pop("configure", {"base_path": "in/"}))
    return table_path(Source(connection=place, **parts))


def test_the_path_of_a_source_may_be_the_base_path():
    assert source_path(table="t", schema_name="s") == "in/s/t"
    assert source_path() == "in"


def test_there_is_no_path_for_a_query_or_without_a_base_path():
    assert source_path(query="SELECT 1") is None
    assert source_path(configure={}, table="t") is None


def test_a_base_path_from_a_secret_is_used():
    place = Connection(name="c", configure={"base_path": "KEY"}, secrets_ref={"env:": "base_path"})
    configure = place.configure.model_copy(update={"base_path": Secret("/lake")})
    place = place.model_copy(update={"configure": configure})
    assert table_path(Source(connection=place, table="t")) == "/lake/t"
