"""The aggregator: routes look-ups, queries archives concurrently, merges and caches results, coalesces requests."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Generic, Self, TypeVar

from unlost.aggregate.cache import CacheLifetimes, MemoryCache
from unlost.aggregate.disk_cache import DiskCache
from unlost.aggregate.listeners import ListenerGroup, UpstreamListener
from unlost.aggregate.models import ANSWERED_OUTCOMES, AggregateResult, ArchiveReport, CacheControl, RoutingOptions
from unlost.aggregate.router import ArchiveRoute, RouteProvider, RouteTarget
from unlost.aggregate.upstream import (
    NO_MEMENTOS,
    TIMER_TOLERANCE,
    UpstreamClient,
    UpstreamResult,
    endpoint_of,
    merge_mementos,
    record_outcome,
)
from unlost.clock import Clock
from unlost.errors import BusyError, NotKeptError
from unlost.http.circuit_breaker import BreakerPermit, BreakerRegistry
from unlost.http.models import HttpClient
from unlost.http.policy import POLICIES
from unlost.redaction import strip_userinfo
from unlost.uri import key as parse_key

T = TypeVar("T")

_RESPONSE_SHARE = 0.03  # share of the deadline reserved for merging and writing the response
_MIN_DISK_LIFETIME = 300.0  # seconds; partial results, which live for a minute, stay in memory
_MAX_DISK_MEMENTOS = 100_000  # of a page with more, writing would take several times the memory of the mementos
DISK_RECHECK_SECONDS = 60.0
"""Seconds for which a result is served from memory before the disk is checked for a newer one of another process, such
as one requested with `no_cache`."""
_GRACE_SECONDS = 0.5  # after the deadline, for cancelled requests to return what they have
_OPEN_MESSAGE = "it failed so often that it is left alone for a while"
_TRIAL_MESSAGE = "it failed so often that it was left alone; it is being tried again, and nobody waits for that"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _PendingQuery:
    target: RouteTarget
    is_trial: bool
    task: asyncio.Task[UpstreamResult]


class FanOut:
    """Queries archives concurrently.

    A request is abandoned when it outlives the deadline or is a trial of a half-open circuit. Abandoned requests are
    tracked until they have ended, so that they can be cancelled.
    """

    def __init__(
        self, client: UpstreamClient, clock: Clock, breakers: BreakerRegistry, listeners: ListenerGroup
    ) -> None:
        self._client = client
        self._clock = clock
        self._breakers = breakers
        self._listeners = listeners
        self._abandoned: set[asyncio.Task[UpstreamResult]] = set()

    async def query_all(
        self, uri: str, route: ArchiveRoute, until: float, closest_to: str | None = None
    ) -> tuple[AggregateResult, bool]:
        """Query all archives of a route.

        A cancelled call cancels its requests and waits for them.

        Args:
            uri: The page.
            route: The archives to query.
            until: Deadline, in the time of the event loop.
            closest_to: As in `RoutingOptions`.

        Returns:
            The result, and whether it is complete: no archive failed. An archive that by design lists only a part has
            not failed.
        """
        pending: list[_PendingQuery] = []
        reports: list[ArchiveReport] = []
        try:
            for target in route.targets:
                permit = self._breakers.breaker(target.archive.id).acquire()
                if permit is None:
                    reports.append(_skipped_report(target, _OPEN_MESSAGE))
                else:
                    task = asyncio.create_task(self._query(uri, target, permit, until, closest_to))
                    pending.append(_PendingQuery(target, permit.is_trial, task))
            await _wait_for_responses(pending, until)
        except BaseException:
            await _cancel_and_wait({query.task for query in pending})
            raise
        results = [query.task.result() for query in pending if _has_finished(query)]
        reports += [self._abandon(query, until) for query in pending if not _has_finished(query)]
        is_whole = not reports and all(query.final_outcome in ANSWERED_OUTCOMES for query in results)
        reports += [query.report for query in results]
        reports.sort(key=attrgetter("archive"))
        mementos = await merge_mementos([query.mementos for query in results])
        now = self._clock.now()
        is_selection = closest_to is not None and any(query.endpoint == "timegate" for query in results)
        known_ends = all(query.known_ends[0] for query in results), all(query.known_ends[1] for query in results)
        passed_over = tuple(sorted(route.passed_over))
        result = AggregateResult(
            uri, mementos, tuple(reports), passed_over, now, now, is_selection=is_selection, known_ends=known_ends
        )
        return replace(result, retry_at=self._retry_at(result, results)), is_whole

    def _retry_at(self, result: AggregateResult, upstream_results: list[UpstreamResult]) -> float | None:
        times = [each.retry_at for each in upstream_results if each.retry_at is not None]
        for report in result.failures:
            until = self._breakers.breaker(report.archive).status().until
            if until is not None:
                times.append(until)
        return min(times, default=None)

    async def close(self) -> None:
        """Cancel the requests that are still running."""
        await _cancel_and_wait(self._abandoned)

    def _abandon(self, pending: _PendingQuery, until: float) -> ArchiveReport:
        """Return the report of a request that is no longer awaited: a trial, or one that has not ended in time.

        A trial may run until the deadline, since it decides whether the circuit closes.
        """
        self._abandoned.add(pending.task)
        pending.task.add_done_callback(self._abandoned.discard)
        loop = asyncio.get_running_loop()
        if loop.time() >= until - TIMER_TOLERANCE:
            return replace(_skipped_report(pending.target, "not answered in time"), outcome="timeout")
        timer = loop.call_at(until, pending.task.cancel)
        pending.task.add_done_callback(lambda _: timer.cancel())
        return _skipped_report(pending.target, _TRIAL_MESSAGE)

    async def _query(
        self, uri: str, target: RouteTarget, permit: BreakerPermit, until: float, closest_to: str | None
    ) -> UpstreamResult:
        """Query one archive and notify the listeners. Raises nothing but CancelledError."""
        archive = target.archive
        outcome: str | None = None
        message = ""
        try:
            result = await self._client.query(uri, target, until, closest_to)
            outcome, message = result.final_outcome, result.report.message
        except asyncio.CancelledError:
            outcome = "timeout" if asyncio.get_running_loop().time() >= until - TIMER_TOLERANCE else None
            raise
        except Exception as error:  # noqa: BLE001  a fault caused by one archive must not lose the mementos of the others
            _log.exception("%s: a fault of unlost while it was asked for %r", archive.id, strip_userinfo(uri)[:200])
            outcome, message = "malformed", f"a fault of unlost: {error!s:.200}"
            report = ArchiveReport(archive.id, target.reason, "malformed", message=message)
            result = UpstreamResult(
                uri, target, self._clock.now(), endpoint_of(archive), NO_MEMENTOS, report, "malformed"
            )
        finally:
            record_outcome(self._breakers.breaker(archive.id), permit, outcome, message, uri)
        self._listeners.on_upstream_result(result)
        return result


async def _wait_for_responses(pending: list[_PendingQuery], until: float) -> None:
    """Wait for all responses or the deadline.

    Trials are awaited only if all requests are trials, since an archive whose circuit is half-open most likely hangs.
    """
    awaited = [query.task for query in pending if not query.is_trial] or [query.task for query in pending]
    if not awaited:
        return
    # One timer for all archives: a timer for each costs more than everything else that is done for a miss.
    _, late = await asyncio.wait(awaited, timeout=max(0.0, until - asyncio.get_running_loop().time()))
    for task in late:
        task.cancel()
    if late:
        # A cancelled request returns what it has received; the timeout is for those that do not end.
        await asyncio.wait(late, timeout=_GRACE_SECONDS)


def _has_finished(pending: _PendingQuery) -> bool:
    return pending.task.done() and not pending.task.cancelled()


def _skipped_report(target: RouteTarget, message: str) -> ArchiveReport:
    return ArchiveReport(target.archive.id, target.reason, "dormant", message=message)


async def _cancel_and_wait(tasks: set[asyncio.Task[UpstreamResult]]) -> None:
    """Cancel tasks and wait for them, for at most `_GRACE_SECONDS`."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_GRACE_SECONDS)


