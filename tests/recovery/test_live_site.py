"""Tests of the live site as an archive: which responses are captures, and how requests are paced."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from tests.archives.helpers import collect_captures, collect_until_error, make_http_client
from tests.crawl.live_site import LiveSite, Page, Pages, html, redirect_to, serve_live_site, text
from unlost.crawl import Fetcher, MemoryRobotsStore, PoliteFetcher
from unlost.errors import ExcludedError, FailedError, NotNowError, UnsupportedError
from unlost.recovery import LIVE_ARCHIVE, LiveSiteClient, RecoverOptions, open_sources
from unlost.recovery.sources import _MAX_CACHED_RESPONSES
from unlost.registry import RequestKind


def with_site(pages: Pages, talk: Callable[[LiveSite, LiveSiteClient], Awaitable[None]], delay: float = 0.0) -> None:
    """Run requests to a live site with a virtual clock."""

    async def run() -> None:
        async with serve_live_site(pages) as site, Fetcher((site.url,), site.clock) as visitor:
            await talk(
                site, LiveSiteClient(PoliteFetcher(visitor, MemoryRobotsStore(), site.clock, delay, max_wait=60))
            )

    asyncio.run(run())


def test_page_takes_one_request() -> None:
    """The capture has the time of the request and the site's headers; fetching it sends no second request."""

    async def talk(site: LiveSite, client: LiveSiteClient) -> None:
        (capture,) = await collect_captures(client.captures(f"{site.url}/a"))
        assert (capture.uri, capture.status, capture.mime) == (f"{site.url}/a", 200, "text/html")
        assert (capture.archive, capture.migrated, capture.urim) == ("live", False, None)
        assert capture.datetime >= "2001"
        fetched = await client.fetch(capture)
        assert fetched is not None
        with fetched.body:
            assert b"<title>t" in fetched.body.read()
        assert (fetched.capture, fetched.source) == (capture, f"{site.url}/a")
        assert fetched.header("Content-Type") == "text/html"
        assert site.paths == ["/a"]

    with_site({"/a": html()}, talk)


def test_prefix_listing_is_unsupported() -> None:
    """A prefix cannot be listed, and no request is sent."""

    async def talk(site: LiveSite, client: LiveSiteClient) -> None:
        _, error = await collect_until_error(client.list_prefix(f"{site.url}/"))
        assert isinstance(error, UnsupportedError)
        assert site.server.paths == []

    with_site({}, talk)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (404, None),
        (410, None),
        (400, None),
        (401, ExcludedError),
        (403, ExcludedError),
        (451, ExcludedError),
        (500, FailedError),
        (502, FailedError),
    ],
)
def test_error_responses_are_not_captures(status: int, expected: type[Exception] | None) -> None:
    """Missing, forbidden and failing pages yield no capture."""

    async def talk(site: LiveSite, client: LiveSiteClient) -> None:
        found, error = await collect_until_error(client.captures(f"{site.url}/a"))
        assert found == []
        assert (error and type(error)) is expected

    with_site({"/a": Page(b"no", status)}, talk)


def test_robots_txt_is_obeyed() -> None:
    """Disallowed pages are not requested; if robots.txt is unavailable, no page is."""

    async def disallowed(site: LiveSite, client: LiveSiteClient) -> None:
        _, error = await collect_until_error(client.captures(f"{site.url}/a"))
        assert isinstance(error, ExcludedError)
        assert site.paths == []

    async def out_of_order(site: LiveSite, client: LiveSiteClient) -> None:
        _, error = await collect_until_error(client.captures(f"{site.url}/a"))
        assert isinstance(error, FailedError)
        assert site.paths == []

    with_site({"/a": html(), "/robots.txt": text("User-agent: *\nDisallow: /")}, disallowed)
    with_site({"/a": html(), "/robots.txt": Page(b"", 500)}, out_of_order)


