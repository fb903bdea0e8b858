"""The frequency grammar is parsed and serialized."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.errors import InputError
from unlost.index import Frequency

NUMBERS = st.integers(0, 10**18 - 1)
BOUNDS = st.sampled_from(["", "+", "-", "~"])
COUNTS = st.one_of(st.tuples(NUMBERS, BOUNDS), st.just((None, "")))
FREQUENCIES = st.builds(lambda captures, pages: Frequency(*captures, *pages), COUNTS, COUNTS)


@given(FREQUENCIES)
def test_frequency_round_trip_is_lossless(frequency: Frequency) -> None:
    """A serialized frequency parses to an equal frequency with the same text."""
    assert Frequency.parse(str(frequency)) == frequency
    assert str(Frequency.parse(str(frequency))) == str(frequency)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("54321/20000", Frequency(54321, "", 20000)),
        ("10000+", Frequency(10000, "+")),
        ("0", Frequency(0)),
        ("0/20", Frequency(0, "", 20)),
        ("300+/20-", Frequency(300, "+", 20, "-")),
        ("/", Frequency()),
        ("-", Frequency()),
        ("5/", Frequency(5)),
        ("/7~", Frequency(None, "", 7, "~")),
        ("007", Frequency(7)),
    ],
)
def test_frequency_in_any_valid_form_is_parsed(text: str, expected: Frequency) -> None:
    """Both numbers are optional; a bound is read only together with a number."""
    assert Frequency.parse(text) == expected


@pytest.mark.parametrize("text", ["", "x", "1 ", "1/2/3", "+1", "1+-", "1.5", "٣", "9" * 19, "-1"])
def test_invalid_frequency_is_rejected(text: str) -> None:
    """Leading signs, fractions, non-ASCII digits and numbers of 19 digits are invalid."""
    with pytest.raises(InputError, match="expected a frequency"):
        Frequency.parse(text)
