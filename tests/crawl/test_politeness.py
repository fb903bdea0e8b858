"""Delays between requests and Retry-After, with a virtual clock."""

import asyncio
from itertools import pairwise
from pathlib import Path
from socket import gaierror

import pytest

from tests.crawl.live_site import FixedResolver, Page, html, serve_live_site, text
from tests.external.fault_server import Exchange
from unlost.crawl import (
    MAX_DELAY_SECONDS,
    CrawlConfig,
    CrawlOutcome,
    Fetcher,
    FetchRequest,
    MemoryRobotsStore,
    PoliteFetcher,
    read_resources,
)
from unlost.errors import RobotsError
from unlost.http import POLICIES, AddressInfo

MANY = {"/": html(*(f"/{number}" for number in range(8))), **{f"/{number}": html() for number in range(8)}}


@pytest.mark.parametrize(
    ("robots", "delay", "contact", "expected"),
    [
        ("", 3.0, "me@example.org", 3.0),
        ("", 3.0, None, 6.0),
        ("User-agent: *\nCrawl-delay: 7", 3.0, "me@example.org", 7.0),
        ("User-agent: *\nCrawl-delay: 1", 3.0, "me@example.org", 3.0),
        ("User-agent: *\nCrawl-delay: 86400", 3.0, "me@example.org", MAX_DELAY_SECONDS),
    ],
)
def test_delays_are_respected(robots: str, delay: float, contact: str | None, expected: float, tmp_path: Path) -> None:
    """The configured delay, or a longer Crawl-delay up to the cap; doubled without contact."""
    pages = {**MANY, "/robots.txt": text(robots)}

    async def run() -> None:
        async with serve_live_site(pages) as site:
            await site.crawl(tmp_path / "crawl", delay=delay, contact=contact)
            gaps = [later - sooner for sooner, later in pairwise(site.server.times)]
            assert len(gaps) == 10
            # The delay after robots.txt counts, too.
            assert all(gap >= expected for gap in gaps)
            assert sum(gaps) < expected * 10 + 5
            assert site.server.max_open == 1
            events = [word for word, _ in site.events]
            assert ("delay-capped" in events) is (expected == MAX_DELAY_SECONDS)
            assert ("no-contact" in events) is (contact is None)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "header", "waited"),
    [(429, {"retry-after": "120"}, 120), (503, {"retry-after": "120"}, 120), (429, {}, 30), (503, {}, 30)],
)
def test_retry_after_is_respected(status: int, header: dict[str, str], waited: int, tmp_path: Path) -> None:
    """The request is repeated after Retry-After or the default, with nothing else in between."""
    requested: list[str] = []

    def page(path: str) -> Page | None:
        requested.append(path)
        return Page(b"", status, header) if path == "/3" and requested.count("/3") == 1 else MANY.get(path)

    async def run() -> None:
        async with serve_live_site(page) as site:
            result = await site.crawl(tmp_path / "crawl")
            position = requested.index("/3")
            assert requested[position + 1] == "/3"
            assert site.server.times[position + 1] - site.server.times[position] >= waited
            assert result.is_done
            assert [each.status for each in read_resources(tmp_path / "crawl")] == [200] * 9

    asyncio.run(run())


def test_repeated_429_becomes_the_response(tmp_path: Path) -> None:
    """After the last attempt 429 or 503 is stored as the status."""
    pages = {**MANY, "/5": Page(b"", 503)}

    async def run() -> None:
        async with serve_live_site(pages) as site:
            assert (await site.crawl(tmp_path / "crawl")).is_done
            assert site.paths.count("/5") == 3
            assert {each.uri[-2:]: each.status for each in read_resources(tmp_path / "crawl")}["/5"] == 503

    asyncio.run(run())


def test_long_retry_after_suspends_the_host(tmp_path: Path) -> None:
    """No further request is sent; a run a day later resumes."""
    pages = {**MANY, "/3": Page(b"", 429, {"retry-after": "80000"})}

    async def run() -> None:
        async with serve_live_site(pages.get) as site:
            result = await site.crawl(tmp_path / "crawl")
            assert (list(result.suspended_hosts), result.is_done) == (["127.0.0.1"], False)
            assert result.suspended_hosts["127.0.0.1"] - site.clock.now() == pytest.approx(80_000, abs=5)
            assert site.paths[-1] == "/3"
            pages["/3"] = html()
            site.clock.advance(80_000)
            result = await site.crawl(tmp_path / "crawl")
            assert (result.is_done, result.counts[CrawlOutcome.FETCHED]) == (True, 9)

    asyncio.run(run())


