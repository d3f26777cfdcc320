"""merge_overwrite and replay_filter in tables that the library has to write."""

from __future__ import annotations

import polars as pl
import pytest
from deltalake import write_deltalake

from datacoolie_core.errors import WriteError
from datacoolie_core.plan.windows import Window
from datacoolie_core.writers.request import Reread
from tests.core.test_writers_features import FEATURES, check_commit, struck

__all__ = ["struck"]


@pytest.fixture(params=FEATURES, ids=lambda make: make.__name__)
def special(lake, request):
    request.param(lake)
    return lake


def counts(result):
    return (
        result.rows_inserted,
        result.rows_updated,
        result.rows_deleted,
        result.rows_unchanged,
    )


def test_the_rows_of_keys_are_replaced(special):
    special.load(pl.DataFrame({"id": [2, 3], "v": ["b2", "c"]}))
    batch = pl.DataFrame({"id": [1, 2, 4, 4], "v": ["a", "B", "d", "d"]})
    result = special.load(batch, "merge_overwrite", keys=("id",))

    assert special.rows("id", "v") == [(1, "a"), (2, "B"), (3, "c"), (4, "d"), (4, "d")]
    assert counts(result) == (2, 1, 1, 1)
    check_commit(special, 2)
    again = special.load(batch, "merge_overwrite", keys=("id",))
    assert (again.committed, again.rows_unchanged) == (False, 4)
    assert not [name for name in special.files() - special.live() if "run-3" in name]


def test_null_keys_are_replaced_too(lake):
    write_deltalake(
        lake.uri,
        pl.DataFrame({"id": [None, 1], "v": ["n", "a"]}),
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    lake.load(pl.DataFrame({"id": [None, 1], "v": ["N", "a"]}), "merge_overwrite", keys=("id",))
    assert lake.rows() == [(None, "N"), (1, "a")]


def read_again(lake, batch, *, valueless):
    again = Reread({"id": 2}, {"id": 3}, valueless=valueless)
    return lake.load(batch, "merge_overwrite", keys=("id",), mode="replace_window", reread=again)


def test_what_was_read_again_is_replaced(special):
    special.load(pl.DataFrame({"id": [3], "v": ["c"]}))
    result = read_again(special, pl.DataFrame({"id": [2, 4], "v": ["b", "d"]}), valueless=False)
    assert special.rows("id", "v") == [(1, "a"), (2, "b"), (4, "d")]
    assert counts(result) == (1, 0, 1, 1)
    check_commit(special, 2)


def test_rows_without_a_value_that_were_read_again_are_replaced(lake):
    frame = pl.DataFrame({"id": [1, None], "v": ["a", "n"]})
    write_deltalake(lake.uri, frame, configuration={"delta.enableChangeDataFeed": "true"})
    batch = pl.DataFrame({"id": [None, 2], "v": ["N", "b"]})
    for _ in range(2):
        read_again(lake, batch, valueless=True)
        assert lake.rows() == [(None, "N"), (1, "a"), (2, "b")]


def test_a_window_keeps_the_rows_of_others(special):
    special.load(pl.DataFrame({"id": [2, 2], "v": ["mine", "Mine"]}))
    result = special.load(
        pl.DataFrame({"id": [2], "v": ["mine too"]}),
        mode="replace_window",
        window=Window("id", 1, 3),
        replay_filter="V like 'mine%'",
    )
    assert special.rows("id", "v") == [(1, "a"), (2, "Mine"), (2, "b"), (2, "mine too")]
    assert result.rows_deleted == 1
    check_commit(special, 2)


def test_a_full_refresh_keeps_the_rows_of_others(special):
    special.load(pl.DataFrame({"id": [7], "v": ["b"]}), mode="replace_all", replay_filter="v = 'b'")
    assert special.rows("id", "v") == [(1, "a"), (7, "b")]
    check_commit(special)


def test_rows_that_are_struck_out_stay_gone(struck):
    batch = pl.DataFrame({"id": [2, 4, 4], "v": ["B", "d", "D"]})
    result = struck.load(batch, "merge_overwrite", keys=("id",))
    assert struck.rows() == [(1, "a"), (2, "B"), (4, "D"), (4, "d")]
    assert counts(result) == (2, 1, 0, 0)


def test_a_row_that_breaks_a_constraint_changes_nothing(lake):
    """Its own writer may leave a file that no commit names; maintenance deletes it."""
    FEATURES[0](lake)
    before = lake.table.version(), lake.live()
    with pytest.raises(WriteError, match="break a constraint"):
        lake.load(pl.DataFrame({"id": [2, -1], "v": ["B", "x"]}), "merge_overwrite", keys=("id",))
    assert lake.rows() == [(1, "a"), (2, "b")]
    assert (lake.table.version(), lake.live()) == before
