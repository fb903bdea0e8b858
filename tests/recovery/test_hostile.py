"""Hostile archives and folders: nothing outside the target is written, limits hold, and the run ends."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path

import pytest
from aiohttp import web

from tests.external.wayback_cdx import FakeWayback, StoredCapture
from tests.recovery.archives import digest_of
from tests.recovery.command import Command
from tests.recovery.recovery_output import read_warcs, summary, warc_files
from tests.recovery.sample_site import SiteArchives, serve_archives
from tests.recovery.site import ROOT, Site

_BOMB = gzip.compress(bytes(1 << 20), 9) * 1024  # a gigabyte in one megabyte
_MEMORY = 2 << 30  # bytes of address space: several times the usual size
_LONG = "x" * 10_000


def page(
    path: str, *links: str, date: str = "20100101000000", mime: str = "text/html", body: bytes = b""
) -> StoredCapture:
    """Return a capture of a page with these links."""
    content = body or f"<p>{path[:50]}</p>".encode() + b"".join(
        f'<a href="{escape(link)}">x</a><img src="{escape(link)}">'.encode() for link in links
    )
    return StoredCapture(ROOT.rstrip("/") + path, date, content, mime, digest=digest_of(content).removeprefix("sha1:"))


@dataclass
class Hostile(FakeWayback):
    """An archive that generates pages on request.

    endless: Returns a capture of a URL, or None.
    """

    endless: Callable[[str], StoredCapture | None] = field(default=lambda _: None)

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Respond to a request; `huge.bin` announces four gigabytes and ends after some bytes."""
        if "huge.bin" in request.raw_path and request.raw_path.startswith("/web/"):
            return await self._huge(request)
        return await super().handle(request)

    async def _huge(self, request: web.BaseRequest) -> web.Response:
        transport = request.transport
        assert transport is not None
        head = "HTTP/1.1 200 OK\r\nMemento-Datetime: Fri, 01 Jan 2010 00:00:00 GMT\r\n"
        transport.write(f"{head}Content-Type: image/png\r\nContent-Length: {4 << 30}\r\n\r\n".encode() + bytes(1 << 16))
        transport.close()
        return web.Response()

    def _index(self, query: dict[str, str]) -> web.Response:
        generated = self.endless(query["url"]) if query.get("matchType") == "exact" else None
        before = self.captures
        self.captures = [*before, generated] if generated else before
        try:
            return super()._index(query)
        finally:
            self.captures = before

    def _captures_of(self, url: str) -> list[StoredCapture]:
        found = super()._captures_of(url)
        generated = self.endless(url)
        return found or ([generated] if generated else [])


@contextmanager
def hostile(
    folder: Path, *stored: StoredCapture, endless: Callable[[str], StoredCapture | None] | None = None
) -> Iterator[tuple[SiteArchives, Command]]:
    """Run the archive; yield it and a new recovery in a folder to watch."""
    archive = Hostile(list(stored), endless=endless or (lambda _: None))
    with serve_archives(Site(), {"a": archive}) as archives:
        place = folder / "watched"
        place.mkdir()
        yield archives, Command(archives.registry(folder), place / "lost.recovery", folder / "home")


def snapshot_folder(folder: Path, *, without: str = "") -> dict[str, bytes | str]:
    """Return everything in a folder, with its bytes or link target."""
    return {
        str(path.relative_to(folder)): f"-> {path.readlink()}" if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if (path.is_symlink() or path.is_file()) and path.relative_to(folder).parts[0] != without
    }


def files_around(command: Command) -> dict[str, bytes | str]:
    """Return the files next to a recovery, except for its summary."""
    return {
        name: data
        for name, data in snapshot_folder(command.folder.parent, without=command.folder.name).items()
        if name != command.summary.name
    }