def test_hosts_are_fetched_in_parallel_with_one_request_each(tmp_path: Path) -> None:
    """The delay of one host does not block another."""

    async def run() -> None:
        both = asyncio.Event()
        running: set[str] = set()

        async def meet(path: str) -> None:
            running.add(path)
            if len(running) == 2:
                both.set()
            await both.wait()  # both requests must be in flight

        from tests.external.fault_server import Exchange, run_fault_server

        async def answering(exchange: Exchange) -> None:
            if exchange.path in ("/1", "/2"):
                await meet(exchange.path)
            await exchange.respond(200 if exchange.path in ("/1", "/2") else 404)

        from tests.crawl.live_site import FixedResolver
        from tests.virtual_clock import VirtualClock
        from unlost.crawl import crawl

        async with run_fault_server(answering) as server, asyncio.timeout(20):
            uris = (f"http://one.example:{server.port}/1", f"http://two.example:{server.port}/2")
            plan = CrawlConfig(uris, delay=0.0, sitemaps=False, hosts_at_once=2)
            result = await crawl(
                plan, tmp_path / "crawl", VirtualClock(), contact="x@example.org", resolver=FixedResolver()
            )
            assert result.counts[CrawlOutcome.FETCHED] == 2

    asyncio.run(run())


def test_polite_fetcher_works_without_a_crawl() -> None:
    """Conditional requests are sent, and robots.txt is respected."""

    async def run() -> None:
        pages = {"/": html(), "/robots.txt": text("User-agent: *\nDisallow: /no")}
        async with serve_live_site(pages) as site, Fetcher([site.url], site.clock) as visitor:
            polite = PoliteFetcher(visitor, MemoryRobotsStore(), site.clock, 5.0)
            first = await polite.fetch(FetchRequest(f"{site.url}/", headers=(("If-None-Match", '"a"'),)))
            second = await polite.fetch(FetchRequest(f"{site.url}/", "HEAD"))
            assert (first.status, first.size > 0, second.status, second.size) == (200, True, 200, 0)
            with pytest.raises(RobotsError) as raised:
                await polite.fetch(FetchRequest(f"{site.url}/no"))
            assert not raised.value.is_temporary
            assert site.server.paths == ["/robots.txt", "/", "/"]
            gaps = [later - sooner for sooner, later in pairwise(site.server.times)]
            assert min(gaps) >= 5.0

    asyncio.run(run())


class BreakableResolver(FixedResolver):
    """A resolver that fails for one host while it is broken."""

    def __init__(self, broken_host: str) -> None:
        super().__init__()
        self.is_broken = False
        self.failures = 0
        self._broken_host = broken_host

    async def resolve(self, host: str, port: int) -> list[AddressInfo]:
        """Return the address, or fail."""
        if self.is_broken and host == self._broken_host:
            self.failures += 1
            raise gaierror("no address")
        return await super().resolve(host, port)


def test_unreachable_host_is_skipped_and_tried_again_after_the_pause(tmp_path: Path) -> None:
    """As `POLICIES["crawl"]` says: the trial is in the same run if that is still in progress."""
    policy = POLICIES["crawl"]
    resolver = BreakableResolver("a.example")

    async def run() -> None:
        async with serve_live_site({}) as site:

            async def respond(exchange: Exchange) -> None:
                host = exchange.headers["host"].partition(":")[0]
                links = [f"/{number}" for number in range(20)] if host == "a.example" and exchange.path == "/" else []
                if exchange.path == "/":
                    resolver.is_broken = host == "a.example"
                    if host == "b.example":
                        assert resolver.failures == policy.failures
                        site.clock.advance(policy.pause)
                response = Page(b"", 404) if exchange.path == "/robots.txt" else html(*links)
                await exchange.respond(response.status, response.body, content_type="text/html", connection="close")

            site.server.handler = respond
            starts = tuple(f"http://{name}.example:{site.server.port}/" for name in "ab")
            options = {"hosts_at_once": 1, "resolver": resolver, "sitemaps": False}
            result = await site.crawl(tmp_path / "crawl", starts=starts, **options)
            assert [event for event, _ in site.events].count("closed") == 1
        failed = [each for each in read_resources(tmp_path / "crawl") if each.outcome is CrawlOutcome.FAILED]
        assert [each.reason for each in failed] == ["dns"] * policy.failures
        assert (result.suspended_hosts, result.is_done) == ({}, True)
        assert result.counts[CrawlOutcome.FETCHED] == 2 + 20 - policy.failures

    asyncio.run(run())
