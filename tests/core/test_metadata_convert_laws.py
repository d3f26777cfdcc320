"""Laws of conversions: nothing is lost, whatever the metadata holds and whatever forms it takes."""

from __future__ import annotations

import json

import yaml
from hypothesis import given, settings, strategies as st

from datacoolie_core.metadata.arrange import MODELS, comparable, same
from datacoolie_core.metadata.convert import convert, write
from datacoolie_core.metadata.documents import read_document
from datacoolie_core.metadata.sections import SECTIONS, collect
from datacoolie_core.metadata.workbook import read_workbook
from datacoolie_core.metadata.yaml_text import write_yaml


def put(root, document):
    path = root / "m.json"
    path.write_bytes(json.dumps(document).encode())
    return path


def meant(content):
    """Return what a document's entries mean, without what two forms write differently."""
    sections = collect([content], strict=True)
    assert sections.problems == []
    return {
        name: [comparable(entry.raw, MODELS[name]) for entry in getattr(sections, name)]
        for name in SECTIONS
    }


def read(content, to):
    name = {"json": "x.json", "yaml": "x.yaml", "excel": "x.xlsx"}[to]
    return (read_workbook if to == "excel" else read_document)(content, name)


TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
WORDS = st.sampled_from(
    [
        *(
            "yes",
            "NO",
            "on",
            "y",
            "n",
            "true",
            "null",
            "~",
            "",
            " ",
            "=",
            "<<",
            "- a",
            "a: b",
            "#x",
        ),
        *("1", "1.5", "1e5", "0x1F", "0o17", "017", "1_000", "12:30:45", "2024-01-01", ".5", "+1"),
        *("=1+1", "#REF!", "'quoted", '"', "{{a}}", "[a]", "{a}", "a,b", " lead", "trail ", "@x"),
        *("a\nb", "a\r\nb", "\n", "a\n\n", "  a\n b", "a\tb", "_x000D_", "_x005F_x0041_", "\x00"),
        *(
            "Ünïcode 名前 😀",
            "\u2028",
            "\x85",
            "\ufeff",
            "-" * 300,
            ".inf",
            "NaN",
            "?",
            "!tag",
            "&a",
        ),
    ]
)
KEYS = (TEXT | WORDS).filter(lambda key: key != "datacoolie")
SCALARS = (
    TEXT
    | WORDS
    | st.booleans()
    | st.none()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
)
FREE = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS, lambda one: st.lists(one, max_size=3) | st.dictionaries(KEYS, one, max_size=3)
    ),
    max_size=4,
)
NAMES = (TEXT | WORDS).filter(lambda text: bool(text.strip()))
COLUMNS = st.lists(NAMES, max_size=3)


def optional(**fields):
    """Return mappings that have some of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


CONNECTION = st.builds(
    lambda name, more: {"name": name, **more},
    NAMES,
    optional(
        connection_id=NAMES,
        format=st.sampled_from(["csv", "delta"]),
        catalog=NAMES,
        configure=FREE | FREE.map(json.dumps),
        secrets_ref=st.dictionaries(NAMES, COLUMNS, max_size=2),
        is_active=st.booleans() | st.none(),
        extensions=FREE,
    ),
)
END = {
    "connection_name": NAMES,
    "schema_name": NAMES,
    "table": NAMES,
    "configure": FREE,
    "extensions": FREE,
}
FLOW = st.builds(
    lambda name, more: {"name": name, **more},
    NAMES,
    optional(
        dataflow_id=NAMES,
        description=TEXT | WORDS,
        stage=NAMES,
        group_number=st.integers(-(10**20), 10**20),
        execution_order=st.integers(-5, 5),
        is_active=st.booleans(),
        source=optional(
            **END, query=NAMES, watermark_columns=COLUMNS | NAMES, filter_expression=NAMES
        ),
        destination=optional(
            **END,
            merge_keys=COLUMNS,
            partition_columns=st.lists(
                NAMES | st.fixed_dictionaries({"column": NAMES, "expression": NAMES}), max_size=2
            ),
        ),
        transform=optional(
            drop_columns=COLUMNS,
            rename_columns=st.dictionaries(NAMES, NAMES, max_size=2),
            additional_columns=st.lists(
                st.fixed_dictionaries({"column": NAMES, "expression": NAMES}), max_size=2
            ),
            value_rules=st.lists(
                st.fixed_dictionaries(
                    {"operation": st.just("fill_null"), "columns": COLUMNS, "value": SCALARS}
                ),
                max_size=2,
            ),
            configure=FREE,
        ),
        configure=FREE,
        extensions=FREE,
    ),
)
HINT = st.builds(
    lambda name, more: {"column_name": name, "data_type": "int", **more},
    NAMES,
    optional(format=NAMES, precision=st.integers(1, 38), scale=st.just("2"), default_value=NAMES),
)
DOCUMENT = st.fixed_dictionaries(
    {
        "connections": st.lists(CONNECTION, max_size=3),
        "dataflows": st.lists(FLOW, max_size=3),
        "schema_hints": st.lists(
            st.fixed_dictionaries(
                {
                    "connection_name": NAMES,
                    "table_name": NAMES,
                    "hints": st.lists(HINT, min_size=1, max_size=3),
                }
            ),
            max_size=2,
            unique_by=lambda group: tuple(
                group[key].strip().casefold() for key in ("connection_name", "table_name")
            ),
        ),
    }
)


@settings(max_examples=40)
@given(document=DOCUMENT, forms=st.lists(st.sampled_from(["json", "yaml", "excel"]), max_size=3))
def test_nothing_is_lost_on_the_way_through_any_forms(document, forms, tmp_path_factory):
    root = tmp_path_factory.mktemp("convert")
    source = put(root, document)
    wanted = meant(read_document(source.read_bytes(), "m.json"))
    for number, form in enumerate([*forms, "json"]):
        done = convert(str(source), str(root / str(number)), to=form, project_dir=str(root))
        write(done)
        (uri,) = done.files
        source = root / uri
    there = meant(read_document(source.read_bytes(), "m.json"))
    blank_is_none(wanted)
    blank_is_none(there)
    assert same(there, wanted)


def blank_is_none(sections):
    """A cell can't be blank and there: a description without a letter is none."""
    for one in sections["dataflows"]:
        for end in ("source", "destination"):
            if one.get(end) == {}:
                del one[end]
        if not one.get("description", "x").strip():
            del one["description"]


@given(document=FREE)
def test_yaml_is_read_alike_by_this_reader_and_by_the_library(document):
    text = write_yaml(document)
    assert same(read_document(text.encode(), "x.yaml").content, document)
    assert same(yaml.safe_load(text), document)


@settings(max_examples=40)
@given(document=DOCUMENT)
def test_text_keeps_every_key_and_every_null(document, tmp_path_factory):
    """JSON and YAML are not only alike in meaning: nothing is left out, be it null or empty."""
    root = tmp_path_factory.mktemp("convert")
    put(root, document)
    for form in ("json", "yaml"):
        ((_, content),) = convert("m.json", "out", to=form, project_dir=str(root)).files.items()
        there = read(content, form).content
        wanted = {key: value for key, value in document.items() if value}
        assert same(opened(there), opened(wanted or {"dataflows": []}))


def opened(document):
    """Return a document whose connections have no JSON text; it is written out."""
    connections = [
        {**one, "configure": json.loads(one["configure"])}
        if isinstance(one.get("configure"), str)
        else one
        for one in document.get("connections", [])
    ]
    return {**document, "connections": connections}