LINKS = (
    "../../../../../../etc/passwd", "/..%2f..%2f..%2foutside.html", "/%2e%2e/%2e%2e/outside.html", "file:///etc/passwd",
    "..\\..\\outside.html", "\\\\server\\share\\outside.html", "/./.././outside.html", "C:\\outside.html", "/con",
    "/nul%00.html", "/a\tb\nc.html", "/tab%09line%0A.html", f"/{_LONG}", f"/deep{'/a' * 3_000}", "/" + "é" * 2_000,
    f"?{_LONG}={_LONG}", "//", "///outside.html", "http://", "http:///x", "http://[", "http://lost.example:99999/",
    "http://user:password@lost.example/secret.html", "http://lost.example@evil.example/", "data:text/html,x",
    "javascript:alert(1)", "/state.sqlite", "/warc/unlost-00001.warc.gz", "/$(touch outside)", "/;touch outside",
)  # fmt: skip
HELD = (
    "/../../outside.html", "/%2e%2e/%2e%2e/outside-2.html", "/..%2f..%2foutside-3.html", "/con", "/nul%00.html",
    "/tab%09line%0A.html", f"/{_LONG}", "/state.sqlite", "/warc/unlost-00001.warc.gz", "/$(touch outside)",
)  # fmt: skip


@pytest.mark.parametrize("policy", ["naive", "knowledgeable", "exhaustive"])
def test_hostile_urls_do_not_escape_the_target(policy: str, tmp_path: Path) -> None:
    """Whatever URLs pages link to and archives list, all output is in the target, and every line is valid."""
    with hostile(tmp_path, page("/", *LINKS), *(page(path) for path in HELD)) as (archives, command):
        done = command.run(ROOT, "--policy", policy)
        assert done.code in (0, 4), done.stderr
        assert files_around(command) == {}
        assert {path.name for path in tmp_path.iterdir()} == {"watched", "archives.toml", "home"}
        assert all(path.name.startswith("unlost-") for path in warc_files(command.folder))
        assert len(summary(command.summary)) >= 1  # which reads every line
        read_warcs(command.folder)
        assert not [
            path for _, path in archives.requests if "evil.example" in path or "file:" in path or "password" in path
        ]
        names = [path for path in command.folder.rglob("*") if "outside" in path.name or "passwd" in path.name]
        assert names == []


def test_only_archives_receive_requests(tmp_path: Path) -> None:
    """Requisites and redirects to local or live hosts are requested from archives only."""
    with serve_archives(Site(), {"inside": FakeWayback([])}) as inside:
        secret = f"{inside.archives['inside'].fake.base}/secret.gif"
        moved = replace(page("/moved.html"), statuscode=302, location=secret)
        with hostile(tmp_path, page("/", secret, "/moved.html"), moved) as (_, command):
            assert command.run(ROOT, "--page-requisites").code in (0, 4)
        assert inside.requests == []


def test_too_large_captures_are_skipped(tmp_path: Path) -> None:
    """Announced gigabytes and decompression bombs are skipped, and all other pages are recovered."""
    links = ("/huge.bin", "/bomb.html", "/small.html")
    bomb = replace(page("/bomb.html", body=_BOMB), coding="gzip")
    robots = page("/robots.txt", mime="text/plain", body=f"Sitemap: {ROOT}map.xml.gz\n".encode())
    sitemap = page("/map.xml.gz", mime="application/x-gzip", body=_BOMB)
    held = (page("/", *links), bomb, page("/small.html"), page("/huge.bin", mime="image/png"), robots, sitemap)
    with hostile(tmp_path, *held) as (archives, command):
        done = command.run(ROOT, before=("prlimit", f"--as={_MEMORY}", "--"))
        assert done.code in (0, 4), done.stderr
        requested = {path.rpartition("/")[2] for _, path in archives.replays()}
        assert requested >= {"huge.bin", "bomb.html", "small.html", "robots.txt", "map.xml.gz"}
        found = {line.uri: line.is_missing for line in summary(command.summary)}
        assert found[f"{ROOT}small.html"] is False
        assert found.get(f"{ROOT}huge.bin", True)
        assert sum(path.stat().st_size for path in warc_files(command.folder)) < 300 << 20
        assert files_around(command) == {}


