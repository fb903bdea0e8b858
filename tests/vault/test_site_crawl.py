"""Pages of a live site, found by a polite crawl."""

import asyncio
from pathlib import Path

import pytest

from tests.crawl.live_site import Page as Answer
from tests.crawl.live_site import html, serve_live_site, text
from tests.vault.fixtures import pack_site, server_files, static_site
from unlost.crawl import CrawlOutcome
from unlost.errors import InputError, UsageError
from unlost.vault import BlockCollector, CarrierPage, SiteCrawl, inject_blocks

SITE = {
    "/": html(
        "/a", "/b%20c.html?d=1", "/private/x", "/unlost-vault/index.html", "/picture.png", "http://other.example/"
    ),
    "/a": html("/far"),
    "/b%20c.html?d=1": html(),
    "/far": Answer(b"<meta name=robots content=noarchive><p>far</p>"),
    "/private/x": html(),
    "/unlost-vault/index.html": html("/unlost-vault/page-1.html"),
    "/unlost-vault/page-1.html": html(),
    "/picture.png": Answer(b"\x89PNG", 200, {"content-type": "image/png"}),
    "/robots.txt": text("User-agent: *\nDisallow: /private/\nSitemap: {base}/map.xml\n"),
    "/map.xml": Answer(
        b"<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>"
        b"<url><loc>{base}/unlinked</loc></url></urlset>",
        200,
        {"content-type": "application/xml"},
    ),
    "/unlinked": html(),
}


def pages(site: dict[str, Answer], folder: Path, start: str = "/") -> list[CarrierPage]:
    """Return the pages of a site that runs meanwhile."""

    async def run() -> list[CarrierPage]:
        async with serve_live_site(site) as server:
            return await SiteCrawl(folder, server.clock, 0.0, "me@example.org").list_pages(server.url + start)

    return asyncio.run(run())


def test_list_pages_finds_archivable_pages(tmp_path: Path) -> None:
    """Links and sitemaps are followed; pages forbidden by robots.txt or `noarchive` and generated pages are omitted."""
    found = pages(SITE, tmp_path / "crawl")
    assert {page.key: page.hops for page in found} == {"/": 0, "/a": 1, "/b c.html?d=1": 1, "/unlinked": None}
    assert found[0] == CarrierPage("/", len(SITE["/"].body), 0)


def test_page_sizes_exclude_existing_blocks(tmp_path: Path) -> None:
    """A site with blocks is planned like one without."""
    server, site = server_files(tmp_path), static_site(tmp_path, 6)
    bare = (site / "index.html").read_bytes()
    inject_blocks(pack_site(tmp_path / "v", server, site).vault, site)
    served = {"/": Answer((site / "index.html").read_bytes())}
    assert len(served["/"].body) > len(bare)
    assert pages(served, tmp_path / "crawl")[0].size == len(bare)


@pytest.mark.parametrize(
    ("site", "message"),
    [
        ({"/robots.txt": text("User-agent: *\nDisallow: /\n")}, "robots.txt forbids"),
        ({"/": Answer(b"%PDF-1.4", 200, {"content-type": "application/pdf"})}, "no page of HTML"),
        ({}, "no page of HTML"),
    ],
)
def test_site_without_pages_raises_with_the_reason(tmp_path: Path, site: dict[str, Answer], message: str) -> None:
    """The message says why there are no pages."""
    with pytest.raises(InputError, match=message):
        pages(site, tmp_path / "crawl")


def test_url_without_http_is_rejected(tmp_path: Path) -> None:
    """Only HTTP and HTTPS URLs are accepted."""
    with pytest.raises(UsageError, match="http://"):
        asyncio.run(SiteCrawl(tmp_path, None, 0.0).list_pages("file:///etc"))  # type: ignore[arg-type]


def test_visit_pages_fetches_only_pages_of_the_vault(tmp_path: Path) -> None:
    """Names are escaped in URLs, missing pages are not counted, links are not followed."""
    server, site = server_files(tmp_path), static_site(tmp_path, 6)
    (site / "sub" / "p0.html").rename(site / "sub" / "p 0 ä.html")
    vault = pack_site(tmp_path / "v", server, site).vault
    inject_blocks(vault, site)
    (site / "sub" / "p1.html").unlink()
    quoted = {"/sub/p 0 ä.html": "/sub/p%200%20%C3%A4.html"}
    served = {
        quoted.get(key, key): Answer((site / key[1:]).read_bytes()) for key in vault.live if (site / key[1:]).exists()
    }

    async def run() -> list[str]:
        async with serve_live_site(served) as running:
            visits = SiteCrawl(tmp_path / "crawl", running.clock, 0.0, "me@example.org")
            await visits.visit_pages(f"{running.url}/", vault.live)
            assert sorted(running.paths) == sorted([*served, "/sub/p1.html"])
            return [body.decode() for _, body in visits.iter_bodies()]

    gathering = BlockCollector()
    for body in asyncio.run(run()):
        gathering.add_page(body.encode(), "")
    assert gathering.pages_with_blocks == len(vault.live) - 1


def test_site_crawl_counts_new_responses_and_stores_the_result(tmp_path: Path) -> None:
    """A second crawl into the same folder fetches nothing; progress events are passed on."""
    pages = {"/": Answer(b"<a href=a.html>a</a>"), "/a.html": Answer(b"<p>a</p>")}
    events: list[str] = []

    async def run() -> None:
        async with serve_live_site(pages) as server:
            for expected in (2, 0):
                site_crawl = SiteCrawl(
                    tmp_path / "crawl", server.clock, 0.0, "me@example.org", lambda event, _: events.append(event)
                )
                assert site_crawl.result is None
                assert len(await site_crawl.list_pages(f"{server.url}/")) == 2
                assert site_crawl.visited_count == expected
                assert site_crawl.result is not None
                assert site_crawl.result.counts[CrawlOutcome.FETCHED] == 2

    asyncio.run(run())
    assert events.count("fetched") == 2
