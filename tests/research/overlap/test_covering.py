"""The best sets of archives, against trying all of them."""

from itertools import combinations
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from unlost.research import ArchiveMembership, best_covers, minimum_covers


@st.composite
def memberships(draw: st.DrawFn) -> ArchiveMembership:
    """Return a few archives, and pages that any sets of them hold."""
    size = draw(st.integers(1, 7))
    pages = draw(st.dictionaries(st.integers(0, (1 << size) - 1), st.integers(1, 9), max_size=25))
    return ArchiveMembership(tuple("abcdefg"[:size]), pages)


def most(membership: ArchiveMembership, number: int) -> int:
    """Return what so many archives hold at most, by trying all sets."""
    places = range(len(membership.archives))
    return max(membership.held_by_any(sum(1 << place for place in chosen)) for chosen in combinations(places, number))


@given(memberships())
def test_no_other_set_holds_more(membership: ArchiveMembership) -> None:
    """For each number of archives, the set that is called best holds as much as any, until all is held."""
    choices = best_covers(membership)
    for number, choice in enumerate(choices, 1):
        mask = sum(1 << membership.archives.index(name) for name in choice.archives)
        assert (len(set(choice.archives)), choice.is_proven) == (number, True)
        assert choice.covered == membership.held_by_any(mask) == most(membership, number)
    assert (choices[-1].covered if choices else 0) == membership.held


@given(memberships(), st.integers(1, 100))
def test_no_fewer_archives_reach_a_level(membership: ArchiveMembership, percent: int) -> None:
    """The fewest archives for a level reach it, and no smaller set does, whichever it is."""
    found = minimum_covers(membership, best_covers(membership), [percent / 100])
    needed = ceil(percent * membership.held / 100)
    if not membership.held:
        assert found == []
        return
    number = len(found[0].cover.archives)
    assert found[0].is_proven
    assert found[0].cover.covered >= needed
    assert number == 1 or most(membership, number - 1) < needed


@given(memberships())
def test_without_time_the_best_is_greedy_and_said_not_to_be_proven(membership: ArchiveMembership) -> None:
    """What is found when there are no steps left covers at least what the largest archive does, and proves nothing."""
    choices = best_covers(membership, max_steps=0)
    assert not any(choice.is_proven for choice in choices)
    if choices:
        assert choices[0].covered == most(membership, 1)
        assert choices[-1].covered == membership.held


def test_taking_what_adds_most_is_not_good_enough() -> None:
    """Where two archives hold everything, they are found although a third holds more than either."""
    pages = {0b101: 4, 0b110: 4, 0b001: 2, 0b010: 2}
    choices = best_covers(ArchiveMembership(("a", "b", "large"), pages))
    assert [set(choice.archives) for choice in choices] == [{"large"}, {"a", "b"}]


def test_twenty_archives_are_proven() -> None:
    """With 20 archives and hundreds of sets, every number of them is still proven."""
    pages = {(number * 7919 + 13) % (1 << 20): 1 + number % 5 for number in range(1, 400)}
    choices = best_covers(ArchiveMembership(tuple(f"a{place}" for place in range(20)), pages))
    assert choices[-1].covered == sum(pages.values())
    assert all(choice.is_proven for choice in choices)
