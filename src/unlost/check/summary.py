"""Statistics of a check in one pass over its resources, and advice on what would make more of the site recoverable."""

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

DEEP_HOPS = 4
"""From how many links from the beginning on a page counts as deep."""
DEEP_PATH = 5
"""From how many segments of its path on it does."""
NEW_DAYS = 30
"""For how many days an address is new. These three only make groups: what a change would save is told by comparing a
group with the rest of the site, not by the numbers here."""
_MAX_ADVICE = 5  # pieces of advice: more are not taken
_MAX_EXAMPLES = 3


class Hindrance(StrEnum):
    """What keeps archives from a resource, the surest first: one that has several counts for the first."""

    ROBOTS = "robots"
    NOARCHIVE = "noarchive"
    UNLINKED = "unlinked"
    QUERY = "query"
    DEEP = "deep"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Advice:
    """One change.

    hindrance: what it does away with; None for handing addresses to archives.
    affected: how many vulnerable resources it is about. saved: how many of these are expected to be in an archive then:
        if as many of the group were as of those resources that nothing hinders.
    examples: some of their addresses.
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
    """Is told every resource that is on the web, and says what would help most.

    now: 14 digits, to tell what is new. knows_links: whether links were followed: a list of addresses has none.
    """

    def __init__(self, now: str, *, knows_links: bool = True) -> None:
        self._signs = {
            each: is_so for each, is_so in _HINDRANCE_TESTS.items() if knows_links or each is not Hindrance.UNLINKED
        }
        self._since = dates.from_datetime(dates.to_datetime(now) - timedelta(days=NEW_DAYS))
        self._groups: dict[Hindrance | None, _HindranceGroup] = {}

    def add(self, standing: ResourceAvailability) -> None:
        """Take one resource; what is not on the web, or of which nothing is known, is passed over."""
        is_held = standing.is_held
        if not standing.is_live or is_held is None:
            return
        group = self._groups.setdefault(self._hindrance(standing), _HindranceGroup())
        if is_held:
            group.held += 1
            return
        group.absent += 1
        if len(group.examples) < _MAX_EXAMPLES:
            group.examples.append(standing.live.uri)

    def advice(self) -> list[Advice]:
        """Return what would help, the most helpful first; last, if anything is vulnerable, to hand it to archives."""
        free = self._groups.get(None, _HindranceGroup())
        usual = free.held / (free.held + free.absent) if free.held + free.absent else 1.0
        found = []
        for hindrance, group in self._groups.items():
            if hindrance is not None and group.absent:
                more = usual * (group.held + group.absent) - group.held
                saved = min(group.absent, max(0, round(more)))
                found.append(Advice(hindrance, group.absent, saved, tuple(group.examples)))
        order = list(Hindrance)
        found.sort(key=lambda each: (-each.saved, -each.affected, order.index(each.hindrance or Hindrance.NEW)))
        vulnerable = sum(group.absent for group in self._groups.values())
        last = [Advice(None, vulnerable, vulnerable, tuple(free.examples))] if vulnerable else []
        return [*found[:_MAX_ADVICE], *last]

    def _hindrance(self, standing: ResourceAvailability) -> Hindrance | None:
        return next((hindrance for hindrance, is_so in self._signs.items() if is_so(standing, self._since)), None)


def _is_new(standing: ResourceAvailability, since: str) -> bool:
    """Return whether an address is new: seen first, or, where nobody watched, changed last within some days."""
    told = [each for each in (standing.first_seen, standing.live.last_modified) if each is not None]
    return bool(told) and min(told) > since


def _is_deep(standing: ResourceAvailability, _: str) -> bool:
    hops = standing.live.hops
    return (hops is not None and hops >= DEEP_HOPS) or standing.depth >= DEEP_PATH


_HINDRANCE_TESTS: dict[Hindrance, Callable[[ResourceAvailability, str], bool]] = {
    Hindrance.ROBOTS: lambda standing, _: standing.is_forbidden,
    Hindrance.NOARCHIVE: lambda standing, _: standing.live.is_noarchive,
    Hindrance.UNLINKED: lambda standing, _: standing.live.hops is None and not standing.live.is_in_sitemap,
    Hindrance.QUERY: lambda standing, _: standing.has_query,
    Hindrance.DEEP: _is_deep,
    Hindrance.NEW: _is_new,
}


_MAX_ROWS = 20  # of a table
_MAX_DEPTH = 10  # the last row of depths
_MAX_LABEL_LENGTH = 120  # of a label


@dataclass(frozen=True, slots=True)
class AvailabilityRow:
    """Resources that have something in common, by their states."""

    label: str
    states: Counter[AvailabilityState]

    @property
    def total(self) -> int:
        """How many they are."""
        return self.states.total()

    @property
    def share(self) -> float | None:
        """The share of those on the web, and of which it is known, that would come back; None of nothing."""
        back, lost = self.states[AvailabilityState.REPLICATED], self.states[AvailabilityState.VULNERABLE]
        return back / (back + lost) if back + lost else None


@dataclass(frozen=True, slots=True)
class AvailabilityTable:
    """Rows by one property. name: one word, for programs. title: for people."""

    name: str
    title: str
    rows: tuple[AvailabilityRow, ...]


@dataclass(frozen=True, slots=True)
class ArchiveUse:
    """What one archive has of the resources of a site.

    resources: how many it has. only: how many nobody else is known to have. copies: of all of them.
    stale: how stale its copies of what is on the web are.
    """

    archive: str
    resources: int
    only: int
    copies: int
    stale: StalenessStats


@dataclass(frozen=True, slots=True)
class CheckStats:
    """All numbers of one check.

    states: how many resources are in which state. score: how much of what is on the web would come back.
    stale: how old the copies of that are. canonical, migrated: of those that would come back, how many in their own
        format, and how many only in another one. same: how many with the very bytes that are on the web now.
    tables: by type, depth and folder. archives: what each has. advice: what would help.
    by_archives: how many resources are held by just so many archives, of those that are held.
    judged: of how many pages copies were fetched, of `judgeable` that are HTML, on the web and in archives. bad: how
        many of these have none that is good, by the reason.
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
    judged: int = 0
    judgeable: int = 0
    bad: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """How many resources there are."""
        return self.states.total()


