"""The rate limiter: permits in order, within the wait budget of each request."""

import asyncio

import pytest

from tests.virtual_clock import VirtualClock
from unlost.errors import NotNowError
from unlost.http import MemoryLimitStore, RateLimiter, RateLimitState, WaitBudget, rate_limiter
from unlost.registry import Archive, ArchiveKind, RateLimit, RequestKind

SLOW = Archive(
    "a", "A", ArchiveKind.MEMENTO, limits=(RateLimit(1, 8, (RequestKind.INDEX,), "a test"),)
)  # one each 10 seconds
WIDE = Archive(
    "b", "B", ArchiveKind.MEMENTO, limits=(RateLimit(10_000, 1, (RequestKind.INDEX, RequestKind.REPLAY), "a test"),)
)
FREE = Archive("c", "C", ArchiveKind.MEMENTO)


def limiter() -> tuple[RateLimiter, VirtualClock]:
    """Return a rate limiter and its clock."""
    clock = VirtualClock(0.0)
    return RateLimiter(MemoryLimitStore(), clock), clock


async def settle() -> None:
    """Run all tasks as far as possible."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_permits_are_granted_in_order() -> None:
    """Each a full pause after the previous one."""

    async def run() -> None:
        given, _ = limiter()
        slot = asyncio.Semaphore(5)
        order: list[tuple[int, float]] = []

        async def one(number: int) -> None:
            turn = await given.acquire(SLOW, RequestKind.INDEX, slot, WaitBudget(999))
            order.append((number, round(turn.at)))
            turn.release()

        await asyncio.gather(*(one(number) for number in range(5)))
        assert order == [(0, 0), (1, 10), (2, 20), (3, 30), (4, 40)]

    asyncio.run(run())


def test_next_request_is_admitted_when_the_previous_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spaced permits do not arrive together; but a slow connection delays others only briefly."""

    async def run() -> None:
        given, _ = limiter()
        slot = asyncio.Semaphore(5)
        first = await given.acquire(WIDE, RequestKind.INDEX, slot, WaitBudget(1))
        second = asyncio.create_task(given.acquire(WIDE, RequestKind.INDEX, slot, WaitBudget(1)))
        other = await given.acquire(WIDE, RequestKind.REPLAY, slot, WaitBudget(1))
        await settle()
        assert not second.done()
        first.mark_sent()
        await settle()
        assert second.done()
        monkeypatch.setattr(rate_limiter, "_MAX_CONNECT_HOLD", 0.05)
        (await second).release()
        hanging = await given.acquire(WIDE, RequestKind.INDEX, slot, WaitBudget(1))
        hanging.mark_connecting()
        async with asyncio.timeout(5):
            last = await given.acquire(WIDE, RequestKind.INDEX, slot, WaitBudget(1))
        for turn in (first, other, hanging, last):
            turn.release()
            turn.release()
        assert not slot.locked()

    asyncio.run(run())


def test_archive_without_limits_does_not_wait_for_others() -> None:
    """Only for a slot, unless the archive throttles."""

    async def run() -> None:
        store, clock = MemoryLimitStore(), VirtualClock(0.0)
        given = RateLimiter(store, clock)
        slot = asyncio.Semaphore(2)
        first, second = [await given.acquire(FREE, RequestKind.INDEX, slot, WaitBudget(1)) for _ in range(2)]
        third = asyncio.create_task(given.acquire(FREE, RequestKind.INDEX, slot, WaitBudget(90)))
        await settle()
        assert not third.done()
        store.update(FREE.id, lambda _: (RateLimitState(wait_until=60.0, waits=1), None))
        first.release()
        turn = await third
        assert (turn.at, turn.has_backoff, clock.slept) == (60.0, True, [60.0])
        for each in (second, turn):
            each.release()
        assert not slot.locked()

    asyncio.run(run())


