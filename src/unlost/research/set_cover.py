"""Which sets of archives hold which pages, and the fewest archives that cover a share of them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest


@dataclass(frozen=True, slots=True)
class ArchiveMembership:
    """How many pages are held by which archives.

    archives: their ids, in order. pages: how many pages are held by exactly a set of them, and by no other; a set is a
        number whose bit `n` stands for the archive at place `n`, 0 for pages that nobody holds.

    >>> found = Membership(("a", "b"), {0b01: 5, 0b10: 2, 0b11: 3, 0: 4})
    >>> found.total, found.held, found.held_by(0), found.alone(1), found.together(0, 1)
    (14, 10, 8, 2, 3)
    """

    archives: tuple[str, ...]
    pages: Mapping[int, int]

    @property
    def total(self) -> int:
        """How many pages there are."""
        return sum(self.pages.values())

    @property
    def held(self) -> int:
        """How many any archive holds."""
        return self.total - self.pages.get(0, 0)

    def held_by_archive(self, place: int) -> int:
        """Return how many an archive holds."""
        return self.held_by_any(1 << place)

    def held_only_by(self, place: int) -> int:
        """Return how many an archive holds and no other does."""
        return self.pages.get(1 << place, 0)

    def held_by_both(self, first: int, second: int) -> int:
        """Return how many two archives hold, whoever else does."""
        both = 1 << first | 1 << second
        return sum(count for held, count in self.pages.items() if held & both == both)

    def held_by_any(self, chosen: int) -> int:
        """Return how many pages at least one of a set of archives holds."""
        return sum(count for held, count in self.pages.items() if held & chosen)

    def archive_ids(self, chosen: int) -> tuple[str, ...]:
        """Return the ids of a set of archives."""
        return tuple(name for place, name in enumerate(self.archives) if chosen >> place & 1)

    def sets(self) -> Iterator[tuple[int, int]]:
        """Yield the sets that any page is held by, and how many are, most first."""
        found = ((held, count) for held, count in self.pages.items() if held and count)
        yield from sorted(found, key=lambda each: (-each[1], each[0].bit_count(), each[0]))

    def by_archive_count(self) -> list[tuple[int, int]]:
        """Return how many pages are held by no archive, by one, by two …, by all."""
        counts: Counter[int] = Counter()
        for held, count in self.pages.items():
            counts[held.bit_count()] += count
        return [(number, counts[number]) for number in range(len(self.archives) + 1)]


def count_membership(archives: Sequence[str], pages: Iterator[int]) -> ArchiveMembership:
    """Return how often each set comes. pages: the set of each page, in any order."""
    return ArchiveMembership(tuple(archives), dict(sorted(Counter(pages).items())))


COVERAGE_LEVELS = (0.90, 0.95, 0.99)
"""The shares of all that are held for which the fewest archives are looked for."""
MAX_SEARCH_STEPS = 2_000_000
"""How many sets of archives and of pages may be looked at in search of better ones. What is found when
they are used up is said not to be proven."""


@dataclass(frozen=True, slots=True)
class ArchiveCover:
    """A set of archives.

    archives: their ids, in the order in which each adds most to those before it.
    covered: how many pages at least one of them holds. is_best: whether no other set of so many covers more; else it is
        the best that was found.
    """

    archives: tuple[str, ...]
    covered: int
    is_proven: bool


@dataclass(frozen=True, slots=True)
class MinimumCover:
    """The fewest archives for one level. level: from 0 to 1. is_fewest: whether no fewer will do."""

    level: float
    cover: ArchiveCover
    is_proven: bool


def best_covers(membership: ArchiveMembership, max_steps: int = MAX_SEARCH_STEPS) -> list[ArchiveCover]:
    """Return the best set of one archive, of two …, up to the one that covers everything that anybody holds.

    Of sets that cover as much, the one whose archives come first. Exact, by branch and bound over the distinct sets in
    which pages are held, unless that takes more than `most_steps`; then the rest is greedy, and not `is_best`.
    """
    held = [(mask, count) for mask, count in membership.pages.items() if mask and count]
    search = _CoverSearch(held, len(membership.archives), max_steps)
    choices: list[ArchiveCover] = []
    while (choices[-1].covered if choices else 0) < membership.held:
        chosen, covered, is_best = search.best(len(choices) + 1)
        names = tuple(membership.archives[place] for place in _order_by_gain(held, chosen))
        choices.append(ArchiveCover(names, covered, is_best))
    return choices


def minimum_covers(
    membership: ArchiveMembership, covers: Sequence[ArchiveCover], levels: Sequence[float] = COVERAGE_LEVELS
) -> list[MinimumCover]:
    """Return for each level the first choice that reaches it; nothing if nobody holds anything."""
    found = []
    for level in levels:
        # In whole pages, so that no rounding of shares decides.
        for number, choice in enumerate(covers):
            if choice.covered >= level * membership.held - 1e-9:
                found.append(MinimumCover(level, choice, all(each.is_proven for each in covers[:number])))
                break
    return found


class _CoverSearch:
    """Looks for the best sets among archives 0 to `size` - 1. held: sets of archives, each with its pages."""

    def __init__(self, held: list[tuple[int, int]], size: int, most_steps: int) -> None:
        self._held = held
        self._size = size
        self._steps = most_steps
        self._greedy: list[int] = []

    def best(self, number: int) -> tuple[list[int], int, bool]:
        """Return the places of so many archives, how much they cover, and whether that is proven to be most."""
        self._greedy += self._next_greedy(self._greedy)
        chosen = sum(1 << place for place in self._greedy)
        self._found = sorted(self._greedy)
        self._covered = sum(count for mask, count in self._held if mask & chosen)
        if self._steps > 0:
            self._branch([], 0, self._held, number, 0)
        return self._found, self._covered, self._steps > 0

    def _next_greedy(self, chosen: list[int]) -> list[int]:
        """Return the archive that adds most to others."""
        before = sum(1 << place for place in chosen)
        gains = _gains([each for each in self._held if not each[0] & before], self._size)
        left = [place for place in range(self._size) if place not in chosen]
        return [max(left, key=lambda place: (gains[place], -place))]

    def _branch(self, chosen: list[int], covered: int, left: list[tuple[int, int]], more: int, first: int) -> None:
        """Add `more` archives from `first` on to those that are chosen, and keep what is better than before.

        left: what the chosen ones do not hold.
        """
        self._steps -= 1 + len(left)
        if self._steps <= 0:
            return
        if not more:
            is_first = covered == self._covered and chosen < self._found
            if covered > self._covered or is_first:
                self._found, self._covered = list(chosen), covered
            return
        if self._size - first < more:
            return
        gains = _gains(left, self._size)
        # No set adds more than its members do one by one.
        bound = covered + sum(nlargest(more, gains[first:]))
        if bound < self._covered or (bound == self._covered and not self._may_be_first(chosen)):
            return
        for place in range(first, self._size - more + 1):
            without = [each for each in left if not each[0] >> place & 1]
            self._branch([*chosen, place], covered + gains[place], without, more - 1, place + 1)

    def _may_be_first(self, chosen: list[int]) -> bool:
        """Return whether what begins so may come before what was found."""
        return chosen <= self._found[: len(chosen)]


def _gains(left: list[tuple[int, int]], size: int) -> list[int]:
    """Return how many of the pages that are left each archive holds."""
    gains = [0] * size
    for mask, count in left:
        rest = mask
        while rest:
            low = rest & -rest
            gains[low.bit_length() - 1] += count
            rest ^= low
    return gains


def _order_by_gain(held: list[tuple[int, int]], chosen: list[int]) -> list[int]:
    """Return chosen archives so that each adds most to those before it."""
    ordered: list[int] = []
    left, rest = held, list(chosen)
    while rest:
        gains = _gains(left, max(chosen) + 1 if not left else max(mask for mask, _ in held).bit_length())
        best = max(rest, key=lambda place: (gains[place], -place))
        ordered.append(best)
        rest.remove(best)
        left = [each for each in left if not each[0] >> best & 1]
    return ordered
