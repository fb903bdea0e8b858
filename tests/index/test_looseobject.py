"""JSON with and without quotes around names."""

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
def test_strict_json_is_read_as_it_is(value: object) -> None:
    """Whatever is strict JSON means what it means there."""
    assert parse_lenient_json(json.dumps(value)) == value
    assert parse_lenient_json(json.dumps(value, ensure_ascii=False)) == value


@given(st.dictionaries(st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_-]*\Z"), VALUES, max_size=5))
def test_names_without_quotes_are_names(value: dict[str, object]) -> None:
    """`{a: 1}` is `{"a": 1}`, also for names such as true."""
    loose = ", ".join(f"{name} : {json.dumps(member)}" for name, member in value.items())
    assert parse_lenient_json("{" + loose + "}") == value


@pytest.mark.parametrize(
    "text",
    ["", "{", "{a 1}", "{a: b}", "[1,]", "{'a': 1}", "NaN", '{"a": Infinity}', "1e999", "-1e999", '"', "\0", "[" * 99],
)
def test_other_texts_are_refused(text: str) -> None:
    """Only the quotes of names may be missing."""
    with pytest.raises(ValueError, match=r"."):
        parse_lenient_json(text)


@pytest.mark.parametrize("unit", ['"', '\\"', "a", "a ", "{", "[[", "{a:", "1", " ", "-"])
def test_hostile_repetition_takes_linear_time_and_no_stack(unit: str) -> None:
    """A megabyte of anything is refused in a moment."""
    start = time.process_time()
    with pytest.raises(ValueError, match=r"."):
        parse_lenient_json('{"' + unit * (1_000_000 // len(unit)))
    with pytest.raises(ValueError, match=r"."):
        parse_lenient_json("{" + unit * (1_000_000 // len(unit)))
    assert time.process_time() - start < 5
