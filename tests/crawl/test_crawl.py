"""Crawls of small, unusual, endless and hostile sites."""

import asyncio
import gzip
import hashlib
from base64 import b32encode
from pathlib import Path

import pytest

from tests.crawl.links import read_links
from tests.crawl.live_site import (
    SMALL,
    FixedResolver,
    Page,
    by_path,
    crawl_pages,
    html,
    redirect_to,
    serve_live_site,
    text,
)
from unlost.crawl import CrawlOutcome, LiveResource, ScopeType, read_resources
from unlost.html import LinkKind


def test_small_site_is_crawled_completely(tmp_path: Path) -> None:
    """Every page and requisite is fetched once, with the server's metadata."""
    result, resources, site = crawl_pages(SMALL, tmp_path / "crawl")
    found = by_path(resources, site)
    assert sorted(site.paths) == ["/", "/a", "/b.html?x=1", "/deep/er/", "/deep/est", "/i.png"]
    assert sorted(found) == sorted(site.paths)
    assert (result.counts[CrawlOutcome.FETCHED], result.queued, result.is_done) == (6, 0, True)
    image = found["/i.png"]
    digest = "sha1:" + b32encode(hashlib.sha1(b"PNG", usedforsecurity=False).digest()).decode()
    assert (image.status, image.mime, image.length, image.digest) == (200, "image/png", 3, digest)
    assert (image.etag, image.cache_control, image.seen) == ('"e"', "max-age=9", "20231114221320")
    assert found["/deep/est"].status == 404
    assert {path: each.hops for path, each in found.items()} == {
        "/": 0, "/a": 1, "/b.html?x=1": 1, "/i.png": 0, "/deep/er/": 2, "/deep/est": 3,
    }  # fmt: skip
    assert (found["/a"].linked_from, found["/"].linked_from, found["/deep/est"].linked_from) == (2, 1, 1)


def test_links_are_stored(tmp_path: Path) -> None:
    """Links within the site can be read, all or those to one URL."""
    _, _, site = crawl_pages(SMALL, tmp_path / "crawl")
    links = {
        (each.source.removeprefix(site.url), each.target.removeprefix(site.url), each.link_kind)
        for each in read_links(tmp_path / "crawl")
    }
    assert ("/", "/i.png", LinkKind.REQUISITE) in links
    assert ("/deep/er/", "/deep/est", LinkKind.PAGE) in links
    assert [each.source for each in read_links(tmp_path / "crawl", f"{site.url}/a")] == [
        f"{site.url}/",
        f"{site.url}/b.html?x=1",
    ]


def test_crawl_without_warcs_has_the_same_state(tmp_path: Path) -> None:
    """Digests, lengths and links do not depend on WARC output."""
    _, stored, one = crawl_pages(SMALL, tmp_path / "stored")
    _, unstored, other = crawl_pages(SMALL, tmp_path / "unstored", write_warcs=False)
    assert not (tmp_path / "unstored" / "warc").exists()

    def facts(resources: list[LiveResource], url: str) -> list[tuple[object, ...]]:
        return [
            (each.uri.removeprefix(url), each.digest, each.length, each.hops, each.linked_from) for each in resources
        ]

    assert facts(stored, one.url) == facts(unstored, other.url)
    assert all(each.file is None for each in unstored)


def test_disallowed_site_is_not_fetched(tmp_path: Path) -> None:
    """Only robots.txt is requested."""
    pages = {**SMALL, "/robots.txt": text("User-agent: *\nDisallow: /")}
    result, resources, site = crawl_pages(pages, tmp_path / "crawl")
    assert site.server.paths == ["/robots.txt"]
    assert [(each.outcome, each.reason) for each in resources] == [(CrawlOutcome.FORBIDDEN, "robots")]
    assert result.is_done


@pytest.mark.parametrize("status", [500, 503, 429])
def test_unreachable_robots_txt_forbids_everything_temporarily(status: int, tmp_path: Path) -> None:
    """Once robots.txt is available, the same crawl continues."""
    pages = {**SMALL, "/robots.txt": Page(b"", status)}

    async def run() -> None:
        async with serve_live_site(pages.get) as site:
            first = await site.crawl(tmp_path / "crawl")
            assert site.server.paths == ["/robots.txt"]
            assert (first.robots_unreachable, first.is_done) == (1, False)
            assert [each.reason for each in read_resources(tmp_path / "crawl")] == ["robots-unreachable"]
            pages["/robots.txt"] = text("User-agent: *\nDisallow: /a")
            second = await site.crawl(tmp_path / "crawl")
            assert second.is_done
            assert "/b.html?x=1" in site.paths
            assert "/a" not in site.paths

    asyncio.run(run())