class CoalescedTask(Generic[T]):
    """A task that several callers wait for.

    Attributes:
        is_begun: Whether the task is finished even without waiters. Set by the work itself.
        waiters: Number of callers that wait for the result.
        task: The task.
    """

    def __init__(self) -> None:
        self.is_begun = False
        self.waiters = 0
        self.task: asyncio.Task[T] | None = None


class RequestCoalescer(Generic[T]):
    """Runs equal work once, by key.

    A waiter that is cancelled does not cancel the work of others. When all waiters are cancelled, work that has begun
    is finished: its requests are already sent, it ends within its deadline, and clients that give up usually retry.
    Work that has not begun is cancelled.
    """

    def __init__(self) -> None:
        self._tasks: dict[Hashable, CoalescedTask[T]] = {}

    def __len__(self) -> int:
        """Return the number of running tasks."""
        return len(self._tasks)

    def __contains__(self, key: Hashable) -> bool:
        """Return whether a task is running for a key."""
        return key in self._tasks

    async def run(self, key: Hashable, work: Callable[[CoalescedTask[T]], Awaitable[T]]) -> T:
        """Return the result of the work for a key, starting it unless it is running. Raises what the work raises."""
        coalesced = self._tasks.get(key)
        if coalesced is None:
            coalesced = self._tasks[key] = CoalescedTask()
            coalesced.task = asyncio.create_task(self._run(key, coalesced, work))
            coalesced.task.add_done_callback(_retrieve_exception)
        assert coalesced.task is not None  # noqa: S101  for types
        coalesced.waiters += 1
        try:
            return await asyncio.shield(coalesced.task)
        except asyncio.CancelledError:
            waiter = asyncio.current_task()
            if coalesced.task.cancelled() and (waiter is None or not waiter.cancelling()):
                # `close` cancelled the shared task, not the caller its own.
                raise BusyError("closing: nothing is looked for any more", 1.0) from None
            raise
        finally:
            coalesced.waiters -= 1
            if not coalesced.waiters and not coalesced.is_begun and not coalesced.task.done():
                coalesced.task.cancel()
                self._forget(key, coalesced)

    async def close(self) -> None:
        """Cancel all tasks and wait for them to end."""
        tasks = [coalesced.task for coalesced in self._tasks.values() if coalesced.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(
        self, key: Hashable, coalesced: CoalescedTask[T], work: Callable[[CoalescedTask[T]], Awaitable[T]]
    ) -> T:
        try:
            return await work(coalesced)
        finally:
            self._forget(key, coalesced)

    def _forget(self, key: Hashable, coalesced: CoalescedTask[T]) -> None:
        if self._tasks.get(key) is coalesced:
            del self._tasks[key]


def _retrieve_exception(task: asyncio.Task[T]) -> None:
    """Retrieve the exception, so that asyncio does not log it as never retrieved."""
    if not task.cancelled():
        task.exception()


@dataclass(frozen=True, slots=True)
class ConcurrencyLimits:
    """Limits of one aggregator.

    Attributes:
        deadline: Seconds after which a result is returned with the responses received so far, including the wait for a
            slot.
        max_active: Pages that are looked up at the same time.
        max_waiting: Pages that may wait for a slot. Beyond that, and after waiting for half of the deadline, BusyError
            is raised.
    """

    deadline: float = 10.0
    max_active: int = 256
    max_waiting: int = 1024


class MementoAggregator:
    """Finds the mementos of a page in many archives; implements `MementoFinder`. Use it as an async context manager.

    Args:
        router: Chooses the archives.
        client: Sends the requests; it should wait for rate limits for at most `MAX_WAITS["aggregate"]` seconds.
        clock: Source of time.
        breakers: Circuit breakers of the archives.
        memory: Cache in memory.
        disk: Cache on disk; without it, no result outlives the process.
        lifetimes: How long results are cached.
        limits: Deadline and number of concurrent look-ups.
        listeners: Notified of every upstream response and result.
    """

    def __init__(
        self,
        router: RouteProvider,
        client: HttpClient,
        clock: Clock,
        *,
        breakers: BreakerRegistry | None = None,
        memory: MemoryCache | None = None,
        disk: DiskCache | None = None,
        lifetimes: CacheLifetimes = CacheLifetimes(),  # noqa: B008  frozen
        limits: ConcurrencyLimits = ConcurrencyLimits(),  # noqa: B008
        listeners: Sequence[UpstreamListener] = (),
    ) -> None:
        self.breakers = breakers or BreakerRegistry(clock, POLICIES["aggregate"])
        self.memory = MemoryCache(clock) if memory is None else memory
        self.disk = disk
        self._router = router
        self._listeners = ListenerGroup(listeners)
        self._fanout = FanOut(UpstreamClient(client, clock), clock, self.breakers, self._listeners)
        self._lifetimes = lifetimes
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.max_active)
        self._active: RequestCoalescer[AggregateResult] = RequestCoalescer()

    async def __aenter__(self) -> Self:
        """Open the disk cache."""
        if self.disk is not None:
            await self.disk.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Cancel running look-ups, write pending results to disk, and wait for both."""
        await self._active.close()
        await self._fanout.close()
        if self.disk is not None:
            await self.disk.__aexit__(None, None, None)

    def get_cached(self, uri: str, options: RoutingOptions = RoutingOptions()) -> AggregateResult | None:  # noqa: B008
        """Return a result from memory without blocking, or None. `find` does the same first.

        With a disk cache, it also returns None if the disk was not checked within `DISK_RECHECK_SECONDS`.
        """
        max_unchecked = math.inf if self.disk is None else DISK_RECHECK_SECONDS
        if options.closest_to is None:
            return self.memory.get(uri, options, max_unchecked)
        return self.memory.get(uri, options.for_all_mementos, max_unchecked) or self.memory.get(uri, options)

    async def find(
        self,
        uri: str,
        options: RoutingOptions = RoutingOptions(),  # noqa: B008
        cache_control: CacheControl = CacheControl(),  # noqa: B008
    ) -> AggregateResult:
        """Return the mementos of a page within the deadline, with a report for each selected archive.

        Raises:
            UriError: The URL is invalid.
            NotKeptError: Only a cached result is acceptable, and there is none.
            UsageError: The options are invalid, such as an unknown archive.
            BusyError: Too many pages are being looked up.
        """
        if not cache_control.no_cache:
            cached = self.get_cached(uri, options)
            if cached is not None:
                return cached
        parse_key(uri)  # raises UriError for an invalid URL
        if cache_control.only_if_cached:
            cached = None if cache_control.no_cache else await self._get_newest_cached(uri, options)
            if cached is None:
                raise NotKeptError("no archive was to be asked, and no answer about this page was kept")
            return cached
        # A running refresh serves every request; a look-up that may end at the disk cache does not serve a refresh.
        is_refresh = cache_control.no_cache or (uri, options, True) in self._active
        key = (uri, options, is_refresh)
        if key not in self._active and len(self._active) >= self._limits.max_active + self._limits.max_waiting:
            if not is_refresh and (cached := self.memory.get(uri, options)) is not None:
                return cached  # there may be a newer one, but this one is better than an error
            raise self._busy_error()
        until = asyncio.get_running_loop().time() + self._limits.deadline * (1 - _RESPONSE_SHARE)
        return await self._active.run(
            key, lambda coalesced: self._find(coalesced, uri, options, until, is_refresh=is_refresh)
        )

    async def _find(
        self,
        coalesced: CoalescedTask[AggregateResult],
        uri: str,
        options: RoutingOptions,
        until: float,
        *,
        is_refresh: bool,
    ) -> AggregateResult:
        if not is_refresh and (cached := await self._get_newest_cached(uri, options)) is not None:
            return cached
        await self._acquire_slot(until - self._limits.deadline / 2)
        try:
            coalesced.is_begun = True
            route = self._router.route(uri, options)
            result, is_whole = await self._fanout.query_all(uri, route, until, options.closest_to)
        finally:
            self._slots.release()
        lifetime = self._lifetimes.lifetime_of(result, is_whole=is_whole)
        result = replace(result, expires_at=result.created_at + lifetime)
        if not result.is_selection:
            options = options.for_all_mementos
        is_for_disk = (
            not result.is_selection and lifetime >= _MIN_DISK_LIFETIME and len(result.mementos) <= _MAX_DISK_MEMENTOS
        )
        if self.memory.put(options, result) and is_for_disk and self.disk is not None:
            self.disk.put(options, result)
        self._listeners.on_result(result)
        return result

    async def _get_newest_cached(self, uri: str, options: RoutingOptions) -> AggregateResult | None:
        """Return the newest cached result from memory or disk; one for all mementos if a memento is to be selected."""
        if options.closest_to is not None:
            return await self._get_newest_cached(uri, options.for_all_mementos) or self.memory.get(uri, options)
        stored = None if self.disk is None else await self.disk.get(uri, options)
        cached = self.memory.get(uri, options)
        if stored is not None and (cached is None or cached.created_at < stored.created_at):
            self.memory.put(options, stored)
            # `put` does not replace a complete result with one that has failures.
            cached = self.memory.get(uri, options) or stored
        self.memory.mark_checked(uri, options)
        return cached

    async def _acquire_slot(self, until: float) -> None:
        """Wait for a slot. Raises BusyError if there is none in time."""
        if not self._slots.locked():
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout_at(until):
                await self._slots.acquire()
        except TimeoutError:
            raise self._busy_error() from None

    def _busy_error(self) -> BusyError:
        return BusyError("too many pages are being looked for: ask again in a moment", self._limits.deadline / 2)
