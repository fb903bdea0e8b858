"""One memento is selected by the TimeGates of archives, if their TimeMaps are not cached."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from tests.aggregate.rounds import run
from tests.aggregate.stubs import Fixed, Heard, an_archive, outcomes, timemap
from tests.archives.helpers import make_http_client
from tests.neighbours.faults import Faults, Talk, faulty
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
from unlost.memento import LinkFormatTimeMap, read_timemap
from unlost.problems import Problems

PAGE = "http://example.com/page"
FIRST, OLD, NEW = "20100210000001", "20140210000001", "20160210000001"
GATE, MAP = f"/gate/{PAGE}", f"/map/{PAGE}"


class World:
    """An aggregator of one archive; a test says what its TimeGate and its TimeMap do."""

    def __init__(self, aggregator: MementoAggregator, server: Faults, heard: Heard) -> None:
        self.aggregator = aggregator
        self.server = server
        self.heard = heard

    @property
    def requested(self) -> list[str]:
        """What the archive was requested for."""
        return [path.split("/")[1] for _, path in self.server.asked]

    async def select(self, date: str = LAST_MEMENTO, **freshness: bool) -> AggregateResult:
        """Find one memento."""
        return await self.aggregator.find(PAGE, RoutingOptions(closest_to=date), CacheControl(**freshness))


Answering = Callable[[Talk], Awaitable[None]]


def with_world(
    work: Callable[[World], Awaitable[None]], gate: Answering, listing: Answering, deadline: float = 20.0
) -> None:
    """Run a test with an archive whose TimeGate and TimeMap respond so."""

    async def respond(talk: Talk) -> None:
        await (gate if talk.path.startswith("/gate/") else listing)(talk)

    async def watched() -> None:
        heard = Heard()
        async with make_http_client(retries=0) as courier, faulty(respond) as server:
            archive = an_archive("a", timemap=f"{server.url}/map/", timegate=f"{server.url}/gate/")
            aggregator = MementoAggregator(
                Fixed(archive), courier, VirtualClock(), limits=ConcurrencyLimits(deadline), listeners=[heard]
            )
            async with aggregator:
                await work(World(aggregator, server, heard))

    run(watched())


async def hang(talk: Talk) -> None:
    """Never respond."""
    await talk.gone()


async def list_all(talk: Talk) -> None:
    """Respond with a TimeMap."""
    await talk.answer(200, timemap("a", [FIRST, OLD, NEW]))


def redirecting(link: str = "") -> Answering:
    """Return a TimeGate that redirects to the closest memento."""

    async def respond(talk: Talk) -> None:
        wanted = talk.headers.get("accept-datetime")
        date = NEW if wanted is None or dates.from_http(wanted) > "2015" else OLD
        await talk.answer(302, location=f"http://a.example/{date}/{PAGE}", vary="accept-datetime", link=link)

    return respond


def links(found: AggregateResult, date: str | None = None) -> LinkFormatTimeMap:
    """Return the Link header of the response that redirects."""
    place = found.closest_index(date)
    assert place is not None
    return read_timemap(memento_link_header(found, place, ServiceUrls("http://here")).encode(), Problems())


@pytest.mark.parametrize(("date", "expected"), [(LAST_MEMENTO, NEW), ("20130101000000", OLD), ("20170101000000", NEW)])
def test_a_timegate_is_enough(date: str, expected: str) -> None:
    """The TimeMap is not requested: it may take for ever."""

    async def work(it: World) -> None:
        found = await it.select(date)
        assert [(row.datetime, row.archive, row.uri) for row in found.mementos] == [
            (expected, "a", f"http://a.example/{expected}/{PAGE}")
        ]
        assert (outcomes(found), found.is_selection, it.requested) == ({"a": "hit"}, True, ["gate"])
        assert it.heard.answers[0].endpoint == "timegate"

    with_world(work, redirecting(), hang)


def test_only_known_relations_are_listed() -> None:
    """Without Accept-Datetime the selected memento is the last; first is listed if the archive says which it is."""
    first = f'<http://a.example/{FIRST}/{PAGE}>; rel="first memento"; datetime="{dates.to_http(FIRST)}"'
    original = f'<{PAGE}>; rel="original"'

    async def without(it: World) -> None:
        told = links(await it.select(OLD), OLD)
        assert [(each.datetime, each.first, each.last) for each in told.mementos] == [(OLD, False, False)]
        assert told.timemaps[0].start is None
        assert (told.original, told.timegate) == (PAGE, f"http://here/timegate/{PAGE}")
        told = links(await it.select())
        assert [(each.datetime, each.first, each.last) for each in told.mementos] == [(NEW, False, True)]

    async def with_first(it: World) -> None:
        told = links(await it.select())
        assert {each.datetime: (each.first, each.last) for each in told.mementos} == {
            FIRST: (True, False),
            NEW: (False, True),
        }
        assert (told.timemaps[0].start, told.timemaps[0].until) == (FIRST, NEW)

    with_world(without, redirecting(), hang)
    with_world(with_first, redirecting(f"{original}, {first}"), hang)


def test_a_timegate_that_responds_with_the_memento() -> None:
    """Its headers are enough, however large it is."""

    async def whole(talk: Talk) -> None:
        headers = {"memento_datetime": dates.to_http(OLD), "content_location": f"/{OLD}/{PAGE}"}
        await talk.answer(200, b"x" * 1_000_000, **headers)

    async def work(it: World) -> None:
        found = await it.select(OLD)
        assert [(row.datetime, row.uri) for row in found.mementos] == [(OLD, f"{it.server.url}/{OLD}/{PAGE}")]
        assert it.requested == ["gate"]

    with_world(work, whole, hang)


def test_a_timegate_without_mementos_is_a_miss() -> None:
    """404 is its response to that; it is cached."""

    async def missing(talk: Talk) -> None:
        await talk.answer(404)

    async def work(it: World) -> None:
        assert outcomes(await it.select(OLD)) == {"a": "miss"}
        assert (await it.select(OLD)).from_cache
        assert it.requested == ["gate"]

    with_world(work, missing, hang)


async def _status_500(talk: Talk) -> None:
    await talk.answer(500)


async def _page(talk: Talk) -> None:
    await talk.answer(200, b"<p>Choose a date")


async def _other_page(talk: Talk) -> None:
    await talk.answer(302, location=f"http://a.example/{OLD}/{PAGE}", link='<http://other.example/>; rel="original"')


async def _nowhere(talk: Talk) -> None:
    await talk.answer(302, location="/gate/nowhere") if talk.path == GATE else await talk.answer(404)


async def _broken(talk: Talk) -> None:
    await talk.reset()


@pytest.mark.parametrize("gate", [_status_500, _page, _other_page, _nowhere, _broken])
def test_the_timemap_is_used_if_the_timegate_fails(gate: Answering) -> None:
    """Then all mementos are known, and cached as such."""

    async def work(it: World) -> None:
        found = await it.select(OLD)
        assert [row.datetime for row in found.mementos] == [FIRST, OLD, NEW]
        assert (outcomes(found), found.is_selection) == ({"a": "hit"}, False)
        assert it.requested[-1] == "map"
        requests = len(it.requested)
        assert (await it.aggregator.find(PAGE)).from_cache
        assert (await it.select(NEW)).from_cache
        assert len(it.requested) == requests

    with_world(work, gate, list_all)


def test_the_timemap_is_used_if_the_timegate_hangs() -> None:
    """After half of the time."""

    async def work(it: World) -> None:
        found = await it.select(OLD)
        assert ([row.datetime for row in found.mementos], it.requested) == ([FIRST, OLD, NEW], ["gate", "map"])

    with_world(work, hang, list_all, deadline=2.0)


def test_a_cached_timemap_is_used_and_a_selection_is_no_timemap() -> None:
    """A selection is cached for its date only."""

    async def work(it: World) -> None:
        await it.select(OLD)
        assert (await it.select(OLD)).from_cache
        assert it.requested == ["gate"]
        with pytest.raises(NotKeptError):
            await it.select(NEW, only_if_cached=True)
        assert len((await it.aggregator.find(PAGE)).mementos) == 3
        assert it.requested == ["gate", "map"]
        for date in (OLD, NEW, LAST_MEMENTO):
            found = await it.select(date)
            assert (len(found.mementos), found.from_cache, found.is_selection) == (3, True, False)
        assert it.requested == ["gate", "map"]
        assert (await it.select(NEW, no_cache=True)).is_selection
        assert it.requested == ["gate", "map", "gate"]

    with_world(work, redirecting(), list_all)


def test_archives_without_a_timegate_are_queried_by_their_timemaps() -> None:
    """The closest memento of all is selected."""

    async def respond(talk: Talk) -> None:
        await (redirecting() if talk.path.startswith("/gate/") else list_all)(talk)

    async def work() -> None:
        async with make_http_client(retries=0) as courier, faulty(respond) as server:
            both = an_archive("a", timemap=f"{server.url}/map/", timegate=f"{server.url}/gate/")
            plain = replace(both, id="b", timegate=None)
            async with MementoAggregator(Fixed(both, plain), courier, VirtualClock()) as aggregator:
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

    async def gate(talk: Talk) -> None:
        await talk.answer(status, b"", **headers)

    async def work(it: World) -> None:
        found = await it.select(OLD)
        assert (outcomes(found), len(found.mementos), it.requested) == ({"a": "hit"}, 3, ["gate", "map"])

    with_world(work, gate, list_all)