def test_endless_calendar_is_stopped(tmp_path: Path) -> None:
    """Pages of future years that link to the next month are not fetched."""

    def page(path: str) -> Page | None:
        if path == "/":
            return html("/cal/2023/11/")
        year, month = map(int, path.strip("/").split("/")[1:]) if path.startswith("/cal/") else (0, 0)
        months = year * 12 + month
        return html(f"/cal/{months // 12}/{months % 12 + 1:02}/", "/") if year else None

    result, _, site = crawl_pages(page, tmp_path / "crawl")
    assert len(site.paths) < 40
    assert result.excluded_links["trap"] >= 1
    assert result.is_done


def test_generated_urls_are_stopped(tmp_path: Path) -> None:
    """Counters, repeating paths and changing session ids are bounded."""

    def page(path: str) -> Page | None:
        number = len(path)
        return html(
            f"/item/{hash(path) % 10**9}", f"/item/{number}9", f"{path.partition('?')[0].rstrip('/')}/again/",
            f"/same?PHPSESSID={hash(path) % 16**8:032x}",
        )  # fmt: skip

    result, resources, site = crawl_pages(page, tmp_path / "crawl", alike=30, write_warcs=False)
    assert result.is_done
    assert len(site.paths) < 300
    assert len([path for path in site.paths if path.startswith("/same?")]) == 1
    assert {each.reason for each in resources if each.outcome is CrawlOutcome.EXCLUDED} == {"trap"}


def test_crawl_stops_at_limits_and_resumes_with_higher_ones(tmp_path: Path) -> None:
    """Limits of resources and bytes; the number of queued URLs is reported."""

    async def run() -> None:
        async with serve_live_site(SMALL) as site:
            first = await site.crawl(tmp_path / "crawl", resources=2)
            assert (first.counts[CrawlOutcome.FETCHED], first.limit, first.queued) == (2, "resources", 2)
            reasons = [each.reason for each in read_resources(tmp_path / "crawl")]
            assert reasons.count("not-visited") == 2
            second = await site.crawl(tmp_path / "crawl", bytes_in_all=250)
            assert second.limit == "bytes"
            third = await site.crawl(tmp_path / "crawl")
            assert (third.counts[CrawlOutcome.FETCHED], third.limit) == (6, None)
            assert len(site.paths) == len(set(site.paths))

    asyncio.run(run())


def test_long_body_is_truncated_and_marked(tmp_path: Path) -> None:
    """The beginning is stored and its links are followed."""
    pages = {"/": Page(b'<a href="/a">' + b"x" * 5_000, 200, {"content-type": "text/html"}), "/a": html()}
    _, resources, site = crawl_pages(pages, tmp_path / "crawl", bytes_each=1_000)
    found = by_path(resources, site)
    assert (found["/"].truncated, found["/"].length) == ("length", 1_000)
    assert found["/a"].truncated is None


def test_hops_depth_and_expressions_bound_the_crawl(tmp_path: Path) -> None:
    """Excluded URLs are stored with the reason."""
    pages = {"/": html("/1", "/a/b/c", "/no.html"), "/1": html("/2"), "/2": html("/3")}
    _, resources, site = crawl_pages(pages, tmp_path / "crawl", hops=2, depth=1, exclude=("no[.]",))
    found = by_path(resources, site)
    assert sorted(site.paths) == ["/", "/1", "/2"]
    reasons = {path: each.reason for path, each in found.items() if each.outcome is CrawlOutcome.EXCLUDED}
    assert reasons == {"/a/b/c": "too-deep", "/no.html": "excluded", "/3": "too-far"}


def test_links_and_requisites_can_be_disabled(tmp_path: Path) -> None:
    """One page with requisites, pages without, or a single URL."""
    _, _, site = crawl_pages(SMALL, tmp_path / "1", links=False, sitemaps=False)
    assert site.server.paths == ["/robots.txt", "/", "/i.png"]
    _, _, site = crawl_pages(SMALL, tmp_path / "2", parts=False)
    assert "/i.png" not in site.paths
    _, _, site = crawl_pages(SMALL, tmp_path / "3", links=False, parts=False, sitemaps=False)
    assert site.server.paths == ["/robots.txt", "/"]


