"""Exported sites, opened in Chromium: from the folder, from servers under old and new addresses, and out of a WACZ."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser

from tests.cli.run import unlost
from tests.export import reference_recovery
from tests.export.browser_checks import Fault, Findings, look_at
from tests.export.raw_http import follow
from tests.neighbours import apache, nginx, pywb
from tests.real_data import DATA
from tests.recover.command import Command
from tests.recover.reading import summary
from tests.recover.registry import registry
from unlost.registry import Archive, ArchiveKind

pytestmark = pytest.mark.browser

SERVERS = {"nginx": nginx.hosting, "apache": apache.hosting}
# What a script of the real site's first page goes to, and no element of it: scripts are not rewritten.
SCRIPTED = "http://www.archive.org/index.php"
ADDED = ("html", "jpg", "gif", "png", "css", "js")


@dataclass(frozen=True)
class Site:
    """An exported site.

    folder, wacz: where it is. found, missing: the addresses of resources by what came of them. whole: whether these
    are all to which there are links.
    """

    folder: Path
    wacz: Path
    found: list[str]
    missing: list[str]
    whole: bool

    def unexplained(self, findings: Findings, root: str) -> list[tuple[str, str]]:
        """Return broken parts and dead links, but those of which nothing was recovered."""
        lost, there = {_letters(uri) for uri in self.missing}, {_letters(uri) for uri in self.found}
        faults = [(fault.page, fault.about) for fault in sorted(findings.broken | findings.dead)]
        left = []
        for page, about in faults:
            if Fault(page, about) in findings.outside:
                continue  # it was not let out, so nothing came
            here = re.sub(r"^(\d*(?:[a-z]{2}_)?/)?https?://", "", about.removeprefix(root))
            name = _letters(f"http://x/{here}") if here == about.removeprefix(root) else _letters(f"http://{here}")
            spellings = {name, *(name.removesuffix(end) for end in ADDED)}
            if spellings & there or (self.whole and not spellings & lost):
                left.append((page, about))
        return left


def _letters(uri: str) -> str:
    """Return what an address and the path of a file that was made of it have in common."""
    parts = urlsplit(uri)
    text = f"{parts.path}?{parts.query}" if parts.query else parts.path
    while text != (text := unquote(text, errors="ignore")):
        pass  # what is no letter in an address is escaped twice in that of a file
    text = text.lower()
    return re.sub("[^a-z0-9]", "", text.removesuffix("index.html").removesuffix(".html"))


def exported(command: Command, folder: Path, never_asked: list[str] | None = None) -> Site:
    """Export a recovery as a folder to host and as a WACZ. never_asked: what was excluded from it, if that is known."""
    for place, options in (("site", ["--as", "hosting", "--external", "none"]), ("site.wacz", [])):
        done = unlost("export", str(command.folder), "--to", str(folder / place), *options)
        assert done.returncode == 0, done.stderr.decode()
    lines = summary(command.summary)
    found = [line.uri for line in lines if not line.is_missing]
    missing = [line.uri for line in lines if line.is_missing]
    return Site(folder / "site", folder / "site.wacz", found, missing + (never_asked or []), never_asked is not None)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Recover and export the lost site."""
    folder = tmp_path_factory.mktemp("town")
    return exported(reference_recovery.recovered(folder), folder, reference_recovery.EXCLUDED)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Recover and export a site that others crawled."""
    folder = tmp_path_factory.mktemp("crawl")
    file = DATA / "warc" / "archive-org-2008.warc.gz"
    archives = registry(folder / "archives.toml", Archive("a", "a", ArchiveKind.FILES, folder=str(file)))
    command = Command(archives, folder / "site.recovery", folder / "home")
    done = command.run("http://www.archive.org/", "--depth", "2", "--page-requisites")
    assert done.code == 0, done.said
    return exported(command, folder)


def check(site: Site, findings: Findings, root: str, pages: int) -> None:
    """Fail if there is a fault; pages: how many there must be at least."""
    assert len(findings.pages) >= pages
    assert {fault.about for fault in findings.outside} <= {SCRIPTED}
    assert site.unexplained(findings, root) == []


def test_the_folder_works(browser: Browser, town: Site) -> None:
    """Page after page: no broken image, no request to elsewhere, no dead link but to what was not recovered."""
    root = f"{town.folder.as_uri()}/"
    findings = look_at(browser, [f"{root}index.html"], root, limit=45)
    check(town, findings, root, pages=45)
    assert findings.about("broken") == {"nowhere.gif"}
    assert {"nowhere.html", "only-404.html", "only-parked.html"} <= findings.about("dead")


@pytest.mark.parametrize("server", SERVERS)
def test_old_addresses_work_on_a_server(browser: Browser, town: Site, server: str, tmp_path: Path) -> None:
    """Each gives a file of the site; pages that are opened by them show their images, and their links work."""
    bodies = {file.read_bytes() for file in town.folder.rglob("*") if file.is_file()}
    with SERVERS[server](town.folder, tmp_path) as port:
        old = [urlsplit(uri) for uri in town.found]
        asked = {f"{each.path or '/'}?{each.query}" if each.query else each.path or "/": each.hostname for each in old}
        for path, host in asked.items():
            answer, _ = follow(port, path, host or "")
            assert (answer.status, answer.body in bodies) == (200, True), path
        root = f"http://127.0.0.1:{port}/"
        own = [path for path, host in asked.items() if host in ("lost.example", "www.lost.example")]
        moved = [path for path in own if not (town.folder / unquote(path).lstrip("/")).exists()]
        findings = look_at(browser, [root, *(root + path.lstrip("/") for path in sorted(moved))], root, limit=12)
        check(town, findings, root, pages=12)


def test_the_wacz_works_in_pywb(browser: Browser, town: Site, tmp_path: Path) -> None:
    """Replayed, with what pywb makes of it; other spellings of addresses are nothing that it knows of."""
    with pywb.serving_wacz(town.wacz, tmp_path, framed=False) as server:
        machine = f"http://127.0.0.1:{server.port}/"
        root, home = f"{machine}t/", "http://lost.example/"
        findings = look_at(browser, [root + home], root, also=[machine], replayed=(home,), limit=10)
        findings.dead = {
            fault for fault in findings.dead if not re.search(r"/(base/|index\.html|root/?)$", fault.about)
        }
        check(town, findings, root, pages=10)


def test_planted_faults_are_caught(browser: Browser, town: Site) -> None:
    """An image that is gone, a request to elsewhere, a link that leads nowhere: the same look finds each."""
    root, page = f"{town.folder.as_uri()}/", town.folder / "index.html"
    body = page.read_bytes()
    image = town.folder / "img" / "crest.gif"
    picture = image.read_bytes()
    linked = town.folder / "special" / "index.html"
    try:
        image.write_bytes(b"GIF89a none")
        linked.rename(linked.with_name("away"))
        page.write_bytes(body + b"<img src=http://else.example/pixel.gif>")
        findings = look_at(browser, [f"{root}index.html"], root, limit=1)
        assert {about.rpartition("/site/")[2] for _, about in town.unexplained(findings, root)} == {
            "img/crest.gif", "special/index.html",
        }  # fmt: skip
        assert findings.about("outside") == {"pixel.gif"}
    finally:
        page.write_bytes(body)
        image.write_bytes(picture)
        linked.with_name("away").rename(linked)


@pytest.mark.real_data
def test_a_real_site_works_everywhere(browser: Browser, crawl: Site, tmp_path: Path) -> None:
    """Some of its pages: no broken image, no dead link, but for what was not recovered."""
    root = f"{crawl.folder.as_uri()}/"
    findings = look_at(browser, [f"{root}index.php.html"], root, limit=6)
    check(crawl, findings, root, pages=6)
    for hosting in SERVERS.values():
        with hosting(crawl.folder, tmp_path) as port:
            root = f"http://127.0.0.1:{port}/"
            findings = look_at(browser, [f"{root}index.php", f"{root}details/movies"], root, limit=2, tried=80)
            check(crawl, findings, root, pages=2)
    with pywb.serving_wacz(crawl.wacz, tmp_path, framed=False) as server:
        machine = f"http://127.0.0.1:{server.port}/"
        root, home = f"{machine}t/", "http://www.archive.org/"
        start = f"{root}{home}index.php"
        findings = look_at(browser, [start], root, also=[machine], replayed=(home,), limit=1, tried=40)
        check(crawl, findings, root, pages=1)
