"""Statistics of a recovery, counted in one pass over its database, in bounded memory."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape

from unlost.html.links import LinkKind
from unlost.media_types import UNKNOWN_TYPE, format_of, group_of, is_document
from unlost.recovery.state.queries import ChosenCapture, FinishedResource
from unlost.recovery.state.reader import StateReader
from unlost.recovery.state.resources import ResourceStatus
from unlost.report.i18n import Translations

REDIRECTS = "redirects"
RESOURCE_KINDS = (
    "pages",
    "images",
    "style sheets",
    "scripts",
    "documents",
    "fonts",
    "sound and video",
    "feeds and data",
    "plain text",
    REDIRECTS,
    "other",
)
"""All kinds in the order of display."""
_FONTS = frozenset({"application/vnd.ms-fontobject", "application/x-font-ttf", "application/x-font-woff"})
_BY_FORMAT = {"javascript": "scripts", "text/css": "style sheets", "text/plain": "plain text"}
_DATA_FORMATS = frozenset({"xml", "json", "feed", "text/csv"})


def resource_kind(mime: str | None, status: int | None) -> str:
    """Return the kind of a capture by its media type and status.

    >>> resource_kind("text/html", 200), resource_kind("text/html", 301)
    ('pages', 'redirects')
    >>> resource_kind("application/pdf", 200), resource_kind(None, None)
    ('documents', 'other')
    """
    if status is not None and 300 <= status < 400:
        return REDIRECTS
    media_type = mime or UNKNOWN_TYPE
    group = group_of(media_type)
    if group != "other":
        return "pages" if group == "HTML" else group
    if is_document(media_type):
        return "documents"
    if media_type.startswith(("font/", "application/font-")) or media_type in _FONTS:
        return "fonts"
    if media_type.startswith(("audio/", "video/")):
        return "sound and video"
    format_name = format_of(media_type)
    return "feeds and data" if format_name in _DATA_FORMATS else _BY_FORMAT.get(format_name, "other")


MAX_TYPES = 40
"""Maximum number of media types that a report lists; headers may contain any number of invalid ones."""
_MAX_COUNTED_TYPES = 5_000  # distinct types; all others are counted as one
_MAX_TYPE_LENGTH = 80


@dataclass(slots=True)
class RecoveryStats:
    """Statistics of a recovery. Counters are numbers of resources unless stated otherwise.

    Attributes:
        url: The start URL; None if no run was started.
        recovered: Recovered resources.
        missing: Missing resources.
        queued: Resources in the queue, without those that were recovered before.
        listed: Resources that archives list and no recovered page links to.
        pages: Recovered and missing pages.
        requisites: Recovered and missing page requisites.
        kinds: Recovered resources by kind.
        types: Recovered resources by media type.
        other_types: Recovered resources of types beyond the limit on distinct types.
        reasons: Missing resources by reason.
        archives: Recovered resources by archive.
        also_listed: Recovered resources by other archives that list them.
        months: Recovered resources by month of the capture, 6 digits.
        first: Datetime of the oldest chosen capture, 14 digits; None without any.
        last: Datetime of the newest chosen capture, 14 digits; None without any.
        started: When the first capture was recovered, 14 digits; None without any.
        ended: When the last capture was recovered, 14 digits; None without any.
        rejected: Rejected captures by verdict.
        rejected_by: Rejected captures by archive.
        requests_by_archive: Requests over all runs.
        listings: Archive, status and error message of each listing query.
        skipped_links: Links that were not followed, by reason.
        doubtful: Recovered resources whose only captures were rejected by the classifier.
        substituted: Recovered resources that are replaced by the capture of a URL with another query.
        skipped: Listed resources that were not fetched, by reason; the reason is empty if no link points to them.
        captures: Known captures by archive.
        queries: Outcomes of queries for single URLs by archive.
        other_host_lookups: Queries for page requisites on other hosts.
    """

    url: str | None = None
    recovered: int = 0
    missing: int = 0
    queued: int = 0
    listed: int = 0
    pages: list[int] = field(default_factory=lambda: [0, 0])
    requisites: list[int] = field(default_factory=lambda: [0, 0])
    kinds: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    other_types: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    archives: Counter[str] = field(default_factory=Counter)
    also_listed: Counter[str] = field(default_factory=Counter)
    months: Counter[str] = field(default_factory=Counter)
    first: str | None = None
    last: str | None = None
    started: str | None = None
    ended: str | None = None
    rejected: Counter[str] = field(default_factory=Counter)
    rejected_by: Counter[str] = field(default_factory=Counter)
    requests_by_archive: dict[str, int] = field(default_factory=dict)
    listings: list[tuple[str, str, str | None]] = field(default_factory=list)
    skipped_links: dict[str, int] = field(default_factory=dict)
    doubtful: int = 0
    substituted: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    captures: dict[str, int] = field(default_factory=dict)
    queries: dict[str, dict[str, int]] = field(default_factory=dict)
    other_host_lookups: int = 0

    @property
    def total(self) -> int:
        """Number of recovered and missing resources."""
        return self.recovered + self.missing

    @property
    def share(self) -> float | None:
        """Share of recovered resources; None if there are no resources."""
        return self.recovered / self.total if self.total else None

    @property
    def never_archived(self) -> int:
        """Number of linked resources that no archive has."""
        return self.reasons["not-held"]

    def count_outcomes(self) -> list[tuple[str, int]]:
        """Return the number of resources by outcome. Each finished resource is counted once."""
        left_out = sum(self.skipped.values())
        return [
            ("recovered", self.recovered - self.doubtful - self.substituted),
            ("doubtful", self.doubtful),
            ("substituted", self.substituted),
            ("missing-listed", self.missing - self.never_archived),
            ("never-archived", self.never_archived),
            ("left-out", left_out),
        ]

    @property
    def requests(self) -> int:
        """Number of requests over all runs."""
        return sum(self.requests_by_archive.values())

    def archive_ids(self) -> list[str]:
        """Return all archives involved, those with most recovered resources first."""
        involved = {
            *self.archives,
            *self.also_listed,
            *self.rejected_by,
            *self.requests_by_archive,
            *(name for name, _, _ in self.listings),
        }
        return sorted(involved, key=lambda name: (-self.archives[name], -self.also_listed[name], name))

    def top_types(self) -> tuple[list[tuple[str, int]], tuple[int, int]]:
        """Return the most frequent media types, and the number of other types and of their resources."""
        ordered = sorted(self.types.items(), key=lambda each: (-each[1], each[0]))
        others = ordered[MAX_TYPES:]
        return ordered[:MAX_TYPES], (len(others), self.other_types + sum(count for _, count in others))

    def count(self, resource: FinishedResource) -> None:
        """Count a recovered or missing resource."""
        chosen = resource.chosen
        is_missing = chosen is None
        (self.requisites if resource.link_kind == LinkKind.REQUISITE else self.pages)[is_missing] += 1
        if chosen is None:
            self.missing += 1
            self.reasons[resource.reason or ""] += 1
        else:
            self.substituted += resource.substitute is not None
            self._count_capture(chosen)
            self.also_listed.update(name for name, _ in resource.holders if name != chosen.archive)

    def _count_capture(self, chosen: ChosenCapture) -> None:
        self.recovered += 1
        self.kinds[resource_kind(chosen.mime, chosen.status)] += 1
        mime = (chosen.mime or UNKNOWN_TYPE)[:_MAX_TYPE_LENGTH]
        if mime in self.types or len(self.types) < _MAX_COUNTED_TYPES:
            self.types[mime] += 1
        else:
            self.other_types += 1
        self.archives[chosen.archive or ""] += 1
        self.months[chosen.datetime[:6]] += 1
        self.first = min(self.first or chosen.datetime, chosen.datetime)
        self.last = max(self.last or chosen.datetime, chosen.datetime)
        self.started = min(self.started or chosen.recovered, chosen.recovered)
        self.ended = max(self.ended or chosen.recovered, chosen.recovered)


def collect_stats(state: StateReader, on_resource: Callable[[FinishedResource], object] | None = None) -> RecoveryStats:
    """Return the statistics of a recovery.

    Args:
        state: The database.
        on_resource: Called with every recovered or missing resource, in order.

    Raises:
        InputError: The database is invalid.
        OSError: The database cannot be read.
    """
    options = state.options()
    stats = RecoveryStats(
        url=options.url if options else None,
        requests_by_archive=state.requests_by_archive(),
        listings=state.listing_outcomes(),
        skipped_links=state.skipped_links(),
    )
    for each in state.finished_resources():
        stats.count(each)
        if on_resource is not None:
            on_resource(each)
    for rejected in state.rejected():
        stats.rejected[rejected.kind] += 1
        stats.rejected_by[rejected.archive or ""] += 1
        stats.doubtful += rejected.is_chosen
    stats.skipped = state.count_skipped()
    stats.captures, stats.queries = state.listed_captures(), state.query_outcomes()
    stats.other_host_lookups = state.other_host_lookups
    counts = state.counts()
    stats.queued = counts.get(ResourceStatus.QUEUED.value, 0)
    stats.listed = counts.get(ResourceStatus.LISTED.value, 0)
    return stats


_MAX_BARS = 60  # a bar is then five pixels wide on a phone
_MAX_MONTHS = 36  # for longer periods, bars are years
_HEIGHT = 100  # of the picture in user units; a bar is 10 wide
_MIN_BAR_HEIGHT = 1.5  # so that a single capture is visible
_STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # years


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """A period and its number of captures.

    Attributes:
        first: The first month or year, in ISO 8601.
        count: Number of captures.
        last: The last year if the bar spans several years.
    """

    first: str
    count: int
    last: str | None = None

    @property
    def label(self) -> str:
        """The period, independent of the language."""
        return self.first if self.last is None else f"{self.first} to {self.last}"

    def localized_label(self, t: Translations) -> str:
        """Return the period in a language."""
        return self.first if self.last is None else t("time.years", first=self.first, last=self.last)


def timeline_bars(months: Mapping[str, int]) -> list[TimelineBar]:
    """Return bars without gaps from the first to the last month; each is a month, a year, or several years.

    Args:
        months: Number of captures by month, 6 digits. An invalid month is moved into its year.

    >>> [(bar.label, bar.count) for bar in timeline_bars({"201104": 2, "201106": 1})]
    [('2011-04', 2), ('2011-05', 0), ('2011-06', 1)]
    >>> [bar.label for bar in timeline_bars({"199601": 1, "201201": 1})][:2], timeline_bars({})
    (['1996', '1997'], [])
    """
    if not months:
        return []
    # Months are numbered from year 0.
    counts: dict[int, int] = {}
    for digits, count in months.items():
        month = min(max(int(digits[4:6]), 1), 12)
        number = 12 * int(digits[:4]) + month - 1
        counts[number] = counts.get(number, 0) + count
    first, last = min(counts), max(counts)
    if last - first < _MAX_MONTHS:
        return [
            TimelineBar(f"{each // 12:04}-{each % 12 + 1:02}", counts.get(each, 0)) for each in range(first, last + 1)
        ]
    return _by_years(counts, first // 12, last // 12)


def _by_years(counts: Mapping[int, int], first: int, last: int) -> list[TimelineBar]:
    step = next(each for each in _STEPS if last // each - first // each < _MAX_BARS)
    sums: dict[int, int] = {}
    for month, count in counts.items():
        index = month // 12 // step
        sums[index] = sums.get(index, 0) + count
    bars = []
    for index in range(first // step, last // step + 1):
        start, end = index * step, index * step + step - 1
        bars.append(TimelineBar(f"{start:04}", sums.get(index, 0), None if step == 1 else f"{end:04}"))
    return bars


def render_timeline(bars: list[TimelineBar], t: Translations) -> str:
    """Return the bars as an SVG element that scales to its container. The same bars yield the same bytes.

    It contains no untrusted text, and no text but titles, because labels would be distorted by scaling.
    """
    maximum = max((bar.count for bar in bars), default=0)
    shapes = []
    for index, bar in enumerate(bars):
        if bar.count:
            height = max(_MIN_BAR_HEIGHT, _HEIGHT * bar.count / maximum)
            attributes = f'x="{10 * index + 1}" y="{_HEIGHT - height:.2f}" width="8" height="{height:.2f}"'
            shapes.append(
                f"<rect {attributes}><title>{escape(bar.localized_label(t))}: {t.number(bar.count)}</title></rect>"
            )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {10 * max(len(bars), 1)} {_HEIGHT}" '
        f'preserveAspectRatio="none" role="img" aria-labelledby="timeline-title timeline-text">'
        f'<title id="timeline-title">{escape(t("time.line"))}</title>'
        f'<desc id="timeline-text">{escape(describe_timeline(bars, t))}</desc>'
        f"{''.join(shapes)}</svg>"
    )


def describe_timeline(bars: list[TimelineBar], t: Translations) -> str:
    """Return a sentence that describes the bars.

    >>> from unlost.report.recovery.text import report_strings
    >>> bars = [TimelineBar("2011", 3), TimelineBar("2012", 0), TimelineBar("2013", 5)]
    >>> describe_timeline(bars, report_strings("en"))
    '8 captures, from 2011 to 2013; maximum 5 (2013).'
    """
    if not bars:
        return t("time.none")
    copies = t("time.copies", sum(bar.count for bar in bars))
    first = bars[0].localized_label(t)
    if len(bars) == 1:
        return t("time.single", copies=copies, first=first)
    largest = max(bars, key=lambda bar: bar.count)
    return t(
        "time.several",
        copies=copies,
        first=first,
        last=bars[-1].localized_label(t),
        most=t.number(largest.count),
        top=largest.localized_label(t),
    )
