"""Keeps answers in memory, for as long as they may be kept, in no more bytes than there are for them."""

import math
import sys
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import NamedTuple

from unlost.aggregate.models import AggregateResult, ArchiveReport, RoutingOptions
from unlost.clock import Clock
from unlost.memento.timemap import Mementos

DEFAULT_MEMORY_BYTES = 1 << 24
"""How much is kept in memory, unless somebody says otherwise: some 30,000 pages that no archive has."""

MAX_CLOCK_SKEW = 60.0
"""Seconds that an answer may be from the future: clocks differ. What is later was kept by a clock that was wrong."""

_ENTRY_BYTES = 480  # bytes of an entry besides its texts: a place in the dictionary, a key, a Found and its numbers
_MAX_SHARED_REPORTS = 4096  # different reports that are remembered, so that equal ones are kept once


_ReportKey = tuple[str, str, str, int, str]  # a report without its time


class _CacheEntry(NamedTuple):
    """What is kept, its bytes, and when somebody last looked whether others keep something newer."""

    result: AggregateResult
    size: int
    checked_at: float


@dataclass(frozen=True, slots=True)
class CacheLifetimes:
    """For how many seconds an answer is kept.

    timemap: copies that were found. miss: that there are none.
    partly: copies that were found while an archive failed; that none were found then is not kept at all.
    """

    timemap: float = 86_400.0
    miss: float = 3_600.0
    partial: float = 60.0

    def lifetime_of(self, result: AggregateResult, *, is_whole: bool) -> float:
        """Return for how many seconds an answer may be kept; 0 for not at all.

        is_whole: whether no archive failed; one that always lists a part, and did, has not.
        """
        if not len(result.mementos):
            return 0.0 if result.failures else self.miss
        return self.timemap if is_whole else self.partial


def is_fresh(result: AggregateResult, now: float) -> bool:
    """Return whether an answer may still be given."""
    return result.created_at - MAX_CLOCK_SKEW <= now < result.expires_at


class MemoryCache:
    """Answers by page and wish; those that were not asked for go first when there is no room.

    It is used by one event loop. bytes: how much it holds.
    """

    def __init__(self, clock: Clock, max_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self.bytes = 0
        self._clock = clock
        self._max_bytes = max_bytes
        self._entries: OrderedDict[tuple[str, RoutingOptions], _CacheEntry] = OrderedDict()
        self._reports: dict[_ReportKey, ArchiveReport] = {}
        self._lists: dict[tuple[_ReportKey, ...], tuple[ArchiveReport, ...]] = {}
        self._ids: dict[tuple[str, ...], tuple[str, ...]] = {}

    def __len__(self) -> int:
        """Return how many answers it holds."""
        return len(self._entries)

    def get(self, uri: str, options: RoutingOptions, max_unchecked: float = math.inf) -> AggregateResult | None:
        """Return what was kept; None if there is nothing, or it is too old.

        unseen: seconds for which it may be given without a look at what others keep, as `see` notes it.
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
        """Note that others keep nothing newer than what is kept here."""
        key = (uri, options)
        if (entry := self._entries.get(key)) is not None:
            self._entries[key] = entry._replace(checked_at=self._clock.now())

    def put(self, options: RoutingOptions, result: AggregateResult) -> bool:
        """Keep an answer until its time is over; return whether it is kept.

        What is found while archives fail does not take the place of what was found while none did. Too large an answer
        is not kept. Times that it took are forgotten: who is given it will not have asked anybody.
        """
        if not is_fresh(result, self._clock.now()):
            return False
        key = (result.uri, options)
        before = self.get(*key)
        if before is not None:
            if result.failures and not before.failures:
                return False
            self._drop(key)
        reports = self._share_reports(result.reports)
        passed_over = self._ids.setdefault(result.passed_over, result.passed_over)
        kept = replace(result, reports=reports, passed_over=passed_over, from_cache=True)
        size = memory_size(kept)
        if size > self._max_bytes:
            return False
        self.bytes += size
        while self.bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))
        self._entries[key] = _CacheEntry(kept, size, self._clock.now())
        return True

    def _drop(self, key: tuple[str, RoutingOptions]) -> None:
        self.bytes -= self._entries.pop(key).size

    def _share_reports(self, reports: tuple[ArchiveReport, ...]) -> tuple[ArchiveReport, ...]:
        """Return reports without times, equal ones as the same object: most pages are not had for the same reasons."""
        for shared in (self._reports, self._lists, self._ids):
            if len(shared) > _MAX_SHARED_REPORTS:
                shared.clear()
        said = tuple((each.archive, each.reason, each.outcome, each.mementos, each.message) for each in reports)
        known = self._lists.get(said)
        if known is not None:
            return known
        found = []
        for each, report in zip(said, reports, strict=True):
            if each not in self._reports:
                self._reports[each] = replace(report, duration_ms=0.0)
            found.append(self._reports[each])
        known = tuple(found)
        # Those with numbers of copies seldom come again.
        if not any(report.mementos for report in known):
            self._lists[said] = known
        return known


def memory_size(result: AggregateResult) -> int:
    """Return about how many bytes an answer takes in memory."""
    size = _ENTRY_BYTES + sys.getsizeof(result.uri) + sys.getsizeof(result.passed_over)
    # Others are shared.
    own = [report for report in result.reports if report.mementos or report.message]
    if own:
        size += sys.getsizeof(result.reports)
        size += sum(sys.getsizeof(report) + sys.getsizeof(report.message) for report in own)
    return size + _mementos_size(result.mementos)


def _mementos_size(mementos: Mementos) -> int:
    if not len(mementos):
        return 0
    if "__sizeof__" in type(mementos).__dict__:  # it knows
        return sys.getsizeof(mementos)
    return sum(sys.getsizeof(row) + sys.getsizeof(row.datetime) + sys.getsizeof(row.uri) + 8 for row in mementos)