def test_extra_urls_are_fetched_without_widening_the_scope(tmp_path: Path) -> None:
    """A URL outside the folder is fetched, its neighbours are not."""
    pages = {"/in/": html(), "/out/a": html("/out/b", "/in/c")}

    async def run() -> list[str]:
        async with serve_live_site(pages) as site:
            await site.crawl(tmp_path / "crawl", "/in/", reach=ScopeType.PREFIX, extra=(f"{site.url}/out/a",))
            return sorted(site.paths)

    assert asyncio.run(run()) == ["/in/", "/in/c", "/out/a"]


def test_noarchive_pages_are_not_stored(tmp_path: Path) -> None:
    """By header or meta tag: links are followed, the body is not stored unless configured."""
    pages = {
        "/": html("/tag", "/header", "/free"),
        "/tag": html("/linked", more='<meta name="robots" content="noarchive">'),
        "/header": Page(b"secret", 200, {"content-type": "text/plain", "x-robots-tag": "noarchive"}),
        "/free": html(), "/linked": html(),
    }  # fmt: skip
    _, resources, site = crawl_pages(pages, tmp_path / "crawl")
    found = by_path(resources, site)
    assert {path: each.is_noarchive for path, each in found.items()} == {
        "/": False, "/tag": True, "/header": True, "/free": False, "/linked": False,
    }  # fmt: skip
    assert {path for path, each in found.items() if each.file is None} == {"/tag", "/header"}
    assert found["/header"].digest
    assert b"secret" not in b"".join(gzip.decompress(path.read_bytes()) for path in (tmp_path / "crawl/warc").iterdir())
    _, resources, _ = crawl_pages(pages, tmp_path / "own", keep_noarchive=True)
    assert all(each.file for each in resources)


def test_links_into_private_networks_are_not_followed(tmp_path: Path) -> None:
    """Private names and addresses are rejected on all hosts except the configured one."""
    pages = {
        "/": html(more='<img src="http://inside.example/i.png"><img src="http://169.254.169.254/i"><img src="/r">'),
        "/r": redirect_to("http://10.0.0.1/"),
    }

    async def run() -> None:
        async with serve_live_site(pages) as site:
            await site.crawl(tmp_path / "crawl", foreign_parts=True, resolver=FixedResolver("127.0.0.1"))
            found = {each.uri: each for each in read_resources(tmp_path / "crawl")}
            inside = [
                found["http://inside.example/i.png"],
                found["http://169.254.169.254/i"],
                found["http://10.0.0.1/"],
            ]
            assert {(each.outcome, each.reason) for each in inside} == {(CrawlOutcome.FORBIDDEN, "robots-unreachable")}
            assert sorted(site.paths) == ["/", "/r"]

    asyncio.run(run())


def test_allowed_port_does_not_allow_other_ports(tmp_path: Path) -> None:
    """A page on a local port cannot link to another one."""

    async def run() -> None:
        async with (
            serve_live_site({"/": html()}) as other,
            serve_live_site({"/": html(more=f'<img src="{other.url}/x">')}) as site,
        ):
            await site.crawl(tmp_path / "crawl", foreign_parts=True)
            assert other.server.paths == []

    asyncio.run(run())


def test_unreachable_host_is_suspended(tmp_path: Path) -> None:
    """Refused connections are not retried endlessly; the crawl is not done."""

    async def run() -> None:
        async with serve_live_site({}) as site:
            dead = site.url
        result = await site.crawl(tmp_path / "crawl")
        assert not result.is_done
        assert [each.reason for each in read_resources(tmp_path / "crawl")] == ["robots-unreachable"]
        assert dead

    asyncio.run(run())


def test_subdomains_belong_to_domain_scope(tmp_path: Path) -> None:
    """Subdomains are fetched, each with its own robots.txt; other hosts are not."""

    async def run() -> None:
        pages: dict[str, Page] = {}
        async with serve_live_site(pages.get) as site:
            port = site.server.port
            links = [f"http://sub.site.example:{port}/x", f"http://other.example:{port}/y"]
            pages["/"] = html(*links)
            pages["/x"] = html()
            starts = (f"http://site.example:{port}/",)
            options = {"starts": starts, "extra": (links[0],), "resolver": FixedResolver(), "hosts_at_once": 2}
            await site.crawl(tmp_path / "1", reach=ScopeType.DOMAIN, **options)
            found = {each.uri: each.status for each in read_resources(tmp_path / "1")}
            assert found == {starts[0]: 200, links[0]: 200}
            assert site.server.paths.count("/robots.txt") == 2

    asyncio.run(run())
