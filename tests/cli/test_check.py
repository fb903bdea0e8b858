"""`unlost check`: output, exit codes and requests."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.cli.check_environment import WEB, Completed, Home, archives, base, captures, home
from tests.crawl.live_site import Page, html, redirect_to, serve_live_site, sitemap, text
from tests.external.local_server import serve_handler
from tests.external.wayback_cdx import StoredCapture
from tests.recovery.registry import registry
from tests.warc.warcs import PAGE, record
from tests.watch.decaying.archives import file_url
from unlost.registry import Archive, ArchiveKind, RequestKind

__all__ = ["base", "home"]


def json_output(done: Completed) -> tuple[list[dict[str, object]], dict[str, Any]]:
    """Return what `--json` printed: the resources and the summary."""
    *resources, summary = [json.loads(line) for line in done.stdout.splitlines()]
    return resources, summary


def test_check_reports_states_and_saves_files(home: Home, base: str, tmp_path: Path) -> None:
    """Headline, states, tables, `--save` and `--html`; no unfinished check is left."""
    save, page = tmp_path / "vulnerable.txt", tmp_path / "page.html"

    async def run() -> Completed:
        async with archives(home, [*captures(base), StoredCapture(f"{base}old.html", "20200101000000")]):
            return await home.run("check", base, "--save", str(save), "--html", str(page))

    done = asyncio.run(run())
    files = list(WEB.files(0))
    html = [path for path in files if path.endswith(".html")]
    out = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert f"{len(html)} of {len(files)} resources could be recovered: {100 * len(html) / len(files):.0f} %." in out
    assert "1 more is offline (1 archived)." in out
    assert f"{len(files) - len(html):>7,}  vulnerable: online, not archived: would be lost with the site" in out
    assert "text/html" in out
    assert "Submit these URLs to archives" in out
    assert f"next: the URLs in {save} can be given to https://web.archive.org/save" in done.stderr.decode()
    saved = save.read_text().splitlines()
    assert set(saved) == {file_url(base, path) for path in files if path not in html}
    assert "<h1>What could be recovered</h1>" in page.read_text()
    assert home.unfinished == []


def test_json_lists_resources_and_summary(home: Home, base: str) -> None:
    """Their counts agree."""

    async def run() -> Completed:
        async with archives(home, captures(base, ".pdf")):
            return await home.run("check", base, "--json")

    resources, summary = json_output(asyncio.run(run()))
    assert len(resources) == WEB.total(0)
    states = [each["state"] for each in resources]
    counts = summary["states"]
    assert isinstance(counts, dict)
    assert counts["replicated"] == states.count("replicated") == sum(path.endswith(".pdf") for path in WEB.files(0))
    pdf = next(each for each in resources if each["mime"] == "application/pdf")
    assert (pdf["captures"], pdf["last_stored"], pdf["stale_days"]) == (1, "20240101000000", 0.0)
    home_page = next(each for each in resources if each["uri"] == base)
    assert (home_page["state"], home_page["hops"], home_page["archives"]) == ("vulnerable", 0, {})


def test_score_below_least_fails(home: Home, base: str) -> None:
    """For monitoring: exit code 1."""

    async def run(least: str) -> int:
        async with archives(home, captures(base)):
            return (await home.run("check", base, "--least", least)).returncode

    assert asyncio.run(run("10")) == 0
    assert asyncio.run(run("90")) == 1


def test_listed_urls_are_checked(home: Home, base: str, tmp_path: Path) -> None:
    """Only these; missing pages and live pages have different states; invalid URLs are counted."""
    listed = tmp_path / "urls.txt"
    listed.write_text(f"# mine\n{base}bin1/pg1-1.html\n{base}bin1/gone.html\nmailto:a@b\n{base}bin2/pg2-1.pdf\n")

    async def run() -> Completed:
        async with archives(home, [StoredCapture(f"{base}bin1/gone.html", "20240101000000"), *captures(base)]):
            return await home.run("check", "--urls", str(listed), "--json")

    done = asyncio.run(run())
    resources, _ = json_output(done)
    assert {str(each["uri"]).removeprefix(base): each["state"] for each in resources} == {
        "bin1/pg1-1.html": "replicated",
        "bin1/gone.html": "endangered",
        "bin2/pg2-1.pdf": "vulnerable",
    }
    assert b"once an address that is none, first:" in done.stderr


def test_sitemap_option_checks_only_listed_urls(home: Home, base: str, tmp_path: Path) -> None:
    """Links are not followed; the first page is fetched, but does not count."""
    locations = "".join(f"<url><loc>{base}{path}</loc></url>" for path in ("bin1/pg1-1.html", "bin2/pg2-1.html"))
    text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locations}</urlset>'
    (tmp_path / "web" / "sitemap.xml").write_text(text)
    (tmp_path / "web" / "robots.txt").write_text(f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n")

    async def run() -> Completed:
        async with archives(home, []):
            return await home.run("check", base, "--sitemap", "--json")

    resources, _ = json_output(asyncio.run(run()))
    assert {str(each["uri"]).removeprefix(base) for each in resources} == {"bin1/pg1-1.html", "bin2/pg2-1.html"}


def test_sitemap_option_requests_no_linked_pages(home: Home) -> None:
    """A listed URL that redirects to its canonical spelling counts once."""
    requested: list[str] = []

    def page(path: str) -> Page | None:
        requested.append(path)
        return {
            "/": html("/linked", more='<img src="/i.png">'),
            "/sitemap.xml": sitemap("{base}/named", "{base}/folder"),
            "/named": html("/linked2"),
            "/folder": redirect_to("/folder/"),
            "/folder/": html("/linked3"),
        }.get(path)

    async def run() -> tuple[Completed, Completed]:
        async with serve_live_site(page) as site, archives(home, []):
            done = await home.run("check", f"{site.url}/", "--sitemap", "--json")
        async with serve_live_site({"/": html("/linked")}) as site, archives(home, []):
            return done, await home.run("check", f"{site.url}/", "--sitemap", "--json")

    done, without = asyncio.run(run())
    resources, _ = json_output(done)
    assert sorted(str(each["uri"]).partition("//")[2].partition("/")[2] for each in resources) == ["folder/", "named"]
    assert sorted(requested) == ["/", "/folder", "/folder/", "/named", "/robots.txt", "/sitemap.xml"]
    assert (without.returncode, b"no sitemap names a page" in without.stderr) == (3, True)


def test_repaired_robots_and_sitemap_are_read_again(home: Home) -> None:
    """A check that failed for them starts from scratch."""
    pages = {"/": html("/linked"), "/robots.txt": text("User-agent: *\nDisallow: /")}

    async def run() -> list[Completed]:
        async with serve_live_site(pages.get) as site, archives(home, []):
            done = [await home.run("check", f"{site.url}/", "--sitemap")]
            pages["/robots.txt"] = text("")
            done.append(await home.run("check", f"{site.url}/", "--sitemap"))
            pages["/sitemap.xml"] = sitemap("{base}/")
            return [*done, await home.run("check", f"{site.url}/", "--sitemap")]

    forbidden, without, done = asyncio.run(run())
    assert (forbidden.returncode, b"forbids to visit it" in forbidden.stderr) == (3, True)
    assert (without.returncode, b"no sitemap names" in without.stderr) == (3, True)
    assert (done.returncode, home.unfinished) == (0, [])


def test_warc_is_checked_without_visiting_the_site(home: Home, tmp_path: Path) -> None:
    """The advice says nothing about links."""
    warc = tmp_path / "own.warc"
    warc.write_bytes(b"".join(record(number=number, uri="http://site.example/{}") for number in range(6)))

    async def run() -> Completed:
        async with archives(home, [StoredCapture("http://site.example/3", "20240101000000")]) as server:
            done = await home.run("check", "--warc", str(warc), "--json")
            assert len(server.requests) == 1
            return done

    resources, summary = json_output(asyncio.run(run()))
    assert [each["state"] for each in resources].count("replicated") == 1
    assert len(resources) == 6
    advice = summary["advice"]
    assert isinstance(advice, list)
    assert [each["hindrance"] for each in advice] == [None]


def test_guide_shows_the_output(home: Home, tmp_path: Path) -> None:
    """The example in docs/check.md."""
    warc = tmp_path / "own.warc"
    paths = ["", "about.html", "news/1.html", "news/2.html", "news/3.html", "search?page=2", "search?page=3"]
    pages = [record(PAGE, uri=f"http://site.example/{path}") for path in paths]
    picture = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nLast-Modified: Mon, 02 Jun 2025 00:00:00 GMT\r\n\r\nx"
    pages += [record(picture, uri=f"http://site.example/images/{name}.png") for name in "ab"]
    warc.write_bytes(b"".join(pages))
    archived = ["", "about.html", "news/1.html", "news/2.html", "images/a.png"]

    async def run() -> Completed:
        async with archives(
            home, [StoredCapture(f"http://site.example/{path}", "20250526000000") for path in archived]
        ):
            return await home.run("check", "--warc", str(warc), "--judge", "20")

    done = asyncio.run(run())
    guide = (Path(__file__).parents[2] / "docs" / "check.md").read_text()
    assert done.stdout.decode() in guide, done.stdout.decode()


def test_failed_archive_leaves_the_check_unfinished(home: Home, base: str) -> None:
    """Exit code 4, no resource is called vulnerable; the same command sends only the missing queries."""
    broken = True

    async def run() -> tuple[Completed, Completed, int]:
        async with archives(home, []) as server:

            async def handle(request: web.BaseRequest) -> web.StreamResponse:
                return web.Response(status=400) if broken else await server.handle(request)

            async with serve_handler(handle) as single:
                timemap = f"{single}/web/timemap/link/"
                registry(
                    home.registry, server.archive(), Archive("single", "Single", ArchiveKind.MEMENTO, timemap=timemap)
                )
                first = await home.run("check", base, "--json")
                nonlocal_broken(False)
                before = len(server.requests)
                second = await home.run("check", base, "--json")
                return first, second, len(server.requests) - before

    def nonlocal_broken(value: bool) -> None:
        nonlocal broken
        broken = value

    first, second, requests = asyncio.run(run())
    assert first.returncode == 4
    _, summary = json_output(first)
    assert summary["states"] == {
        "replicated": 0, "endangered": 0, "vulnerable": 0, "unrecoverable": 0, "unknown": WEB.total(0),
    }  # fmt: skip
    assert b"single: not asked to the end" in first.stderr
    assert b"the same command goes on" in first.stderr
    assert second.returncode == 0
    assert json_output(second)[1]["score"] == 0
    assert requests == WEB.total(0), "the list of the first archive was kept"
    assert home.unfinished == []


def run_failing_check(home: Home, *arguments: str) -> tuple[int, str]:
    """Run a check that fails before the archive is queried; return exit code and stderr."""
    registry(home.registry, Archive("none", "None", ArchiveKind.MEMENTO, timemap="http://127.0.0.1:9/"))
    done = asyncio.run(home.run("check", *arguments))
    return done.returncode, done.stderr.decode()


def test_unreachable_site_is_reported(home: Home) -> None:
    """With a hint; no archive is queried."""
    code, stderr = run_failing_check(home, "http://127.0.0.1:9/")
    assert code == 3
    assert "http://127.0.0.1:9/: no answer (robots-unreachable): try again later; if the site is lost" in stderr


def test_robots_forbidding_all_is_reported(home: Home, base: str, tmp_path: Path) -> None:
    """Nothing is fetched."""
    (tmp_path / "web" / "robots.txt").write_text("User-agent: *\nDisallow: /\n")
    code, stderr = run_failing_check(home, base)
    assert code == 3
    assert "its robots.txt forbids to visit it" in stderr


def test_limit_bounds_an_endless_site(home: Home) -> None:
    """`--limit` URLs are visited, and it is reported that there are more."""

    async def run() -> tuple[Completed, int]:
        count = 0

        async def endless(request: web.BaseRequest) -> web.StreamResponse:
            nonlocal count
            if request.path == "/robots.txt" or "sitemap" in request.path:
                return web.Response(status=404)
            count += 1
            word = f"w{abs(hash(request.path)) % 99_991}"
            links = "".join(f'<a href="/{word}{letter}/">{letter}</a>' for letter in "abcdefgh")
            return web.Response(text=f"<p>{word}{links}", content_type="text/html")

        async with serve_handler(endless) as site, archives(home, []):
            return await home.run("check", f"{site}/", "--limit", "50", "--json"), count

    done, count = asyncio.run(run())
    assert done.returncode == 0, done.stderr
    assert count == 50
    assert b"the site has more than was visited" in done.stderr
    assert json_output(done)[1]["live"] == 50


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "expected one of URL, --warc and --urls"),
        (("http://a.example/", "--urls", __file__), 2, "expected one of URL, --warc and --urls"),
        (("--urls", "/no/such"), 3, "/no/such"),
        (("--warc", "/no/such"), 3, "/no/such"),
        (("--warc", __file__, "--sitemap"), 2, "--sitemap is about the site at URL"),
        (("http://a.example/", "--html", "/no/such/x"), 3, "cannot be written: no such folder"),
        (("mailto:a@b",), 2, "mailto"),
    ],
)
def test_invalid_arguments_are_rejected(home: Home, arguments: tuple[str, ...], code: int, message: str) -> None:
    """Before any request."""
    exit_code, stderr = run_failing_check(home, *arguments)
    assert exit_code == code, stderr
    assert message in stderr


PARKED = b"<title>site.example is for sale</title><h1>This domain is for sale</h1><p>Buy this domain now</p>"
MISSING = b"<title>Error 404</title><h1>Page not found</h1>"
TEXT = b"<title>News of the town</title><p>" + b"The harbour was opened again after long years of work. " * 20


def test_bad_captures_do_not_count(home: Home) -> None:
    """A parked domain or a soft 404 does not count, unless an earlier capture is good."""
    pages = {"/": html("/good", "/older", "/parked", "/missing", "/x.png"), "/x.png": Page(b"x", 200, {})}
    pages |= {path: html() for path in ("/good", "/older", "/parked", "/missing")}

    async def run() -> tuple[Completed, Completed, list[str], str]:
        async with serve_live_site(pages) as site:
            stored = [
                StoredCapture(f"{site.url}/", "20240101000000", TEXT),
                StoredCapture(f"{site.url}/good", "20240101000000", TEXT),
                StoredCapture(f"{site.url}/older", "20200101000000", TEXT),
                StoredCapture(f"{site.url}/older", "20240101000000", PARKED),
                StoredCapture(f"{site.url}/parked", "20200101000000", MISSING),
                StoredCapture(f"{site.url}/parked", "20240101000000", PARKED),
                StoredCapture(f"{site.url}/missing", "20240101000000", MISSING),
            ]
            async with archives(home, stored) as server:
                done = await home.run("check", f"{site.url}/", "--judge", "50", "--json")
                replayed = [path for path in server.paths(RequestKind.REPLAY) if "id_/" in path]
                return done, await home.run("check", f"{site.url}/", "--judge", "50"), replayed, site.url

    done, text, replayed, url = asyncio.run(run())
    resources, summary = json_output(done)
    found = {str(each["uri"]).removeprefix(url): (each["state"], each["verdict"]) for each in resources}
    assert found == {
        "/": ("replicated", ""),
        "/good": ("replicated", ""),
        "/older": ("replicated", ""),
        "/parked": ("vulnerable", "parked"),
        "/missing": ("vulnerable", "soft-404"),
        "/x.png": ("vulnerable", None),
    }
    assert (summary["judged"]["count"], summary["judged"]["of"]) == (2, 5)
    assert summary["bad"] == {"parked": 1, "soft-404": 1}
    assert len(replayed) == 7
    assert b"Captures of 5 of 5 archived pages were checked: 2 without a good capture" in text.stdout


def test_archive_without_replay_is_not_queried_for_every_page(home: Home) -> None:
    """The pages are not judged, and nothing fails."""
    pages = {"/": html(*(f"/{number}" for number in range(30)))} | {f"/{number}": html() for number in range(30)}

    async def run() -> tuple[Completed, int]:
        async with serve_live_site(pages) as site:
            stored = [StoredCapture(f"{site.url}{path}", "20240101000000", TEXT) for path in pages]
            async with archives(home, stored) as server:
                server.excluded["id_/"] = "RobotAccessControlException"
                return await home.run("check", f"{site.url}/", "--judge", "30", "--json"), len(server.requests)

    done, requests = asyncio.run(run())
    _, summary = json_output(done)
    assert (done.returncode, summary["judged"]["of"], summary["score"]) == (0, 0, 1.0)
    assert requests < 20
