"""95 % confidence intervals of proportions, for independent and for clustered observations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, expm1, inf, log, log1p, sqrt

Z = 1.959963984540054
"""Number of standard deviations of the normal distribution that contain 95 %."""


_MIN_DEGREES_OF_FREEDOM = 3.0  # the expansion is inaccurate below


def student_quantile(degrees_of_freedom: float) -> float:
    """Return the 97.5 % quantile of Student's distribution.

    Uses the Cornish-Fisher expansion, which is accurate to 1 % from three degrees of freedom; fewer count as three.

    >>> f"{student_quantile(4):.2f} {student_quantile(10):.2f} {student_quantile(1e9):.2f}"
    '2.77 2.23 1.96'
    """
    degrees_of_freedom = max(degrees_of_freedom, _MIN_DEGREES_OF_FREEDOM)
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
    )
    return Z + sum(term / degrees_of_freedom ** (index + 1) for index, term in enumerate(terms))


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """An interval of a proportion, from 0 to 1."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The difference of both ends."""
        return self.high - self.low

    def contains(self, share: float) -> bool:
        """Return whether a proportion is within the interval."""
        return self.low <= share <= self.high


def wilson_confidence(part: float, whole: float, z: float = Z) -> ConfidenceInterval:
    """Return Wilson's score interval of a proportion of independent cases; [0, 1] if there are none.

    >>> interval = wilson_confidence(599143 - 348, 599143)
    >>> f"{interval.low:.6f} {interval.high:.6f}"
    '0.999355 0.999477'
    """
    if whole <= 0:
        return ConfidenceInterval(0.0, 1.0)
    share = part / whole
    centre = share + z * z / (2 * whole)
    half_width = z * sqrt(max(0.0, share * (1 - share) / whole + z * z / (4 * whole * whole)))
    scale = 1 + z * z / whole
    # Exactly 0 or 1, which rounding would miss.
    low = (centre - half_width) / scale if part > 0 else 0.0
    high = (centre + half_width) / scale if part < whole else 1.0
    return ConfidenceInterval(max(0.0, low), min(1.0, high))


@dataclass(frozen=True, slots=True)
class ClusteredShare:
    """Sums for a proportion of visit pairs that are clustered by host.

    Attributes:
        part: Number of counted pairs.
        whole: Number of all pairs.
        part_squared: Sum over hosts of the squared counted pairs.
        product: Sum over hosts of counted pairs times all pairs.
        whole_squared: Sum over hosts of the squared number of pairs.
        hosts: Number of hosts.
    """

    part: float
    whole: float
    part_squared: float
    product: float
    whole_squared: float
    hosts: int

    @property
    def design_effect(self) -> float:
        """Ratio of the variance to that of independent cases, at least 1.

        The variance is that of a ratio estimator with hosts as clusters, linearised. It is 1 if it cannot be estimated.
        """
        if self.part <= 0 or self.whole <= 0 or self.hosts < 2 or self.part >= self.whole:
            return 1.0
        share = self.part / self.whole
        squares = self.part_squared - 2 * share * self.product + share * share * self.whole_squared
        variance = squares / self.whole**2 * self.hosts / (self.hosts - 1)
        return max(1.0, variance / (share * (1 - share) / self.whole))

    @property
    def effective_hosts(self) -> float:
        """Effective number of hosts (Kish): lower than the number of hosts if few of them have most counted pairs."""
        return self.part**2 / self.part_squared if self.part_squared > 0 else 0.0

    def wilson_interval(self, min_design_effect: float = 1.0, z: float = Z) -> ConfidenceInterval:
        """Return Wilson's interval with the effective number of cases.

        Args:
            min_design_effect: A design effect known from elsewhere, if there are too few cases to estimate it.
            z: Quantile for a confidence other than 95 %.

        >>> clustered = ClusteredShare(100, 10000, 100 * 100, 100 * 100, 100 * 100 * 100, 100)
        >>> f"{clustered.wilson_interval().width / wilson_confidence(100, 10000).width:.1f}"
        '13.6'
        """
        effect = max(self.design_effect, min_design_effect)
        return wilson_confidence(self.part / effect, self.whole / effect, z)

    def student_interval(self) -> ConfidenceInterval:
        """Return the interval of Student's distribution on the logit scale.

        The degrees of freedom are those of the effective number of hosts, since the variance is itself uncertain if few
        hosts dominate. [0, 1] if nothing or everything was counted.
        """
        quantile = student_quantile(self.effective_hosts - 1)
        return self._log_odds_interval(quantile, quantile)

    def bootstrap_interval(self, deviations: tuple[float, float]) -> ConfidenceInterval:
        """Return the interval of a bootstrap over hosts, at least as wide as Student's and that of independent cases.

        If nothing or everything was counted, every sample has the same proportion; then each host counts as one case.

        Args:
            deviations: 2.5 % and 97.5 % quantiles of the samples' logits, relative to the logit of all hosts, in
                standard errors of the sample.
        """
        if self.part <= 0 or self.part >= self.whole:
            return wilson_confidence(self.part / self.mean_size, self.whole / self.mean_size)
        student, bootstrap, independent = (
            self.student_interval(),
            self._log_odds_interval(deviations[1], -deviations[0]),
            self.wilson_interval(),
        )
        return ConfidenceInterval(
            min(student.low, bootstrap.low, independent.low), max(student.high, bootstrap.high, independent.high)
        )

    @property
    def mean_size(self) -> float:
        """Mean size of the host of a case: the design effect if either all or none of a host's cases are counted."""
        return max(1.0, self.whole_squared / self.whole) if self.whole > 0 else 1.0

    def _log_odds_interval(self, below: float, above: float) -> ConfidenceInterval:
        """Return the interval that extends by these numbers of standard errors on the logit scale."""
        if self.part <= 0 or self.part >= self.whole:
            return ConfidenceInterval(0.0, 1.0)
        share = self.part / self.whole
        odds = log(share / (1 - share))
        error = sqrt(self.design_effect / (self.whole * share * (1 - share)))
        return ConfidenceInterval(_inverse_logit(odds - below * error), _inverse_logit(odds + above * error))


def _inverse_logit(odds: float) -> float:
    return 1 / (1 + exp(-odds)) if odds >= 0 else exp(odds) / (1 + exp(odds))


_BISECTION_STEPS = 200  # more than the precision of a float requires
_ADDED_VISITS = 0.5  # added unchanged visits of mean length, so that the rate is finite if every visit found a change

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
