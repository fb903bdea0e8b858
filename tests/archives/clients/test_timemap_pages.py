"""TimeMaps read straight into copies: the same pages are followed as for captures, and nothing listed is lost."""

import asyncio
import threading

import pytest

from tests.archives.clients.timemaps import (
    COPIES,
    DATES,
    GATE,
    MAP,
    NEW,
    OLD,
    PAGE,
    further,
    memento,
    timemap,
    with_archive,
)
from tests.archives.helpers import collected, listed
from tests.archives.stubs import Answers, reply
from tests.neighbours.scripted import Answer, Scripted
from unlost.archives import MementoClient
from unlost.archives import timemap as archives_timemap
from unlost.errors import ArchiveError, ExcludedError, FailedError, ListCutError, UnsupportedError, UriError
from unlost.http import ArchiveHttpClient, HttpRequest, HttpResponse
from unlost.memento import ArchiveTimeMap, Mementos, MementoTuple
from unlost.memento import timemap as memento_timemap
from unlost.problems import Problem, Problems
from unlost.registry import Archive, ArchiveKind


def test_mementos_match_the_captures() -> None:
    """Either way gives the same addresses and dates; copies come sorted, and each once."""
    answers = {
        MAP: timemap(memento(NEW), memento(OLD, "/x"), memento(NEW, ""), memento(NEW), further("/2")),
        "/2": timemap(memento(NEW), memento(OLD)),
    }

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        pages, error = await collected(client.pages(PAGE))
        assert error is None
        assert list(pages[0]) == [
            MementoTuple(OLD, "a", f"{server.base}/x/{OLD}/{PAGE}"),
            MementoTuple(NEW, "a", f"{server.base}/{NEW}/{PAGE}"),
        ]
        captures = await listed(client.captures(PAGE))
        expected = Mementos(MementoTuple(each.datetime, "a", each.urim or "") for each in captures)
        assert Mementos.merge(pages) == expected
        assert len(expected) == 3
        assert client.problems.counts == {}

    with_archive(answers, talk)


def test_mementos_before_a_failure_are_yielded() -> None:
    """A page that is missing, malformed or elsewhere is told behind the copies of the pages before it."""
    wrong = {"/html": Answer(200, {}, b"<html>"), "/500": Answer(500, {}, b""), "/empty": timemap()}

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        for page, expected in (
            ("/gone", FailedError), ("/html", FailedError), ("/500", ArchiveError), ("/empty", type(None)),
            ("http://127.0.0.2:1/", ListCutError),
        ):  # fmt: skip
            server.answers[MAP] = timemap(memento(OLD), further(page))
            pages, error = await collected(client.pages(PAGE))
            assert [copy.datetime for copy in Mementos.merge(pages)] == [OLD]
            assert isinstance(error, expected), page

    with_archive(wrong, talk)


def test_mementos_before_a_timeout_are_yielded() -> None:
    """Whoever stops waiting for the second page has the first."""

    class Hangs(Answers):
        async def send(self, archive: Archive, question: HttpRequest) -> HttpResponse:
            if question.url.endswith("/2"):
                waiting.set()
                await asyncio.Event().wait()
            return await super().send(archive, question)

    async def gather() -> None:
        async for page in MementoClient(archive, http_client).pages(PAGE):
            pages.append(page)  # noqa: PERF401  what came before the end is kept

    async def run() -> None:
        task = asyncio.create_task(gather())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    pages: list[Mementos] = []
    waiting = asyncio.Event()
    archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap="http://a.org/map/")
    body = f"{memento(OLD, 'http://a.org')}, {further('/2')}".encode()
    http_client = Hangs(reply(f"http://a.org{MAP}", body))
    asyncio.run(run())
    assert [copy.uri for copy in Mementos.merge(pages)] == [f"http://a.org/{OLD}/{PAGE}"]


