"""The live site as a source: which responses are captures, and how politely they are requested."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from tests.archives.helpers import collected, listed, make_http_client
from tests.crawl.site import Living, Page, Pages, html, living, moved, text
from unlost.crawl import Fetcher, MemoryRobotsStore, PoliteFetcher
from unlost.errors import ExcludedError, FailedError, NotNowError, UnsupportedError
from unlost.recover import LIVE_ARCHIVE, LiveSiteClient, RecoverOptions, open_sources
from unlost.recover.sources import _MAX_CACHED_RESPONSES
from unlost.registry import RequestKind


def with_site(pages: Pages, talk: Callable[[Living, LiveSiteClient], Awaitable[None]], delay: float = 0.0) -> None:
    """Run requests to a live site, on a clock on which waiting takes no time."""

    async def run() -> None:
        async with living(pages) as site, Fetcher((site.url,), site.clock) as visitor:
            await talk(
                site, LiveSiteClient(PoliteFetcher(visitor, MemoryRobotsStore(), site.clock, delay, max_wait=60))
            )

    asyncio.run(run())


def test_a_page_is_one_request() -> None:
    """The capture has the time of the request and the site's own headers, and its body is not requested again."""

    async def talk(site: Living, client: LiveSiteClient) -> None:
        (capture,) = await listed(client.captures(f"{site.url}/a"))
        assert (capture.uri, capture.status, capture.mime) == (f"{site.url}/a", 200, "text/html")
        assert (capture.archive, capture.migrated, capture.urim) == ("live", False, None)
        assert capture.datetime >= "2001"
        copy = await client.fetch(capture)
        assert copy is not None
        with copy.body:
            assert b"<title>t" in copy.body.read()
        assert (copy.capture, copy.source) == (capture, f"{site.url}/a")
        assert copy.header("Content-Type") == "text/html"
        assert site.paths == ["/a"]

    with_site({"/a": html()}, talk)


def test_there_is_no_listing() -> None:
    """A prefix cannot be listed, which sends no request."""

    async def talk(site: Living, client: LiveSiteClient) -> None:
        _, error = await collected(client.list_prefix(f"{site.url}/"))
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
def test_an_error_is_no_capture(status: int, expected: type[Exception] | None) -> None:
    """What the site does not have, does not show, or fails to show gives no capture."""

    async def talk(site: Living, client: LiveSiteClient) -> None:
        found, error = await collected(client.captures(f"{site.url}/a"))
        assert found == []
        assert (error and type(error)) is expected

    with_site({"/a": Page(b"no", status)}, talk)


def test_robots_txt_is_obeyed() -> None:
    """What it disallows is not requested; where it cannot be had, nothing is."""

    async def disallowed(site: Living, client: LiveSiteClient) -> None:
        _, error = await collected(client.captures(f"{site.url}/a"))
        assert isinstance(error, ExcludedError)
        assert site.paths == []

    async def out_of_order(site: Living, client: LiveSiteClient) -> None:
        _, error = await collected(client.captures(f"{site.url}/a"))
        assert isinstance(error, FailedError)
        assert site.paths == []

    with_site({"/a": html(), "/robots.txt": text("User-agent: *\nDisallow: /")}, disallowed)
    with_site({"/a": html(), "/robots.txt": Page(b"", 500)}, out_of_order)


def test_requests_are_paced() -> None:
    """One at a time, with the delay between them."""

    async def talk(site: Living, client: LiveSiteClient) -> None:
        await asyncio.gather(*(listed(client.captures(f"{site.url}/{number}")) for number in range(5)))
        gaps = [later - sooner for sooner, later in pairwise(site.server.times)]
        assert len(gaps) == 5
        assert all(gap >= 3 for gap in gaps)
        assert site.server.most_open == 1

    with_site({f"/{number}": html() for number in range(5)}, talk, delay=3.0)


def test_retry_after_is_obeyed() -> None:
    """A short wait is waited for, a long one is reported as the time of the next request."""
    busy = [Page(b"", 503, {"retry-after": "30"}), html()]

    async def short(site: Living, client: LiveSiteClient) -> None:
        (capture,) = await listed(client.captures(f"{site.url}/a"))
        assert capture.status == 200
        first, second = site.server.times[-2:]
        assert second - first >= 30

    async def long(site: Living, client: LiveSiteClient) -> None:
        begun = site.clock.now()
        _, error = await collected(client.captures(f"{site.url}/a"))
        assert isinstance(error, NotNowError)
        assert (error.reason, error.until >= begun + 7200) == ("told-to-wait", True)

    with_site(lambda path: busy.pop(0) if path == "/a" else None, short)
    with_site({"/a": Page(b"", 429, {"retry-after": "7200"})}, long)


def test_a_redirect_to_another_spelling_is_the_same_page() -> None:
    """It is followed; one to another page is a capture, and a circle is one, too."""

    async def talk(site: Living, client: LiveSiteClient) -> None:
        (folder,) = await listed(client.captures(f"{site.url}/folder"))
        assert (folder.uri, folder.status) == (f"{site.url}/folder/", 200)
        (other,) = await listed(client.captures(f"{site.url}/old"))
        assert (other.status, other.redirect) == (302, f"{site.url}/new")
        (circle,) = await listed(client.captures(f"{site.url}/circle"))
        assert circle.status == 301

    pages = {"/folder": moved("/folder/"), "/folder/": html(), "/old": moved("/new", 302)}
    with_site({**pages, "/circle": moved("/circle/"), "/circle/": moved("/circle")}, talk)


def test_few_responses_are_held() -> None:
    """One that was dropped before it was fetched is requested again."""

    async def talk(site: Living, client: LiveSiteClient) -> None:
        captures = []
        for number in range(_MAX_CACHED_RESPONSES + 1):
            captures += await listed(client.captures(f"{site.url}/{number}"))
        for capture in captures:
            copy = await client.fetch(capture)
            assert copy is not None
            copy.body.close()
        assert site.paths.count("/0") == 2
        assert site.paths.count("/1") == 1

    with_site(lambda path: html() if path != "/robots.txt" else None, talk)


def test_it_keeps_away_from_other_hosts_of_this_network() -> None:
    """A redirect of the site to another port of this machine is not followed."""

    async def talk(site: Living, client: LiveSiteClient) -> None:
        _, error = await collected(client.captures("http://127.0.0.1:9/a"))
        assert isinstance(error, FailedError)
        assert site.server.paths == []

    with_site({}, talk)


def test_it_is_opened_with_the_archives_and_its_requests_are_counted() -> None:
    """Under its id, with those for robots.txt; without a contact the delay is doubled."""

    async def run() -> None:
        async with living({"/": html(), "/a": html()}) as site, make_http_client() as courier:
            plan = RecoverOptions(f"{site.url}/")
            async with open_sources(
                {LIVE_ARCHIVE.id: LIVE_ARCHIVE}, courier, plan, site.clock, delay=3.0
            ) as repositories:
                client = repositories["live"]
                await listed(client.captures(f"{site.url}/"))
                await listed(client.captures(f"{site.url}/a"))
            assert courier.request_counts == {("live", RequestKind.REPLAY): 3}
            assert all(later - sooner >= 6 for sooner, later in pairwise(site.server.times))

    asyncio.run(run())
