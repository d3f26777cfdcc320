"""Rows of a source as text: JSON for people, a hash to recognise a row that comes again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from datacoolie_core.engines.dtypes import instance, is_one_of
from datacoolie_core.engines.names import match
from datacoolie_core.transforms.slots import FILE_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Collection

HIDDEN = "***"
"""Stands for a value of a masked column."""
ROW, ROW_HASH, SOURCE_FILE = "row", "row_hash", "source_file"
_FILE_PATH = "__file_path"


def source_rows(frame: pl.DataFrame, masked: Collection[str]) -> pl.DataFrame:
    """Return each row as JSON, its hash, and the file that it comes from.

    The hash is over the JSON's values: a column that is null does not count, nor does the order
    of the columns, so that a row keeps its hash when other files bring new columns.

    Args:
        frame: Rows of the source, as they were read.
        masked: Columns whose values may not show.
    """
    names = [name for name in frame.columns if name not in FILE_COLUMNS]
    hidden = {match(name, names) for name in masked}
    shown = frame.select(_hidden(name) if name in hidden else _plain(frame[name]) for name in names)
    file = pl.col(_FILE_PATH) if _FILE_PATH in frame.columns else pl.lit(None)
    return pl.DataFrame(
        {
            ROW: _json(shown),
            ROW_HASH: _hashed(shown),
            SOURCE_FILE: frame.select(file.cast(pl.String).alias(SOURCE_FILE)).to_series()
            if frame.columns
            else None,
        },
        schema={ROW: pl.String, ROW_HASH: pl.String, SOURCE_FILE: pl.String},
    )


def _hidden(name: str) -> pl.Expr:
    return pl.when(pl.col(name).is_not_null()).then(pl.lit(HIDDEN)).alias(name)


def _plain(series: pl.Series) -> pl.Series:
    """Return values as the engine can write them as JSON, without loss."""
    dtype = series.dtype
    if is_one_of(dtype, pl.Binary):
        return series.bin.encode("base64")
    if dtype.is_float() and not series.is_finite().all():
        return series.cast(pl.String)  # JSON knows neither NaN nor infinity
    if is_one_of(dtype, pl.Categorical, pl.Enum, pl.Int128, pl.UInt128):
        return series.cast(pl.String)
    if dtype.is_nested() and not _writable(dtype):
        texts = [None if one is None else json.dumps(one, default=str) for one in series.to_list()]
        return pl.Series(series.name, texts, dtype=pl.String)
    return series


def _writable(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.Struct):
        return bool(dtype.fields) and all(_writable(instance(one.dtype)) for one in dtype.fields)
    if isinstance(dtype, pl.List | pl.Array):
        return isinstance(dtype, pl.List) and _writable(instance(dtype.inner))
    return is_one_of(dtype, pl.String, pl.Boolean) or dtype.is_integer()


def _json(shown: pl.DataFrame) -> pl.Series:
    if not shown.width:
        return pl.Series(ROW, ["{}"], dtype=pl.String).new_from_index(0, shown.height)
    return shown.select(pl.struct(pl.all()).struct.json_encode().alias(ROW)).to_series()


def _hashed(shown: pl.DataFrame) -> pl.Series:
    # imported here: it is a second engine plug-in to load, and few loads have bad rows
    import polars_hash as hashing

    parts = [_part(name, shown.schema[name]) for name in sorted(shown.columns)]
    whole = pl.concat_str([pl.lit(""), *parts], ignore_nulls=True)
    digest = hashing.CryptographicHashingNameSpace(whole).sha2_256()
    return shown.select(digest.alias(ROW_HASH)).to_series()


def _part(name: str, dtype: pl.DataType) -> pl.Expr:
    column = pl.col(name)
    if dtype.is_nested():
        text = pl.when(column.is_not_null()).then(pl.struct(name).struct.json_encode())
    else:
        text = column.cast(pl.String)
    length = text.str.len_bytes().cast(pl.String)
    return pl.concat_str([pl.lit(f"{len(name)}:{name}="), length, pl.lit(":"), text])
