"""Finds the copies of a page in all archives that may have it: routes, asks at once, merges, keeps, shares."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from unlost import uri as addresses
from unlost.aggregate.asking import Asker
from unlost.aggregate.breaker import Breakers
from unlost.aggregate.cache import Lifetimes, MemoryCache
from unlost.aggregate.coalescing import Coalescing, Run
from unlost.aggregate.disk_cache import DiskCache
from unlost.aggregate.found import Found
from unlost.aggregate.listener import Listener, Listeners
from unlost.aggregate.rounds import Rounds
from unlost.aggregate.route import Routes
from unlost.aggregate.wish import Freshness, Wish
from unlost.archives.asking.question import Asks
from unlost.clock import Clock
from unlost.errors import BusyError, NotKeptError

PATIENCE = 2.0
"""How many seconds the courier of an aggregator should wait for limits: less than any deadline, so that an archive that
may not be asked now is told from one that is slow."""

_TO_ANSWER = 0.03  # the share of a deadline that is left for merging and writing, so that the answer itself is in time
_ON_DISK = 300.0  # seconds; what is kept for less is not worth writing
_ON_DISK_MEMENTOS = 100_000  # of a page with more, writing would take several times the memory of the mementos

SEEN = 60.0
"""Seconds for which an answer in memory is given before it is looked whether another process left a newer one on disk:
somebody may have had archives asked anew there."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one aggregator does at most.

    deadline: seconds after which an answer is given with what there is; waiting for a place is among them.
    at_once: pages that archives are asked for at the same time.
    waiting: pages beyond them that wait for a place; whoever comes then is told BusyError, and so is who waited for
        half of the deadline.
    """

    deadline: float = 10.0
    at_once: int = 256
    waiting: int = 1024


class Aggregator:
    """Finds copies; a `Finds`. Use it as an async context manager.

    router: chooses the archives. courier: asks them; made with a patience of `PATIENCE`.
    breakers, memory, disk: what leaves failing archives alone, and what keeps answers; without a disk nothing outlives
        the process.
    listeners: are told what every archive answered.
    """

    def __init__(
        self,
        router: Routes,
        courier: Asks,
        clock: Clock,
        *,
        breakers: Breakers | None = None,
        memory: MemoryCache | None = None,
        disk: DiskCache | None = None,
        lifetimes: Lifetimes = Lifetimes(),  # noqa: B008  it is frozen
        bounds: Bounds = Bounds(),  # noqa: B008
        listeners: Sequence[Listener] = (),
    ) -> None:
        self.breakers = breakers or Breakers(clock)
        self.memory = MemoryCache(clock) if memory is None else memory
        self.disk = disk
        self._router = router
        self._listeners = Listeners(listeners)
        self._rounds = Rounds(Asker(courier, clock), clock, self.breakers, self._listeners)
        self._lifetimes = lifetimes
        self._bounds = bounds
        self._places = asyncio.Semaphore(bounds.at_once)
        self._going_on: Coalescing[Found] = Coalescing()

    async def __aenter__(self) -> Self:
        """Open the disk cache."""
        if self.disk is not None:
            await self.disk.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """End whatever is going on, write what is to be kept, and wait for all that."""
        await self._going_on.close()
        await self._rounds.close()
        if self.disk is not None:
            await self.disk.__aexit__(None, None, None)

    @property
    def going_on(self) -> int:
        """How many pages are being looked for, waiting ones included."""
        return len(self._going_on)

    def kept(self, uri: str, wish: Wish = Wish()) -> Found | None:  # noqa: B008
        """Return an answer that is kept in memory, at once; None if there is none. `find` looks there first, too.

        With a disk it is None, too, where nobody has looked there for `SEEN` seconds.
        """
        unseen = math.inf if self.disk is None else SEEN
        if wish.selects is None:
            return self.memory.get(uri, wish, unseen)
        return self.memory.get(uri, wish.for_all, unseen) or self.memory.get(uri, wish)

    async def find(self, uri: str, wish: Wish = Wish(), freshness: Freshness = Freshness()) -> Found:  # noqa: B008
        """Return the copies of a page, and what came of every archive, within the deadline.

        Raises UriError, NotKeptError, UsageError as `Finds` has it, and BusyError if too much is looked for already.
        """
        if not freshness.no_cache:
            found = self.kept(uri, wish)
            if found is not None:
                return found
        addresses.key(uri)  # raises for what is no page
        if freshness.only_if_cached:
            found = None if freshness.no_cache else await self._newest(uri, wish)
            if found is None:
                raise NotKeptError("no archive was to be asked, and no answer about this page was kept")
            return found
        # What is being asked anew is good enough for everybody; what may come from the disk is not.
        anew = freshness.no_cache or (uri, wish, True) in self._going_on
        key = (uri, wish, anew)
        if key not in self._going_on and len(self._going_on) >= self._bounds.at_once + self._bounds.waiting:
            if not anew and (found := self.memory.get(uri, wish)) is not None:
                return found  # that there may be a newer one is no reason to refuse it
            raise self._busy()
        until = asyncio.get_running_loop().time() + self._bounds.deadline * (1 - _TO_ANSWER)
        return await self._going_on.result(key, lambda run: self._find(run, uri, wish, until, anew=anew))

    async def _find(self, run: Run[Found], uri: str, wish: Wish, until: float, *, anew: bool) -> Found:
        if not anew and (kept := await self._newest(uri, wish)) is not None:
            return kept
        await self._place(until - self._bounds.deadline / 2)
        try:
            run.is_begun = True
            route = self._router.route(uri, wish)
            found, is_whole = await self._rounds.ask(uri, route, until, wish.selects)
        finally:
            self._places.release()
        lifetime = self._lifetimes.of(found, is_whole=is_whole)
        found = replace(found, until=found.made + lifetime)
        if not found.is_selection:
            wish = wish.for_all
        is_for_disk = not found.is_selection and lifetime >= _ON_DISK and len(found.mementos) <= _ON_DISK_MEMENTOS
        if self.memory.put(wish, found) and is_for_disk and self.disk is not None:
            self.disk.put(wish, found)
        self._listeners.found(found)
        return found

    async def _newest(self, uri: str, wish: Wish) -> Found | None:
        """Return the cached result, from memory or disk; all mementos where one is to be selected."""
        if wish.selects is not None:
            return await self._newest(uri, wish.for_all) or self.memory.get(uri, wish)
        found = None if self.disk is None else await self.disk.get(uri, wish)
        own = self.memory.get(uri, wish)
        if found is not None and (own is None or own.made < found.made):
            self.memory.put(wish, found)
            # One that was found while an archive failed does not take the place of a whole one.
            own = self.memory.get(uri, wish) or found
        self.memory.see(uri, wish)
        return own

    async def _place(self, until: float) -> None:
        """Wait for a place among those that may ask. Raises BusyError if there is none in time."""
        if not self._places.locked():
            await self._places.acquire()
            return
        try:
            async with asyncio.timeout_at(until):
                await self._places.acquire()
        except TimeoutError:
            raise self._busy() from None

    def _busy(self) -> BusyError:
        return BusyError("too many pages are being looked for: ask again in a moment", self._bounds.deadline / 2)
