"""Adaptive concurrency per host: it grows while the host copes, and shrinks otherwise."""

import asyncio
import random
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from unlost.http import ConcurrencyLimiter, ConcurrencyOptions


async def settle() -> None:
    """Run all tasks as far as possible."""
    for _ in range(10):
        await asyncio.sleep(0)


class Host:
    """A host in virtual time, and clients that send a request when they get a slot.

    Attributes:
        seconds: Duration of a request by the number of requests in flight.
        time: Virtual seconds.
        most: Largest number of concurrent requests since the last reset.
    """

    def __init__(self, limiter: ConcurrencyLimiter, clients: int, seconds: Callable[[int], float]) -> None:
        self.limiter = limiter
        self.seconds = seconds
        self.time = asyncio.get_running_loop().time()
        self.most = self.served = 0
        self.going: list[tuple[float, float]] = []  # end, begin
        self._tasks = [asyncio.create_task(self._send()) for _ in range(clients)]

    async def _send(self) -> None:
        await self.limiter.acquire()
        self.going.append((self.time + self.seconds(len(self.going) + 1), self.time))
        self.most = max(self.most, len(self.going))

    async def run(self, responses: int, end: Callable[[float, float], None] | None = None) -> None:
        """Finish requests one after another; each is followed by another one."""
        for _ in range(responses):
            await settle()
            ended = min(self.going)
            self.going.remove(ended)
            self.time, start = ended
            (end or self.limiter.record_response)(start, self.time)
            self.served += 1
            self.limiter.release()
            self._tasks.append(asyncio.create_task(self._send()))
        await settle()

    async def close(self) -> None:
        """Stop all clients."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def run_host(
    check: Callable[[Host], object], options: ConcurrencyOptions, clients: int, seconds: Callable[[int], float]
) -> None:
    """Run a test with a host."""

    async def work() -> None:
        host = Host(ConcurrencyLimiter(options), clients, seconds)
        await check(host)  # type: ignore[misc]
        await host.close()

    asyncio.run(work())


def test_limit_grows_while_requests_wait() -> None:
    """It doubles each round up to the demand."""

    async def check(host: Host) -> None:
        start = host.time
        await host.run(16)
        assert host.limiter.limit >= 30
        await host.run(600)
        assert 60 <= host.limiter.limit <= 64
        assert host.most == 60
        waiting = 616 / 60  # seconds, if nothing had limited them
        assert host.time - start < waiting + 3

    run_host(check, ConcurrencyOptions(initial=16), clients=60, seconds=lambda _: 1.0)


def test_limit_stays_within_bounds() -> None:
    """For any sequence of events."""

    async def check(host: Host) -> None:
        await host.run(200)
        assert (host.limiter.limit, host.most) == (20, 20)
        for _ in range(10):
            await host.run(30, host.limiter.record_throttling)
        assert host.limiter.limit == 3

    run_host(check, ConcurrencyOptions(initial=8, minimum=3, maximum=20), clients=60, seconds=lambda _: 1.0)


@pytest.mark.parametrize("event", ["record_throttling", "record_failure"])
def test_requests_in_flight_together_halve_it_once(event: str) -> None:
    """Later ones may halve it again; then it grows by one a round."""

    async def work() -> None:
        limiter = ConcurrencyLimiter(ConcurrencyOptions(initial=40))
        sent = 100.0
        for _ in range(40):
            await limiter.acquire()
        for _ in range(40):
            getattr(limiter, event)(sent, sent + 1)
            limiter.release()
        assert limiter.limit == 20
        later = sent + 2
        for _ in range(20):
            getattr(limiter, event)(later, later + 1)
        assert limiter.limit == 10
        waiting = [asyncio.create_task(limiter.acquire()) for _ in range(50)]
        await settle()
        for _ in range(10):
            limiter.record_response(later + 2, later + 3)
        assert limiter.limit in (10, 11)
        for _ in range(3):
            limiter.record_response(later + 2, later + 3)
        assert limiter.limit == 11
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(work())


def test_single_errors_do_not_halve_it() -> None:
    """Below a tenth of a round, errors are those of pages."""

    async def check(host: Host) -> None:
        await host.run(400)
        grown = host.limiter.limit
        for _ in range(8):
            await host.run(4, host.limiter.record_failure)
            await host.run(80)
        assert host.limiter.limit >= grown

    run_host(check, ConcurrencyOptions(), clients=60, seconds=lambda _: 1.0)


def test_rising_latency_decreases_it() -> None:
    """The latency of a host with 10 workers rises with the load; it is not flooded."""

    async def check(host: Host) -> None:
        await host.run(100)
        host.most = 0
        await host.run(2_000)
        assert host.most <= 40, "200 clients wait"
        assert host.limiter.limit >= 4

    run_host(
        check, ConcurrencyOptions(initial=16), clients=200, seconds=lambda at_once: max(0.5, 0.5 * (at_once / 10) ** 2)
    )


def test_slow_pages_are_not_a_rise() -> None:
    """Hits take ten times as long as misses, in random order."""
    rng = random.Random(3)  # noqa: S311

    async def check(host: Host) -> None:
        await host.run(3_000)
        assert host.limiter.limit >= 50

    run_host(check, ConcurrencyOptions(), clients=60, seconds=lambda _: 1.0 if rng.random() < 0.1 else 0.1)


def test_slower_host_becomes_the_baseline() -> None:
    """It is sent less at first, at least a quarter of the initial number, and then more again."""
    seconds = [0.2]

    async def check(host: Host) -> None:
        await host.run(1_000)
        seconds[0] = 1.0
        least = 1_000
        for _ in range(40):
            await host.run(20)
            least = min(least, host.limiter.limit)
        assert 8 <= least < 30
        await host.run(3_000)
        assert host.limiter.limit >= 50

    run_host(check, ConcurrencyOptions(), clients=60, seconds=lambda _: seconds[0])


def test_fixed_limit_never_changes() -> None:
    """For clients without adaptive concurrency."""

    async def check(host: Host) -> None:
        await host.run(100)
        await host.run(100, host.limiter.record_failure)
        await host.run(100, host.limiter.record_throttling)
        await host.run(100, host.limiter.record_abandoned)
        assert (host.limiter.limit, host.most) == (6, 6)

    run_host(check, ConcurrencyOptions.fixed(6), clients=20, seconds=lambda _: 1.0)


class Clients:
    """Clients that take and release slots.

    Attributes:
        holding: Numbers of the clients with a slot, in order.
        bound: Largest limit since all tasks have run: a slot may be granted before the limit is halved and taken after.
        latest: Largest number of a client that has got a slot.
    """

    def __init__(self) -> None:
        self.limiter = ConcurrencyLimiter(ConcurrencyOptions(initial=2, maximum=8))
        self.tasks: list[asyncio.Task[None]] = []
        self.holding: list[int] = []
        self.bound = self.limiter.limit
        self.latest = -1

    async def settle(self) -> None:
        """Run all tasks as far as possible, and check that no client has overtaken a waiting one."""
        await settle()
        self.bound = self.limiter.limit
        waiting = (number for number, task in enumerate(self.tasks) if not task.done())
        assert self.latest < next(waiting, len(self.tasks))

    async def _take(self, number: int) -> None:
        await self.limiter.acquire()
        self.latest = max(self.latest, number)
        self.holding.append(number)
        assert len(self.holding) <= max(self.bound, self.limiter.limit)

    def take(self) -> None:
        """Wait for a slot."""
        self.tasks.append(asyncio.create_task(self._take(len(self.tasks))))

    def give(self) -> None:
        """Release the slot that was taken first."""
        if self.holding:
            self.holding.pop(0)
            self.limiter.release()

    def cancel(self) -> None:
        """Cancel the client that has waited longest."""
        next((task for task in self.tasks if not task.done()), asyncio.create_task(settle())).cancel()

    def grow(self) -> None:
        """Increase the limit."""
        self.limiter.record_response(1.0, 1.01)

    def halve(self) -> None:
        """Halve the limit."""
        self.bound = max(self.bound, self.limiter.limit)
        self.limiter.record_throttling(1.0, 1.0)


@given(st.lists(st.sampled_from(["take", "give", "cancel", "grow", "halve", "settle"]), max_size=80))
@example([*["take"] * 3, "settle", "cancel", "give", "settle"])
@example([*["take"] * 3, "settle", "cancel", "take", "give", "give", "settle"])
@example([*["take"] * 4, "settle", "give", "settle"])
@example([*["take"] * 3, "settle", "give", "halve"])
@example([*["take"] * 3, "settle", "take", "give", "give"])
def test_slots_are_granted_in_order_and_not_lost(steps: list[str]) -> None:
    """With any cancellations; in the end all are free."""

    async def work() -> None:
        clients = Clients()
        for step in steps:
            if step == "settle":
                await clients.settle()
            else:
                getattr(clients, step)()
        await clients.settle()
        limiter = clients.limiter
        assert all(task.done() for task in clients.tasks) or limiter.limit <= len(clients.holding)
        for task in clients.tasks:
            task.cancel()
        ended = await asyncio.gather(*clients.tasks, return_exceptions=True)
        assert {type(each) for each in ended} <= {type(None), asyncio.CancelledError}
        for _ in steps:
            clients.give()
        for _ in range(limiter.limit):
            assert not limiter.locked()
            await limiter.acquire()
        assert limiter.locked()

    asyncio.run(work())


def test_failing_pages_do_not_starve_others() -> None:
    """Statuses of pages reduce the limit to a quarter of the initial one, other errors further."""
    limiter = ConcurrencyLimiter(ConcurrencyOptions(initial=32))
    for second in range(100):
        limiter.record_failure(second, second + 0.5, of_page=True)
    assert limiter.limit == 8
    for second in range(100, 200):
        limiter.record_failure(second, second + 0.5)
    assert limiter.limit == 1
    limiter.record_failure(200, 200.5, of_page=True)
    assert limiter.limit == 1
