"""All numbers about a check, in one pass over its resources."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from unlost.formats.media_types import group_of
from unlost.measure.availability.advice import Advice, Advisor
from unlost.measure.availability.score import AvailabilityScore
from unlost.measure.availability.staleness import StalenessStats, summarize_staleness
from unlost.measure.availability.standing import ResourceAvailability
from unlost.measure.availability.states import AvailabilityState

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
