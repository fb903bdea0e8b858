"""TimeMaps read as mementos: the same pages are followed as for captures, and nothing listed is lost."""

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
    memento,
    next_page,
    timemap,
    with_archive,
)
from tests.archives.helpers import collect_captures, collect_until_error
from tests.archives.stubs import StubHttpClient, reply
from tests.external.scripted_server import ScriptedResponse, ScriptedServer
from unlost.archives import MementoClient
from unlost.archives import timemap as archives_timemap
from unlost.errors import ArchiveError, ExcludedError, FailedError, ListCutError, UnsupportedError, UriError
from unlost.http import ArchiveHttpClient, HttpRequest, HttpResponse
from unlost.memento import ArchiveTimeMap, Mementos, MementoTuple
from unlost.memento import timemap as memento_timemap
from unlost.problems import Problem, Problems
from unlost.registry import Archive, ArchiveKind


def test_mementos_match_the_captures() -> None:
    """Both ways yield the same URLs and dates; mementos are sorted and unique."""
    responses = {
        MAP: timemap(memento(NEW), memento(OLD, "/x"), memento(NEW, ""), memento(NEW), next_page("/2")),
        "/2": timemap(memento(NEW), memento(OLD)),
    }

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        pages, error = await collect_until_error(client.pages(PAGE))
        assert error is None
        assert list(pages[0]) == [
            MementoTuple(OLD, "a", f"{server.base}/x/{OLD}/{PAGE}"),
            MementoTuple(NEW, "a", f"{server.base}/{NEW}/{PAGE}"),
        ]
        captures = await collect_captures(client.captures(PAGE))
        expected = Mementos(MementoTuple(each.datetime, "a", each.urim or "") for each in captures)
        assert Mementos.merge(pages) == expected
        assert len(expected) == 3
        assert client.problems.counts == {}

    with_archive(responses, scenario)


def test_mementos_before_a_failure_are_yielded() -> None:
    """A missing, malformed or foreign page is reported after the mementos of earlier pages."""
    wrong = {"/html": ScriptedResponse(200, {}, b"<html>"), "/500": ScriptedResponse(500, {}, b""), "/empty": timemap()}

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        for page, expected in (
            ("/gone", FailedError), ("/html", FailedError), ("/500", ArchiveError), ("/empty", type(None)),
            ("http://127.0.0.2:1/", ListCutError),
        ):  # fmt: skip
            server.responses[MAP] = timemap(memento(OLD), next_page(page))
            pages, error = await collect_until_error(client.pages(PAGE))
            assert [fetched.datetime for fetched in Mementos.merge(pages)] == [OLD]
            assert isinstance(error, expected), page

    with_archive(wrong, scenario)


def test_mementos_before_a_timeout_are_yielded() -> None:
    """A caller that cancels during the second page has the first one."""

    class Hangs(StubHttpClient):
        async def send(self, archive: Archive, request: HttpRequest) -> HttpResponse:
            if request.url.endswith("/2"):
                waiting.set()
                await asyncio.Event().wait()
            return await super().send(archive, request)

    async def gather() -> None:
        async for page in MementoClient(archive, http_client).pages(PAGE):
            pages.append(page)  # noqa: PERF401  pages before the end are collected

    async def run() -> None:
        task = asyncio.create_task(gather())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    pages: list[Mementos] = []
    waiting = asyncio.Event()
    archive = Archive("a", "A", ArchiveKind.MEMENTO, timemap="http://a.org/map/")
    body = f"{memento(OLD, 'http://a.org')}, {next_page('/2')}".encode()
    http_client = Hangs(reply(f"http://a.org{MAP}", body))
    asyncio.run(run())
    assert [fetched.uri for fetched in Mementos.merge(pages)] == [f"http://a.org/{OLD}/{PAGE}"]


