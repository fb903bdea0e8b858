"""What maps and filters of all archives say about one page: the grounds on which each is worth asking, or not."""

from collections.abc import Mapping
from typing import Protocol

from unlost.aggregate.hit_rates import Evidence
from unlost.errors import InputError, UriError
from unlost.holdings.panel import HoldingsMatch, MultiLookup
from unlost.holdings.routing import ArchiveHoldings
from unlost.uri import alternative_keys, key

_EVIDENCE_OF_FINDING = {
    HoldingsMatch.UNCOVERED: Evidence.DENIED,
    HoldingsMatch.EXCLUDED: Evidence.DENIED,
    HoldingsMatch.NOT_IN_FILTERS: Evidence.DENIED,
    HoldingsMatch.IN_FILTERS: Evidence.FILTER,
    HoldingsMatch.LISTED: Evidence.LISTED,
    HoldingsMatch.WILDCARD: Evidence.WILDCARD,
    HoldingsMatch.IN_BOTH: Evidence.BOTH,
    HoldingsMatch.LISTED_ONLY: Evidence.LISTED_ONLY,  # unless the filters are of whole URLs
    HoldingsMatch.WILDCARD_ONLY: Evidence.DENIED,  # unless the filter is old
    HoldingsMatch.DAMAGED: Evidence.ANY,
}
_EVIDENCE_BY_NUMBER = [_EVIDENCE_OF_FINDING[finding] for finding in HoldingsMatch]
_AMBIGUOUS_FINDINGS = frozenset({HoldingsMatch.WILDCARD_ONLY, HoldingsMatch.LISTED_ONLY, HoldingsMatch.DAMAGED})


FEW_MEMENTOS, MANY_MEMENTOS = 100, 10_000
"""Copies below a wildcard: fewer than the one, or as many as the other, make it less likely, or more, that one is of
the page. Between them is what most wildcards of maps by weights have."""


def _prefer_holding(finding: int, other: int) -> int:
    """Return what is found under a page's key, or under another one that tools give it where the first is denied."""
    if finding in (HoldingsMatch.WILDCARD_ONLY, HoldingsMatch.LISTED_ONLY):
        return other if _EVIDENCE_BY_NUMBER[other] is not Evidence.DENIED else finding
    return other if _EVIDENCE_BY_NUMBER[finding] is Evidence.DENIED else finding


class HoldingsSource(Protocol):
    """Whoever knows maps and filters."""

    def holdings(self) -> Mapping[str, ArchiveHoldings]:
        """Return what is known of archives, by id: the very same object until something changes."""
        ...

    def mark_damaged(self, archive: str, problem: str) -> None:
        """Take note that what is known turned out to be damaged: from now on nothing is, until it is read anew."""
        ...


class HoldingsLookup:
    """Looks pages up in all maps and filters at once."""

    def __init__(self, source: HoldingsSource) -> None:
        self._source = source
        self._holdings: Mapping[str, ArchiveHoldings] = {}
        self._lookups: list[tuple[tuple[str, ...], MultiLookup]] = []

    def find_evidence(self, uri: str, keys: dict[str, str]) -> dict[str, Evidence]:
        """Return the ground of each archive that has a map or filters, by id; the others are not there.

        keys: of the page, by the rules under which they were made; others that are needed are added.
        A map that turns out to be damaged is set aside, and counts as none.
        """
        if self._source.holdings() is not self._holdings:
            self._rebuild_lookups()
        found: dict[str, Evidence] = {}
        for names, panel in self._lookups:
            page = keys.get(panel.rules)
            if page is None:
                try:
                    page = keys[panel.rules] = key(uri, panel.rules)
                except UriError:
                    continue  # no page by these rules, although it is one by others: they know nothing about it
            numbers = panel.lookup_key(page)
            for other in alternative_keys(uri, panel.rules):
                numbers = bytes(map(_prefer_holding, numbers, panel.lookup_key(other)))
            found.update(zip(names, map(_EVIDENCE_BY_NUMBER.__getitem__, numbers), strict=True))
            if not _AMBIGUOUS_FINDINGS.isdisjoint(numbers):
                self._resolve_ambiguous(page, dict(zip(names, numbers, strict=True)), found)
        return found

    def refine_wildcards(self, keys: Mapping[str, str], found: dict[str, Evidence]) -> None:
        """Tell wildcards apart, among grounds that `of` found for the same page, by how many copies lie below them.

        It takes a look into each map more, so that it is done only where somebody chooses by likelihood.
        """
        for name, ground in found.items():
            holdings = self._holdings.get(name)
            if ground is not Evidence.WILDCARD or holdings is None or holdings.map is None:
                continue
            try:
                frequency = holdings.map.lookup_key(keys[holdings.rules]).frequency
            except InputError as error:
                self._source.mark_damaged(name, str(error))
                continue
            copies = None if frequency is None else frequency.mementos
            if copies is not None and not FEW_MEMENTOS <= copies < MANY_MEMENTOS:
                found[name] = Evidence.WILDCARD_FEW if copies < FEW_MEMENTOS else Evidence.WILDCARD_MANY

    def _rebuild_lookups(self) -> None:
        """Put together what is known now."""
        self._holdings = self._source.holdings()
        rules = dict.fromkeys(each.rules for each in self._holdings.values())
        self._lookups = []
        for each in rules:
            names = tuple(name for name, holdings in self._holdings.items() if holdings.rules == each)
            self._lookups.append((names, MultiLookup([self._holdings[name] for name in names])))

    def _resolve_ambiguous(self, page: str, numbers: dict[str, int], found: dict[str, Evidence]) -> None:
        """Correct the grounds of archives whose filter may be old, or of whole URLs, or whose files are damaged."""
        for name, number in numbers.items():
            holdings = self._holdings[name]
            if number == HoldingsMatch.WILDCARD_ONLY and holdings.has_old_filter():
                found[name] = Evidence.OLD_FILTER
            elif number == HoldingsMatch.LISTED_ONLY and holdings.has_deciding_filters:
                found[name] = Evidence.DENIED
            elif number == HoldingsMatch.DAMAGED:
                del found[name]
                try:
                    holdings.lookup_key(page)
                except InputError as error:
                    self._source.mark_damaged(name, str(error))
