"""How old what an archive has of a resource is, compared with what is on the web."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median, pstdev

from unlost import dates
from unlost.errors import DateError

_DAY = 86_400.0


def staleness_days(last_modified: str | None, stored: str | None) -> float | None:
    """Return how many days after it was stored a resource was changed; 0 if it was not. None if nobody can tell.

    last_modified, stored: 14 digits. As servers tell it: a wrong date of theirs gives a wrong number here.

    >>> staleness("20240110000000", "20240103120000"), staleness("20240101000000", "20240301000000")
    (6.5, 0.0)
    >>> staleness(None, "20240103120000")
    """
    if last_modified is None or stored is None:
        return None
    try:
        changed, kept = dates.to_datetime(last_modified), dates.to_datetime(stored)
    except DateError:
        return None
    return max(0.0, (changed - kept).total_seconds() / _DAY)


@dataclass(frozen=True, slots=True)
class StalenessStats:
    """How stale copies are, in days; the numbers from `mean` on are of those that are stale by a day or more.

    known: of how many it can be told. stale: how many of these are stale by a day or more.
    """

    known: int
    stale: int
    mean: float | None = None
    median: float | None = None
    deviation: float | None = None
    least: float | None = None
    most: float | None = None

    @property
    def share(self) -> float | None:
        """The share that is stale; None of nothing."""
        return self.stale / self.known if self.known else None


def summarize_staleness(days: Iterable[float]) -> StalenessStats:
    """Return what copies have in common, by the days that each is stale.

    >>> stale([0.0, 0.5, 2.0, 6.0])
    Stale(known=4, stale=2, mean=4.0, median=4.0, deviation=2.0, least=2.0, most=6.0)
    """
    known = list(days)
    late = [each for each in known if each >= 1]
    if not late:
        return StalenessStats(len(known), 0)
    return StalenessStats(len(known), len(late), fmean(late), median(late), pstdev(late), min(late), max(late))
