"""Statistics of an overlap survey, for each archive and for all."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from unlost.research.page_snapshot import ALL_ROBOTS, PageObservation, decompress_text, forbids_caching
from unlost.research.set_cover import ArchiveCover, ArchiveMembership, MinimumCover, best_covers, minimum_covers
from unlost.statistics import Proportion


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
        replicated: Capture fetched, page live.
        endangered: Capture fetched, page not live.
        vulnerable: Capture missing, page live.
        unrecoverable: Capture missing, page not live.
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
        silent: Pages not live because the server did not respond.
        absent: Pages not live because of a soft 404.
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


MAX_TLDS = 15
"""Top-level domains in the table; all others are summed in one row."""
_MAX_LABEL_LENGTH = 63  # octets (RFC 1035, section 2.3.4)
_OK = 200


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
        texts = decompress_text(snapshot.text), decompress_text(live.text)
        if not any(char.isalnum() for text in texts for char in text):
            return  # no text to compare
        similarity = 1.0 if snapshot.digest == live.digest else text_resemblance(*texts)
        comparison.similarities.append(similarity)
        if days is not None:
            comparison.points.append((days, similarity))


def _media_type_row(mime: str | None) -> str:
    """Return the row label of a media type."""
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


def robots_by_count(archive_stats: ArchiveOverlapStats) -> list[tuple[str, int]]:
    """Return the robots addressed by `noarchive`, `robots` first, then by descending count."""
    return sorted(archive_stats.robots.items(), key=lambda each: (each[0] != ALL_ROBOTS, -each[1], each[0]))
