"""Crawls of sites that are small, strange, endless or hostile."""

import asyncio
import gzip
import hashlib
from base64 import b32encode
from pathlib import Path

import pytest

from tests.crawl.site import SMALL, AllHere, Page, by_path, html, living, moved, text, visited
from unlost.crawl.models import CrawlOutcome, LiveResource, ScopeType
from unlost.crawl.state import read_links, read_resources
from unlost.html.links import LinkKind


def test_a_small_site_is_known_whole(tmp_path: Path) -> None:
    """Every page and part is fetched once; what is said of each is what the server said."""
    result, resources, site = visited(SMALL, tmp_path / "crawl")
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


def test_who_links_to_what_can_be_read(tmp_path: Path) -> None:
    """Links between addresses of the site are there, for all or for one of them."""
    _, _, site = visited(SMALL, tmp_path / "crawl")
    links = {
        (each.source.removeprefix(site.url), each.target.removeprefix(site.url), each.use)
        for each in read_links(tmp_path / "crawl")
    }
    assert ("/", "/i.png", LinkKind.REQUISITE) in links
    assert ("/deep/er/", "/deep/est", LinkKind.PAGE) in links
    assert [each.source for each in read_links(tmp_path / "crawl", f"{site.url}/a")] == [
        f"{site.url}/",
        f"{site.url}/b.html?x=1",
    ]


def test_without_warcs_the_same_is_known(tmp_path: Path) -> None:
    """Digests, lengths and links do not depend on bodies being kept."""
    _, kept, one = visited(SMALL, tmp_path / "kept")
    _, unkept, other = visited(SMALL, tmp_path / "unkept", write_warcs=False)
    assert not (tmp_path / "unkept" / "warc").exists()

    def facts(resources: list[LiveResource], url: str) -> list[tuple[object, ...]]:
        return [
            (each.uri.removeprefix(url), each.digest, each.length, each.hops, each.linked_from) for each in resources
        ]

    assert facts(kept, one.url) == facts(unkept, other.url)
    assert all(each.file is None for each in unkept)


def test_all_of_it_forbidden(tmp_path: Path) -> None:
    """Where robots.txt wants nobody, nothing but robots.txt is asked for."""
    pages = {**SMALL, "/robots.txt": text("User-agent: *\nDisallow: /")}
    result, resources, site = visited(pages, tmp_path / "crawl")
    assert site.server.paths == ["/robots.txt"]
    assert [(each.outcome, each.reason) for each in resources] == [(CrawlOutcome.FORBIDDEN, "robots")]
    assert result.is_done


@pytest.mark.parametrize("status", [500, 503, 429])
def test_without_robots_txt_everything_is_forbidden_for_now(status: int, tmp_path: Path) -> None:
    """A fault of the server forbids all; once robots.txt is there again, the same crawl goes on."""
    answers = {**SMALL, "/robots.txt": Page(b"", status)}

    async def run() -> None:
        async with living(answers.get) as site:
            first = await site.crawl(tmp_path / "crawl")
            assert site.server.paths == ["/robots.txt"]
            assert (first.robots_unreachable, first.is_done) == (1, False)
            assert [each.reason for each in read_resources(tmp_path / "crawl")] == ["robots-unreachable"]
            answers["/robots.txt"] = text("User-agent: *\nDisallow: /a")
            second = await site.crawl(tmp_path / "crawl")
            assert second.is_done
            assert "/b.html?x=1" in site.paths
            assert "/a" not in site.paths

    asyncio.run(run())


def test_a_calendar_without_end_ends(tmp_path: Path) -> None:
    """A page for each month that links to the next: those of years to come are not visited."""

    def page(path: str) -> Page | None:
        if path == "/":
            return html("/cal/2023/11/")
        year, month = map(int, path.strip("/").split("/")[1:]) if path.startswith("/cal/") else (0, 0)
        months = year * 12 + month
        return html(f"/cal/{months // 12}/{months % 12 + 1:02}/", "/") if year else None

    result, _, site = visited(page, tmp_path / "crawl")
    assert len(site.paths) < 40
    assert result.excluded_links["trap"] >= 1
    assert result.is_done


def test_sites_that_make_up_addresses_end(tmp_path: Path) -> None:
    """Numbers that count on, paths that repeat, and sessions that change are bounded, each in its way."""

    def page(path: str) -> Page | None:
        number = len(path)
        return html(
            f"/item/{hash(path) % 10**9}", f"/item/{number}9", f"{path.partition('?')[0].rstrip('/')}/again/",
            f"/same?PHPSESSID={hash(path) % 16**8:032x}",
        )  # fmt: skip

    result, resources, site = visited(page, tmp_path / "crawl", alike=30, write_warcs=False)
    assert result.is_done
    assert len(site.paths) < 300
    assert len([path for path in site.paths if path.startswith("/same?")]) == 1
    assert {each.reason for each in resources if each.outcome is CrawlOutcome.EXCLUDED} == {"trap"}


def test_limits_end_a_crawl_and_more_goes_on(tmp_path: Path) -> None:
    """Of resources and of bytes; what is left is said to be left; with a higher limit it is visited."""

    async def run() -> None:
        async with living(SMALL) as site:
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


def test_a_body_that_is_too_long_is_cut_and_said_to_be(tmp_path: Path) -> None:
    """Its beginning is kept and its links are read."""
    pages = {"/": Page(b'<a href="/a">' + b"x" * 5_000, 200, {"content-type": "text/html"}), "/a": html()}
    _, resources, site = visited(pages, tmp_path / "crawl", bytes_each=1_000)
    found = by_path(resources, site)
    assert (found["/"].truncated, found["/"].length) == ("length", 1_000)
    assert found["/a"].truncated is None


