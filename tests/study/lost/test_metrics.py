"""Tests of figures about many recoveries."""

import pytest
from study.lost.experiments import ALL_ARCHIVES
from study.lost.metrics import archive_contributions, chi_square_p_value, compare_pairs, recovered_share, sum_counts

from tests.study.lost.sample_results import sample_result


def test_contributions_weight_sites_equally() -> None:
    """A large site does not outweigh a small one, and a site without recovered pages does not count."""
    large = sample_result("school", identical=400)
    small = sample_result("chapel", archives=("broad",), identical=1)
    lost = sample_result("trust", missing=9)
    assert archive_contributions([large]) == {
        ALL_ARCHIVES[0]: 0.75,
        ALL_ARCHIVES[1]: 0,
        ALL_ARCHIVES[2]: 0,
        ALL_ARCHIVES[3]: 0.25,
    }
    assert archive_contributions([large, small, lost]) == {
        ALL_ARCHIVES[0]: 0.375,
        "broad": 0.5,
        "fresh": 0,
        "patchy": 0.125,
    }
    assert archive_contributions([lost]) == {}


def test_pooled_share_weights_files_equally() -> None:
    """The share of all files is not the mean of shares."""
    found = [sample_result("school", identical=90, missing=10), sample_result("chapel", missing=100)]
    assert sum_counts(found, lambda each: each.groups, "HTML") == (200, 90)
    assert recovered_share(sum_counts(found, lambda each: each.groups, "images")) == 0


def test_comparison_requires_the_same_order_of_sites() -> None:
    """Another order would pair different sites."""
    first = [sample_result("school", identical=1), sample_result("chapel", identical=1, missing=1)]
    second = [sample_result("school", missing=1), sample_result("chapel", missing=2)]
    found = compare_pairs(first, second, lambda each: each.recovered)
    assert (found.pairs, found.above, found.below) == (2, 3, 0)
    with pytest.raises(ValueError, match="same order"):
        compare_pairs(first, second[::-1], lambda each: each.recovered)


def test_p_value_of_two_shares() -> None:
    """A chi-square test with one degree of freedom: 3.84 corresponds to 0.05, 10.83 to 0.001."""
    # (o - e)² / e over the four cells of 50 of 100 and x of 100, computed by hand.
    assert chi_square_p_value((100, 50), (100, 50)) == 1
    assert chi_square_p_value((100, 50), (100, 63)) == pytest.approx(0.0638, abs=1e-4)
    assert chi_square_p_value((100, 50), (100, 75)) == pytest.approx(0.00026, abs=1e-5)
    assert chi_square_p_value((100, 0), (100, 0)) == chi_square_p_value((0, 0), (100, 50)) == 1


def test_outcome_has_the_levels_of_compare() -> None:
    """The five levels are those of `unlost compare`."""
    found = sample_result("school", identical=2, changed=2, missing=2, added=1, similar=1, held=1)
    assert [round(level, 3) for level in found.levels] == [0.867, 0.667, 0.5, 0.333, 0.167]
    assert (found.efficiency, found.efficiency_without_added) == (5 / 40, 4 / 40)
