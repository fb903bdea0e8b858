"""Numbers about many recoveries."""

import pytest
from study.lost.experiments import ALL
from study.lost.figures import compared, contributions, pooled, share, unlike

from tests.study.lost.planted import outcome


def test_every_site_counts_the_same_in_contributions() -> None:
    """A large site does not outweigh a small one, and one from which nothing came says nothing."""
    large = outcome("school", identical=400)
    small = outcome("chapel", archives=("broad",), identical=1)
    lost = outcome("trust", missing=9)
    assert contributions([large]) == {ALL[0]: 0.75, ALL[1]: 0, ALL[2]: 0, ALL[3]: 0.25}
    assert contributions([large, small, lost]) == {ALL[0]: 0.375, "broad": 0.5, "fresh": 0, "patchy": 0.125}
    assert contributions([lost]) == {}


def test_pooled_files_count_the_same() -> None:
    """The share of all files is not the mean of shares."""
    found = [outcome("school", identical=90, missing=10), outcome("chapel", missing=100)]
    assert pooled(found, lambda each: each.groups, "HTML") == (200, 90)
    assert share(pooled(found, lambda each: each.groups, "images")) == 0


def test_only_the_same_sites_are_compared() -> None:
    """The order of sites counts: a mistake there would go unseen."""
    first = [outcome("school", identical=1), outcome("chapel", identical=1, missing=1)]
    second = [outcome("school", missing=1), outcome("chapel", missing=2)]
    found = compared(first, second, lambda each: each.recovered)
    assert (found.pairs, found.above, found.below) == (2, 3, 0)
    with pytest.raises(ValueError, match="same order"):
        compared(first, second[::-1], lambda each: each.recovered)


def test_groups_that_come_back_alike_are_not_told_apart() -> None:
    """A chi-square test of two shares: 3.84 is what 0.05 has, 10.83 what 0.001 has, with one degree of freedom."""
    # (o - e)² / e over the four cells of 50 of 100 and x of 100, worked out by hand.
    assert unlike((100, 50), (100, 50)) == 1
    assert unlike((100, 50), (100, 63)) == pytest.approx(0.0638, abs=1e-4)
    assert unlike((100, 50), (100, 75)) == pytest.approx(0.00026, abs=1e-5)
    assert unlike((100, 0), (100, 0)) == unlike((0, 0), (100, 50)) == 1


def test_levels_of_an_outcome() -> None:
    """The five levels are those of `unlost compare`."""
    found = outcome("school", identical=2, changed=2, missing=2, added=1, similar=1, held=1)
    assert [round(level, 3) for level in found.levels] == [0.867, 0.667, 0.5, 0.333, 0.167]
    assert (found.efficiency, found.efficiency_without_added) == (5 / 40, 4 / 40)