def test_requests_are_paced() -> None:
    """Requests are sequential, with the delay between them."""

    async def talk(site: LiveSite, client: LiveSiteClient) -> None:
        await asyncio.gather(*(collect_captures(client.captures(f"{site.url}/{number}")) for number in range(5)))
        gaps = [later - sooner for sooner, later in pairwise(site.server.times)]
        assert len(gaps) == 5
        assert all(gap >= 3 for gap in gaps)
        assert site.server.max_open == 1

    with_site({f"/{number}": html() for number in range(5)}, talk, delay=3.0)


def test_retry_after_is_obeyed() -> None:
    """The client waits for a short Retry-After and reports a long one as the time of the next request."""
    busy = [Page(b"", 503, {"retry-after": "30"}), html()]

    async def short(site: LiveSite, client: LiveSiteClient) -> None:
        (capture,) = await collect_captures(client.captures(f"{site.url}/a"))
        assert capture.status == 200
        first, second = site.server.times[-2:]
        assert second - first >= 30

    async def long(site: LiveSite, client: LiveSiteClient) -> None:
        start = site.clock.now()
        _, error = await collect_until_error(client.captures(f"{site.url}/a"))
        assert isinstance(error, NotNowError)
        assert (error.reason, error.until >= start + 7200) == ("told-to-wait", True)

    with_site(lambda path: busy.pop(0) if path == "/a" else None, short)
    with_site({"/a": Page(b"", 429, {"retry-after": "7200"})}, long)


def test_redirect_to_another_spelling_is_followed() -> None:
    """A redirect to another page, or in a circle, is a capture."""

    async def talk(site: LiveSite, client: LiveSiteClient) -> None:
        (folder,) = await collect_captures(client.captures(f"{site.url}/folder"))
        assert (folder.uri, folder.status) == (f"{site.url}/folder/", 200)
        (other,) = await collect_captures(client.captures(f"{site.url}/old"))
        assert (other.status, other.redirect) == (302, f"{site.url}/new")
        (circle,) = await collect_captures(client.captures(f"{site.url}/circle"))
        assert circle.status == 301

    pages = {"/folder": redirect_to("/folder/"), "/folder/": html(), "/old": redirect_to("/new", 302)}
    with_site({**pages, "/circle": redirect_to("/circle/"), "/circle/": redirect_to("/circle")}, talk)


def test_response_cache_is_bounded() -> None:
    """A response that was evicted is requested again."""

    async def talk(site: LiveSite, client: LiveSiteClient) -> None:
        captures = []
        for number in range(_MAX_CACHED_RESPONSES + 1):
            captures += await collect_captures(client.captures(f"{site.url}/{number}"))
        for capture in captures:
            fetched = await client.fetch(capture)
            assert fetched is not None
            fetched.body.close()
        assert site.paths.count("/0") == 2
        assert site.paths.count("/1") == 1

    with_site(lambda path: html() if path != "/robots.txt" else None, talk)


def test_other_local_ports_are_not_requested() -> None:
    """A URL with another port of this machine is refused."""

    async def talk(site: LiveSite, client: LiveSiteClient) -> None:
        _, error = await collect_until_error(client.captures("http://127.0.0.1:9/a"))
        assert isinstance(error, FailedError)
        assert site.server.paths == []

    with_site({}, talk)


def test_live_client_counts_requests_and_doubles_delay_without_contact() -> None:
    """Requests for robots.txt are counted under its id, too."""

    async def run() -> None:
        async with serve_live_site({"/": html(), "/a": html()}) as site, make_http_client() as http_client:
            plan = RecoverOptions(f"{site.url}/")
            async with open_sources(
                {LIVE_ARCHIVE.id: LIVE_ARCHIVE}, http_client, plan, site.clock, delay=3.0
            ) as repositories:
                client = repositories["live"]
                await collect_captures(client.captures(f"{site.url}/"))
                await collect_captures(client.captures(f"{site.url}/a"))
            assert http_client.request_counts == {("live", RequestKind.REPLAY): 3}
            assert all(later - sooner >= 6 for sooner, later in pairwise(site.server.times))

    asyncio.run(run())
