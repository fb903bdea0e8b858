"""The few changes to a site that would let most of it come back."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from unlost import dates
from unlost.measure.availability.standing import ResourceAvailability

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
