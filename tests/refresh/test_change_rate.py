"""Change rates, from visits that each detect at most one change."""

import math
from random import Random
from statistics import mean

import pytest

from unlost.refresh import ChangeRate, estimate_change_rate


@pytest.mark.parametrize(("seen", "visits"), [(1, 10), (5, 10), (10, 10), (3, 200)])
def test_equal_intervals_give_the_bias_reduced_estimate(seen: int, visits: int) -> None:
    """It is the published formula, also for pages that had changed at every visit."""
    rate = estimate_change_rate([(50.0, at < seen) for at in range(visits)])
    assert rate is not None
    assert rate.per_second * 50 == pytest.approx(-math.log((visits - seen + 0.5) / (visits + 0.5)))


@pytest.mark.parametrize("rate", [0.1, 0.7, 1.5])
def test_estimate_accounts_for_undetected_changes(rate: float) -> None:
    """The estimate is unbiased, whereas changes per visit underestimate the rate."""
    random = Random(4)  # noqa: S311  a simulation
    found, counted = [], []
    for _ in range(400):
        intervals = [random.uniform(0.5, 1.5) for _ in range(40)]
        pairs = [(seconds, random.random() < -math.expm1(-rate * seconds)) for seconds in intervals]
        estimate = estimate_change_rate(pairs)
        assert estimate is not None
        found.append(estimate.per_second)
        counted.append(estimate.changes / sum(intervals))
    assert mean(found) == pytest.approx(rate, rel=0.05)
    assert mean(counted) < mean(found)


def test_pages_that_never_changed_are_not_due() -> None:
    """Their rate is 0, and no time is long enough; without a pair there is no rate."""
    rate = estimate_change_rate([(10.0, False)] * 5)
    assert rate == ChangeRate(0.0, 5, 0)
    assert math.isinf(ChangeRate(0.0, 5, 0).seconds_until(0.5))
    assert estimate_change_rate([]) is None