@dataclass(slots=True)
class _ArchiveTotals:
    resources: int = 0
    only: int = 0
    copies: int = 0
    days: list[float] = field(default_factory=list)


class CheckStatsBuilder:
    """Takes resources one by one. Memory grows with the number of labels and by a number for each resource.

    now: 14 digits. knows_links: whether links were followed.
    """

    def __init__(self, now: str, *, knows_links: bool = True) -> None:
        self._states: Counter[AvailabilityState] = Counter()
        self._labelled: dict[str, dict[str, Counter[AvailabilityState]]] = {name: {} for name in _LABELS}
        self._uses: dict[str, _ArchiveTotals] = {}
        self._days: list[float] = []
        self._formats: Counter[bool | None] = Counter()
        self._by_archives: Counter[int] = Counter()
        self._same = self._drawn = self._hits = self._judged = self._judgeable = 0
        self._bad: Counter[str] = Counter()
        self._advisor = Advisor(now, knows_links=knows_links)

    def add(self, standing: ResourceAvailability) -> None:
        """Count one resource."""
        state = standing.state
        self._states[state] += 1
        for name, label in _LABELS.items():
            rows = self._labelled[name]
            text = label(standing)[:_MAX_LABEL_LENGTH]
            rows.setdefault(text, Counter())[state] += 1
        self._take_copies(standing)
        self._judged += standing.verdict is not None
        self._judgeable += standing.is_classifiable
        if standing.verdict:
            self._bad[standing.verdict] += 1
        if standing.is_live:
            self._advisor.add(standing)
            if standing.is_sampled and standing.is_held is not None:
                self._drawn += 1
                self._hits += standing.is_held
        if state is AvailabilityState.REPLICATED:
            self._formats[standing.is_migrated] += 1
            self._same += standing.is_same is True
            if (days := standing.stale_days) is not None:
                self._days.append(days)

    def _take_copies(self, standing: ResourceAvailability) -> None:
        if standing.held:
            self._by_archives[len(standing.held)] += 1
        for held in standing.held:
            use = self._uses.setdefault(held.archive, _ArchiveTotals())
            use.resources += 1
            use.only += len(standing.held) == 1
            use.copies += held.copies
            days = ResourceAvailability(standing.live, (held,)).stale_days
            if days is not None:
                use.days.append(days)

    def build(self) -> CheckStats:
        """Return the numbers of all that was taken."""
        live = (
            sum(self._states[each] for each in (AvailabilityState.REPLICATED, AvailabilityState.VULNERABLE))
            + self._unknown_live()
        )
        score = AvailabilityScore(
            live,
            self._states[AvailabilityState.REPLICATED],
            self._states[AvailabilityState.VULNERABLE],
            self._drawn,
            self._hits,
        )
        uses = [
            ArchiveUse(name, use.resources, use.only, use.copies, summarize_staleness(use.days))
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
            self._judged,
            self._judgeable,
            self._bad,
        )

    def _unknown_live(self) -> int:
        return self._labelled["web"].get("on the web", Counter())[AvailabilityState.UNKNOWN]


def _depth(standing: ResourceAvailability) -> str:
    return str(standing.depth) if standing.depth < _MAX_DEPTH else f"{_MAX_DEPTH} or more"


_LABELS: dict[str, Callable[[ResourceAvailability], str]] = {
    "web": lambda standing: "on the web" if standing.is_live else "not on the web",
    "group": lambda standing: group_of(standing.mime),
    "type": lambda standing: standing.mime,
    "depth": _depth,
    "folder": lambda standing: standing.folder,
}
_TITLES = {
    "web": "On the web",
    "group": "HTML, images, other",
    "type": "Media type",
    "depth": "Depth of the path",
    "folder": "Folder",
}


def _rows(name: str, found: dict[str, Counter[AvailabilityState]]) -> tuple[AvailabilityRow, ...]:
    """Return the rows: depths in their order, others by size; those beyond a number are one row."""
    rows = [AvailabilityRow(label, states) for label, states in found.items()]
    if name == "depth":
        return tuple(sorted(rows, key=lambda row: int(row.label.partition(" ")[0])))
    rows.sort(key=lambda row: (-row.total, row.label))
    shown, rest = rows[:_MAX_ROWS], rows[_MAX_ROWS:]
    if rest:
        together: Counter[AvailabilityState] = Counter()
        for row in rest:
            together += row.states
        shown.append(AvailabilityRow(f"{len(rest):,} others", together))
    return tuple(shown)


def compute_check_stats(
    availabilities: Iterable[ResourceAvailability], now: str, *, knows_links: bool = True
) -> CheckStats:
    """Return the numbers of a site. now: 14 digits; knows_links: whether links were followed."""
    counting = CheckStatsBuilder(now, knows_links=knows_links)
    for standing in availabilities:
        counting.add(standing)
    return counting.build()
