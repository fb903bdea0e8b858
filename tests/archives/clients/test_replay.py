"""Replayed captures: recognition, date, URL and content coding."""

import asyncio
import gzip
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import pytest

from tests.archives.helpers import make_http_client
from tests.external.fault_server import Exchange, run_fault_server
from tests.external.scripted_server import ScriptedResponse, ScriptedServer, scripted_server
from unlost.archives import FetchedCapture, ReplayClient, archive_hosts, memento_url, parse_memento_url, raw_memento_url
from unlost.capture import Capture
from unlost.errors import ExcludedError, FailedError
from unlost.problems import Problems
from unlost.registry import Archive, ArchiveKind
from unlost.uri import normalize_input_url

PAGE = "http://example.com/page"
DATE = "20140210000001"
HTTP_DATE = "Mon, 10 Feb 2014 00:00:01 GMT"
RAW = f"/web/{DATE}id_/{PAGE}"
DATED = {"Memento-Datetime": HTTP_DATE, "Content-Type": "text/html"}
PLACE = Archive("a", "A", ArchiveKind.WAYBACK)


def with_archive(
    responses: Mapping[str, ScriptedResponse], scenario: Callable[[ScriptedServer, ReplayClient], Awaitable[None]]
) -> None:
    """Run a scenario against a scripted archive."""

    async def run() -> None:
        async with scripted_server(responses) as server, make_http_client() as http_client:
            archive = Archive("a", "A", ArchiveKind.WAYBACK, replay=f"{server.base}/web/{{datetime}}id_/{{uri}}")
            await scenario(server, ReplayClient(archive, http_client, Problems()))

    asyncio.run(run())


async def fetch_raw(replay: ReplayClient, date: str = DATE) -> FetchedCapture | None:
    """Return the capture of a date, with its body closed."""
    url = raw_memento_url(replay.archive, date, PAGE)
    assert url is not None
    fetched = await replay.fetch(PAGE, url)
    if fetched is not None:
        fetched.body.close()
    return fetched


@pytest.mark.parametrize("status", [200, 203, 301, 400, 404, 410, 451, 500])
def test_response_with_memento_datetime_is_a_capture(status: int) -> None:
    """The status does not matter."""

    async def scenario(_: ScriptedServer, replay: ReplayClient) -> None:
        fetched = await fetch_raw(replay)
        assert fetched is not None
        assert (fetched.capture.status, fetched.capture.datetime) == (status, DATE)

    with_archive({RAW: ScriptedResponse(status, DATED, b"x")}, scenario)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (ScriptedResponse(404), None),
        (ScriptedResponse(410), None),
        (ScriptedResponse(400, {}, b"<h1>Self Redirect</h1>"), None),
        (ScriptedResponse(400), "status"),
        (ScriptedResponse(403), "status"),
        (ScriptedResponse(403, {}, b"x.RobotAccessControlException: y"), "excluded"),
        (ScriptedResponse(403, {}, b"x.AdministrativeAccessControlException: y"), "excluded"),
        (ScriptedResponse(451), "excluded"),
        (ScriptedResponse(204), "status"),
        (ScriptedResponse(300), "status"),
        (ScriptedResponse(200, {"Content-Type": "text/html"}, b"<p>the archive's own words</p>"), "malformed"),
        (ScriptedResponse(200, {"Memento-Datetime": "yesterday"}, b"x"), DATE),
        (ScriptedResponse(302, {"Location": f"/web/{DATE}id_/{PAGE}"}), "redirects"),
        (ScriptedResponse(302, {"Location": "ftp://example.com/"}), "redirects"),
        (ScriptedResponse(302, {"Location": "http://[broken"}), "redirects"),
        (ScriptedResponse(302, {"Location": "http://10.0.0.1/"}), "redirects"),
    ],
)
def test_response_without_memento_datetime_is_the_archives_own(
    response: ScriptedResponse, expected: str | None
) -> None:
    """The archive's own response means not held, a rule, or a failure."""

    async def scenario(_: ScriptedServer, replay: ReplayClient) -> None:
        if expected == "excluded":
            with pytest.raises(ExcludedError):
                await fetch_raw(replay)
        elif expected is None:
            assert await fetch_raw(replay) is None
        elif expected == DATE:
            fetched = await fetch_raw(replay)
            assert fetched is not None
            assert fetched.capture.datetime == DATE
            assert replay.problems.counts == {"bad-date": 1}
        else:
            with pytest.raises(FailedError) as failed:
                await fetch_raw(replay)
            assert failed.value.kind == expected

    with_archive({RAW: response}, scenario)


