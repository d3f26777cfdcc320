"""Pools hold in every kind of step: no more read at once than there are slots."""

import json
import textwrap

import pytest

from datacoolie_dagster.pools import pool_of
from tests.dagster.located import IN_PROCESS, MULTIPROCESS, execute

CODE = """
    import json, os, threading, time
    from pathlib import Path
    import polars as pl

    HERE = Path(__file__).parent

    def load(*, source, **_):
        began = time.time()
        time.sleep(0.3)
        span = [began, time.time()]
        (HERE / f"span-{threading.get_ident()}-{os.getpid()}-{began}.json").write_text(json.dumps(span))
        return pl.DataFrame({"id": [1]})
"""


@pytest.fixture
def crm(lake):
    """Four dataflows that read from one place."""
    (lake.root / "crm.py").write_text(textwrap.dedent(CODE))
    lake.connect("code", "function", ".", connection_type="function")
    for index in range(4):
        source = {
            "connection_name": "code",
            "python_function": "crm.load",
            "configure": {"datacoolie": {"pool": "crm"}},
        }
        lake.flow(f"c{index}", source=source, group_number=1)
    return lake


def most_at_once(lake):
    spans = [json.loads(path.read_text()) for path in lake.root.glob("span-*.json")]
    assert len(spans) == 4
    return max(sum(one[0] <= start < one[1] for one in spans) for start, _ in spans)


@pytest.mark.parametrize(
    ("granularity", "executor", "limit"),
    [("group", IN_PROCESS, 1), ("group", IN_PROCESS, 2), ("dataflow", MULTIPROCESS, 1)],
    ids=["group step, 1", "group step, 2", "processes, 1"],
)
def test_no_more_load_at_once_than_the_pool_has_slots(crm, granularity, executor, limit):
    crm.arguments["granularity"] = granularity
    crm.instance.event_log_storage.set_concurrency_slots("crm", limit)
    result = execute(crm, executor=executor)
    assert result.success
    assert most_at_once(crm) <= limit
    info = crm.instance.event_log_storage.get_concurrency_info("crm")
    assert info.claimed_slots == []


def test_the_incremental_job_takes_slots_too(crm):
    crm.instance.event_log_storage.set_concurrency_slots("crm", 1)
    assert crm.incremental().success
    assert most_at_once(crm) == 1


def test_a_pool_without_a_limit_limits_nothing(crm):
    crm.arguments["granularity"] = "group"
    assert execute(crm).success
    assert most_at_once(crm) > 1


def test_the_default_limit_of_the_instance_counts(crm):
    crm.arguments["granularity"] = "group"
    storage = crm.instance.event_log_storage
    storage.initialize_concurrency_limit_to_default("other")
    storage.set_concurrency_slots("crm", 3)
    assert execute(crm).success
    assert most_at_once(crm) <= 3


def test_a_database_has_the_pool_of_its_connection_and_files_have_none(lake):
    lake.connect("erp prod", "sql", ".", configure={"database_type": "sqlite", "database": "x.db"})
    lake.flow("orders", source={"connection_name": "erp prod", "table": "orders"})
    lake.flow("plain")
    pools = {one.name: pool_of(one) for one in lake.metadata.dataflows}
    assert pools["plain"] is None
    assert pools["orders"].startswith("erp_prod")
    op = lake.definitions.resolve_assets_def(lake.spec("raw/orders").key).op
    assert op.pool == pools["orders"]
