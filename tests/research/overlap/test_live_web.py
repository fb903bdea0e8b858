"""Live pages, fetched politely and compared with mementos."""

import asyncio
import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp.web import BaseRequest, Response

from tests.documents.samples import TEXT_WORDS, make_pdf, make_postscript, sample
from tests.external.local_server import serve_handler
from tests.external.scripted_server import ScriptedResponse, ScriptedServer, scripted_server
from tests.recovery.stub_archive import Held, Stub
from tests.research.overlap.holdings import open_state
from tests.virtual_clock import VirtualClock
from unlost.crawl import MemoryRobotsStore, RobotsResponse
from unlost.documents import DocumentKind, DocumentReader
from unlost.research import (
    LiveComparison,
    OverlapSurvey,
    PageObservation,
    PoliteLiveWebClient,
    compute_overlap_stats,
    overlap_to_json,
    unpack_text,
)

HTML = {"content-type": "text/html"}
WORDS = " ".join(f"word{number}" for number in range(60))
PAGES = {
    "/robots.txt": ScriptedResponse(body="User-agent: *\nDisallow: /private\nCrawl-delay: 3"),
    "/page": ScriptedResponse(
        headers={**HTML, "cache-control": "no-store"}, body=f"<meta name=robots content=noarchive>{WORDS}"
    ),
    "/gone": ScriptedResponse(404, HTML, "gone"),
    "/moved": ScriptedResponse(301, {"location": "/page"}),
    "/slash": ScriptedResponse(301, {"location": "{base}/slash/"}),
    "/slash/": ScriptedResponse(headers=HTML, body="with a slash"),
    "/round": ScriptedResponse(301, {"location": "/round/"}),
    "/round/": ScriptedResponse(301, {"location": "/round"}),
    "/soft": ScriptedResponse(headers=HTML, body="<title>Error 404</title>Page not found"),
    "/paper": ScriptedResponse(headers={"content-type": "application/msword"}, body=sample(DocumentKind.DOC)),
    "/broken.pdf": ScriptedResponse(headers={"content-type": "application/pdf"}, body=b"%PDF-1.4 and no more"),
    "/busy": ScriptedResponse(503, {"retry-after": "3600"}),
    "/inside": ScriptedResponse(301, {"location": "http://[::1]:1/inside"}),
}


def fetch(
    *paths: str, clock: VirtualClock | None = None
) -> tuple[dict[str, tuple[str, PageObservation | None]], ScriptedServer]:
    """Return the results of fetching pages, and the site."""

    async def run() -> tuple[dict[str, tuple[str, PageObservation | None]], ScriptedServer]:
        async with scripted_server(PAGES) as site:
            with DocumentReader() as documents:
                async with PoliteLiveWebClient(clock or VirtualClock(), "me@example.org", 1.0, documents) as web:
                    return {path: await web.fetch_snapshot(f"{site.base}{path}") for path in paths}, site

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "outcome", "status"),
    [
        ("/page", "answered", 200),
        ("/gone", "answered", 404),
        ("/moved", "answered", 301),  # another page is not this one
        ("/slash", "answered", 200),  # one that archives cannot tell from it is
        ("/round", "answered", 301),
        ("/inside", "answered", 301),
        ("/soft", "absent", 200),
        ("/private/1", "forbidden", None),
        ("/busy", "told-to-wait", None),
    ],
)
def test_outcome_by_response(path: str, outcome: str, status: int | None) -> None:
    """By status, text and robots.txt; redirects are bounded."""
    found, site = fetch(path)
    outcome_, page = found[path]
    assert (outcome_, page.status if page else None) == (outcome, status)
    assert site.requests.count("/robots.txt") == 1
    assert len(site.requests) <= 1 + 6
    assert (path in site.requests) is (outcome != "forbidden")


def test_snapshot_has_headers_and_text() -> None:
    """Of pages and documents; a damaged document has no text."""
    found, _ = fetch("/page", "/paper", "/broken.pdf")
    page, paper, broken = (found[path][1] for path in ("/page", "/paper", "/broken.pdf"))
    assert page
    assert paper
    assert broken
    assert (page.noarchive, page.cache_control) == ("robots", "no-store")
    assert unpack_text(page.text or b"").split() == WORDS.split()
    assert unpack_text(paper.text or b"").split() == TEXT_WORDS.split()
    assert (broken.text, broken.size) == (None, 20)


def test_requests_to_a_site_respect_crawl_delay() -> None:
    """One at a time; robots.txt is requested once, and its delay overrides the option."""
    clock = VirtualClock()
    times: list[float] = []

    async def run() -> None:
        server = ScriptedServer(responses=dict(PAGES))

        async def timed(request: BaseRequest) -> Response:
            times.append(clock.now())
            return await server.handle(request)

        async with serve_handler(timed) as base, PoliteLiveWebClient(clock, "me@example.org", 1.0) as web:
            await asyncio.gather(
                *(web.fetch_snapshot(f"{base}{path}") for path in ("/page", "/gone", "/soft", "/slash/"))
            )

    asyncio.run(run())
    assert len(times) == 5
    assert all(later - sooner >= 3 for sooner, later in pairwise(times))


def test_unreachable_urls_are_silent() -> None:
    """A closed port, an invalid URL, and no host: nothing is raised."""

    async def run() -> list[str]:
        async with scripted_server({}) as gone:
            pass
        async with PoliteLiveWebClient(VirtualClock(), None, 1.0) as web:
            return [(await web.fetch_snapshot(uri))[0] for uri in (f"{gone.base}/", "mailto:a@b.example", "http://")]

    assert asyncio.run(run()) == ["silent"] * 3


