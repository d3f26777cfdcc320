"""The short way to parse timestamps gives what the long way gives, or declines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import polars as pl
from hypothesis import given, strategies as st

from datacoolie_core.engines.uniform_moments import uniform_moments

MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
OFFSETS = st.integers(-14 * 60, 14 * 60)


@given(
    moments=st.lists(st.none() | MOMENTS, min_size=1),
    offset=st.none() | OFFSETS,
    sep=st.sampled_from("T "),
    spec=st.sampled_from(["seconds", "milliseconds", "microseconds"]),
    colon=st.booleans(),
)
def test_texts_of_one_form_are_parsed_as_python_does(moments, offset, sep, spec, colon):
    zone = None if offset is None else timezone(timedelta(minutes=offset))
    written = [None if m is None else m.replace(tzinfo=zone).isoformat(sep, spec) for m in moments]
    texts = [w if colon or w is None or offset is None else w[:-3] + w[-2:] for w in written]
    found = uniform_moments(pl.Series(texts, dtype=pl.String))
    if all(m is None for m in moments):
        assert found is None
        return
    expected = [None if w is None else datetime.fromisoformat(w) for w in written]
    if zone is not None:
        expected = [None if m is None else m.astimezone(UTC) for m in expected]
    assert found is not None
    assert found.to_list() == expected


@given(
    st.lists(
        st.text(alphabet="0123456789-: T.Z+", min_size=19, max_size=27) | MOMENTS.map(str),
        min_size=1,
        max_size=4,
    )
)
def test_other_texts_are_declined_or_parsed_as_the_long_way_does(texts):
    series = pl.Series(texts)
    found = uniform_moments(series)
    if found is None:
        return
    for text, value in zip(texts, found.to_list(), strict=True):
        forms = ("%FT%T%.f", "%F %T%.f", "%FT%T%.f%#z", "%F %T%.f%#z")
        one = pl.Series([text])
        parsed = [one.str.to_datetime(form, time_unit="us", strict=False).item() for form in forms]
        assert value in [p for p in parsed if p is not None]


def test_a_value_that_does_not_exist_is_left_to_the_long_way():
    assert uniform_moments(pl.Series(["2025-02-30T00:00:00", "2025-02-28T00:00:00"])) is None


def test_zones_that_differ_are_left_to_the_long_way():
    texts = ["2025-02-28T00:00:00+01:00", "2025-02-28T00:00:00+02:00"]
    assert uniform_moments(pl.Series(texts)) is None