def test_unreadable_state_costs_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk works again, requests are admitted."""

    async def run() -> None:
        store = MemoryLimitStore()
        looks = iter([True])

        def is_known_empty(_: str) -> bool:
            for look in looks:
                return look
            raise OSError("a disk")

        slot = asyncio.Semaphore(1)
        with monkeypatch.context() as patch:
            patch.setattr(store, "is_known_empty", is_known_empty)
            with pytest.raises(OSError, match="a disk"):
                await RateLimiter(store, VirtualClock(0.0)).acquire(FREE, RequestKind.INDEX, slot, WaitBudget(1))
        assert not slot.locked()

    asyncio.run(run())


def test_slot_is_not_held_while_waiting_for_a_limit() -> None:
    """One connection suffices for replay while listings wait."""

    async def run() -> None:
        given, clock = limiter()
        slot = asyncio.Semaphore(1)
        (await given.acquire(SLOW, RequestKind.INDEX, slot, WaitBudget(99))).release()

        async def stopped(seconds: float) -> None:
            assert seconds > 0
            await asyncio.Event().wait()

        clock.sleep = stopped  # type: ignore[method-assign]
        waits = asyncio.create_task(given.acquire(SLOW, RequestKind.INDEX, slot, WaitBudget(99)))
        await settle()
        async with asyncio.timeout(5):
            (await given.acquire(SLOW, RequestKind.REPLAY, slot, WaitBudget(0))).release()
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        assert not slot.locked()

    asyncio.run(run())


def test_wait_budget_is_shared_by_all_waits_of_a_request() -> None:
    """Also by the waits in the queue."""

    async def run() -> None:
        given, clock = limiter()
        slot, patience = asyncio.Semaphore(1), WaitBudget(25)
        for at in (0, 10, 20):
            turn = await given.acquire(SLOW, RequestKind.INDEX, slot, patience)
            assert round(turn.at) == at
            turn.release()
        with pytest.raises(NotNowError) as caught:
            await given.acquire(SLOW, RequestKind.INDEX, slot, patience)
        assert (round(caught.value.until), caught.value.reason) == (30, "rate")
        assert round(clock.now()) == 20

        async def one() -> float:
            turn = await given.acquire(SLOW, RequestKind.INDEX, asyncio.Semaphore(1), WaitBudget(25))
            turn.release()
            return round(turn.at)

        ended = await asyncio.gather(*(one() for _ in range(4)), return_exceptions=True)
        assert ended[:2] == [30, 40]
        assert [type(each) for each in ended[2:]] == [NotNowError, NotNowError]

    asyncio.run(run())


@pytest.mark.usefixtures("berlin")
def test_message_has_date_and_reason() -> None:
    """One line with the reason and the local time, rounded up to the minute."""

    async def run() -> None:
        given, _ = limiter()
        (await given.acquire(SLOW, RequestKind.INDEX, asyncio.Semaphore(1), WaitBudget(0))).release()
        with pytest.raises(NotNowError, match="a: not queried before 1970-01-01 01:01 CET: its rate is used up"):
            await given.acquire(SLOW, RequestKind.INDEX, asyncio.Semaphore(1), WaitBudget(0))

    asyncio.run(run())


@pytest.mark.parametrize("slots", [1, 5])
def test_hanging_requests_delay_others_only_within_their_budget(slots: int) -> None:
    """For permits and for connections; abandoned requests do not delay the next."""

    async def run() -> None:
        given, _ = limiter()
        slot = asyncio.Semaphore(slots)
        hanging = await given.acquire(WIDE, RequestKind.INDEX, slot, WaitBudget(1))
        if slots == 1:
            hanging.mark_sent()  # it has left the queue, and keeps its connection
        with pytest.raises(NotNowError, match="has not answered what it was asked before") as refused:
            await given.acquire(WIDE, RequestKind.INDEX, slot, WaitBudget(0.05))
        assert refused.value.reason == "busy"
        hanging.release()
        (await given.acquire(WIDE, RequestKind.INDEX, slot, WaitBudget(0))).release()

    asyncio.run(run())


@pytest.mark.parametrize("archive", [FREE, WIDE], ids=["without limits", "with limits"])
def test_wait_for_a_slot_has_its_own_budget(archive: Archive) -> None:
    """It is larger than that for limits, also while queued."""

    async def run() -> None:
        given, _ = limiter()
        slot = asyncio.Semaphore(1)
        hanging = await given.acquire(archive, RequestKind.INDEX, slot, WaitBudget(0.01))
        hanging.mark_sent()
        later = [
            asyncio.create_task(given.acquire(archive, RequestKind.INDEX, slot, WaitBudget(0.01, 30))) for _ in range(3)
        ]
        with pytest.raises(NotNowError):
            await given.acquire(archive, RequestKind.INDEX, slot, WaitBudget(0.05, 0.1))
        assert not any(task.done() for task in later)
        hanging.release()
        for task in later:
            (await task).release()
        assert not slot.locked()

    asyncio.run(run())


def test_queue_for_limits_is_bounded_by_the_budget() -> None:
    """With free slots, the budget for limits applies."""

    async def run() -> None:
        given, clock = limiter()
        slot = asyncio.Semaphore(5)
        (await given.acquire(SLOW, RequestKind.INDEX, slot, WaitBudget(1))).release()

        async def stopped(seconds: float) -> None:
            assert seconds > 0
            await asyncio.Event().wait()

        clock.sleep = stopped  # type: ignore[method-assign]
        first = asyncio.create_task(given.acquire(SLOW, RequestKind.INDEX, slot, WaitBudget(99, 99)))
        await settle()
        async with asyncio.timeout(20):
            with pytest.raises(NotNowError) as refused:
                await given.acquire(SLOW, RequestKind.INDEX, slot, WaitBudget(0.05, 60))
        assert refused.value.reason == "busy"
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)

    asyncio.run(run())


@pytest.mark.parametrize("archive", [FREE, WIDE], ids=["without limits", "with limits"])
def test_cancelled_wait_reports_that_nothing_was_sent(archive: Archive) -> None:
    """It is not taken for an unresponsive archive."""

    async def run() -> None:
        given, _ = limiter()
        slot = asyncio.Semaphore(1)
        hanging = await given.acquire(archive, RequestKind.INDEX, slot, WaitBudget(1))
        waits = asyncio.create_task(given.acquire(archive, RequestKind.INDEX, slot, WaitBudget(60)))
        await settle()
        waits.cancel()
        with pytest.raises(asyncio.CancelledError, match=rate_limiter.NOT_SENT):
            await waits
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await given.acquire(archive, RequestKind.INDEX, slot, WaitBudget(60))
        hanging.release()

    asyncio.run(run())


@pytest.mark.parametrize("for_slot", [None, 0.02])
def test_timed_out_wait_leaves_no_error(for_slot: float | None) -> None:
    """The event loop would log it with a traceback."""

    async def run() -> None:
        errors: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        given, _ = limiter()
        slot = asyncio.Semaphore(5)
        first = await given.acquire(WIDE, RequestKind.INDEX, slot, WaitBudget(1))
        with pytest.raises(NotNowError):
            await given.acquire(WIDE, RequestKind.INDEX, slot, WaitBudget(0.02, for_slot))
        await settle()
        first.release()
        assert errors == []

    asyncio.run(run())
