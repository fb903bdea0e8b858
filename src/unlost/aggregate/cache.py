"""In-memory cache of results, limited by lifetime and bytes."""

import math
import sys
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import NamedTuple

from unlost.aggregate.models import AggregateResult, ArchiveReport, RoutingOptions
from unlost.clock import Clock
from unlost.memento.timemap import Mementos

DEFAULT_MEMORY_BYTES = 1 << 24
"""Default size of the cache: some 30,000 pages without mementos."""

MAX_CLOCK_SKEW = 60.0
"""Seconds by which a result may be dated in the future, since clocks differ. Later dates come from a wrong clock."""

_ENTRY_BYTES = 480  # an entry without its strings: slot in the dictionary, key, AggregateResult and its numbers
_MAX_SHARED_REPORTS = 4096  # distinct reports that are interned
_ReportKey = tuple[str, str, str, int, str]  # a report without its duration


class _CacheEntry(NamedTuple):
    """A cached result, its size in bytes, and when other caches were last checked for a newer one."""

    result: AggregateResult
    size: int
    checked_at: float


@dataclass(frozen=True, slots=True)
class CacheLifetimes:
    """How long results are cached, in seconds.

    Attributes:
        timemap: A complete result with mementos.
        miss: A complete result without mementos.
        partial: A result with mementos while an archive failed. Without mementos, such a result is not cached.
    """

    timemap: float = 86_400.0
    miss: float = 3_600.0
    partial: float = 60.0

    def lifetime_of(self, result: AggregateResult, *, is_whole: bool) -> float:
        """Return for how many seconds a result may be cached; 0 for not at all.

        Args:
            result: The result.
            is_whole: Whether no archive failed. An archive that by design lists only a part has not failed.
        """
        if not len(result.mementos):
            return 0.0 if result.failures else self.miss
        return self.timemap if is_whole else self.partial


def is_fresh(result: AggregateResult, now: float) -> bool:
    """Return whether a cached result may still be served."""
    return result.created_at - MAX_CLOCK_SKEW <= now < result.expires_at


class MemoryCache:
    """Results by URL and options, evicted in least-recently-used order. For one event loop.

    Attributes:
        bytes: Approximate size of the cached results.
    """

    def __init__(self, clock: Clock, max_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self.bytes = 0
        self._clock = clock
        self._max_bytes = max_bytes
        self._entries: OrderedDict[tuple[str, RoutingOptions], _CacheEntry] = OrderedDict()
        self._reports: dict[_ReportKey, ArchiveReport] = {}
        self._report_lists: dict[tuple[_ReportKey, ...], tuple[ArchiveReport, ...]] = {}
        self._id_lists: dict[tuple[str, ...], tuple[str, ...]] = {}

    def __len__(self) -> int:
        """Return the number of cached results."""
        return len(self._entries)

    def get(self, uri: str, options: RoutingOptions, max_unchecked: float = math.inf) -> AggregateResult | None:
        """Return a cached result; None if there is none or it is stale.

        Args:
            uri: The page.
            options: The routing options.
            max_unchecked: Maximum seconds since other caches were checked for a newer one, as recorded by
                `mark_checked`.
        """
        key = (uri, options)
        entry = self._entries.get(key)
        if entry is None:
            return None
        now = self._clock.now()
        if not is_fresh(entry.result, now):
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return entry.result if abs(now - entry.checked_at) < max_unchecked else None

    def mark_checked(self, uri: str, options: RoutingOptions) -> None:
        """Record that other caches have nothing newer."""
        key = (uri, options)
        if (entry := self._entries.get(key)) is not None:
            self._entries[key] = entry._replace(checked_at=self._clock.now())

    def put(self, options: RoutingOptions, result: AggregateResult) -> bool:
        """Cache a result and return whether it was cached.

        A result with failures does not replace a complete one, and a result larger than the cache is rejected.
        Durations are dropped, since a cached result has none.
        """
        if not is_fresh(result, self._clock.now()):
            return False
        key = (result.uri, options)
        previous = self.get(*key)
        if previous is not None:
            if result.failures and not previous.failures:
                return False
            self._drop(key)
        reports = self._share_reports(result.reports)
        passed_over = self._id_lists.setdefault(result.passed_over, result.passed_over)
        cached = replace(result, reports=reports, passed_over=passed_over, from_cache=True)
        size = memory_size(cached)
        if size > self._max_bytes:
            return False
        self.bytes += size
        while self.bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))
        self._entries[key] = _CacheEntry(cached, size, self._clock.now())
        return True

    def _drop(self, key: tuple[str, RoutingOptions]) -> None:
        self.bytes -= self._entries.pop(key).size

    def _share_reports(self, reports: tuple[ArchiveReport, ...]) -> tuple[ArchiveReport, ...]:
        """Return the reports without durations.

        Equal reports share one object: most pages are held by no archive, for the same reasons. Cached, such a page
        takes half a kilobyte, including its URL.
        """
        for pool in (self._reports, self._report_lists, self._id_lists):
            if len(pool) > _MAX_SHARED_REPORTS:
                pool.clear()
        keys = tuple((each.archive, each.reason, each.outcome, each.mementos, each.message) for each in reports)
        shared_reports = self._report_lists.get(keys)
        if shared_reports is not None:
            return shared_reports
        interned = []
        for key, report in zip(keys, reports, strict=True):
            if key not in self._reports:
                self._reports[key] = replace(report, duration_ms=0.0)
            interned.append(self._reports[key])
        shared_reports = tuple(interned)
        # Reports with numbers of mementos seldom recur.
        if not any(report.mementos for report in shared_reports):
            self._report_lists[keys] = shared_reports
        return shared_reports


def memory_size(result: AggregateResult) -> int:
    """Return the approximate size of a result in memory, in bytes."""
    size = _ENTRY_BYTES + sys.getsizeof(result.uri) + sys.getsizeof(result.passed_over)
    # Other reports are shared between results.
    own = [report for report in result.reports if report.mementos or report.message]
    if own:
        size += sys.getsizeof(result.reports)
        size += sum(sys.getsizeof(report) + sys.getsizeof(report.message) for report in own)
    return size + _mementos_size(result.mementos)


def _mementos_size(mementos: Mementos) -> int:
    if not len(mementos):
        return 0
    if "__sizeof__" in type(mementos).__dict__:  # the Rust class reports its own size
        return sys.getsizeof(mementos)
    return sum(sys.getsizeof(row) + sys.getsizeof(row.datetime) + sys.getsizeof(row.uri) + 8 for row in mementos)
