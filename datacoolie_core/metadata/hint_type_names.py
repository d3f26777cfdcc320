"""The names that six SQL dialects give to column types, and what each name means there."""

from __future__ import annotations

from typing import Literal

Dialect = Literal["spark_sql", "postgresql", "mysql", "mssql", "oracle", "sqlite"]
Kind = Literal[
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "float32",
    "float64",
    "decimal",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "time",
]
"""A ``timestamp`` is an instant in UTC; a ``timestamp_ntz`` has no zone."""

DIALECT_ALIASES: dict[str, Dialect] = {
    **dict.fromkeys(("spark_sql", "spark", "spark sql", "sparksql"), "spark_sql"),
    **dict.fromkeys(("postgresql", "postgres"), "postgresql"),
    **dict.fromkeys(("mysql", "mariadb"), "mysql"),
    **dict.fromkeys(("mssql", "sql server", "sqlserver"), "mssql"),
    "oracle": "oracle",
    "sqlite": "sqlite",
}

DEFAULT_DECIMAL: dict[Dialect, tuple[int, int]] = {
    "spark_sql": (10, 0),
    "mysql": (10, 0),
    "mssql": (18, 0),
    # these have no fixed size of their own: room for both sides of the point
    "postgresql": (38, 18),
    "oracle": (38, 18),
    "sqlite": (38, 18),
}
"""Precision and scale of a decimal that is named without them."""

FIXED_DECIMAL: dict[tuple[Dialect, str], tuple[int, int]] = {
    ("postgresql", "money"): (19, 2),
    ("mssql", "money"): (19, 4),
    ("mssql", "smallmoney"): (10, 4),
    ("mysql", "bigint unsigned"): (20, 0),
}
"""Decimals whose name implies their size."""

_NAMES: dict[Dialect, dict[Kind, str]] = {
    "spark_sql": {
        "bool": "boolean, bool",
        "int8": "byte, tinyint",
        "int16": "short, smallint",
        "int32": "int, integer",
        "int64": "long, bigint",
        "float32": "float, real",
        "float64": "double",
        "decimal": "decimal, numeric, dec",
        "string": "string, varchar, char, text",
        "binary": "binary",
        "date": "date",
        "timestamp": "timestamp, timestamp_ltz",
        "timestamp_ntz": "timestamp_ntz",
    },
    "postgresql": {
        "bool": "boolean, bool",
        "int16": "smallint, int2, smallserial",
        "int32": "integer, int, int4, serial",
        "int64": "bigint, int8, bigserial",
        "float32": "real, float4",
        "float64": "double precision, float8, float",
        "decimal": "numeric, decimal, dec, money",
        "string": "varchar, character varying, char, character, bpchar, text, citext, name, uuid, "
        "json, jsonb, xml, inet, cidr, macaddr, bit varying, varbit",
        "binary": "bytea",
        "date": "date",
        "timestamp": "timestamptz, timestamp with time zone",
        "timestamp_ntz": "timestamp, timestamp without time zone",
        "time": "time, time without time zone, timetz, time with time zone",
    },
    "mysql": {
        "bool": "boolean, bool, bit",
        "int8": "tinyint",
        "int16": "smallint, tinyint unsigned, year",
        "int32": "int, integer, mediumint, smallint unsigned, mediumint unsigned",
        "int64": "bigint, int unsigned, integer unsigned",
        "float32": "float, float unsigned",
        "float64": "double, double precision, real, double unsigned",
        "decimal": "decimal, numeric, dec, fixed, bigint unsigned, decimal unsigned,"
        " numeric unsigned",
        "string": "char, varchar, text, tinytext, mediumtext, longtext, enum, set, json",
        "binary": "binary, varbinary, blob, tinyblob, mediumblob, longblob",
        "date": "date",
        "timestamp": "timestamp",
        "timestamp_ntz": "datetime",
        "time": "time",
    },
    "mssql": {
        "bool": "bit",
        "int16": "smallint, tinyint",
        "int32": "int, integer",
        "int64": "bigint",
        "float32": "real",
        "float64": "float, double precision",
        "decimal": "decimal, numeric, dec, money, smallmoney",
        "string": "char, varchar, nchar, nvarchar, text, ntext, uniqueidentifier, xml, sysname,"
        " json",
        "binary": "binary, varbinary, image, rowversion, timestamp",
        "date": "date",
        "timestamp": "datetimeoffset",
        "timestamp_ntz": "datetime, datetime2, smalldatetime",
        "time": "time",
    },
    "oracle": {
        "int64": "integer, int, smallint",
        "float32": "binary_float",
        "float64": "binary_double, float, real, double precision",
        "decimal": "number, numeric, decimal, dec",
        "string": "varchar2, nvarchar2, varchar, char, nchar, clob, nclob, long, rowid, urowid,"
        " xmltype",
        "binary": "raw, long raw, blob",
        "timestamp": "timestamp with time zone, timestamp with local time zone",
        # a DATE of Oracle has a time of day
        "timestamp_ntz": "date, timestamp",
    },
    "sqlite": {
        "bool": "boolean, bool",
        "int64": "integer, int, bigint, tinyint, smallint, mediumint, int2, int8, unsigned big int",
        "float64": "real, double, double precision, float",
        "decimal": "numeric, decimal",
        "string": "text, varchar, char, character, nchar, nvarchar, clob, json,"
        " varying character, native character",
        "binary": "blob",
        "date": "date",
        "timestamp_ntz": "datetime, timestamp",
        "time": "time",
    },
}

KINDS: dict[Dialect, dict[str, Kind]] = {
    dialect: {name: kind for kind, names in kinds.items() for name in names.split(", ")}
    for dialect, kinds in _NAMES.items()
}
"""What each type name of a dialect means."""
