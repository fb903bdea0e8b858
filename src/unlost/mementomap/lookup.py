"""Combined look-ups in the map and the filters of one or more archives, with the reason for each decision.

A map describes an archive and generalizes to new pages; a filter says what the archive held on a day. So a filter that
is old must not deny what a wildcard covers.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum, StrEnum

from unlost import _core
from unlost.dates import to_datetime
from unlost.errors import InputError, UriError, UsageError
from unlost.mementomap.filter import Filter
from unlost.mementomap.map import LookupResult, Map
from unlost.mementomap.map_file import map_update_date
from unlost.uri import key

REBUILD_AFTER_DAYS = 7
"""Days after which maps and filters should be rebuilt. An older filter does not deny what a wildcard covers.

Measured by `make bench-ageing` on 362,957 links with real dates, over four days of 2012 and 2013: a week after its
build, a map with a filter of 8 bits misses 1.8 % of the pages held by then, and its precision is 99 %; after two weeks
98 %, after a month 96 %. That collection grew by 1.8 % a week. What counts is the share of new pages, so slower growth
allows a longer interval. docs/map.md has the table."""


DEFAULT_MAX_FILTER_AGE = timedelta(days=REBUILD_AFTER_DAYS)
"""Age from which a filter lacks too many new captures to deny a page."""
_CLOCK_SKEW = timedelta(days=1)
"""Tolerance for different clocks and time zones."""


class RoutingDecision(StrEnum):
    """Whether an archive holds a page. `PERHAPS_NEWER`: it may have captured the page after the filter was built."""

    HELD = "held"
    NOT_HELD = "not held"
    PERHAPS_NEWER = "perhaps newer"


class RoutingReason(StrEnum):
    """Reason for a decision."""

    BOTH = "map and filter have it"
    MAP = "the map has it"
    FILTER = "the filter has it"
    LISTED = "the map lists the page itself, the filter does not have it"
    OLD_FILTER = "a wildcard covers it, the filter is too old to deny that"
    UNCOVERED = "nothing in the map covers it"
    EXCLUDED = "the map excludes it"
    FILTERED = "the filter does not have it"


@dataclass(frozen=True, slots=True)
class HoldingsResult:
    """Result of a look-up of one page.

    Attributes:
        key: Key of the page, without its query string.
        decision: Whether it is held.
        reason: Why.
        map_result: Result of the map alone; None if there is no map.
    """

    key: str
    decision: RoutingDecision
    reason: RoutingReason
    map_result: LookupResult | None = None

    @property
    def should_query(self) -> bool:
        """Whether the archive may hold the page and should be queried."""
        return self.decision is not RoutingDecision.NOT_HELD


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


class ArchiveHoldings:
    """What is known about the holdings of an archive: a map, filters, or both.

    Map and filters must be built from the same rows: a filter of HTML pages would deny the images that a map of
    everything lists. All methods are thread-safe.

    Args:
        map: A map, which generalizes to new pages through its wildcards; None if there is none.
        filters: Filters of the holdings on a certain day. A page in any of them counts as held, since each may cover a
            part of the archive.
        max_age: Maximum age at which a filter may deny a page that a wildcard of the map covers. The age is counted
            from the build date, or else from the last capture. A filter without either, or with a date in the future,
            is too old.
        now: Returns the current time.

    Attributes:
        has_deciding_filters: Whether the filters may deny a page that the map lists: filters of whole URLs (`urir`),
            unless the map was built later.

    Raises:
        InputError: Map and filters have different rule sets.
        UsageError: There is neither a map nor a filter.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from unlost.mementomap import build_filter
    >>> with TemporaryDirectory() as folder:
    ...     urls, rows, pages = Path(folder, "urls"), Path(folder, "a.ukvs"), Path(folder, "a.filter")
    ...     _ = urls.write_text("http://example.com/a")
    ...     _ = rows.write_text("com,example)/* 1")
    ...     _ = build_filter([urls], pages)
    ...     holdings = ArchiveHoldings(Map.open(rows), [Filter.open(pages)])
    >>> for page in ("http://example.com/a", "http://example.com/b", "http://example.org/"):
    ...     print(holdings.lookup(page).decision)
    held
    perhaps newer
    not held
    """

    def __init__(
        self,
        map: Map | None,  # noqa: A002  the term of the field
        filters: Sequence[Filter] = (),
        max_age: timedelta = DEFAULT_MAX_FILTER_AGE,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        parts: list[Map | Filter] = [*([map] if map else []), *filters]
        if not parts:
            raise UsageError("neither a map nor a filter: nothing is known")
        for other in parts[1:]:
            if other.rules != parts[0].rules:
                raise InputError(
                    f"{other.path}: made by other rules ({other.rules}) than {parts[0].path} ({parts[0].rules})"
                )
        self.map = map
        self.filters = tuple(filters)
        self.rules = parts[0].rules
        self.max_age = max_age
        self._now = now
        filter_dates = [each.built_at or each.latest for each in self.filters]
        self._dates = [to_datetime(date) if date else None for date in filter_dates]
        self.has_deciding_filters = self._filters_decide()

    def _filters_decide(self) -> bool:
        """Return whether the filters may deny a page that the map lists.

        Keys of maps have no query strings: a row covers a page with any of them, while filters of whole URLs
        distinguish them. They decide, unless the map was built later and may contain newer captures.
        """
        if self.map is None or not self.filters or any(each.key != "urir" for each in self.filters):
            return False
        date = map_update_date(self.map.header)
        filter_dates = [to_datetime(each.built_at) for each in self.filters if each.built_at]
        return date is None or all(to_datetime(date) - filter_date <= _CLOCK_SKEW for filter_date in filter_dates)

    def lookup(self, uri: str | bytes) -> HoldingsResult:
        """Look up a page, given by its URL or SURT.

        Raises:
            UriError: The URL is invalid.
            InputError: A file is damaged.
        """
        result = self.lookup_many([uri], 1)[0]
        if isinstance(result, UriError):
            raise result
        return result

    def lookup_key(self, key: str) -> HoldingsResult:
        """Look up a normalized key (`unlost.uri.key` with the same rules), including its query string.

        To look up one page in many archives, compute its key once.
        """
        if self.map is None:
            reason = RoutingReason.FILTER if self._is_key_in_filters(key) else RoutingReason.FILTERED
            decision = RoutingDecision.HELD if reason is RoutingReason.FILTER else RoutingDecision.NOT_HELD
            return HoldingsResult(key.partition("?")[0], decision, reason)
        map_result = self.map.lookup_key(key)
        in_filters = self._is_key_in_filters(key) if self.filters and map_result.held else None
        return self._decide(map_result, in_filters, is_old=in_filters is False and self.has_old_filter())

    def _is_key_in_filters(self, key: str) -> bool:
        return any(each.lookup_key(key) for each in self.filters)

    def lookup_many(self, uris: Iterable[str | bytes], threads: int | None = None) -> list[HoldingsResult | UriError]:
        """Return for each URL the result of `lookup`, or the UriError that it would raise.

        Args:
            uris: URLs or SURTs.
            threads: Maximum number of threads; None for all processors.
        """
        pages = list(uris)
        if self.map is None:
            return self._lookup_in_filters(pages, threads)
        map_results = self.map.lookup_many(pages, threads)
        covered = [
            index
            for index, map_result in enumerate(map_results)
            if isinstance(map_result, LookupResult) and map_result.held
        ]
        in_filters = dict(zip(covered, self._are_in_filters([pages[index] for index in covered], threads), strict=True))
        is_old = self.has_old_filter()
        return [
            map_result
            if isinstance(map_result, UriError)
            else self._decide(map_result, in_filters.get(index), is_old=is_old)
            for index, map_result in enumerate(map_results)
        ]

    def _lookup_in_filters(self, uris: list[str | bytes], threads: int | None) -> list[HoldingsResult | UriError]:
        results: list[HoldingsResult | UriError] = []
        for uri, in_filters in zip(uris, self._are_in_filters(uris, threads), strict=True):
            if isinstance(in_filters, UriError):
                results.append(in_filters)
            elif in_filters:
                results.append(HoldingsResult(self._page_key(uri), RoutingDecision.HELD, RoutingReason.FILTER))
            else:
                results.append(HoldingsResult(self._page_key(uri), RoutingDecision.NOT_HELD, RoutingReason.FILTERED))
        return results

    def _page_key(self, uri: str | bytes) -> str:
        return key(uri, self.rules).partition("?")[0]

    def _are_in_filters(self, uris: list[str | bytes], threads: int | None) -> list[bool | UriError | None]:
        """Return for each URL whether any filter contains it; None if there are no filters."""
        if not self.filters:
            return [None] * len(uris)
        results: list[bool | UriError | None] = [False] * len(uris)
        # Each filter is queried only for the pages that the previous filters lack.
        remaining = list(range(len(uris)))
        for filter_ in self.filters:
            for index, is_member in zip(
                remaining, filter_.lookup_many([uris[index] for index in remaining], threads), strict=True
            ):
                results[index] = is_member
            remaining = [index for index in remaining if results[index] is False]
        return results

    def has_old_filter(self) -> bool:
        """Return whether a filter is too old to deny what a wildcard of the map covers."""
        now = self._now()
        # Some indexes have captures dated in the future, which would make a filter seem new forever.
        return any(date is None or not -_CLOCK_SKEW <= now - date <= self.max_age for date in self._dates)

    def _decide(self, map_result: LookupResult, in_filters: bool | UriError | None, *, is_old: bool) -> HoldingsResult:
        if not map_result.held:
            reason = RoutingReason.UNCOVERED if map_result.matched is None else RoutingReason.EXCLUDED
            return HoldingsResult(map_result.key, RoutingDecision.NOT_HELD, reason, map_result)
        if in_filters is None or isinstance(in_filters, UriError):  # no UriError: the map has parsed the same URL
            return HoldingsResult(map_result.key, RoutingDecision.HELD, RoutingReason.MAP, map_result)
        if in_filters:
            return HoldingsResult(map_result.key, RoutingDecision.HELD, RoutingReason.BOTH, map_result)
        is_listed = not (map_result.matched or "").endswith("*")
        # The map lists the page; a filter without it was built on another day, or from other rows.
        if is_listed and not self.has_deciding_filters:
            return HoldingsResult(map_result.key, RoutingDecision.PERHAPS_NEWER, RoutingReason.LISTED, map_result)
        if is_old and not is_listed:
            return HoldingsResult(map_result.key, RoutingDecision.PERHAPS_NEWER, RoutingReason.OLD_FILTER, map_result)
        return HoldingsResult(map_result.key, RoutingDecision.NOT_HELD, RoutingReason.FILTERED, map_result)


class HoldingsMatch(IntEnum):
    """What one archive's map and filters say about a page, regardless of their age."""

    UNCOVERED = 0
    """No row of the map covers it."""
    EXCLUDED = 1
    """The map excludes it."""
    NOT_IN_FILTERS = 2
    """There is no map, and no filter contains it."""
    IN_FILTERS = 3
    """There is no map, and a filter contains it."""
    LISTED = 4
    """The map lists the page itself, and there are no filters."""
    WILDCARD = 5
    """A wildcard of the map covers it, and there are no filters."""
    IN_BOTH = 6
    """The map covers it, and a filter contains it."""
    LISTED_ONLY = 7
    """The map lists the page itself, but no filter contains it."""
    WILDCARD_ONLY = 8
    """A wildcard covers it, but no filter contains it; the age of the filters decides."""
    DAMAGED = 9
    """A file is damaged; `ArchiveHoldings.lookup_key` raises the error."""


class MultiLookup:
    """Look-ups in the holdings of several archives with the same key rules, in one call of the Rust core.

    For 14 archives a look-up takes 40 µs; one call per archive takes 140 µs. Thread-safe.

    Attributes:
        rules: Rule set of the keys.
        size: Number of archives.

    Raises:
        UsageError: The rule sets differ, or there are no archives.
    """

    def __init__(self, holdings: Sequence[ArchiveHoldings]) -> None:
        rules = {each.rules for each in holdings}
        if len(rules) != 1:
            raise UsageError("holdings of one rule set are asked together: expected some, and all of the same")
        self.rules = rules.pop()
        self.size = len(holdings)
        self._core_lookup = _core.CoreMultiLookup(
            [(each.map.rows if each.map else None, [pages.file for pages in each.filters]) for each in holdings]
        )

    def lookup_key(self, key: str) -> bytes:
        """Return the number of a `HoldingsMatch` for each archive. The key is normalized (`unlost.uri.key`)."""
        return self._core_lookup.lookup_key(key)
