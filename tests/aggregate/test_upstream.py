"""Queries to a single archive: by TimeMap, TimeGate, CDX, and local files."""

import asyncio
import socket
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.aggregate.stubs import Archives, hang, make_aggregator, make_archive, mementos_of, outcomes, timemap, until
from tests.archives.clients.records import response
from tests.archives.helpers import make_http_client
from tests.archives.stubs import reply
from tests.external import common_crawl, pywb
from tests.external.fault_server import Exchange, run_fault_server
from tests.http.harness import HASTY
from tests.virtual_clock import VirtualClock
from unlost.aggregate import (
    ArchiveRoute,
    MementoAggregator,
    RouteTarget,
    RoutingOptions,
    UpstreamClient,
    UpstreamResult,
    classify_error,
    upstream,
)
from unlost.capture import Capture
from unlost.errors import FailedError, InputError, UnsupportedError, UsageError
from unlost.http import RETRIES, AddressInfo, ConnectTimeoutError, HttpClient, HttpRequest, HttpResponse
from unlost.registry import Archive, ArchiveKind

PAGE = "http://example.com/page"
DATES = ["20140210000001", "20160210000001"]


@pytest.fixture(scope="module")
def warc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a WARC with two captures of a page."""
    file = tmp_path_factory.mktemp("warcs") / "a.warc.gz"
    file.write_bytes(b"".join(response(PAGE, f"{date[:4]}-02-10T00:00:01Z") for date in DATES))
    return file


@pytest.fixture(scope="module")
def server(warc: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[pywb.Pywb]:
    """Run pywb with the WARC."""
    with pywb.serve_warcs([warc], tmp_path_factory.mktemp("pywb")) as (server,):
        yield server


async def query(archive: Archive, client: HttpClient, seconds: float = 10.0, uri: str = PAGE) -> UpstreamResult:
    """Query one archive, as the fan-out does."""
    until = asyncio.get_running_loop().time() + seconds
    task = asyncio.create_task(
        UpstreamClient(client, VirtualClock()).query(uri, RouteTarget(archive, "requested"), until)
    )
    _, late = await asyncio.wait([task], timeout=seconds)
    for each in late:
        each.cancel()
    return await task


def test_timemap_is_listed(server: pywb.Pywb) -> None:
    """Two mementos, merged into one list."""

    async def work() -> None:
        async with make_http_client() as client:
            response = await query(server.archive("a", ArchiveKind.MEMENTO), client)
        assert [row.datetime for row in response.mementos] == DATES
        assert (response.report.outcome, response.final_outcome, response.endpoint) == ("hit", "hit", "timemap")
        assert (response.report.reason, response.report.mementos, response.report.message) == ("requested", 2, "")
        assert response.report.duration_ms > 0

    asyncio.run(work())


def test_archive_with_only_a_timegate(server: pywb.Pywb) -> None:
    """A TimeGate links to its TimeMap; without one, its mementos are used and reported as incomplete."""
    there = replace(server.archive("a", ArchiveKind.MEMENTO), timemap=None, cdx=None)

    async def gate(exchange: Exchange) -> None:
        base = f"http://{exchange.headers['host']}"
        memento = f"{base}/20140210000001/{PAGE}"
        if exchange.path.startswith("/gate/"):
            await exchange.respond(302, location=memento, vary="accept-datetime", link=f'<{PAGE}>; rel="original"')
        else:
            await exchange.respond(200, b"<p>", memento_datetime="Mon, 10 Feb 2014 00:00:01 GMT")

    async def work() -> None:
        async with make_http_client() as client, run_fault_server(gate) as poor:
            response = await query(there, client)
            assert [row.datetime for row in response.mementos] == DATES
            assert (response.report.outcome, response.endpoint) == ("hit", "timegate")
            few = await query(Archive("g", "G", ArchiveKind.MEMENTO, timegate=f"{poor.url}/gate/"), client)
            assert [row.datetime for row in few.mementos] == DATES[:1]
            assert (few.report.outcome, few.final_outcome) == ("incomplete", "hit")

    asyncio.run(work())


def test_captures_without_urls_get_record_urls(warc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The URL is that of the WARC record."""
    monkeypatch.setenv("UNLOST_HOME", str(tmp_path))
    rows = common_crawl.read_rows(warc, warc.name)

    async def work() -> None:
        crawls = [common_crawl.Crawl("CC-MAIN-2016-07", rows)]
        async with make_http_client() as client, common_crawl.fake_common_crawl(crawls) as server:
            crawl = Archive(
                "cc",
                "CC",
                ArchiveKind.COMMON_CRAWL,
                cdx=f"{server.url}/collinfo.json",
                replay="http://127.0.0.1:9/{filename}",
            )
            response = await query(crawl, client)
            assert [row.datetime for row in response.mementos] == DATES
            assert {row.uri.partition("#")[0] for row in response.mementos} == {"http://127.0.0.1:9/a.warc.gz"}
            assert (response.report.outcome, response.endpoint) == ("hit", "timemap")
            folder = await query(Archive("f", "F", ArchiveKind.FILES, folder=str(warc.parent)), client)
            assert [row.datetime for row in folder.mementos] == DATES
            assert len({row.uri for row in folder.mementos}) == 2
            missing = await query(Archive("f", "F", ArchiveKind.FILES, folder=str(tmp_path / "none")), client)
            assert (missing.report.outcome, len(missing.mementos)) == ("refused", 0)

    asyncio.run(work())


