"""95 % confidence intervals of shares, for independent and for clustered observations."""

from dataclasses import dataclass
from math import exp, log, sqrt

Z = 1.959963984540054
"""How many standard deviations of a normal variable 95 % lie within."""


_MIN_DEGREES_OF_FREEDOM = 3.0  # degrees of freedom: with fewer, Student's distribution says anything


def student_quantile(degrees_of_freedom: float) -> float:
    """Return how many standard errors 95 % lie within if they are estimated with so many degrees of freedom.

    By the expansion of Cornish and Fisher, to 1 % from three degrees on; fewer count as three.

    >>> f"{student_quantile(4):.2f} {student_quantile(10):.2f} {student_quantile(1e9):.2f}"
    '2.77 2.23 1.96'
    """
    degrees_of_freedom = max(degrees_of_freedom, _MIN_DEGREES_OF_FREEDOM)
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
    )
    return Z + sum(term / degrees_of_freedom ** (at + 1) for at, term in enumerate(terms))


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """Two shares, from 0 to 1."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """How far they are apart."""
        return self.high - self.low

    def contains(self, share: float) -> bool:
        """Return whether a share lies within."""
        return self.low <= share <= self.high


def wilson_interval(part: float, whole: float, z: float = Z) -> ConfidenceInterval:
    """Return Wilson's score interval of a share of independent cases; all of 0 to 1 if there are none.

    >>> found = wilson_interval(599143 - 348, 599143)
    >>> f"{found.low:.6f} {found.high:.6f}"
    '0.999355 0.999477'
    """
    if whole <= 0:
        return ConfidenceInterval(0.0, 1.0)
    share = part / whole
    middle = share + z * z / (2 * whole)
    reach = z * sqrt(max(0.0, share * (1 - share) / whole + z * z / (4 * whole * whole)))
    scale = 1 + z * z / whole
    # The ends of the scale are ends of the interval, which rounding misses by a hair.
    low = (middle - reach) / scale if part > 0 else 0.0
    high = (middle + reach) / scale if part < whole else 1.0
    return ConfidenceInterval(max(0.0, low), min(1.0, high))


@dataclass(frozen=True, slots=True)
class ClusteredShare:
    """What a share of pairs is made of, where the pairs of one host resemble each other.

    part, whole: what was counted, and out of how many.
    part_squared, product, whole_squared: sums over hosts of the squares of both, and of their products.
    hosts: how many there are.
    """

    part: float
    whole: float
    part_squared: float
    product: float
    whole_squared: float
    hosts: int

    @property
    def design_effect(self) -> float:
        """How many times the variance is that of independent cases; never less than 1.

        The variance is that of a ratio of sums over hosts, linearised. Of nothing that was counted, hosts tell nothing:
        then it is 1.
        """
        if self.part <= 0 or self.whole <= 0 or self.hosts < 2 or self.part >= self.whole:
            return 1.0
        share = self.part / self.whole
        squares = self.part_squared - 2 * share * self.product + share * share * self.whole_squared
        variance = squares / self.whole**2 * self.hosts / (self.hosts - 1)
        return max(1.0, variance / (share * (1 - share) / self.whole))

    @property
    def effective_hosts(self) -> float:
        """How many hosts of one size what was counted is worth: a few with most of it are hardly more than a few."""
        return self.part**2 / self.part_squared if self.part_squared > 0 else 0.0

    def wilson_interval(self, min_design_effect: float = 1.0, z: float = Z) -> ConfidenceInterval:
        """Return Wilson's interval with as many cases as the pairs are worth, hosts being drawn and not pairs.

        at_least: a design effect that is known from elsewhere, where there are too few cases to tell. z: of another
            confidence than 95 %.

        >>> alike = ClusteredShare(100, 10000, 100 * 100, 100 * 100, 100 * 100 * 100, 100)
        >>> f"{alike.wilson_interval().width / wilson_interval(100, 10000).width:.1f}"
        '13.6'
        """
        effect = max(self.design_effect, min_design_effect)
        return wilson_interval(self.part / effect, self.whole / effect, z)

    def student_interval(self) -> ConfidenceInterval:
        """Return the interval of Student's distribution, on the scale of log-odds.

        Few hosts of very different size make up what was counted: how uncertain it is, is then uncertain itself. Its
        degrees of freedom are those of as many hosts as it is worth. All of 0 to 1 if nothing or all was counted.
        """
        reach = student_quantile(self.effective_hosts - 1)
        return self._log_odds_interval(reach, reach)

    def bootstrap_interval(self, deviations: tuple[float, float]) -> ConfidenceInterval:
        """Return the interval of draws of hosts, never narrower than Student's, nor than if cases were independent.

        deviations: between which values 95 % of the log-odds of draws lie, from those of all, in standard errors of the
            draw. Where nothing was counted, no draw has it either: then a host is one case, for all its pairs.
        """
        if self.part <= 0 or self.part >= self.whole:
            return wilson_interval(self.part / self.mean_size, self.whole / self.mean_size)
        student, drawn, plain = (
            self.student_interval(),
            self._log_odds_interval(deviations[1], -deviations[0]),
            self.wilson_interval(),
        )
        return ConfidenceInterval(min(student.low, drawn.low, plain.low), max(student.high, drawn.high, plain.high))

    @property
    def mean_size(self) -> float:
        """The mean number of cases of the host that a case is of: the design effect if hosts are all or nothing."""
        return max(1.0, self.whole_squared / self.whole) if self.whole > 0 else 1.0

    def _log_odds_interval(self, below: float, above: float) -> ConfidenceInterval:
        """Return the interval that reaches so many standard errors of the log-odds to both sides."""
        if self.part <= 0 or self.part >= self.whole:
            return ConfidenceInterval(0.0, 1.0)
        share = self.part / self.whole
        odds = log(share / (1 - share))
        error = sqrt(self.design_effect / (self.whole * share * (1 - share)))
        return ConfidenceInterval(_inverse_logit(odds - below * error), _inverse_logit(odds + above * error))


def _inverse_logit(odds: float) -> float:
    """Return the share that has these log-odds."""
    return 1 / (1 + exp(-odds)) if odds >= 0 else exp(odds) / (1 + exp(odds))
