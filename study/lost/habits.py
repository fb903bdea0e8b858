"""Four repositories with the habits that the dissertation measured: what each keeps of a site, and for how long."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from study.lost.chance import chance
from study.lost.items import Item, Kind
from study.lost.site import File, MadeSite, moment


@dataclass(frozen=True, slots=True)
class Habit:
    """How a repository goes about a site.

    id, name: of it. deep: whether it keeps versions, as they were; else it has the last one, converted.
    keeps: the chance that it ever keeps a file of a kind. dynamic: what that is multiplied by if the address has a `?`.
    hops: how many links it follows from the first page.
    delay: weeks from publication to the first copy, on average. every: weeks from one visit to the next.
    lag: weeks until a copy may be asked for. stays: weeks that a copy stays after a visit that found the file gone.
    there: of an engine, the chance that a copy can be had in a week.
    misses: the share of copies that are listed and cannot be had.
    rows: of one page of a list. cap: how many rows a list has at most; None if it has no such end.
    """

    id: str
    name: str
    deep: bool
    keeps: Mapping[Kind, float]
    dynamic: float
    hops: int
    delay: float
    every: int
    lag: int
    stays: int
    there: float
    misses: float
    rows: int
    cap: int | None


@dataclass(frozen=True, slots=True)
class Held:
    """A copy that a repository has in some week.

    file: as it gives it. migrated: whether that is not the format that it was published in.
    missed: whether it is listed, and cannot be had.
    """

    uri: str
    datetime: str
    file: File = field(repr=False)
    migrated: bool
    missed: bool


def _kinds(page: float, image: float, document: float, other: float) -> dict[Kind, float]:
    rest = dict.fromkeys((Kind.STYLE, Kind.SCRIPT, Kind.PACKED), other)
    return {Kind.PAGE: page, Kind.IMAGE: image, Kind.DOCUMENT: document, **rest}


# As the dissertation has them: which types are kept and in which format (its Table 3); the delay (12, 65 and 50 days),
# how long copies stay (51, 8 and 23 days) and how often they can be had (0.86, 0.89, 0.53) of search engines (Table 6);
# misses (Table 7); shares of pages and documents (Tables 6 and 8); half a year and more of the archive's lag, half of
# what engines have in the archive (Table 10); a thousand rows at most. Ours: shares of images and others, visits, hops,
# rows of a page.
ARCHIVE = Habit(
    "archive", "the archive", True, _kinds(0.6, 0.35, 0.55, 0.5), dynamic=0.35, hops=9, delay=8, every=9, lag=30,
    stays=1 << 20, there=1.0, misses=0.01, rows=1000, cap=None,
)  # fmt: skip
BROAD = Habit(
    "broad", "the broad engine", False, _kinds(0.85, 0.4, 0.7, 0.0), dynamic=0.4, hops=8, delay=1.7, every=1, lag=0,
    stays=7, there=0.86, misses=0.0388, rows=10, cap=1000,
)  # fmt: skip
FRESH = Habit(
    "fresh", "the fresh engine", False, _kinds(0.7, 0.0, 0.6, 0.0), dynamic=0.3, hops=6, delay=9.3, every=1, lag=0,
    stays=1, there=0.89, misses=0.0001, rows=50, cap=1000,
)  # fmt: skip
PATCHY = Habit(
    "patchy", "the patchy engine", False, _kinds(0.6, 0.25, 0.5, 0.0), dynamic=0.3, hops=6, delay=7.1, every=4, lag=0,
    stays=3, there=0.53, misses=0.0153, rows=100, cap=1000,
)  # fmt: skip

HABITS = (ARCHIVE, BROAD, FRESH, PATCHY)

_UNKNOWN = 0.05  # the chance that a repository has never heard of a site


class Keeping:
    """What one repository keeps of one site."""

    def __init__(self, habit: Habit, site: MadeSite, seed: int) -> None:
        self.habit = habit
        self._site = site
        self._names = ("keeping", seed, habit.id, site.profile.name)
        self._share = 0.0 if self._chance("unknown") < _UNKNOWN else self._fame()
        self._phase = int(self._chance("phase") * habit.every)

    def _chance(self, *names: object) -> float:
        return chance(*self._names, *names)

    def _fame(self) -> float:
        """Return what the shares of kinds are multiplied by: well-known sites are kept better, and luck counts."""
        return (0.8 + 0.04 * self._site.profile.rank) * (0.8 + 0.4 * self._chance("luck"))

    def held(self, week: int) -> list[Held]:
        """Return all copies that can be asked for in a week, in the order of the site's files."""
        found: list[Held] = []
        for item in self._site.items:
            if item.born <= week and self._takes(item):
                found += self._deep(item, week) if self.habit.deep else self._flat(item, week)
        return found

    def _takes(self, item: Item) -> bool:
        share = self.habit.keeps[item.kind] * self._share * (self.habit.dynamic if "?" in item.path else 1.0)
        # Everybody has the first page of a site that is known at all.
        is_first = item.above is None and self._share > 0
        return is_first or (item.hops <= self.habit.hops and self._chance("takes", item.number) < share)

    def _first(self, item: Item) -> int:
        """Return the week of the first visit that finds a file."""
        # Waiting times as of visits that come by chance: most are short, some are long.
        waited = -self.habit.delay * math.log(1.0 - self._chance("delay", item.number))
        return self._visit_from(item.born if item.above is None else item.born + math.floor(waited))

    def _visit_from(self, week: int) -> int:
        """Return the first visit in a week, or after it."""
        return week + (self._phase - week) % self.habit.every

    def _deep(self, item: Item, week: int) -> list[Held]:
        visits = range(self._first(item), week - self.habit.lag + 1, self.habit.every)
        return [self._copy(item, visit, week) for visit in visits if item.is_there(visit)]

    def _flat(self, item: Item, week: int) -> list[Held]:
        first = self._first(item)
        last = week - (week - self._phase) % self.habit.every
        if item.gone is not None and last >= item.gone:
            # The visit that found it gone; from then on its days are counted.
            if week >= self._visit_from(item.gone) + self.habit.stays:
                return []
            last = self._visit_from(item.gone) - self.habit.every
        # A first page is what engines keep best.
        is_there = item.above is None or self._chance("there", item.number, week) < self.habit.there
        is_had = first <= last and is_there
        return [self._copy(item, last, week)] if is_had else []

    def _copy(self, item: Item, visit: int, week: int) -> Held:
        habit, site = self.habit, self._site
        file = site.file(item, visit) if habit.deep else site.kept_by_engine(item, visit)
        is_missed = self._chance("missed", item.number, visit, week) < habit.misses
        migrated = not habit.deep and item.kind in (Kind.IMAGE, Kind.DOCUMENT)
        return Held(
            site.uri(item), moment(visit, int(7 * self._chance("day", item.number, visit))), file, migrated, is_missed
        )
