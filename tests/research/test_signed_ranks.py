"""Wilcoxon's test: against printed tables, a known example, and all ways to give signs."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost import statistics as module
from unlost.statistics import MAX_EXACT_PAIRS, wilcoxon_signed_rank

# The largest smaller sum at which the test for both sides says 0.05, and 0.01; as tables in textbooks print it.
CRITICAL = [
    (6, 0, None), (7, 2, None), (8, 3, 0), (9, 5, 1), (10, 8, 3), (12, 13, 7), (15, 25, 15), (18, 40, 27),
    (20, 52, 37), (24, 81, 61), (25, 89, 68),
]  # fmt: skip


def with_smaller_sum(pairs: int, least: int) -> list[float]:
    """Return differences of as many sizes as there are pairs, whose negative ranks have this sum."""
    left, found = least, []
    for rank in range(pairs, 0, -1):
        is_below = rank <= left
        left -= rank if is_below else 0
        found.append(float(-rank if is_below else rank))
    assert left == 0
    return found


@pytest.mark.parametrize(("pairs", "five", "one"), CRITICAL)
def test_p_values_equal_published_tables(pairs: int, five: int, one: int | None) -> None:
    """A sum of the table is significant, and the next one is not."""
    for level, least in ((0.05, five), (0.01, one)):
        if least is None:
            continue
        inside, outside = (
            wilcoxon_signed_rank(with_smaller_sum(pairs, each), [0.0] * pairs) for each in (least, least + 1)
        )
        assert inside.below == least
        assert inside.p <= level < outside.p


def test_darwins_plant_heights() -> None:
    """Darwin's crossed and selfed maize, the example that most implementations are shown with."""
    differences = [6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75]
    found = wilcoxon_signed_rank(differences, [0] * 15)
    assert (found.pairs, found.above, found.below, found.p) == (15, 96, 24, 0.041259765625)


def by_all_signs(first: list[float], second: list[float]) -> float:
    """Return p by looking at every way to give signs, with ranks that are counted pair by pair."""
    sizes = [abs(one - other) for one, other in zip(first, second, strict=True) if one != other]
    ranks = [sum(other < each for other in sizes) + (sum(other == each for other in sizes) + 1) / 2 for each in sizes]
    signs = [one > other for one, other in zip(first, second, strict=True) if one != other]

    def least(of: tuple[bool, ...] | list[bool]) -> float:
        above = sum(rank for rank, sign in zip(ranks, of, strict=True) if sign)
        return min(above, sum(ranks) - above)

    ways = list(product([True, False], repeat=len(ranks)))
    return sum(least(each) <= least(signs) for each in ways) / len(ways)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=9))
def test_ties_and_equal_pairs(pairs: list[tuple[int, int]]) -> None:
    """The share of all ways to give signs is counted exactly, also where differences are equal or none."""
    first, second = [float(one) for one, _ in pairs], [float(other) for _, other in pairs]
    found = wilcoxon_signed_rank(first, second)
    assert found.p == pytest.approx(by_all_signs(first, second))
    back = wilcoxon_signed_rank(second, first)
    assert (back.pairs, back.above, back.below, back.p) == (found.pairs, found.below, found.above, found.p)


def test_normal_approximation_is_near_exact_p_value() -> None:
    """Where the normal distribution takes over, it says about the same."""
    ranks = [2 * rank for rank in range(1, MAX_EXACT_PAIRS + 1)]
    for least in range(400, 1200, 50):
        assert module._normal_p_value(ranks, least) == pytest.approx(module._exact_p_value(ranks, least), abs=0.005)
    assert wilcoxon_signed_rank(list(range(1, MAX_EXACT_PAIRS + 12)), [0] * (MAX_EXACT_PAIRS + 11)).p < 1e-9


def test_rounding_errors_count_as_ties() -> None:
    """Shares that were added up in another order are not larger or smaller."""
    assert wilcoxon_signed_rank([0.1 + 0.2], [0.3]).pairs == 0


def test_different_lengths_raise() -> None:
    """A measurement that is missing is not passed over."""
    with pytest.raises(ValueError, match="zip"):
        wilcoxon_signed_rank([1.0], [1.0, 2.0])
