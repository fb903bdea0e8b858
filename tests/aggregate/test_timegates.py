"""Selection of one memento by the TimeGates of archives, without a cached TimeMap."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from tests.aggregate.stubs import FixedRouter, RecordingListener, make_archive, outcomes, timemap
from tests.aggregate.tasks import run
from tests.archives.helpers import make_http_client
from tests.external.fault_server import Exchange, FaultServer, run_fault_server
from tests.virtual_clock import VirtualClock
from unlost import dates
from unlost.aggregate import (
    LAST_MEMENTO,
    AggregateResult,
    CacheControl,
    ConcurrencyLimits,
    MementoAggregator,
    RoutingOptions,
    ServiceUrls,
    memento_link_header,
)
from unlost.errors import NotKeptError
from unlost.http import RETRIES
from unlost.memento import LinkFormatTimeMap, read_timemap
from unlost.problems import Problems

PAGE = "http://example.com/page"
FIRST, OLD, NEW = "20100210000001", "20140210000001", "20160210000001"
GATE, MAP = f"/gate/{PAGE}", f"/map/{PAGE}"


class SingleArchive:
    """An aggregator of one archive with a configurable TimeGate and TimeMap."""

    def __init__(self, aggregator: MementoAggregator, server: FaultServer, listener: RecordingListener) -> None:
        self.aggregator = aggregator
        self.server = server
        self.listener = listener

    @property
    def requested(self) -> list[str]:
        """The kinds of requests to the archive."""
        return [path.split("/")[1] for _, path in self.server.requests]

    async def select(self, date: str = LAST_MEMENTO, **freshness: bool) -> AggregateResult:
        """Find one memento."""
        return await self.aggregator.find(PAGE, RoutingOptions(closest_to=date), CacheControl(**freshness))


Answering = Callable[[Exchange], Awaitable[None]]


def run_with_archive(
    work: Callable[[SingleArchive], Awaitable[None]], gate: Answering, listing: Answering, deadline: float = 20.0
) -> None:
    """Run a test with an archive whose TimeGate and TimeMap respond like this."""

    async def respond(exchange: Exchange) -> None:
        await (gate if exchange.path.startswith("/gate/") else listing)(exchange)

    async def watched() -> None:
        listener = RecordingListener()
        async with make_http_client(retries=RETRIES["aggregate"]) as client, run_fault_server(respond) as server:
            archive = make_archive("a", timemap=f"{server.url}/map/", timegate=f"{server.url}/gate/")
            aggregator = MementoAggregator(
                FixedRouter(archive), client, VirtualClock(), limits=ConcurrencyLimits(deadline), listeners=[listener]
            )
            async with aggregator:
                await work(SingleArchive(aggregator, server, listener))

    run(watched())


async def hang(exchange: Exchange) -> None:
    """Never respond."""
    await exchange.wait_closed()


async def list_all(exchange: Exchange) -> None:
    """Respond with a TimeMap."""
    await exchange.respond(200, timemap("a", [FIRST, OLD, NEW]))


def redirecting_timegate(link: str = "") -> Answering:
    """Return a TimeGate that redirects to the closest memento."""

    async def respond(exchange: Exchange) -> None:
        requested = exchange.headers.get("accept-datetime")
        date = NEW if requested is None or dates.from_http(requested) > "2015" else OLD
        await exchange.respond(302, location=f"http://a.example/{date}/{PAGE}", vary="accept-datetime", link=link)

    return respond


def links(found: AggregateResult, date: str | None = None) -> LinkFormatTimeMap:
    """Return the Link header of the response that redirects."""
    place = found.closest_index(date)
    assert place is not None
    return read_timemap(memento_link_header(found, place, ServiceUrls("http://here")).encode(), Problems())


@pytest.mark.parametrize(("date", "expected"), [(LAST_MEMENTO, NEW), ("20130101000000", OLD), ("20170101000000", NEW)])
def test_a_timegate_is_enough(date: str, expected: str) -> None:
    """The TimeMap is not requested: it may take for ever."""

    async def work(single: SingleArchive) -> None:
        found = await single.select(date)
        assert [(row.datetime, row.archive, row.uri) for row in found.mementos] == [
            (expected, "a", f"http://a.example/{expected}/{PAGE}")
        ]
        assert (outcomes(found), found.is_selection, single.requested) == ({"a": "hit"}, True, ["gate"])
        assert single.listener.upstream_results[0].endpoint == "timegate"

    run_with_archive(work, redirecting_timegate(), hang)


def test_only_known_relations_are_listed() -> None:
    """Without Accept-Datetime the selected memento is the last; first is listed if the archive says which it is."""
    first = f'<http://a.example/{FIRST}/{PAGE}>; rel="first memento"; datetime="{dates.to_http(FIRST)}"'
    original = f'<{PAGE}>; rel="original"'

    async def without(single: SingleArchive) -> None:
        timemap_ = links(await single.select(OLD), OLD)
        assert [(each.datetime, each.first, each.last) for each in timemap_.mementos] == [(OLD, False, False)]
        assert timemap_.timemaps[0].start is None
        assert (timemap_.original, timemap_.timegate) == (PAGE, f"http://here/timegate/{PAGE}")
        timemap_ = links(await single.select())
        assert [(each.datetime, each.first, each.last) for each in timemap_.mementos] == [(NEW, False, True)]

    async def with_first(single: SingleArchive) -> None:
        timemap_ = links(await single.select())
        assert {each.datetime: (each.first, each.last) for each in timemap_.mementos} == {
            FIRST: (True, False),
            NEW: (False, True),
        }
        assert (timemap_.timemaps[0].start, timemap_.timemaps[0].until) == (FIRST, NEW)

    run_with_archive(without, redirecting_timegate(), hang)
    run_with_archive(with_first, redirecting_timegate(f"{original}, {first}"), hang)


def test_a_timegate_that_responds_with_the_memento() -> None:
    """Its headers are enough, however large it is."""

    async def whole(exchange: Exchange) -> None:
        headers = {"memento_datetime": dates.to_http(OLD), "content_location": f"/{OLD}/{PAGE}"}
        await exchange.respond(200, b"x" * 1_000_000, **headers)

    async def work(single: SingleArchive) -> None:
        found = await single.select(OLD)
        assert [(row.datetime, row.uri) for row in found.mementos] == [(OLD, f"{single.server.url}/{OLD}/{PAGE}")]
        assert single.requested == ["gate"]

    run_with_archive(work, whole, hang)


def test_a_timegate_without_mementos_is_a_miss() -> None:
    """404 is its response to that; it is cached."""

    async def missing(exchange: Exchange) -> None:
        await exchange.respond(404)

    async def work(single: SingleArchive) -> None:
        assert outcomes(await single.select(OLD)) == {"a": "miss"}
        assert (await single.select(OLD)).from_cache
        assert single.requested == ["gate"]

    run_with_archive(work, missing, hang)


async def _status_500(exchange: Exchange) -> None:
    await exchange.respond(500)


async def _page(exchange: Exchange) -> None:
    await exchange.respond(200, b"<p>Choose a date")


async def _other_page(exchange: Exchange) -> None:
    await exchange.respond(
        302, location=f"http://a.example/{OLD}/{PAGE}", link='<http://other.example/>; rel="original"'
    )


async def _nowhere(exchange: Exchange) -> None:
    await exchange.respond(302, location="/gate/nowhere") if exchange.path == GATE else await exchange.respond(404)


async def _broken(exchange: Exchange) -> None:
    await exchange.reset()


@pytest.mark.parametrize("gate", [_status_500, _page, _other_page, _nowhere, _broken])
def test_the_timemap_is_used_if_the_timegate_fails(gate: Answering) -> None:
    """Then all mementos are known, and cached as such."""

    async def work(single: SingleArchive) -> None:
        found = await single.select(OLD)
        assert [row.datetime for row in found.mementos] == [FIRST, OLD, NEW]
        assert (outcomes(found), found.is_selection) == ({"a": "hit"}, False)
        assert single.requested[-1] == "map"
        requests = len(single.requested)
        assert (await single.aggregator.find(PAGE)).from_cache
        assert (await single.select(NEW)).from_cache
        assert len(single.requested) == requests

    run_with_archive(work, gate, list_all)


def test_the_timemap_is_used_if_the_timegate_hangs() -> None:
    """After half of the time."""

    async def work(single: SingleArchive) -> None:
        found = await single.select(OLD)
        assert ([row.datetime for row in found.mementos], single.requested) == ([FIRST, OLD, NEW], ["gate", "map"])

    run_with_archive(work, hang, list_all, deadline=2.0)


def test_a_cached_timemap_is_used_and_a_selection_is_no_timemap() -> None:
    """A selection is cached for its date only."""

    async def work(single: SingleArchive) -> None:
        await single.select(OLD)
        assert (await single.select(OLD)).from_cache
        assert single.requested == ["gate"]
        with pytest.raises(NotKeptError):
            await single.select(NEW, only_if_cached=True)
        assert len((await single.aggregator.find(PAGE)).mementos) == 3
        assert single.requested == ["gate", "map"]
        for date in (OLD, NEW, LAST_MEMENTO):
            found = await single.select(date)
            assert (len(found.mementos), found.from_cache, found.is_selection) == (3, True, False)
        assert single.requested == ["gate", "map"]
        assert (await single.select(NEW, no_cache=True)).is_selection
        assert single.requested == ["gate", "map", "gate"]

    run_with_archive(work, redirecting_timegate(), list_all)


def test_archives_without_a_timegate_are_queried_by_their_timemaps() -> None:
    """The closest memento of all is selected."""

    async def respond(exchange: Exchange) -> None:
        await (redirecting_timegate() if exchange.path.startswith("/gate/") else list_all)(exchange)

    async def work() -> None:
        async with make_http_client(retries=RETRIES["aggregate"]) as client, run_fault_server(respond) as server:
            both = make_archive("a", timemap=f"{server.url}/map/", timegate=f"{server.url}/gate/")
            plain = replace(both, id="b", timegate=None)
            async with MementoAggregator(FixedRouter(both, plain), client, VirtualClock()) as aggregator:
                found = await aggregator.find(PAGE, RoutingOptions(closest_to="20110101000000"))
        place = found.closest_index("20110101000000")
        assert place is not None
        assert found.mementos[place].datetime == FIRST
        assert found.known_ends == (False, False)

    asyncio.run(work())


@pytest.mark.parametrize(
    "answer",
    [
        (302, {"location": f"ftp://a.example/{OLD}/{PAGE}"}),
        (200, {"memento-datetime": "Mon, 10 Feb 2014 00:00:01 GMT", "content-location": "foo:bar"}),
        (302, {"location": "http://nowhere.invalid/memento"}),
        (302, {"location": f"http://nowhere.invalid/99999999999999/{PAGE}"}),
    ],
)
def test_a_timegate_that_names_no_usable_memento_has_failed(answer: tuple[int, dict[str, str]]) -> None:
    """That is neither a miss, nor does it say that the archive cannot be reached: its TimeMap is requested."""
    status, headers = answer

    async def gate(exchange: Exchange) -> None:
        await exchange.respond(status, b"", **headers)

    async def work(single: SingleArchive) -> None:
        found = await single.select(OLD)
        assert (outcomes(found), len(found.mementos), single.requested) == ({"a": "hit"}, 3, ["gate", "map"])

    run_with_archive(work, gate, list_all)
