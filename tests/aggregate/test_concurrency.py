"""Many requests at once to archives that are slow: none is lost, and no archive is sent more than it copes with."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.aggregate.rounds import run
from tests.aggregate.stubs import Fixed, outcomes, timemap, until
from tests.archives.helpers import make_http_client
from tests.neighbours.faults import Faults, Talk, faulty
from unlost.aggregate import ConcurrencyLimits, MementoAggregator
from unlost.clock import SystemClock
from unlost.http import BreakerState, ConcurrencyOptions, MemoryLimitStore, Timeouts
from unlost.registry import Archive, ArchiveKind, load_registry
from unlost.web import ServiceOptions, build_service

PAGES = [f"http://site{number}.example/" for number in range(40)]


class Slow:
    """An archive that has every page and responds after some seconds. most: requests at once."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.open = asyncio.Event()
        self.now = self.most = 0
        if seconds:
            self.open.set()

    async def __call__(self, talk: Talk) -> None:
        """Respond."""
        self.now += 1
        self.most = max(self.most, self.now)
        await self.open.wait()
        await asyncio.sleep(self.seconds)
        self.now -= 1
        await talk.answer(200, timemap("f", ["20140210000001"], talk.path.partition("/list/")[2]))


@dataclass
class Setting:
    """An aggregator with one archive."""

    aggregator: MementoAggregator
    server: Faults


@asynccontextmanager
async def setting(
    archive: Callable[[Talk], Awaitable[None]], concurrency: ConcurrencyOptions, deadline: float = 20.0
) -> AsyncIterator[Setting]:
    """Run the archive, and an aggregator as the service has it."""
    clock = SystemClock()
    async with faulty(archive, clock) as server:
        entry = Archive("f", "F", ArchiveKind.MEMENTO, timemap=f"{server.url}/list/")
        deadlines = Timeouts(5.0, deadline, deadline, deadline)
        courier = make_http_client(
            clock, timeouts=deadlines, max_wait=0.05, retries=0, concurrency=concurrency, max_slot_wait=deadline
        )
        async with (
            courier,
            MementoAggregator(Fixed(entry), courier, clock, limits=ConcurrencyLimits(deadline)) as aggregator,
        ):
            yield Setting(aggregator, server)


def test_requests_wait_for_a_slot_within_the_deadline() -> None:
    """Longer than for limits, until there is one: nothing is lost."""

    async def work() -> None:
        archive = Slow(0.05)
        async with setting(archive, ConcurrencyOptions.fixed(2)) as it:
            found = await asyncio.gather(*map(it.aggregator.find, PAGES))
            assert [outcomes(each) for each in found] == [{"f": "hit"}] * len(PAGES)
            assert archive.most == 2

    run(work())


def test_the_concurrency_grows_to_what_is_needed() -> None:
    """Ten times the initial one here."""

    async def work() -> None:
        archive = Slow(0.1)
        async with setting(archive, ConcurrencyOptions(initial=4)) as it:
            for number in range(6):
                await asyncio.gather(*(it.aggregator.find(f"{page}{number}") for page in PAGES))
            assert archive.most > 0.9 * len(PAGES)

    run(work())


def test_a_request_that_got_no_slot_says_nothing_about_the_archive() -> None:
    """It is `not-now`; the requests that hang are the timeouts that open the breaker."""

    async def work() -> None:
        archive = Slow()
        async with setting(archive, ConcurrencyOptions.fixed(2), deadline=0.5) as it:
            found = await asyncio.gather(*map(it.aggregator.find, PAGES[:10]))
            said = sorted(outcomes(each)["f"] for each in found)
            assert said == ["not-now"] * 8 + ["timeout"] * 2
            condition = it.aggregator.breakers.statuses()["f"]
            assert (condition.state, condition.failures) == (BreakerState.ACTIVE, 2)
            assert {each.retry_at for each in found} == {None}
            archive.open.set()

    run(work())


def test_an_archive_that_fails_is_sent_less() -> None:
    """After errors, half as many at once; it grows again when it responds."""

    async def work() -> None:
        archive = Slow()
        fails = True

        async def respond(talk: Talk) -> None:
            if not fails:
                await archive(talk)
                return
            await archive.open.wait()
            await talk.answer(500)

        async with setting(respond, ConcurrencyOptions(initial=16)) as it:
            # Of one host, so that its breaker stays closed.
            pages = [f"http://site.example/{number}" for number in range(60)]
            failing = [asyncio.create_task(it.aggregator.find(page)) for page in pages[:16]]
            await until(lambda: len(it.server.asked) == 16)
            archive.open.set()
            await asyncio.gather(*failing)
            archive.open.clear()
            fails = False
            later = [asyncio.create_task(it.aggregator.find(page)) for page in pages[16:]]
            await until(lambda: archive.now == 8)
            for _ in range(50):
                await asyncio.sleep(0)
            assert archive.most == 8
            archive.open.set()
            found = await asyncio.gather(*later)
            assert {outcomes(each)["f"] for each in found} == {"hit"}

    run(work())


def test_an_archive_that_is_registered_without_limits_has_none(tmp_path: Path) -> None:
    """The cautious limits of the shipped registry are for other work; limits that are registered hold."""

    async def work() -> None:
        archive = Slow(0.01)
        async with faulty(archive, SystemClock()) as server:
            file = tmp_path / "archives.toml"
            file.write_text(
                f'[[archive]]\nid = "f"\nname = "F"\nkind = "memento"\ntimemap = "{server.url}/list/"\n'
                f'[[archive]]\nid = "g"\nname = "G"\nkind = "memento"\ntimemap = "{server.url}/list/g/"\n'
                '[[archive.limits]]\nrequests = 10\nseconds = 60\nworks = ["index"]\nsource = "s"\n'
            )
            options = ServiceOptions(
                load_registry(file).archives, tmp_path, tmp_path, lambda _: None, stays=False,
                limits=MemoryLimitStore(), contact="me@example.org",
            )  # fmt: skip
            async with build_service(options) as parts:
                found = await asyncio.gather(*map(parts.finder.find, PAGES))
            assert {outcomes(each)["f"] for each in found} == {"hit"}
            assert sum(outcomes(each)["g"] == "not-now" for each in found) >= 30

    asyncio.run(work())
