"""Waits for the rate limits of an archive and hands out permits, one request after the other."""

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

_MAX_CONNECT_HOLD = 1.0  # real ones, that the next question waits at most until this one is on its way

_REASONS = {
    "rate": "its rate is used up",
    "quota": "its quota of the day is used up",
    "told-to-wait": "it said to wait",
    "blocked": "it refused a connection",
    "busy": "it has not answered what it was asked before",
}


NOT_SENT = "no request was sent"
"""The argument of a CancelledError that `Turns.take` raises: the request still waited for its permit."""


class SlotSemaphore(Protocol):
    """Limits how many requests are on their way at once: a semaphore."""

    def locked(self) -> bool:
        """Return whether `acquire` would wait."""
        ...

    async def acquire(self) -> bool:
        """Wait for a slot."""
        ...

    def release(self) -> None:
        """Give a slot back."""
        ...


class WaitBudget:
    """How many seconds one who asks is still willing to wait.

    left: for limits. for_slot: for a slot, in real seconds; None if that counts as waiting for limits.
    """

    def __init__(self, seconds: float, slot_seconds: float | None = None) -> None:
        self.seconds = seconds
        self.slot_seconds = slot_seconds


class Permit:
    """The permission to send one question.

    at: when it was given, and the question counted.
    troubled: as in Admission.
    """

    def __init__(self, at: float, has_backoff: bool, queue: asyncio.Lock | None, slot: SlotSemaphore) -> None:
        self.at = at
        self.has_backoff = has_backoff
        self._queue = queue
        self._slot: SlotSemaphore | None = slot
        self._timer: asyncio.TimerHandle | None = None

    def mark_connecting(self) -> None:
        """Let the next one in after a second, whatever becomes of this question: it has to wait for a connection."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_MAX_CONNECT_HOLD, self.mark_sent)

    def mark_sent(self) -> None:
        """Let the next one in: the question is on its way."""
        if self._timer is not None:
            self._timer.cancel()
        if self._queue is not None:
            self._queue.release()
            self._queue = None

    def release(self) -> None:
        """Give everything back: the question was answered, or failed."""
        self.mark_sent()
        if self._slot is not None:
            self._slot.release()
            self._slot = None


class RateLimiter:
    """Lets questions through to archives as their limits allow.

    Those of one kind to one archive are let through in the order in which they came, each when the one before it is on
    its way: so what is admitted at a distance does not reach the archive at once.
    """

    def __init__(self, store: LimitStore, clock: Clock, share: float = DEFAULT_SHARE) -> None:
        self._store = store
        self._clock = clock
        self._share = share
        self._queues: defaultdict[tuple[str, RequestKind], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def acquire(
        self, archive: Archive, kind: RequestKind, slot: SlotSemaphore, wait_budget: WaitBudget
    ) -> Permit:
        """Wait for a slot and for the limits, and return the turn; end it in any case.

        Raises NotNowError at once if that would take more time than there is patience left. Cancelled, it raises a
        CancelledError with `UNSENT`.
        """
        try:
            return await self._acquire_permit(archive, kind, slot, wait_budget)
        except asyncio.CancelledError:
            raise asyncio.CancelledError(NOT_SENT) from None

    async def _acquire_permit(
        self, archive: Archive, kind: RequestKind, slot: SlotSemaphore, wait_budget: WaitBudget
    ) -> Permit:
        begun = self._clock.now()
        for_slot = wait_budget.seconds if wait_budget.slot_seconds is None else wait_budget.slot_seconds
        if self._is_unlimited(archive):
            # There is nothing to count, and no distance to keep: whoever has a slot may go.
            await self._acquire(slot, archive, for_slot)
            turn = None
            try:
                if self._is_unlimited(archive):
                    turn = Permit(begun, False, None, slot)
                    return turn
            finally:
                if turn is None:
                    slot.release()
        queue = self._queues[archive.id, kind]
        slot_until = asyncio.get_running_loop().time() + for_slot
        await self._acquire(queue, archive, wait_budget.seconds, slot, for_slot)
        turn = None
        try:
            turn = await self._wait_for_admission(archive, kind, queue, slot, begun + wait_budget.seconds, slot_until)
        finally:
            wait_budget.seconds -= self._clock.now() - begun
            if turn is None:
                queue.release()
        return turn

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
            # A slot is held while a question is on its way, not while it waits: others may have other limits.
            left = max(latest - self._clock.now(), slot_until - asyncio.get_running_loop().time())
            await self._acquire(slot, archive, left)
            try:
                admission = await self._try_admit(archive, kind)
            except BaseException:
                slot.release()
                raise
            if admission.reason is None:
                return Permit(admission.at, admission.has_backoff, queue, slot)
            slot.release()
            if admission.at > latest or admission.reason == "blocked":  # a block is no rate: nobody waits for its end
                raise _refused_admission(archive, admission)
            await self._clock.sleep(admission.at - self._clock.now())

    async def _acquire(
        self,
        what: SlotSemaphore,
        archive: Archive,
        seconds: float,
        slot: SlotSemaphore | None = None,
        for_slot: float = 0.0,
    ) -> None:
        """Wait for questions before this one, which may hang; raise NotNowError if that takes too long.

        What they wait for is real, so these seconds are, too. slot: what those before this one may wait for. If none
        is free after the seconds, the wait goes on up to `for_slot` seconds in all.
        """
        if not what.locked():
            await what.acquire()
            return
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(max(0.0, seconds, for_slot)) as bound:

                def check() -> None:
                    if slot is not None and not slot.locked() and not bound.expired():
                        bound.reschedule(loop.time())

                timer = loop.call_later(max(0.0, seconds), check)
                try:
                    await what.acquire()
                finally:
                    timer.cancel()
        except TimeoutError:
            raise _refused_admission(archive, Admission(self._clock.now(), "busy", has_backoff=True)) from None

    def _is_unlimited(self, archive: Archive) -> bool:
        """Return whether an archive has no limits, and never said to wait."""
        return not archive.limits and not archive.quotas and self._store.is_known_empty(archive.id)

    async def _try_admit(self, archive: Archive, kind: RequestKind) -> Admission:
        def counted(ledger: RateLimitState) -> tuple[RateLimitState, Admission]:
            return admit(ledger, archive, kind, self._clock.now(), self._share)

        if self._is_unlimited(archive):  # there is nothing to count, and nobody to lock out
            return Admission(self._clock.now(), None, has_backoff=False)
        return await self.update_state(archive, counted)

    async def update_state(self, archive: Archive, change: Callable[[RateLimitState], tuple[RateLimitState, T]]) -> T:
        """Change the account of an archive, without keeping the event loop waiting."""
        if self._store.is_blocking:
            return await asyncio.to_thread(self._store.update, archive.id, change)
        return self._store.update(archive.id, change)


def _refused_admission(archive: Archive, admission: Admission) -> NotNowError:
    reason = admission.reason or "rate"
    return not_now_error(archive.id, admission.at, reason)


def not_now_error(archive: str, until: float, reason: str) -> NotNowError:
    """Return the error that says until when, and why, an archive is not queried. reason: as in NotNowError."""
    message = f"{archive}: not queried before {to_local(until, round_up=True)}: {_REASONS[reason]}"
    return NotNowError(message, archive, until, reason)
