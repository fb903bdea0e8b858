"""Best sets of archives, compared with enumeration."""

from itertools import combinations
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from unlost.research import ArchiveMembership, best_covers, minimum_covers


@st.composite
def memberships(draw: st.DrawFn) -> ArchiveMembership:
    """Return a few archives, and pages in any sets of them."""
    size = draw(st.integers(1, 7))
    pages = draw(st.dictionaries(st.integers(0, (1 << size) - 1), st.integers(1, 9), max_size=25))
    return ArchiveMembership(tuple("abcdefg"[:size]), pages)


def largest_cover(membership: ArchiveMembership, number: int) -> int:
    """Return the largest number of pages that a set of this size covers, by enumeration."""
    places = range(len(membership.archives))
    return max(membership.held_by_any(sum(1 << place for place in chosen)) for chosen in combinations(places, number))


@given(memberships())
def test_best_covers_are_optimal(membership: ArchiveMembership) -> None:
    """For each number of archives, until all pages are covered."""
    choices = best_covers(membership)
    for number, choice in enumerate(choices, 1):
        mask = sum(1 << membership.archives.index(name) for name in choice.archives)
        assert (len(set(choice.archives)), choice.is_proven) == (number, True)
        assert choice.covered == membership.held_by_any(mask) == largest_cover(membership, number)
    assert (choices[-1].covered if choices else 0) == membership.held


@given(memberships(), st.integers(1, 100))
def test_minimum_covers_are_minimal(membership: ArchiveMembership, percent: int) -> None:
    """No smaller set reaches the level."""
    found = minimum_covers(membership, best_covers(membership), [percent / 100])
    needed = ceil(percent * membership.held / 100)
    if not membership.held:
        assert found == []
        return
    number = len(found[0].cover.archives)
    assert found[0].is_proven
    assert found[0].cover.covered >= needed
    assert number == 1 or largest_cover(membership, number - 1) < needed


@given(memberships())
def test_without_steps_covers_are_greedy_and_unproven(membership: ArchiveMembership) -> None:
    """They cover at least as much as the largest archive."""
    choices = best_covers(membership, max_steps=0)
    assert not any(choice.is_proven for choice in choices)
    if choices:
        assert choices[0].covered == largest_cover(membership, 1)
        assert choices[-1].covered == membership.held


def test_optimal_cover_beats_greedy_choice() -> None:
    """Two archives with everything are found although a third has more than either."""
    pages = {0b101: 4, 0b110: 4, 0b001: 2, 0b010: 2}
    choices = best_covers(ArchiveMembership(("a", "b", "large"), pages))
    assert [set(choice.archives) for choice in choices] == [{"large"}, {"a", "b"}]


def test_covers_of_twenty_archives_are_proven() -> None:
    """With hundreds of sets."""
    pages = {(number * 7919 + 13) % (1 << 20): 1 + number % 5 for number in range(1, 400)}
    choices = best_covers(ArchiveMembership(tuple(f"a{place}" for place in range(20)), pages))
    assert choices[-1].covered == sum(pages.values())
    assert all(choice.is_proven for choice in choices)
