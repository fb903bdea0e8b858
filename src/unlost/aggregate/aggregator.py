"""The aggregator: routes, fans out, merges, caches, and coalesces equal requests."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

from unlost import uri as addresses
from unlost.aggregate.cache import CacheLifetimes, MemoryCache
from unlost.aggregate.disk_cache import DiskCache
from unlost.aggregate.fanout import FanOut
from unlost.aggregate.listeners import ListenerGroup, UpstreamListener
from unlost.aggregate.models import AggregateResult, CacheControl, RoutingOptions
from unlost.aggregate.router import RouteProvider
from unlost.aggregate.upstream import UpstreamClient
from unlost.clock import Clock
from unlost.errors import BusyError, NotKeptError
from unlost.http.circuit_breaker import BreakerRegistry
from unlost.http.models import HttpClient

T = TypeVar("T")

MAX_LIMIT_WAIT = 2.0
"""Maximum seconds that the aggregator's HTTP client should wait for rate limits. It is less than any deadline, so that
a rate-limited archive is not mistaken for a slow one."""
_RESPONSE_SHARE = 0.03  # share of the deadline reserved for merging and writing the response
_MIN_DISK_LIFETIME = 300.0  # seconds; results with a shorter lifetime are not worth writing
_MAX_DISK_MEMENTOS = 100_000  # of a page with more, writing would take several times the memory of the mementos
DISK_RECHECK_SECONDS = 60.0
"""Seconds for which a result is served from memory before the disk is checked for a newer one of another process, such
as one requested with `no_cache`."""


class CoalescedTask(Generic[T]):
    """A task with the number of its waiters.

    `is_begun` is set by the work itself, when it should be finished even if nobody waits for it any more.
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
        client: Sends the requests; it should wait for rate limits for at most `MAX_LIMIT_WAIT` seconds.
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
        self.breakers = breakers or BreakerRegistry(clock)
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

    @property
    def active_lookups(self) -> int:
        """Number of pages being looked up, including waiting ones."""
        return len(self._active)

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
        addresses.key(uri)  # raises UriError for an invalid URL
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
