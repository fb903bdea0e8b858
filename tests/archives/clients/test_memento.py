"""The client for TimeMaps and TimeGates, against a scripted archive."""

import threading
from dataclasses import replace

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
from tests.external.scripted_server import ScriptedResponse, ScriptedServer
from unlost.archives import MementoClient
from unlost.archives import timemap as archives_timemap
from unlost.capture import Capture
from unlost.errors import ExcludedError, FailedError, ListCutError, UnsupportedError, UriError
from unlost.http import ArchiveHttpClient
from unlost.memento import timemap as memento_timemap
from unlost.problems import Problems
from unlost.registry import Archive

RAW = {
    f"/{date}id_/{PAGE}": ScriptedResponse(
        200, {"Memento-Datetime": DATES[date], "Content-Type": "text/html"}, f"raw {date}"
    )
    for date in DATES
}


def with_raw(server: ScriptedServer, archive: Archive) -> Archive:
    """Return the archive with raw mementos."""
    return replace(archive, replay=f"{server.base}/{{datetime}}id_/{{uri}}")


async def fetch_text(client: MementoClient, date: str | None = None) -> tuple[str, bytes] | None:
    """Return date and body of the capture for a date."""
    fetched = await client.get(PAGE, date)
    if fetched is None:
        return None
    with fetched.body:
        return fetched.capture.datetime, fetched.body.read()


def test_timemap_lists_captures() -> None:
    """URLs are made absolute, repeated entries are listed once, missing fields are None."""

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        assert await collect_captures(client.captures(PAGE)) == [
            Capture(PAGE, "com,example)/page", NEW, archive="a", urim=f"{server.base}/{NEW}/{PAGE}"),
            Capture(PAGE, "com,example)/page", OLD, archive="a", urim=f"{server.base}/x/{OLD}/{PAGE}"),
        ]
        assert client.problems.counts == {}
        assert "link-format" in server.request_headers[0]["accept"]

    with_archive({MAP: timemap(memento(NEW), memento(OLD, "/x"), memento(NEW, ""), memento(NEW))}, scenario)