def _number(url: str, before: str) -> int | None:
    digits = url.partition(before)[2].strip("/").partition("/")[0]
    return int(digits) if digits.isdecimal() else None


def _calendar(before: str, after: str = "") -> Callable[[str], StoredCapture | None]:
    """Return a generator of pages, one for each day, with links to the next days."""

    def day(url: str) -> StoredCapture | None:
        number = _number(url, before)
        return (
            None
            if number is None
            else page(f"{before}{number}{after}", *(f"{before}{number + i}{after}" for i in (1, 2)))
        )

    return day


def _deeper(url: str) -> StoredCapture | None:
    path = url.partition("lost.example")[2]
    return page(path, f"{path.rstrip('/')}/a/b/") if path.startswith("/a/b") else None


def _redirects(url: str) -> StoredCapture | None:
    number = _number(url, "/r/")
    return None if number is None else replace(page(f"/r/{number}"), statuscode=301, location=f"/r/{number + 1}")


ENDLESS = {
    "days in the query": (_calendar("/calendar?day="), "/calendar?day=1"),
    "days in the path": (_calendar("/calendar/", "/"), "/calendar/1/"),
    "folders in folders": (_deeper, "/a/b/"),
    "redirects": (_redirects, "/r/1"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if "days" in name else []) for name in ENDLESS]
)
def test_endless_site_is_bounded(name: str, tmp_path: Path) -> None:
    """An endless site is abandoned after some thousand pages, and all other pages are recovered."""
    endless, first = ENDLESS[name]
    with hostile(tmp_path, page("/", first, "/last.html"), page("/last.html"), endless=endless) as (archives, command):
        done = command.run(ROOT, "--policy", "naive", "--connections", "20", timeout=240)
        assert done.code in (0, 4), done.stderr
        assert 8 < len(archives.requests) < 12_000
        assert f"{ROOT}last.html" in {line.uri for line in summary(command.summary) if not line.is_missing}


def test_circular_redirects_are_requested_once(tmp_path: Path) -> None:
    """Circular redirects and a long chain are requested once each."""
    chain = [replace(page(f"/chain/{n}"), statuscode=302, location=f"/chain/{n + 1}") for n in range(300)]
    circle = [replace(page(f"/{a}"), statuscode=302, location=f"/{b}") for a, b in (("ping", "pong"), ("pong", "ping"))]
    held = (page("/", "/ping", "/chain/0"), *chain, page("/chain/300"), *circle)
    with hostile(tmp_path, *held) as (archives, command):
        done = command.run(ROOT)
        assert done.code in (0, 4), done.stderr
        requested = [path for _, path in archives.replays()]
        assert len(requested) == len(set(requested)) <= len(held)


PLANTED = {
    "the folder of WARCs": ("warc", True),
    "the state": ("state.sqlite", False),
    "a WARC": ("warc/unlost-00001.warc.gz", False),
    "an open WARC": ("warc/unlost-00001.warc.gz.open", False),
}


@pytest.mark.parametrize("is_there", [True, False], ids=["to something", "to nothing"])
@pytest.mark.parametrize("name", list(PLANTED))
def test_symbolic_links_in_the_target_are_refused(name: str, is_there: bool, tmp_path: Path) -> None:
    """A symbolic link in place of a file of the recovery is refused, and its target is not changed."""
    place, is_folder = PLANTED[name]
    with hostile(tmp_path, page("/", "/one.html"), page("/one.html")) as (_, command):
        victim = command.folder.parent / "victim"
        if is_there and is_folder:
            victim.mkdir()
            (victim / "precious").write_text("mine")
        elif is_there:
            victim.write_text("mine")
        link = command.folder / place
        link.parent.mkdir(parents=True)
        link.symlink_to(victim)
        before = files_around(command)
        done = command.run(ROOT)
        assert done.code in (2, 3), done.stderr
        assert place.partition("/")[0] in done.stderr
        assert files_around(command) == before
        assert victim.exists() == is_there
        assert link.is_symlink()
