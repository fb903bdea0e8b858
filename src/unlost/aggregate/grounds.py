"""What maps and filters of all archives say about one page: the grounds on which each is worth asking, or not."""

from collections.abc import Mapping
from typing import Protocol

from unlost.aggregate.hit_rates import Ground
from unlost.errors import InputError, UriError
from unlost.holdings.panel import Finding, Panel
from unlost.holdings.routing import Holdings
from unlost.uri import alternative_keys, key

_GROUNDS = {
    Finding.UNCOVERED: Ground.DENIED,
    Finding.EXCLUDED: Ground.DENIED,
    Finding.NOT_IN_FILTERS: Ground.DENIED,
    Finding.IN_FILTERS: Ground.FILTER,
    Finding.LISTED: Ground.LISTED,
    Finding.WILDCARD: Ground.WILDCARD,
    Finding.IN_BOTH: Ground.BOTH,
    Finding.LISTED_ONLY: Ground.LISTED_ONLY,  # unless the filters are of whole URLs
    Finding.WILDCARD_ONLY: Ground.DENIED,  # unless the filter is old
    Finding.DAMAGED: Ground.ANY,
}
_BY_NUMBER = [_GROUNDS[finding] for finding in Finding]
_TO_BE_JUDGED = frozenset({Finding.WILDCARD_ONLY, Finding.LISTED_ONLY, Finding.DAMAGED})


FEW, MANY = 100, 10_000
"""Copies below a wildcard: fewer than the one, or as many as the other, make it less likely, or more, that one is of
the page. Between them is what most wildcards of maps by weights have."""


def _first_that_holds(finding: int, other: int) -> int:
    """Return what is found under a page's key, or under another one that tools give it where the first is denied."""
    if finding in (Finding.WILDCARD_ONLY, Finding.LISTED_ONLY):
        return other if _BY_NUMBER[other] is not Ground.DENIED else finding
    return other if _BY_NUMBER[finding] is Ground.DENIED else finding


class Knows(Protocol):
    """Whoever knows maps and filters."""

    def all(self) -> Mapping[str, Holdings]:
        """Return what is known of archives, by id: the very same object until something changes."""
        ...

    def set_aside(self, archive: str, problem: str) -> None:
        """Take note that what is known turned out to be damaged: from now on nothing is, until it is read anew."""
        ...


class Grounds:
    """Looks pages up in all maps and filters at once."""

    def __init__(self, known: Knows) -> None:
        self._known = known
        self._holdings: Mapping[str, Holdings] = {}
        self._panels: list[tuple[tuple[str, ...], Panel]] = []

    def of(self, uri: str, keys: dict[str, str]) -> dict[str, Ground]:
        """Return the ground of each archive that has a map or filters, by id; the others are not there.

        keys: of the page, by the rules under which they were made; others that are needed are added.
        A map that turns out to be damaged is set aside, and counts as none.
        """
        if self._known.all() is not self._holdings:
            self._seat()
        found: dict[str, Ground] = {}
        for names, panel in self._panels:
            page = keys.get(panel.rules)
            if page is None:
                try:
                    page = keys[panel.rules] = key(uri, panel.rules)
                except UriError:
                    continue  # no page by these rules, although it is one by others: they know nothing about it
            numbers = panel.lookup_key(page)
            for other in alternative_keys(uri, panel.rules):
                numbers = bytes(map(_first_that_holds, numbers, panel.lookup_key(other)))
            found.update(zip(names, map(_BY_NUMBER.__getitem__, numbers), strict=True))
            if not _TO_BE_JUDGED.isdisjoint(numbers):
                self._judge(page, dict(zip(names, numbers, strict=True)), found)
        return found

    def weigh(self, keys: Mapping[str, str], found: dict[str, Ground]) -> None:
        """Tell wildcards apart, among grounds that `of` found for the same page, by how many copies lie below them.

        It takes a look into each map more, so that it is done only where somebody chooses by likelihood.
        """
        for name, ground in found.items():
            holdings = self._holdings.get(name)
            if ground is not Ground.WILDCARD or holdings is None or holdings.map is None:
                continue
            try:
                frequency = holdings.map.lookup_key(keys[holdings.rules]).frequency
            except InputError as error:
                self._known.set_aside(name, str(error))
                continue
            copies = None if frequency is None else frequency.mementos
            if copies is not None and not FEW <= copies < MANY:
                found[name] = Ground.WILDCARD_FEW if copies < FEW else Ground.WILDCARD_MANY

    def _seat(self) -> None:
        """Put together what is known now."""
        self._holdings = self._known.all()
        rules = dict.fromkeys(each.rules for each in self._holdings.values())
        self._panels = []
        for each in rules:
            names = tuple(name for name, holdings in self._holdings.items() if holdings.rules == each)
            self._panels.append((names, Panel([self._holdings[name] for name in names])))

    def _judge(self, page: str, numbers: dict[str, int], found: dict[str, Ground]) -> None:
        """Correct the grounds of archives whose filter may be old, or of whole URLs, or whose files are damaged."""
        for name, number in numbers.items():
            holdings = self._holdings[name]
            if number == Finding.WILDCARD_ONLY and holdings.has_old_filter():
                found[name] = Ground.OLD_FILTER
            elif number == Finding.LISTED_ONLY and holdings.has_deciding_filters:
                found[name] = Ground.DENIED
            elif number == Finding.DAMAGED:
                del found[name]
                try:
                    holdings.lookup_key(page)
                except InputError as error:
                    self._known.set_aside(name, str(error))
