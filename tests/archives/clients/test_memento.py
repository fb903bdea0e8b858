"""The client for archives with TimeMaps and TimeGates, against one that says what it is told to."""

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
    further,
    memento,
    timemap,
    with_archive,
)
from tests.archives.helpers import collected, listed
from tests.neighbours.scripted import Answer, Scripted
from unlost.archives import MementoClient
from unlost.archives import timemap as archives_timemap
from unlost.capture import Capture
from unlost.errors import ExcludedError, FailedError, ListCutError, UnsupportedError, UriError
from unlost.http import ArchiveHttpClient
from unlost.memento import timemap as memento_timemap
from unlost.problems import Problems
from unlost.registry import Archive

RAW = {
    f"/{date}id_/{PAGE}": Answer(200, {"Memento-Datetime": DATES[date], "Content-Type": "text/html"}, f"raw {date}")
    for date in DATES
}


def with_raw(server: Scripted, archive: Archive) -> Archive:
    """Return the archive as one that gives raw copies."""
    return replace(archive, replay=f"{server.base}/{{datetime}}id_/{{uri}}")


async def text(client: MementoClient, date: str | None = None) -> tuple[str, bytes] | None:
    """Return the date and the body of what is got for a date."""
    copy = await client.get(PAGE, date)
    if copy is None:
        return None
    with copy.body:
        return copy.capture.datetime, copy.body.read()


def test_timemap_lists_captures() -> None:
    """Addresses are made absolute, repeated entries come once, what is not told is not guessed."""

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        assert await listed(client.captures(PAGE)) == [
            Capture(PAGE, "com,example)/page", NEW, archive="a", urim=f"{server.base}/{NEW}/{PAGE}"),
            Capture(PAGE, "com,example)/page", OLD, archive="a", urim=f"{server.base}/x/{OLD}/{PAGE}"),
        ]
        assert client.problems.counts == {}
        assert "link-format" in server.sent[0]["accept"]

    with_archive({MAP: timemap(memento(NEW), memento(OLD, "/x"), memento(NEW, ""), memento(NEW))}, talk)


