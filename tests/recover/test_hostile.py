"""Archives and folders that mean harm: nothing outside of the target is written, limits hold, and the run ends."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path

import pytest
from aiohttp import web

from tests.neighbours.wayback_cdx import FakeWayback, Stored
from tests.recover.archives import digest_of
from tests.recover.command import Command
from tests.recover.reading import files, kept, summary
from tests.recover.site import ROOT, Site
from tests.recover.village import Village, serving

_BOMB = gzip.compress(bytes(1 << 20), 9) * 1024  # a gigabyte in one megabyte
_MEMORY = 2 << 30  # bytes of address space, which is several times what is used
_LONG = "x" * 10_000


def page(path: str, *links: str, date: str = "20100101000000", mime: str = "text/html", body: bytes = b"") -> Stored:
    """Return a capture of a page with these links."""
    told = body or f"<p>{path[:50]}</p>".encode() + b"".join(
        f'<a href="{escape(link)}">x</a><img src="{escape(link)}">'.encode() for link in links
    )
    return Stored(ROOT.rstrip("/") + path, date, told, mime, digest=digest_of(told).removeprefix("sha1:"))


@dataclass
class Hostile(FakeWayback):
    """An archive that makes up more pages as it is asked for them.

    endless: gives a capture of an address, or None.
    """

    endless: Callable[[str], Stored | None] = field(default=lambda _: None)

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Answer one request; a page that is called huge says that it has four gigabytes, and ends after a few."""
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
        made_up = self.endless(query["url"]) if query.get("matchType") == "exact" else None
        before = self.stored
        self.stored = [*before, made_up] if made_up else before
        try:
            return super()._index(query)
        finally:
            self.stored = before

    def _copies(self, address: str) -> list[Stored]:
        found = super()._copies(address)
        made_up = self.endless(address)
        return found or ([made_up] if made_up else [])


@contextmanager
def hostile(
    folder: Path, *stored: Stored, endless: Callable[[str], Stored | None] | None = None
) -> Iterator[tuple[Village, Command]]:
    """Run such an archive; yield it and a new recovery from it, in a folder of its own in a folder to watch."""
    archive = Hostile(list(stored), endless=endless or (lambda _: None))
    with serving(Site(), {"a": archive}) as village:
        place = folder / "watched"
        place.mkdir()
        yield village, Command(village.registry(folder), place / "lost.recovery", folder / "home")


def listing(folder: Path, *, without: str = "") -> dict[str, bytes | str]:
    """Return everything in a folder, with its bytes or where it links to."""
    return {
        str(path.relative_to(folder)): f"-> {path.readlink()}" if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if (path.is_symlink() or path.is_file()) and path.relative_to(folder).parts[0] != without
    }


