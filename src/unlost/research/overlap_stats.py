"""Statistics of an overlap survey, by archive and overall."""

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
    """How values lie. count: how many there are; the others are None of none, `deviation` also of one."""

    count: int
    mean: float | None = None
    median: float | None = None
    deviation: float | None = None
    least: float | None = None
    most: float | None = None


def summarize_values(values: Sequence[float]) -> ValueSummary:
    """Return how values lie.

    >>> summarize_values([1, 2, 6])
    ValueSummary(count=3, mean=3.0, median=2, deviation=2.6457513110645907, least=1, most=6)
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


MAX_TLDS = 15
"""Top-level domains that are listed; all others are one row."""
_MAX_LABEL_LENGTH = 63  # of a label
_OK = 200


@dataclass(frozen=True, slots=True)
class OverlapStats:
    """All numbers.

    size: pages of the list. archives: in the order in which they were given. left_out: archives that answered nothing,
        which are not among those that overlap. unsettled: pages that not all others have answered for, which are not
        counted there either.
    membership, choices, fewest: who holds what, as far as that is settled. memento_choices: archive, and how many of
        all mementos the archives up to it list.
    tlds: pages of the list by top-level domain, most first; pages held by anybody, the same.
    years: year, then by archive pages with a copy of it, and copies. year_pages: pages with a copy of it anywhere.
    has_live: whether the live web was looked at.
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
        """How many mementos all archives list together."""
        return sum(each.mementos for each in self.archives)


def compute_overlap_stats(state: OverlapState, archives: Sequence[str], fetch: int) -> OverlapStats:
    """Return the numbers of what is known so far. fetch: how many copies of each archive belong to the sample.

    Memory grows with the archives, with the sets of them that hold pages, and with the copies of the samples.
    """
    standings = {archive: ArchiveOverlapStats(archive) for archive in archives}
    tlds: Counter[str] = Counter()
    held_tlds: Counter[str] = Counter()
    for page, answers in state.listings_by_page():
        tld = top_level_domain(page.uri)
        tlds[tld] += 1
        held_tlds[tld] += _add_page(standings, [each for each in answers if each.archive in standings], tld)
    silent = tuple(name for name, each in standings.items() if not each.has_answered)
    counted = [name for name in archives if name not in silent]
    membership, unsettled = _membership(state, counted)
    choices = best_covers(membership)
    for standing in standings.values():
        _add_captures(state, standing, fetch)
    listed = sorted(standings.values(), key=lambda each: -each.mementos)
    memento_choices, so_far = [], 0
    for each in listed:
        if each.mementos:
            so_far += each.mementos
            memento_choices.append((each.archive, so_far))
    years: dict[str, dict[str, tuple[int, int]]] = {}
    for archive, year, pages, mementos in state.mementos_by_year():
        if archive in standings:
            years.setdefault(year, {})[archive] = (pages, mementos)
    top = [(tld, count, held_tlds[tld]) for tld, count in sorted(tlds.items(), key=lambda each: (-each[1], each[0]))]
    rest = top[MAX_TLDS:]
    if rest:
        top = [*top[:MAX_TLDS], ("other", sum(each[1] for each in rest), sum(each[2] for each in rest))]
    return OverlapStats(
        state.size, tuple(standings.values()), silent, unsettled, membership, tuple(choices),
        tuple(minimum_covers(membership, choices)), tuple(memento_choices), tuple(top), years,
        state.pages_by_year(archives), state.has_live(),
    )  # fmt: skip


