"""Three pywb servers with every fault in front of one, two or all: results, reports, resources."""

import asyncio
import gc
import ssl
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.aggregate.stubs import FixedRouter, outcomes, until
from tests.archives.clients.records import response
from tests.archives.helpers import make_http_client
from tests.external import pywb
from tests.external.fault_proxy import FaultProxy, run_fault_proxy, with_port
from tests.external.fault_server import Exchange, run_fault_server
from tests.external.process import free_port
from tests.virtual_clock import VirtualClock
from unlost.aggregate import ConcurrencyLimits, MementoAggregator
from unlost.http import FAILURE_OUTCOMES, MAX_WAITS, Timeouts
from unlost.memento import Mementos, MementoTuple
from unlost.registry import Archive, ArchiveKind

PAGE = "http://example.com/page"
NOWHERE = "http://example.com/nowhere"
HOLDINGS = {
    "a": ["20140210000001", "20160210000001"],
    "b": ["20150210000001", "20160210000001"],
    "c": ["20120210000001"],
}
CERTIFICATE = Path(__file__).parents[1] / "http" / "files" / "untrusted.pem"
SHORT_TIMEOUTS = Timeouts(connect=2.0, first_byte=5.0, idle=5.0, total=20.0)
BOUNDS = ConcurrencyLimits(deadline=2.5)  # real seconds: long enough for a pywb on a machine that has much else to do

FAULTS = {
    "hang": "timeout",
    "slow": "timeout",
    "reset": "reset",
    "refuse": "refused",
    "500": "http-5xx",
    "503": "not-now",
    "429": "not-now",
    "429 after 7": "not-now",
    "html": "malformed",
    "rubbish": "malformed",
    "endless": "too-large",
    "loop": "redirect",
    "inside": "redirect",
    "bomb": "too-large",
    "tls": "tls",
}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Archive]]:
    """Run three instances of pywb with different holdings."""
    warcs = []
    for name, datetimes in HOLDINGS.items():
        warc = tmp_path_factory.mktemp("warcs") / f"{name}.warc.gz"
        dates = [f"{each[:4]}-{each[4:6]}-{each[6:8]}T00:00:01Z" for each in datetimes]
        warc.write_bytes(b"".join(response(PAGE, date, f"<p>{name} {date}</p>".encode()) for date in dates))
        warcs.append(warc)
    with pywb.serve_warcs(warcs, tmp_path_factory.mktemp("pywb")) as servers:
        yield {name: each.archive(name, ArchiveKind.MEMENTO) for name, each in zip(HOLDINGS, servers, strict=True)}


