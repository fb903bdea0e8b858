"""Crawls of sites that are small, strange, endless or hostile."""

import asyncio
import gzip
import hashlib
from base64 import b32encode
from pathlib import Path

import pytest

from tests.crawl.site import AllHere, Page, by_path, html, living, moved, text, visited
from unlost.crawl import following
from unlost.crawl.following import CHAIN
from unlost.crawl.plan import Reach
from unlost.crawl.reading import read_links, read_resources
from unlost.crawl.resource import LiveResource, Outcome
from unlost.errors import InputError, UriError, UsageError
from unlost.pages.link import Use

SMALL = {
    "/": html("/a", "/b.html?x=1#top", "http://elsewhere.example/", "mailto:me@example.org", more='<img src="/i.png">'),
    "/a": html("/", "/deep/er/"),
    "/b.html?x=1": html("/a"),
    "/deep/er/": html("../est"),
    "/i.png": Page(b"PNG", 200, {"content-type": "image/png", "etag": '"e"', "cache-control": "max-age=9"}),
}


def sitemap(*uris: str, kind: str = "url") -> Page:
    """Return a sitemap, or with `sitemap` an index of them."""
    outer = {"url": "urlset", "sitemap": "sitemapindex"}[kind]
    body = "".join(f"<{kind}><loc>{uri}</loc></{kind}>" for uri in uris)
    namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return Page(
        f'<?xml version="1.0"?><{outer} xmlns="{namespace}">{body}</{outer}>'.encode(),
        200,
        {"content-type": "text/xml"},
    )


def test_a_small_site_is_known_whole(tmp_path: Path) -> None:
    """Every page and part is fetched once; what is said of each is what the server said."""
    result, resources, site = visited(SMALL, tmp_path / "crawl")
    found = by_path(resources, site)
    assert sorted(site.paths) == ["/", "/a", "/b.html?x=1", "/deep/er/", "/deep/est", "/i.png"]
    assert sorted(found) == sorted(site.paths)
    assert (result.counts[Outcome.FETCHED], result.queued, result.is_done) == (6, 0, True)
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
    assert ("/", "/i.png", Use.REQUISITE) in links
    assert ("/deep/er/", "/deep/est", Use.PAGE) in links
    assert [each.source for each in read_links(tmp_path / "crawl", f"{site.url}/a")] == [
        f"{site.url}/",
        f"{site.url}/b.html?x=1",
    ]


def test_without_warcs_the_same_is_known(tmp_path: Path) -> None:
    """Digests, lengths and links do not depend on bodies being kept."""
    _, kept, one = visited(SMALL, tmp_path / "kept")
    _, unkept, other = visited(SMALL, tmp_path / "unkept", keep_warcs=False)
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
    assert [(each.outcome, each.reason) for each in resources] == [(Outcome.FORBIDDEN, "robots")]
    assert result.is_done


@pytest.mark.parametrize("status", [500, 503, 429])
def test_without_robots_txt_everything_is_forbidden_for_now(status: int, tmp_path: Path) -> None:
    """A fault of the server forbids all; once robots.txt is there again, the same crawl goes on."""
    answers = {**SMALL, "/robots.txt": Page(b"", status)}

    async def run() -> None:
        async with living(answers.get) as site:
            first = await site.crawl(tmp_path / "crawl")
            assert site.server.paths == ["/robots.txt"]
            assert (first.unreachable, first.is_done) == (1, False)
            assert [each.reason for each in read_resources(tmp_path / "crawl")] == ["robots-unreachable"]
            answers["/robots.txt"] = text("User-agent: *\nDisallow: /a")
            second = await site.crawl(tmp_path / "crawl")
            assert second.is_done
            assert "/b.html?x=1" in site.paths
            assert "/a" not in site.paths

    asyncio.run(run())


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_recorded_and_followed(status: int, tmp_path: Path) -> None:
    """Where they lead, relative or not, is visited in their place; another site is not."""
    pages = {
        "/": html("/old", "/away", "/odd"),
        "/old": moved("new#part", status),
        "/new": html(),
        "/away": moved("http://elsewhere.example/", status),
        "/odd": moved("ftp://127.0.0.1/", status),
    }
    _, resources, site = visited(pages, tmp_path / "crawl")
    found = by_path(resources, site)
    assert (found["/old"].status, found["/old"].redirect, found["/old"].reason) == (status, f"{site.url}/new", None)
    assert (found["/new"].status, found["/new"].hops) == (200, 1)
    assert (found["/away"].redirect, found["/away"].reason) == ("http://elsewhere.example/", "elsewhere")
    assert (found["/odd"].status, found["/odd"].redirect) == (status, None)
    assert "http://elsewhere.example/" not in found


