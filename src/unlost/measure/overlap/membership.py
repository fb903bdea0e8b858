"""Which archives hold a page, counted over many pages: one number for each set of archives."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


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
