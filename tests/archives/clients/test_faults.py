"""Clients and all faults of archives, injected by a proxy, separately and combined."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.archives.clients.records import response
from tests.archives.helpers import collect_until_error, make_http_client
from tests.external import common_crawl, nginx, pywb
from tests.external.fault_proxy import FaultProxy, run_fault_proxy, with_port
from tests.external.process import free_port
from tests.external.wayback_cdx import StoredCapture, fake_wayback
from tests.http.harness import HASTY
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
    """Servers with two captures of a page: a WARC, a real pywb that replays it, a real nginx with byte ranges."""

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
        pywb.serve_warcs([warc], folder) as (server,),
        nginx.serve_folder(folder, tmp_path_factory.mktemp("nginx")) as port,
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
    async with fake_wayback(StoredCapture(PAGE, date, body) for date, body in BODIES.items()) as server:
        yield replace(server.archive(), id="a", limits=())


@asynccontextmanager
async def _commoncrawl(origins: Origins) -> AsyncIterator[Archive]:
    rows = common_crawl.read_rows(origins.warc, origins.warc.name)
    replay = f"http://127.0.0.1:{origins.nginx}/{{filename}}"
    async with common_crawl.fake_common_crawl([common_crawl.Crawl("CC-MAIN-2016-07", rows)]) as server:
        yield Archive("a", "a", ArchiveKind.COMMON_CRAWL, cdx=f"{server.url}/collinfo.json", replay=replay)


@dataclass(frozen=True)
class ClientUnderTest:
    """A client, its archive, and the number of requests for a page's listing."""

    make: Callable[[Archive, HttpClient], ArchiveClient]
    origin: Callable[[Origins], AbstractAsyncContextManager[Archive]]
    requests: int = 1


CLIENTS = {
    "pywb": ClientUnderTest(PywbClient, _pywb),
    "memento": ClientUnderTest(MementoClient, _memento),
    "wayback": ClientUnderTest(WaybackClient, _wayback),
    "commoncrawl": ClientUnderTest(CommonCrawlClient, _commoncrawl, requests=2),
}


@dataclass
class ProxiedClient:
    """A client and an archive with a proxy between them."""

    proxy: FaultProxy
    client: ArchiveClient
    clock: VirtualClock

    async def dates(self) -> list[str]:
        """Return the dates that it lists; raise what it raises."""
        results, error = await collect_until_error(self.client.captures(PAGE))
        if error is not None:
            assert results == []
            raise error
        return sorted(capture.datetime for capture in results)


@asynccontextmanager
async def run_proxied_client(
    origins: Origins, name: str, *faults: str, repeat_last: bool = False
) -> AsyncIterator[ProxiedClient]:
    """Start the proxy between client and archive."""
    clock = VirtualClock()
    client = CLIENTS[name]
    async with (
        client.origin(origins) as archive,
        run_fault_proxy(_port(archive), clock, faults, repeat_last=repeat_last) as proxy,
        make_http_client(clock, timeouts=HASTY) as http_client,
    ):
        yield ProxiedClient(proxy, client.make(proxy.rewrite_archive(archive), http_client), clock)


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
    """For all queries, with a bounded number of requests and bounded memory; the next response is unaffected."""
    kind, requests, waits = FOR_EVER[fault]

    async def run() -> None:
        async with run_proxied_client(origins, client, fault, repeat_last=True) as it:
            tracemalloc.start()
            with pytest.raises(FailedError) as failed:
                await it.dates()
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert (failed.value.kind, failed.value.archive) == (kind, "a")
            assert len(it.proxy.server.requests) == requests
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
    """Everything succeeds after one more request per fault, not before the time given by the archive."""

    async def run() -> None:
        async with run_proxied_client(origins, client, *faults) as it:
            start = it.clock.now()
            assert await it.dates() == DATES
            assert len(it.proxy.server.requests) == len(faults) + CLIENTS[client].requests
            assert waited <= it.clock.now() - start <= waited + 1

    asyncio.run(run())


@pytest.mark.parametrize("client", CLIENTS)
def test_permanent_throttling_raises_with_a_date(origins: Origins, client: str) -> None:
    """After the wait budget is used up, no request is sent before that time."""

    async def run() -> None:
        async with run_proxied_client(origins, client, "429", repeat_last=True) as it:
            with pytest.raises(NotNowError) as refused:
                await it.dates()
            requested = len(it.proxy.server.requests)
            assert (refused.value.reason, refused.value.until > it.clock.now()) == ("told-to-wait", True)
            with pytest.raises(NotNowError):
                await it.client.get(PAGE)
            assert all(time >= refused.value.until for time in it.proxy.server.times[requested:])

    asyncio.run(run())


@pytest.mark.parametrize("client", CLIENTS)
def test_refused_connection_is_a_block(origins: Origins, client: str) -> None:
    """If other hosts are reachable, it is reported once, and nothing is sent for an hour."""

    async def run() -> None:
        clock = VirtualClock()
        async with CLIENTS[client].origin(origins) as archive, make_http_client(clock, timeouts=HASTY) as http_client:
            # An archive without limits is the user's own server, which may only have been restarted.
            limited = replace(archive, limits=(RateLimit(600, 60, (RequestKind.INDEX, RequestKind.REPLAY), "a test"),))
            assert await CLIENTS[client].make(archive, http_client).get(PAGE) is not None
            repository = CLIENTS[client].make(with_port(limited, _port(archive), free_port()), http_client)
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
    """Listings are decoded by their format, and captures are returned byte for byte."""

    async def run() -> None:
        async with run_proxied_client(origins, client) as it:
            it.proxy.charset = charset
            assert await it.dates() == DATES
            fetched = await it.client.get(PAGE, "2016")
            assert fetched is not None
            assert (fetched.capture.datetime, fetched.body.read()) == (DATES[1], BODIES[DATES[1]])

    asyncio.run(run())


@pytest.mark.parametrize("fault", FOR_EVER)
def test_failing_index_of_a_crawl_fails_the_list(origins: Origins, fault: str) -> None:
    """Also after a successful list of crawls."""
    kind, requests, waits = FOR_EVER[fault]

    async def run() -> None:
        async with run_proxied_client(origins, "commoncrawl") as it:
            assert isinstance(it.client, CommonCrawlClient)
            assert [crawl.id for crawl in await it.client.list_crawls()] == ["CC-MAIN-2016-07"]
            it.proxy.faults, it.proxy.repeat_last = [fault], True
            with pytest.raises(FailedError) as failed:
                await it.dates()
            assert failed.value.kind == kind
            assert len(it.proxy.server.requests) == 1 + requests
            assert it.clock.slept == waits

    asyncio.run(run())
