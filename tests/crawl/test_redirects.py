"""Redirects of a crawled site: recorded, followed, bounded."""

from pathlib import Path

import pytest

from tests.crawl.live_site import Page, by_path, crawl_pages, html, redirect_to
from unlost.crawl import MAX_REDIRECT_CHAIN, CrawlOutcome


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_recorded_and_followed(status: int, tmp_path: Path) -> None:
    """The target, relative or not, is fetched; another site is not."""
    pages = {
        "/": html("/old", "/away", "/ftp"),
        "/old": redirect_to("new#part", status),
        "/new": html(),
        "/away": redirect_to("http://elsewhere.example/", status),
        "/ftp": redirect_to("ftp://127.0.0.1/", status),
    }
    _, resources, site = crawl_pages(pages, tmp_path / "crawl")
    found = by_path(resources, site)
    assert (found["/old"].status, found["/old"].redirect, found["/old"].reason) == (status, f"{site.url}/new", None)
    assert (found["/new"].status, found["/new"].hops) == (200, 1)
    assert (found["/away"].redirect, found["/away"].reason) == ("http://elsewhere.example/", "elsewhere")
    assert (found["/ftp"].status, found["/ftp"].redirect) == (status, None)
    assert "http://elsewhere.example/" not in found


def test_redirect_to_another_spelling_of_the_page_is_followed(tmp_path: Path) -> None:
    """A folder with and without slash has one page name and two URLs."""
    pages = {"/": html("/a"), "/a": redirect_to("/a/"), "/a/": html("/a/b", "/a")}
    _, resources, site = crawl_pages(pages, tmp_path / "crawl")
    assert sorted(site.paths) == ["/", "/a", "/a/", "/a/b"]
    assert by_path(resources, site)["/a/"].status == 200


def test_redirect_loop_ends(tmp_path: Path) -> None:
    """Each URL of a loop is fetched once, and one is marked `circle`; the same for a redirect to itself."""
    pages = {
        "/": html("/1", "/self"),
        "/1": redirect_to("/2"),
        "/2": redirect_to("/3"),
        "/3": redirect_to("/1"),
        "/self": redirect_to("/self"),
    }
    _, resources, site = crawl_pages(pages, tmp_path / "crawl")
    assert sorted(site.paths) == ["/", "/1", "/2", "/3", "/self"]
    found = by_path(resources, site)
    assert (found["/3"].reason, found["/self"].reason, found["/1"].reason) == ("circle", "circle", None)


def test_endless_redirect_chain_ends(tmp_path: Path) -> None:
    """After the limit the next URL is excluded."""

    def page(path: str) -> Page | None:
        return html("/r/x") if path == "/" else redirect_to(f"{path}x") if path.startswith("/r/") else None

    _, resources, site = crawl_pages(page, tmp_path / "crawl")
    assert len([path for path in site.paths if path.startswith("/r/")]) == MAX_REDIRECT_CHAIN + 1
    assert [each.reason for each in resources if each.outcome is CrawlOutcome.EXCLUDED] == ["redirects"]
