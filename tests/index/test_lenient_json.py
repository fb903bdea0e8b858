"""JSON with and without quotes around names is parsed."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.index import parse_lenient_json

NUMBERS = st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_strict_json_is_parsed_unchanged(value: object) -> None:
    """Strict JSON has its usual value."""
    assert parse_lenient_json(json.dumps(value)) == value
    assert parse_lenient_json(json.dumps(value, ensure_ascii=False)) == value


@given(st.dictionaries(st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_-]*\Z"), VALUES, max_size=5))
def test_unquoted_names_are_parsed(value: dict[str, object]) -> None:
    """`{a: 1}` equals `{"a": 1}`, also for names such as `true`."""
    loose = ", ".join(f"{name} : {json.dumps(member)}" for name, member in value.items())
    assert parse_lenient_json("{" + loose + "}") == value


@pytest.mark.parametrize(
    "text",
    ["", "{", "{a 1}", "{a: b}", "[1,]", "{'a': 1}", "NaN", '{"a": Infinity}', "1e999", "-1e999", '"', "\0", "[" * 99],
)
def test_invalid_lenient_json_is_rejected(text: str) -> None:
    """Only the quotes around names may be missing."""
    with pytest.raises(ValueError, match=r"."):
        parse_lenient_json(text)


@pytest.mark.parametrize("unit", ['"', '\\"', "a", "a ", "{", "[[", "{a:", "1", " ", "-"])
def test_hostile_repetition_is_rejected_in_linear_time(unit: str) -> None:
    """A megabyte of repeated or nested tokens is rejected without recursion errors."""
    start = time.process_time()
    with pytest.raises(ValueError, match=r"."):
        parse_lenient_json('{"' + unit * (1_000_000 // len(unit)))
    with pytest.raises(ValueError, match=r"."):
        parse_lenient_json("{" + unit * (1_000_000 // len(unit)))
    assert time.process_time() - start < 5
