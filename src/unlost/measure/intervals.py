"""Shares that were measured on some, with where the share of all lies."""

import math
from dataclasses import dataclass

Z95 = 1.959964
"""Of the normal distribution, for intervals that hold the truth 95 times in 100."""


def wilson_interval(hits: int, sampled: int, total: int | None = None) -> tuple[float, float]:
    """Return between which shares the one of `total` lies, by `hits` of `asked` that were drawn from it at random.

    Wilson's interval, with the correction for what is drawn from few: of all of them, the share itself; of none, 0
    to 1. total: None for more than can be counted.

    >>> [round(end, 4) for end in wilson(8, 10)]
    [0.4902, 0.9433]
    >>> wilson(8, 10, 10), wilson(0, 0, 10)
    ((0.8, 0.8), (0.0, 1.0))
    """
    if not 0 <= hits <= sampled or (total is not None and sampled > total):
        raise ValueError(f"expected 0 <= {hits} <= {sampled} <= {total}")
    if sampled == 0:
        return (0.0, 0.0) if total == 0 else (0.0, 1.0)
    share = hits / sampled
    # The variance of what is drawn without putting back is smaller by this.
    smaller = 1.0 if total is None else (total - sampled) / (total - 1) if total > 1 else 0.0
    if smaller == 0:
        return share, share
    scale = Z95 * Z95 / sampled * smaller
    middle = (share + scale / 2) / (1 + scale)
    half = math.sqrt(scale * share * (1 - share) + scale * scale / 4) / (1 + scale)
    # Those that were drawn are known, whatever the formula allows.
    least, most = (0.0, 1.0) if total is None else (hits / total, (total - sampled + hits) / total)
    return max(least, middle - half), min(most, middle + half)


@dataclass(frozen=True, slots=True)
class Proportion:
    """So many of so many, and where the true share lies, 95 times in 100 (Wilson's interval)."""

    count: int
    total: int

    @property
    def value(self) -> float | None:
        """The share; None of nothing."""
        return self.count / self.total if self.total else None

    def interval(self) -> tuple[float, float]:
        """Return its bounds.

        >>> [round(bound, 3) for bound in Share(8, 10).interval()]
        [0.49, 0.943]
        """
        return wilson_interval(self.count, self.total)

    def to_json(self) -> dict[str, object]:
        """Return it as JSON has it."""
        low, high = self.interval()
        return {"count": self.count, "of": self.total, "share": self.value, "low": low, "high": high}
