"""Between which shares the true one lies, with 95 % confidence."""

from dataclasses import dataclass
from math import sqrt

Z = 1.959963984540054
"""How many standard deviations of a normal variable 95 % lie within."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Two shares, from 0 to 1."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """How far they are apart."""
        return self.high - self.low

    def holds(self, share: float) -> bool:
        """Return whether a share lies within."""
        return self.low <= share <= self.high


def wilson(part: float, whole: float, z: float = Z) -> Interval:
    """Return Wilson's score interval of a share of independent cases; all of 0 to 1 if there are none.

    >>> found = wilson(599143 - 348, 599143)
    >>> f"{found.low:.6f} {found.high:.6f}"
    '0.999355 0.999477'
    """
    if whole <= 0:
        return Interval(0.0, 1.0)
    share = part / whole
    middle = share + z * z / (2 * whole)
    reach = z * sqrt(max(0.0, share * (1 - share) / whole + z * z / (4 * whole * whole)))
    scale = 1 + z * z / whole
    # The ends of the scale are ends of the interval, which rounding misses by a hair.
    low = (middle - reach) / scale if part > 0 else 0.0
    high = (middle + reach) / scale if part < whole else 1.0
    return Interval(max(0.0, low), min(1.0, high))


@dataclass(frozen=True, slots=True)
class Clustered:
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

    def interval(self, at_least: float = 1.0, z: float = Z) -> Interval:
        """Return Wilson's interval with as many cases as the pairs are worth, hosts being drawn and not pairs.

        at_least: a design effect that is known from elsewhere, where there are too few cases to tell. z: of another
            confidence than 95 %.

        >>> alike = Clustered(100, 10000, 100 * 100, 100 * 100, 100 * 100 * 100, 100)
        >>> f"{alike.interval().width / wilson(100, 10000).width:.1f}"
        '13.6'
        """
        effect = max(self.design_effect, at_least)
        return wilson(self.part / effect, self.whole / effect, z)