@pytest.mark.parametrize(
    "location",
    [
        "{base}/web/20160210000001id_/http://example.com/page",
        "/web/20160210000001id_/http://example.com/page",
        "/web/20160210000001id_/https://www.example.com/page",
        "/web/20160210000001id_/http:/example.com/page",
        "/elsewhere",
    ],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_to_another_date_is_followed(location: str, status: int) -> None:
    """The closest capture has its own date."""
    there = ScriptedResponse(200, {"Memento-Datetime": "Wed, 10 Feb 2016 00:00:01 GMT"}, b"x")
    responses = {
        RAW: ScriptedResponse(status, {"Location": location}),
        "/web/20160210000001id_/http://example.com/page": there,
        "/web/20160210000001id_/https://www.example.com/page": there,
        "/web/20160210000001id_/http:/example.com/page": there,
        "/elsewhere": there,
    }

    async def scenario(_: ScriptedServer, replay: ReplayClient) -> None:
        fetched = await fetch_raw(replay)
        assert fetched is not None
        assert (fetched.capture.datetime, fetched.capture.status, fetched.capture.redirect) == (
            "20160210000001",
            200,
            None,
        )
        assert fetched.source is not None
        assert fetched.source.endswith(location.removeprefix("{base}"))

    with_archive(responses, scenario)


@pytest.mark.parametrize(
    ("status", "location", "target", "expected"),
    [
        (302, "{base}/web/20140210000001id_/http://other.example/x?y=1", "http://other.example/x?y=1", None),
        (302, "/web/20140210000001id_/http:/other.example/x", "http://other.example/x", None),
        (302, "/web/20140210000009id_/http://other.example/x", "http://other.example/x", None),
        (301, "/web/20140210000001id_/http://other.example/x", "http://other.example/x", 301),
        (302, "/web/20140210000001id_/https://www.example.com/page", "https://www.example.com/page", None),
        (301, "http://other.example/x", "http://other.example/x", 301),
        (302, "/x?y", "http://example.com/x?y", 302),
        (307, "x", "http://example.com/x", 307),
        (303, "//other.example/", "http://other.example/", 303),
        (301, "http://[broken", "http://[broken", 301),
        (302, f"/web/{DATE}id_/{PAGE}", PAGE, None),
        (302, "https://another.archive/web/20140210000001/http://example.com/page",
         "https://another.archive/web/20140210000001/http://example.com/page", 302),
    ],
)  # fmt: skip
def test_captured_redirect_has_its_original_target(
    status: int, location: str, target: str, expected: int | None
) -> None:
    """Rewritten or original, absolute or relative targets are restored; status 302 may stand for any redirect."""

    async def scenario(server: ScriptedServer, replay: ReplayClient) -> None:
        fetched = await fetch_raw(replay)
        assert fetched is not None
        assert (fetched.capture.redirect, fetched.capture.status) == (target, expected)
        assert len(server.requests) == 1

    with_archive({RAW: ScriptedResponse(status, {**DATED, "Location": location})}, scenario)


def test_captured_redirect_is_detected_without_its_date() -> None:
    """A redirect to a memento of another page yields the original target and date."""

    async def scenario(server: ScriptedServer, replay: ReplayClient) -> None:
        fetched = await fetch_raw(replay)
        assert fetched is not None
        assert (fetched.capture.redirect, fetched.capture.datetime) == ("http://other.example/", "20160210000001")
        assert len(server.requests) == 1

    with_archive({RAW: ScriptedResponse(302, {"Location": "/web/20160210000001id_/http://other.example/"})}, scenario)


def test_endless_redirects_end() -> None:
    """Cycles and endless chains fail after few requests."""
    ever_on = {
        f"/web/{n:014d}id_/{PAGE}": ScriptedResponse(302, {"Location": f"/web/{n + 1:014d}id_/{PAGE}"})
        for n in range(99)
    }
    circle = {RAW: ScriptedResponse(302, {"Location": "/b"}), "/b": ScriptedResponse(302, {"Location": RAW})}

    async def scenario(server: ScriptedServer, replay: ReplayClient) -> None:
        for date in (DATE, "00000000000000"):
            with pytest.raises(FailedError) as failed:
                await fetch_raw(replay, date)
            assert failed.value.kind == "redirects"
        assert len(server.requests) <= 8

    with_archive(ever_on | circle, scenario)


def test_capture_of_another_page_is_foreign() -> None:
    """A memento of another URL is not returned for the page."""

    async def scenario(_: ScriptedServer, replay: ReplayClient) -> None:
        with pytest.raises(FailedError) as failed:
            await fetch_raw(replay)
        assert failed.value.kind == "foreign"

    with_archive({RAW: ScriptedResponse(200, {**DATED, "Link": '<http://other.example/>; rel="original"'})}, scenario)


def test_url_is_that_of_the_capture() -> None:
    """The archive may store another variant of the URL."""

    async def scenario(_: ScriptedServer, replay: ReplayClient) -> None:
        fetched = await fetch_raw(replay)
        assert fetched is not None
        assert fetched.capture.uri == "https://www.example.com/Page"

    with_archive(
        {RAW: ScriptedResponse(200, {**DATED, "Link": '<https://www.example.com/Page>; rel="original"'})}, scenario
    )


def test_original_headers_lose_their_prefix() -> None:
    """Prefixed headers are the original server's; others are used only for archives that do not change them."""
    headers = {
        **DATED,
        "X-Archive-Orig-Server": "old",
        "x-archive-orig-last-modified": HTTP_DATE,
        "X-Archive-Src": "x.warc.gz",
        "X-A": "b",
    }

    async def scenario(_: ScriptedServer, replay: ReplayClient) -> None:
        fetched = await fetch_raw(replay)
        assert fetched is not None
        known = {name.lower(): value for name, value in fetched.headers}
        assert known == {"content-type": "text/html", "server": "old", "last-modified": HTTP_DATE}
        assert fetched.header("LAST-modified") == HTTP_DATE
        fetched = await fetch_raw(ReplayClient(replay.archive, replay.client, replay.problems, plain_headers=True))
        assert fetched is not None
        assert fetched.header("x-a") == "b"
        assert fetched.header("memento-datetime") is None
        assert fetched.header("src") is None

    with_archive({RAW: ScriptedResponse(200, headers)}, scenario)


PACKED = gzip.compress(b"<p>hello</p>" * 10)


@pytest.mark.parametrize("field", ["Content-Encoding", "X-Archive-Orig-Content-Encoding"])
@pytest.mark.parametrize(
    ("body", "mime", "expected"),
    [
        (PACKED, "text/html", b"<p>hello</p>" * 10),
        (PACKED, "application/octet-stream", b"<p>hello</p>" * 10),
        (b"plain", "text/html", b"plain"),
        (gzip.compress(PACKED), "application/gzip", PACKED),
    ],
)
def test_encoded_capture_is_decoded(field: str, body: bytes, mime: str, expected: bytes) -> None:
    """The body is decoded whether or not the declared coding is present."""

    async def scenario(_: ScriptedServer, replay: ReplayClient) -> None:
        url = raw_memento_url(replay.archive, DATE, PAGE)
        assert url is not None
        fetched = await replay.fetch(PAGE, url)
        assert fetched is not None
        with fetched.body:
            assert fetched.body.read() == expected

    with_archive({RAW: ScriptedResponse(200, {**DATED, "Content-Type": mime, field: "gzip"}, body)}, scenario)


def test_truncated_capture_is_reported() -> None:
    """A body that does not match the index's digest is counted and returned."""

    async def scenario(server: ScriptedServer, replay: ReplayClient) -> None:
        url = raw_memento_url(replay.archive, DATE, PAGE)
        assert url is not None
        for body, reported in ((b"whole", {}), (b"who", {"other-digest": 1})):
            digest = "sha256:" + hashlib.sha256(b"whole").hexdigest()
            server.responses[RAW] = ScriptedResponse(200, DATED, body)
            fetched = await replay.fetch(PAGE, url, Capture(PAGE, "com,example)/page", DATE, digest=digest))
            assert fetched is not None
            with fetched.body:
                assert fetched.body.read() == body
            assert replay.problems.counts == reported

    with_archive({}, scenario)


def test_wrong_lengths_are_ignored_after_the_first() -> None:
    """An archive that passes on wrong captured lengths costs one additional request in total."""
    whole = b"a body and two bytes more"
    capture = Capture(PAGE, "com,example)/page", DATE, digest="sha256:" + hashlib.sha256(whole).hexdigest())

    async def answering(scenario: Exchange) -> None:
        await scenario.respond(200, whole, content_length=str(len(whole) - 2), memento_datetime=HTTP_DATE)

    async def run() -> None:
        async with run_fault_server(answering) as server, make_http_client() as http_client:
            archive = Archive("a", "A", ArchiveKind.WAYBACK, replay=f"{server.url}/web/{{datetime}}id_/{{uri}}")
            replay = ReplayClient(archive, http_client, Problems())
            url = f"{server.url}{RAW}"
            for number in range(12):
                fetched = await replay.fetch(PAGE, url, capture)
                assert fetched is not None
                with fetched.body:
                    assert fetched.body.read() == whole
                assert len(server.requests) == number + 2
            without = await replay.fetch(PAGE, url, replace(capture, digest=None))
            assert without is not None  # its length is not known to be wrong
            with without.body:
                assert without.body.read() == whole[:-2]
            assert replay.problems.counts == {}

    asyncio.run(run())


def test_memento_urls_are_parsed() -> None:
    """URLs built from the registry's templates contain their date and page."""
    archive = Archive(
        "a", "A", ArchiveKind.PYWB, timemap="http://B.org/", replay="https://a.org:81/w/{datetime}id_/{uri}"
    )
    assert raw_memento_url(archive, DATE, PAGE) == f"https://a.org:81/w/{DATE}id_/{PAGE}"
    assert memento_url(archive, DATE, PAGE) == f"https://a.org:81/w/{DATE}/{PAGE}"
    assert raw_memento_url(PLACE, DATE, PAGE) is None
    assert memento_url(PLACE, DATE, PAGE) is None
    assert archive_hosts(archive) == {"a.org", "b.org"}
    assert parse_memento_url(f"https://a.org/{DATE}/example.com/") == (DATE, "http://example.com/")
    assert parse_memento_url("https://a.org/web/2014/http://example.com/") == ("2014", "http://example.com/")
    assert parse_memento_url("https://a.org/web/99999999999999/http://example.com/") is None
    assert parse_memento_url("https://example.com/") is None


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("example.com", "http://example.com"),
        ("http://example.com/a/./b/../c/..", "http://example.com/a/"),
        ("http://example.com/../../x", "http://example.com/x"),
        ("http://example.com/%2E%2e/%2e/x", "http://example.com/x"),
        ("http://example.com/a..b/.c?../..", "http://example.com/a..b/.c?../.."),
        ("http://example.com//a//", "http://example.com//a//"),
        ("http://example.com/ä\udcff {}", "http://example.com/%C3%A4%FF%20%7B%7D"),
        ("http://example.com/%41%zz", "http://example.com/%41%zz"),
    ],
)
def test_memento_urls_are_escaped(uri: str, expected: str) -> None:
    """A URI cannot end the request or leave the archive's path."""
    assert normalize_input_url(uri) == expected
