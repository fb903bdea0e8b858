"""Schemes: which cells of the matrix to download. All 512 are judged, and the best are told from the others."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from unlost.refresh.intervals import Interval, wilson
from unlost.refresh.matrix import CELLS, Matrix

ALL = (1 << len(CELLS)) - 1
"""The scheme that downloads every page."""


def scheme_of(cells: Iterable[str]) -> int:
    """Return the scheme that downloads these cells: a bit for each, in the order of `CELLS`.

    >>> scheme_of(["cc", "mm"])
    257
    """
    return sum(1 << CELLS.index(cell) for cell in cells)


def cells_of(scheme: int) -> list[str]:
    """Return the cells that a scheme downloads."""
    return [cell for at, cell in enumerate(CELLS) if scheme >> at & 1]


_ONE = scheme_of(["cc", "cs", "cm", "mc", "ms", "mm"])
_THREE = scheme_of(["cc", "cm", "mc", "mm"])
_MISSING_TAG = scheme_of(["sm"])

NAMED = {
    "always": ALL,
    "Scheme 1": _ONE,
    "Scheme 2": scheme_of(["cc", "sc", "mc", "cm", "sm", "mm"]),
    "Scheme 3": _THREE,
    "Scheme 4": _ONE | scheme_of(["sc"]),
    "Scheme 1 variant": _ONE | _MISSING_TAG,
    "Scheme 3 variant": _THREE | _MISSING_TAG,
    "Scheme 4 variant": _ONE | scheme_of(["sc"]) | _MISSING_TAG,
    "IgnoresMissing1": scheme_of(["cc", "cm"]),
    "IgnoresMissing2": scheme_of(["cc", "cm", "sm"]),
}
"""The schemes that have names, and what they download. Where cells are empty, others do the same."""

OBVIOUS = ("Scheme 1", "Scheme 2", "Scheme 3", "Scheme 4")
"""By date, by tag, by both, by either: where one is missing on both visits, by the other."""


@dataclass(frozen=True)
class Judged:
    """What a scheme would have done.

    scheme: the cells that it downloads, a bit for each.
    missed: changed pages that it would not have downloaded. unnecessary: unchanged ones that it would have.
    changed, unchanged: how many there were.
    """

    scheme: int
    missed: int
    unnecessary: int
    changed: int
    unchanged: int

    @property
    def reliability(self) -> float:
        """The share of changed pages that are downloaded; 1 if none changed."""
        return 1 - self.missed / self.changed if self.changed else 1.0

    @property
    def usefulness(self) -> float:
        """The share of unchanged pages that are skipped; 1 if all changed."""
        return 1 - self.unnecessary / self.unchanged if self.unchanged else 1.0

    @cached_property
    def reliability_interval(self) -> Interval:
        """Wilson's interval, as if pages were independent."""
        return wilson(self.changed - self.missed, self.changed)

    @cached_property
    def usefulness_interval(self) -> Interval:
        """The same."""
        return wilson(self.unchanged - self.unnecessary, self.unchanged)

    def dominates(self, other: "Judged") -> bool:
        """Return whether it is at least as good in both, and better in one."""
        return (
            self.missed <= other.missed
            and self.unnecessary <= other.unnecessary
            and (self.missed, self.unnecessary) != (other.missed, other.unnecessary)
        )


def judge(matrix: Matrix, scheme: int) -> Judged:
    """Return what a scheme would have done."""
    missed = sum(count for at, count in enumerate(matrix.changed) if not scheme >> at & 1)
    unnecessary = sum(count for at, count in enumerate(matrix.unchanged) if scheme >> at & 1)
    return Judged(scheme, missed, unnecessary, matrix.all_changed, matrix.all_unchanged)


def judge_all(matrix: Matrix) -> list[Judged]:
    """Return what each of the 512 schemes would have done, in their order."""
    return [judge(matrix, scheme) for scheme in range(ALL + 1)]


def front(judged: Iterable[Judged]) -> list[Judged]:
    """Return the schemes that no other dominates, the most useful first; of those that do the same, all."""
    best: list[Judged] = []
    fewest = None
    for one in sorted(judged, key=lambda one: (one.unnecessary, one.missed, one.scheme)):
        if fewest is None or one.missed < fewest or (best[-1].missed, best[-1].unnecessary) == _point(one):
            best.append(one)
            fewest = one.missed
    return best


def _point(one: Judged) -> tuple[int, int]:
    return one.missed, one.unnecessary


def within(judged: Iterable[Judged], reliability: float, usefulness: float) -> list[Judged]:
    """Return the schemes above both shares."""
    return [one for one in judged if one.reliability > reliability and one.usefulness > usefulness]


def points(judged: Iterable[Judged], used: int) -> list[Judged]:
    """Return one scheme for each distinct result: one that has a name, else the one that downloads most.

    used: the cells that hold anything. A cell that is empty so far is better downloaded when it comes.
    """
    found: dict[tuple[int, int], Judged] = {}
    for one in judged:
        held = found.get(_point(one))
        if held is None or _worth(one, used) > _worth(held, used):
            found[_point(one)] = one
    return list(found.values())


def _worth(one: Judged, used: int) -> tuple[bool, int]:
    return name_of(one.scheme, used) is not None, one.scheme.bit_count()


def name_of(scheme: int, used: int = ALL) -> str | None:
    """Return the name of a scheme, or else of one that does the same where cells are used; None if it has none.

    >>> name_of(511), name_of(scheme_of(["cc", "cm", "mm"]), ALL & ~scheme_of(["mc", "ms"]))
    ('always', 'Scheme 3')
    >>> name_of(NAMED["Scheme 4"], used=0)
    'Scheme 4'
    """
    alike = [name for name, one in NAMED.items() if one & used == scheme & used]
    return next((name for name in alike if NAMED[name] == scheme), alike[0] if alike else None)


def dominators(one: Judged, judged: Iterable[Judged]) -> Iterator[Judged]:
    """Yield the schemes that dominate one."""
    return (other for other in judged if other.dominates(one))


def choose(judged: Iterable[Judged], target: float, low: dict[int, float] | None = None) -> Judged | None:
    """Return the most useful scheme whose reliability is surely at least the target; None if no scheme's is.

    low: the lower end of each scheme's reliability, where more is known than Wilson's.
    """
    sure = [
        one
        for one in judged
        if min(one.reliability_interval.low, (low or {}).get(one.scheme, 1.0)) >= target or one.scheme == ALL
    ]
    best = min(sure, key=lambda one: (one.unnecessary, one.missed, -one.scheme.bit_count()), default=None)
    return None if best is None or best.scheme == ALL else best
