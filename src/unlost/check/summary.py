"""Statistics of a check in one pass over its resources, and advice on how to make more of the site recoverable."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from unlost import dates
from unlost.check.availability import (
    AvailabilityScore,
    AvailabilityState,
    ResourceAvailability,
    StalenessStats,
    summarize_staleness,
)
from unlost.media_types import group_of

# The next three constants only define groups. The benefit of a change is estimated by comparing a group with the rest
# of the site, so their exact values matter little.
DEEP_HOPS = 4
"""Minimum number of links between the home page and a deep page."""
DEEP_PATH = 5
"""Minimum number of path segments of a deep page."""
NEW_DAYS = 30
"""Days during which a URL counts as new."""
_MAX_ADVICE = 5  # pieces of advice in a report
_MAX_EXAMPLES = 3


class Hindrance(StrEnum):
    """Why archives may lack a resource, the most certain reason first. A resource counts for its first reason only."""

    ROBOTS = "robots"
    NOARCHIVE = "noarchive"
    UNLINKED = "unlinked"
    QUERY = "query"
    DEEP = "deep"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Advice:
    """One recommended change.

    Attributes:
        hindrance: The hindrance that it removes; None for submitting URLs to archives.
        affected: Number of vulnerable resources with the hindrance.
        saved: Number of those that are expected to be archived without it, at the rate of resources without any
            hindrance.
        examples: Some of their URLs.
    """

    hindrance: Hindrance | None
    affected: int
    saved: int
    examples: tuple[str, ...] = ()


@dataclass(slots=True)
class _HindranceGroup:
    held: int = 0
    absent: int = 0
    examples: list[str] = field(default_factory=list)


class Advisor:
    """Collects the resources on the web, and recommends changes.

    Args:
        now: Date of the check, 14 digits; decides which URLs are new.
        knows_links: Whether links were followed. A plain list of URLs has no unlinked pages.
    """

    def __init__(self, now: str, *, knows_links: bool = True) -> None:
        self._tests = {
            each: test for each, test in _HINDRANCE_TESTS.items() if knows_links or each is not Hindrance.UNLINKED
        }
        self._since = dates.from_datetime(dates.to_datetime(now) - timedelta(days=NEW_DAYS))
        self._groups: dict[Hindrance | None, _HindranceGroup] = {}

    def add(self, availability: ResourceAvailability) -> None:
        """Add one resource. Resources that are not on the web or of unknown availability are ignored."""
        is_held = availability.is_held
        if not availability.is_live or is_held is None:
            return
        group = self._groups.setdefault(self._hindrance(availability), _HindranceGroup())
        if is_held:
            group.held += 1
            return
        group.absent += 1
        if len(group.examples) < _MAX_EXAMPLES:
            group.examples.append(availability.live.uri)

    def advice(self) -> list[Advice]:
        """Return the advice, the most effective first. The last piece is to submit all vulnerable URLs to archives."""
        unhindered = self._groups.get(None, _HindranceGroup())
        base_rate = (
            unhindered.held / (unhindered.held + unhindered.absent) if unhindered.held + unhindered.absent else 1.0
        )
        advice = []
        for hindrance, group in self._groups.items():
            if hindrance is not None and group.absent:
                expected = base_rate * (group.held + group.absent) - group.held
                saved = min(group.absent, max(0, round(expected)))
                advice.append(Advice(hindrance, group.absent, saved, tuple(group.examples)))
        order = list(Hindrance)
        advice.sort(key=lambda each: (-each.saved, -each.affected, order.index(each.hindrance or Hindrance.NEW)))
        vulnerable = sum(group.absent for group in self._groups.values())
        last = [Advice(None, vulnerable, vulnerable, tuple(unhindered.examples))] if vulnerable else []
        return [*advice[:_MAX_ADVICE], *last]

    def _hindrance(self, availability: ResourceAvailability) -> Hindrance | None:
        return next((hindrance for hindrance, test in self._tests.items() if test(availability, self._since)), None)


def _is_new(availability: ResourceAvailability, since: str) -> bool:
    """Return whether a URL is new: first seen, or on unwatched sites last modified, after `since`."""
    known_dates = [each for each in (availability.first_seen, availability.live.last_modified) if each is not None]
    return bool(known_dates) and min(known_dates) > since


def _is_deep(availability: ResourceAvailability, _: str) -> bool:
    hops = availability.live.hops
    return (hops is not None and hops >= DEEP_HOPS) or availability.depth >= DEEP_PATH


_HINDRANCE_TESTS: dict[Hindrance, Callable[[ResourceAvailability, str], bool]] = {
    Hindrance.ROBOTS: lambda availability, _: availability.is_forbidden,
    Hindrance.NOARCHIVE: lambda availability, _: availability.live.is_noarchive,
    Hindrance.UNLINKED: lambda availability, _: availability.live.hops is None and not availability.live.is_in_sitemap,
    Hindrance.QUERY: lambda availability, _: availability.has_query,
    Hindrance.DEEP: _is_deep,
    Hindrance.NEW: _is_new,
}


_MAX_ROWS = 20
_MAX_DEPTH = 10  # deeper paths share one row
_MAX_LABEL_LENGTH = 120


@dataclass(frozen=True, slots=True)
class AvailabilityRow:
    """Resources with a common property, counted by state.

    Attributes:
        label: The property.
        states: Number of resources in each state.
    """

    label: str
    states: Counter[AvailabilityState]

    @property
    def total(self) -> int:
        """Number of resources."""
        return self.states.total()

    @property
    def share(self) -> float | None:
        """The recoverable share of the resources on the web whose availability is known; None if there are none."""
        replicated, vulnerable = self.states[AvailabilityState.REPLICATED], self.states[AvailabilityState.VULNERABLE]
        return replicated / (replicated + vulnerable) if replicated + vulnerable else None


@dataclass(frozen=True, slots=True)
class AvailabilityTable:
    """Resources grouped by one property.

    Attributes:
        name: Machine-readable name.
        title: Human-readable title.
        rows: The groups.
    """

    name: str
    title: str
    rows: tuple[AvailabilityRow, ...]


@dataclass(frozen=True, slots=True)
class ArchiveUse:
    """The holdings of one archive for a site.

    Attributes:
        archive: The archive's id.
        resources: Number of resources that it holds.
        only: Number of those that no other archive is known to hold.
        copies: Number of captures.
        stale: Staleness of its captures of resources on the web.
    """

    archive: str
    resources: int
    only: int
    copies: int
    stale: StalenessStats


@dataclass(frozen=True, slots=True)
class CheckStats:
    """The statistics of a check.

    Attributes:
        states: Number of resources in each state.
        score: How many of the resources on the web could be recovered.
        stale: Staleness of the captures of recoverable resources.
        canonical: Number of recoverable resources that an archive holds in the original format.
        migrated: Number of recoverable resources that archives hold only in another format.
        same: Number of recoverable resources whose last capture in an archive has the digest of the current content.
        tables: Resources by media type, path depth and folder.
        archives: The holdings of each archive.
        advice: Recommended changes.
        by_archives: Number of resources held by exactly n archives, for each n above 0.
        classified: Number of pages whose captures were classified.
        classifiable: Number of pages that could be classified: HTML, on the web, and in archives.
        bad: Number of classified pages without a good capture, by verdict.
    """

    states: Counter[AvailabilityState]
    score: AvailabilityScore
    stale: StalenessStats
    canonical: int
    migrated: int
    same: int
    tables: tuple[AvailabilityTable, ...]
    archives: tuple[ArchiveUse, ...]
    advice: tuple[Advice, ...]
    by_archives: Counter[int]
    classified: int = 0
    classifiable: int = 0
    bad: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """Number of resources."""
        return self.states.total()


@dataclass(slots=True)
class _ArchiveTotals:
    resources: int = 0
    only: int = 0
    captures: int = 0
    days: list[float] = field(default_factory=list)


class CheckStatsBuilder:
    """Computes the statistics from resources that are added one at a time.

    Memory grows with the number of labels, plus one number per resource.

    Args:
        now: Date of the check, 14 digits.
        knows_links: Whether links were followed.
    """

    def __init__(self, now: str, *, knows_links: bool = True) -> None:
        self._states: Counter[AvailabilityState] = Counter()
        self._labelled: dict[str, dict[str, Counter[AvailabilityState]]] = {name: {} for name in _LABELS}
        self._uses: dict[str, _ArchiveTotals] = {}
        self._days: list[float] = []
        self._formats: Counter[bool | None] = Counter()
        self._by_archives: Counter[int] = Counter()
        self._same = self._sampled = self._hits = self._classified = self._classifiable = 0
        self._bad: Counter[str] = Counter()
        self._advisor = Advisor(now, knows_links=knows_links)

    def add(self, availability: ResourceAvailability) -> None:
        """Add one resource."""
        state = availability.state
        self._states[state] += 1
        for name, label in _LABELS.items():
            rows = self._labelled[name]
            text = label(availability)[:_MAX_LABEL_LENGTH]
            rows.setdefault(text, Counter())[state] += 1
        self._count_captures(availability)
        self._classified += availability.verdict is not None
        self._classifiable += availability.is_classifiable
        if availability.verdict:
            self._bad[availability.verdict] += 1
        if availability.is_live:
            self._advisor.add(availability)
            if availability.is_sampled and availability.is_held is not None:
                self._sampled += 1
                self._hits += availability.is_held
        if state is AvailabilityState.REPLICATED:
            self._formats[availability.is_migrated] += 1
            self._same += availability.is_same is True
            if (days := availability.stale_days) is not None:
                self._days.append(days)

    def _count_captures(self, availability: ResourceAvailability) -> None:
        if availability.held:
            self._by_archives[len(availability.held)] += 1
        for held in availability.held:
            use = self._uses.setdefault(held.archive, _ArchiveTotals())
            use.resources += 1
            use.only += len(availability.held) == 1
            use.captures += held.captures
            days = ResourceAvailability(availability.live, (held,)).stale_days
            if days is not None:
                use.days.append(days)

    def build(self) -> CheckStats:
        """Return the statistics of all resources that were added."""
        live = (
            sum(self._states[each] for each in (AvailabilityState.REPLICATED, AvailabilityState.VULNERABLE))
            + self._unknown_live()
        )
        score = AvailabilityScore(
            live,
            self._states[AvailabilityState.REPLICATED],
            self._states[AvailabilityState.VULNERABLE],
            self._sampled,
            self._hits,
        )
        uses = [
            ArchiveUse(name, use.resources, use.only, use.captures, summarize_staleness(use.days))
            for name, use in sorted(self._uses.items(), key=lambda each: (-each[1].resources, each[0]))
        ]
        return CheckStats(
            self._states,
            score,
            summarize_staleness(self._days),
            self._formats[False],
            self._formats[True],
            self._same,
            tuple(AvailabilityTable(name, _TITLES[name], _rows(name, rows)) for name, rows in self._labelled.items()),
            tuple(uses),
            tuple(self._advisor.advice()),
            self._by_archives,
            self._classified,
            self._classifiable,
            self._bad,
        )

    def _unknown_live(self) -> int:
        return self._labelled["web"].get("on the web", Counter())[AvailabilityState.UNKNOWN]


def _depth(availability: ResourceAvailability) -> str:
    return str(availability.depth) if availability.depth < _MAX_DEPTH else f"{_MAX_DEPTH} or more"


_LABELS: dict[str, Callable[[ResourceAvailability], str]] = {
    "web": lambda availability: "on the web" if availability.is_live else "not on the web",
    "group": lambda availability: group_of(availability.mime),
    "type": lambda availability: availability.mime,
    "depth": _depth,
    "folder": lambda availability: availability.folder,
}
_TITLES = {
    "web": "On the web",
    "group": "HTML, images, other",
    "type": "Media type",
    "depth": "Path depth",
    "folder": "Folder",
}


def _rows(name: str, groups: dict[str, Counter[AvailabilityState]]) -> tuple[AvailabilityRow, ...]:
    """Return the rows, depths in ascending order and others by size. Rows beyond `_MAX_ROWS` are merged into one."""
    rows = [AvailabilityRow(label, states) for label, states in groups.items()]
    if name == "depth":
        return tuple(sorted(rows, key=lambda row: int(row.label.partition(" ")[0])))
    rows.sort(key=lambda row: (-row.total, row.label))
    shown, rest = rows[:_MAX_ROWS], rows[_MAX_ROWS:]
    if rest:
        others: Counter[AvailabilityState] = Counter()
        for row in rest:
            others += row.states
        shown.append(AvailabilityRow(f"{len(rest):,} others", others))
    return tuple(shown)


def compute_check_stats(
    availabilities: Iterable[ResourceAvailability], now: str, *, knows_links: bool = True
) -> CheckStats:
    """Return the statistics of a site. See `CheckStatsBuilder` for the arguments."""
    builder = CheckStatsBuilder(now, knows_links=knows_links)
    for availability in availabilities:
        builder.add(availability)
    return builder.build()