def test_long_timemap_is_complete_and_does_not_block() -> None:
    """A TimeMap of 40,000 copies is read beside the event loop, which turns all the time."""
    seconds = [f"{minute:02d}:{second:02d}" for minute in range(60) for second in range(60)]
    entries = [
        f'<{{base}}/20140210{hour:02d}{second.replace(":", "")}/{PAGE}>; rel="memento"; '
        f'datetime="Mon, 10 Feb 2014 {hour:02d}:{second} GMT"'
        for hour in range(12)
        for second in seconds
    ]

    async def talk(_: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        read: list[bool] = []
        threads: list[str] = []

        def noticed(body: bytes, problems: Problems, name: str) -> memento_timemap.LinkFormatTimeMap:
            threads.append(threading.current_thread().name)
            read.append(len(body) > 1 << 20)
            return memento_timemap.read_timemap(body, problems, name)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(archives_timemap, "read_timemap", noticed)
            found = await listed(MementoClient(archive, http_client).captures(PAGE))
        assert len({capture.datetime for capture in found}) == len(entries) == 43_200
        assert read == [True, True], "in pieces"
        assert threads != [threading.main_thread().name]

    with_archive({MAP: timemap(*entries)}, talk)


def test_no_captures() -> None:
    """404 of TimeMap and TimeGate, and a list without copies, are an answer."""

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        assert await listed(client.captures(PAGE)) == []
        assert await client.get(PAGE) is None
        assert await client.last_capture_date(PAGE) is None
        server.answers[MAP] = timemap()
        assert await listed(client.captures(PAGE)) == []
        with pytest.raises(UriError):
            await listed(client.captures("dns:example.com"))

    with_archive({}, talk)


def test_invalid_entries_are_counted_and_skipped() -> None:
    """A flaw costs the entry that has it."""
    entries = [
        '<no end; rel="memento"',
        f'<http://[x>; rel="memento"; datetime="{DATES[OLD]}"',
        f'<mailto:a@b>; rel="memento"; datetime="{DATES[OLD]}"',
        memento(OLD),
    ]

    async def talk(_: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        assert [capture.datetime for capture in await listed(client.captures(PAGE))] == [OLD]
        assert client.problems.counts == {"bad-uri": 3}

    with_archive({MAP: timemap(*entries)}, talk)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(200, {"Content-Type": "text/html"}, b"<!DOCTYPE html><html>please log in</html>"),
        Answer(200, {"Content-Type": "application/link-format"}, b"<html><a href=x>y</a></html>"),
        Answer(200, {}, b"\xff\xfe" * 2_500_000),
        Answer(200, {}, b"<" * 5_000_000),
        Answer(200, {}, b"[" * 5_000_000),
        Answer(200, {}, b'{"mementos": []}'),
    ],
    ids=lambda answer: repr(answer.body[:8]),
)
def test_invalid_timemap_is_malformed(answer: Answer) -> None:
    """An error page with status 200 is not mistaken for `nothing held`."""

    async def talk(_: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        found, error = await collected(MementoClient(archive, http_client).captures(PAGE))
        assert found == []
        assert isinstance(error, FailedError)
        assert error.kind == "malformed"

    with_archive({MAP: answer}, talk)


def test_exclusion_is_reported() -> None:
    """403 with the name of an exception, or a body of nothing else, is a rule of the archive."""
    body = b"org.archive.wayback.exception.RobotAccessControlException: no"

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        for status in (200, 403):
            server.answers[MAP] = Answer(status, {}, body)
            _, error = await collected(client.captures(PAGE))
            assert isinstance(error, ExcludedError)
        server.answers[MAP] = Answer(403, {}, b"no")
        _, error = await collected(client.captures(PAGE))
        assert isinstance(error, FailedError)

    with_archive({}, talk)


def test_pages_of_a_timemap_are_followed() -> None:
    """Links with dates of their own lead on; the same place, other formats and the list itself do not."""
    link_format = '; type="application/link-format"'
    answers = {
        MAP: timemap(
            f'<{{base}}{MAP}>; rel="self"; from="{DATES[NEW]}"', further("/2"), further("{base}/2"),
            further(f"{{base}}{MAP}", NEW), further("/itself", NEW), further("/json", OLD, '; type="application/json"'),
            f'<{{base}}/html>; rel="timemap"{link_format}',
        ),
        "/2": timemap(memento(NEW), further(MAP), further("/2"), further("/3", OLD, link_format)),
        "/3": timemap(memento(OLD)),
    }  # fmt: skip

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        found = await listed(MementoClient(archive, http_client).captures(PAGE))
        assert [capture.datetime for capture in found] == [NEW, OLD]
        assert server.asked == [MAP, "/2", "/3"]

    with_archive(answers, talk)


def test_endless_pages_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that only repeat others lead nowhere, and of new ones there are so many and no more."""
    monkeypatch.setattr(archives_timemap, "MAX_PAGES", 5)
    same = {f"/{n}": timemap(memento(OLD), further(f"/{n + 1}")) for n in range(99)}
    other = {f"/o{n}": timemap(memento(OLD, f"{{base}}/{n}"), further(f"/o{n + 1}")) for n in range(99)}

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        server.answers[MAP] = timemap(memento(OLD), further("/1"))
        assert len(await listed(client.captures(PAGE))) == 1
        assert len(server.asked) == 2
        server.asked.clear()
        server.answers[MAP] = timemap(memento(OLD), further("/o1"))
        found, error = await collected(client.captures(PAGE))
        assert len(found) == len(server.asked) == 5
        assert isinstance(error, ListCutError)

    with_archive(same | other, talk)


def test_missing_page_fails_after_the_listed_captures() -> None:
    """What the first page had has been given; that there is more is not hidden."""

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        found, error = await collected(client.captures(PAGE))
        assert len(found) == 1
        assert isinstance(error, FailedError)
        # Elsewhere is nobody's to send us.
        server.answers[MAP] = timemap(memento(OLD), further("http://127.0.0.2:1/"))
        found, error = await collected(client.captures(PAGE))
        assert len(found) == 1
        assert isinstance(error, ListCutError)

    with_archive({MAP: timemap(memento(OLD), further("/gone"))}, talk)


@pytest.mark.parametrize("style", ["302", "302 relative", "302 with a date", "200", "302 to 302"])
def test_timegate_returns_the_closest(style: str) -> None:
    """It redirects to a copy, or is one itself and says where it is; the date that came back is the copy's."""
    gates = {
        "302": {GATE: Answer(302, {"Location": f"{{base}}/{OLD}/{PAGE}", "Vary": "accept-datetime"})},
        "302 with a date": {GATE: Answer(302, {"Location": f"/{OLD}/{PAGE}", "Memento-Datetime": DATES[OLD]})},
        "302 relative": {GATE: Answer(302, {"Location": f"/{OLD}/{PAGE}"})},
        "200": {
            GATE: Answer(
                200,
                {"Memento-Datetime": DATES[OLD], "Content-Location": f"/{OLD}/{PAGE}", "Content-Type": "text/html"},
                OLD,
            )
        },
        "302 to 302": {
            GATE: Answer(302, {"Location": "/gate2"}),
            "/gate2": Answer(307, {"Location": f"/{OLD}/{PAGE}"}),
        },
    }[style]

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        copy = await client.get(PAGE, "2012")
        assert copy is not None
        with copy.body:
            assert copy.body.read() == OLD.encode()
        assert (copy.capture.datetime, copy.capture.urim) == (OLD, f"{server.base}/{OLD}/{PAGE}")
        assert copy.capture.migrated is True
        assert all(sent["accept-datetime"] == "Sun, 01 Jul 2012 23:59:59 GMT" for sent in server.sent)
        # Raw, where the archive can: the copy with the banner is not taken.
        server.asked.clear()
        assert await text(MementoClient(with_raw(server, archive), http_client), "2012") == (OLD, f"raw {OLD}".encode())
        assert f"/{OLD}/{PAGE}" not in server.asked
        server.sent.clear()
        assert await client.last_capture_date(PAGE) == OLD
        assert "accept-datetime" not in server.sent[0]

    with_archive({**COPIES, **RAW, **gates}, talk)


def test_last_capture_is_the_link_named_last() -> None:
    """A TimeGate that answers with any copy still names the last one."""
    link = f'<{{base}}/{NEW}/{PAGE}>; rel="last memento"; datetime="{DATES[NEW]}"'

    async def talk(_: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        assert await MementoClient(archive, http_client).last_capture_date(PAGE) == NEW

    with_archive({GATE: Answer(302, {"Location": f"/{OLD}/{PAGE}", "Link": link})}, talk)


@pytest.mark.parametrize(
    ("date", "expected"), [("2013", OLD), ("2014", OLD), ("2015", NEW), ("20141231", OLD), ("201503", NEW), (None, NEW)]
)
def test_without_timegate_the_timemap_selects_the_closest(date: str | None, expected: str) -> None:
    """The distance is that of time, not of digits."""

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(replace(archive, timegate=None), http_client)
        assert await text(client, date) == (expected, expected.encode())
        assert await client.last_capture_date(PAGE) == NEW
        raw = replace(with_raw(server, archive), timegate=None)
        assert await text(MementoClient(raw, http_client), date) == (expected, f"raw {expected}".encode())

    with_archive({**COPIES, **RAW, MAP: timemap(memento(NEW), memento(OLD))}, talk)


def test_without_timemap_the_timegate_names_captures() -> None:
    """It links to a list, or at least to some copies; then the list says that it is not all."""
    links = [memento(OLD, "", "first memento"), memento(NEW, "", "last memento")]
    gate = {"Location": f"/{NEW}/{PAGE}", "Link": ", ".join(links)}

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(replace(archive, timemap=None), http_client)
        found, error = await collected(client.captures(PAGE))
        assert [(capture.datetime, capture.urim) for capture in found] == [
            (date, f"{server.base}/{date}/{PAGE}") for date in (OLD, NEW)
        ]
        assert isinstance(error, ListCutError)
        server.answers[GATE] = Answer(302, {**gate, "Link": '<{base}/list>; rel="timemap"'})
        assert [capture.datetime for capture in await listed(client.captures(PAGE))] == [NEW]
        del server.answers[GATE]
        assert await listed(client.captures(PAGE)) == []

    with_archive({GATE: Answer(302, gate), "/list": timemap(memento(NEW))}, talk)


def test_unsupported_queries_raise() -> None:
    """No list below a prefix, nothing at all without addresses, no copy without a place."""

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        _, error = await collected(client.list_prefix("http://example.com/", "2014", "2015"))
        assert isinstance(error, UnsupportedError)
        bare = MementoClient(replace(archive, timemap=None, timegate=None), http_client)
        _, error = await collected(bare.captures(PAGE))
        assert isinstance(error, UnsupportedError)
        with pytest.raises(UnsupportedError):
            await bare.get(PAGE)
        for urim in (None, "file:///etc/passwd", "http://[broken"):
            with pytest.raises(UnsupportedError):
                await client.fetch(Capture(PAGE, "com,example)/page", OLD, urim=urim))
        assert server.asked == []
        raw = MementoClient(replace(with_raw(server, archive), timemap=None, timegate=None), http_client)
        server.answers[f"/29991231235959id_/{PAGE}"] = Answer(302, {"Location": f"/{NEW}id_/{PAGE}"})
        assert await text(raw) == (NEW, f"raw {NEW}".encode())

    with_archive(RAW, talk)


def test_listed_capture_is_fetched_from_its_urim() -> None:
    """Without raw copies it comes as the archive shows it, and is marked by its type."""
    image = Answer(200, {"Memento-Datetime": DATES[NEW], "Content-Type": "image/png"}, b"png")

    async def talk(server: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        client = MementoClient(archive, http_client)
        copies = [await client.fetch(capture) for capture in await listed(client.captures(PAGE))]
        shown = [(copy.capture.datetime, copy.capture.mime, copy.capture.migrated) for copy in copies if copy]
        assert shown == [(OLD, "text/html", True), (NEW, "image/png", False)]
        for copy in copies:
            assert copy is not None
            copy.body.close()
        assert server.asked[1:] == [f"/{OLD}/{PAGE}", f"/{NEW}/{PAGE}"]

    with_archive({**COPIES, f"/{NEW}/{PAGE}": image, MAP: timemap(memento(OLD), memento(NEW))}, talk)


def test_timegate_that_is_not_an_archive_is_rejected() -> None:
    """A page with status 200 and no date is the archive's own, or somebody else's."""

    async def talk(_: Scripted, archive: Archive, http_client: ArchiveHttpClient) -> None:
        with pytest.raises(FailedError) as failed:
            await MementoClient(archive, http_client).get(PAGE)
        assert failed.value.kind == "malformed"

    with_archive({GATE: Answer(200, {"Content-Type": "text/html"}, b"<h1>captcha</h1>")}, talk)
