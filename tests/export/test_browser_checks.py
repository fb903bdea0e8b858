"""Tests of the browser checks: they find planted faults in folders and on servers."""

import base64
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.export.browser_checks import Findings, check_in_browser
from tests.external import nginx
from unlost.export import hosting_files

pytestmark = pytest.mark.browser

GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
GOOD = {
    "index.html": b'<link rel=stylesheet href=style.css><img src=a%20b.gif loading=lazy><a href="d/p.html#x">p</a>'
    b"<a href=http://else.example/>away</a><a href=mailto:a@b.example>mail</a><script src=s.js></script>",
    "style.css": b"body { background: url(d/bg.gif) }",
    "s.js": b"document.title = 'it runs'",
    "a b.gif": GIF,
    "d/bg.gif": GIF,
    "d/p.html": b'<a href="../index.html">up</a><iframe src=frame.html></iframe><a href=text.txt>text</a>',
    "d/frame.html": b"<p>in a frame",
    "d/text.txt": b"words",
}
# The planted markup, the kind of the fault, and what it is about.
FAULTS = {
    "a missing image": (b"<img src=gone.gif>", "broken", "gone.gif"),
    "an invalid image": (b"<img src=text.txt>", "broken", "text.txt"),
    "an image far below": (b"<p style=height:9999px><img loading=lazy src=gone.gif>", "broken", "gone.gif"),
    "a background": (b"<style>html { background: url(gone.gif) }</style>", "broken", "gone.gif"),
    "a style sheet": (b"<link rel=stylesheet href=gone.css>", "broken", "gone.css"),
    "a script": (b"<script src=gone.js></script>", "broken", "gone.js"),
    "a font": (b"<style>@font-face{font-family:f;src:url(f.woff)}p{font:9px f}</style><p>x", "broken", "f.woff"),
    "a frame": (b"<iframe src=gone-frame.html></iframe>", "dead", "gone-frame.html"),
    "a dead link": (b"<a href=gone.html>x</a>", "dead", "gone.html"),
    "a link to a folder": (b"<a href=../none/>x</a>", "dead", ""),
    "a request to elsewhere": (b"<img src=http://else.example/pixel.gif>", "outside", "pixel.gif"),
    "a script's request": (b"<script>fetch('https://else.example/count')</script>", "outside", "count"),
    "an image from the root": (b"<img src=/root.gif>", "outside", "root.gif"),
    "a request to another port": (b"<img src=http://127.0.0.1:9/port.gif>", "outside", "port.gif"),
    "a page that leaves": (b"<script>location='http://else.example/moved'</script>", "outside", "moved"),
}
PAGES = {f"d/fault-{number}.html": fault for number, fault in enumerate(FAULTS)}


def write_site(folder: Path, more: dict[str, bytes]) -> None:
    """Write the good site, with additions to some files."""
    for name, content in GOOD.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content + more.get(name, b""))


def check_folder(browser: Browser, folder: Path) -> Findings:
    """Check the site as files."""
    return check_in_browser(browser, [(folder / "index.html").as_uri()], f"{folder.as_uri()}/")


def test_good_site_has_no_faults(browser: Browser, tmp_path: Path) -> None:
    """In a folder and on a server; all pages are opened."""
    folder, work = tmp_path / "site", tmp_path / "work"
    work.mkdir()
    write_site(folder, {})
    found = check_folder(browser, folder)
    assert [page.rpartition("/")[2] for page in found.pages] == ["index.html", "p.html", "frame.html"]
    assert (found.broken, found.outside, found.dead) == (set(), set(), set())
    for name, content in hosting_files([]).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "_nginx" / "server.conf").write_text("types { text/css css; text/html html; image/gif gif; }")
    with nginx.host_site(folder, work) as port:
        found = check_in_browser(browser, [f"http://127.0.0.1:{port}/index.html"], f"http://127.0.0.1:{port}/")
        assert len(found.pages) == 3
        assert (found.broken, found.outside, found.dead) == (set(), set(), set())
        (folder / "a b.gif").unlink()
        (folder / "d" / "text.txt").unlink()
        found = check_in_browser(browser, [f"http://127.0.0.1:{port}/index.html"], f"http://127.0.0.1:{port}/")
        assert (found.about("broken"), found.about("dead")) == ({"a b.gif"}, {"text.txt"})


@pytest.fixture(scope="module")
def faulty_site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """Check a site with a page for each fault."""
    folder = tmp_path_factory.mktemp("faulty")
    write_site(folder, {"index.html": b"".join(b"<a href=%s>x</a>" % page.encode() for page in PAGES)})
    for page, fault in PAGES.items():
        (folder / page).write_bytes(FAULTS[fault][0])
    return check_folder(browser, folder)


@pytest.mark.parametrize("page", PAGES, ids=PAGES.get)
def test_planted_fault_is_found(faulty_site: Findings, page: str) -> None:
    """Each kind is found on its page, with nothing else except a consequence of a blocked request."""
    _, kind, name = FAULTS[PAGES[page]]
    found = {
        (each, fault.about.rpartition("/")[2])
        for each in ("broken", "outside", "dead")
        for fault in getattr(faulty_site, each)
        if fault.page.endswith(page)
    }
    assert (kind, name) in found
    assert found <= {(kind, name), ("broken", name)}


def test_only_planted_faults_are_found(faulty_site: Findings) -> None:
    """Good pages have no faults."""
    pages = {
        fault.page.rpartition("site/")[2]
        for each in ("broken", "outside", "dead")
        for fault in getattr(faulty_site, each)
    }
    assert all("/d/fault-" in page for page in pages)
