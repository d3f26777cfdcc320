"""Rows at the watermark: each is loaded once, however they arrive."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from datacoolie_core.errors import LoadError
from datacoolie_core.readers.row_hash import fingerprint, row_hashes
from datacoolie_core.state.record import Boundary

MOMENT = datetime(2022, 1, 3)


class Loads:
    """Appends to a list as a destination would, run after run."""

    def __init__(self, reading, **given):
        self.reading = reading
        self.flow = reading.flow("parquet", watermark=given.pop("watermark", ["ts"]), **given)
        self.watermark: dict = {}
        self.boundary = Boundary()
        self.rows: list[tuple] = []
        self.nulls = "include"
        self.limit = None

    def run(self, frame: pl.DataFrame) -> int:
        self.reading.write("t/a.parquet", frame)
        batch_frame, batch = self.reading.read(
            self.flow,
            lower=self.watermark,
            stored=self.watermark,
            boundary=self.boundary,
            track_boundary=True,
            null_watermark=self.nulls,
            max_watermark=self.limit,
        )
        assert batch.observation.boundary_usable != self.boundary.compare
        self.rows += batch_frame.rows()
        self.watermark = batch.observation.candidate
        # as it would come back from the state file
        self.boundary = Boundary.from_json(batch.observation.boundary.to_json())
        assert batch.observation.rows_read == batch_frame.height
        return batch_frame.height


def frame(*rows, schema=("id", "ts")):
    return pl.DataFrame(list(rows), schema=list(schema), orient="row")


def test_a_late_row_with_an_equal_watermark_is_loaded_once(reading):
    """W2, wm-ties-at-boundary."""
    loads = Loads(reading)
    rows = [(1, MOMENT), (2, MOMENT)]
    assert loads.run(frame(*rows)) == 2
    rows.append((3, MOMENT))
    assert loads.run(frame(*rows)) == 1
    assert loads.run(frame(*rows)) == 0
    assert sorted(loads.rows) == rows
    assert loads.watermark == {"ts": MOMENT}


def test_equal_rows_are_counted(reading):
    loads = Loads(reading)
    assert loads.run(frame((1, MOMENT), (1, MOMENT))) == 2
    assert loads.run(frame(*[(1, MOMENT)] * 5)) == 3
    assert loads.run(frame(*[(1, MOMENT)] * 5)) == 0
    assert loads.boundary.rows == 5


def test_a_loaded_row_that_left_the_source_and_comes_back_is_known(reading):
    loads = Loads(reading)
    loads.run(frame((1, MOMENT), (2, MOMENT)))
    assert loads.run(frame((2, MOMENT))) == 0
    assert loads.run(frame((1, MOMENT), (2, MOMENT))) == 0


def test_when_the_watermark_moves_older_rows_are_forgotten(reading):
    loads = Loads(reading)
    loads.run(frame((1, 1), (2, 1)))
    loads.run(frame((1, 1), (2, 1), (3, 2)))
    assert loads.boundary.rows == 1


def test_many_ties_are_compared_instead_of_remembered(reading):
    loads = Loads(reading)
    loads.run(frame(*[(number, MOMENT) for number in range(300)]))
    assert loads.boundary == Boundary(compare=True, ties_only=True)


def test_so_many_ties_that_they_are_not_even_kept(reading):
    loads = Loads(reading)
    loads.run(frame(*[(number, MOMENT) for number in range(5000)]))
    assert loads.boundary == Boundary(compare=True, ties_only=True)
    assert loads.run(frame((1, datetime(2023, 1, 1)))) == 1
    assert loads.boundary.rows == 1


def test_many_ties_below_the_highest_value_cost_nothing(reading):
    loads = Loads(reading)
    rows = [(number, day) for day in range(5) for number in range(3000)]
    loads.run(frame(*rows, (0, 99)))
    assert loads.boundary.rows == 1


def test_a_changed_schema_says_that_the_hashes_are_no_use(reading):
    loads = Loads(reading)
    loads.run(frame((1, MOMENT)))
    reading.write("t/a.parquet", frame((1, MOMENT)).with_columns(extra=pl.lit("x")))
    rows, batch = reading.read(
        loads.flow,
        lower=loads.watermark,
        stored=loads.watermark,
        boundary=loads.boundary,
        track_boundary=True,
    )
    assert not batch.observation.boundary_usable
    assert rows.height == 1
    assert batch.observation.boundary.rows == 1


class CsvLoads(Loads):
    """The same over one CSV file, given as text."""

    def __init__(self, reading, **given):
        super().__init__(reading)
        self.flow = reading.flow(watermark=["ts"], **given)

    def run(self, text: str) -> int:
        self.reading.write("t/a.csv", text)
        rows, batch = self.reading.read(
            self.flow,
            lower=self.watermark,
            stored=self.watermark,
            boundary=self.boundary,
            track_boundary=True,
        )
        assert batch.observation.boundary_usable
        self.watermark = batch.observation.candidate
        self.boundary = Boundary.from_json(batch.observation.boundary.to_json())
        return rows.height


_SPELLINGS = [
    "2025-04-04T10:00:00Z",
    "2025-04-04 10:00:00",
    "2025-04-04T10:00:00+00:00",
    "2025-04-04T12:00:00.000+0200",
]


@pytest.mark.parametrize("first", _SPELLINGS)
@pytest.mark.parametrize("hints", [{"ts": "timestamp"}, {"TS": "timestamp"}])
def test_an_instant_written_otherwise_is_known(reading, first, hints):
    """wm-naive-meets-aware."""
    loads = CsvLoads(reading, hints=hints)
    assert loads.run(f"id,ts\n1,{first}\n") == 1
    for spelling in _SPELLINGS:
        assert loads.run(f"id,ts\n1,{spelling}\n") == 0
    assert loads.run(f"id,ts\n1,{_SPELLINGS[1]}\n2,2025-04-04 10:01:00\n") == 1


def test_an_instant_without_a_hint_is_known_however_written(reading):
    zone = {"configure": {"timestamp_timezone": "Asia/Kolkata"}}
    loads = CsvLoads(reading, transform=zone)
    assert loads.run("id,ts\n1,2025-04-04T10:00:00Z\n") == 1
    assert loads.run("id,ts\n1,2025-04-04 15:30:00\n2,2025-04-04 15:30:00\n") == 1
    assert loads.run("id,ts\n2,2025-04-04T10:00:00+00:00\n") == 0


def test_bare_text_that_is_not_the_same_text_is_another_row(reading):
    """Nothing types the column, so the destination holds the text itself."""
    loads = CsvLoads(reading)
    assert loads.run("id,ts\n1,10\n") == 1
    assert loads.run("id,ts\n1,10\n1,010\n") == 1


@pytest.mark.parametrize("hint", ["decimal(10,2)", "double"])
def test_a_number_written_otherwise_is_known(reading, hint):
    loads = CsvLoads(reading, hints={"price": hint, "ts": "int"})
    assert loads.run("price,ts\n1.0,5\n") == 1
    assert loads.run("price,ts\n1.00,5\n2.00,5\n") == 1
    assert loads.run("price,ts\n1,5\n2,05\n") == 0


def test_a_value_that_its_hint_can_not_hold_is_named_when_its_row_is_known(reading):
    loads = CsvLoads(reading, hints={"n": "int", "ts": "int"})
    loads.run("n,ts\n1,5\n")
    with pytest.raises(LoadError, match=r"column 'n', .*a.csv: the value 'x' is no int32"):
        loads.run("n,ts\nx,5\n")


def test_an_instant_shown_in_another_zone_is_known(reading):
    loads = Loads(reading)
    moment = pl.Series([datetime(2025, 4, 4, 10, tzinfo=UTC)])
    loads.run(pl.DataFrame({"id": [1], "ts": moment}))
    there = moment.dt.convert_time_zone("Europe/Berlin")
    assert loads.run(pl.DataFrame({"id": [1], "ts": there})) == 0


def test_system_columns_are_no_part_of_a_row(reading):
    loads = Loads(reading)
    loads.run(frame((1, MOMENT)).with_columns(__updated_at=pl.lit(1)))
    assert loads.run(frame((1, MOMENT)).with_columns(__updated_at=pl.lit(2))) == 0


def test_with_several_columns_a_tie_is_above_in_none(reading):
    loads = Loads(reading, watermark=["a", "b"])
    schema = ("id", "a", "b")
    loads.run(frame((1, 5, 1), (2, 1, 5), (3, 1, 1), schema=schema))
    assert loads.boundary.rows == 2
    new = [(4, 5, 2), (5, 6, 1), (6, 2, 2)]
    assert loads.run(frame((1, 5, 1), (2, 1, 5), (3, 1, 1), *new, schema=schema)) == 2
    assert loads.watermark == {"a": 6, "b": 5}
    assert loads.run(frame((1, 5, 1), (2, 1, 5), (3, 1, 1), *new, schema=schema)) == 0


def test_rows_beyond_the_limit_are_loaded_once(reading):
    """wm-future-dated-row."""
    loads = Loads(reading)
    loads.limit = datetime(2026, 1, 5, tzinfo=UTC)
    future = (2, datetime(9999, 12, 31))
    assert loads.run(frame((1, datetime(2026, 1, 1)), future)) == 2
    loads.limit = datetime(2026, 1, 6, tzinfo=UTC)
    assert loads.run(frame((1, datetime(2026, 1, 1)), future, (3, datetime(2026, 1, 2)))) == 1
    assert loads.run(frame((1, datetime(2026, 1, 1)), future, (3, datetime(2026, 1, 2)))) == 0
    assert loads.watermark == {"ts": datetime(2026, 1, 2)}


def test_rows_without_a_watermark_that_are_always_read_are_loaded_once(reading):
    """W3, wm-null-cursor-rows."""
    loads = Loads(reading, source={"configure": {"datacoolie": {"null_watermark": "include"}}})
    rows = [(1, None), (2, None), (3, MOMENT)]
    assert loads.run(frame(*rows)) == 3
    assert loads.run(frame(*rows, (4, None))) == 1
    assert loads.run(frame(*rows, (4, None))) == 0


def test_a_source_without_any_watermark_value_is_loaded_once(reading):
    """W4."""
    loads = Loads(reading)
    rows = pl.DataFrame({"id": [1, 2], "ts": [None, None]}, schema={"id": pl.Int64, "ts": pl.Int64})
    assert loads.run(rows) == 2
    assert loads.run(rows) == 0


_TIES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(_TIES, min_size=1, max_size=5))
def test_rows_that_only_come_at_or_above_the_watermark_are_each_loaded_once(reading, additions):
    """Whatever arrives run after run, if it is not below the watermark, it is loaded once."""
    loads = Loads(reading)
    source: list[tuple[int, int]] = []
    for added in additions:
        least = loads.watermark.get("ts", 0)
        source += [(number, least + step) for number, step in added]
        loads.run(pl.DataFrame(source, schema={"id": pl.Int64, "ts": pl.Int64}, orient="row"))
        assert Counter(loads.rows) == Counter(source)


EVERY_TYPE = pl.DataFrame(
    {
        "bool": [True, None],
        "int": [-7, None],
        "unsigned": pl.Series([2**64 - 1, None], dtype=pl.UInt64),
        "float": [0.5, None],
        "text": ["Grün", None],
        "bytes": [b"\x00\xff", None],
        "decimal": pl.Series(["1.50", None]).cast(pl.Decimal(10, 2)),
        "date": [date(2024, 2, 29), None],
        "clock": pl.Series([MOMENT, None]).cast(pl.Datetime("ns")),
        "instant": [datetime(2022, 1, 3, tzinfo=UTC), None],
        "time": pl.Series([3_600_000_000_000, None]).cast(pl.Time),
        "duration": pl.Series([1500, None]).cast(pl.Duration("ms")),
        "category": pl.Series(["a", None]).cast(pl.Categorical),
        "enum": pl.Series(["b", None]).cast(pl.Enum(["a", "b"])),
        "list": [[1, None], []],
        "array": pl.Series([[1, 2], None], dtype=pl.Array(pl.Int8, 2)),
        "struct": [{"x": 1, "y": ["z"]}, None],
        "null": [None, None],
    }
)


def test_the_hash_of_every_type_is_what_it_always_was():
    """Golden values: a change here loses or doubles rows of everybody's next run."""
    assert row_hashes(EVERY_TYPE) == GOLDEN_ROWS
    assert fingerprint(EVERY_TYPE.schema) == GOLDEN_SCHEMA
    by_column = {name: row_hashes(EVERY_TYPE.select(name)) for name in EVERY_TYPE.columns}
    assert by_column == GOLDEN_COLUMNS


