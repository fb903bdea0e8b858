"""Overlap of archives as a set cover problem: which archives contain which pages, and the fewest that cover a share."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest


@dataclass(frozen=True, slots=True)
class ArchiveMembership:
    """Number of pages by the exact set of archives that contain them.

    A set is a bit mask: bit `n` represents `archives[n]`; 0 are the pages that no archive contains.

    Attributes:
        archives: Archive ids.
        pages: Number of pages by set.

    >>> membership = ArchiveMembership(("a", "b"), {0b01: 5, 0b10: 2, 0b11: 3, 0: 4})
    >>> membership.total, membership.held, membership.held_by_archive(0)
    (14, 10, 8)
    >>> membership.held_only_by(1), membership.held_by_both(0, 1)
    (2, 3)
    """

    archives: tuple[str, ...]
    pages: Mapping[int, int]

    @property
    def total(self) -> int:
        """Number of pages."""
        return sum(self.pages.values())

    @property
    def held(self) -> int:
        """Number of pages in at least one archive."""
        return self.total - self.pages.get(0, 0)

    def held_by_archive(self, index: int) -> int:
        """Return the number of pages in an archive, given its index."""
        return self.held_by_any(1 << index)

    def held_only_by(self, index: int) -> int:
        """Return the number of pages in this archive only."""
        return self.pages.get(1 << index, 0)

    def held_by_both(self, first: int, second: int) -> int:
        """Return the number of pages in both archives."""
        both = 1 << first | 1 << second
        return sum(count for held, count in self.pages.items() if held & both == both)

    def held_by_any(self, selected: int) -> int:
        """Return the number of pages in at least one archive of a set."""
        return sum(count for held, count in self.pages.items() if held & selected)

    def archive_ids(self, selected: int) -> tuple[str, ...]:
        """Return the archive ids of a set."""
        return tuple(name for index, name in enumerate(self.archives) if selected >> index & 1)

    def sets(self) -> Iterator[tuple[int, int]]:
        """Yield the non-empty sets with their number of pages, in descending order."""
        sets = ((held, count) for held, count in self.pages.items() if held and count)
        yield from sorted(sets, key=lambda each: (-each[1], each[0].bit_count(), each[0]))

    def by_archive_count(self) -> list[tuple[int, int]]:
        """Return the number of pages by the number of archives that contain them, from 0 to all."""
        counts: Counter[int] = Counter()
        for held, count in self.pages.items():
            counts[held.bit_count()] += count
        return [(number, counts[number]) for number in range(len(self.archives) + 1)]


def count_membership(archives: Sequence[str], pages: Iterator[int]) -> ArchiveMembership:
    """Count how often each set occurs.

    Args:
        archives: Archive ids.
        pages: Set of each page, in any order.
    """
    return ArchiveMembership(tuple(archives), dict(sorted(Counter(pages).items())))


COVERAGE_LEVELS = (0.90, 0.95, 0.99)
"""Shares of the archived pages for which minimum covers are computed."""
MAX_SEARCH_STEPS = 2_000_000
"""Search budget, in archive sets and page sets examined. Covers found after it is exhausted are not proven optimal."""


@dataclass(frozen=True, slots=True)
class ArchiveCover:
    """A set of archives.

    Attributes:
        archives: Archive ids, ordered by additional coverage.
        covered: Pages in at least one of them.
        is_proven: Whether no other set of the same size covers more.
    """

    archives: tuple[str, ...]
    covered: int
    is_proven: bool


@dataclass(frozen=True, slots=True)
class MinimumCover:
    """The smallest known set of archives for one coverage level.

    Attributes:
        level: Share of the archived pages, 0 to 1.
        cover: The set.
        is_proven: Whether no smaller set reaches the level.
    """

    level: float
    cover: ArchiveCover
    is_proven: bool


def best_covers(membership: ArchiveMembership, max_steps: int = MAX_SEARCH_STEPS) -> list[ArchiveCover]:
    """Return the best set of 1, 2, … archives, up to the one that covers all archived pages.

    Among sets with equal coverage, the lexicographically first wins. Exact branch and bound over the distinct page
    sets; greedy once `max_steps` is exhausted (`is_proven` is then False).
    """
    held = [(mask, count) for mask, count in membership.pages.items() if mask and count]
    search = _CoverSearch(held, len(membership.archives), max_steps)
    covers: list[ArchiveCover] = []
    while (covers[-1].covered if covers else 0) < membership.held:
        selected, covered, is_proven = search.best(len(covers) + 1)
        ids = tuple(membership.archives[index] for index in _order_by_gain(held, selected))
        covers.append(ArchiveCover(ids, covered, is_proven))
    return covers


def minimum_covers(
    membership: ArchiveMembership, covers: Sequence[ArchiveCover], levels: Sequence[float] = COVERAGE_LEVELS
) -> list[MinimumCover]:
    """Return for each level the first cover that reaches it; an empty list if nothing is archived."""
    minimum = []
    for level in levels:
        # Compare numbers of pages: shares would be rounded.
        for number, cover in enumerate(covers):
            if cover.covered >= level * membership.held - 1e-9:
                minimum.append(MinimumCover(level, cover, all(each.is_proven for each in covers[:number])))
                break
    return minimum


class _CoverSearch:
    """Branch-and-bound search among archives 0 to `size` - 1.

    Args:
        held: Sets of archives with their number of pages.
        size: Number of archives.
        max_steps: Search budget.
    """

    def __init__(self, held: list[tuple[int, int]], size: int, max_steps: int) -> None:
        self._held = held
        self._size = size
        self._steps = max_steps
        self._greedy: list[int] = []

    def best(self, number: int) -> tuple[list[int], int, bool]:
        """Return the best set of this size, its coverage, and whether it is proven optimal."""
        self._greedy += self._next_greedy(self._greedy)
        selected = sum(1 << index for index in self._greedy)
        self._best_set = sorted(self._greedy)
        self._best_coverage = sum(count for mask, count in self._held if mask & selected)
        if self._steps > 0:
            self._branch([], 0, self._held, number, 0)
        return self._best_set, self._best_coverage, self._steps > 0

    def _next_greedy(self, selected: list[int]) -> list[int]:
        """Return the archive with the largest additional coverage."""
        mask = sum(1 << index for index in selected)
        gains = _gains([each for each in self._held if not each[0] & mask], self._size)
        remaining = [index for index in range(self._size) if index not in selected]
        return [max(remaining, key=lambda index: (gains[index], -index))]

    def _branch(
        self, selected: list[int], covered: int, uncovered: list[tuple[int, int]], more: int, first: int
    ) -> None:
        """Extend `selected` by `more` archives from index `first` on; store any better result.

        Args:
            selected: Archives so far.
            covered: Their coverage.
            uncovered: Page sets that they do not cover.
            more: Number of archives to add.
            first: Smallest index to add.
        """
        self._steps -= 1 + len(uncovered)
        if self._steps <= 0:
            return
        if not more:
            is_first = covered == self._best_coverage and selected < self._best_set
            if covered > self._best_coverage or is_first:
                self._best_set, self._best_coverage = list(selected), covered
            return
        if self._size - first < more:
            return
        gains = _gains(uncovered, self._size)
        # Upper bound: no set adds more than the sum of its members' gains.
        bound = covered + sum(nlargest(more, gains[first:]))
        if bound < self._best_coverage or (bound == self._best_coverage and not self._may_be_first(selected)):
            return
        for index in range(first, self._size - more + 1):
            remaining = [each for each in uncovered if not each[0] >> index & 1]
            self._branch([*selected, index], covered + gains[index], remaining, more - 1, index + 1)

    def _may_be_first(self, selected: list[int]) -> bool:
        """Return whether an extension may be lexicographically before the best set."""
        return selected <= self._best_set[: len(selected)]


def _gains(uncovered: list[tuple[int, int]], size: int) -> list[int]:
    """Return the number of uncovered pages in each archive."""
    gains = [0] * size
    for mask, count in uncovered:
        bits = mask
        while bits:
            low = bits & -bits
            gains[low.bit_length() - 1] += count
            bits ^= low
    return gains


def _order_by_gain(held: list[tuple[int, int]], selected: list[int]) -> list[int]:
    """Order archives greedily by additional coverage."""
    ordered: list[int] = []
    uncovered, remaining = held, list(selected)
    while remaining:
        gains = _gains(uncovered, max(selected) + 1 if not uncovered else max(mask for mask, _ in held).bit_length())
        best = max(remaining, key=lambda index: (gains[index], -index))
        ordered.append(best)
        remaining.remove(best)
        uncovered = [each for each in uncovered if not each[0] >> best & 1]
    return ordered
