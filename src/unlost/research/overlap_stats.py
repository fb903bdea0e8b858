"""Statistics of an overlap survey, for each archive and for all archives together."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from statistics import fmean, median, stdev
from urllib.parse import urlsplit

from unlost.dates import to_datetime
from unlost.errors import DateError
from unlost.html.text import text_resemblance
from unlost.media_types import UNKNOWN_TYPE, format_of, is_document
from unlost.research.overlap_state import (
    FETCH_OUTCOMES,
    LISTING_OUTCOMES,
    LIVENESS_OUTCOMES,
    ArchiveListing,
    OverlapState,
)
from unlost.research.page_snapshot import PageObservation, forbids_caching, unpack_text
from unlost.statistics import Proportion

COVERAGE_LEVELS = (0.90, 0.95, 0.99)
"""Shares of the archived pages for which minimum covers are computed."""
MAX_SEARCH_STEPS = 2_000_000
"""Search budget, in archive sets and page sets examined. Covers found after it is exhausted are not proven optimal."""

MAX_TLDS = 15
"""Top-level domains in the table; all others are summed in one row."""
_MAX_LABEL_LENGTH = 63  # octets (RFC 1035, section 2.3.4)
_OK = 200


@dataclass(frozen=True, slots=True)
class ArchiveMembership:
    """Number of pages by the exact set of archives that contain them.

    A set is a bit mask: bit `n` represents `archives[n]`; 0 are the pages that no archive contains.

    Attributes:
        archives: Archive ids.
        pages: Number of pages by set.

    >>> membership = ArchiveMembership(("a", "b"), {0b01: 5, 0b10: 2, 0b11: 3, 0: 4})
    >>> membership.total, membership.held, membership.held_by_archive(0)
    (14, 10, 8)
    >>> membership.held_only_by(1), membership.held_by_both(0, 1)
    (2, 3)
    """

    archives: tuple[str, ...]
    pages: Mapping[int, int]

    @property
    def total(self) -> int:
        """Number of pages."""
        return sum(self.pages.values())

    @property
    def held(self) -> int:
        """Number of pages in at least one archive."""
        return self.total - self.pages.get(0, 0)

    def held_by_archive(self, index: int) -> int:
        """Return the number of pages in an archive, given its index."""
        return self.held_by_any(1 << index)

    def held_only_by(self, index: int) -> int:
        """Return the number of pages in this archive only."""
        return self.pages.get(1 << index, 0)

    def held_by_both(self, first: int, second: int) -> int:
        """Return the number of pages in both archives."""
        both = 1 << first | 1 << second
        return sum(count for held, count in self.pages.items() if held & both == both)

    def held_by_any(self, selected: int) -> int:
        """Return the number of pages in at least one archive of a set."""
        return sum(count for held, count in self.pages.items() if held & selected)

    def archive_ids(self, selected: int) -> tuple[str, ...]:
        """Return the archive ids of a set."""
        return tuple(name for index, name in enumerate(self.archives) if selected >> index & 1)

    def sets(self) -> Iterator[tuple[int, int]]:
        """Yield the non-empty sets with their number of pages, in descending order."""
        sets = ((held, count) for held, count in self.pages.items() if held and count)
        yield from sorted(sets, key=lambda each: (-each[1], each[0].bit_count(), each[0]))

    def by_archive_count(self) -> list[tuple[int, int]]:
        """Return the number of pages by the number of archives that contain them, from 0 to all."""
        counts: Counter[int] = Counter()
        for held, count in self.pages.items():
            counts[held.bit_count()] += count
        return [(number, counts[number]) for number in range(len(self.archives) + 1)]


@dataclass(frozen=True, slots=True)
class ArchiveCover:
    """A set of archives.

    Attributes:
        archives: Archive ids, ordered by additional coverage.
        covered: Pages in at least one of them.
        is_proven: Whether no other set of the same size covers more.
    """

    archives: tuple[str, ...]
    covered: int
    is_proven: bool


@dataclass(frozen=True, slots=True)
class MinimumCover:
    """The smallest known set of archives for one coverage level.

    Attributes:
        level: Share of the archived pages, 0 to 1.
        cover: The set.
        is_proven: Whether no smaller set reaches the level.
    """

    level: float
    cover: ArchiveCover
    is_proven: bool


def best_covers(membership: ArchiveMembership, max_steps: int = MAX_SEARCH_STEPS) -> list[ArchiveCover]:
    """Return the best set of 1, 2, … archives, up to the one that covers all archived pages.

    Among sets with equal coverage, the lexicographically first wins. Uses branch and bound over the distinct sets of
    archives that hold pages, of which there are far fewer than pages; once `max_steps` is exhausted, greedy search
    (`is_proven` is then False).
    """
    held = [(mask, count) for mask, count in membership.pages.items() if mask and count]
    search = _CoverSearch(held, len(membership.archives), max_steps)
    covers: list[ArchiveCover] = []
    while (covers[-1].covered if covers else 0) < membership.held:
        selected, covered, is_proven = search.best(len(covers) + 1)
        ids = tuple(membership.archives[index] for index in _order_by_gain(held, selected))
        covers.append(ArchiveCover(ids, covered, is_proven))
    return covers


def minimum_covers(
    membership: ArchiveMembership, covers: Sequence[ArchiveCover], levels: Sequence[float] = COVERAGE_LEVELS
) -> list[MinimumCover]:
    """Return for each level the first cover that reaches it; an empty list if nothing is archived."""
    minimum = []
    for level in levels:
        # Compare numbers of pages: shares would be rounded.
        for number, cover in enumerate(covers):
            if cover.covered >= level * membership.held - 1e-9:
                minimum.append(MinimumCover(level, cover, all(each.is_proven for each in covers[:number])))
                break
    return minimum


class _CoverSearch:
    """Branch-and-bound search among archives 0 to `size` - 1.

    Args:
        held: Sets of archives with their number of pages.
        size: Number of archives.
        max_steps: Search budget.
    """

    def __init__(self, held: list[tuple[int, int]], size: int, max_steps: int) -> None:
        self._held = held
        self._size = size
        self._steps = max_steps
        self._greedy: list[int] = []

    def best(self, number: int) -> tuple[list[int], int, bool]:
        """Return the best set of this size, its coverage, and whether it is proven optimal."""
        self._greedy += self._next_greedy(self._greedy)
        selected = sum(1 << index for index in self._greedy)
        self._best_set = sorted(self._greedy)
        self._best_coverage = sum(count for mask, count in self._held if mask & selected)
        if self._steps > 0:
            self._branch([], 0, self._held, number, 0)
        return self._best_set, self._best_coverage, self._steps > 0

    def _next_greedy(self, selected: list[int]) -> list[int]:
        """Return the archive with the largest additional coverage."""
        mask = sum(1 << index for index in selected)
        gains = _gains([each for each in self._held if not each[0] & mask], self._size)
        remaining = [index for index in range(self._size) if index not in selected]
        return [max(remaining, key=lambda index: (gains[index], -index))]

    def _branch(
        self, selected: list[int], covered: int, uncovered: list[tuple[int, int]], more: int, first: int
    ) -> None:
        """Extend `selected` by `more` archives from index `first` on; store any better result.

        Args:
            selected: Archives so far.
            covered: Their coverage.
            uncovered: Page sets that they do not cover.
            more: Number of archives to add.
            first: Smallest index to add.
        """
        self._steps -= 1 + len(uncovered)
        if self._steps <= 0:
            return
        if not more:
            is_first = covered == self._best_coverage and selected < self._best_set
            if covered > self._best_coverage or is_first:
                self._best_set, self._best_coverage = list(selected), covered
            return
        if self._size - first < more:
            return
        gains = _gains(uncovered, self._size)
        # Upper bound: no set adds more than the sum of its members' gains.
        bound = covered + sum(nlargest(more, gains[first:]))
        if bound < self._best_coverage or (bound == self._best_coverage and not self._may_be_first(selected)):
            return
        for index in range(first, self._size - more + 1):
            remaining = [each for each in uncovered if not each[0] >> index & 1]
            self._branch([*selected, index], covered + gains[index], remaining, more - 1, index + 1)

    def _may_be_first(self, selected: list[int]) -> bool:
        """Return whether an extension may be lexicographically before the best set."""
        return selected <= self._best_set[: len(selected)]


def _gains(uncovered: list[tuple[int, int]], size: int) -> list[int]:
    """Return the number of uncovered pages in each archive."""
    gains = [0] * size
    for mask, count in uncovered:
        bits = mask
        while bits:
            low = bits & -bits
            gains[low.bit_length() - 1] += count
            bits ^= low
    return gains


def _order_by_gain(held: list[tuple[int, int]], selected: list[int]) -> list[int]:
    """Order archives greedily by additional coverage."""
    ordered: list[int] = []
    uncovered, remaining = held, list(selected)
    while remaining:
        gains = _gains(uncovered, max(selected) + 1 if not uncovered else max(mask for mask, _ in held).bit_length())
        best = max(remaining, key=lambda index: (gains[index], -index))
        ordered.append(best)
        remaining.remove(best)
        uncovered = [each for each in uncovered if not each[0] >> best & 1]
    return ordered


@dataclass(frozen=True, slots=True)
class ValueSummary:
    """Summary of a sample. Field names are JSON keys.

    Attributes:
        count: Sample size. The other values are None for an empty sample.
        deviation: Sample standard deviation; None for fewer than two values.
        least: Minimum.
        most: Maximum.
    """

    count: int
    mean: float | None = None
    median: float | None = None
    deviation: float | None = None
    least: float | None = None
    most: float | None = None


def summarize_values(values: Sequence[float]) -> ValueSummary:
    """Return the summary of a sample.

    >>> summarize_values([1, 2, 6])
    ValueSummary(count=3, mean=3.0, median=2, deviation=2.6457513110645907, least=1, most=6)
    """
    if not values:
        return ValueSummary(0)
    deviation = stdev(values) if len(values) > 1 else None
    return ValueSummary(len(values), fmean(values), median(values), deviation, min(values), max(values))


@dataclass(slots=True)
class LiveComparison:
    """Comparison of the sampled pages of an archive with their live versions.

    Attributes:
        replicated: Pages whose capture was fetched, and that are live.
        endangered: Pages whose capture was fetched, and that are not live.
        vulnerable: Pages whose capture is missing, and that are live.
        unrecoverable: Pages whose capture is missing, and that are not live.
        dated: Live pages with Last-Modified, compared with a dated capture.
        staleness: Days by which a stale capture is older than the live page.
        identical: Pairs with identical bytes.
        pairs: Pairs of capture and live page.
        similarities: Text similarity of pairs whose text was compared, 0 to 1.
        points: Staleness and similarity of pairs for which both are known.
        answered: Live pages.
        html: Live HTML pages.
        noarchive: Live HTML pages with `noarchive`.
        no_cache: Live pages whose Cache-Control forbids caching.
        no_cache_held: The same with a capture.
        sizes: Sizes of live pages in bytes.
        silent: Pages that count as not live because the server did not respond.
        absent: Pages that count as not live because of a soft 404.
        unseen: Pages of unknown liveness by outcome: robots.txt, or a site that asked to wait.
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
    """Statistics of an archive.

    Attributes:
        answered: Pages with a final listing.
        held: Pages with a good capture.
        only_errors: Pages with only errors and redirects.
        excluded: Pages that the archive refuses to show.
        mementos: Captures listed.
        cut_lists: Truncated listings.
        failed: Pages without a final listing by outcome; the key is empty for pages not yet queried.
        held_tlds: Pages with a good capture, by top-level domain.
        ages: Days between the last capture and the newest capture in any archive.
        fetched: Captures with a final fetch outcome.
        misses: Captures that could not be fetched, by outcome.
        failed_fetches: Transient fetch failures, by outcome.
        types: Fetched captures by type.
        sizes: Sizes of fetched captures in bytes.
        truncated: Incomplete captures.
        error_captures: Captures that turned out to be errors or redirects.
        html: HTML captures.
        noarchive: HTML captures with `noarchive`.
        robots: HTML captures with `noarchive`, by robot.
        no_cache: Captures whose Cache-Control forbids caching.
        live: Comparison with live pages.
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
        """Whether the archive returned any listing."""
        return bool(self.answered)

    @property
    def hit_rate(self) -> Proportion:
        """Share of pages with a good capture."""
        return Proportion(self.held, self.answered)

    @property
    def miss_rate(self) -> Proportion:
        """Share of listed captures that could not be fetched."""
        return Proportion(self.misses.total(), self.fetched)


@dataclass(frozen=True, slots=True)
class OverlapStats:
    """Statistics of a survey.

    Attributes:
        size: Number of pages.
        archives: Statistics of each archive, in the order given.
        unresponsive: Archives without any listing; they are excluded from the comparison.
        unsettled: Pages without a final listing of all other archives; they are excluded too.
        membership: Pages by set of archives.
        covers: Best sets of archives by size.
        minimum_covers: Minimum sets by coverage level.
        memento_covers: Archives by descending mementos, with the cumulative number of mementos.
        tlds: Top-level domain, pages, and archived pages, by descending pages.
        years: By year and archive: pages with mementos of the year, and mementos.
        year_pages: Pages with a memento of the year in any archive.
        has_live: Whether live pages were visited.
    """

    size: int
    archives: tuple[ArchiveOverlapStats, ...]
    unresponsive: tuple[str, ...]
    unsettled: int
    membership: ArchiveMembership
    covers: tuple[ArchiveCover, ...]
    minimum_covers: tuple[MinimumCover, ...]
    memento_covers: tuple[tuple[str, int], ...]
    tlds: tuple[tuple[str, int, int], ...]
    years: dict[str, dict[str, tuple[int, int]]]
    year_pages: dict[str, int]
    has_live: bool

    @property
    def mementos(self) -> int:
        """Number of mementos in all archives."""
        return sum(each.mementos for each in self.archives)


def compute_overlap_stats(state: OverlapState, archives: Sequence[str], fetch: int) -> OverlapStats:
    """Compute the statistics of what has been surveyed so far.

    Memory grows with the number of archives, of distinct archive sets, and of sampled captures.

    Args:
        state: State of the survey.
        archives: Archive ids.
        fetch: Sample size of captures per archive.
    """
    by_archive = {archive: ArchiveOverlapStats(archive) for archive in archives}
    tlds: Counter[str] = Counter()
    held_tlds: Counter[str] = Counter()
    for page, listings in state.listings_by_page():
        tld = top_level_domain(page.uri)
        tlds[tld] += 1
        held_tlds[tld] += _add_page(by_archive, [each for each in listings if each.archive in by_archive], tld)
    unresponsive = tuple(name for name, each in by_archive.items() if not each.has_answered)
    responsive = [name for name in archives if name not in unresponsive]
    membership, unsettled = _membership(state, responsive)
    covers = best_covers(membership)
    for archive_stats in by_archive.values():
        _add_captures(state, archive_stats, fetch)
    descending = sorted(by_archive.values(), key=lambda each: -each.mementos)
    memento_covers, cumulative = [], 0
    for each in descending:
        if each.mementos:
            cumulative += each.mementos
            memento_covers.append((each.archive, cumulative))
    years: dict[str, dict[str, tuple[int, int]]] = {}
    for archive, year, pages, mementos in state.mementos_by_year():
        if archive in by_archive:
            years.setdefault(year, {})[archive] = (pages, mementos)
    top = [(tld, count, held_tlds[tld]) for tld, count in sorted(tlds.items(), key=lambda each: (-each[1], each[0]))]
    others = top[MAX_TLDS:]
    if others:
        top = [*top[:MAX_TLDS], ("other", sum(each[1] for each in others), sum(each[2] for each in others))]
    return OverlapStats(
        state.size, tuple(by_archive.values()), unresponsive, unsettled, membership, tuple(covers),
        tuple(minimum_covers(membership, covers)), tuple(memento_covers), tuple(top), years,
        state.pages_by_year(archives), state.has_live(),
    )  # fmt: skip


def top_level_domain(uri: str) -> str:
    """Return the top-level domain of a URL; `number` for an IP address.

    >>> top_level_domain("http://www.a.co.uk:80/x"), top_level_domain("http://1.2.3.4/"), top_level_domain("a.example")
    ('uk', 'number', 'example')
    """
    try:
        host = urlsplit(uri if "://" in uri else f"http://{uri}").hostname or ""
    except ValueError:
        return "unknown"
    label = host.rstrip(".").rpartition(".")[2].lower()
    if not label or len(label) > _MAX_LABEL_LENGTH:
        return "unknown"
    return "number" if label.isdigit() or ":" in host else label


def _add_page(by_archive: dict[str, ArchiveOverlapStats], listings: list[ArchiveListing], tld: str) -> bool:
    """Add the listings of a page; return whether any archive contains it."""
    listing_by_archive = {each.archive: each for each in listings}
    newest = max((each.last for each in listings if each.good and each.last), default=None)
    for archive, archive_stats in by_archive.items():
        listing = listing_by_archive.get(archive)
        if listing is None or listing.outcome not in LISTING_OUTCOMES:
            archive_stats.failed["" if listing is None else listing.outcome] += 1
            continue
        archive_stats.answered += 1
        archive_stats.mementos += listing.mementos
        archive_stats.cut_lists += listing.cut
        archive_stats.excluded += listing.outcome == "excluded"
        archive_stats.only_errors += bool(listing.mementos and not listing.good)
        if listing.good:
            archive_stats.held += 1
            archive_stats.held_tlds[tld] += 1
            if listing.last and newest and (days := _days_between(listing.last, newest)) is not None:
                archive_stats.ages.append(days)
    return any(each.good for each in listings)


def _membership(state: OverlapState, archives: Sequence[str]) -> tuple[ArchiveMembership, int]:
    """Return the membership of pages with final listings of all archives, and the number of other pages."""
    indexes = {archive: index for index, archive in enumerate(archives)}
    sets: Counter[int] = Counter()
    unsettled = 0
    for _, listings in state.listings_by_page():
        final = [each for each in listings if each.archive in indexes and each.outcome in LISTING_OUTCOMES]
        if len(final) < len(archives) or not archives:
            unsettled += 1
            continue
        sets[sum(1 << indexes[each.archive] for each in final if each.good)] += 1
    return ArchiveMembership(tuple(archives), dict(sorted(sets.items()))), unsettled


def _add_captures(state: OverlapState, archive_stats: ArchiveOverlapStats, fetch: int) -> None:
    for number, outcome, snapshot in state.fetched_captures(archive_stats.archive, fetch):
        if outcome not in FETCH_OUTCOMES:
            archive_stats.failed_fetches[outcome] += 1
            continue
        archive_stats.fetched += 1
        if snapshot is None:
            archive_stats.misses[outcome] += 1
        else:
            _add_capture(archive_stats, snapshot)
        live = state.live_snapshot(number)
        if live is not None:
            _add_live(archive_stats.live, snapshot, *live)


def _add_capture(archive_stats: ArchiveOverlapStats, snapshot: PageObservation) -> None:
    archive_stats.types[_media_type_row(snapshot.mime)] += 1
    archive_stats.sizes.append(snapshot.size)
    archive_stats.truncated += snapshot.truncated is not None
    archive_stats.error_captures += snapshot.status is not None and not _OK <= snapshot.status < _OK + 100
    archive_stats.no_cache += forbids_caching(snapshot.cache_control)
    if snapshot.noarchive is not None:
        archive_stats.html += 1
        archive_stats.noarchive += bool(snapshot.noarchive)
        archive_stats.robots.update(snapshot.noarchive.split())


def _add_live(
    comparison: LiveComparison, snapshot: PageObservation | None, outcome: str, live: PageObservation | None
) -> None:
    if outcome not in LIVENESS_OUTCOMES:
        comparison.unseen[outcome] += 1
        return
    is_live = outcome == "answered" and live is not None and live.status == _OK
    comparison.silent += outcome == "silent"
    comparison.absent += outcome == "absent"
    comparison.replicated += snapshot is not None and is_live
    comparison.endangered += snapshot is not None and not is_live
    comparison.vulnerable += snapshot is None and is_live
    comparison.unrecoverable += snapshot is None and not is_live
    if not is_live or live is None:
        return
    comparison.answered += 1
    comparison.sizes.append(live.size)
    comparison.html += live.noarchive is not None
    comparison.noarchive += bool(live.noarchive)
    is_uncacheable = forbids_caching(live.cache_control)
    comparison.no_cache += is_uncacheable
    comparison.no_cache_held += is_uncacheable and snapshot is not None
    if snapshot is None:
        return
    days = None
    if live.modified is not None and (staleness := _days_between(snapshot.datetime, live.modified)) is not None:
        comparison.dated += 1
        days = max(0.0, staleness)
        if days >= 1:
            comparison.staleness.append(days)
    comparison.pairs += 1
    comparison.identical += snapshot.digest == live.digest
    if snapshot.text is not None and live.text is not None:
        texts = unpack_text(snapshot.text), unpack_text(live.text)
        if not any(char.isalnum() for text in texts for char in text):
            return  # no text to compare
        similarity = 1.0 if snapshot.digest == live.digest else text_resemblance(*texts)
        comparison.similarities.append(similarity)
        if days is not None:
            comparison.points.append((days, similarity))


def _media_type_row(mime: str | None) -> str:
    name = format_of(mime or UNKNOWN_TYPE)
    if name in ("html", "pdf"):
        return name.upper()
    if mime == "text/plain":
        return "plain text"
    if mime and is_document(mime):
        return "Office"
    if mime and mime.startswith("image/"):
        return "images"
    return "unknown" if mime is None or mime == UNKNOWN_TYPE else "other"


def _days_between(first: str, second: str) -> float | None:
    """Return the whole days between two 14-digit dates; None if one of them is invalid."""
    try:
        return float((to_datetime(second) - to_datetime(first)).days)
    except DateError:
        return None
