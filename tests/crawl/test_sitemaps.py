"""Sitemaps: discovery and limits."""

import asyncio
import gzip
from pathlib import Path

import pytest

from tests.crawl.live_site import Page, crawl_pages, html, redirect_to, serve_live_site, sitemap, text
from unlost.crawl import CrawlOutcome, LiveResource, frontier, read_resources


def test_sitemap_entries_are_fetched(tmp_path: Path) -> None:
    """Sitemaps of robots.txt, the default one, indexes and gzipped ones; entries are marked."""
    pages = {
        "/": html("/linked"),
        "/robots.txt": text("Sitemap: {base}/index.xml\nSitemap: relative.xml"),
        "/index.xml": sitemap("{base}/packed.xml.gz", "http://elsewhere.example/s.xml", kind="sitemap"),
        "/relative.xml": sitemap("{base}/from-relative"),
        "/sitemap.xml": sitemap("{base}/from-usual", "{base}/linked", "http://elsewhere.example/page"),
        "/linked": html(), "/from-usual": html("/next"), "/from-relative": html(), "/next": html(),
    }  # fmt: skip

    def page(path: str) -> Page | None:
        if path == "/packed.xml.gz":
            packed = gzip.compress(
                sitemap("http://127.0.0.1:PORT/from-packed".replace("PORT", str(port[0]))).body, mtime=0
            )
            return Page(packed, 200, {"content-type": "application/gzip"})
        return html() if path == "/from-packed" else pages.get(path)

    port = [0]

    async def run() -> list[LiveResource]:
        async with serve_live_site(page) as site:
            port[0] = site.server.port
            await site.crawl(tmp_path / "crawl")
            return [replace_base(each, site.url) for each in read_resources(tmp_path / "crawl")]

    found = {each.uri: each for each in asyncio.run(run())}
    assert {uri for uri, each in found.items() if each.is_in_sitemap} == {
        "/from-usual", "/from-relative", "/from-packed", "/linked",
    }  # fmt: skip
    assert (found["/linked"].hops, found["/from-usual"].hops, found["/next"].hops) == (1, None, None)
    assert all(each.status == 200 for each in found.values())
    assert not any("elsewhere" in uri for uri in found)


def replace_base(resource: LiveResource, url: str) -> LiveResource:
    """Return a resource with its path as URL."""
    from dataclasses import replace

    return replace(resource, uri=resource.uri.removeprefix(url))


def test_missing_guessed_sitemap_is_not_a_resource(tmp_path: Path) -> None:
    """`/sitemap.xml` is deleted from the state if it does not exist."""
    _, resources, site = crawl_pages({"/": html()}, tmp_path / "crawl")
    assert "/sitemap.xml" in site.server.paths
    assert [each.uri for each in resources] == [f"{site.url}/"]
    for count, response in enumerate((html("/invented"), redirect_to("/"), redirect_to("/invented"))):
        _, resources, site = crawl_pages({"/": html(), "/sitemap.xml": response}, tmp_path / str(count))
        assert [each.uri for each in resources] == [f"{site.url}/"]


@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.long)])
def test_huge_sitemaps_are_bounded(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries beyond the limit are only counted."""
    monkeypatch.setattr(frontier, "MAX_SITEMAP_URLS", 3_000)
    lists = [f"/s{number}.xml" for number in range(count)]

    def page(path: str) -> Page | None:
        if path == "/sitemap.xml":
            return sitemap(*("{base}" + each for each in lists), kind="sitemap")
        if path in lists:
            return sitemap(*(f"{{base}}/p/{path[2:-4]}-{number}" for number in range(50_000)))
        return html() if path == "/" else None

    # Sitemaps have fewer hops than their entries: all are read before the limit is reached.
    result, _, site = crawl_pages(page, tmp_path / "crawl", resources=30, write_warcs=False)
    assert result.queued + result.counts[CrawlOutcome.EXCLUDED] < 5_000
    assert result.excluded_links == {"too-many-listed": count * 50_000 - 3_000}
    assert len(site.server.paths) == 1 + 30