GOLDEN_ROWS = ["v4js00PMHffqYSbLIu5gFQ", "0Ex3vl7waOq0jc42BMqV6A"]
GOLDEN_SCHEMA = "TrCNnEpDjYfvJ4ftm-iy_Q"
GOLDEN_COLUMNS = {
    "bool": ["pMPzmBr0X5sahzH80G1iaQ", "EHhghondd4qZ1CpA4kiaKw"],
    "int": ["JEQJFtuJlsBiwC49ue8Kdg", "EHhghondd4qZ1CpA4kiaKw"],
    "unsigned": ["PUBlAQcIxwpnKxrnkJNbeg", "EHhghondd4qZ1CpA4kiaKw"],
    "float": ["OSonh9pQJYgZzFM4amt28Q", "EHhghondd4qZ1CpA4kiaKw"],
    "text": ["seOe6BzUOMG6EjjhzrrqUA", "EHhghondd4qZ1CpA4kiaKw"],
    "bytes": ["ScelLjTCOb5dHq7OCsOKzg", "EHhghondd4qZ1CpA4kiaKw"],
    "decimal": ["BetgVXvAIee9oJXCCNuERQ", "EHhghondd4qZ1CpA4kiaKw"],
    "date": ["byldfbPNwLZ0w5MdohUMUw", "EHhghondd4qZ1CpA4kiaKw"],
    "clock": ["1ccjDZXlOWYeVmksaQJSRg", "EHhghondd4qZ1CpA4kiaKw"],
    "instant": ["BG4szu5UT5nk7BbGfKI-yw", "EHhghondd4qZ1CpA4kiaKw"],
    "time": ["-Y1MtnSY_h6lHEBK3mmtoA", "EHhghondd4qZ1CpA4kiaKw"],
    "duration": ["9Iq2OXj32y6dzFSPLUHiYw", "EHhghondd4qZ1CpA4kiaKw"],
    "category": ["3DE7jtvncHgRezyad6SNPg", "EHhghondd4qZ1CpA4kiaKw"],
    "enum": ["F4df_wf5xkCZ12KyojhCZw", "EHhghondd4qZ1CpA4kiaKw"],
    "list": ["quvdAud_0kJAyf-2yAAzFg", "iWDt4JMztv0UX7mRcJwb3w"],
    "array": ["5s2mCvq4RRiUXSdFesyyPg", "EHhghondd4qZ1CpA4kiaKw"],
    "struct": ["qGqh5FiqQddrg4qQ9rIhYA", "EHhghondd4qZ1CpA4kiaKw"],
    "null": ["EHhghondd4qZ1CpA4kiaKw", "EHhghondd4qZ1CpA4kiaKw"],
}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": ["x", "y"], "b": ["", ""]}, {"a": ["", ""], "b": ["x", "y"]}),
        ({"a": ["1:a"], "b": ["b"]}, {"a": ["1"], "b": [":ab"]}),
        ({"a": [None]}, {"a": ["N"]}),
        ({"a": [[["x"], []]]}, {"a": [[[], ["x"]]]}),
        ({"a": [[]]}, {"a": [None]}),
        ({"a": [Decimal("1.10")]}, {"a": [Decimal("1.11")]}),
        ({"a": [1, 2], "b": [1, 2]}, {"a": [1, 2], "b": [2, 1]}),
    ],
)
def test_different_rows_have_different_hashes(one, other):
    assert row_hashes(pl.DataFrame(one)) != row_hashes(pl.DataFrame(other))