def test_captcha_stops_requests_to_the_archive() -> None:
    """The archive's own client detects captchas and stops."""
    today = Archive("archive.today", "T", ArchiveKind.ARCHIVE_TODAY, timemap="http://archive.today/timemap/")
    client = Archives(**{"archive.today": b"<html><title>One more step</title></html>"})

    async def work() -> None:
        upstream_client = UpstreamClient(client, VirtualClock())
        until = asyncio.get_running_loop().time() + 10
        found = [await upstream_client.query(PAGE, RouteTarget(today, "requested"), until) for _ in range(3)]
        assert [each.report.outcome for each in found] == ["http-4xx", "not-now", "not-now"]
        assert len(client.queried) == 1
        assert "captcha" in found[1].report.message

    asyncio.run(work())


def test_mementos_without_urls_are_not_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive holds the page, so no miss may be learned."""

    class Nameless:
        async def captures(self, uri: str) -> AsyncIterator[Capture]:
            yield Capture(uri, "com,example)/page", DATES[0])

    monkeypatch.setattr(upstream, "create_client", lambda *_: Nameless())

    async def work() -> None:
        found = await query(Archive("n", "N", ArchiveKind.PYWB, cdx="http://n.example/cdx"), Archives())
        assert (found.report.outcome, found.report.mementos, found.final_outcome) == ("incomplete", 0, "hit")
        assert "without an address" in found.report.message

    asyncio.run(work())


def test_timemap_pages_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mementos beyond the size limit are left out and reported."""
    years = [f"{year}0210000001" for year in range(1996, 2006)]

    async def paged(question: HttpRequest) -> bytes:
        place = question.url.rpartition("/p")[2]
        number = int(place) if place.isdigit() else 0
        page = timemap("a", [years[number]], PAGE)
        if number < 9:
            page += f',\n<http://a.example/p{number + 1}>; rel="timemap"; from="Sat, 10 Feb 1996 00:00:01 GMT"'.encode()
        return page

    async def work() -> None:
        whole = await query(make_archive("a"), Archives(a=paged))
        assert whole.mementos == mementos_of("a", years)
        monkeypatch.setattr("unlost.aggregate.upstream.MAX_UPSTREAM_BYTES", 200)
        monkeypatch.setattr("unlost.aggregate.upstream._BATCH_MEMENTOS", 1)
        part = await query(make_archive("a"), Archives(a=paged))
        assert 0 < len(part.mementos) < 10
        assert (part.report.outcome, part.final_outcome) == ("incomplete", "hit")
        assert "left out" in part.report.message

    asyncio.run(work())


