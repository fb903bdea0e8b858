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


class CoalescedTask(Generic[T]):
    """Work that somebody waits for, or did.

    is_begun: whether it has got so far that it is finished though nobody waits; the work itself says so.
    """

    def __init__(self) -> None:
        self.is_begun = False
        self.waiters = 0
        self.task: asyncio.Task[T] | None = None


class RequestCoalescer(Generic[T]):
    """The work that is going on, by what it is for.

    Who gives up does not end the work of others. If all give up, work that has begun is finished all the same: its
    questions are on their way and have cost the archives what they cost, it takes no longer than its deadline, and who
    gave up mostly asks again. What has not begun is dropped.
    """

    def __init__(self) -> None:
        self._tasks: dict[Hashable, CoalescedTask[T]] = {}

    def __len__(self) -> int:
        """Return how much work is going on."""
        return len(self._tasks)

    def __contains__(self, key: Hashable) -> bool:
        """Return whether work is going on for something."""
        return key in self._tasks

    async def run(self, key: Hashable, work: Callable[[CoalescedTask[T]], Awaitable[T]]) -> T:
        """Return what the work for something comes to, which is begun unless it is going on. Raises what it raises."""
        run = self._tasks.get(key)
        if run is None:
            run = self._tasks[key] = CoalescedTask()
            run.task = asyncio.create_task(self._run(key, run, work))
            run.task.add_done_callback(_retrieve_exception)
        assert run.task is not None  # noqa: S101  for types
        run.waiters += 1
        try:
            return await asyncio.shield(run.task)
        except asyncio.CancelledError:
            this = asyncio.current_task()
            if run.task.cancelled() and (this is None or not this.cancelling()):
                raise BusyError("closing: nothing is looked for any more", 1.0) from None
            raise
        finally:
            run.waiters -= 1
            if not run.waiters and not run.is_begun and not run.task.done():
                run.task.cancel()
                self._forget(key, run)

    async def close(self) -> None:
        """End all work, and wait for its end."""
        tasks = [run.task for run in self._tasks.values() if run.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, key: Hashable, run: CoalescedTask[T], work: Callable[[CoalescedTask[T]], Awaitable[T]]) -> T:
        try:
            return await work(run)
        finally:
            self._forget(key, run)

    def _forget(self, key: Hashable, run: CoalescedTask[T]) -> None:
        if self._tasks.get(key) is run:
            del self._tasks[key]


def _retrieve_exception(task: asyncio.Task[T]) -> None:
    """Look at what was raised: if nobody waits any more, nobody else does."""
    if not task.cancelled():
        task.exception()


MAX_LIMIT_WAIT = 2.0
"""How many seconds the courier of an aggregator should wait for limits: less than any deadline, so that an archive that
may not be asked now is told from one that is slow."""
_RESPONSE_SHARE = (
    0.03  # the share of a deadline that is left for merging and writing, so that the answer itself is in time
)
_MIN_DISK_LIFETIME = 300.0  # seconds; what is kept for less is not worth writing
_MAX_DISK_MEMENTOS = 100_000  # of a page with more, writing would take several times the memory of the mementos
DISK_RECHECK_SECONDS = 60.0
"""Seconds for which an answer in memory is given before it is looked whether another process left a newer one on disk:
somebody may have had archives asked anew there."""


@dataclass(frozen=True, slots=True)
class ConcurrencyLimits:
    """What one aggregator does at most.

    deadline: seconds after which an answer is given with what there is; waiting for a place is among them.
    at_once: pages that archives are asked for at the same time.
    waiting: pages beyond them that wait for a place; whoever comes then is told BusyError, and so is who waited for
        half of the deadline.
    """

    deadline: float = 10.0
    max_active: int = 256
    max_waiting: int = 1024


