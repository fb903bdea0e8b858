"""What clients make of every fault of an archive: a proxy before it injects them, one by one and mixed."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.archives.clients.records import response
from tests.archives.helpers import collected, make_http_client
from tests.http.harness import HASTY
from tests.neighbours import common_crawl, nginx, pywb
from tests.neighbours.fault_proxy import Proxy, moved, proxying
from tests.neighbours.process import free_port
from tests.neighbours.wayback_cdx import Stored, fake_wayback
from tests.virtual_clock import VirtualClock
from unlost.archives import ArchiveClient, CommonCrawlClient, MementoClient, PywbClient, WaybackClient
from unlost.errors import FailedError, NotNowError
from unlost.http import HttpClient
from unlost.registry import Archive, ArchiveKind, RateLimit, RequestKind

PAGE = "http://example.com/page"
DATES = ["20140210000001", "20160210000001"]
BODIES = {date: f"<p>{date}</p>".encode() for date in DATES}


@dataclass(frozen=True)
class Origins:
    """Where two copies of a page are: a WARC, a real pywb that replays it, a real nginx that gives ranges of it."""

    warc: Path
    pywb: pywb.Pywb
    nginx: int


@pytest.fixture(scope="module")
def origins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origins]:
    """Run the servers."""
    folder = tmp_path_factory.mktemp("pywb")
    warc = folder / "a.warc.gz"
    records = [response(PAGE, f"{date[:4]}-02-10T00:00:01Z", body) for date, body in BODIES.items()]
    warc.write_bytes(b"".join(records))
    with (
        pywb.serving_warcs([warc], folder) as (server,),
        nginx.serving(folder, tmp_path_factory.mktemp("nginx")) as port,
    ):
        yield Origins(warc, server, port)


@asynccontextmanager
async def _pywb(origins: Origins) -> AsyncIterator[Archive]:
    yield origins.pywb.archive("a")


@asynccontextmanager
async def _memento(origins: Origins) -> AsyncIterator[Archive]:
    yield origins.pywb.archive("a", ArchiveKind.MEMENTO)


@asynccontextmanager
async def _wayback(_origins: Origins) -> AsyncIterator[Archive]:
    async with fake_wayback(Stored(PAGE, date, body) for date, body in BODIES.items()) as server:
        yield replace(server.archive(), id="a", limits=())


@asynccontextmanager
async def _commoncrawl(origins: Origins) -> AsyncIterator[Archive]:
    rows = common_crawl.rows_of(origins.warc, origins.warc.name)
    replay = f"http://127.0.0.1:{origins.nginx}/{{filename}}"
    async with common_crawl.serving([common_crawl.Crawl("CC-MAIN-2016-07", rows)]) as server:
        yield Archive("a", "a", ArchiveKind.COMMON_CRAWL, cdx=f"{server.url}/collinfo.json", replay=replay)


@dataclass(frozen=True)
class Client:
    """A client, the archive that it asks, and in how many requests it has a page's list."""

    make: Callable[[Archive, HttpClient], ArchiveClient]
    origin: Callable[[Origins], AbstractAsyncContextManager[Archive]]
    requests: int = 1


CLIENTS = {
    "pywb": Client(PywbClient, _pywb),
    "memento": Client(MementoClient, _memento),
    "wayback": Client(WaybackClient, _wayback),
    "commoncrawl": Client(CommonCrawlClient, _commoncrawl, requests=2),
}


@dataclass
class Before:
    """A client before an archive, with a proxy between them."""

    proxy: Proxy
    client: ArchiveClient
    clock: VirtualClock

    async def dates(self) -> list[str]:
        """Return the dates that it lists; raise what it raises."""
        found, error = await collected(self.client.captures(PAGE))
        if error is not None:
            assert found == []
            raise error
        return sorted(capture.datetime for capture in found)


@asynccontextmanager
async def before(origins: Origins, name: str, *faults: str, for_ever: bool = False) -> AsyncIterator[Before]:
    """Put the proxy between them."""
    clock = VirtualClock()
    client = CLIENTS[name]
    async with (
        client.origin(origins) as archive,
        proxying(_port(archive), clock, faults, for_ever=for_ever) as proxy,
        make_http_client(clock, timeouts=HASTY) as http_client,
    ):
        yield Before(proxy, client.make(proxy.before(archive), http_client), clock)


