"""Cost of a cached response, relative to a bare Starlette route: both in this process, in CPU time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from bench.measure import Report
from unlost.aggregate import AggregateResult, ArchiveReport, ArchiveStatus, CacheControl, RoutingOptions
from unlost.clock import SystemClock
from unlost.http import ArchiveHttpClient, MemoryLimitStore
from unlost.memento import Mementos, MementoTuple
from unlost.web import Application, ReplaySource, ServiceContext

CALLS = 5_000
RUNS = 7
COPIES = 100

_Message = MutableMapping[str, Any]
_App = Callable[[_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]]


class CachedSource:
    """A source whose result is always cached."""

    def __init__(self) -> None:
        rows = [MementoTuple(f"20{n // 12:02d}{n % 12 + 1:02d}01000000", "a", f"http://a/{n}") for n in range(COPIES)]
        now = SystemClock().now()
        reports = tuple(ArchiveReport(f"archive-{n}", "routed", "hit" if n == 1 else "miss") for n in range(14))
        self._found = AggregateResult(
            "http://example.com/", Mementos(rows), reports, (), now, now + 3_600, from_cache=True
        )
        self._cached = {(self._found.uri, RoutingOptions()): self._found}

    def get_cached(self, uri: str, wish: RoutingOptions) -> AggregateResult | None:
        """Return the cached result."""
        return self._cached.get((uri, wish))

    async def find(
        self,
        uri: str,
        wish: RoutingOptions = RoutingOptions(),  # noqa: B008
        freshness: CacheControl = CacheControl(),  # noqa: B008
    ) -> AggregateResult:
        """Return the result."""
        del uri, wish, freshness
        return self._found

    def archive_statuses(self) -> list[ArchiveStatus]:
        """Return nothing."""
        return []


def scope(path: str) -> _Message:
    """Return the ASGI scope of a request with the headers of a browser."""
    headers = {"host": "localhost:1208", "user-agent": "x", "accept": "*/*", "accept-encoding": "gzip", "dnt": "1"}
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "state": {},
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 1208), "client": ("127.0.0.1", 50_000),
    }  # fmt: skip


async def cpu_of(app: _App, path: str) -> float:
    """Return the CPU seconds of one call."""

    async def receive() -> _Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: _Message) -> None:
        del message

    begin = time.process_time()
    for _ in range(CALLS):
        await app(scope(path), receive, send)
    return (time.process_time() - begin) / CALLS


async def measure() -> dict[str, float]:
    """Return the CPU microseconds of each app: the best of interleaved runs."""

    async def bare(_: Request) -> PlainTextResponse:
        return PlainTextResponse("x" * 10_000)

    clock, source = SystemClock(), CachedSource()
    service = Application(
        ServiceContext(source, ReplaySource([], ArchiveHttpClient(MemoryLimitStore(), clock)), source, clock)
    )
    apps: dict[str, tuple[_App, str]] = {
        "bare Starlette route": (Starlette(routes=[Route("/timemap/{rest:path}", bare)]), "/timemap/link/x"),
        "/timemap/link": (service, "/timemap/link/http://example.com/"),
        "/timemap/json": (service, "/timemap/json/http://example.com/"),
        "/timegate": (service, "/timegate/http://example.com/"),
    }
    best = dict.fromkeys(apps, float("inf"))
    for _ in range(RUNS):
        for name, (app, path) in apps.items():
            best[name] = min(best[name], await cpu_of(app, path) * 1e6)
    return best


def main() -> None:
    """Measure and write the report."""
    report = Report("service", "The web service")
    costs = asyncio.run(measure())
    report.line(f"CPU of one answer, called in this process, best of {RUNS} runs of {CALLS}; {COPIES} copies, kept.")
    report.line("")
    report.line("| answer | µs |")
    report.line("|---|---|")
    for name, cost in costs.items():
        report.line(f"| {name} | {cost:.1f} |")
    report.line("")
    ratio = max(costs["/timemap/link"], costs["/timemap/json"]) / costs["bare Starlette route"]
    report.gate("a TimeMap that is kept to a bare Starlette route", ratio, at_most=2.0)
    report.finish()


if __name__ == "__main__":
    main()
