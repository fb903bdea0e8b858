"""A service with fixed results, run as a process of its own: `python -m tests.web.fixed_results PORT`."""

import asyncio
import io
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import uvloop

from unlost import uri as uris
from unlost.aggregate import AggregateResult, ArchiveReport, ArchiveStatus, CacheControl, RoutingOptions
from unlost.archives import FetchedCapture
from unlost.capture import Capture
from unlost.clock import SystemClock
from unlost.errors import BusyError, FailedError, NotKeptError, NotNowError, UsageError
from unlost.memento import Mementos, MementoTuple
from unlost.registry import Archive, ArchiveKind
from unlost.web import EventStream, Metrics, MetricsListener, ReloadableApplication, ServiceContext, server
from unlost.web import server as web_server

if TYPE_CHECKING:
    from unlost.web import ReplaySource

EVIL_NAME = "<img src=x onerror=\"document.title='owned'\">"
ARCHIVES = (
    Archive("a.org", "Archive A", ArchiveKind.MEMENTO, timemap="http://a.org/timemap/"),
    Archive("b.org", "Archive B", ArchiveKind.MEMENTO, timemap="http://b.org/timemap/"),
    Archive("evil.org", EVIL_NAME, ArchiveKind.MEMENTO, timemap="http://evil.org/timemap/", enabled=False),
)
HEAD_SECONDS = 4.0
PAGE = "http://example.com/"
DATES = ("19960101040926", "20020120142510", "20140210000001", "20201231235959")


def mementos_of(page: str) -> tuple[MementoTuple, ...]:
    """Return four mementos of a page in two archives, by date."""
    return tuple(
        MementoTuple(date, archive, f"http://{archive}/web/{date}/{page}")
        for date, archive in zip(DATES, ("a.org", "b.org", "a.org", "b.org"), strict=True)
    )


NOISY = "http://noisy.example/"
HIT = ArchiveReport("a.org", "routed", "hit", 2, 12.5)
LATE = ArchiveReport("b.org", "broadcast", "timeout", 0, 10_000.0, "not answered within 10 s")
LIMITED = ArchiveReport("a.org", "routed", "not-now", 0, 0.1, "a.org: not queried before tomorrow: its rate is used up")
RETRY = {"http://limited.example/": 20.0, "http://due.example/": -3.0}
"""Seconds until an archive admits requests for a page again."""
PAGES: dict[str, tuple[tuple[MementoTuple, ...], tuple[ArchiveReport, ...]]] = {
    PAGE: (mementos_of(PAGE), (HIT, ArchiveReport("b.org", "routed", "hit", 2, 7.0))),
    NOISY: ((), (ArchiveReport("x" * 8_000, "routed", "miss"),)),
    "http://one.example/": (mementos_of("http://one.example/")[:1], (HIT,)),
    "http://slow.example/": (mementos_of("http://slow.example/"), (HIT,)),
    "http://partly.example/": (mementos_of("http://partly.example/")[::2], (HIT, LATE)),
    "http://failed.example/": ((), (ArchiveReport("a.org", "routed", "miss"), LATE)),
    "http://limited.example/": ((), (LIMITED, LATE)),
    "http://due.example/": ((), (LIMITED,)),
    "http://evil.example/": (
        (
            MementoTuple("20140101000000", "evil.org", "javascript:document.title='owned'"),
            MementoTuple("20150101000000", "evil.org", "http://evil.org/\"><script>document.title='owned'</script>"),
            MementoTuple("20160101000000", "evil.org", "http://evil.org/\r\nX-Injected: yes/ü"),
        ),
        (HIT,),
    ),
    "http://file.example/": (
        (
            MementoTuple("20140101000000", "a.org", "file:a.warc.gz#7-99"),
            MementoTuple("20150101000000", "b.org", "https://b.org/x.warc.gz#7-99"),
            MementoTuple("20160101000000", "b.org", "https://b.org/2016/http://file.example/"),
        ),
        (HIT,),
    ),
    "http://future.example/": (
        tuple(
            MementoTuple(date, "a.org", f"http://a.org/web/{date}/http://future.example/")
            for date in ("20140210000001", "20201231235959", "20990101000000", "99991231235959")
        ),
        (HIT,),
    ),
    "http://many.example/": (
        tuple(
            MementoTuple(
                f"20{n // 12 % 20:02d}{n % 12 + 1:02d}{n // 240 % 28 + 1:02d}000000", "a.org", f"http://a.org/{n}"
            )
            for n in range(3_000)
        ),
        (HIT,),
    ),
}


