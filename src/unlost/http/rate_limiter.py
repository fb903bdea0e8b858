"""Waits for the rate limits of an archive and grants permits, one request at a time."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Protocol, TypeVar

from unlost.clock import Clock
from unlost.dates import to_local
from unlost.errors import NotNowError
from unlost.http.limit_store import LimitStore
from unlost.http.rate_limit import DEFAULT_SHARE, Admission, RateLimitState, admit
from unlost.registry.models import Archive, RequestKind

T = TypeVar("T")

_MAX_CONNECT_HOLD = 1.0  # real seconds that the next request waits at most for this one to be sent

_REASONS = {
    "rate": "its rate is used up",
    "quota": "its quota of the day is used up",
    "told-to-wait": "it said to wait",
    "blocked": "it refused a connection",
    "busy": "it has not answered what it was asked before",
}


NOT_SENT = "no request was sent"
"""Argument of the CancelledError raised by `RateLimiter.acquire`: the request was still waiting for its permit."""


class SlotSemaphore(Protocol):
    """A semaphore that limits the requests in flight."""

    def locked(self) -> bool:
        """Return whether `acquire` would wait."""
        ...

    async def acquire(self) -> bool:
        """Wait for a slot."""
        ...

    def release(self) -> None:
        """Release a slot."""
        ...


class WaitBudget:
    """How many more seconds a request may wait.

    Attributes:
        seconds: For rate limits.
        slot_seconds: For a slot, in real time; None if that counts as waiting for rate limits.
    """

    def __init__(self, seconds: float, slot_seconds: float | None = None) -> None:
        self.seconds = seconds
        self.slot_seconds = slot_seconds


class Permit:
    """The permission to send one request. It must always be released.

    Attributes:
        at: When the request was admitted and counted.
        has_backoff: As in `Admission`.
    """

    def __init__(self, at: float, has_backoff: bool, queue: asyncio.Lock | None, slot: SlotSemaphore) -> None:
        self.at = at
        self.has_backoff = has_backoff
        self._queue = queue
        self._slot: SlotSemaphore | None = slot
        self._timer: asyncio.TimerHandle | None = None

    def mark_connecting(self) -> None:
        """Let the next request in after a second, even if this one is still waiting for its connection."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_MAX_CONNECT_HOLD, self.mark_sent)

    def mark_sent(self) -> None:
        """Let the next request in: this one was sent."""
        if self._timer is not None:
            self._timer.cancel()
        if self._queue is not None:
            self._queue.release()
            self._queue = None

    def release(self) -> None:
        """Release the slot: the request has ended."""
        self.mark_sent()
        if self._slot is not None:
            self._slot.release()
            self._slot = None


