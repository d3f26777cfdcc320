"""The YAML reader: what PyYAML reads, within JSON's types."""

from __future__ import annotations

import yaml
from hypothesis import given, strategies as st

from datacoolie_core.metadata.documents import read_document


def read(text):
    return read_document(text.encode(), "a.yaml").content


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=("Cs", "Cc")))
    | st.from_regex(r"[-+]?[0-9_.:]{1,8}(e[-+]?[0-9])?", fullmatch=True)
    | st.sampled_from(["yes", "Off", "~", "null", "0x1F", "0b11", "017", "1e5", "+.inf", "=", "<<"])
)
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc- :#'é"), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(documents, st.booleans())
def test_what_is_dumped_is_read_back(document, flow_style):
    text = yaml.safe_dump(document, default_flow_style=flow_style, allow_unicode=True)
    assert read(text) == document


@given(
    st.from_regex(
        r"[-+]?[0-9a-fxob_.]{1,8}(e[-+]?[0-9])?|[yYnN~]|yes|No|ON|off|true|FALSE", fullmatch=True
    )
)
def test_plain_scalars_mean_what_they_mean_in_yaml_1_1(text):
    try:
        expected = yaml.safe_load(text)
    except (ValueError, yaml.YAMLError):
        return  # such as 0x_, which PyYAML can't read
    if not isinstance(expected, (dict, list)):
        assert read(text) == expected
        assert type(read(text)) is type(expected)


def test_dates_times_and_sixties_stay_text():
    text = "[2013-01-01, 2013-01-01T00:00:00Z, 12:30:00, 190:20:30]"
    assert read(text) == ["2013-01-01", "2013-01-01T00:00:00Z", "12:30:00", "190:20:30"]


def test_keys_are_text():
    assert read("{no: 1, 5: 2, ~: 3, 2013-01-01: 4}") == {"no": 1, "5": 2, "~": 3, "2013-01-01": 4}


def test_anchors_and_merges_work():
    text = """
base: &base {format: csv, configure: &c {base_path: a}}
one: {<<: *base, name: x, format: json}
two: {<<: [{a: 1}, *base, {a: 2, b: 3}]}
three: *c
"""
    assert read(text) == yaml.safe_load(text)


def test_explicit_tags_of_yaml_itself_work():
    assert read("[!!str 5, !!int '7', !!float 1.5, !!bool yes, !!null '', ! 5]") == [
        "5",
        7,
        1.5,
        True,
        None,
        "5",
    ]
