"""Fetching pages for a health check."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.external.scripted_server import ScriptedResponse, ScriptedServer, scripted_server
from tests.virtual_clock import VirtualClock
from unlost.watch import MAX_PAGE_BYTES, FetchedPage, HealthCheck, PolitePageFetcher, SiteHealth, check_health

HTML = {"Content-Type": "text/html; charset=utf-8"}
HOME = ScriptedResponse(200, HTML, '<title>Home</title><p>All about lighthouses<a href="/a">A</a>')


def run_with_server(
    answers: dict[str, ScriptedResponse], work: Callable[[PolitePageFetcher, ScriptedServer], Awaitable[None]]
) -> ScriptedServer:
    """Run `work` against a server with scripted responses; return the server."""

    async def run() -> ScriptedServer:
        clock = VirtualClock()
        async with scripted_server(answers) as server:
            async with PolitePageFetcher([f"{server.base}/"], clock, "me@example.org", 1.0) as fetcher:
                await work(fetcher, server)
            assert sum(clock.slept) < 120, "nobody waits for a site that wants to be left alone"
            return server

    return asyncio.run(run())


def fetch_page(answers: dict[str, ScriptedResponse], path: str = "/") -> FetchedPage:
    """Fetch one page."""
    found: list[FetchedPage] = []

    async def work(fetcher: PolitePageFetcher, server: ScriptedServer) -> None:
        found.append(await fetcher.fetch(server.base + path))

    run_with_server(answers, work)
    return found[0]


def check_home(answers: dict[str, ScriptedResponse]) -> HealthCheck:
    """Return the health of a site at its first visit."""
    found: list[HealthCheck] = []

    async def work(fetcher: PolitePageFetcher, server: ScriptedServer) -> None:
        found.append(await check_health(f"{server.base}/", [], fetcher))

    run_with_server(answers, work)
    return found[0]


def test_fetched_page_has_status_type_charset_and_text() -> None:
    """Of the response."""
    found = fetch_page({"/": HOME})
    assert (found.status, found.mime, found.charset, found.is_good) == (200, "text/html", "utf-8", True)
    assert found.text().splitlines()[0] == "Home"
    assert found.digest is not None


def test_redirects_are_followed_within_bounds() -> None:
    """Loops end; the target of a failing redirect is known."""
    found = fetch_page({"/": ScriptedResponse(301, {"Location": "/new"}), "/new": HOME})
    assert (found.status, found.final_url.endswith("/new"), found.uri.endswith("/")) == (200, True, True)
    circle = fetch_page({"/": ScriptedResponse(302, {"Location": "/"})})
    assert circle.status == 302
    away = fetch_page({"/": ScriptedResponse(301, {"Location": "http://inside.localhost:1/"})})
    assert (away.status, away.final_url) == (301, "http://inside.localhost:1/")


def test_long_page_is_truncated() -> None:
    """At the size limit."""
    assert len(fetch_page({"/": ScriptedResponse(200, HTML, b"x" * (MAX_PAGE_BYTES + 10))}).body) <= MAX_PAGE_BYTES


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"/": HOME}, SiteHealth.FINE),
        ({"/": HOME, "/robots.txt": ScriptedResponse(200, {}, "User-agent: *\nDisallow: /")}, SiteHealth.UNSEEN),
        ({"/": ScriptedResponse(503, {"Retry-After": "86400"})}, SiteHealth.WAIT),
        ({"/": HOME, "/robots.txt": ScriptedResponse(503)}, SiteHealth.WAIT),
        ({"/": ScriptedResponse(500)}, SiteHealth.UNRESPONSIVE),
        ({"/": HOME, "/robots.txt": ScriptedResponse(500)}, SiteHealth.UNRESPONSIVE),
        ({}, SiteHealth.MISSING),
        ({"/": ScriptedResponse(301, {"Location": "http://elsewhere.localhost:1/"})}, SiteHealth.MOVED),
        (
            {"/": ScriptedResponse(200, HTML, "<title>127.0.0.1</title>This domain is for sale. Buy this domain.")},
            SiteHealth.PARKED,
        ),
    ],
    ids=["fine", "robots", "503", "robots-503", "500", "robots-500", "404", "moved", "parked"],
)
def test_health_by_response(answers: dict[str, ScriptedResponse], expected: SiteHealth) -> None:
    """At the first visit."""
    assert check_home(answers).health is expected


def test_site_without_a_server_is_unresponsive() -> None:
    """With a readable reason."""

    async def work(fetcher: PolitePageFetcher, _: ScriptedServer) -> None:
        found = await check_health("http://127.0.0.1:9/", [], fetcher)
        assert found.health is SiteHealth.UNRESPONSIVE
        assert found.reason

    run_with_server({}, work)


def test_health_check_respects_robots_and_delay() -> None:
    """robots.txt is requested once, and requests are few."""
    links = "".join(f'<a href="/{number}">x</a>' for number in range(50))
    responses = {f"/{number}": ScriptedResponse(200, HTML, f"<p>page {number}") for number in range(50)}
    responses |= {
        "/": ScriptedResponse(200, HTML, f"<p>home{links}"),
        "/robots.txt": ScriptedResponse(200, {}, "User-agent: *\nDisallow: /3"),
    }

    async def work(fetcher: PolitePageFetcher, server: ScriptedServer) -> None:
        found = await check_health(f"{server.base}/", [], fetcher)
        again = await check_health(f"{server.base}/", found.pages, fetcher)
        assert again.health is SiteHealth.FINE

    server = run_with_server(responses, work)
    assert server.requests.count("/robots.txt") == 1
    assert len(server.requests) < 30
    assert "/3" not in server.requests
