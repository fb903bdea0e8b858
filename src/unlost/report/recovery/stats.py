"""Statistics of a recovery, counted in one pass over its state, in bounded memory."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from unlost.html.links import LinkKind
from unlost.media_types import UNKNOWN_TYPE, format_of, group_of, is_document
from unlost.recover.state.queries import ChosenCapture, FinishedResource
from unlost.recover.state.reader import StateReader
from unlost.recover.state.resources import ResourceStatus

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
"""All kinds, in the order in which they are shown."""
_FONTS = frozenset({"application/vnd.ms-fontobject", "application/x-font-ttf", "application/x-font-woff"})
_BY_FORMAT = {"javascript": "scripts", "text/css": "style sheets", "text/plain": "plain text"}
_DATA_FORMATS = frozenset({"xml", "json", "feed", "text/csv"})


def resource_kind(mime: str | None, status: int | None) -> str:
    """Return the kind of a copy by its media type and its status.

    >>> resource_kind("text/html", 200), resource_kind("text/html", 301), resource_kind("application/pdf", 200), resource_kind(None, None)
    ('pages', 'redirects', 'documents', 'other')
    """
    if status is not None and 300 <= status < 400:
        return REDIRECTS
    told = mime or UNKNOWN_TYPE
    group = group_of(told)
    if group != "other":
        return "pages" if group == "HTML" else group
    if is_document(told):
        return "documents"
    if told.startswith(("font/", "application/font-")) or told in _FONTS:
        return "fonts"
    if told.startswith(("audio/", "video/")):
        return "sound and video"
    spelled = format_of(told)
    return "feeds and data" if spelled in _DATA_FORMATS else _BY_FORMAT.get(spelled, "other")


MAX_TYPES = 40
"""Rows of media types: there are about so many that mean anything, and headers can have any."""
_MAX_COUNTED_TYPES = 5_000  # different types, before all others are counted as one
_MAX_TYPE_LENGTH = 80  # of a type


@dataclass(slots=True)
class RecoveryStats:
    """Numbers of resources, unless something else is said.

    url: where the recovery began; None if it has not. queued: wanted, and not yet looked for; those that came back
        before are not among them. listed: archives list them, and nothing that came back leads to them.
    pages, parts: that came back, then that are missing: pages, and what pages are shown with.
    kinds, types: that came back, by kind in a word, and by media type. other_types: those counted as one, and how many
        resources have them.
    reasons: that are missing, by the reason. archives: that came back, by archive. also: that came back, by the other
        archives that list them.
    months: that came back, by the month of the copy (6 digits). first, last: the oldest and the newest copy that was
        chosen, 14 digits; None if there is none. begun, ended: when the first and the last copy came, the same.
    rejected: copies, by verdict. rejected_by: copies, by archive.
    asked: requests over all runs, by archive. lists: of archives, what came of each and what was wrong.
    trapped: links that were not followed, by the reason in words.
    doubtful: of those that came back, how many have only a capture that the quality verdict speaks against.
    substituted: of those that came back, how many are shown by the capture of a URL with another query.
    left_out: listed and not fetched, by the reason, as `listing_filter` has it; empty where no link points to them.
    captures: known captures by archive. queries: outcomes of queries for single URLs, by archive.
    other_host_lookups: queries for what pages need from other hosts.
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
        """How many were looked for."""
        return self.recovered + self.missing

    @property
    def share(self) -> float | None:
        """The share of them that came back; None of nothing."""
        return self.recovered / self.total if self.total else None

    @property
    def never_archived(self) -> int:
        """How many are linked, and no archive has them."""
        return self.reasons["not-held"]

    def count_outcomes(self) -> list[tuple[str, int]]:
        """Return how many resources ended how: each is counted once, but for those that are still queued."""
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
        """How many requests were sent over all runs."""
        return sum(self.requests_by_archive.values())

    def archive_ids(self) -> list[str]:
        """Return all archives that had to do with it, those first that gave most."""
        every = {
            *self.archives,
            *self.also_listed,
            *self.rejected_by,
            *self.requests_by_archive,
            *(name for name, _, _ in self.listings),
        }
        return sorted(every, key=lambda name: (-self.archives[name], -self.also_listed[name], name))

    def top_types(self) -> tuple[list[tuple[str, int]], tuple[int, int]]:
        """Return the most frequent media types, and how many others there are, and of how many resources."""
        ordered = sorted(self.types.items(), key=lambda each: (-each[1], each[0]))
        rest = ordered[MAX_TYPES:]
        return ordered[:MAX_TYPES], (len(rest), self.other_types + sum(count for _, count in rest))

    def count(self, each: FinishedResource) -> None:
        """Count one that was recovered, or is missing."""
        chosen = each.chosen
        is_missing = chosen is None
        (self.requisites if each.link_kind == LinkKind.REQUISITE else self.pages)[is_missing] += 1
        if chosen is None:
            self.missing += 1
            self.reasons[each.reason or ""] += 1
        else:
            self.substituted += each.substitute is not None
            self._count_capture(chosen)
            self.also_listed.update(name for name, _ in each.holders if name != chosen.archive)

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
    """Return the numbers of a recovery. on_each: is given every resource that was recovered or is missing, in order.

    Raises InputError, OSError.
    """
    plan = state.options()
    found = RecoveryStats(
        url=plan.url if plan else None,
        requests_by_archive=state.requests_by_archive(),
        listings=state.listing_outcomes(),
        skipped_links=state.skipped_links(),
    )
    for each in state.finished_resources():
        found.count(each)
        if on_resource is not None:
            on_resource(each)
    for copy in state.rejected():
        found.rejected[copy.kind] += 1
        found.rejected_by[copy.archive or ""] += 1
        found.doubtful += copy.is_chosen
    found.skipped = state.count_skipped()
    found.captures, found.queries = state.listed_captures(), state.query_outcomes()
    found.other_host_lookups = state.other_host_lookups
    counts = state.counts()
    found.queued = counts.get(ResourceStatus.QUEUED.value, 0)
    found.listed = counts.get(ResourceStatus.LISTED.value, 0)
    return found
