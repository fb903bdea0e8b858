"""Shares that were measured on some, with where the share of all lies."""

import math
from dataclasses import dataclass

Z95 = 1.959964
"""Of the normal distribution, for intervals that hold the truth 95 times in 100."""


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many, and where the true share lies, 95 times in 100 (Wilson's interval)."""

    count: int
    of: int

    @property
    def value(self) -> float | None:
        """The share; None of nothing."""
        return self.count / self.of if self.of else None

    def interval(self) -> tuple[float, float]:
        """Return its bounds.

        >>> [round(bound, 3) for bound in Share(8, 10).interval()]
        [0.49, 0.943]
        """
        if not self.of:
            return 0.0, 1.0
        share, square = self.count / self.of, Z95 * Z95 / self.of
        middle = (share + square / 2) / (1 + square)
        width = Z95 * math.sqrt(share * (1 - share) / self.of + square / (4 * self.of)) / (1 + square)
        return max(0.0, middle - width), min(1.0, middle + width)

    def members(self) -> dict[str, object]:
        """Return it as JSON has it."""
        low, high = self.interval()
        return {"count": self.count, "of": self.of, "share": self.value, "low": low, "high": high}
