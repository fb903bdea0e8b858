"""Estimates how often a page changes, from visits that each detect at most one change.

Uses the estimator of Cho and Garcia-Molina for irregular accesses, with changes modelled as a Poisson process. The
maximum likelihood estimate is infinite for a page that changed at every visit, and too high for few visits; half a
visit without change, after the mean interval, is therefore added. With equal intervals this is their bias-reduced
estimator `-log((n - X + 0.5) / (n + 0.5))` for X changes in n visits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import expm1, inf, log1p

_BISECTION_STEPS = 200  # more than the precision of a float requires
_ADDED_VISITS = 0.5

_HOST_WEIGHT = 2.0  # weight of the host's rate against that of a page, as a number of visits


@dataclass(frozen=True, slots=True)
class ChangeRate:
    """How often a page, or the pages of a host, change.

    Attributes:
        per_second: Changes per second.
        visits: Number of visits that were compared with the previous one.
        changes: Number of these that detected a change.
    """

    per_second: float
    visits: int
    changes: int

    def seconds_until(self, probability: float) -> float:
        """Return after how many seconds the page has changed with this probability; infinite if the rate is 0.

        >>> round(ChangeRate(1 / 86400, 10, 5).seconds_until(0.5) / 3600, 1)
        16.6
        """
        return -log1p(-probability) / self.per_second if self.per_second > 0 else inf


def estimate_change_rate(intervals: Iterable[tuple[float, bool]]) -> ChangeRate | None:
    """Estimate the change rate from intervals between visits; None if there are none.

    Args:
        intervals: Seconds since the previous visit, and whether the page had changed.

    >>> from math import log
    >>> rate = estimate_change_rate([(100, True)] * 3 + [(100, False)] * 7)
    >>> round(rate.per_second * 100, 6), round(-log((10 - 3 + 0.5) / 10.5), 6)
    (0.336472, 0.336472)
    >>> estimate_change_rate([(100, True)] * 5).per_second < 0.1
    True
    """
    valid = [(float(seconds), changed) for seconds, changed in intervals if seconds > 0]
    if not valid:
        return None
    changed = [seconds for seconds, changed in valid if changed]
    if not changed:
        return ChangeRate(0.0, len(valid), 0)
    unchanged_seconds = sum(seconds for seconds, changed in valid if not changed)
    unchanged_seconds += _ADDED_VISITS * sum(seconds for seconds, _ in valid) / len(valid)

    def excess(rate: float) -> float:
        return sum(_term(rate, seconds) for seconds in changed) - unchanged_seconds

    # Each term lies between 1/rate - seconds and 1/rate.
    low, high = 0.0, len(changed) / unchanged_seconds
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        if excess(middle) > 0:
            low = middle
        else:
            high = middle
    return ChangeRate((low + high) / 2, len(valid), len(changed))


def _term(rate: float, seconds: float) -> float:
    if rate <= 0:
        return inf
    exponent = rate * seconds
    return seconds / expm1(exponent) if exponent < 700 else 0.0  # avoid overflow


def estimate_page_rate(own: Sequence[tuple[float, bool]], host_rate: float | None = None) -> float | None:
    """Estimate the change rate of a page per second; None if nothing is known.

    A page without observed changes gets a rate as if half a change had been observed.

    Args:
        own: Intervals of the page, as for `estimate_change_rate`.
        host_rate: Change rate of pages of the same host; estimates from few visits are shrunk towards it.

    >>> 0 < estimate_page_rate([(100, False)] * 9) < estimate_page_rate([(100, False)] * 9, 0.01) < 0.01
    True
    """
    estimate = estimate_change_rate(own)
    if estimate is None:
        return host_rate
    rate = estimate.per_second or _ADDED_VISITS / sum(seconds for seconds, _ in own if seconds > 0)
    return (
        rate
        if host_rate is None
        else (estimate.visits * rate + _HOST_WEIGHT * host_rate) / (estimate.visits + _HOST_WEIGHT)
    )


def change_probability(rate: float | None, seconds: float) -> float | None:
    """Return the probability that a page changed within this time; None if its rate is None.

    >>> change_probability(0.0, 5.0), round(change_probability(0.01, 100), 3), change_probability(None, 9.0)
    (0.0, 0.632, None)
    """
    return None if rate is None else abs(expm1(-rate * max(0.0, seconds)))
