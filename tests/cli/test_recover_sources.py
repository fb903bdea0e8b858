"""Sources of `unlost recover`: archive files, HAR files, browser caches, the live site."""

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.archives.clients.records import response
from tests.archives.local.browser_caches import (
    chromium_head,
    firefox_entry,
    har_entry,
    har_text,
    write_firefox,
    write_simple,
)
from tests.cli.run import unlost
from tests.external import chromium, firefox
from tests.recovery.partial_site import Response, serve_partial_site
from tests.recovery.recovery_output import read_warcs
from unlost.testing import FakeArchive, write_registry

SITE = "http://lost.example/"
HOME = b'<p>home <a href="a.html">a</a>'
PAGES = {SITE: HOME, f"{SITE}a.html": b"<p>page a"}


@pytest.fixture(autouse=True)
def temporary_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in a temporary folder, with a home in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "user").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "user"))


def write_warc(file: Path, pages: dict[str, bytes] | None = None, date: str = "2014-02-10T00:00:01Z") -> Path:
    """Write a WARC of pages."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(response(url, date, body) for url, body in (pages or PAGES).items()))
    return file


def write_arc(file: Path) -> Path:
    """Write an ARC of the site."""
    head = b"1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n"
    text = b"filedesc://a.arc 0.0.0.0 20140210000001 text/plain %d\n%s\n" % (len(head), head)
    for url, body in PAGES.items():
        block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body
        text += b"%s 127.0.0.1 20140210000001 text/html %d\n%s\n" % (url.encode(), len(block), block)
    file.write_bytes(text)
    return file


def write_wacz(file: Path) -> Path:
    """Write a WACZ of the site."""
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.warc.gz", write_warc(file.with_name("data.warc.gz")).read_bytes())
    file.with_name("data.warc.gz").unlink()
    return file


def write_folder(folder: Path) -> Path:
    """Write a folder of folders, each with a WARC of one page."""
    for number, (url, body) in enumerate(PAGES.items()):
        write_warc(folder / str(number) / "a.warc.gz", {url: body})
    return folder


def write_har(file: Path) -> Path:
    """Write a HAR file of the site."""
    file.write_bytes(har_text(*(har_entry(url, body.decode(), mimeType="text/html") for url, body in PAGES.items())))
    return file


def write_chromium_cache(profile: Path) -> Path:
    """Write the cache of a Chromium profile."""
    folder = profile / "Cache" / "Cache_Data"
    folder.mkdir(parents=True)
    for url, body in PAGES.items():
        write_simple(folder, f"1/0/_dk_http://lost.example http://lost.example {url}", body, chromium_head())
    return profile


def write_firefox_cache(profile: Path) -> Path:
    """Write the cache of a Firefox profile."""
    folder = profile / "cache2" / "entries"
    folder.mkdir(parents=True)
    for url, body in PAGES.items():
        write_firefox(folder, f":{url}", firefox_entry(f":{url}", body))
    return profile


def stored_bodies(folder: Path) -> list[bytes]:
    """Return the bodies in the WARCs of a recovery."""
    return [record.body for record in read_warcs(folder).values()]


def recover(*words: str) -> tuple[dict[str, str], str]:
    """Recover the site; return the archive of each recovered URL, and stderr."""
    done = unlost("recover", SITE, "-o", "r", "--json", *words)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return {each["uri"]: each["archive"] for each in events if each["event"] == "recovered"}, done.stderr.decode()


@pytest.mark.parametrize(
    ("write", "name"),
    [(write_warc, "my.warc.gz"), (write_arc, "my.arc"), (write_wacz, "my.wacz"), (write_folder, "crawls")],
)
def test_archive_files_are_a_source(write: Callable[[Path], Path], name: str, tmp_path: Path) -> None:
    """By path: a WARC, an ARC, a WACZ or a folder; reported under its name."""
    write(tmp_path / name)
    found, stderr = recover("--warc", name, "--no-archives")
    assert found == dict.fromkeys(PAGES, f"warc:{name}")
    assert "0 requests" in stderr
    assert sorted(stored_bodies(tmp_path / "r")) == sorted(PAGES.values())
    assert f"warc:{name}".encode() in unlost("report", "r").stdout


def test_har_file_is_a_source(tmp_path: Path) -> None:
    """Reported under its name."""
    write_har(tmp_path / "visit.har")
    found, _ = recover("--har", "visit.har", "--no-archives")
    assert found == dict.fromkeys(PAGES, "har:visit.har")


def test_sources_and_archives_are_combined(tmp_path: Path) -> None:
    """Files of one name are distinguished by their folders."""
    first, second = ({url: body} for url, body in PAGES.items())
    write_warc(tmp_path / "one" / "x.warc.gz", first)
    write_warc(tmp_path / "two" / "x.warc.gz", second)
    with FakeArchive({f"{SITE}a.html": [("2020", "<p>newer a")]}) as archive:
        registry = write_registry(tmp_path / "archives.toml", archive.registry_entry())
        words = ("--warc", "one/x.warc.gz", "--warc", "two/x.warc.gz", "--archives", str(registry))
        found, _ = recover(*words)
    assert found == {SITE: "warc:one/x.warc.gz", f"{SITE}a.html": "fake"}


def test_other_file_of_the_same_name_is_listed_again(tmp_path: Path) -> None:
    """By an unfinished recovery."""
    home = HOME + b'<a href="c.html">c</a>'
    write_warc(tmp_path / "one" / "x.warc.gz", {SITE: home, f"{SITE}c.html": b"<p>page c"})
    write_warc(tmp_path / "two" / "x.warc.gz", {f"{SITE}a.html": b"<p>page a"})
    words = ("recover", SITE, "-o", "r", "--no-archives", "--warc")
    assert unlost(*words, "one/x.warc.gz", "--limit", "1").returncode == 4
    done = unlost(*words, "two/x.warc.gz")
    assert b"2 recovered, 1 missing" in done.stderr, done.stderr


@pytest.mark.parametrize("kind", ["chromium", "firefox"])
@pytest.mark.parametrize("place", ["profile", "cache", "profiles", "settings"])
def test_browser_profile_is_a_source(kind: str, place: str, tmp_path: Path) -> None:
    """By its folder, its cache, its settings folder, or the folder with all profiles."""
    cache = tmp_path / "user" / ".cache" / ("chromium" if kind == "chromium" else "mozilla/firefox")
    settings = tmp_path / "user" / (".config/chromium" if kind == "chromium" else ".mozilla/firefox")
    (settings / "Mine").mkdir(parents=True)
    profile = (write_chromium_cache if kind == "chromium" else write_firefox_cache)(cache / "Mine")
    inside = "Cache" if kind == "chromium" else "cache2"
    places = {"profile": profile, "cache": profile / inside, "profiles": cache, "settings": settings / "Mine"}
    found, _ = recover(f"--browser-cache={places[place]}", "--no-archives")
    assert found == dict.fromkeys(PAGES, f"{kind}:Mine")


def test_browser_profiles_are_discovered(tmp_path: Path) -> None:
    """In the standard locations, and listed; empty ones are skipped."""
    cache = tmp_path / "user" / ".cache"
    write_chromium_cache(cache / "BraveSoftware" / "Brave-Browser" / "Default")
    write_firefox_cache(tmp_path / "user" / ".var/app/org.mozilla.firefox/cache/mozilla/firefox/x.default")
    (cache / "google-chrome" / "Default" / "Cache" / "Cache_Data").mkdir(parents=True)
    found, stderr = recover("--no-archives", "--browser-cache")
    assert set(found) == set(PAGES)
    assert f"browser cache: brave, profile Default, in {cache}/BraveSoftware/Brave-Browser/Default/Cache" in stderr
    assert "browser cache: firefox, profile x.default, in " in stderr
    assert f"browser cache not used: {cache}/google-chrome/Default/Cache: expected entries" in stderr


@pytest.mark.browser
@pytest.mark.parametrize("kind", ["chromium", "firefox"])
def test_caches_of_real_browsers_are_discovered(kind: str, tmp_path: Path) -> None:
    """The site is recovered from them."""
    root = tmp_path / "user" / ".cache" / ("chromium" if kind == "chromium" else "mozilla/firefox")
    root.mkdir(parents=True)
    if kind == "chromium":
        chromium.visit(tmp_path / "visited")
        shutil.copytree(tmp_path / "visited" / "Default", root / "Default")
    else:
        firefox.visit(tmp_path / "visited")
        shutil.copytree(tmp_path / "visited" / "cache2", root / "Default" / "cache2")
    found, stderr = recover("--no-archives", "--browser-cache")
    assert f"browser cache: {kind}, profile Default" in stderr
    assert found[SITE] == found[f"{SITE}style.css"] == f"{kind}:Default"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--warc", "nowhere.warc"), 3, "nowhere.warc: cannot be read"),
        (("--warc", "text.txt"), 3, "text.txt: expected a WARC, ARC or WACZ file"),
        (("--warc", "bad.wacz"), 3, "bad.wacz"),
        (("--warc", "empty"), 3, "empty: expected WARC, ARC or WACZ files in the folder, found none"),
        (("--har", "nowhere.har"), 3, "nowhere.har: cannot be read"),
        (("--har", "text.txt"), 3, "text.txt: expected responses in a HAR file"),
        (("--har", "empty"), 3, "empty: cannot be read"),
        (("--browser-cache=nowhere",), 3, "nowhere: cannot be read"),
        (("--browser-cache=empty",), 3, "empty: expected a browser profile"),
        (("--browser-cache=",), 3, "cannot be read"),
        (("--browser-cache",), 3, "no browser profile in the standard locations"),
        (("--browser-cache", "http://x.example/"), 2, "write --browser-cache after the URL"),
        (("--no-archives",), 2, "--no-archives needs a source"),
        (("--no-archives", "--only", "a", "--live"), 2, "--no-archives and --only"),
        (("--live", "--to", "2014"), 2, "--live and --to"),
    ],
)
def test_unusable_source_is_rejected(words: tuple[str, ...], code: int, message: str, tmp_path: Path) -> None:
    """Before any request; no file is left."""
    (tmp_path / "text.txt").write_text("mine")
    (tmp_path / "bad.wacz").write_bytes(b"PK\x03\x04 no directory")
    (tmp_path / "empty").mkdir()
    with FakeArchive() as archive:
        registry = write_registry(tmp_path / "archives.toml", archive.registry_entry())
        done = unlost("recover", SITE, *words, env={"UNLOST_ARCHIVES": str(registry)})
        assert (done.returncode, message in done.stderr.decode()) == (code, True), done.stderr
        assert archive.count() == 0
    assert not list(tmp_path.glob("*.recovery"))


def test_live_site_fills_gaps(tmp_path: Path) -> None:
    """Good captures come from archives, the rest from the live site, respecting robots.txt."""
    pages = {
        "/": Response(b"<p>a domain for sale"),
        "/b.html": Response(b"<p>page b"),
        "/private/c.html": Response(b"<p>page c"),
        "/old.html": Response(status=301, headers={"Location": "/b.html"}),
        "/broken.html": Response(b"<p>error", 500),
        "/robots.txt": Response(b"User-agent: *\nDisallow: /private/", mime="text/plain"),
    }
    links = "".join(f'<a href="{name}">x</a>' for name in ("a.html", "b.html", "private/c.html", "old.html", "gone"))
    with serve_partial_site(pages) as site:
        captures = {site.base: f"<p>home {links}".encode(), f"{site.base}a.html": b"<p>page a"}
        write_warc(tmp_path / "my.warc.gz", captures)
        words = ("--warc", "my.warc.gz", "--no-archives", "--live", "--delay", "0", "--contact", "me@example.org")
        done = unlost("recover", site.base, "-o", "r", "--json", *words)
        assert done.returncode == 0, done.stderr
        events = [json.loads(line) for line in done.stdout.splitlines()]
        found = {each["uri"].removeprefix(site.base): each for each in events if each["event"] == "recovered"}
        missing = {each["uri"].removeprefix(site.base): each["reason"] for each in events if each["event"] == "missing"}
        assert {name: each["archive"] for name, each in found.items() if name != "robots.txt"} == {
            "": "warc:my.warc.gz",
            "a.html": "warc:my.warc.gz",
            "b.html": "live",
            "old.html": "live",
        }
        assert found["b.html"]["datetime"] > "2024"
        assert set(missing) == {"private/c.html", "gone"}
        assert "/private/c.html" not in site.requested
        assert sorted(site.requested) == sorted(
            ["/robots.txt", "/robots.txt", "/sitemap.xml", "/b.html", "/old.html", "/gone"]
        )
        assert all("me@example.org" in agent for agent in site.agents)
        assert events[-1]["requests"] == {"live": {"replay": 6}}
    report = unlost("report", "r").stdout.decode()
    assert "live" in report
    assert b"<p>page b" in stored_bodies(tmp_path / "r")


def test_most_recent_prefers_the_live_site(tmp_path: Path) -> None:
    """Unless the live page is missing, fails or is parked."""
    links = "".join(f'<a href="{name}">x</a>' for name in ("gone.html", "broken.html", "parked.html"))
    pages = {
        "/": Response(f"<p>home of today {links}".encode()),
        "/broken.html": Response(b"<p>error", 500),
        "/parked.html": Response(b"<title>lost.example</title><h1>This domain is for sale</h1><p>Make an offer</p>"),
    }
    with serve_partial_site(pages) as site:
        names = ("", "gone.html", "broken.html", "parked.html")
        captures = {f"{site.base}{name}": b"<p>archived %s" % name.encode() for name in names}
        write_warc(tmp_path / "my.warc.gz", captures)
        words = ("--warc", "my.warc.gz", "--no-archives", "--live", "--delay", "0", "--most-recent")
        done = unlost("recover", site.base, "-o", "r", "--json", *words)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        found = {
            each["uri"].removeprefix(site.base): each["archive"] for each in events if each["event"] == "recovered"
        }
        assert found == dict.fromkeys(names, "warc:my.warc.gz") | {"": "live"}


def test_live_site_is_the_only_source(tmp_path: Path) -> None:
    """Links are followed, and a redirect to another spelling is not a gap."""
    pages = {
        "/": Response(b'<a href="/folder">f</a><img src="i.png">'),
        "/folder": Response(status=301, headers={"Location": "/folder/"}),
        "/folder/": Response(b"<p>folder"),
        "/i.png": Response(b"\x89PNG\r\n\x1a\n", mime="image/png"),
    }
    with serve_partial_site(pages) as site:
        done = unlost("recover", site.base, "-o", "r", "--no-archives", "--live", "--delay", "0")
        assert (done.returncode, b"3 recovered, 0 missing" in done.stderr) == (0, True), done.stderr
        assert {b"<p>folder", pages["/i.png"].body} <= set(stored_bodies(tmp_path / "r"))