def top_level_domain(uri: str) -> str:
    """Return the top-level domain of an address, `number` for one without a name.

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


def _add_page(standings: dict[str, ArchiveOverlapStats], answers: list[ArchiveListing], tld: str) -> bool:
    """Count what was said of a page; return whether any archive holds it."""
    said = {each.archive: each for each in answers}
    newest = max((each.last for each in answers if each.good and each.last), default=None)
    for archive, standing in standings.items():
        answer = said.get(archive)
        if answer is None or answer.outcome not in LISTING_OUTCOMES:
            standing.failed["" if answer is None else answer.outcome] += 1
            continue
        standing.answered += 1
        standing.mementos += answer.mementos
        standing.cut_lists += answer.cut
        standing.excluded += answer.outcome == "excluded"
        standing.only_errors += bool(answer.mementos and not answer.good)
        if answer.good:
            standing.held += 1
            standing.held_tlds[tld] += 1
            if answer.last and newest and (days := _days_between(answer.last, newest)) is not None:
                standing.ages.append(days)
    return any(each.good for each in answers)


def _membership(state: OverlapState, archives: Sequence[str]) -> tuple[ArchiveMembership, int]:
    """Return who holds what, of pages that all archives answered for, and how many others there are."""
    places = {archive: place for place, archive in enumerate(archives)}
    sets: Counter[int] = Counter()
    unsettled = 0
    for _, answers in state.listings_by_page():
        said = [each for each in answers if each.archive in places and each.outcome in LISTING_OUTCOMES]
        if len(said) < len(archives) or not archives:
            unsettled += 1
            continue
        sets[sum(1 << places[each.archive] for each in said if each.good)] += 1
    return ArchiveMembership(tuple(archives), dict(sorted(sets.items()))), unsettled


def _add_captures(state: OverlapState, standing: ArchiveOverlapStats, fetch: int) -> None:
    for number, outcome, seen in state.fetched_captures(standing.archive, fetch):
        if outcome not in FETCH_OUTCOMES:
            standing.failed_fetches[outcome] += 1
            continue
        standing.fetched += 1
        if seen is None:
            standing.misses[outcome] += 1
        else:
            _add_capture(standing, seen)
        live = state.live_snapshot(number)
        if live is not None:
            _add_live(standing.live, seen, *live)


def _add_capture(standing: ArchiveOverlapStats, seen: PageObservation) -> None:
    standing.types[_media_type_row(seen.mime)] += 1
    standing.sizes.append(seen.size)
    standing.truncated += seen.truncated is not None
    standing.error_captures += seen.status is not None and not _OK <= seen.status < _OK + 100
    standing.no_cache += forbids_caching(seen.cache_control)
    if seen.noarchive is not None:
        standing.html += 1
        standing.noarchive += bool(seen.noarchive)
        standing.robots.update(seen.noarchive.split())


def _add_live(found: LiveComparison, seen: PageObservation | None, outcome: str, live: PageObservation | None) -> None:
    if outcome not in LIVENESS_OUTCOMES:
        found.unseen[outcome] += 1
        return
    is_live = outcome == "answered" and live is not None and live.status == _OK
    found.silent += outcome == "silent"
    found.absent += outcome == "absent"
    found.replicated += seen is not None and is_live
    found.endangered += seen is not None and not is_live
    found.vulnerable += seen is None and is_live
    found.unrecoverable += seen is None and not is_live
    if not is_live or live is None:
        return
    found.answered += 1
    found.sizes.append(live.size)
    found.html += live.noarchive is not None
    found.noarchive += bool(live.noarchive)
    is_refusing = forbids_caching(live.cache_control)
    found.no_cache += is_refusing
    found.no_cache_held += is_refusing and seen is not None
    if seen is None:
        return
    days = None
    if live.modified is not None and (behind := _days_between(seen.datetime, live.modified)) is not None:
        found.dated += 1
        days = max(0.0, behind)
        if days >= 1:
            found.staleness.append(days)
    found.pairs += 1
    found.identical += seen.digest == live.digest
    if seen.text is not None and live.text is not None:
        texts = decompress_text(seen.text), decompress_text(live.text)
        if not any(char.isalnum() for text in texts for char in text):
            return  # nothing says that they are alike
        alike = 1.0 if seen.digest == live.digest else text_resemblance(*texts)
        found.similarities.append(alike)
        if days is not None:
            found.points.append((days, alike))


def _media_type_row(mime: str | None) -> str:
    """Return the row of a media type in the table of types."""
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
    """Return the whole days from one date to another, of 14 digits each; None if one is no date."""
    try:
        return float((to_datetime(second) - to_datetime(first)).days)
    except DateError:
        return None


def robots_by_count(standing: ArchiveOverlapStats) -> list[tuple[str, int]]:
    """Return whom pages with `noarchive` name, all robots first."""
    return sorted(standing.robots.items(), key=lambda each: (each[0] != ALL_ROBOTS, -each[1], each[0]))
