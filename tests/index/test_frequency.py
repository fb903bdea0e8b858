"""Frequencies: the grammar, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.errors import InputError
from unlost.index import Frequency

NUMBERS = st.integers(0, 10**18 - 1)
BOUNDS = st.sampled_from(["", "+", "-", "~"])
COUNTS = st.one_of(st.tuples(NUMBERS, BOUNDS), st.just((None, "")))
FREQUENCIES = st.builds(lambda copies, pages: Frequency(*copies, *pages), COUNTS, COUNTS)


@given(FREQUENCIES)
def test_what_is_written_reads_back(frequency: Frequency) -> None:
    """The text of a frequency is that frequency, and stays as it is."""
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
def test_every_form_of_the_grammar(text: str, expected: Frequency) -> None:
    """Either number may be missing; a bound needs a number to say something."""
    assert Frequency.parse(text) == expected


@pytest.mark.parametrize("text", ["", "x", "1 ", "1/2/3", "+1", "1+-", "1.5", "٣", "9" * 19, "-1"])
def test_anything_else_is_refused(text: str) -> None:
    """Signs in front, fractions, other people's digits and numbers past 64 bits are no frequencies."""
    with pytest.raises(InputError, match="expected a frequency"):
        Frequency.parse(text)