def test_unreadable_timemap_entries_are_reported() -> None:
    """Mementos without a valid URL or date are left out; the others are listed."""
    lines = [
        f'<{PAGE}>; rel="original"',
        '<http://a.example/1/>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT"',
        '<javascript:alert(1)>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT"',
        '<http://a.example/2/>; rel="memento"; datetime="Mon, 31 Feb 2014 00:00:01 GMT"',
    ]

    async def work() -> None:
        found = await query(make_archive("a"), Archives(a=",\n".join(lines).encode()))
        assert [memento.uri for memento in found.mementos] == ["http://a.example/1/"]
        assert (found.report.outcome, found.final_outcome) == ("hit", "hit")
        assert found.report.message.startswith("2 parts of its list could not be read (")
        clean = await query(make_archive("a"), Archives(a=DATES))
        assert clean.report.message == ""

    asyncio.run(work())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n",
        b"Not found",
        b'<http://a.example/license>; rel="license"',
        f'<{PAGE}>; rel="original",\n<http://a.example/1>; rel="memento"; datetime="soon"'.encode(),
        f'<{PAGE}>; rel="original",\n<http://a.example/20140210000001/>; rel="memento; datetime="x"'.encode(),
        f'<{PAGE}>; rel="original",\n<javascript:x>; rel="memento"; datetime="2014-02-10T00:00:01Z"'.encode(),
    ],
)
def test_unreadable_timemap_is_malformed(body: bytes) -> None:
    """The archive failed: it is not a miss, and no result without mementos is cached."""

    async def work() -> None:
        async with make_aggregator(Archives(a=body)) as aggregator:
            found = await aggregator.find(PAGE)
            assert outcomes(found) == {"a": "malformed"}
            assert "link-format" in found.reports[0].message
            assert aggregator.get_cached(PAGE) is None
            assert aggregator.breakers.statuses()["a"].failures == 1

    asyncio.run(work())


@pytest.mark.parametrize(
    "answer",
    [
        reply("http://a.example/", f'<{PAGE}>; rel="original"'.encode()),
        reply("http://a.example/", b"", Content_Type="application/link-format; charset=utf-8"),
        reply("http://a.example/", b"", 404),
    ],
)
def test_timemap_without_mementos_is_a_miss(answer: HttpResponse) -> None:
    """Also an empty body, if it is declared as link-format."""

    async def work() -> None:
        found = await query(make_archive("a"), Archives(a=answer))
        assert (found.report.outcome, found.report.message) == ("miss", "")

    asyncio.run(work())