def test_endless_pages_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that only repeat others lead nowhere, and of new ones there are so many and no more."""
    monkeypatch.setattr(archives_timemap, "MAX_PAGES", 5)
    same = {f"/{n}": timemap(memento(OLD), further(f"/{n + 1}")) for n in range(99)}
    other = {f"/o{n}": timemap(memento(OLD, f"{{base}}/{n}"), further(f"/o{n + 1}")) for n in range(99)}

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        server.answers[MAP] = timemap(memento(OLD), further("/1"))
        pages, error = await collected(client.pages(PAGE))
        assert (len(Mementos.merge(pages)), len(server.asked), error) == (1, 2, None)
        server.asked.clear()
        server.answers[MAP] = timemap(memento(OLD), further("/o1"))
        pages, error = await collected(client.pages(PAGE))
        assert len(Mementos.merge(pages)) == len(server.asked) == 5
        assert isinstance(error, ListCutError)
        # Nor may all of them together take more memory than is set.
        monkeypatch.setattr(archives_timemap, "MAX_TIMEMAP_BYTES", 300)
        server.asked.clear()
        pages, error = await collected(client.pages(PAGE))
        assert 1 <= len(server.asked) < 5
        assert len(pages) == len(server.asked)
        assert isinstance(error, ListCutError)

    with_archive(same | other, talk)


def test_index_of_pages_has_no_mementos() -> None:
    """A list of lists is followed."""
    answers = {
        MAP: timemap(further("/2"), further("/3", NEW)),
        "/2": timemap(memento(OLD)),
        "/3": timemap(memento(NEW), further("/2")),
    }

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        pages, error = await collected(MementoClient(archive, http_client).pages(PAGE))
        assert [[copy.datetime for copy in page] for page in pages] == [[OLD], [NEW]]
        assert error is None
        assert server.asked == [MAP, "/2", "/3"]

    with_archive(answers, talk)


def test_no_mementos_and_exclusion() -> None:
    """404 is no copies; HTML and rubbish are failures; exclusions are told; what is no page is not asked for."""

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        assert await collected(client.pages(PAGE)) == ([], None)
        server.answers[MAP] = timemap()
        assert await collected(client.pages(PAGE)) == ([], None)
        for body in (b"<!DOCTYPE html>", b"\xff\xfe" * 100_000, b"<" * 100_000, b"{}"):
            server.answers[MAP] = Answer(200, {}, body)
            pages, error = await collected(client.pages(PAGE))
            assert pages == []
            assert isinstance(error, FailedError)
            assert error.kind == "malformed"
        server.answers[MAP] = Answer(200, {}, b"org.archive.wayback.exception.RobotAccessControlException: no")
        _, error = await collected(client.pages(PAGE))
        assert isinstance(error, ExcludedError)
        with pytest.raises(UriError):
            await collected(client.pages("dns:example.com"))
        nothing = Archive("b", "B", ArchiveKind.MEMENTO)
        _, error = await collected(MementoClient(nothing, http_client).pages(PAGE))
        assert isinstance(error, UnsupportedError)

    with_archive({}, talk)


def test_timegate_alone_names_some_mementos() -> None:
    """They are listed, and that there may be others is told."""
    date = DATES[OLD]
    gate = {GATE: Answer(302, {"Location": f"/{OLD}/{PAGE}", "Memento-Datetime": date})}

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        alone = Archive("g", "G", ArchiveKind.MEMENTO, timegate=archive.timegate)
        pages, error = await collected(MementoClient(alone, http_client).pages(PAGE))
        assert list(Mementos.merge(pages)) == [MementoTuple(OLD, "g", f"{server.base}/{OLD}/{PAGE}")]
        assert isinstance(error, ListCutError)

    with_archive(COPIES | gate, talk)


def test_invalid_entries_are_counted() -> None:
    """A flaw costs the entry that has it."""
    bad = [f'<mailto:a@b>; rel="memento"; datetime="{DATES[OLD]}"', '<no end; rel="memento"']

    async def talk(_: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        pages, error = await collected(client.pages(PAGE))
        assert [len(page) for page in pages] == [1]
        assert error is None
        assert client.problems.counts == {"bad-uri": 2}

    with_archive({MAP: timemap(*bad, memento(OLD))}, talk)


def test_long_timemap_is_parsed_in_a_thread() -> None:
    """More than a megabyte is read beside the event loop."""
    entries = [f'<{{base}}/{n}>; rel="memento"; datetime="{DATES[OLD]}"; title="{"x" * 80}"' for n in range(10_000)]

    async def talk(_: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        threads: list[threading.Thread] = []

        def noticed(body: bytes, archive: str, base: str, problems: Problems, name: str) -> ArchiveTimeMap:
            threads.append(threading.current_thread())
            return memento_timemap.read_archive_timemap(body, archive, base, problems, name)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(archives_timemap, "read_archive_timemap", noticed)
            pages, error = await collected(MementoClient(archive, http_client).pages(PAGE))
        assert (len(pages[0]), error) == (10_000, None)
        assert threads
        assert threading.main_thread() not in threads

    with_archive({MAP: timemap(*entries)}, talk)


def test_too_long_timemap_is_reported() -> None:
    """Copies that were left out are not hidden, and no page behind them is asked for."""

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        def cut(body: bytes, archive: str, base: str, problems: Problems, name: str) -> ArchiveTimeMap:
            problems.add(Problem("too-large", name, 1, 0, "too much"))
            return memento_timemap.read_archive_timemap(body, archive, base, problems, name)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(archives_timemap, "read_archive_timemap", cut)
            pages, error = await collected(MementoClient(archive, http_client).pages(PAGE))
        assert [len(page) for page in pages] == [1]
        assert isinstance(error, ListCutError)
        assert server.asked == [MAP]

    with_archive({MAP: timemap(memento(OLD), further("/2")), "/2": timemap(memento(NEW))}, talk)
