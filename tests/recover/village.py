"""A small lost site in two cheap archives, which a test can watch, stop and let hang while a command asks them."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.neighbours.wayback_cdx import FakeWayback, Stored
from tests.recover.archives import digest_of
from tests.recover.aside import aside
from tests.recover.registry import registry
from tests.recover.site import HOST, ROOT, Held, Site, a, html, part
from unlost.registry import Archive, RateLimit, RequestKind

PAGES = 14
FILES = 1 + 2 * PAGES  # the front page, and pages with an image each
NAMES = ("a", "b")


def village(picture: int = 20_000) -> Site:
    """Return a front page, pages with an image each, and one page that nobody has: half of it in each archive.

    picture: bytes of an image.
    """
    site, noise = Site(), random.Random(4)  # noqa: S311
    pages = [f"/{number}.html" for number in range(PAGES)]
    front = (*(a(path) for path in pages), a("/nowhere.html"))
    site.add(HOST, Held("a", "20100101000000", ROOT, html("The village", *front), refs=front))
    for number, path in enumerate(pages):
        archive, image = NAMES[number % 2], f"/{number}.gif"
        refs = (part(image),)
        body = html(f"Page {number}", *refs, text="<p>words</p>" * 50)
        uri = ROOT.rstrip("/")
        site.add(f"{HOST}{path}", Held(archive, f"201101010000{number:02}", uri + path, body, refs=refs))
        gif = b"GIF89a" + noise.randbytes(picture)
        site.add(
            f"{HOST}{image}",
            Held(NAMES[number // 2 % 2], f"201102010000{number:02}", uri + image, gif, "image/gif"),
        )
    site.add(f"{HOST}/nowhere.html")
    return site


def stored(held: Held) -> Stored:
    """Return a capture as the fake archive has it."""
    digest = digest_of(held.body).removeprefix("sha1:")
    return Stored(held.uri, held.date, held.body, held.mime, held.status, digest, held.location)


@dataclass
class Watched:
    """A fake archive that somebody watches.

    host: the address to listen on.
    watch: is called before each answer with how many requests all archives have had; it may block.
    is_dead: whether it breaks every connection and refuses new ones. hangs: whether it answers nothing.
    fails: part of the path of requests to which it responds with 500.
    """

    name: str
    fake: FakeWayback
    village: "Village"
    host: str = "127.0.0.1"
    is_dead: bool = False
    hangs: bool = False
    fails: str = ""
    port: int = 0
    _runner: web.ServerRunner | None = None
    _site: web.TCPSite | None = None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, or not."""
        self.village.asked.append((self.name, request.raw_path))
        if self.village.watch is not None:
            self.village.watch(len(self.village.asked))
        while self.hangs and request.transport is not None and not request.transport.is_closing():
            await asyncio.sleep(0.02)
        if self.is_dead and request.transport is not None:
            await self.shut()
            request.transport.abort()
        if self.fails and self.fails in request.raw_path:
            return web.Response(status=500)
        return await self.fake.handle(request)

    async def open(self) -> None:
        """Listen, on the same port as before if there was one."""
        if self._runner is None:
            self._runner = web.ServerRunner(web.Server(self.handle, keepalive_timeout=5))
            await self._runner.setup()
        self._site = web.TCPSite(self._runner, self.host, self.port, reuse_address=True)
        await self._site.start()
        self.port = self.port or self._runner.addresses[0][1]
        self.fake.base = f"http://{self.host}:{self.port}"

    async def shut(self) -> None:
        """Refuse connections."""
        if self._site is not None:
            site, self._site = self._site, None
            await site.stop()

    async def end(self) -> None:
        """Be gone."""
        self.hangs = False
        if self._runner is not None:
            await self._runner.cleanup()


@dataclass
class Village:
    """The running archives.

    asked: the archive and the path of every request, in order.
    """

    site: Site
    archives: dict[str, Watched] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    watch: Callable[[int], None] | None = None
    loop: asyncio.AbstractEventLoop | None = None

    def entries(self, quota: int | None = None) -> list[Archive]:
        """Return what a registry says. quota: of the first archive, how many copies it gives in a day."""
        found = [replace(each.fake.archive(), id=name, name=name) for name, each in self.archives.items()]
        if quota is not None:
            limit = RateLimit(quota, 86_400, (RequestKind.REPLAY,), "what the test says")
            found[0] = replace(found[0], quotas=(limit,))
        return found

    def registry(self, folder: Path, quota: int | None = None) -> Path:
        """Write a registry."""
        return registry(folder / "archives.toml", *self.entries(quota))

    def replays(self) -> list[tuple[str, str]]:
        """Return the requests for copies."""
        return [(name, path) for name, path in self.asked if path.startswith("/web/") and "/timemap/" not in path]

    def do(self, task: Coroutine[Any, Any, None]) -> None:
        """Do something in the archives' own thread."""
        assert self.loop is not None
        asyncio.run_coroutine_threadsafe(task, self.loop).result(30)

    def when(self, number: int, act: Callable[[], object]) -> threading.Event:
        """Do something once, when so many more requests have come; return what is set then."""
        end, done = len(self.asked) + number, threading.Event()

        def watch(count: int) -> None:
            if count >= end and not done.is_set():
                done.set()
                act()

        self.watch = watch
        return done


@asynccontextmanager
async def _open(site: Site, fakes: Mapping[str, FakeWayback], host: str) -> AsyncIterator[Village]:
    village_ = Village(site, loop=asyncio.get_running_loop())
    for name, fake in fakes.items():
        village_.archives[name] = Watched(name, fake, village_, host)
    try:
        for archive in village_.archives.values():
            await archive.open()
        yield village_
    finally:
        for archive in village_.archives.values():
            await archive.end()


@contextmanager
def running(site: Site, host: str = "127.0.0.1") -> Iterator[Village]:
    """Run the archives of a small site. host: the address of this machine to listen on."""
    held = {name: [stored(held) for _, held in site.captures() if held.archive == name] for name in NAMES}
    with serving(site, {name: FakeWayback(each) for name, each in held.items()}, host) as found:
        yield found


@contextmanager
def serving(site: Site, fakes: Mapping[str, FakeWayback], host: str = "127.0.0.1") -> Iterator[Village]:
    """Run any archives."""
    with aside(_open(site, fakes, host)) as found:
        yield found
