"""What a recovery has so far, in numbers: counted in one pass, in memory that does not grow with the site."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from unlost.formats.media_types import UNKNOWN
from unlost.pages.link import Use
from unlost.recover.report.kinds import kind_of
from unlost.recover.state.chosen import Chosen
from unlost.recover.state.ended import Ended
from unlost.recover.state.reading import StateReading
from unlost.recover.state.resources import Standing

MOST_TYPES = 40
"""Rows of media types: there are about so many that mean anything, and headers can have any."""

_MOST_COUNTED = 5_000  # different types, before all others are counted as one
_MOST_LETTERS = 80  # of a type


@dataclass(slots=True)
class Figures:
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
    parts: list[int] = field(default_factory=lambda: [0, 0])
    kinds: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    other_types: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    archives: Counter[str] = field(default_factory=Counter)
    also: Counter[str] = field(default_factory=Counter)
    months: Counter[str] = field(default_factory=Counter)
    first: str | None = None
    last: str | None = None
    begun: str | None = None
    ended: str | None = None
    rejected: Counter[str] = field(default_factory=Counter)
    rejected_by: Counter[str] = field(default_factory=Counter)
    asked: dict[str, int] = field(default_factory=dict)
    lists: list[tuple[str, str, str | None]] = field(default_factory=list)
    trapped: dict[str, int] = field(default_factory=dict)
    doubtful: int = 0
    substituted: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
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

    def outcomes(self) -> list[tuple[str, int]]:
        """Return how many resources ended how: each is counted once, but for those that are still queued."""
        left_out = sum(self.left_out.values())
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
        return sum(self.asked.values())

    def archive_ids(self) -> list[str]:
        """Return all archives that had to do with it, those first that gave most."""
        every = {*self.archives, *self.also, *self.rejected_by, *self.asked, *(name for name, _, _ in self.lists)}
        return sorted(every, key=lambda name: (-self.archives[name], -self.also[name], name))

    def most_types(self) -> tuple[list[tuple[str, int]], tuple[int, int]]:
        """Return the most frequent media types, and how many others there are, and of how many resources."""
        ordered = sorted(self.types.items(), key=lambda each: (-each[1], each[0]))
        rest = ordered[MOST_TYPES:]
        return ordered[:MOST_TYPES], (len(rest), self.other_types + sum(count for _, count in rest))

    def count(self, each: Ended) -> None:
        """Count one that was recovered, or is missing."""
        chosen = each.chosen
        is_missing = chosen is None
        (self.parts if each.use == Use.REQUISITE else self.pages)[is_missing] += 1
        if chosen is None:
            self.missing += 1
            self.reasons[each.reason or ""] += 1
        else:
            self.substituted += each.substitute is not None
            self._count_copy(chosen)
            self.also.update(name for name, _ in each.holders if name != chosen.archive)

    def _count_copy(self, chosen: Chosen) -> None:
        self.recovered += 1
        self.kinds[kind_of(chosen.mime, chosen.status)] += 1
        mime = (chosen.mime or UNKNOWN)[:_MOST_LETTERS]
        if mime in self.types or len(self.types) < _MOST_COUNTED:
            self.types[mime] += 1
        else:
            self.other_types += 1
        self.archives[chosen.archive or ""] += 1
        self.months[chosen.datetime[:6]] += 1
        self.first = min(self.first or chosen.datetime, chosen.datetime)
        self.last = max(self.last or chosen.datetime, chosen.datetime)
        self.begun = min(self.begun or chosen.recovered, chosen.recovered)
        self.ended = max(self.ended or chosen.recovered, chosen.recovered)


def figures_of(state: StateReading, on_each: Callable[[Ended], object] | None = None) -> Figures:
    """Return the numbers of a recovery. on_each: is given every resource that was recovered or is missing, in order.

    Raises InputError, OSError.
    """
    plan = state.plan()
    found = Figures(url=plan.url if plan else None, asked=state.asked(), lists=state.lists(), trapped=state.trapped())
    for each in state.ended():
        found.count(each)
        if on_each is not None:
            on_each(each)
    for copy in state.rejected():
        found.rejected[copy.kind] += 1
        found.rejected_by[copy.archive or ""] += 1
        found.doubtful += copy.is_chosen
    found.left_out = state.left_out_counts()
    found.captures, found.queries = state.listed_captures(), state.single_queries()
    found.other_host_lookups = state.other_host_lookups
    counts = state.counts()
    found.queued = counts.get(Standing.QUEUED.value, 0)
    found.listed = counts.get(Standing.LISTED.value, 0)
    return found
