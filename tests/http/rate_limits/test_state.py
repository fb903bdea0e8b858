"""Serialization of rate-limit states."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.errors import InputError
from unlost.http import RateLimitState

times = st.floats(0, 1e11)
ledgers = st.builds(
    RateLimitState,
    st.dictionaries(st.text(), times),
    st.dictionaries(st.text(), st.tuples(st.integers(0, 10**9), st.integers(0, 10**9))),
    times,
    st.integers(0, 1000),
    times,
    times,
    st.booleans(),
)


@given(ledgers)
def test_state_round_trips_through_json(ledger: RateLimitState) -> None:
    """Exactly."""
    assert RateLimitState.from_json(ledger.to_json()) == ledger


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("due", {"a": "1"}),
        ("due", [1]),
        ("counted", {"a": [1]}),
        ("counted", {"a": [1, -1]}),
        ("wait_until", float("nan")),
        ("wait_until", -1),
        ("waits", 1.5),
        ("waits", True),
        ("blocked_until", None),
        ("blocked_for", float("inf")),
        ("unlost-limits", 2),
        ("more", 1),
    ],
)
def test_invalid_state_is_rejected(field: str, value: object) -> None:
    """A wrong type, an out-of-range number, an unknown field."""
    with pytest.raises(InputError):
        RateLimitState.from_json(json.dumps({**json.loads(RateLimitState().to_json()), field: value}))


@given(st.text() | st.integers(0, 200).map(lambda n: RateLimitState(waits=3).to_json()[:n]))
def test_random_text_is_rejected(text: str) -> None:
    """Only InputError is raised."""
    if text.rstrip() != RateLimitState(waits=3).to_json().rstrip():
        with pytest.raises(InputError):
            RateLimitState.from_json(text)
