"""Tests of exported sites in Chromium: from the folder, from servers with old and new URLs, and from a WACZ."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser

from tests.cli.run import unlost
from tests.export import reference_recovery
from tests.export.browser_checks import Fault, Findings, check_in_browser
from tests.export.raw_http import fetch_following_redirects
from tests.external import apache, nginx, pywb
from tests.real_data import DATA
from tests.recovery.command import Command
from tests.recovery.recovery_output import summary
from tests.recovery.registry import registry
from unlost.registry import Archive, ArchiveKind

pytestmark = pytest.mark.browser

SERVERS = {"nginx": nginx.host_site, "apache": apache.host_site}
# Requested by a script on the home page of the real site: scripts are not rewritten.
SCRIPTED = "http://www.archive.org/index.php"
ADDED = ("html", "jpg", "gif", "png", "css", "js")


@dataclass(frozen=True)
class Site:
    """An exported site.

    Attributes:
        folder: The exported folder.
        wacz: The exported WACZ.
        found: URLs of recovered resources.
        missing: URLs of missing resources.
        whole: Whether these are all linked resources.
    """

    folder: Path
    wacz: Path
    found: list[str]
    missing: list[str]
    whole: bool

    def unexplained_faults(self, findings: Findings, root: str) -> list[tuple[str, str]]:
        """Return broken subresources and dead links, except for missing resources."""
        lost, there = {_normalized(uri) for uri in self.missing}, {_normalized(uri) for uri in self.found}
        faults = [(fault.page, fault.about) for fault in sorted(findings.broken | findings.dead)]
        left = []
        for page, about in faults:
            if Fault(page, about) in findings.outside:
                continue  # the request was blocked
            here = re.sub(r"^(\d*(?:[a-z]{2}_)?/)?https?://", "", about.removeprefix(root))
            name = (
                _normalized(f"http://x/{here}") if here == about.removeprefix(root) else _normalized(f"http://{here}")
            )
            spellings = {name, *(name.removesuffix(end) for end in ADDED)}
            if spellings & there or (self.whole and not spellings & lost):
                left.append((page, about))
        return left


def _normalized(uri: str) -> str:
    """Return the common part of a URL and the path of its file."""
    parts = urlsplit(uri)
    text = f"{parts.path}?{parts.query}" if parts.query else parts.path
    while text != (text := unquote(text, errors="ignore")):
        pass  # escapes in URLs are escaped twice in file URLs
    text = text.lower()
    return re.sub("[^a-z0-9]", "", text.removesuffix("index.html").removesuffix(".html"))


def export_both(command: Command, folder: Path, excluded: list[str] | None = None) -> Site:
    """Export a recovery as a hosted folder and as a WACZ. excluded: URLs that were excluded from it, if known."""
    for name, options in (("site", ["--as", "hosting", "--external", "none"]), ("site.wacz", [])):
        done = unlost("export", str(command.folder), "-o", str(folder / name), *options)
        assert done.returncode == 0, done.stderr.decode()
    lines = summary(command.summary)
    found = [line.uri for line in lines if not line.is_missing]
    missing = [line.uri for line in lines if line.is_missing]
    return Site(folder / "site", folder / "site.wacz", found, missing + (excluded or []), excluded is not None)


@pytest.fixture(scope="module")
def reference_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Recover and export the reference site."""
    folder = tmp_path_factory.mktemp("reference")
    return export_both(reference_recovery.recover_reference_site(folder), folder, reference_recovery.EXCLUDED)


