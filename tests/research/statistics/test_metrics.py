"""Published values follow from the formulas."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.research import IndexCounts, IndexMetrics, TopPage, YearMetrics, key_reduction, reduction_curve
from unlost.statistics import fit_power_curve, fit_power_law, gini_coefficient, pareto_break, summarize_distribution

_KEYS = 1_138_923_169
_COUNTS = st.dictionaries(st.integers(1, 10_000), st.integers(1, 50), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("prefixes", "keys", "expected"),
    [
        (2_068_333, 1_138_916_690, "0.99818"),
        (2_158_880, 630_309_184, "0.55153"),
        (1_329_137, 201_308_887, "0.17559"),
        (245_881, 39_396_636, "0.03438"),
        (145_687_459, 1_134_466_338, "0.86817"),
        (290_761_965, 1_021_443_935, "0.64156"),
        (392_635_328, 795_954_162, "0.35412"),
    ],
)
def test_reduction_matches_table_8(prefixes: int, keys: int, expected: str) -> None:
    """RedQ: keys that reach a depth, less the prefixes there, relative to all keys."""
    assert f"{key_reduction(keys, prefixes, _KEYS):.5f}" == expected


def test_year_matches_table_6() -> None:
    """Duplicates, γ and γ⁺ of 2010."""
    year = YearMetrics(
        "2010", 174_786_328, 487_044_797 - 383_960_128, 487_044_797, 352_019_433, 1_041_191_755, (0,) * 4
    )
    assert f"{100 * year.duplicates:.2f} {year.gamma:.2f} {year.all_gamma:.2f}" == "41.02 2.01 2.14"


def test_ratios_match_the_papers() -> None:
    """γ of the filtered index, and lines of a gigabyte by α."""
    assert f"{IndexMetrics(IndexCounts(captures=2_671_653_766, uris=962_832_513)).gamma:.2f}" == "2.77"
    assert round(2**30 / 275 / 1e5) == 39
    assert pytest.approx(0.69e9, rel=0.01) == 2.686 * 1.7e9**0.911


@given(counts=_COUNTS)
def test_summary_of_a_histogram_equals_that_of_the_list(counts: dict[int, int]) -> None:
    """Median, mean, deviation and Gini coefficient."""
    numbers = sorted(number for number, times in counts.items() for _ in range(times))
    found = summarize_distribution(counts)
    mean = sum(numbers) / len(numbers)
    assert (found.count, found.sum, found.max) == (len(numbers), sum(numbers), numbers[-1])
    assert found.median == (numbers[(len(numbers) - 1) // 2] + numbers[len(numbers) // 2]) / 2
    assert found.deviation == pytest.approx((sum((each - mean) ** 2 for each in numbers) / len(numbers)) ** 0.5)
    ranked = sum((2 * place - len(numbers) - 1) * each for place, each in enumerate(numbers, 1))
    assert gini_coefficient(counts) == pytest.approx(ranked / (len(numbers) * sum(numbers)), abs=1e-9)
    assert 0 <= pareto_break(counts) <= 0.5


def test_fits_recover_known_parameters() -> None:
    """Of Heaps' law and of a power law."""
    law = fit_power_curve([(x, 2.686 * x**0.911) for x in (10, 1e4, 1e6, 1.7e9)])
    assert law is not None
    assert (law.a, law.b, law.r_squared) == pytest.approx((2.686, 0.911, 1.0))
    random_, counts = random.Random(1), dict[int, int]()  # noqa: S311
    weights = [n**-2.5 for n in range(1, 2000)]
    for number in random_.choices(range(1, 2000), weights, k=50_000):
        counts[number] = counts.get(number, 0) + 1
    fitted = fit_power_law(counts)
    assert fitted is not None
    assert abs(fitted.exponent - 2.5) < 4 * fitted.error


@given(counts=_COUNTS)
def test_reduction_curves_are_monotonic(counts: dict[int, int]) -> None:
    """They end at the sum less the number of prefixes."""
    total = sum(number * times for number, times in counts.items())
    points = reduction_curve(counts, total)
    assert points[-1][0] == sum(counts.values())
    assert points[-1][1] == pytest.approx((total - sum(counts.values())) / total)
    assert all(a[0] < b[0] and a[1] <= b[1] + 1e-12 for a, b in pairwise(points))


def test_disproportionate_pages_are_reported() -> None:
    """An image with thousands of times the captures of its neighbours, but not a busy page of a busy host."""
    blank = TopPage("com,wunderground,icons)/graphics/blank.gif", 2_308_634, 3_336_086, 5_000)
    fair = TopPage("pt,a)/", 20_000, 200_000, 10)
    figures = IndexMetrics(IndexCounts(captures=4_923_080_506 // 1000, uris=2_000_000, busy_pages=(blank, fair)))
    assert [bias.page for bias in figures.biases] == [blank]
    assert figures.biases[0].times > 1000