def around(command: Command) -> dict[str, bytes | str]:
    """Return what is beside a recovery, but for its summary."""
    return {
        name: data
        for name, data in listing(command.folder.parent, without=command.folder.name).items()
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
def test_addresses_lead_nowhere_else(policy: str, tmp_path: Path) -> None:
    """Whatever pages link to and lists name: all that is written is in the target, and every line is a line."""
    with hostile(tmp_path, page("/", *LINKS), *(page(path) for path in HELD)) as (village, command):
        done = command.run(ROOT, "--policy", policy)
        assert done.code in (0, 4), done.said
        assert around(command) == {}
        assert {path.name for path in tmp_path.iterdir()} == {"watched", "archives.toml", "home"}
        assert all(path.name.startswith("unlost-") for path in files(command.folder))
        assert len(summary(command.summary)) >= 1  # which reads every line
        kept(command.folder)
        assert not [
            path for _, path in village.asked if "evil.example" in path or "file:" in path or "password" in path
        ]
        names = [path for path in command.folder.rglob("*") if "outside" in path.name or "passwd" in path.name]
        assert names == []


def test_nobody_but_archives_is_asked(tmp_path: Path) -> None:
    """Pages of this machine and of the live web are asked for in archives only, also as requisites and redirects."""
    with serving(Site(), {"inside": FakeWayback([])}) as inside:
        secret = f"{inside.archives['inside'].fake.base}/secret.gif"
        moved = replace(page("/moved.html"), statuscode=302, location=secret)
        with hostile(tmp_path, page("/", secret, "/moved.html"), moved) as (_, command):
            assert command.run(ROOT, "--page-requisites").code in (0, 4)
        assert inside.asked == []


def test_what_is_too_large_is_left(tmp_path: Path) -> None:
    """Four gigabytes that are only announced, and bombs as a page and as a sitemap, end, and all else comes."""
    links = ("/huge.bin", "/bomb.html", "/small.html")
    bomb = replace(page("/bomb.html", body=_BOMB), coding="gzip")
    robots = page("/robots.txt", mime="text/plain", body=f"Sitemap: {ROOT}map.xml.gz\n".encode())
    sitemap = page("/map.xml.gz", mime="application/x-gzip", body=_BOMB)
    held = (page("/", *links), bomb, page("/small.html"), page("/huge.bin", mime="image/png"), robots, sitemap)
    with hostile(tmp_path, *held) as (village, command):
        done = command.run(ROOT, before=("prlimit", f"--as={_MEMORY}", "--"))
        assert done.code in (0, 4), done.said
        asked = {path.rpartition("/")[2] for _, path in village.replays()}
        assert asked >= {"huge.bin", "bomb.html", "small.html", "robots.txt", "map.xml.gz"}
        found = {line.uri: line.is_missing for line in summary(command.summary)}
        assert found[f"{ROOT}small.html"] is False
        assert found.get(f"{ROOT}huge.bin", True)
        assert sum(path.stat().st_size for path in files(command.folder)) < 300 << 20
        assert around(command) == {}


def _number(address: str, before: str) -> int | None:
    digits = address.partition(before)[2].strip("/").partition("/")[0]
    return int(digits) if digits.isdecimal() else None


def _calendar(before: str, after: str = "") -> Callable[[str], Stored | None]:
    """Return what makes up a page for each day, with links to the next days, for ever."""

    def day(address: str) -> Stored | None:
        number = _number(address, before)
        return (
            None
            if number is None
            else page(f"{before}{number}{after}", *(f"{before}{number + i}{after}" for i in (1, 2)))
        )

    return day


def _deeper(address: str) -> Stored | None:
    path = address.partition("lost.example")[2]
    return page(path, f"{path.rstrip('/')}/a/b/") if path.startswith("/a/b") else None


def _redirects(address: str) -> Stored | None:
    number = _number(address, "/r/")
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
def test_what_has_no_end_ends(name: str, tmp_path: Path) -> None:
    """A site that goes on for ever is left after some thousand pages, and all else comes; the reason is said."""
    endless, first = ENDLESS[name]
    with hostile(tmp_path, page("/", first, "/last.html"), page("/last.html"), endless=endless) as (village, command):
        done = command.run(ROOT, "--policy", "naive", "--connections", "20", timeout=240)
        assert done.code in (0, 4), done.said
        assert 8 < len(village.asked) < 12_000
        assert f"{ROOT}last.html" in {line.uri for line in summary(command.summary) if not line.is_missing}


def test_redirects_in_a_circle_end(tmp_path: Path) -> None:
    """Two pages that redirect to each other, and a long chain, are each asked for once."""
    chain = [replace(page(f"/chain/{n}"), statuscode=302, location=f"/chain/{n + 1}") for n in range(300)]
    circle = [replace(page(f"/{a}"), statuscode=302, location=f"/{b}") for a, b in (("ping", "pong"), ("pong", "ping"))]
    held = (page("/", "/ping", "/chain/0"), *chain, page("/chain/300"), *circle)
    with hostile(tmp_path, *held) as (village, command):
        done = command.run(ROOT)
        assert done.code in (0, 4), done.said
        asked = [path for _, path in village.replays()]
        assert len(asked) == len(set(asked)) <= len(held)


PLANTED = {
    "the folder of WARCs": ("warc", True),
    "the state": ("state.sqlite", False),
    "a WARC": ("warc/unlost-00001.warc.gz", False),
    "an open WARC": ("warc/unlost-00001.warc.gz.open", False),
}


@pytest.mark.parametrize("is_there", [True, False], ids=["to something", "to nothing"])
@pytest.mark.parametrize("name", list(PLANTED))
def test_links_in_the_target_are_not_followed(name: str, is_there: bool, tmp_path: Path) -> None:
    """A symbolic link where a file of the recovery should be is refused, and what it leads to stays as it is."""
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
        before = around(command)
        done = command.run(ROOT)
        assert done.code in (2, 3), done.said
        assert place.partition("/")[0] in done.said
        assert around(command) == before
        assert victim.exists() == is_there
        assert link.is_symlink()