def test_a_spelling_that_redirects_to_another_is_asked_for(tmp_path: Path) -> None:
    """A folder without its slash, and the page with it, are one page by name and two addresses."""
    pages = {"/": html("/a"), "/a": moved("/a/"), "/a/": html("/a/b", "/a")}
    _, resources, site = visited(pages, tmp_path / "crawl")
    assert sorted(site.paths) == ["/", "/a", "/a/", "/a/b"]
    assert by_path(resources, site)["/a/"].status == 200


def test_redirects_in_a_circle_end(tmp_path: Path) -> None:
    """Each address of the circle is asked for once, and one says that it is one; so does what leads to itself."""
    pages = {"/": html("/1", "/self"), "/1": moved("/2"), "/2": moved("/3"), "/3": moved("/1"), "/self": moved("/self")}
    _, resources, site = visited(pages, tmp_path / "crawl")
    assert sorted(site.paths) == ["/", "/1", "/2", "/3", "/self"]
    found = by_path(resources, site)
    assert (found["/3"].reason, found["/self"].reason, found["/1"].reason) == ("circle", "circle", None)


def test_redirects_that_lead_on_and_on_end(tmp_path: Path) -> None:
    """After some, the next address is left out."""

    def page(path: str) -> Page | None:
        return html("/r/x") if path == "/" else moved(f"{path}x") if path.startswith("/r/") else None

    _, resources, site = visited(page, tmp_path / "crawl")
    assert len([path for path in site.paths if path.startswith("/r/")]) == CHAIN + 1
    assert [each.reason for each in resources if each.outcome is Outcome.LEFT_OUT] == ["redirects"]