@pytest.mark.parametrize(
    ("end", "ended"),
    [
        ("reset", "reset"),
        ("close", "reset"),
        ("hang", "timeout"),
        ("large", "too-large"),
        ("damaged", "malformed"),
        ("coded", "reset"),
    ],
)
def test_mementos_before_a_broken_connection_are_listed(end: str, ended: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All mementos before the break are there, none is made up from half an entry, and the list is incomplete."""
    datetimes = [f"{year}0210000001" for year in range(1996, 2016)]
    body = timemap("a", datetimes)
    cut = body.index(b"/20150210000001/") + 12
    monkeypatch.setattr("unlost.archives.timemap.MAX_PAGE_BYTES", cut if end == "large" else 1 << 20)

    async def broken(exchange: Exchange) -> None:
        sent, coding = body[:cut], ""
        if end in ("damaged", "coded"):
            sent, coding = zlib.compress(body, wbits=31)[:-40], "content-encoding: gzip\r\n"
        elif end == "large":
            sent = body
        length = {"large": len(body), "damaged": len(sent)}.get(end, 100_000)
        await exchange.send(f"HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{coding}\r\n".encode(), sent)
        if end == "hang":
            await exchange.wait_closed()
        elif end == "reset":
            await asyncio.sleep(0.05)  # a reset discards what is not yet read
            await exchange.reset()
        elif end != "large":
            exchange.writer.close()

    async def work() -> None:
        async with make_http_client(retries=RETRIES["aggregate"]) as client, run_fault_server(broken) as server:
            found = await query(make_archive("a", timemap=f"{server.url}/"), client, 0.5 if end == "hang" else 10.0)
        listed = [row.datetime for row in found.mementos]
        assert listed == datetimes[: len(listed)]
        assert len(listed) >= (5 if end in ("damaged", "coded") else 19)
        assert len(listed) < len(datetimes)
        assert (found.report.outcome, found.final_outcome) == ("incomplete", ended)
        assert found.report.message

    asyncio.run(work())


@pytest.mark.parametrize("end", ["reset", "hang"])
def test_broken_body_without_mementos_has_the_outcome_of_the_error(end: str) -> None:
    """It is neither a miss nor malformed."""

    async def broken(exchange: Exchange) -> None:
        await exchange.send(
            b'HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n<http://example.com/>; rel="original",\n<htt'
        )
        if end == "hang":
            await exchange.wait_closed()
        exchange.writer.close()

    async def work() -> None:
        async with make_http_client(retries=RETRIES["aggregate"]) as client, run_fault_server(broken) as server:
            found = await query(make_archive("a", timemap=f"{server.url}/"), client, 0.5 if end == "hang" else 10.0)
        assert found.report.outcome == found.final_outcome == {"hang": "timeout"}.get(end, end)

    asyncio.run(work())


def test_deadline_returns_a_result_and_cancellation_does_not() -> None:
    """At the deadline the task returns what it has; cancelled earlier, it raises."""

    async def work() -> None:
        late = await query(make_archive("a"), Archives(a=hang), 0.1)
        assert (late.report.outcome, late.final_outcome) == ("timeout", "timeout")
        assert 90 < late.report.duration_ms < 1000
        deadline = asyncio.get_running_loop().time() + 10
        archives = Archives(a=hang)
        upstream_client = UpstreamClient(archives, VirtualClock())
        task = asyncio.create_task(upstream_client.query(PAGE, RouteTarget(make_archive("a"), "routed"), deadline))
        await until(lambda: archives.active == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())


def test_memento_urls_are_escaped() -> None:
    """Whatever an archive lists, URLs are printable."""
    lines = (
        '<http://a.example/1/é x>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT",\n'
        '<http://a.example/2/\x01>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:02 GMT"'
    ).encode()

    async def work() -> None:
        response = await query(make_archive("a"), Archives(a=lines))
        assert len(response.mementos) > 0
        assert all(row.uri.isascii() and row.uri.isprintable() and " " not in row.uri for row in response.mementos)

    asyncio.run(work())


def test_dns_failure_and_refused_connection_have_different_outcomes() -> None:
    """So has a connection timeout."""

    def caused(cause: Exception) -> FailedError:
        error = FailedError("no connection", "a", "unreachable")
        error.__cause__ = cause
        return error

    assert classify_error(FailedError("name resolution failed", "a", "dns")) == "dns"
    assert classify_error(caused(ConnectTimeoutError("late"))) == "timeout"
    assert classify_error(caused(OSError(113, "No route to host"))) == "refused"
    assert classify_error(FailedError("a page of the TimeMap is not there", "a", "status")) == "http-4xx"
    for unsent in (
        UnsupportedError("no list", "a"),
        UsageError("no folder"),
        InputError("a newer file"),
        OSError(5, "x"),
    ):
        assert classify_error(unsent) == "not-now"


def test_client_reports_failed_name_resolution() -> None:
    """With a real look-up that fails."""

    class NoNames:
        async def resolve(self, host: str, port: int) -> list[AddressInfo]:
            raise socket.gaierror(-2, f"Name or service not known: {host}:{port}")

    async def work() -> None:
        async with make_http_client(resolver=NoNames(), timeouts=HASTY) as client:
            response = await query(make_archive("a"), client)
        assert response.report.outcome == "dns"

    asyncio.run(work())


def test_archive_without_endpoints_is_reported() -> None:
    """It has neither TimeMap nor TimeGate: this is not counted as a failure."""

    class Both:
        def route(self, uri: str, wish: RoutingOptions) -> ArchiveRoute:
            del uri, wish
            nothing = Archive("n", "N", ArchiveKind.MEMENTO)
            return ArchiveRoute((RouteTarget(nothing, "requested"), RouteTarget(make_archive("a"), "requested")))

    async def work() -> None:
        async with MementoAggregator(Both(), Archives(a=DATES), VirtualClock()) as aggregator:
            found = await aggregator.find(PAGE)
            assert outcomes(found) == {"a": "hit", "n": "not-now"}
            assert aggregator.breakers.statuses()["n"].failures == 0

    asyncio.run(work())