def test_comparison_with_mementos_has_known_values(tmp_path: Path) -> None:
    """States, staleness, similarity of pages and documents, and directives."""
    paper = make_postscript(*(f"line {number} of a paper that has enough words" for number in range(12)))
    live_pdf, old_pdf = make_pdf(paper, tmp_path), make_pdf(paper, tmp_path, "-dCompatibilityLevel=1.3")
    assert live_pdf != old_pdf
    modified = {"last-modified": "Mon, 11 Jan 2010 00:00:00 GMT"}
    pages = {
        "/same": ScriptedResponse(headers={**HTML, **modified}, body=f"<p>{WORDS}"),
        "/half": ScriptedResponse(
            headers={**HTML, **modified, "cache-control": "private"}, body=f"<p>{WORDS} and more to come"
        ),
        "/paper.pdf": ScriptedResponse(headers={"content-type": "application/pdf", **modified}, body=live_pdf),
        "/gone": ScriptedResponse(404),
        "/soft": PAGES["/soft"],
    }
    copies = {
        "/same": (f"<p>{WORDS}".encode(), "20100201000000", "text/html"),
        "/half": (f"<p>{WORDS}".encode(), "20100101000000", "text/html"),
        "/paper.pdf": (old_pdf, "20091230000000", "application/pdf"),
        "/gone": (b"<p>was here", "20100101000000", "text/html"),
        "/soft": (b"<p>was here, too", "20100101000000", "text/html"),
    }

    async def run() -> tuple[LiveComparison, str]:
        async with scripted_server(pages) as site:
            captures = [
                Held(f"{site.base}{path}", date, body, mime=mime) for path, (body, date, mime) in copies.items()
            ]
            uris = [each.uri for each in captures]
            with open_state(tmp_path / "s", uris) as state, DocumentReader() as documents:
                async with PoliteLiveWebClient(VirtualClock(), "me@example.org", 0.0, documents) as web:
                    await OverlapSurvey(
                        state, [Stub("a", captures)], max_fetches=10, live_client=web, documents=documents
                    ).run()
                    requests = len(site.requests)
                    await OverlapSurvey(
                        state, [Stub("a", captures)], max_fetches=10, live_client=web, documents=documents
                    ).run()
                    assert len(site.requests) == requests == 6, "no page is fetched twice"
                figures = compute_overlap_stats(state, ["a"], 10)
                return figures.archives[0].live, json.dumps(overlap_to_json(figures))

    live, json_text = asyncio.run(run())
    assert (live.replicated, live.endangered, live.vulnerable, live.absent, live.silent) == (3, 2, 0, 1, 0)
    assert (live.dated, sorted(live.staleness)) == (3, [10.0, 12.0])
    assert (live.identical, live.pairs, len(live.similarities)) == (1, 3, 3)
    points = dict(live.points)
    assert points[0.0] == points[12.0] == 1.0, "the words of the document are the same, though its bytes are not"
    assert 0.85 < points[10.0] < 1.0
    assert (live.no_cache, live.no_cache_held, live.answered) == (1, 1, 3)
    assert '"absent": 1' in json_text


def test_robots_store_is_bounded() -> None:
    """The oldest entry is evicted; a repeated one counts once."""
    store = MemoryRobotsStore(max_bytes=100_000)
    for number in range(50):
        store.put(f"http://{number % 30}.example", RobotsResponse(0.0, 200, b"x" * 9_500))
    stored = [number for number in range(30) if store.get(f"http://{number}.example")]
    assert stored == list(range(10, 20))


def test_hostile_responses_are_bounded() -> None:
    """A decompression bomb, endless redirects, garbage headers: nothing is raised."""
    bomb = gzip.compress(b"<p>a " * 20_000_000, 1)
    pages = {
        "/bomb": ScriptedResponse(headers={**HTML, "content-encoding": "gzip"}, body=bomb),
        "/rubbish": ScriptedResponse(
            headers={
                "content-type": "text/html; charset=\xff\xfe; charset=utf-16" + "x" * 3_000,
                "last-modified": "Mon, 99 Jan 9999 99:99:99 GMT",
                "cache-control": "no-store\t" + "private," * 500,
                "x-robots-tag": "noarchive, " * 500,
            },
            body=b"\x00\xff<meta name=robots content=" + b"noarchive," * 10_000,
        ),
        "/away": ScriptedResponse(301, {"location": "http://169.254.169.254/latest/"}),
        "/script": ScriptedResponse(301, {"location": "javascript:alert(1)"}),
        "/dots": ScriptedResponse(301, {"location": "http://[:::"}),
    }

    async def run() -> dict[str, tuple[str, PageObservation | None]]:
        async with scripted_server(pages) as site, PoliteLiveWebClient(VirtualClock(), "me@example.org", 0.0) as web:
            return {path: await web.fetch_snapshot(f"{site.base}{path}") for path in pages}

    found = asyncio.run(run())
    assert {outcome for outcome, _ in found.values()} == {"answered"}
    bombed, garbage = found["/bomb"][1], found["/rubbish"][1]
    assert bombed
    assert garbage
    assert (bombed.size, bombed.truncated) == (16 << 20, "length")
    assert len(bombed.text or b"") < 1 << 20
    assert garbage.modified is None
    assert len(garbage.cache_control or "") < 1_000
    assert [found[path][1].status for path in ("/away", "/script", "/dots")] == [301] * 3  # type: ignore[union-attr]
