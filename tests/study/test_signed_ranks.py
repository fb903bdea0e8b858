"""Wilcoxon signed-rank test: published tables, a known example, and enumeration."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from study import signed_ranks as module
from study.signed_ranks import MAX_EXACT_PAIRS, wilcoxon_signed_rank

# The largest smaller sum at which the test for both sides says 0.05, and 0.01; as tables in textbooks print it.
CRITICAL = [
    (6, 0, None), (7, 2, None), (8, 3, 0), (9, 5, 1), (10, 8, 3), (12, 13, 7), (15, 25, 15), (18, 40, 27),
    (20, 52, 37), (24, 81, 61), (25, 89, 68),
]  # fmt: skip


def differences_with_rank_sum(pairs: int, least: int) -> list[float]:
    """Return differences with this number of pairs, whose negative ranks have this sum."""
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
            wilcoxon_signed_rank(differences_with_rank_sum(pairs, each), [0.0] * pairs) for each in (least, least + 1)
        )
        assert inside.below == least
        assert inside.p <= level < outside.p


def test_p_value_of_darwins_maize() -> None:
    """The example of most implementations."""
    differences = [6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75]
    found = wilcoxon_signed_rank(differences, [0] * 15)
    assert (found.pairs, found.above, found.below, found.p) == (15, 96, 24, 0.041259765625)


def enumerated_p_value(first: list[float], second: list[float]) -> float:
    """Return p by enumerating all signs, with ranks counted pair by pair."""
    sizes = [abs(one - other) for one, other in zip(first, second, strict=True) if one != other]
    ranks = [sum(other < each for other in sizes) + (sum(other == each for other in sizes) + 1) / 2 for each in sizes]
    signs = [one > other for one, other in zip(first, second, strict=True) if one != other]

    def least(of: tuple[bool, ...] | list[bool]) -> float:
        above = sum(rank for rank, sign in zip(ranks, of, strict=True) if sign)
        return min(above, sum(ranks) - above)

    ways = list(product([True, False], repeat=len(ranks)))
    return sum(least(each) <= least(signs) for each in ways) / len(ways)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=9))
def test_p_value_equals_enumeration(pairs: list[tuple[int, int]]) -> None:
    """Also with ties and zero differences."""
    first, second = [float(one) for one, _ in pairs], [float(other) for _, other in pairs]
    found = wilcoxon_signed_rank(first, second)
    assert found.p == pytest.approx(enumerated_p_value(first, second))
    back = wilcoxon_signed_rank(second, first)
    assert (back.pairs, back.above, back.below, back.p) == (found.pairs, found.below, found.above, found.p)


def test_normal_approximation_is_near_exact_p_value() -> None:
    """At the number of pairs where it starts to be used."""
    ranks = [2 * rank for rank in range(1, MAX_EXACT_PAIRS + 1)]
    for least in (16_000, 17_000, 18_000, 19_000):
        exact = module._exact_p_value(ranks, least)
        assert 0.01 < exact < 0.6
        assert module._normal_p_value(ranks, least) == pytest.approx(exact, abs=0.005)
    assert wilcoxon_signed_rank(list(range(1, MAX_EXACT_PAIRS + 12)), [0] * (MAX_EXACT_PAIRS + 11)).p < 1e-9


def test_rounding_errors_count_as_ties() -> None:
    """Sums in another order are neither larger nor smaller."""
    assert wilcoxon_signed_rank([0.1 + 0.2], [0.3]).pairs == 0


def test_different_lengths_raise() -> None:
    """A missing measurement is an error."""
    with pytest.raises(ValueError, match="zip"):
        wilcoxon_signed_rank([1.0], [1.0, 2.0])
