"""What clients make of every fault of an archive: a proxy before a real pywb injects them, one by one and mixed."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from tests.archives.asking.asking import HASTY
from tests.archives.clients.sites import response
from tests.archives.collected import a_courier, collected
from tests.neighbours import pywb
from tests.neighbours.fault_proxy import Proxy, moved, proxying
from tests.neighbours.process import free_port
from tests.virtual_clock import VirtualClock
from unlost.archives.archive import Archive, Kind
from unlost.archives.asking.question import Asks
from unlost.archives.clients.memento import MementoArchive
from unlost.archives.clients.pywb import PywbArchive
from unlost.archives.repository import Repository
from unlost.errors import FailedError, NotNowError

PAGE = "http://example.com/page"
DATES = ["20140210000001", "20160210000001"]
CLIENTS: dict[str, tuple[Callable[[Archive, Asks], Repository], Kind]] = {
    "pywb": (PywbArchive, Kind.PYWB),
    "memento": (MementoArchive, Kind.MEMENTO),
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pywb.Pywb]:
    """Serve two copies of a page by a real archive."""
    folder = tmp_path_factory.mktemp("pywb")
    warc = folder / "a.warc.gz"
    warc.write_bytes(
        b"".join(response(PAGE, f"{date[:4]}-02-10T00:00:01Z", f"<p>{date}</p>".encode()) for date in DATES)
    )
    with pywb.serving_warcs([warc], folder) as (server,):
        yield server


@dataclass
class Before:
    """A client before an archive, with a proxy between them."""

    proxy: Proxy
    client: Repository
    clock: VirtualClock

    async def dates(self) -> list[str]:
        """Return the dates that it lists; raise what it raises."""
        found, error = await collected(self.client.captures(PAGE))
        if error is not None:
            assert found == []
            raise error
        return sorted(capture.datetime for capture in found)


@asynccontextmanager
async def before(archive: pywb.Pywb, client: str, *faults: str, for_ever: bool = False) -> AsyncIterator[Before]:
    """Put the proxy between them."""
    clock = VirtualClock()
    make, kind = CLIENTS[client]
    async with (
        proxying(archive.port, clock, faults, for_ever=for_ever) as proxy,
        a_courier(clock, deadlines=HASTY) as courier,
    ):
        yield Before(proxy, make(proxy.before(archive.archive("a", kind)), courier), clock)


FOR_EVER = {
    # fault: (kind of failure, requests, waits in seconds)
    "hang": ("timeout", 1, []),
    "slow": ("timeout", 1, []),
    "reset": ("reset", 3, [1.0, 4.0]),
    "500": ("status", 3, [1.0, 4.0]),
    "html": ("malformed", 1, []),
    "rubbish": ("malformed", 1, []),
    "endless": ("too-large", 1, []),
    "loop": ("redirects", 1, []),
    "inside": ("redirects", 1, []),
    "bomb": ("too-large", 1, []),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", FOR_EVER)
def test_a_fault_that_stays_is_told_in_one_word(archive: pywb.Pywb, client: str, fault: str) -> None:
    """Whatever is asked; with as many requests as help, bounded memory, and the archive's next answer unspoilt."""
    kind, requests, waits = FOR_EVER[fault]

    async def run() -> None:
        async with before(archive, client, fault, for_ever=True) as it:
            tracemalloc.start()
            with pytest.raises(FailedError) as failed:
                await it.dates()
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert (failed.value.kind, failed.value.archive) == (kind, "a")
            assert len(it.proxy.server.asked) == requests
            assert it.clock.slept == waits
            assert peak < 32 << 20
            it.proxy.faults.clear()
            assert await it.dates() == DATES

    asyncio.run(run())


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("faults", "waited"),
    [
        (["reset"], 1.0),
        (["500"], 1.0),
        (["500", "reset"], 5.0),
        (["503"], 60.0),
        (["429"], 60.0),
        (["429 after 7"], 7.0),
        (["429 after 7", "500", "503"], 7.0 + 1.0 + 120.0),
        (["429", "429"], 60.0 + 120.0),
    ],
)
def test_a_fault_that_passes_is_waited_for(archive: pywb.Pywb, client: str, faults: list[str], waited: float) -> None:
    """Then everything comes, asked for once more for each fault, and not sooner than the archive said."""

    async def run() -> None:
        async with before(archive, client, *faults) as it:
            begun = it.clock.now()
            assert await it.dates() == DATES
            assert len(it.proxy.server.asked) == len(faults) + 1
            assert waited <= it.clock.now() - begun <= waited + 1

    asyncio.run(run())


@pytest.mark.parametrize("client", CLIENTS)
def test_a_throttle_that_stays_ends_in_a_date(archive: pywb.Pywb, client: str) -> None:
    """After as much patience as there is, it is not asked until it may be, whatever else it is to be asked."""

    async def run() -> None:
        async with before(archive, client, "429", for_ever=True) as it:
            with pytest.raises(NotNowError) as refused:
                await it.dates()
            asked = len(it.proxy.server.asked)
            assert (refused.value.reason, refused.value.until > it.clock.now()) == ("told-to-wait", True)
            with pytest.raises(NotNowError):
                await it.client.get(PAGE)
            assert all(time >= refused.value.until for time in it.proxy.server.times[asked:])

    asyncio.run(run())


@pytest.mark.parametrize("client", CLIENTS)
def test_a_refused_connection_is_a_block(archive: pywb.Pywb, client: str) -> None:
    """It is told once, and then nothing is sent for an hour."""

    async def run() -> None:
        clock = VirtualClock()
        make, kind = CLIENTS[client]
        async with a_courier(clock, deadlines=HASTY) as courier:
            repository = make(moved(archive.archive("a", kind), archive.port, free_port()), courier)
            with pytest.raises(FailedError) as failed:
                await repository.get(PAGE)
            assert failed.value.kind == "refused"
            with pytest.raises(NotNowError) as refused:
                await repository.get(PAGE)
            assert (refused.value.reason, round(refused.value.until - clock.now())) == ("blocked", 3600)

    asyncio.run(run())


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("charset", ["utf-16", "no-such-charset"])
def test_a_wrong_charset_changes_nothing(archive: pywb.Pywb, client: str, charset: str) -> None:
    """Lists are read as what they are, and copies come byte by byte."""

    async def run() -> None:
        async with before(archive, client) as it:
            it.proxy.charset = charset
            assert await it.dates() == DATES
            copy = await it.client.get(PAGE, "2016")
            assert copy is not None
            assert (copy.capture.datetime, copy.body.read()) == (DATES[1], b"<p>20160210000001</p>")

    asyncio.run(run())