def test_sitemaps_are_read(tmp_path: Path) -> None:
    """Those of robots.txt, the usual one, indexes, and gzipped ones; what they name is visited and said to be named."""
    pages = {
        "/": html("/linked"),
        "/robots.txt": text("Sitemap: {base}/index.xml\nSitemap: relative.xml"),
        "/index.xml": sitemap("{base}/packed.xml.gz", "http://elsewhere.example/s.xml", kind="sitemap"),
        "/relative.xml": sitemap("{base}/from-relative"),
        "/sitemap.xml": sitemap("{base}/from-usual", "{base}/linked", "http://elsewhere.example/page"),
        "/linked": html(), "/from-usual": html("/behind"), "/from-relative": html(), "/behind": html(),
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
        async with living(page) as site:
            port[0] = site.server.port
            await site.crawl(tmp_path / "crawl")
            return [replace_base(each, site.url) for each in read_resources(tmp_path / "crawl")]

    found = {each.uri: each for each in asyncio.run(run())}
    assert {uri for uri, each in found.items() if each.is_in_sitemap} == {
        "/from-usual", "/from-relative", "/from-packed", "/linked",
    }  # fmt: skip
    assert (found["/linked"].hops, found["/from-usual"].hops, found["/behind"].hops) == (1, None, None)
    assert all(each.status == 200 for each in found.values())
    assert not any("elsewhere" in uri for uri in found)


def replace_base(resource: LiveResource, url: str) -> LiveResource:
    """Return a resource with its path for its address."""
    from dataclasses import replace

    return replace(resource, uri=resource.uri.removeprefix(url))


def test_a_sitemap_that_is_not_there_is_no_resource(tmp_path: Path) -> None:
    """Nobody said that there is one: it is looked for, and forgotten."""
    _, resources, site = visited({"/": html()}, tmp_path / "crawl")
    assert "/sitemap.xml" in site.server.paths
    assert [each.uri for each in resources] == [f"{site.url}/"]
    for count, answer in enumerate((html("/made-up"), moved("/"), moved("/made-up"))):
        _, resources, site = visited({"/": html(), "/sitemap.xml": answer}, tmp_path / str(count))
        assert [each.uri for each in resources] == [f"{site.url}/"]


@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.long)])
def test_sitemaps_of_a_million_entries_are_bounded(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index of sitemaps with 50,000 entries each, up to a million: so many are remembered, the rest is counted."""
    monkeypatch.setattr(following, "MAX_LISTED", 3_000)
    lists = [f"/s{number}.xml" for number in range(count)]

    def page(path: str) -> Page | None:
        if path == "/sitemap.xml":
            return sitemap(*("{base}" + each for each in lists), kind="sitemap")
        if path in lists:
            return sitemap(*(f"{{base}}/p/{path[2:-4]}-{number}" for number in range(50_000)))
        return html() if path == "/" else None

    # The sitemaps are nearer than what they name: all are read before the limit is met.
    result, _, site = visited(page, tmp_path / "crawl", resources=30, keep_warcs=False)
    assert result.queued + result.counts[Outcome.LEFT_OUT] < 5_000
    assert result.left_out == {"too-many-listed": count * 50_000 - 3_000}
    assert len(site.server.paths) == 1 + 30


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
    assert result.left_out["trap"] >= 1
    assert result.is_done


def test_sites_that_make_up_addresses_end(tmp_path: Path) -> None:
    """Numbers that count on, paths that repeat, and sessions that change are bounded, each in its way."""

    def page(path: str) -> Page | None:
        number = len(path)
        return html(
            f"/item/{hash(path) % 10**9}", f"/item/{number}9", f"{path.partition('?')[0].rstrip('/')}/again/",
            f"/same?PHPSESSID={hash(path) % 16**8:032x}",
        )  # fmt: skip

    result, resources, site = visited(page, tmp_path / "crawl", alike=30, keep_warcs=False)
    assert result.is_done
    assert len(site.paths) < 300
    assert len([path for path in site.paths if path.startswith("/same?")]) == 1
    assert {each.reason for each in resources if each.outcome is Outcome.LEFT_OUT} == {"trap"}


def test_limits_end_a_crawl_and_more_goes_on(tmp_path: Path) -> None:
    """Of resources and of bytes; what is left is said to be left; with a higher limit it is visited."""

    async def run() -> None:
        async with living(SMALL) as site:
            first = await site.crawl(tmp_path / "crawl", resources=2)
            assert (first.counts[Outcome.FETCHED], first.limit, first.queued) == (2, "resources", 2)
            reasons = [each.reason for each in read_resources(tmp_path / "crawl")]
            assert reasons.count("not-visited") == 2
            second = await site.crawl(tmp_path / "crawl", bytes_in_all=250)
            assert second.limit == "bytes"
            third = await site.crawl(tmp_path / "crawl")
            assert (third.counts[Outcome.FETCHED], third.limit) == (6, None)
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
    reasons = {path: each.reason for path, each in found.items() if each.outcome is Outcome.LEFT_OUT}
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
            await site.crawl(tmp_path / "crawl", "/in/", reach=Reach.PREFIX, extra=(f"{site.url}/out/a",))
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
            assert {(each.outcome, each.reason) for each in inside} == {(Outcome.FORBIDDEN, "robots-unreachable")}
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


def test_somebody_may_stop_it_and_the_same_call_goes_on(tmp_path: Path) -> None:
    """In order between two visits, or by cancelling: at most what was on its way is asked for again."""

    async def run() -> None:
        async with living(SMALL) as site:
            result = await site.crawl(tmp_path / "crawl", should_stop=lambda: len(site.paths) >= 2)
            assert (result.is_stopped, result.is_done) == (True, False)
            task: asyncio.Task[object] = asyncio.create_task(
                site.crawl(tmp_path / "crawl", tell=lambda *_: bool(task.cancel()))
            )
            with pytest.raises(asyncio.CancelledError):
                await task
            await site.crawl(tmp_path / "crawl")
            assert set(site.paths) == {"/", "/a", "/b.html?x=1", "/deep/er/", "/deep/est", "/i.png"}
            assert len(site.paths) <= 7
            assert site.server.paths.count("/robots.txt") == site.server.paths.count("/sitemap.xml") == 1

    asyncio.run(run())


def test_a_finished_crawl_is_not_begun_again(tmp_path: Path) -> None:
    """The same call asks for nothing, and says the same."""

    async def run() -> None:
        async with living(SMALL) as site:
            first = await site.crawl(tmp_path / "crawl")
            count = len(site.server.paths)
            assert await site.crawl(tmp_path / "crawl") == first
            assert site.server.paths[count:] == []

    asyncio.run(run())


def test_another_plan_is_refused(tmp_path: Path) -> None:
    """A folder has one crawl; a plan or an address that is none is refused before anything is asked for."""

    async def run() -> None:
        async with living(SMALL) as site:
            await site.crawl(tmp_path / "crawl")
            with pytest.raises(UsageError, match="another plan"):
                await site.crawl(tmp_path / "crawl", links=False)
            with pytest.raises(UsageError, match="no regular expression"):
                await site.crawl(tmp_path / "other", include=("(",))
            with pytest.raises(UriError):
                await site.crawl(tmp_path / "other", extra=("mailto:me@example.org",))
            assert not (tmp_path / "other").exists()

    asyncio.run(run())


def test_the_state_of_something_else_is_refused(tmp_path: Path) -> None:
    """A recovery's file of the same name, or a folder without any, is no crawl."""
    from unlost.recover.state.state import State

    with State(tmp_path) as state:
        state.keep_fact("a", "b")
    with pytest.raises(InputError, match="crawl"):
        next(read_resources(tmp_path))
    with pytest.raises(InputError, match="crawl"):
        visited(SMALL, tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="expected the folder of a crawl"):
        next(read_resources(tmp_path / "empty"))


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
            await site.crawl(tmp_path / "1", reach=Reach.DOMAIN, **options)
            found = {each.uri: each.status for each in read_resources(tmp_path / "1")}
            assert found == {starts[0]: 200, links[0]: 200}
            assert site.server.paths.count("/robots.txt") == 2

    asyncio.run(run())