class RateLimiter:
    """Admits requests to archives as their limits allow.

    Requests of one kind to one archive are admitted in order, each after the previous one was sent, so that requests
    that were admitted at intervals also arrive at intervals.
    """

    def __init__(self, store: LimitStore, clock: Clock, share: float = DEFAULT_SHARE) -> None:
        self._store = store
        self._clock = clock
        self._share = share
        self._queues: defaultdict[tuple[str, RequestKind], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def acquire(
        self, archive: Archive, kind: RequestKind, slot: SlotSemaphore, wait_budget: WaitBudget
    ) -> Permit:
        """Wait for a slot and for the rate limits, and return the permit, which must always be released.

        Raises:
            NotNowError: The wait would exceed the budget; raised at once where that is known.
            asyncio.CancelledError: With the argument `NOT_SENT`.
        """
        try:
            return await self._acquire_permit(archive, kind, slot, wait_budget)
        except asyncio.CancelledError:
            raise asyncio.CancelledError(NOT_SENT) from None

    async def _acquire_permit(
        self, archive: Archive, kind: RequestKind, slot: SlotSemaphore, wait_budget: WaitBudget
    ) -> Permit:
        started_at = self._clock.now()
        slot_seconds = wait_budget.seconds if wait_budget.slot_seconds is None else wait_budget.slot_seconds
        if self._is_unlimited(archive):
            # No count and no interval apply: a slot is enough.
            await self._acquire(slot, archive, slot_seconds)
            permit = None
            try:
                if self._is_unlimited(archive):
                    permit = Permit(started_at, False, None, slot)
                    return permit
            finally:
                if permit is None:
                    slot.release()
        queue = self._queues[archive.id, kind]
        slot_until = asyncio.get_running_loop().time() + slot_seconds
        await self._acquire(queue, archive, wait_budget.seconds, slot, slot_seconds)
        permit = None
        try:
            permit = await self._wait_for_admission(
                archive, kind, queue, slot, started_at + wait_budget.seconds, slot_until
            )
        finally:
            wait_budget.seconds -= self._clock.now() - started_at
            if permit is None:
                queue.release()
        return permit

    async def _wait_for_admission(
        self,
        archive: Archive,
        kind: RequestKind,
        queue: asyncio.Lock,
        slot: SlotSemaphore,
        latest: float,
        slot_until: float,
    ) -> Permit:
        while True:
            # The slot is not held while waiting for rate limits: other requests may have other limits.
            remaining = max(latest - self._clock.now(), slot_until - asyncio.get_running_loop().time())
            await self._acquire(slot, archive, remaining)
            try:
                admission = await self._try_admit(archive, kind)
            except BaseException:
                slot.release()
                raise
            if admission.reason is None:
                return Permit(admission.at, admission.has_backoff, queue, slot)
            slot.release()
            if admission.at > latest or admission.reason == "blocked":  # do not wait for the end of a block
                raise _refused_admission(archive, admission)
            await self._clock.sleep(admission.at - self._clock.now())

    async def _acquire(
        self,
        semaphore: SlotSemaphore,
        archive: Archive,
        seconds: float,
        slot: SlotSemaphore | None = None,
        slot_seconds: float = 0.0,
    ) -> None:
        """Acquire a semaphore held by earlier requests, which may hang. Raises NotNowError after a timeout.

        The timeout is in real time, as are the timeouts of the earlier requests.

        Args:
            semaphore: The semaphore.
            archive: The archive, for the error.
            seconds: The timeout.
            slot: What the earlier requests may be waiting for. If it is full after `seconds`, the timeout is extended
                to `slot_seconds`.
            slot_seconds: The extended timeout.
        """
        if not semaphore.locked():
            await semaphore.acquire()
            return
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(max(0.0, seconds, slot_seconds)) as timeout:

                def check() -> None:
                    if slot is not None and not slot.locked() and not timeout.expired():
                        timeout.reschedule(loop.time())

                timer = loop.call_later(max(0.0, seconds), check)
                try:
                    await semaphore.acquire()
                finally:
                    timer.cancel()
        except TimeoutError:
            raise _refused_admission(archive, Admission(self._clock.now(), "busy", has_backoff=True)) from None

    def _is_unlimited(self, archive: Archive) -> bool:
        """Return whether an archive has no limits and no backoff."""
        return not archive.limits and not archive.quotas and self._store.is_known_empty(archive.id)

    async def _try_admit(self, archive: Archive, kind: RequestKind) -> Admission:
        def count_request(state: RateLimitState) -> tuple[RateLimitState, Admission]:
            return admit(state, archive, kind, self._clock.now(), self._share)

        if self._is_unlimited(archive):  # nothing to count
            return Admission(self._clock.now(), None, has_backoff=False)
        return await self.update_state(archive, count_request)

    async def update_state(self, archive: Archive, change: Callable[[RateLimitState], tuple[RateLimitState, T]]) -> T:
        """Change the state of an archive without blocking the event loop, and return the result of `change`."""
        if self._store.is_blocking:
            return await asyncio.to_thread(self._store.update, archive.id, change)
        return self._store.update(archive.id, change)


def _refused_admission(archive: Archive, admission: Admission) -> NotNowError:
    reason = admission.reason or "rate"
    return not_now_error(archive.id, admission.at, reason)


def not_now_error(archive: str, until: float, reason: str) -> NotNowError:
    """Return the error for an archive that must not be queried before `until`, with a reason as in NotNowError."""
    message = f"{archive}: not queried before {to_local(until, round_up=True)}: {_REASONS[reason]}"
    return NotNowError(message, archive, until, reason)