def test_long_timemap_is_complete_and_does_not_block() -> None:
    """A TimeMap of 40,000 mementos is parsed without blocking the event loop."""
    seconds = [f"{minute:02d}:{second:02d}" for minute in range(60) for second in range(60)]
    entries = [
        f'<{{base}}/20140210{hour:02d}{second.replace(":", "")}/{PAGE}>; rel="memento"; '
        f'datetime="Mon, 10 Feb 2014 {hour:02d}:{second} GMT"'
        for hour in range(12)
        for second in seconds
    ]

    async def scenario(_: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        read: list[bool] = []
        threads: list[str] = []

        def noticed(body: bytes, problems: Problems, name: str) -> memento_timemap.LinkFormatTimeMap:
            threads.append(threading.current_thread().name)
            read.append(len(body) > 1 << 20)
            return memento_timemap.read_timemap(body, problems, name)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(archives_timemap, "read_timemap", noticed)
            results = await collect_captures(MementoClient(archive, http_client).captures(PAGE))
        assert len({capture.datetime for capture in results}) == len(entries) == 43_200
        assert read == [True, True], "in pieces"
        assert threads != [threading.main_thread().name]

    with_archive({MAP: timemap(*entries)}, scenario)


def test_missing_timemap_is_an_empty_list() -> None:
    """404 of TimeMap and TimeGate, and a TimeMap without mementos, are valid responses."""

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        assert await collect_captures(client.captures(PAGE)) == []
        assert await client.get(PAGE) is None
        assert await client.last_capture_date(PAGE) is None
        server.responses[MAP] = timemap()
        assert await collect_captures(client.captures(PAGE)) == []
        with pytest.raises(UriError):
            await collect_captures(client.captures("dns:example.com"))

    with_archive({}, scenario)


def test_invalid_entries_are_counted_and_skipped() -> None:
    """Other entries are listed."""
    entries = [
        '<no end; rel="memento"',
        f'<http://[x>; rel="memento"; datetime="{DATES[OLD]}"',
        f'<mailto:a@b>; rel="memento"; datetime="{DATES[OLD]}"',
        memento(OLD),
    ]

    async def scenario(_: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        assert [capture.datetime for capture in await collect_captures(client.captures(PAGE))] == [OLD]
        assert client.problems.counts == {"bad-uri": 3}

    with_archive({MAP: timemap(*entries)}, scenario)


@pytest.mark.parametrize(
    "response",
    [
        ScriptedResponse(200, {"Content-Type": "text/html"}, b"<!DOCTYPE html><html>please log in</html>"),
        ScriptedResponse(200, {"Content-Type": "application/link-format"}, b"<html><a href=x>y</a></html>"),
        ScriptedResponse(200, {}, b"\xff\xfe" * 2_500_000),
        ScriptedResponse(200, {}, b"<" * 5_000_000),
        ScriptedResponse(200, {}, b"[" * 5_000_000),
        ScriptedResponse(200, {}, b'{"mementos": []}'),
    ],
    ids=lambda response: repr(response.body[:8]),
)
def test_invalid_timemap_is_malformed(response: ScriptedResponse) -> None:
    """An error page with status 200 is not an empty TimeMap."""

    async def scenario(_: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        results, error = await collect_until_error(MementoClient(archive, http_client).captures(PAGE))
        assert results == []
        assert isinstance(error, FailedError)
        assert error.kind == "malformed"

    with_archive({MAP: response}, scenario)


def test_exclusion_is_reported() -> None:
    """403 with the name of an exclusion in header or body is a rule of the archive."""
    body = b"org.archive.wayback.exception.RobotAccessControlException: no"

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        for status in (200, 403):
            server.responses[MAP] = ScriptedResponse(status, {}, body)
            _, error = await collect_until_error(client.captures(PAGE))
            assert isinstance(error, ExcludedError)
        server.responses[MAP] = ScriptedResponse(403, {}, b"no")
        _, error = await collect_until_error(client.captures(PAGE))
        assert isinstance(error, FailedError)

    with_archive({}, scenario)


def test_pages_of_a_timemap_are_followed() -> None:
    """Linked TimeMaps with their own period are followed; other formats and the TimeMap itself are not."""
    link_format = '; type="application/link-format"'
    responses = {
        MAP: timemap(
            f'<{{base}}{MAP}>; rel="self"; from="{DATES[NEW]}"', next_page("/2"), next_page("{base}/2"),
            next_page(f"{{base}}{MAP}", NEW), next_page("/itself", NEW),
            next_page("/json", OLD, '; type="application/json"'),
            f'<{{base}}/html>; rel="timemap"{link_format}',
        ),
        "/2": timemap(memento(NEW), next_page(MAP), next_page("/2"), next_page("/3", OLD, link_format)),
        "/3": timemap(memento(OLD)),
    }  # fmt: skip

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        results = await collect_captures(MementoClient(archive, http_client).captures(PAGE))
        assert [capture.datetime for capture in results] == [NEW, OLD]
        assert server.requests == [MAP, "/2", "/3"]

    with_archive(responses, scenario)


def test_endless_pages_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without new mementos are not followed, and the number of pages is limited."""
    monkeypatch.setattr(archives_timemap, "MAX_PAGES", 5)
    same = {f"/{n}": timemap(memento(OLD), next_page(f"/{n + 1}")) for n in range(99)}
    other = {f"/o{n}": timemap(memento(OLD, f"{{base}}/{n}"), next_page(f"/o{n + 1}")) for n in range(99)}

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        server.responses[MAP] = timemap(memento(OLD), next_page("/1"))
        assert len(await collect_captures(client.captures(PAGE))) == 1
        assert len(server.requests) == 2
        server.requests.clear()
        server.responses[MAP] = timemap(memento(OLD), next_page("/o1"))
        results, error = await collect_until_error(client.captures(PAGE))
        assert len(results) == len(server.requests) == 5
        assert isinstance(error, ListCutError)

    with_archive(same | other, scenario)


def test_missing_page_fails_after_the_listed_captures() -> None:
    """Captures of earlier pages are yielded before the error."""

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        results, error = await collect_until_error(client.captures(PAGE))
        assert len(results) == 1
        assert isinstance(error, FailedError)
        # Foreign hosts are not followed.
        server.responses[MAP] = timemap(memento(OLD), next_page("http://127.0.0.2:1/"))
        results, error = await collect_until_error(client.captures(PAGE))
        assert len(results) == 1
        assert isinstance(error, ListCutError)

    with_archive({MAP: timemap(memento(OLD), next_page("/gone"))}, scenario)


@pytest.mark.parametrize("style", ["302", "302 relative", "302 with a date", "200", "302 to 302"])
def test_timegate_returns_the_closest(style: str) -> None:
    """It redirects to a memento or returns one with Content-Location; the capture has the memento's date."""
    gates = {
        "302": {GATE: ScriptedResponse(302, {"Location": f"{{base}}/{OLD}/{PAGE}", "Vary": "accept-datetime"})},
        "302 with a date": {
            GATE: ScriptedResponse(302, {"Location": f"/{OLD}/{PAGE}", "Memento-Datetime": DATES[OLD]})
        },
        "302 relative": {GATE: ScriptedResponse(302, {"Location": f"/{OLD}/{PAGE}"})},
        "200": {
            GATE: ScriptedResponse(
                200,
                {"Memento-Datetime": DATES[OLD], "Content-Location": f"/{OLD}/{PAGE}", "Content-Type": "text/html"},
                OLD,
            )
        },
        "302 to 302": {
            GATE: ScriptedResponse(302, {"Location": "/gate2"}),
            "/gate2": ScriptedResponse(307, {"Location": f"/{OLD}/{PAGE}"}),
        },
    }[style]

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        fetched = await client.get(PAGE, "2012")
        assert fetched is not None
        with fetched.body:
            assert fetched.body.read() == OLD.encode()
        assert (fetched.capture.datetime, fetched.capture.urim) == (OLD, f"{server.base}/{OLD}/{PAGE}")
        assert fetched.capture.migrated is True
        assert all(sent["accept-datetime"] == "Sun, 01 Jul 2012 23:59:59 GMT" for sent in server.request_headers)
        # Raw if the archive supports it: the memento with the banner is not fetched.
        server.requests.clear()
        assert await fetch_text(MementoClient(with_raw(server, archive), http_client), "2012") == (
            OLD,
            f"raw {OLD}".encode(),
        )
        assert f"/{OLD}/{PAGE}" not in server.requests
        server.request_headers.clear()
        assert await client.last_capture_date(PAGE) == OLD
        assert "accept-datetime" not in server.request_headers[0]

    with_archive({**COPIES, **RAW, **gates}, scenario)


def test_last_capture_is_the_link_named_last() -> None:
    """The TimeGate's links name the last memento, whatever memento it returns."""
    link = f'<{{base}}/{NEW}/{PAGE}>; rel="last memento"; datetime="{DATES[NEW]}"'

    async def scenario(_: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        assert await MementoClient(archive, http_client).last_capture_date(PAGE) == NEW

    with_archive({GATE: ScriptedResponse(302, {"Location": f"/{OLD}/{PAGE}", "Link": link})}, scenario)


@pytest.mark.parametrize(
    ("date", "expected"), [("2013", OLD), ("2014", OLD), ("2015", NEW), ("20141231", OLD), ("201503", NEW), (None, NEW)]
)
def test_without_timegate_the_timemap_selects_the_closest(date: str | None, expected: str) -> None:
    """The distance is measured in time, not in digits."""

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(replace(archive, timegate=None), http_client)
        assert await fetch_text(client, date) == (expected, expected.encode())
        assert await client.last_capture_date(PAGE) == NEW
        raw = replace(with_raw(server, archive), timegate=None)
        assert await fetch_text(MementoClient(raw, http_client), date) == (expected, f"raw {expected}".encode())

    with_archive({**COPIES, **RAW, MAP: timemap(memento(NEW), memento(OLD))}, scenario)


def test_without_timemap_the_timegate_names_captures() -> None:
    """It links to a TimeMap or to some mementos; then the listing is marked as incomplete."""
    links = [memento(OLD, "", "first memento"), memento(NEW, "", "last memento")]
    gate = {"Location": f"/{NEW}/{PAGE}", "Link": ", ".join(links)}

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(replace(archive, timemap=None), http_client)
        results, error = await collect_until_error(client.captures(PAGE))
        assert [(capture.datetime, capture.urim) for capture in results] == [
            (date, f"{server.base}/{date}/{PAGE}") for date in (OLD, NEW)
        ]
        assert isinstance(error, ListCutError)
        server.responses[GATE] = ScriptedResponse(302, {**gate, "Link": '<{base}/list>; rel="timemap"'})
        assert [capture.datetime for capture in await collect_captures(client.captures(PAGE))] == [NEW]
        del server.responses[GATE]
        assert await collect_captures(client.captures(PAGE)) == []

    with_archive({GATE: ScriptedResponse(302, gate), "/list": timemap(memento(NEW))}, scenario)


def test_unsupported_queries_raise() -> None:
    """Prefix listings, missing endpoints and captures without a URI-M are unsupported."""

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        _, error = await collect_until_error(client.list_prefix("http://example.com/", "2014", "2015"))
        assert isinstance(error, UnsupportedError)
        bare = MementoClient(replace(archive, timemap=None, timegate=None), http_client)
        _, error = await collect_until_error(bare.captures(PAGE))
        assert isinstance(error, UnsupportedError)
        with pytest.raises(UnsupportedError):
            await bare.get(PAGE)
        for urim in (None, "file:///etc/passwd", "http://[broken"):
            with pytest.raises(UnsupportedError):
                await client.fetch(Capture(PAGE, "com,example)/page", OLD, urim=urim))
        assert server.requests == []
        raw = MementoClient(replace(with_raw(server, archive), timemap=None, timegate=None), http_client)
        server.responses[f"/29991231235959id_/{PAGE}"] = ScriptedResponse(302, {"Location": f"/{NEW}id_/{PAGE}"})
        assert await fetch_text(raw) == (NEW, f"raw {NEW}".encode())

    with_archive(RAW, scenario)


def test_listed_capture_is_fetched_from_its_urim() -> None:
    """Without raw mementos it is fetched as replayed, and marked as migrated."""
    image = ScriptedResponse(200, {"Memento-Datetime": DATES[NEW], "Content-Type": "image/png"}, b"png")

    async def scenario(server: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        fetched_captures = [await client.fetch(capture) for capture in await collect_captures(client.captures(PAGE))]
        displayed = [
            (fetched.capture.datetime, fetched.capture.mime, fetched.capture.migrated)
            for fetched in fetched_captures
            if fetched
        ]
        assert displayed == [(OLD, "text/html", True), (NEW, "image/png", False)]
        for fetched in fetched_captures:
            assert fetched is not None
            fetched.body.close()
        assert server.requests[1:] == [f"/{OLD}/{PAGE}", f"/{NEW}/{PAGE}"]

    with_archive({**COPIES, f"/{NEW}/{PAGE}": image, MAP: timemap(memento(OLD), memento(NEW))}, scenario)


def test_timegate_that_is_not_an_archive_is_rejected() -> None:
    """A page with status 200 without Memento-Datetime is not a capture."""

    async def scenario(_: ScriptedServer, archive: Archive, http_client: ArchiveHttpClient) -> None:
        with pytest.raises(FailedError) as failed:
            await MementoClient(archive, http_client).get(PAGE)
        assert failed.value.kind == "malformed"

    with_archive({GATE: ScriptedResponse(200, {"Content-Type": "text/html"}, b"<h1>captcha</h1>")}, scenario)
