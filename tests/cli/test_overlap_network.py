"""`unlost overlap` over the network: two pywb servers, a live site, and interruptions."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.archives.archive_files import page, write
from tests.cli.run import UNLOST, unlost
from tests.external import chromium, pywb
from tests.external.scripted_server import ScriptedResponse, ScriptedServer, scripted_server
from tests.external.search_archive import fake_search_archive
from tests.recovery.background_server import run_in_background
from tests.recovery.registry import registry

pytestmark = [  # warcio leaves files open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

WORDS = " ".join(f"word{number}" for number in range(80))
CHANGED = "Mon, 10 Mar 2014 00:00:00 GMT"
HTML = {"content-type": "text/html", "last-modified": CHANGED}
LIVE = {
    "/robots.txt": ScriptedResponse(body="User-agent: *\nDisallow: /private"),
    "/fresh": ScriptedResponse(headers=HTML, body=f"<p>{WORDS}</p>"),
    "/stale": ScriptedResponse(
        headers={**HTML, "cache-control": "no-cache"}, body=f"<p>{WORDS}</p><p>and what came later</p>"
    ),
    "/other": ScriptedResponse(headers=HTML, body="<p>" + " ".join(f"new{number}" for number in range(80)) + "</p>"),
    "/private": ScriptedResponse(headers=HTML, body="nobody is to see this"),
}
DATES = {
    "a": {"/fresh": "2014-03-20T00:00:00Z", "/stale": "2014-03-05T00:00:00Z", "/other": "2013-03-10T00:00:00Z",
          "/gone": "2013-01-01T00:00:00Z", "/private": "2013-01-01T00:00:00Z"},
    "b": {"/fresh": "2014-03-12T00:00:00Z"},
}  # fmt: skip


def home(folder: Path) -> dict[str, str]:
    """Return the settings of a user with a contact."""
    return {"UNLOST_HOME": str(folder / "home"), "UNLOST_CONTACT": "me@example.org"}


def overlap(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """Run the command there."""
    return unlost(
        "overlap", "--urls", str(folder / "pages.txt"), "--archives", str(folder / "archives.toml"), "--delay", "0",
        *arguments, env=home(folder),
    )  # fmt: skip


def write_warcs(folder: Path, site: ScriptedServer) -> list[Path]:
    """Write the captures of a site; return the WARCs."""
    found = []
    for name, dates in DATES.items():
        place = folder / name
        place.mkdir()
        captures = (
            page(f"{site.base}{path}", date, f"<html><body><p>{WORDS}</p></body></html>".encode())
            for path, date in dates.items()
        )
        write(place / "x.warc.gz", *captures)
        found.append(place / "x.warc.gz")
    return found


@pytest.mark.browser
def test_live_pages_are_compared_with_captures(tmp_path: Path) -> None:
    """Holdings, states, staleness and similarity are the planted ones; the page shows them."""
    with (
        run_in_background(scripted_server(LIVE)) as site,
        pywb.serve_warcs(write_warcs(tmp_path, site), tmp_path) as servers,
    ):
        registry(tmp_path / "archives.toml", *(each.archive(name) for name, each in zip(DATES, servers, strict=True)))
        paths = [*DATES["a"], "/nowhere"]
        (tmp_path / "pages.txt").write_text("".join(f"{site.base}{path}\n" for path in paths))
        dry = overlap(tmp_path, "--live", "--dry-run")
        assert b"6 live pages at most" in dry.stderr
        assert site.requests == []
        without = overlap(tmp_path, "--json")
        assert (without.returncode, json.loads(without.stdout)["archives"][0]["live"]) == (0, None)
        assert site.requests == [], "live pages are fetched only with --live"
        done = overlap(tmp_path, "--json", "--live", "--html", str(tmp_path / "o.html"))
        requested = list(site.requests)
        again = overlap(tmp_path, "--json", "--live")
        text = overlap(tmp_path, "--live").stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert again.stdout == done.stdout
    assert site.requests == requested, "no page is fetched twice"
    assert sorted(requested) == ["/fresh", "/gone", "/other", "/robots.txt", "/stale"]
    found = json.loads(done.stdout)
    assert found["sets"] == [{"archives": ["a"], "pages": 4}, {"archives": ["a", "b"], "pages": 1}]
    first, second = (each["live"] for each in found["archives"])
    assert (first["replicated"], first["endangered"], first["unseen"]) == (3, 1, {"forbidden": 1})
    assert (first["stale"]["count"], first["stale"]["of"]) == (2, 3)
    assert first["staleness_days"]["most"] == 365
    points = dict(first["points"])
    assert (points[0.0], points[365.0]) == (1.0, 0.0)
    assert 0.8 < points[5.0] < 1.0
    assert (first["cache_control"]["count"], first["cache_control"]["of"]) == (1, 3)
    assert (second["replicated"], second["points"]) == (1, [[0.0, 1.0]])
    assert "Similarity by staleness" in text
    with chromium.run_browser() as browser:
        window = browser.new_page(viewport={"width": 400, "height": 800})
        window.goto((tmp_path / "o.html").as_uri())
        assert window.locator("circle.pair").count() == 4
        heights = window.locator("circle.pair").evaluate_all("all => all.map(each => +each.getAttribute('cy'))")
        assert max(heights[:3]) > min(heights[:3])
        assert "365.0" in window.locator("main").inner_text()
        assert window.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_interrupted_overlap_resumes(tmp_path: Path) -> None:
    """The exit code is 130, the message says how to resume, and only the missing queries are sent."""
    (tmp_path / "pages.txt").write_text("".join(f"http://a.example/{number}\n" for number in range(40)))
    with fake_search_archive() as archive:
        (tmp_path / "archives.toml").write_text(archive.entry())
        command: list[str | Path] = [
            UNLOST, "overlap", "--urls", tmp_path / "pages.txt", "--archives", tmp_path / "archives.toml",
            "--concurrency", "1", "--fetch", "0", "--html", tmp_path / "o.html",
        ]  # fmt: skip
        environment = {"PATH": os.environ["PATH"], **home(tmp_path)}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            archive.send_signal_at(20, process.pid, signal.SIGINT)
            output, errors = process.communicate(timeout=60)
        assert (process.returncode, output) == (130, b"")
        assert errors.split(b"\n") == [
            b"unlost: what came back so far is kept: the same command goes on", b"", b"unlost: interrupted", b"",
        ]  # fmt: skip
        assert not (tmp_path / "o.html").exists()
        # On a busy machine some more queries are sent until the signal is handled.
        before = set(archive.requests)
        assert 20 <= len(before) < 40
        archive.requests.clear()
        done = overlap(tmp_path, "--fetch", "0", "--json")
        assert done.returncode == 0
        assert len(before | set(archive.requests)) == 40
        assert len(before & set(archive.requests)) <= 2, "at most the requests in flight"
    assert json.loads(done.stdout)["held"] == 40


def test_interrupted_live_comparison_resumes(tmp_path: Path) -> None:
    """Live pages are not fetched again."""
    paths = [f"/{number}" for number in range(12)]
    stopping: list[subprocess.Popen[bytes]] = []

    class Stopping(dict[str, ScriptedResponse]):
        """Sends the signal at the seventh page."""

        def get(self, path: str, default: object = None) -> object:  # type: ignore[override]
            if stopping and len(server.requests) == 7:
                stopping.pop().send_signal(signal.SIGINT)
            return super().get(path, default)

    with run_in_background(
        scripted_server({path: ScriptedResponse(headers=HTML, body=WORDS) for path in paths})
    ) as server:
        server.responses = Stopping(server.responses)
        place = tmp_path / "a"
        place.mkdir()
        write(place / "x.warc.gz", *(page(f"{server.base}{path}", "2014-03-20T00:00:00Z") for path in paths))
        (tmp_path / "archives.toml").write_text(
            f'[[archive]]\nid = "a"\nname = "A"\nkind = "files"\nfolder = "{place}"\n'
        )
        (tmp_path / "pages.txt").write_text("".join(f"{server.base}{path}\n" for path in paths))
        command: list[str | Path] = [
            UNLOST, "overlap", "--urls", tmp_path / "pages.txt", "--archives", tmp_path / "archives.toml", "--live",
            "--delay", "0",
        ]  # fmt: skip
        with subprocess.Popen(command, env={"PATH": os.environ["PATH"], **home(tmp_path)}) as process:
            stopping.append(process)
            assert process.wait(60) == 130
        requested = set(server.requests) - {"/robots.txt"}
        server.requests.clear()
        done = overlap(tmp_path, "--live", "--json")
        again = set(server.requests) & requested
    assert done.returncode == 0
    assert len(again) <= 4, "at most the requests in flight"
    assert json.loads(done.stdout)["archives"][0]["live"]["replicated"] == 12


def test_throttling_live_site_is_deferred(tmp_path: Path) -> None:
    """The exit code is 4, and the next run fetches only that page; an unreachable host is not live."""
    with run_in_background(scripted_server({"/busy": ScriptedResponse(503, {"retry-after": "3600"})})) as server:
        uris = [f"{server.base}/busy", "http://127.0.0.2:9/"]
        (tmp_path / "a").mkdir()
        write(tmp_path / "a" / "x.warc.gz", *(page(uri, "2014-03-20T00:00:00Z") for uri in uris))
        (tmp_path / "archives.toml").write_text(
            f'[[archive]]\nid = "a"\nname = "A"\nkind = "files"\nfolder = "{tmp_path / "a"}"\n'
        )
        (tmp_path / "pages.txt").write_text("\n".join(uris) + "\n")
        first = overlap(tmp_path, "--live", "--json")
        server.responses["/busy"] = ScriptedResponse(headers=HTML)
        server.requests.clear()
        second = overlap(tmp_path, "--live", "--json")
    assert (first.returncode, b"left to ask: 1 question: the same command" in first.stderr) == (4, True)
    live = json.loads(first.stdout)["archives"][0]["live"]
    assert (live["unseen"], live["silent"], live["endangered"]) == ({"told-to-wait": 1}, 1, 1)
    assert second.returncode == 0
    assert server.requests == ["/robots.txt", "/busy"], "no page is fetched twice"
    assert json.loads(second.stdout)["archives"][0]["live"]["replicated"] == 1