def test_endless_pages_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without new mementos are not followed, and the number of pages is limited."""
    monkeypatch.setattr(archives_timemap, "MAX_PAGES", 5)
    same = {f"/{n}": timemap(memento(OLD), next_page(f"/{n + 1}")) for n in range(99)}
    other = {f"/o{n}": timemap(memento(OLD, f"{{base}}/{n}"), next_page(f"/o{n + 1}")) for n in range(99)}

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        server.responses[MAP] = timemap(memento(OLD), next_page("/1"))
        pages, error = await collect_until_error(client.pages(PAGE))
        assert (len(Mementos.merge(pages)), len(server.requests), error) == (1, 2, None)
        server.requests.clear()
        server.responses[MAP] = timemap(memento(OLD), next_page("/o1"))
        pages, error = await collect_until_error(client.pages(PAGE))
        assert len(Mementos.merge(pages)) == len(server.requests) == 5
        assert isinstance(error, ListCutError)
        # The total memory of all pages is limited, too.
        monkeypatch.setattr(archives_timemap, "MAX_TIMEMAP_BYTES", 300)
        server.requests.clear()
        pages, error = await collect_until_error(client.pages(PAGE))
        assert 1 <= len(server.requests) < 5
        assert len(pages) == len(server.requests)
        assert isinstance(error, ListCutError)

    with_archive(same | other, scenario)


def test_index_of_pages_has_no_mementos() -> None:
    """A TimeMap index is followed."""
    responses = {
        MAP: timemap(next_page("/2"), next_page("/3", NEW)),
        "/2": timemap(memento(OLD)),
        "/3": timemap(memento(NEW), next_page("/2")),
    }

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        pages, error = await collect_until_error(MementoClient(archive, http_client).pages(PAGE))
        assert [[fetched.datetime for fetched in page] for page in pages] == [[OLD], [NEW]]
        assert error is None
        assert server.requests == [MAP, "/2", "/3"]

    with_archive(responses, scenario)


def test_missing_invalid_and_excluded_timemaps_are_distinguished() -> None:
    """404 is empty, HTML and garbage are failures, exclusions are reported, invalid URLs are not requested."""

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        assert await collect_until_error(client.pages(PAGE)) == ([], None)
        server.responses[MAP] = timemap()
        assert await collect_until_error(client.pages(PAGE)) == ([], None)
        for body in (b"<!DOCTYPE html>", b"\xff\xfe" * 100_000, b"<" * 100_000, b"{}"):
            server.responses[MAP] = ScriptedResponse(200, {}, body)
            pages, error = await collect_until_error(client.pages(PAGE))
            assert pages == []
            assert isinstance(error, FailedError)
            assert error.kind == "malformed"
        server.responses[MAP] = ScriptedResponse(
            200, {}, b"org.archive.wayback.exception.RobotAccessControlException: no"
        )
        _, error = await collect_until_error(client.pages(PAGE))
        assert isinstance(error, ExcludedError)
        with pytest.raises(UriError):
            await collect_until_error(client.pages("dns:example.com"))
        nothing = Archive("b", "B", ArchiveKind.MEMENTO)
        _, error = await collect_until_error(MementoClient(nothing, http_client).pages(PAGE))
        assert isinstance(error, UnsupportedError)

    with_archive({}, scenario)


def test_timegate_alone_names_some_mementos() -> None:
    """They are listed as incomplete."""
    date = DATES[OLD]
    gate = {GATE: ScriptedResponse(302, {"Location": f"/{OLD}/{PAGE}", "Memento-Datetime": date})}

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        alone = Archive("g", "G", ArchiveKind.MEMENTO, timegate=archive.timegate)
        pages, error = await collect_until_error(MementoClient(alone, http_client).pages(PAGE))
        assert list(Mementos.merge(pages)) == [MementoTuple(OLD, "g", f"{server.base}/{OLD}/{PAGE}")]
        assert isinstance(error, ListCutError)

    with_archive(COPIES | gate, scenario)


def test_invalid_entries_are_counted() -> None:
    """Other entries are listed."""
    bad = [f'<mailto:a@b>; rel="memento"; datetime="{DATES[OLD]}"', '<no end; rel="memento"']

    async def scenario(_: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        pages, error = await collect_until_error(client.pages(PAGE))
        assert [len(page) for page in pages] == [1]
        assert error is None
        assert client.problems.counts == {"bad-uri": 2}

    with_archive({MAP: timemap(*bad, memento(OLD))}, scenario)


def test_long_timemap_is_parsed_in_a_thread() -> None:
    """More than a megabyte is parsed outside the event loop."""
    entries = [f'<{{base}}/{n}>; rel="memento"; datetime="{DATES[OLD]}"; title="{"x" * 80}"' for n in range(10_000)]

    async def scenario(_: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        threads: list[threading.Thread] = []

        def noticed(body: bytes, archive: str, base: str, problems: Problems, name: str) -> ArchiveTimeMap:
            threads.append(threading.current_thread())
            return memento_timemap.read_archive_timemap(body, archive, base, problems, name)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(archives_timemap, "read_archive_timemap", noticed)
            pages, error = await collect_until_error(MementoClient(archive, http_client).pages(PAGE))
        assert (len(pages[0]), error) == (10_000, None)
        assert threads
        assert threading.main_thread() not in threads

    with_archive({MAP: timemap(*entries)}, scenario)


def test_too_long_timemap_is_reported() -> None:
    """Omitted mementos are reported, and no next_page page is requested."""

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        def cut(body: bytes, archive: str, base: str, problems: Problems, name: str) -> ArchiveTimeMap:
            problems.add(Problem("too-large", name, 1, 0, "too much"))
            return memento_timemap.read_archive_timemap(body, archive, base, problems, name)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(archives_timemap, "read_archive_timemap", cut)
            pages, error = await collect_until_error(MementoClient(archive, http_client).pages(PAGE))
        assert [len(page) for page in pages] == [1]
        assert isinstance(error, ListCutError)
        assert server.requests == [MAP]

    with_archive({MAP: timemap(memento(OLD), next_page("/2")), "/2": timemap(memento(NEW))}, scenario)
