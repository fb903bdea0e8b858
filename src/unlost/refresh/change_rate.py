"""Estimates how often a page changes, from visits that see at most one change each.

The estimator is Cho and Garcia-Molina's for irregular accesses; changes are modelled as a Poisson process. The rate at
which the observations are most likely is infinite for a page that had changed at every visit, and too high for few
visits; half a visit without change, after a mean interval, is therefore added. With equal intervals this is their
bias-reduced estimator `-log((n - X + 0.5) / (n + 0.5))` for X changes seen in n visits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import expm1, inf, log1p

_BISECTION_STEPS = 200  # of halving: far below what a float tells apart
_ADDED_VISITS = 0.5


@dataclass(frozen=True, slots=True)
class ChangeRate:
    """How often a page, or the pages of a host, change.

    per_second: changes a second. visits: how many were compared with the one before. seen: how many found a change.
    """

    per_second: float
    visits: int
    changes: int

    def seconds_until(self, probability: float) -> float:
        """Return after how many seconds the page will have changed with this probability; infinite if it never does.

        >>> round(ChangeRate(1 / 86400, 10, 5).seconds_until(0.5) / 3600, 1)
        16.6
        """
        return -log1p(-probability) / self.per_second if self.per_second > 0 else inf


def estimate_change_rate(intervals: Iterable[tuple[float, bool]]) -> ChangeRate | None:
    """Return how often pages change, of the seconds between visits and whether the page had changed; None without any.

    >>> from math import log
    >>> rate = estimate_change_rate([(100, True)] * 3 + [(100, False)] * 7)
    >>> round(rate.per_second * 100, 6), round(-log((10 - 3 + 0.5) / 10.5), 6)
    (0.336472, 0.336472)
    >>> estimate_change_rate([(100, True)] * 5).per_second < 0.1
    True
    """
    known = [(float(seconds), changed) for seconds, changed in intervals if seconds > 0]
    if not known:
        return None
    changed = [seconds for seconds, changed in known if changed]
    if not changed:
        return ChangeRate(0.0, len(known), 0)
    quiet = sum(seconds for seconds, changed in known if not changed)
    quiet += _ADDED_VISITS * sum(seconds for seconds, _ in known) / len(known)

    def excess(rate: float) -> float:
        return sum(_term(rate, seconds) for seconds in changed) - quiet

    # Each term lies between 1/rate - seconds and 1/rate.
    low, high = 0.0, len(changed) / quiet
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        if excess(middle) > 0:
            low = middle
        else:
            high = middle
    return ChangeRate((low + high) / 2, len(known), len(changed))


def _term(rate: float, seconds: float) -> float:
    if rate <= 0:
        return inf
    exponent = rate * seconds
    return seconds / expm1(exponent) if exponent < 700 else 0.0  # the exponential of more has no float


_HOST_WEIGHT = 2.0  # visits that what the pages of a host have in common is worth against a page's own


def estimate_page_rate(own: Sequence[tuple[float, bool]], host_rate: float | None = None) -> float | None:
    """Return how often a page is expected to change, a second; None if nothing is known.

    own: the seconds between visits to it, with whether it had changed. usual: the rate of other pages of its host, of
    which few visits of its own are drawn towards. A page that was never seen to change is not taken for one that never
    will: as if half a change had come in all that time.

    >>> 0 < estimate_page_rate([(100, False)] * 9) < estimate_page_rate([(100, False)] * 9, 0.01) < 0.01
    True
    """
    found = estimate_change_rate(own)
    if found is None:
        return host_rate
    rate = found.per_second or _ADDED_VISITS / sum(seconds for seconds, _ in own if seconds > 0)
    return (
        rate if host_rate is None else (found.visits * rate + _HOST_WEIGHT * host_rate) / (found.visits + _HOST_WEIGHT)
    )


def change_probability(rate: float | None, seconds: float) -> float | None:
    """Return how likely a page has changed after so many seconds; None if its rate is not known.

    >>> change_probability(0.0, 5.0), round(change_probability(0.01, 100), 3), change_probability(None, 9.0)
    (0.0, 0.632, None)
    """
    return None if rate is None else abs(expm1(-rate * max(0.0, seconds)))