@pytest.fixture(scope="module")
def real_site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Recover and export a real site."""
    folder = tmp_path_factory.mktemp("crawl")
    file = DATA / "warc" / "archive-org-2008.warc.gz"
    archives = registry(folder / "archives.toml", Archive("a", "a", ArchiveKind.FILES, folder=str(file)))
    command = Command(archives, folder / "site.recovery", folder / "home")
    done = command.run("http://www.archive.org/", "--depth", "2", "--page-requisites")
    assert done.code == 0, done.stderr
    return export_both(command, folder)


def assert_no_faults(site: Site, findings: Findings, root: str, pages: int) -> None:
    """Fail if there is an unexplained fault. pages: minimum number of opened pages."""
    assert len(findings.pages) >= pages
    assert {fault.about for fault in findings.outside} <= {SCRIPTED}
    assert site.unexplained_faults(findings, root) == []


def test_exported_folder_works_from_disk(browser: Browser, reference_site: Site) -> None:
    """No broken images, outside requests or dead links, except for missing resources."""
    root = f"{reference_site.folder.as_uri()}/"
    findings = check_in_browser(browser, [f"{root}index.html"], root, limit=45)
    assert_no_faults(reference_site, findings, root, pages=45)
    assert findings.about("broken") == {"nowhere.gif"}
    assert {"nowhere.html", "only-404.html", "only-parked.html"} <= findings.about("dead")


@pytest.mark.parametrize("server", SERVERS)
def test_old_urls_work_on_a_server(browser: Browser, reference_site: Site, server: str, tmp_path: Path) -> None:
    """Each old URL yields a file of the site, with working images and links."""
    bodies = {file.read_bytes() for file in reference_site.folder.rglob("*") if file.is_file()}
    with SERVERS[server](reference_site.folder, tmp_path) as port:
        old = [urlsplit(uri) for uri in reference_site.found]
        hosts = {f"{each.path or '/'}?{each.query}" if each.query else each.path or "/": each.hostname for each in old}
        for path, host in hosts.items():
            response, _ = fetch_following_redirects(port, path, host or "")
            assert (response.status, response.body in bodies) == (200, True), path
        root = f"http://127.0.0.1:{port}/"
        own = [path for path, host in hosts.items() if host in ("lost.example", "www.lost.example")]
        moved = [path for path in own if not (reference_site.folder / unquote(path).lstrip("/")).exists()]
        findings = check_in_browser(
            browser, [root, *(root + path.lstrip("/") for path in sorted(moved))], root, limit=12
        )
        assert_no_faults(reference_site, findings, root, pages=12)


def test_wacz_works_in_pywb(browser: Browser, reference_site: Site, tmp_path: Path) -> None:
    """Pywb replays the site; it does not know other spellings of URLs."""
    with pywb.serve_wacz(reference_site.wacz, tmp_path, framed=False) as server:
        machine = f"http://127.0.0.1:{server.port}/"
        root, home = f"{machine}t/", "http://lost.example/"
        findings = check_in_browser(browser, [root + home], root, also=[machine], replayed=(home,), limit=10)
        findings.dead = {
            fault for fault in findings.dead if not re.search(r"/(base/|index\.html|root/?)$", fault.about)
        }
        assert_no_faults(reference_site, findings, root, pages=10)


def test_planted_faults_are_detected(browser: Browser, reference_site: Site) -> None:
    """A missing image, an outside request and a dead link are detected."""
    root, page = f"{reference_site.folder.as_uri()}/", reference_site.folder / "index.html"
    body = page.read_bytes()
    image = reference_site.folder / "img" / "crest.gif"
    picture = image.read_bytes()
    linked = reference_site.folder / "special" / "index.html"
    try:
        image.write_bytes(b"GIF89a none")
        linked.rename(linked.with_name("away"))
        page.write_bytes(body + b"<img src=http://else.example/pixel.gif>")
        findings = check_in_browser(browser, [f"{root}index.html"], root, limit=1)
        assert {about.rpartition("/site/")[2] for _, about in reference_site.unexplained_faults(findings, root)} == {
            "img/crest.gif", "special/index.html",
        }  # fmt: skip
        assert findings.about("outside") == {"pixel.gif"}
    finally:
        page.write_bytes(body)
        image.write_bytes(picture)
        linked.with_name("away").rename(linked)


@pytest.mark.real_data
def test_real_site_works_from_disk_server_and_wacz(browser: Browser, real_site: Site, tmp_path: Path) -> None:
    """No broken images or dead links, except for missing resources."""
    root = f"{real_site.folder.as_uri()}/"
    findings = check_in_browser(browser, [f"{root}index.php.html"], root, limit=6)
    assert_no_faults(real_site, findings, root, pages=6)
    for hosting in SERVERS.values():
        with hosting(real_site.folder, tmp_path) as port:
            root = f"http://127.0.0.1:{port}/"
            findings = check_in_browser(browser, [f"{root}index.php", f"{root}details/movies"], root, limit=2, tried=80)
            assert_no_faults(real_site, findings, root, pages=2)
    with pywb.serve_wacz(real_site.wacz, tmp_path, framed=False) as server:
        machine = f"http://127.0.0.1:{server.port}/"
        root, home = f"{machine}t/", "http://www.archive.org/"
        start = f"{root}{home}index.php"
        findings = check_in_browser(browser, [start], root, also=[machine], replayed=(home,), limit=1, tried=40)
        assert_no_faults(real_site, findings, root, pages=1)