def test_hops_depth_and_expressions_bound_it(tmp_path: Path) -> None:
    """What is too far, too deep or excluded is left out, with the reason."""
    pages = {"/": html("/1", "/a/b/c", "/no.html"), "/1": html("/2"), "/2": html("/3")}
    _, resources, site = visited(pages, tmp_path / "crawl", hops=2, depth=1, exclude=("no[.]",))
    found = by_path(resources, site)
    assert sorted(site.paths) == ["/", "/1", "/2"]
    reasons = {path: each.reason for path, each in found.items() if each.outcome is CrawlOutcome.EXCLUDED}
    assert reasons == {"/a/b/c": "too-deep", "/no.html": "excluded", "/3": "too-far"}


def test_links_and_parts_may_be_switched_off(tmp_path: Path) -> None:
    """One page with its parts, or pages without, or one address alone."""
    _, _, site = visited(SMALL, tmp_path / "1", links=False, sitemaps=False)
    assert site.server.paths == ["/robots.txt", "/", "/i.png"]
    _, _, site = visited(SMALL, tmp_path / "2", parts=False)
    assert "/i.png" not in site.paths
    _, _, site = visited(SMALL, tmp_path / "3", links=False, parts=False, sitemaps=False)
    assert site.server.paths == ["/robots.txt", "/"]


def test_extra_addresses_are_visited_and_widen_nothing(tmp_path: Path) -> None:
    """An address outside of the folder is fetched, its neighbours are not."""
    pages = {"/in/": html(), "/out/a": html("/out/b", "/in/c")}

    async def run() -> list[str]:
        async with living(pages) as site:
            await site.crawl(tmp_path / "crawl", "/in/", reach=ScopeType.PREFIX, extra=(f"{site.url}/out/a",))
            return sorted(site.paths)

    assert asyncio.run(run()) == ["/in/", "/in/c", "/out/a"]


def test_what_asks_not_to_be_kept_is_not(tmp_path: Path) -> None:
    """By a header or in the page: it is visited, its links are followed, no body is kept; unless one's own."""
    pages = {
        "/": html("/tag", "/header", "/free"),
        "/tag": html("/behind", more='<meta name="robots" content="noarchive">'),
        "/header": Page(b"secret", 200, {"content-type": "text/plain", "x-robots-tag": "noarchive"}),
        "/free": html(), "/behind": html(),
    }  # fmt: skip
    _, resources, site = visited(pages, tmp_path / "crawl")
    found = by_path(resources, site)
    assert {path: each.is_noarchive for path, each in found.items()} == {
        "/": False, "/tag": True, "/header": True, "/free": False, "/behind": False,
    }  # fmt: skip
    assert {path for path, each in found.items() if each.file is None} == {"/tag", "/header"}
    assert found["/header"].digest
    assert b"secret" not in b"".join(gzip.decompress(path.read_bytes()) for path in (tmp_path / "crawl/warc").iterdir())
    _, resources, _ = visited(pages, tmp_path / "own", keep_noarchive=True)
    assert all(each.file for each in resources)


def test_a_page_does_not_lead_inside_a_network(tmp_path: Path) -> None:
    """Names that are inside, and addresses that are, are refused on other hosts than the one that was named."""
    pages = {
        "/": html(more='<img src="http://inside.example/i.png"><img src="http://169.254.169.254/i"><img src="/r">'),
        "/r": moved("http://10.0.0.1/"),
    }

    async def run() -> None:
        async with living(pages) as site:
            await site.crawl(tmp_path / "crawl", foreign_parts=True, resolver=AllHere("127.0.0.1"))
            found = {each.uri: each for each in read_resources(tmp_path / "crawl")}
            inside = [
                found["http://inside.example/i.png"],
                found["http://169.254.169.254/i"],
                found["http://10.0.0.1/"],
            ]
            assert {(each.outcome, each.reason) for each in inside} == {(CrawlOutcome.FORBIDDEN, "robots-unreachable")}
            assert sorted(site.paths) == ["/", "/r"]

    asyncio.run(run())


def test_a_port_of_ones_own_is_no_leave_for_another(tmp_path: Path) -> None:
    """A page on one port of this machine cannot lead to another."""

    async def run() -> None:
        async with living({"/": html()}) as other, living({"/": html(more=f'<img src="{other.url}/x">')}) as site:
            await site.crawl(tmp_path / "crawl", foreign_parts=True)
            assert other.server.paths == []

    asyncio.run(run())


def test_a_host_that_is_gone_is_left_alone(tmp_path: Path) -> None:
    """A refused connection is not tried again and again; the crawl says that it is not done."""

    async def run() -> None:
        async with living({}) as site:
            dead = site.url
        result = await site.crawl(tmp_path / "crawl")
        assert not result.is_done
        assert [each.reason for each in read_resources(tmp_path / "crawl")] == ["robots-unreachable"]
        assert dead

    asyncio.run(run())


def test_hosts_below_belong_to_a_domain(tmp_path: Path) -> None:
    """With the reach of a domain its subdomains are visited, each with its own robots.txt; other hosts are not."""

    async def run() -> None:
        pages: dict[str, Page] = {}
        async with living(pages.get) as site:
            port = site.server.port
            links = [f"http://sub.site.example:{port}/x", f"http://other.example:{port}/y"]
            pages["/"] = html(*links)
            pages["/x"] = html()
            starts = (f"http://site.example:{port}/",)
            options = {"starts": starts, "extra": (links[0],), "resolver": AllHere(), "hosts_at_once": 2}
            await site.crawl(tmp_path / "1", reach=ScopeType.DOMAIN, **options)
            found = {each.uri: each.status for each in read_resources(tmp_path / "1")}
            assert found == {starts[0]: 200, links[0]: 200}
            assert site.server.paths.count("/robots.txt") == 2

    asyncio.run(run())
