"""What one archive said of the pages of a list, and what its copies are like beside the live pages: in numbers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, stdev

from unlost.measure.intervals import Proportion


@dataclass(frozen=True, slots=True)
class ValueSummary:
    """How values lie. count: how many there are; the others are None of none, `deviation` also of one."""

    count: int
    mean: float | None = None
    median: float | None = None
    deviation: float | None = None
    least: float | None = None
    most: float | None = None


def summarize_values(values: Sequence[float]) -> ValueSummary:
    """Return how values lie.

    >>> spread([1, 2, 6])
    Spread(count=3, mean=3.0, median=2, deviation=2.6457513110645907, least=1, most=6)
    """
    if not values:
        return ValueSummary(0)
    deviation = stdev(values) if len(values) > 1 else None
    return ValueSummary(len(values), fmean(values), median(values), deviation, min(values), max(values))


@dataclass(slots=True)
class LiveComparison:
    """What is known of the live versions of the pages of which copies were fetched.

    replicated, endangered: a copy came, and the page is live, or not. vulnerable, unrecoverable: none came, the same.
    dated: live pages with a Last-Modified whose copy has a date. staleness: days, of those that are stale.
    identical, pairs, alike: pairs with equal bytes, all pairs, and the shares of words that those have in common whose
        text was compared. points: days stale, and share in common, of pairs of which both are known.
    noarchive, html, refusing, answered: of live pages, as in `Standing`. refusing_held: of those, with a copy.
    silent, absent: of pages that are not live, those without an answer, and those that say in words only that they are
        not there. unseen: pages of which nobody can tell, by the reason: robots.txt, or a site that wants us to wait.
    """

    replicated: int = 0
    endangered: int = 0
    vulnerable: int = 0
    unrecoverable: int = 0
    dated: int = 0
    staleness: list[float] = field(default_factory=list)
    identical: int = 0
    pairs: int = 0
    similarities: list[float] = field(default_factory=list)
    points: list[tuple[float, float]] = field(default_factory=list)
    answered: int = 0
    html: int = 0
    noarchive: int = 0
    no_cache: int = 0
    no_cache_held: int = 0
    sizes: list[float] = field(default_factory=list)
    silent: int = 0
    absent: int = 0
    unseen: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class ArchiveOverlapStats:
    """What one archive said of the pages of the list, and what its copies are like.

    asked: pages that it answered for. held: of these, pages of which it lists a good copy. only_bad: of which it lists
        nothing but errors and redirects. excluded: that it does not show. mementos: that it lists. cut: lists that were
        not whole. failed: pages without an answer, by the outcome; `""` were not asked for.
    held_tlds, asked_tlds: pages by top-level domain. ages: days between the last copy and the newest copy of the page
        anywhere.
    fetched: copies that were fetched and came or did not; misses: by the reason. failed_fetches: by the outcome.
    types, sizes: of copies. truncated, bad: copies that are not whole, or are errors or redirects after all.
    html, noarchive, robots: copies that are HTML, those that ask not to be kept, and whom they name. told, refusing:
        copies whose headers are known, and those with Cache-Control no-cache, no-store or private.
    """

    archive: str
    answered: int = 0
    held: int = 0
    only_errors: int = 0
    excluded: int = 0
    mementos: int = 0
    cut_lists: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    held_tlds: Counter[str] = field(default_factory=Counter)
    ages: list[float] = field(default_factory=list)
    fetched: int = 0
    misses: Counter[str] = field(default_factory=Counter)
    failed_fetches: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    sizes: list[float] = field(default_factory=list)
    truncated: int = 0
    error_captures: int = 0
    html: int = 0
    noarchive: int = 0
    robots: Counter[str] = field(default_factory=Counter)
    no_cache: int = 0
    live: LiveComparison = field(default_factory=LiveComparison)

    @property
    def has_answered(self) -> bool:
        """Whether it answered at all."""
        return bool(self.answered)

    @property
    def hit_rate(self) -> Proportion:
        """The share of pages that it holds."""
        return Proportion(self.held, self.answered)

    @property
    def miss_rate(self) -> Proportion:
        """The share of copies that are listed as stored and are not there when they are fetched."""
        return Proportion(self.misses.total(), self.fetched)