def _port(archive: Archive) -> int:
    port = urlsplit(archive.cdx or "").port
    assert port is not None
    return port


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
def test_permanent_fault_is_reported_by_kind(origins: Origins, client: str, fault: str) -> None:
    """Whatever is asked; with as many requests as help, bounded memory, and the archive's next answer unspoilt."""
    kind, requests, waits = FOR_EVER[fault]

    async def run() -> None:
        async with before(origins, client, fault, for_ever=True) as it:
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
def test_transient_fault_is_retried(origins: Origins, client: str, faults: list[str], waited: float) -> None:
    """Then everything comes, asked for once more for each fault, and not sooner than the archive said."""

    async def run() -> None:
        async with before(origins, client, *faults) as it:
            begun = it.clock.now()
            assert await it.dates() == DATES
            assert len(it.proxy.server.asked) == len(faults) + CLIENTS[client].requests
            assert waited <= it.clock.now() - begun <= waited + 1

    asyncio.run(run())


@pytest.mark.parametrize("client", CLIENTS)
def test_permanent_throttling_raises_with_a_date(origins: Origins, client: str) -> None:
    """After as much patience as there is, it is not asked until it may be, whatever else it is to be asked."""

    async def run() -> None:
        async with before(origins, client, "429", for_ever=True) as it:
            with pytest.raises(NotNowError) as refused:
                await it.dates()
            asked = len(it.proxy.server.asked)
            assert (refused.value.reason, refused.value.until > it.clock.now()) == ("told-to-wait", True)
            with pytest.raises(NotNowError):
                await it.client.get(PAGE)
            assert all(time >= refused.value.until for time in it.proxy.server.times[asked:])

    asyncio.run(run())


@pytest.mark.parametrize("client", CLIENTS)
def test_refused_connection_is_a_block(origins: Origins, client: str) -> None:
    """While the network works otherwise, it is reported once, and then nothing is sent for an hour."""

    async def run() -> None:
        clock = VirtualClock()
        async with CLIENTS[client].origin(origins) as archive, make_http_client(clock, timeouts=HASTY) as http_client:
            # One without limits is a server of one's own, which may only have been restarted.
            limited = replace(archive, limits=(RateLimit(600, 60, (RequestKind.INDEX, RequestKind.REPLAY), "a test"),))
            assert await CLIENTS[client].make(archive, http_client).get(PAGE) is not None
            repository = CLIENTS[client].make(moved(limited, _port(archive), free_port()), http_client)
            with pytest.raises(FailedError) as failed:
                await repository.get(PAGE)
            assert failed.value.kind == "refused"
            with pytest.raises(NotNowError) as refused:
                await repository.get(PAGE)
            assert (refused.value.reason, round(refused.value.until - clock.now())) == ("blocked", 3600)

    asyncio.run(run())


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("charset", ["utf-16", "no-such-charset"])
def test_wrong_charset_is_ignored(origins: Origins, client: str, charset: str) -> None:
    """Lists are read as what they are, and copies come byte by byte."""

    async def run() -> None:
        async with before(origins, client) as it:
            it.proxy.charset = charset
            assert await it.dates() == DATES
            copy = await it.client.get(PAGE, "2016")
            assert copy is not None
            assert (copy.capture.datetime, copy.body.read()) == (DATES[1], BODIES[DATES[1]])

    asyncio.run(run())


@pytest.mark.parametrize("fault", FOR_EVER)
def test_failing_index_of_a_crawl_fails_the_list(origins: Origins, fault: str) -> None:
    """Behind a list of crawls that came, too."""
    kind, requests, waits = FOR_EVER[fault]

    async def run() -> None:
        async with before(origins, "commoncrawl") as it:
            assert isinstance(it.client, CommonCrawlClient)
            assert [crawl.id for crawl in await it.client.list_crawls()] == ["CC-MAIN-2016-07"]
            it.proxy.faults, it.proxy.for_ever = [fault], True
            with pytest.raises(FailedError) as failed:
                await it.dates()
            assert failed.value.kind == kind
            assert len(it.proxy.server.asked) == 1 + requests
            assert it.clock.slept == waits

    asyncio.run(run())
