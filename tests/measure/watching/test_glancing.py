"""Fetching single pages for a look at a site, from servers that behave in all the ways in which sites do."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.neighbours.scripted import Answer, Scripted, scripted
from tests.virtual_clock import VirtualClock
from unlost.watch.site_health import (
    MAX_PAGE_BYTES,
    FetchedPage,
    HealthCheck,
    PolitePageFetcher,
    SiteHealth,
    check_health,
)

HTML = {"Content-Type": "text/html; charset=utf-8"}
HOME = Answer(200, HTML, '<title>Home</title><p>All about lighthouses<a href="/a">A</a>')


def seen(answers: dict[str, Answer], work: Callable[[PolitePageFetcher, Scripted], Awaitable[None]]) -> Scripted:
    """Do something with a server that says what a test tells it to; return the server."""

    async def working() -> Scripted:
        clock = VirtualClock()
        async with scripted(answers) as server:
            async with PolitePageFetcher([f"{server.base}/"], clock, "me@example.org", 1.0) as glances:
                await work(glances, server)
            assert sum(clock.slept) < 120, "nobody waits for a site that wants to be left alone"
            return server

    return asyncio.run(working())


def glimpse(answers: dict[str, Answer], path: str = "/") -> FetchedPage:
    """Return what is seen of a page."""
    found: list[FetchedPage] = []

    async def work(glances: PolitePageFetcher, server: Scripted) -> None:
        found.append(await glances.fetch(server.base + path))

    seen(answers, work)
    return found[0]


def look(answers: dict[str, Answer]) -> HealthCheck:
    """Return how a site looks to somebody who sees it for the first time."""
    found: list[HealthCheck] = []

    async def work(glances: PolitePageFetcher, server: Scripted) -> None:
        found.append(await check_health(f"{server.base}/", [], glances))

    seen(answers, work)
    return found[0]


def test_a_page() -> None:
    """Its status, type, charset and text."""
    found = glimpse({"/": HOME})
    assert (found.status, found.mime, found.charset, found.is_good) == (200, "text/html", "utf-8", True)
    assert found.text().splitlines()[0] == "Home"
    assert found.digest is not None


def test_redirects_are_followed_within_bounds() -> None:
    """To where the page is; not in a circle for ever; and where they lead nowhere, where they lead is known."""
    found = glimpse({"/": Answer(301, {"Location": "/new"}), "/new": HOME})
    assert (found.status, found.final_url.endswith("/new"), found.uri.endswith("/")) == (200, True, True)
    circle = glimpse({"/": Answer(302, {"Location": "/"})})
    assert circle.status == 302
    away = glimpse({"/": Answer(301, {"Location": "http://inside.localhost:1/"})})
    assert (away.status, away.final_url) == (301, "http://inside.localhost:1/")


def test_a_long_page_is_cut() -> None:
    """Who says more than anybody reads is not waited for."""
    assert len(glimpse({"/": Answer(200, HTML, b"x" * (MAX_PAGE_BYTES + 10))}).body) <= MAX_PAGE_BYTES


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"/": HOME}, SiteHealth.FINE),
        ({"/": HOME, "/robots.txt": Answer(200, {}, "User-agent: *\nDisallow: /")}, SiteHealth.UNSEEN),
        ({"/": Answer(503, {"Retry-After": "86400"})}, SiteHealth.WAIT),
        ({"/": HOME, "/robots.txt": Answer(503)}, SiteHealth.WAIT),
        ({"/": Answer(500)}, SiteHealth.UNRESPONSIVE),
        ({"/": HOME, "/robots.txt": Answer(500)}, SiteHealth.UNRESPONSIVE),
        ({}, SiteHealth.MISSING),
        ({"/": Answer(301, {"Location": "http://elsewhere.localhost:1/"})}, SiteHealth.MOVED),
        (
            {"/": Answer(200, HTML, "<title>127.0.0.1</title>This domain is for sale. Buy this domain.")},
            SiteHealth.PARKED,
        ),
    ],
    ids=["fine", "robots", "503", "robots-503", "500", "robots-500", "404", "moved", "parked"],
)
def test_how_a_site_looks(answers: dict[str, Answer], expected: SiteHealth) -> None:
    """What a server says, and what is made of it at first sight."""
    assert look(answers).health is expected


def test_a_site_that_is_not_there() -> None:
    """No answer is no status, and the reason is in words."""

    async def work(glances: PolitePageFetcher, _: Scripted) -> None:
        found = await check_health("http://127.0.0.1:9/", [], glances)
        assert found.health is SiteHealth.UNRESPONSIVE
        assert found.reason

    seen({}, work)


def test_a_look_is_polite() -> None:
    """robots.txt is asked for once, and some requests are enough; what robots.txt forbids is not fetched."""
    links = "".join(f'<a href="/{number}">x</a>' for number in range(50))
    answers = {f"/{number}": Answer(200, HTML, f"<p>page {number}") for number in range(50)}
    answers |= {
        "/": Answer(200, HTML, f"<p>home{links}"),
        "/robots.txt": Answer(200, {}, "User-agent: *\nDisallow: /3"),
    }

    async def work(glances: PolitePageFetcher, server: Scripted) -> None:
        found = await check_health(f"{server.base}/", [], glances)
        again = await check_health(f"{server.base}/", found.pages, glances)
        assert again.health is SiteHealth.FINE

    server = seen(answers, work)
    assert server.asked.count("/robots.txt") == 1
    assert len(server.asked) < 30
    assert "/3" not in server.asked
