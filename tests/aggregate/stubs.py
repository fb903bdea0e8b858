"""Archives without a network, a router that always chooses the same ones, and an aggregator before them."""

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
    """Let the others go on until it is so."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


Behaviour = Sequence[str] | Exception | bytes | HttpResponse | Callable[[HttpRequest], Any]
"""What an archive does: lists copies of these dates, raises, responds with bytes or a response, or calls a function."""


def an_archive(name: str, **fields: Any) -> Archive:  # noqa: ANN401  those of Archive
    """Return an archive with a TimeMap."""
    return Archive(name, name.upper(), ArchiveKind.MEMENTO, **{"timemap": f"http://{name}.example/list/", **fields})


def copies(archive: str, moments: Sequence[str], uri: str = PAGE) -> Mementos:
    """Return what an archive that lists these dates has."""
    return Mementos(MementoTuple(each, archive, f"http://{archive}.example/{each}/{uri}") for each in moments)


def timemap(archive: str, moments: Sequence[str], uri: str = PAGE) -> bytes:
    """Return the TimeMap that says so."""
    lines = [f'<{uri}>; rel="original"']
    lines += [
        f'<http://{archive}.example/{each}/{uri}>; rel="memento"; datetime="{dates.to_http(each)}"' for each in moments
    ]
    return ",\n".join(lines).encode()


async def hang(_: HttpRequest) -> None:
    """Never answer."""
    await asyncio.Event().wait()


class Archives:
    """A courier to archives that do what a test says.

    asked: the ids of those that were asked, in order. going_on: how many questions are unanswered.
    """

    def __init__(self, **behaviours: Behaviour) -> None:
        self.behaviours: dict[str, Behaviour] = dict(behaviours)
        self.asked: MutableSequence[str] = []
        self.going_on = 0
        self.most = 0

    async def send(self, archive: Archive, question: HttpRequest) -> HttpResponse:
        """Do it."""
        self.asked.append(archive.id)
        self.going_on += 1
        self.most = max(self.most, self.going_on)
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
            self.going_on -= 1


class Fixed:
    """A router that chooses the same archives for every page, or those that are wished for."""

    def __init__(self, *archives: Archive, passed_over: tuple[str, ...] = ()) -> None:
        self.archives = archives
        self.passed_over = passed_over

    def route(self, uri: str, wish: RoutingOptions) -> ArchiveRoute:
        """Return the route."""
        del uri
        wanted = [each for each in self.archives if wish.archives is None or each.id in wish.archives]
        return ArchiveRoute(tuple(RouteTarget(each, "broadcast") for each in wanted), self.passed_over)


class Heard:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.answers: list[UpstreamResult] = []
        self.finds: list[AggregateResult] = []

    def on_upstream_result(self, asked: UpstreamResult) -> None:
        """Remember it."""
        self.answers.append(asked)

    def on_result(self, found: AggregateResult) -> None:
        """Remember it."""
        self.finds.append(found)


def aggregator(archives: Archives, clock: VirtualClock | None = None, **options: Any) -> MementoAggregator:  # noqa: ANN401
    """Return an aggregator that asks all of them for every page."""
    router = Fixed(*(an_archive(name) for name in sorted(archives.behaviours)))
    return MementoAggregator(router, archives, clock or VirtualClock(), **options)


def outcomes(found: AggregateResult) -> Mapping[str, str]:
    """Return what came of each archive."""
    return {report.archive: report.outcome for report in found.reports}
