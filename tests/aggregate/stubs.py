"""Archives without a network, a fixed router, and an aggregator of them."""

import asyncio
from collections.abc import Callable, Mapping, MutableSequence, Sequence
from typing import Any

from tests.archives.stubs import reply
from tests.virtual_clock import VirtualClock
from unlost import dates
from unlost.aggregate import (
    AggregateResult,
    ArchiveRoute,
    MementoAggregator,
    RouteTarget,
    RoutingOptions,
    UpstreamResult,
)
from unlost.http import HttpRequest, HttpResponse
from unlost.memento import Mementos, MementoTuple
from unlost.registry import Archive, ArchiveKind

PAGE = "http://example.com/page"


async def until(condition: Callable[[], bool]) -> None:
    """Yield to other tasks until a condition holds."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


Behaviour = Sequence[str] | Exception | bytes | HttpResponse | Callable[[HttpRequest], Any]
"""What an archive does: mementos of these dates, an exception, a body, a response, or a function that returns one."""


def make_archive(name: str, **fields: Any) -> Archive:  # noqa: ANN401  those of Archive
    """Return an archive with a TimeMap."""
    return Archive(name, name.upper(), ArchiveKind.MEMENTO, **{"timemap": f"http://{name}.example/list/", **fields})


def mementos_of(archive: str, datetimes: Sequence[str], uri: str = PAGE) -> Mementos:
    """Return the mementos of an archive with these datetimes."""
    return Mementos(MementoTuple(each, archive, f"http://{archive}.example/{each}/{uri}") for each in datetimes)


def timemap(archive: str, datetimes: Sequence[str], uri: str = PAGE) -> bytes:
    """Return the TimeMap with these datetimes."""
    lines = [f'<{uri}>; rel="original"']
    lines += [
        f'<http://{archive}.example/{each}/{uri}>; rel="memento"; datetime="{dates.to_http(each)}"'
        for each in datetimes
    ]
    return ",\n".join(lines).encode()


async def hang(_: HttpRequest) -> None:
    """Never respond."""
    await asyncio.Event().wait()


class Archives:
    """An HTTP client for archives with planned behaviours.

    Attributes:
        queried: Ids of the queried archives, in order.
        active: Number of unfinished requests.
        max_active: Largest number of unfinished requests.
    """

    def __init__(self, **behaviours: Behaviour) -> None:
        self.behaviours: dict[str, Behaviour] = dict(behaviours)
        self.queried: MutableSequence[str] = []
        self.active = 0
        self.max_active = 0

    async def send(self, archive: Archive, question: HttpRequest) -> HttpResponse:
        """Respond as planned."""
        self.queried.append(archive.id)
        self.active += 1
        self.max_active = max(self.max_active, self.active)
        try:
            await asyncio.sleep(0)
            does = self.behaviours[archive.id]
            if callable(does):
                does = await does(question)
            if isinstance(does, Exception):
                raise does
            if isinstance(does, HttpResponse):
                return does
            if isinstance(does, bytes):
                return reply(question.url, does)
            if not does:
                return reply(question.url, b"none", 404)
            page = question.url.partition("/list/")[2]
            return reply(question.url, timemap(archive.id, does, page))
        finally:
            self.active -= 1


class FixedRouter:
    """A router that selects the same archives for every page, or the requested ones."""

    def __init__(self, *archives: Archive, passed_over: tuple[str, ...] = ()) -> None:
        self.archives = archives
        self.passed_over = passed_over

    def route(self, uri: str, options: RoutingOptions) -> ArchiveRoute:
        """Return the route."""
        del uri
        selected = [each for each in self.archives if options.archives is None or each.id in options.archives]
        return ArchiveRoute(tuple(RouteTarget(each, "broadcast") for each in selected), self.passed_over)


class RecordingListener:
    """A listener that records its events."""

    def __init__(self) -> None:
        self.upstream_results: list[UpstreamResult] = []
        self.results: list[AggregateResult] = []

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Record the result of an archive."""
        self.upstream_results.append(result)

    def on_result(self, found: AggregateResult) -> None:
        """Record the aggregate result."""
        self.results.append(found)


def make_aggregator(archives: Archives, clock: VirtualClock | None = None, **options: Any) -> MementoAggregator:  # noqa: ANN401
    """Return an aggregator that queries all archives for every page."""
    router = FixedRouter(*(make_archive(name) for name in sorted(archives.behaviours)))
    return MementoAggregator(router, archives, clock or VirtualClock(), **options)


def outcomes(found: AggregateResult) -> Mapping[str, str]:
    """Return the outcome of each archive."""
    return {report.archive: report.outcome for report in found.reports}
