"""Plug-ins: slots 40 to 50."""

from __future__ import annotations

import polars as pl
import pytest

from datacoolie_core import registry
from datacoolie_core.errors import TransformError
from datacoolie_core.transforms.apply import apply
from datacoolie_core.transforms.slots import Slot
from tests.core.transformed import context, problems, refused, rows

CONTEXT = context()

MODULE = """
import polars as pl

from datacoolie_core.transforms.slots import Slot


def _apply(shaped, dataflow, context):
    context.warnings.append(("loud", f"{dataflow.name} shouts"))
    loud = pl.col("word").str.to_uppercase() + "!"
    return shaped.with_frame(shaped.frame.with_columns(loud=loud).drop("word"))


SHOUT = Slot(42, "shout", lambda dataflow: True, _apply)
NEVER = Slot(50, "never", lambda dataflow: False, _apply)
EARLY = Slot(20, "early", lambda dataflow: True, _apply)
BROKEN = Slot(41, "broken", lambda dataflow: True, lambda shaped, dataflow, context:
    shaped.with_frame(shaped.frame.with_columns(pl.col("no such column"))))
NOTHING = "no slot"
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A package of the user's: ``dc_shop.plugins``."""
    package = tmp_path / "site" / "dc_shop"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "plugins.py").write_text(MODULE)
    (package / "needy.py").write_text("import dc_no_such_package\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


def named(*names: str) -> dict:
    listed = [name if ":" in name else f"dc_shop.plugins:{name}" for name in names]
    return {"configure": {"datacoolie": {"transforms": listed}}}


# By entry point


def test_a_package_registers_a_slot_for_every_dataflow(shop, reading, tmp_path, monkeypatch):
    about = tmp_path / "site" / "dc_shop-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: dc-shop\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[datacoolie.transforms]\nshout = dc_shop.plugins:SHOUT\n"
    )
    monkeypatch.setattr(registry, "transforms", registry.Registry("datacoolie.transforms"))
    assert rows(reading, pl.DataFrame({"word": ["hey"]})) == [{"loud": "HEY!"}]


@pytest.fixture
def plugin():
    def register(number: int) -> None:
        slot = Slot(
            number,
            "shout",
            lambda _flow: True,
            lambda shaped, _flow, _context: shaped.with_frame(
                shaped.frame.with_columns(pl.col("word").str.to_uppercase())
            ),
        )
        registry.transforms.register("shout", slot)

    yield register
    registry.transforms.unregister("shout")


def test_a_plug_in_takes_a_free_slot(reading, plugin):
    plugin(45)
    columns = [{"column": "word", "expression": "'quiet'"}]
    frame = pl.DataFrame({"a": [1]})
    flow = reading.flow(transform={"additional_columns": columns})
    lazy, applied = apply(frame.lazy(), flow, CONTEXT)
    assert lazy.collect()["word"].to_list() == ["QUIET"]
    assert applied == ("columns", "shout", "system")


def test_a_plug_in_on_a_slot_that_is_taken_is_refused(reading, plugin):
    plugin(20)
    assert "the plug-in 'shout' takes slot 20" in refused(reading, pl.DataFrame({"word": ["a"]}))


# By name


def test_a_dataflow_names_its_plug_ins(shop, reading):
    frame = pl.DataFrame({"word": ["hey"], "Other": [1]})
    assert rows(reading, frame, **named("SHOUT", "NEVER")) == [{"other": 1, "loud": "HEY!"}]
    assert rows(reading, frame) == [{"word": "hey", "other": 1}]


def test_later_slots_see_the_columns_that_a_plug_in_makes(shop, reading):
    frame = pl.DataFrame({"word": ["hey"], "b": [1]})
    transform = {
        "masking_rules": [{"method": "partial", "columns": ["loud"], "keep_start": 1}],
        "select_columns": ["loud"],
    }
    assert rows(reading, frame, transform=transform, **named("SHOUT")) == [{"loud": "H***"}]


def test_a_plug_in_runs_in_a_load_and_may_warn(shop, project):
    project.write("t", "1.parquet", pl.DataFrame({"word": ["hey"]}))
    project.flow(**named("SHOUT"))
    result = project.run_one()
    assert project.table().rows() == [("HEY!",)]
    assert [(one.code, one.message) for one in result.warnings] == [("loud", "f shouts")]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("EARLY", "the plug-in 'early' takes slot 20. Plug-ins may take slots 40 to 50."),
        ("NOTHING", "this is a str, not a Slot"),
        ("MISSING", "'dc_shop.plugins' has no 'MISSING'"),
        ("dc_shop.gone:X", "there is no module 'dc_shop.gone'"),
        ("dc_no_such_package.x:X", "there is no module 'dc_no_such_package'"),
        ("dc_shop.needy:X", "'dc_shop.needy' needs 'dc_no_such_package', which is not installed"),
        ("BROKEN", "slot 'broken'"),
    ],
)
def test_a_plug_in_that_can_not_work_is_refused_before_anything_is_read(shop, reading, name, says):
    message = refused(reading, pl.DataFrame({"word": ["a"]}), **named(name))
    assert says in message
    if name != "BROKEN":
        assert message.startswith("transform, configure.datacoolie.transforms[0]: ")


@pytest.mark.parametrize(
    "name", ["shout", "dc_shop.plugins", "a b:C", "a..b:C", ":C", "a:", "a:b.c", "os;x:y"]
)
def test_a_name_that_is_none_is_refused_when_the_metadata_is_loaded(reading, name):
    given = {"configure": {"datacoolie": {"transforms": [name]}}}
    assert problems(reading, **given) == [
        f"configure.datacoolie.transforms[0]: '{name}' names no plug-in; write package.module:NAME"
    ]


@pytest.mark.parametrize(
    ("allowed", "fine"),
    [
        ((), True),
        (("dc_shop",), True),
        (("other", "dc_shop.plugins"), True),
        (("dc_shop.plug",), False),
        (("dc_sho",), False),
        (("dc_shop.plugins.deeper",), False),
    ],
)
def test_only_packages_that_are_allowed_by_their_whole_name_are_imported(
    shop, reading, allowed, fine
):
    flow = reading.flow(**named("SHOUT"))
    frame = pl.LazyFrame({"word": ["a"]})
    if fine:
        assert apply(frame, flow, context(allowed=allowed))[1] == ("shout", "system")
        return
    with pytest.raises(TransformError, match=r"'dc_shop\.plugins' is not among the packages"):
        apply(frame, flow, context(allowed=allowed))


def test_the_run_configuration_says_which_packages_are_allowed(shop, project):
    project.write("t", "1.parquet", pl.DataFrame({"word": ["hey"]}))
    project.flow(**named("SHOUT"))
    (result,) = project.run(config={"allowed_function_prefixes": ("other",)}).dataflows
    assert "is not among the packages that may be used" in result.error.message
    assert "Add its package to allowed_function_prefixes" in result.error.message
