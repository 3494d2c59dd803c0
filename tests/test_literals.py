"""Values written as JSON, as Python literals, or as something close to it."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pararecover_core.literals import dumps, is_deep, loads, whole_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        (b'{"a": 1}', {"a": 1}),
        ("{'a': None, 'b': True}", {"a": None, "b": True}),
        ("{1: (2, 3)}", {"1": [2, 3]}),
        ('{"a": "\\ud800"}', {"a": "\ud800"}),
        (b'{"a": "\xed\xa0\x80"}', {"a": "\ud800"}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ('\ufeff {"a": 1} ', {"a": 1}),
        ('"' + "(" * 300 + '\n"', "(" * 300 + "\n"),
    ],
)
def test_loads(text, value):
    assert loads(text) == value


@pytest.mark.parametrize(
    "text", ["", "abc", "{'a': ...}", "b'x'", "open('x')", b"\xff\xfe{}", "[" * 201 + "]" * 201]
)
def test_loads_refuses(text):
    with pytest.raises(ValueError, match=r"."):
        loads(text)


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(plain_values)
def test_what_dumps_writes_loads_reads(value):
    assert loads(dumps(value)) == value


@given(plain_values)
def test_what_python_prints_loads_reads(value):
    assert loads(repr(value).strip() or '""') in (
        value,
        value.strip() if isinstance(value, str) else value,
    )


@given(st.text() | st.binary())
def test_loads_raises_nothing_but_value_error(text):
    with contextlib.suppress(ValueError):
        loads(text)


def test_depth_is_measured_without_recursion():
    value = {}
    for _ in range(10_000):
        value = {"a": [value]}
    assert is_deep(value)
    assert not is_deep({"a": [[1, {"b": 2}]]}, 5)
    assert is_deep({"a": [[1, {"b": 2}]]}, 3)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("7", 7), ("007", 7), ("٣", 3), ("9" * 18, 10**18 - 1)),
        *((bad, None) for bad in ("", "²", "-1", "1.0", " 1", "1e3", "9" * 5000, "\ud800")),
    ],
)
def test_whole_numbers_of_links(text, number):
    assert whole_number(text) == number


@given(st.text(st.characters(categories=["N"])))
def test_no_sign_for_a_number_breaks_a_link(text):
    assert whole_number(text) is None or int(text) == whole_number(text)