@pytest.fixture(autouse=True)
def _smaller_timemaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let endless bodies reach the limit before the deadline."""
    monkeypatch.setattr("unlost.archives.timemap.MAX_PAGE_BYTES", 1 << 26)


@dataclass
class ProxiedArchives:
    """An aggregator of archives, each with a proxy, except for those that refuse or have an invalid certificate."""

    aggregator: MementoAggregator
    proxies: dict[str, FaultProxy]
    targets: dict[str, Archive]
    clock: VirtualClock

    def mementos_of(self, *names: str) -> Mementos:
        """Return the mementos of these archives."""
        return Mementos(
            MementoTuple(timestamp, name, f"{self.targets[name].timegate}{timestamp}/{PAGE}")
            for name in names
            for timestamp in HOLDINGS[name]
        )


def port_of(archive: Archive) -> int:
    """Return the port of an archive."""
    assert archive.timemap is not None
    return int(archive.timemap.split(":")[2].partition("/")[0])


async def _ok(exchange: Exchange) -> None:
    await exchange.respond(200, b"nobody gets here")


@asynccontextmanager
async def run_proxies(archives: dict[str, Archive], faults: dict[str, str]) -> AsyncIterator[ProxiedArchives]:
    """Put proxies with faults in front of some archives, and proxies without faults in front of the others."""
    clock = VirtualClock()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)
    proxies, targets = {}, {}
    async with AsyncExitStack() as stack:
        for name, archive in archives.items():
            fault = faults.get(name)
            if fault == "refuse":
                targets[name] = with_port(archive, port_of(archive), free_port())
            elif fault == "tls":
                server = await stack.enter_async_context(run_fault_server(_ok, clock, tls))
                targets[name] = replace(archive, timemap=f"{server.url}/", timegate=None, cdx=None, replay=None)
            else:
                plain = [fault] if fault and not fault.startswith("charset ") else []
                proxy = await stack.enter_async_context(
                    run_fault_proxy(port_of(archive), clock, plain, repeat_last=True)
                )
                if fault and not plain:
                    proxy.charset = fault.partition(" ")[2]
                proxies[name], targets[name] = proxy, proxy.rewrite_archive(archive)
        client = await stack.enter_async_context(
            make_http_client(clock, timeouts=SHORT_TIMEOUTS, max_wait=MAX_WAITS["aggregate"])
        )
        proxied = MementoAggregator(FixedRouter(*targets.values()), client, clock, limits=BOUNDS)
        yield ProxiedArchives(await stack.enter_async_context(proxied), proxies, targets, clock)


def open_files() -> int:
    """Return the number of open files and sockets."""
    return len(list(Path("/proc/self/fd").iterdir()))


def run(
    archives: dict[str, Archive], faults: dict[str, str], work: Callable[[ProxiedArchives], Awaitable[None]]
) -> None:
    """Run a test, and check that no task, socket or file is left."""

    async def watched() -> None:
        async with run_proxies(archives, faults) as proxied:
            await work(proxied)
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})

    gc.collect()
    before = open_files()
    asyncio.run(watched())
    gc.collect()
    assert open_files() <= before


def test_mementos_of_three_servers_are_merged(archives: dict[str, Archive]) -> None:
    """The reports have the number of mementos of each."""

    async def work(proxied: ProxiedArchives) -> None:
        found = await proxied.aggregator.find(PAGE)
        assert found.mementos == proxied.mementos_of("a", "b", "c")
        assert [(report.archive, report.outcome, report.mementos) for report in found.reports] == [
            ("a", "hit", 2),
            ("b", "hit", 2),
            ("c", "hit", 1),
        ]
        nothing = await proxied.aggregator.find(NOWHERE)
        assert (len(nothing.mementos), set(outcomes(nothing).values())) == (0, {"miss"})
        assert proxied.aggregator.get_cached(NOWHERE) is not None

    run(archives, {}, work)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_server_fault_affects_only_its_archive(archives: dict[str, Archive], fault: str) -> None:
    """The result is in time and in bounded memory; the report names the fault; no miss is cached."""

    async def work(proxied: ProxiedArchives) -> None:
        tracemalloc.start()
        start = time.monotonic()
        found = await proxied.aggregator.find(PAGE)
        seconds = time.monotonic() - start
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.mementos == proxied.mementos_of("a", "c")
        assert outcomes(found) == {"a": "hit", "b": FAULTS[fault], "c": "hit"}
        (failure,) = found.failures
        assert failure.message
        assert seconds < BOUNDS.deadline + 1.0
        assert peak < 48 << 20
        nothing = await proxied.aggregator.find(NOWHERE)
        assert len(nothing.mementos) == 0
        assert [report.archive for report in nothing.failures] == ["b"]
        assert proxied.aggregator.get_cached(NOWHERE) is None
        counted = proxied.aggregator.breakers.statuses()["b"].failures
        assert (counted > 0) == (FAULTS[fault] in FAILURE_OUTCOMES)

    run(archives, {"b": fault}, work)


@pytest.mark.parametrize("charset", ["utf-16", "no-such-charset"])
def test_wrong_charset_is_accepted(archives: dict[str, Archive], charset: str) -> None:
    """The declared charset of a TimeMap is ignored."""

    async def work(proxied: ProxiedArchives) -> None:
        found = await proxied.aggregator.find(PAGE)
        assert (found.mementos, found.failures) == (proxied.mementos_of("a", "b", "c"), ())

    run(archives, {"b": f"charset {charset}"}, work)


def test_all_server_faults_together(archives: dict[str, Archive]) -> None:
    """One archive for each, and working ones."""
    many = {f"f{number}": archives["b"] for number in range(len(FAULTS))}
    many = {name: replace(each, id=name) for name, each in many.items()}
    faults = dict(zip(many, FAULTS, strict=True))

    async def work(proxied: ProxiedArchives) -> None:
        tracemalloc.start()
        start = time.monotonic()
        found = await proxied.aggregator.find(PAGE)
        seconds = time.monotonic() - start
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.mementos == proxied.mementos_of("a", "c")
        found_outcomes = outcomes(found)
        # All in one process, the endless ones may not come to their caps before the deadline.
        assert {
            fault for name, fault in faults.items() if found_outcomes[name] not in (FAULTS[fault], "timeout")
        } == set()
        assert (found_outcomes["a"], found_outcomes["c"]) == ("hit", "hit")
        assert len(found.failures) == len(FAULTS)
        assert seconds < BOUNDS.deadline + 1.5
        assert peak < 160 << 20

    run({"a": archives["a"], "c": archives["c"], **many}, faults, work)


def test_all_archives_fail(archives: dict[str, Archive]) -> None:
    """No mementos, all archives are reported, and nothing is cached."""

    async def work(proxied: ProxiedArchives) -> None:
        found = await proxied.aggregator.find(PAGE)
        assert outcomes(found) == {"a": "timeout", "b": "reset", "c": "refused"}
        assert (len(found.mementos), proxied.aggregator.get_cached(PAGE)) == (0, None)

    run(archives, {"a": "hang", "b": "reset", "c": "refuse"}, work)


def test_hanging_archive_delays_results_until_its_circuit_opens(archives: dict[str, Archive]) -> None:
    """When it recovers, it is queried again."""

    async def work(proxied: ProxiedArchives) -> None:
        for number in range(3):
            await proxied.aggregator.find(f"{PAGE}/{number}")
        for number in range(3, 9):
            start = time.monotonic()
            found = await proxied.aggregator.find(f"{PAGE}/{number}")
            assert outcomes(found)["b"] == "dormant"
            assert time.monotonic() - start < BOUNDS.deadline
        proxied.proxies["b"].faults.clear()
        proxied.clock.advance(31)
        found = await proxied.aggregator.find(f"{PAGE}/well")
        assert outcomes(found)["b"] in ("miss", "dormant")
        await until(lambda: proxied.aggregator.breakers.statuses()["b"].state == "active")
        assert (await proxied.aggregator.find(PAGE)).mementos == proxied.mementos_of("a", "b", "c")

    run(archives, {"b": "hang"}, work)