def test_equal_values_have_equal_hashes():
    zeros = pl.DataFrame({"f": [0.0, -0.0]})
    assert len(set(row_hashes(zeros))) == 1
    nans = pl.DataFrame({"f": [float("nan"), -float("nan")]})
    assert len(set(row_hashes(nans))) == 1
    ordered = pl.DataFrame({"a": [1], "b": ["x"]})
    assert row_hashes(ordered) == row_hashes(ordered.select("b", "a"))


@given(
    st.lists(
        st.one_of(st.none(), st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=3)),
        max_size=6,
    )
)
def test_rows_are_equal_exactly_when_their_hashes_are(values):
    rows = pl.DataFrame({"l": values}, schema={"l": pl.List(pl.String)})
    hashes = row_hashes(rows)
    for index, one in enumerate(values):
        for place, other in enumerate(values):
            assert (hashes[index] == hashes[place]) == (one == other)


def test_a_fingerprint_changes_with_names_and_types_but_not_with_their_order():
    schema = {"a": pl.Int64(), "b": pl.Datetime("us", "UTC"), "__file_path": pl.String()}
    same = {"b": pl.Datetime("us", "UTC"), "a": pl.Int64()}
    assert fingerprint(schema) == fingerprint(same)
    assert fingerprint(schema) != fingerprint({**same, "b": pl.Datetime("us")})
    assert fingerprint(schema) != fingerprint({**same, "c": pl.Int8()})
    assert fingerprint({"s": pl.Struct({"x": pl.Int8})}) != fingerprint(
        {"s": pl.Struct({"x": pl.Int16})}
    )


def test_a_hash_can_be_made_again_from_the_written_format():
    from base64 import urlsafe_b64encode
    from hashlib import blake2b

    content = b"DCR1" + b"I2:-7" + b"L6:S1:xNN" + b"S5:Gr\xc3\xbcn"
    expected = urlsafe_b64encode(blake2b(content, digest_size=16).digest()).decode().rstrip("=")
    row = pl.DataFrame({"text": ["Grün"], "id": [-7], "list": [["x", None, None]]})
    assert row_hashes(row) == [expected]
