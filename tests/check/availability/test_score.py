"""The score of a check and its confidence interval."""

from math import comb, sqrt

from hypothesis import given
from hypothesis import strategies as st

from unlost.check import AvailabilityScore
from unlost.statistics import Z95, wilson_interval


def slow_wilson(hits: int, queried: int, total: int) -> tuple[float, float]:
    """Return the bounds by definition: shares within 1.96 deviations of the sample, by bisection."""
    share = hits / queried

    def is_within(guess: float) -> bool:
        variance = guess * (1 - guess) / queried * (total - queried) / (total - 1)
        return abs(share - guess) <= Z95 * sqrt(variance) + 1e-12

    def end(inside: float, outside: float) -> float:
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if is_within(middle) else (inside, middle)
        return inside

    low = 0.0 if is_within(0.0) else end(share, 0.0)
    high = 1.0 if is_within(1.0) else end(share, 1.0)
    return max(low, hits / total), min(high, (total - queried + hits) / total)


@st.composite
def drawn(draw: st.DrawFn) -> tuple[int, int, int]:
    """Return hits, answered and total."""
    total = draw(st.integers(2, 5_000))
    queried = draw(st.integers(1, total))
    return draw(st.integers(0, queried)), queried, total


@given(drawn())
def test_interval_matches_its_definition(case: tuple[int, int, int]) -> None:
    """The closed form equals the bisection."""
    hits, queried, total = case
    found, expected = wilson_interval(*case), slow_wilson(*case)
    assert abs(found[0] - expected[0]) < 1e-5
    assert abs(found[1] - expected[1]) < 1e-5
    assert found[0] <= hits / queried <= found[1] + 1e-12 or queried < total
    if queried == total:
        assert found == (hits / queried, hits / queried)


@given(drawn())
def test_more_responses_never_widen_the_interval(case: tuple[int, int, int]) -> None:
    """Answered samples are certain."""
    hits, queried, total = case
    low, high = wilson_interval(*case)
    assert hits / total - 1e-12 <= low <= high <= (total - queried + hits) / total + 1e-12


def test_interval_has_its_nominal_coverage() -> None:
    """Over all samples, in about 95 of 100 cases."""
    for total, drawn_count in ((60, 20), (200, 50), (500, 40)):
        holds = []
        for true in range(0, total + 1, max(1, total // 25)):
            ways = comb(total, drawn_count)
            inside = 0
            for hits in range(max(0, drawn_count - (total - true)), min(drawn_count, true) + 1):
                low, high = wilson_interval(hits, drawn_count, total)
                if low - 1e-9 <= true / total <= high + 1e-9:
                    inside += comb(true, hits) * comb(total - true, drawn_count - hits)
            holds.append(inside / ways)
        assert sum(holds) / len(holds) > 0.94, (total, drawn_count, holds)
        assert min(holds) > 0.85


@st.composite
def scores(draw: st.DrawFn) -> AvailabilityScore:
    """Return possible scores."""
    listed, certain = draw(st.integers(0, 50)), draw(st.integers(0, 50))
    others = draw(st.integers(0, 50))
    queried = draw(st.integers(0, others))
    hits = draw(st.integers(0, queried))
    return AvailabilityScore(listed + certain + others, listed + hits, certain + queried - hits, queried, hits)


@given(scores())
def test_scores_are_within_their_bounds(score: AvailabilityScore) -> None:
    """Given by known captures and known absences."""
    interval = score.interval
    if not score.live:
        assert (score.share, interval) == (None, None)
        return
    assert interval is not None
    low, high = interval
    assert score.held / score.live - 1e-9 <= low <= high <= 1 - score.absent / score.live + 1e-9
    if not score.unknown:
        assert low == high == score.share == score.held / score.live
    elif score.share is not None:
        assert low - 1e-9 <= score.share <= high + 1e-9
