"""Waiting for an archive's limits: one question after the other, and for no longer than somebody is willing to."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Protocol, TypeVar

from unlost.archives.archive import Archive, Work
from unlost.archives.manners.admission import SHARE, Admission, admit
from unlost.archives.manners.ledger import Ledger
from unlost.archives.manners.limit_store import LimitStore
from unlost.clock import Clock
from unlost.dates import to_local
from unlost.errors import NotNowError

T = TypeVar("T")

_UNSENT_SECONDS = 1.0  # real ones, that the next question waits at most until this one is on its way

_REASONS = {
    "rate": "its rate is used up",
    "quota": "its quota of the day is used up",
    "told-to-wait": "it said to wait",
    "blocked": "it refused a connection",
    "busy": "it has not answered what it was asked before",
}


UNSENT = "no request was sent"
"""The argument of a CancelledError that `Turns.take` raises: the request still waited for its permit."""


class Slots(Protocol):
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


class Patience:
    """How many seconds one who asks is still willing to wait.

    left: for limits. for_slot: for a slot, in real seconds; None if that counts as waiting for limits.
    """

    def __init__(self, seconds: float, for_slot: float | None = None) -> None:
        self.left = seconds
        self.for_slot = for_slot


class Turn:
    """The permission to send one question.

    at: when it was given, and the question counted.
    troubled: as in Admission.
    """

    def __init__(self, at: float, troubled: bool, queue: asyncio.Lock | None, slot: Slots) -> None:
        self.at = at
        self.troubled = troubled
        self._queue = queue
        self._slot: Slots | None = slot
        self._timer: asyncio.TimerHandle | None = None

    def hold(self) -> None:
        """Let the next one in after a second, whatever becomes of this question: it has to wait for a connection."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_UNSENT_SECONDS, self.sent)

    def sent(self) -> None:
        """Let the next one in: the question is on its way."""
        if self._timer is not None:
            self._timer.cancel()
        if self._queue is not None:
            self._queue.release()
            self._queue = None

    def end(self) -> None:
        """Give everything back: the question was answered, or failed."""
        self.sent()
        if self._slot is not None:
            self._slot.release()
            self._slot = None


class Turns:
    """Lets questions through to archives as their limits allow.

    Those of one kind to one archive are let through in the order in which they came, each when the one before it is on
    its way: so what is admitted at a distance does not reach the archive at once.
    """

    def __init__(self, store: LimitStore, clock: Clock, share: float = SHARE) -> None:
        self._store = store
        self._clock = clock
        self._share = share
        self._queues: defaultdict[tuple[str, Work], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def take(self, archive: Archive, work: Work, slot: Slots, patience: Patience) -> Turn:
        """Wait for a slot and for the limits, and return the turn; end it in any case.

        Raises NotNowError at once if that would take more time than there is patience left. Cancelled, it raises a
        CancelledError with `UNSENT`.
        """
        try:
            return await self._take(archive, work, slot, patience)
        except asyncio.CancelledError:
            raise asyncio.CancelledError(UNSENT) from None

    async def _take(self, archive: Archive, work: Work, slot: Slots, patience: Patience) -> Turn:
        begun = self._clock.now()
        for_slot = patience.left if patience.for_slot is None else patience.for_slot
        if self._is_free(archive):
            # There is nothing to count, and no distance to keep: whoever has a slot may go.
            await self._acquire(slot, archive, for_slot)
            turn = None
            try:
                if self._is_free(archive):
                    turn = Turn(begun, False, None, slot)
                    return turn
            finally:
                if turn is None:
                    slot.release()
        queue = self._queues[archive.id, work]
        slot_until = asyncio.get_running_loop().time() + for_slot
        await self._acquire(queue, archive, patience.left, slot, for_slot)
        turn = None
        try:
            turn = await self._admitted(archive, work, queue, slot, begun + patience.left, slot_until)
        finally:
            patience.left -= self._clock.now() - begun
            if turn is None:
                queue.release()
        return turn

    async def _admitted(
        self, archive: Archive, work: Work, queue: asyncio.Lock, slot: Slots, latest: float, slot_until: float
    ) -> Turn:
        while True:
            # A slot is held while a question is on its way, not while it waits: others may have other limits.
            left = max(latest - self._clock.now(), slot_until - asyncio.get_running_loop().time())
            await self._acquire(slot, archive, left)
            try:
                admission = await self._admission(archive, work)
            except BaseException:
                slot.release()
                raise
            if admission.reason is None:
                return Turn(admission.at, admission.troubled, queue, slot)
            slot.release()
            if admission.at > latest or admission.reason == "blocked":  # a block is no rate: nobody waits for its end
                raise _not_now(archive, admission)
            await self._clock.sleep(admission.at - self._clock.now())

    async def _acquire(
        self, what: Slots, archive: Archive, seconds: float, slot: Slots | None = None, for_slot: float = 0.0
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
            raise _not_now(archive, Admission(self._clock.now(), "busy", troubled=True)) from None

    def _is_free(self, archive: Archive) -> bool:
        """Return whether an archive has no limits, and never said to wait."""
        return not archive.limits and not archive.quotas and self._store.is_clear(archive.id)

    async def _admission(self, archive: Archive, work: Work) -> Admission:
        def counted(ledger: Ledger) -> tuple[Ledger, Admission]:
            return admit(ledger, archive, work, self._clock.now(), self._share)

        if self._is_free(archive):  # there is nothing to count, and nobody to lock out
            return Admission(self._clock.now(), None, troubled=False)
        return await self.change(archive, counted)

    async def change(self, archive: Archive, change: Callable[[Ledger], tuple[Ledger, T]]) -> T:
        """Change the account of an archive, without keeping the event loop waiting."""
        if self._store.waits:
            return await asyncio.to_thread(self._store.change, archive.id, change)
        return self._store.change(archive.id, change)


def _not_now(archive: Archive, admission: Admission) -> NotNowError:
    reason = admission.reason or "rate"
    return not_now(archive.id, admission.at, reason)


def not_now(archive: str, until: float, reason: str) -> NotNowError:
    """Return the error that says until when, and why, an archive is not queried. reason: as in NotNowError."""
    message = f"{archive}: not queried before {to_local(until, up=True)}: {_REASONS[reason]}"
    return NotNowError(message, archive, until, reason)
