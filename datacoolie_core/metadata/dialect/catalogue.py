"""The functions of the dialect: their names, their arguments, and why some are left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from datacoolie_core.metadata.dialect.conditions import CONDITIONS, HASHES, LISTS
from datacoolie_core.metadata.dialect.numbers import CASTS, NUMBERS
from datacoolie_core.metadata.dialect.texts import PATTERNS, TEXTS
from datacoolie_core.metadata.dialect.times import EPOCHS, PARTS, TIMES

if TYPE_CHECKING:
    from datacoolie_core.metadata.dialect.function import Function


@dataclass(frozen=True)
class Group:
    """Functions that belong together.

    Attributes:
        title: The heading of the reference.
        functions: In the order of the reference.
    """

    title: str
    functions: tuple[Function, ...]


@cache
def groups() -> tuple[Group, ...]:
    """Return all functions, in the order of the reference."""
    return (
        Group("Conditions and nulls", CONDITIONS),
        Group("Text", TEXTS),
        Group("Patterns", PATTERNS),
        Group("Dates and times", TIMES),
        Group("Parts of dates and times", PARTS),
        Group("Seconds since 1970, and zones", EPOCHS),
        Group("Numbers", NUMBERS),
        Group("Types", CASTS),
        Group("Lists and structs", LISTS),
        Group("Hashes", HASHES),
    )


@cache
def functions() -> dict[str, Function]:
    """Return every function by each of its names."""
    listed = (one for group in groups() for one in group.functions)
    return {name: one for one in listed for name in one.names}


def _because(reason: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


_AGGREGATE = "it looks at many rows, and an expression sees one row at a time"
_CHANGES = "it would give another value each time, and a load must be repeatable"
_ROWS = "it would change the number of rows"
_DIFFERENT = "its results could not be the same as those of Spark"

REFUSED: dict[str, str] = {
    **_because(
        _AGGREGATE,
        "count sum avg mean min max first first_value last last_value any_value collect_list"
        " collect_set array_agg stddev stddev_pop stddev_samp std variance var_pop var_samp median"
        " percentile percentile_approx approx_percentile approx_count_distinct corr covar_pop"
        " covar_samp bool_and bool_or every some any count_if max_by min_by mode string_agg listagg"
        " row_number rank dense_rank percent_rank ntile lag lead cume_dist nth_value grouping"
        " quantile_cont quantile_disc kurtosis skewness",
    ),
    **_because(
        _ROWS,
        "explode explode_outer posexplode posexplode_outer inline inline_outer stack unnest",
    ),
    **_because(
        _CHANGES,
        "rand random randn uuid shuffle monotonically_increasing_id spark_partition_id"
        " current_user user session_user",
    ),
    **_because(
        "the columns __file_name and __file_path say it",
        "input_file_name input_file_block_start input_file_block_length",
    ),
    **_because(_DIFFERENT, "hash crc32 soundex format_number"),
}
"""Functions that Spark has and the dialect does not, each with the reason."""

AGGREGATES = frozenset(name for name, reason in REFUSED.items() if reason == _AGGREGATE)
"""Functions over many rows: only a query can have them."""
