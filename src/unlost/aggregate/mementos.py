"""The copies of a page that archives list: by date, each once."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import NamedTuple

from unlost.dates import to_datetime


class Memento(NamedTuple):
    """One copy. datetime: 14 digits, UTC. archive: the id of the archive that listed it. uri: its address (URI-M)."""

    datetime: str
    archive: str
    uri: str


class Mementos:
    r"""Copies, by date and then by address; those with the same date and the same address, but for its scheme, are one.

    >>> copies = Mementos([
    ...     Memento("20150210000001", "b", "http://b/2"),
    ...     Memento("20140210000001", "a", "http://a/1"),
    ...     Memento("20140210000001", "c", "https://a/1"),
    ... ])
    >>> len(copies), copies[0].uri, copies.closest("20140101000000"), Mementos.unpacked(copies.packed()) == copies
    (2, 'http://a/1', 0, True)
    """

    def __init__(self, rows: Iterable[Memento] = ()) -> None:
        unique: dict[tuple[str, str], Memento] = {}
        for row in sorted(rows, key=lambda row: (row.datetime, row.uri.partition("://")[2], row.uri, row.archive)):
            unique.setdefault((row.datetime, row.uri.partition("://")[2]), row)
        self._rows = list(unique.values())

    @classmethod
    def merged(cls, parts: "Iterable[Mementos]") -> "Mementos":
        """Return all copies of several lists."""
        return cls(row for part in parts for row in part)

    @classmethod
    def unpacked(cls, data: bytes) -> "Mementos":
        """Return what `packed` returned. Raises InputError for other bytes."""
        rows = (line.split(" ", 2) for line in data.decode().splitlines())
        return cls(Memento(*row) for row in rows)

    def packed(self) -> bytes:
        """Return it in few bytes, to be kept."""
        return "".join(f"{row.datetime} {row.archive} {row.uri}\n" for row in self._rows).encode()

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._rows)

    def __getitem__(self, place: int) -> Memento:
        """Return the copy at a place, from 0; from the end for numbers below 0."""
        return self._rows[place]

    def __iter__(self) -> Iterator[Memento]:
        """Yield all copies, by date."""
        return iter(self._rows)

    def __eq__(self, other: object) -> bool:
        """Return whether both list the same."""
        return isinstance(other, Mementos) and self._rows == other._rows

    def __hash__(self) -> int:
        """Return a number for dictionaries."""
        return hash(tuple(self._rows))

    def closest(self, datetime: str) -> int | None:
        """Return the place of the copy closest to a date of 14 digits, the earlier of two; None if there are none."""
        if not self._rows:
            return None
        moment = to_datetime(datetime)
        distances = [abs(to_datetime(row.datetime) - moment) for row in self._rows]
        return distances.index(min(distances, default=timedelta()))

    def between(self, first: str | None, last: str | None) -> "Mementos":
        """Return the copies of a span, ends included, 14 digits each; None for no end."""
        days = [row.datetime for row in self._rows]
        begin = 0 if first is None else bisect_left(days, first)
        end = len(days) if last is None else bisect_right(days, last)
        return Mementos(self._rows[begin:end])

    def by_archive_and_year(self) -> dict[str, dict[str, int]]:
        """Return how many copies each archive has of each year."""
        counts: dict[str, Counter[str]] = {}
        for row in self._rows:
            counts.setdefault(row.archive, Counter())[row.datetime[:4]] += 1
        return {archive: dict(sorted(years.items())) for archive, years in sorted(counts.items())}
