"""Conditions that the Delta library runs itself: the same meaning there, or refused."""

from __future__ import annotations

from datetime import date

import polars as pl
import pytest

from datacoolie_core.engines.sql.plain import plain_sql
from datacoolie_core.errors import WriteError
from datacoolie_core.writers.conditions import condition_of

SCHEMA = {"region": pl.String(), "n": pl.Int64(), "day": pl.Date(), "x": pl.Float64()}


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("Region = 'north'", "\"region\" = 'north'"),
        ('`N` > 1 AND ("region" IS NULL OR x <> -1.5)', '"n" > 1 AND ("region" IS NULL OR "x" <> -1.5)'),
        ("region IN ('a', NULL)", "\"region\" IN ('a', NULL)"),
        ("NOT n BETWEEN 1 AND 2", 'NOT "n" BETWEEN 1 AND 2'),
        ("region LIKE 'a_%'", "\"region\" LIKE 'a_%'"),
        ("region = 'it''s'", "\"region\" = 'it''s'"),
    ],
)  # fmt: skip
def test_comparisons_of_alike_values_mean_the_same_everywhere(written, plain):
    assert plain_sql(written, SCHEMA) == plain


@pytest.mark.parametrize(
    "written",
    [
        "region > 5",
        "day = '2024-01-01'",
        "upper(region) = 'A'",
        "CAST(region AS INT) = 1",
        "n + 1 > 2",
        r"region LIKE 'a\\_%'",
        "n LIKE '1%'",
        "n IN (1, 'x')",
        "day > current_date",
    ],
)
def test_what_engines_read_each_in_its_own_way_is_not_plain(written):
    """A text beside a number is compared as text by some of them."""
    assert plain_sql(written, SCHEMA) is None


def test_a_condition_that_is_not_plain_is_refused_only_where_the_library_would_run_it():
    condition = condition_of("year(day) = 2024", SCHEMA, field="replay_filter")
    frame = pl.DataFrame({"day": [date(2024, 1, 1), date(2023, 1, 1), None]})
    assert frame.select(condition.holds).to_series().to_list() == [True, False, False]
    assert condition.columns == ("day",)
    with pytest.raises(WriteError, match="which is written by the Delta library"):
        _ = condition.sql


@pytest.mark.parametrize("written", ["n + 1", "nope = 1", "n >"])
def test_what_is_no_condition_is_refused(written):
    with pytest.raises(WriteError, match="delete_when can't be used"):
        condition_of(written, SCHEMA, field="delete_when")
