"""How many questions a watch asks of archives in a day, before any is asked."""

from dataclasses import dataclass
from math import ceil

from unlost.archives.archive import Archive

_DAY_SECONDS = 86_400.0


def daily_queries(collections: int, bins: int, types: int, repositories: int, singles: int = 0) -> int:
    """Return how many queries a round over test collections takes: one for each bin and type, and one for each single.

    singles: what has to be asked for by itself in each collection, as images have to be.

    >>> daily_queries(4, 30, 2, 3), daily_queries(4, 30, 2, 3, singles=222)
    (720, 3384)
    """
    return collections * bins * types * repositories + collections * singles * repositories


@dataclass(frozen=True, slots=True)
class QueryEstimate:
    """What one archive is asked by a watch.

    lists: lister queries a visit, over all sites: each is a page of a list. singles: addresses a visit that are asked
    for one by one, at most. visits: a day. quota: how many questions a day it takes; None if it has no such limit.
    """

    archive: str
    lists: int
    singles: int
    visits: float
    quota: int | None = None

    @property
    def daily(self) -> int:
        """How many it is asked a day.

        >>> Queries("a", lists=3, singles=100, visits=0.5).daily
        52
        """
        return ceil((self.lists + self.singles) * self.visits)

    @property
    def exceeds_quota(self) -> bool:
        """Whether its daily limit does not allow that."""
        return self.quota is not None and self.daily > self.quota


@dataclass(frozen=True, slots=True)
class SiteSize:
    """How large a site is, as far as is known.

    prefixes: how many lists it takes. resources: how many are asked for one by one where there is no list.
    rows: how many captures an archive lists of it, at least one of each resource.
    """

    prefixes: int
    resources: int
    rows: int


def estimate_queries(archive: Archive, sizes: list[SiteSize], every: float, share: float) -> QueryEstimate:
    """Return what an archive is asked by a watch of sites of such sizes.

    every: seconds between two visits. share: how much of a limit is used.
    An archive that lists a prefix is asked for a page of rows at a time, one list for each prefix (a bin, and one type,
    since lists have all types); any other for each resource by itself.
    """
    lists = singles = 0
    for size in sizes:
        if archive.lister is not None:
            pages = max(1, ceil(size.rows / max(1, size.prefixes) / max(1.0, archive.lister.rows_per_page.value)))
            lists += daily_queries(1, size.prefixes * pages, 1, 1)
        elif archive.folder is None:
            singles += daily_queries(1, 0, 1, 1, singles=size.resources)
    quota = min((int(each.requests * share) for each in archive.quotas), default=None)
    return QueryEstimate(archive.id, lists, singles, _DAY_SECONDS / every, quota)
