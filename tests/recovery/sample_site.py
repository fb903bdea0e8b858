"""A small lost site in two fake archives, which a test can observe, stop and block."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.external.wayback_cdx import FakeWayback, StoredCapture
from tests.recovery.archives import digest_of
from tests.recovery.background_server import run_in_background
from tests.recovery.registry import registry
from tests.recovery.site import HOST, ROOT, Held, Site, a, html, part
from unlost.registry import Archive, RateLimit, RequestKind

PAGES = 14
FILES = 1 + 2 * PAGES  # the home page, and pages with an image each
NAMES = ("a", "b")


def sample_site(image_bytes: int = 20_000) -> Site:
    """Return a home page, pages with an image each, and a page without captures: half of it in each archive.

    image_bytes: size of an image.
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
        gif = b"GIF89a" + noise.randbytes(image_bytes)
        site.add(
            f"{HOST}{image}",
            Held(NAMES[number // 2 % 2], f"201102010000{number:02}", uri + image, gif, "image/gif"),
        )
    site.add(f"{HOST}/nowhere.html")
    return site


def to_fake_capture(held: Held) -> StoredCapture:
    """Return a capture in the form of the fake archive."""
    digest = digest_of(held.body).removeprefix("sha1:")
    return StoredCapture(held.uri, held.date, held.body, held.mime, held.status, digest, held.location)


@dataclass
class ControlledArchive:
    """A fake archive under control of a test.

    Attributes:
        host: The address to listen on.
        is_dead: Whether it aborts every connection and refuses new ones.
        hangs: Whether it does not respond.
        fails: Part of the path of requests to which it responds with 500.
    """

    name: str
    fake: FakeWayback
    all_archives: "SiteArchives"
    host: str = "127.0.0.1"
    is_dead: bool = False
    hangs: bool = False
    fails: str = ""
    port: int = 0
    _runner: web.ServerRunner | None = None
    _site: web.TCPSite | None = None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Respond to a request, as far as it is neither dead nor hanging."""
        self.all_archives.requests.append((self.name, request.raw_path))
        if self.all_archives.watch is not None:
            self.all_archives.watch(len(self.all_archives.requests))
        while self.hangs and request.transport is not None and not request.transport.is_closing():
            await asyncio.sleep(0.02)
        if self.is_dead and request.transport is not None:
            await self.stop_listening()
            request.transport.abort()
        if self.fails and self.fails in request.raw_path:
            return web.Response(status=500)
        return await self.fake.handle(request)

    async def open(self) -> None:
        """Listen, on the same port as before if there is one."""
        if self._runner is None:
            self._runner = web.ServerRunner(web.Server(self.handle, keepalive_timeout=5))
            await self._runner.setup()
        self._site = web.TCPSite(self._runner, self.host, self.port, reuse_address=True)
        await self._site.start()
        self.port = self.port or self._runner.addresses[0][1]
        self.fake.base = f"http://{self.host}:{self.port}"

    async def stop_listening(self) -> None:
        """Refuse connections."""
        if self._site is not None:
            site, self._site = self._site, None
            await site.stop()

    async def close(self) -> None:
        """Stop the server."""
        self.hangs = False
        if self._runner is not None:
            await self._runner.cleanup()


@dataclass
class SiteArchives:
    """The running archives.

    Attributes:
        requests: Archive and path of every request, in order.
        watch: Called before each response with the number of requests of all archives; may block.
    """

    site: Site
    archives: dict[str, ControlledArchive] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    watch: Callable[[int], None] | None = None
    loop: asyncio.AbstractEventLoop | None = None

    def entries(self, quota: int | None = None) -> list[Archive]:
        """Return the registry entries. quota: captures per day of the first archive."""
        found = [replace(each.fake.archive(), id=name, name=name) for name, each in self.archives.items()]
        if quota is not None:
            limit = RateLimit(quota, 86_400, (RequestKind.REPLAY,), "what the test says")
            found[0] = replace(found[0], quotas=(limit,))
        return found

    def registry(self, folder: Path, quota: int | None = None) -> Path:
        """Write a registry."""
        return registry(folder / "archives.toml", *self.entries(quota))

    def replays(self) -> list[tuple[str, str]]:
        """Return the requests for captures."""
        return [(name, path) for name, path in self.requests if path.startswith("/web/") and "/timemap/" not in path]

    def run_task(self, task: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the thread of the archives."""
        assert self.loop is not None
        asyncio.run_coroutine_threadsafe(task, self.loop).result(30)

    def call_after(self, number: int, act: Callable[[], object]) -> threading.Event:
        """Call a function once, after a number of further requests; return an event that is set then."""
        end, done = len(self.requests) + number, threading.Event()

        def watch(count: int) -> None:
            if count >= end and not done.is_set():
                done.set()
                act()

        self.watch = watch
        return done


@asynccontextmanager
async def _open(site: Site, fakes: Mapping[str, FakeWayback], host: str) -> AsyncIterator[SiteArchives]:
    archives = SiteArchives(site, loop=asyncio.get_running_loop())
    for name, fake in fakes.items():
        archives.archives[name] = ControlledArchive(name, fake, archives, host)
    try:
        for archive in archives.archives.values():
            await archive.open()
        yield archives
    finally:
        for archive in archives.archives.values():
            await archive.close()


@contextmanager
def serve_site(site: Site, host: str = "127.0.0.1") -> Iterator[SiteArchives]:
    """Run the archives of a small site. host: The local address to listen on."""
    held = {name: [to_fake_capture(held) for _, held in site.captures() if held.archive == name] for name in NAMES}
    with serve_archives(site, {name: FakeWayback(each) for name, each in held.items()}, host) as found:
        yield found


@contextmanager
def serve_archives(site: Site, fakes: Mapping[str, FakeWayback], host: str = "127.0.0.1") -> Iterator[SiteArchives]:
    """Run the given archives."""
    with run_in_background(_open(site, fakes, host)) as found:
        yield found
