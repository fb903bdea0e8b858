"""Many concurrent requests to slow archives: none is lost, and concurrency adapts to each archive."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.aggregate.stubs import FixedRouter, outcomes, timemap, until
from tests.aggregate.tasks import run
from tests.archives.helpers import make_http_client
from tests.external.fault_server import Exchange, FaultServer, run_fault_server
from unlost.aggregate import ConcurrencyLimits, MementoAggregator
from unlost.clock import SystemClock
from unlost.http import RETRIES, BreakerState, ConcurrencyOptions, MemoryLimitStore, Timeouts
from unlost.registry import Archive, ArchiveKind, load_registry
from unlost.web import ServiceOptions, build_service

PAGES = [f"http://site{number}.example/" for number in range(40)]


class SlowArchive:
    """An archive that has every page and responds after some seconds.

    Attributes:
        max_active: Largest number of concurrent requests.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.open = asyncio.Event()
        self.now = self.max_active = 0
        if seconds:
            self.open.set()

    async def __call__(self, exchange: Exchange) -> None:
        """Respond."""
        self.now += 1
        self.max_active = max(self.max_active, self.now)
        await self.open.wait()
        await asyncio.sleep(self.seconds)
        self.now -= 1
        await exchange.respond(200, timemap("f", ["20140210000001"], exchange.path.partition("/list/")[2]))


@dataclass
class RunningAggregator:
    """An aggregator with one archive."""

    aggregator: MementoAggregator
    server: FaultServer


@asynccontextmanager
async def run_aggregator(
    archive: Callable[[Exchange], Awaitable[None]], concurrency: ConcurrencyOptions, deadline: float = 20.0
) -> AsyncIterator[RunningAggregator]:
    """Run the archive, and an aggregator configured like the service."""
    clock = SystemClock()
    async with run_fault_server(archive, clock) as server:
        entry = Archive("f", "F", ArchiveKind.MEMENTO, timemap=f"{server.url}/list/")
        deadlines = Timeouts(5.0, deadline, deadline, deadline)
        client = make_http_client(
            clock,
            timeouts=deadlines,
            max_wait=0.05,
            retries=RETRIES["aggregate"],
            concurrency=concurrency,
            max_slot_wait=deadline,
        )
        async with (
            client,
            MementoAggregator(FixedRouter(entry), client, clock, limits=ConcurrencyLimits(deadline)) as aggregator,
        ):
            yield RunningAggregator(aggregator, server)


def test_requests_wait_for_a_slot_within_the_deadline() -> None:
    """Longer than for rate limits; no request is lost."""

    async def work() -> None:
        archive = SlowArchive(0.05)
        async with run_aggregator(archive, ConcurrencyOptions.fixed(2)) as running:
            found = await asyncio.gather(*map(running.aggregator.find, PAGES))
            assert [outcomes(each) for each in found] == [{"f": "hit"}] * len(PAGES)
            assert archive.max_active == 2

    run(work())


def test_concurrency_grows_to_the_load() -> None:
    """Ten times the initial one."""

    async def work() -> None:
        archive = SlowArchive(0.1)
        async with run_aggregator(archive, ConcurrencyOptions(initial=4)) as running:
            for number in range(6):
                await asyncio.gather(*(running.aggregator.find(f"{page}{number}") for page in PAGES))
            assert archive.max_active > 0.9 * len(PAGES)

    run(work())


def test_requests_without_a_slot_are_not_failures() -> None:
    """They are `not-now`; only hanging requests count as timeouts."""

    async def work() -> None:
        archive = SlowArchive()
        async with run_aggregator(archive, ConcurrencyOptions.fixed(2), deadline=0.5) as running:
            found = await asyncio.gather(*map(running.aggregator.find, PAGES[:10]))
            outcomes_ = sorted(outcomes(each)["f"] for each in found)
            assert outcomes_ == ["not-now"] * 8 + ["timeout"] * 2
            condition = running.aggregator.breakers.statuses()["f"]
            assert (condition.state, condition.failures) == (BreakerState.CLOSED, 2)
            assert {each.retry_at for each in found} == {None}
            archive.open.set()

    run(work())


def test_errors_halve_the_concurrency() -> None:
    """It grows again with successes."""

    async def work() -> None:
        archive = SlowArchive()
        fails = True

        async def respond(exchange: Exchange) -> None:
            if not fails:
                await archive(exchange)
                return
            await archive.open.wait()
            await exchange.respond(500)

        async with run_aggregator(respond, ConcurrencyOptions(initial=16)) as running:
            # Of one host, so that its breaker stays closed.
            pages = [f"http://site.example/{number}" for number in range(60)]
            failing = [asyncio.create_task(running.aggregator.find(page)) for page in pages[:16]]
            await until(lambda: len(running.server.requests) == 16)
            archive.open.set()
            await asyncio.gather(*failing)
            archive.open.clear()
            fails = False
            later = [asyncio.create_task(running.aggregator.find(page)) for page in pages[16:]]
            await until(lambda: archive.now == 8)
            for _ in range(50):
                await asyncio.sleep(0)
            assert archive.max_active == 8
            archive.open.set()
            found = await asyncio.gather(*later)
            assert {outcomes(each)["f"] for each in found} == {"hit"}

    run(work())


def test_registered_archive_without_limits_is_unlimited(tmp_path: Path) -> None:
    """Registered limits are respected."""

    async def work() -> None:
        archive = SlowArchive(0.01)
        async with run_fault_server(archive, SystemClock()) as server:
            file = tmp_path / "archives.toml"
            file.write_text(
                f'[[archive]]\nid = "f"\nname = "F"\nkind = "memento"\ntimemap = "{server.url}/list/"\n'
                f'[[archive]]\nid = "g"\nname = "G"\nkind = "memento"\ntimemap = "{server.url}/list/g/"\n'
                '[[archive.limits]]\nrequests = 10\nseconds = 60\nworks = ["index"]\nsource = "s"\n'
            )
            options = ServiceOptions(
                load_registry(file).archives, tmp_path, tmp_path, lambda _: None, is_long_running=False,
                limit_store=MemoryLimitStore(), contact="me@example.org",
            )  # fmt: skip
            async with build_service(options) as parts:
                found = await asyncio.gather(*map(parts.finder.find, PAGES))
            assert {outcomes(each)["f"] for each in found} == {"hit"}
            assert sum(outcomes(each)["g"] == "not-now" for each in found) >= 30

    asyncio.run(work())