class FixedResults:
    """A finder with fixed results; all other pages are not archived."""

    def __init__(self, listener: MetricsListener) -> None:
        self._listener = listener
        self._cached: dict[tuple[str, RoutingOptions], AggregateResult] = {}

    def get_cached(self, uri: str, wish: RoutingOptions) -> AggregateResult | None:
        """Return an earlier result."""
        found = self._cached.get((uri, wish))
        return None if found is None else replace(found, from_cache=True)

    async def find(
        self,
        uri: str,
        wish: RoutingOptions = RoutingOptions(),  # noqa: B008
        freshness: CacheControl = CacheControl(),  # noqa: B008
    ) -> AggregateResult:
        """Return the fixed result, restricted to the requested archives."""
        uris.key(uri)
        if unknown := (wish.archives or frozenset()) - {each.id for each in ARCHIVES}:
            raise UsageError(f"no archive `{min(unknown)[:100]}` in the registry. There are a.org, b.org, evil.org")
        cached = self.get_cached(uri, wish)
        if cached is not None and not freshness.no_cache:
            return cached
        if freshness.only_if_cached:
            raise NotKeptError("no archive was to be asked, and nothing was kept")
        if uri == "http://busy.example/":
            raise BusyError("too many pages are being looked for", 4.2)
        if uri == "http://broken.example/":
            raise RuntimeError("planted")
        if uri == "http://slow.example/":
            await asyncio.sleep(1.5)
        retry_at = SystemClock().now() + RETRY[uri] if uri in RETRY else None
        rows, reports = PAGES.get(
            uri if uri.count("/") > 2 else f"{uri}/", ((), (ArchiveReport("a.org", "routed", "miss"),))
        )
        chosen = [row for row in rows if wish.archives is None or row.archive in wish.archives]
        now = SystemClock().now()
        until = now + (60 if chosen else 30)
        found = AggregateResult(uri, Mementos(chosen), reports, ("evil.org",), now, until, retry_at=retry_at)
        self._cached[uri, wish] = found
        self._listener.on_result(found)
        return found

    def archive_statuses(self) -> list[ArchiveStatus]:
        """Return the statuses of the archives."""
        first, second, third = ARCHIVES
        made = 1_700_000_000.0
        return [
            ArchiveStatus(
                first,
                True,
                "its map says so",
                has_map=True,
                map_created=made,
                routed=10,
                routed_hits=9,
                explored=5,
                explored_hits=1,
            ),
            ArchiveStatus(second, True, "its hit rate is 5 %", "dormant", SystemClock().now() + 500, hit_rate=0.05),
            ArchiveStatus(third, False, "disabled: queried only if named"),
        ]


class FixedCaptures:
    """Captures of the fixed pages."""

    @asynccontextmanager
    async def open_capture(self, uri: str, memento: MementoTuple) -> AsyncIterator[FetchedCapture | None]:
        """Yield a capture, or fail in one of the ways in which archives fail."""
        if "nocopy" in uri:
            yield None
            return
        if "notnow" in uri:
            raise NotNowError("its limits are used up", memento.archive, SystemClock().now() + 30, "rate")
        if "broke" in uri:
            raise FailedError("the connection broke", memento.archive, "reset")
        capture = Capture(uri, uris.key(uri), memento.datetime, 200, "text/html", urim=memento.uri)
        headers = (
            ("Content-Type", "text/html; charset=x-odd"),
            ("Set-Cookie", "a=b"),
            ("Connection", "close"),
            ("Content-Encoding", "gzip"),
        )
        if "moved" in uri:
            capture = replace(capture, status=301, redirect="http://elsewhere.example/%2F\r\nX-Injected: yes")
        yield FetchedCapture(capture, headers, io.BytesIO(b"<script>alert(1)</script>" + b"x" * 300_000))


for _name in ("nocopy", "notnow", "broke", "moved"):
    PAGES[f"http://{_name}.example/"] = (mementos_of(f"http://{_name}.example/"), (HIT,))


async def main(port: int, published: Path | None) -> None:
    """Serve until a signal arrives."""
    web_server._HEAD_SECONDS = HEAD_SECONDS  # shorter for tests
    web_server._STALLED_SECONDS = float(os.environ.get("STALLED_SECONDS", "60"))
    metrics, monitor = Metrics(), EventStream(heartbeat=0.2)
    finds = FixedResults(MetricsListener(metrics, monitor))
    parts = ServiceContext(
        finds, cast("ReplaySource", FixedCaptures()), finds, SystemClock(), metrics, monitor, published_map=published
    )  # fmt: skip
    with server.listen("127.0.0.1", port) as listening:
        async with ReloadableApplication(lambda _: nullcontext(parts), 5.0, print) as application:
            await server.serve(application, listening, lambda: None, 5.0)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None))
