"""How often maps and filters are right, as far as answers tell."""

from dataclasses import dataclass
from math import sqrt

_Z = 1.959964  # 95 %, two-sided


@dataclass(frozen=True, slots=True)
class HitShare:
    """So many of so many, and what that tells about the share of all.

    >>> Share(3, 100).rate, Share(0, 0).rate, [round(bound, 3) for bound in Share(3, 100).bounds]
    (0.03, None, [0.01, 0.085])
    """

    hits: int
    total: int

    @property
    def rate(self) -> float | None:
        """The share, 0 to 1; None if nobody was asked."""
        return self.hits / self.total if self.total else None

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which the share lies, with a confidence of 95 % (Wilson's interval); 0 and 1 if nobody was asked."""
        if not self.total:
            return 0.0, 1.0
        share, square = self.hits / self.total, _Z * _Z / self.total
        middle = (share + square / 2) / (1 + square)
        half = _Z * sqrt(share * (1 - share) / self.total + square / (4 * self.total)) / (1 + square)
        # Rounding must not take away what was seen.
        return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))


@dataclass(frozen=True, slots=True)
class RoutingAccuracy:
    """What came of asking an archive, by why it was asked: answers only, no failures.

    routed_hits, routed_misses: its map or filter said that it may have the page.
    explored_hits, explored_misses: it said no, and the archive was asked nevertheless; or its hit rate was too low.
    learned_hits, learned_misses: it has no map.
    passed_over: how often it was not asked.
    """

    routed_hits: int = 0
    routed_misses: int = 0
    explored_hits: int = 0
    explored_misses: int = 0
    learned_hits: int = 0
    learned_misses: int = 0
    passed_over: int = 0

    @property
    def precision(self) -> HitShare:
        """How many of those that were routed had the page."""
        return HitShare(self.routed_hits, self.routed_hits + self.routed_misses)

    @property
    def false_negatives(self) -> HitShare:
        """How many of those that were denied had the page nevertheless, by the ones that were explored."""
        return HitShare(self.explored_hits, self.explored_hits + self.explored_misses)

    @property
    def hit_rate(self) -> HitShare:
        """How many of those that were asked without a map had the page."""
        return HitShare(self.learned_hits, self.learned_hits + self.learned_misses)
