"""Delays between attempts."""

from __future__ import annotations

from hypothesis import given, strategies as st

from datacoolie_core.run.retry import CAP_SECONDS, RetryHandler


def test_delays_double_from_the_base_and_stop_at_the_cap():
    assert list(RetryHandler(6, 5).delays()) == [5, 10, 20, 40, 60, 60]


def test_thousands_of_retries_stay_finite():
    """retry-backoff-grows-without-limit."""
    delays = list(RetryHandler(2000, 30).delays())
    assert delays[:3] == [30, 60, 60]
    assert max(delays) == 60
    assert len(delays) == 2000


@given(st.floats(0, 1e9), st.floats(0, 1), st.floats(0, 1))
def test_jitter_never_leaves_the_range(delay, jitter, drawn):
    for seconds in RetryHandler(5, delay, jitter).delays(lambda: drawn):
        assert 0 <= seconds <= CAP_SECONDS