class MementoAggregator:
    """Finds copies; a `Finds`. Use it as an async context manager.

    router: chooses the archives. courier: asks them; made with a patience of `PATIENCE`.
    breakers, memory, disk: what leaves failing archives alone, and what keeps answers; without a disk nothing outlives
        the process.
    listeners: are told what every archive answered.
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
        lifetimes: CacheLifetimes = CacheLifetimes(),  # noqa: B008  it is frozen
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
        """End whatever is going on, write what is to be kept, and wait for all that."""
        await self._active.close()
        await self._fanout.close()
        if self.disk is not None:
            await self.disk.__aexit__(None, None, None)

    @property
    def active_lookups(self) -> int:
        """How many pages are being looked for, waiting ones included."""
        return len(self._active)

    def get_cached(self, uri: str, options: RoutingOptions = RoutingOptions()) -> AggregateResult | None:  # noqa: B008
        """Return an answer that is kept in memory, at once; None if there is none. `find` looks there first, too.

        With a disk it is None, too, where nobody has looked there for `SEEN` seconds.
        """
        unseen = math.inf if self.disk is None else DISK_RECHECK_SECONDS
        if options.closest_to is None:
            return self.memory.get(uri, options, unseen)
        return self.memory.get(uri, options.for_all_mementos, unseen) or self.memory.get(uri, options)

    async def find(
        self,
        uri: str,
        options: RoutingOptions = RoutingOptions(),  # noqa: B008
        cache_control: CacheControl = CacheControl(),  # noqa: B008
    ) -> AggregateResult:
        """Return the copies of a page, and what came of every archive, within the deadline.

        Raises UriError, NotKeptError, UsageError as `Finds` has it, and BusyError if too much is looked for already.
        """
        if not cache_control.no_cache:
            found = self.get_cached(uri, options)
            if found is not None:
                return found
        addresses.key(uri)  # raises for what is no page
        if cache_control.only_if_cached:
            found = None if cache_control.no_cache else await self._get_newest_cached(uri, options)
            if found is None:
                raise NotKeptError("no archive was to be asked, and no answer about this page was kept")
            return found
        # What is being asked anew is good enough for everybody; what may come from the disk is not.
        anew = cache_control.no_cache or (uri, options, True) in self._active
        key = (uri, options, anew)
        if key not in self._active and len(self._active) >= self._limits.max_active + self._limits.max_waiting:
            if not anew and (found := self.memory.get(uri, options)) is not None:
                return found  # that there may be a newer one is no reason to refuse it
            raise self._busy_error()
        until = asyncio.get_running_loop().time() + self._limits.deadline * (1 - _RESPONSE_SHARE)
        return await self._active.run(key, lambda run: self._find(run, uri, options, until, anew=anew))

    async def _find(
        self, run: CoalescedTask[AggregateResult], uri: str, options: RoutingOptions, until: float, *, anew: bool
    ) -> AggregateResult:
        if not anew and (kept := await self._get_newest_cached(uri, options)) is not None:
            return kept
        await self._acquire_slot(until - self._limits.deadline / 2)
        try:
            run.is_begun = True
            route = self._router.route(uri, options)
            found, is_whole = await self._fanout.query_all(uri, route, until, options.closest_to)
        finally:
            self._slots.release()
        lifetime = self._lifetimes.lifetime_of(found, is_whole=is_whole)
        found = replace(found, expires_at=found.created_at + lifetime)
        if not found.is_selection:
            options = options.for_all_mementos
        is_for_disk = (
            not found.is_selection and lifetime >= _MIN_DISK_LIFETIME and len(found.mementos) <= _MAX_DISK_MEMENTOS
        )
        if self.memory.put(options, found) and is_for_disk and self.disk is not None:
            self.disk.put(options, found)
        self._listeners.on_result(found)
        return found

    async def _get_newest_cached(self, uri: str, options: RoutingOptions) -> AggregateResult | None:
        """Return the cached result, from memory or disk; all mementos where one is to be selected."""
        if options.closest_to is not None:
            return await self._get_newest_cached(uri, options.for_all_mementos) or self.memory.get(uri, options)
        found = None if self.disk is None else await self.disk.get(uri, options)
        own = self.memory.get(uri, options)
        if found is not None and (own is None or own.created_at < found.created_at):
            self.memory.put(options, found)
            # One that was found while an archive failed does not take the place of a whole one.
            own = self.memory.get(uri, options) or found
        self.memory.mark_checked(uri, options)
        return own

    async def _acquire_slot(self, until: float) -> None:
        """Wait for a place among those that may ask. Raises BusyError if there is none in time."""
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
