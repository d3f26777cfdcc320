"""Type names of six dialects, and what they mean."""

from __future__ import annotations

import pytest

from datacoolie_core.metadata.hint_type_names import KINDS
from datacoolie_core.metadata.hint_types import HintTypeError, LogicalType, hint_dialect, parse_type
from datacoolie_core.metadata.models import Connection


@pytest.mark.parametrize("dialect", KINDS)
def test_every_name_of_every_dialect_is_read(dialect):
    for name, kind in KINDS[dialect].items():
        assert parse_type(name.upper(), dialect).kind == kind


@pytest.mark.parametrize(
    ("name", "dialect", "expected"),
    [
        ("string", "spark", "string"),
        ("TIMESTAMP", "spark sql", "timestamp"),
        ("timestamp", "postgres", "timestamp_ntz"),
        ("TIMESTAMP (6) WITH TIME ZONE", "oracle", "timestamp"),
        ("date", "oracle", "timestamp_ntz"),
        ("timestamp", "sqlserver", "binary"),
        ("float", "spark", "float32"),
        ("float", "mssql", "float64"),
        ("float(24)", "SQL Server", "float32"),
        ("nvarchar(max)", "mssql", "string"),
        ("varchar2(10 char)", "oracle", "string"),
        ("int(11) unsigned", "mysql", "int64"),
        ("tinyint(1)", "mariadb", "bool"),
        ("tinyint(4)", "mysql", "int8"),
        ("bit(8)", "mysql", "binary"),
        ("double  precision", "postgresql", "float64"),
        ("datetime2(7)", "mssql", "timestamp_ntz"),
        ("datetimeoffset(7)", "mssql", "timestamp"),
        ("time(7)", "mssql", "time"),
        ("varbinary(max)", "mssql", "binary"),
        ("timestamp with time zone", "postgresql", "timestamp"),
        ("timestamp(3) without time zone", "postgresql", "timestamp_ntz"),
        ("timestamp(6) with local time zone", "oracle", "timestamp"),
        ("character varying(20)", "postgresql", "string"),
        ("double unsigned", "mysql", "float64"),
        ("int(11) unsigned zerofill", "mysql", "int64"),
        ("unsigned big int", "sqlite", "int64"),
        ("varying character(255)", "sqlite", "string"),
    ],
)
def test_a_name_means_what_its_dialect_says(name, dialect, expected):
    assert parse_type(name, dialect).kind == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("DATETIME", "timestamp_ntz"), ("timestamptz", "timestamp"), ("nvarchar(20)", "string")],
)
def test_a_name_that_only_other_dialects_know_is_read_by_its_plain_meaning(name, expected):
    assert parse_type(name, "spark_sql").kind == expected


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        (("decimal(18, 2)",), (18, 2)),
        (("decimal(18)",), (18, 0)),
        (("decimal(18)", "spark", None, 2), (18, 2)),
        (("DECIMAL", "spark", 18, 2), (18, 2)),
        (("decimal(18,2)", "spark", 18, 2), (18, 2)),
        (("decimal",), (10, 0)),
        (("numeric", "mssql"), (18, 0)),
        (("number", "oracle"), (38, 18)),
        (("number(9)", "oracle"), (9, 0)),
        (("number(*,2)", "oracle"), (38, 2)),
        (("number(10,-2)", "oracle"), (12, 0)),
        (("decimal(10,2) unsigned", "mysql"), (10, 2)),
        (("number(10,2)", "spark"), (10, 2)),
        (("money", "mssql"), (19, 4)),
        (("bigint unsigned", "mysql"), (20, 0)),
        (("decimal", "spark", None, 4), (10, 4)),
    ],
)
def test_decimals_have_a_size(arguments, size):
    assert parse_type(*arguments) == LogicalType("decimal", *size)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("decimal(18,2)", "spark", 10), "has precision 18, but precision says 10"),
        (("decimal(18,2)", "spark", None, 3), "has scale 2, but scale says 3"),
        (("decimal(39,2)",), "has precision 39; it must be 1 to 38"),
        (("decimal(5,6)",), "has scale 6; it must be 0 to 5"),
        (("decimal(ten,2)",), "'decimal(ten,2)' has a size that can't be read"),
        (("decimal(10,2,1)",), "'decimal(10,2,1)' has a size that can't be read"),
        (("decimal(10,-2)",), "has scale -2; it must be 0 to 10"),
        (("array<int>",), "'array<int>' is not the name of a type"),
        (("int", "db2"), "unknown SQL dialect 'db2'"),
        (("intt",), "unknown type 'intt'"),
    ],
)
def test_what_can_not_be_is_refused(arguments, message):
    with pytest.raises(HintTypeError, match=message.replace("(", r"\(").replace(")", r"\)")):
        parse_type(*arguments)


def test_a_misspelt_name_has_a_suggestion():
    with pytest.raises(HintTypeError) as caught:
        parse_type("STRNG")
    assert caught.value.suggestion == "string"


@pytest.mark.parametrize(
    ("configure", "expected"),
    [
        ({}, "spark_sql"),
        ({"database_type": "MariaDB"}, "mysql"),
        ({"database_type": "mysql", "schema_hint_type_system": "spark"}, "spark_sql"),
    ],
)
def test_the_dialect_is_named_or_that_of_the_database(configure, expected):
    assert hint_dialect(Connection(name="c", format="sql", configure=configure)) == expected
