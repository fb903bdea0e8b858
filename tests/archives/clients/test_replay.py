"""Stored copies: what is one, of which date and page, and in which coding."""

import asyncio
import gzip
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

import pytest

from tests.archives.helpers import make_http_client
from tests.neighbours.faults import Talk, faulty
from tests.neighbours.scripted import Answer, Scripted, scripted
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


def with_archive(answers: Mapping[str, Answer], talk: Callable[[Scripted, ReplayClient], Awaitable[None]]) -> None:
    """Run a conversation with an archive that says what it is told to."""

    async def run() -> None:
        async with scripted(answers) as server, make_http_client() as http_client:
            archive = Archive("a", "A", ArchiveKind.WAYBACK, replay=f"{server.base}/web/{{datetime}}id_/{{uri}}")
            await talk(server, ReplayClient(archive, http_client, Problems()))

    asyncio.run(run())


async def raw(replay: ReplayClient, date: str = DATE) -> FetchedCapture | None:
    """Return the copy of a date, with its body closed."""
    address = raw_memento_url(replay.archive, date, PAGE)
    assert address is not None
    copy = await replay.fetch(PAGE, address)
    if copy is not None:
        copy.body.close()
    return copy


@pytest.mark.parametrize("status", [200, 203, 301, 400, 404, 410, 451, 500])
def test_response_with_memento_datetime_is_a_capture(status: int) -> None:
    """Whatever its status, an answer with it is a copy."""

    async def talk(_: Scripted, replay: ReplayClient) -> None:
        copy = await raw(replay)
        assert copy is not None
        assert (copy.capture.status, copy.capture.datetime) == (status, DATE)

    with_archive({RAW: Answer(status, DATED, b"x")}, talk)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(404), None),
        (Answer(410), None),
        (Answer(400, {}, b"<h1>Self Redirect</h1>"), None),
        (Answer(400), "status"),
        (Answer(403), "status"),
        (Answer(403, {}, b"x.RobotAccessControlException: y"), "excluded"),
        (Answer(403, {}, b"x.AdministrativeAccessControlException: y"), "excluded"),
        (Answer(451), "excluded"),
        (Answer(204), "status"),
        (Answer(300), "status"),
        (Answer(200, {"Content-Type": "text/html"}, b"<p>the archive's own words</p>"), "malformed"),
        (Answer(200, {"Memento-Datetime": "yesterday"}, b"x"), DATE),
        (Answer(302, {"Location": f"/web/{DATE}id_/{PAGE}"}), "redirects"),
        (Answer(302, {"Location": "ftp://example.com/"}), "redirects"),
        (Answer(302, {"Location": "http://[broken"}), "redirects"),
        (Answer(302, {"Location": "http://10.0.0.1/"}), "redirects"),
    ],
)
def test_response_without_memento_datetime_is_the_archives_own(answer: Answer, expected: str | None) -> None:
    """Its own error page is never content: it is nothing held, a rule, or a fault."""

    async def talk(_: Scripted, replay: ReplayClient) -> None:
        if expected == "excluded":
            with pytest.raises(ExcludedError):
                await raw(replay)
        elif expected is None:
            assert await raw(replay) is None
        elif expected == DATE:
            copy = await raw(replay)
            assert copy is not None
            assert copy.capture.datetime == DATE
            assert replay.problems.counts == {"bad-date": 1}
        else:
            with pytest.raises(FailedError) as failed:
                await raw(replay)
            assert failed.value.kind == expected

    with_archive({RAW: answer}, talk)


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
    """The closest copy comes, with its own date."""
    there = Answer(200, {"Memento-Datetime": "Wed, 10 Feb 2016 00:00:01 GMT"}, b"x")
    answers = {
        RAW: Answer(status, {"Location": location}),
        "/web/20160210000001id_/http://example.com/page": there,
        "/web/20160210000001id_/https://www.example.com/page": there,
        "/web/20160210000001id_/http:/example.com/page": there,
        "/elsewhere": there,
    }

    async def talk(_: Scripted, replay: ReplayClient) -> None:
        copy = await raw(replay)
        assert copy is not None
        assert (copy.capture.datetime, copy.capture.status, copy.capture.redirect) == ("20160210000001", 200, None)
        assert copy.source is not None
        assert copy.source.endswith(location.removeprefix("{base}"))

    with_archive(answers, talk)


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
    """Rewritten or original, absolute or relative: the capture says where the page led. 302 may be any code."""

    async def talk(server: Scripted, replay: ReplayClient) -> None:
        copy = await raw(replay)
        assert copy is not None
        assert (copy.capture.redirect, copy.capture.status) == (target, expected)
        assert len(server.asked) == 1

    with_archive({RAW: Answer(status, {**DATED, "Location": location})}, talk)


def test_captured_redirect_is_detected_without_its_date() -> None:
    """An archive that leads to a copy of another page says what the page led to, and when."""

    async def talk(server: Scripted, replay: ReplayClient) -> None:
        copy = await raw(replay)
        assert copy is not None
        assert (copy.capture.redirect, copy.capture.datetime) == ("http://other.example/", "20160210000001")
        assert len(server.asked) == 1

    with_archive({RAW: Answer(302, {"Location": "/web/20160210000001id_/http://other.example/"})}, talk)


def test_endless_redirects_end() -> None:
    """Redirects in a circle, or ever on, fail after few requests."""
    ever_on = {f"/web/{n:014d}id_/{PAGE}": Answer(302, {"Location": f"/web/{n + 1:014d}id_/{PAGE}"}) for n in range(99)}
    circle = {RAW: Answer(302, {"Location": "/b"}), "/b": Answer(302, {"Location": RAW})}

    async def talk(server: Scripted, replay: ReplayClient) -> None:
        for date in (DATE, "00000000000000"):
            with pytest.raises(FailedError) as failed:
                await raw(replay, date)
            assert failed.value.kind == "redirects"
        assert len(server.asked) <= 8

    with_archive(ever_on | circle, talk)


def test_capture_of_another_page_is_foreign() -> None:
    """What says that it is a copy of something else is not given out as the page."""

    async def talk(_: Scripted, replay: ReplayClient) -> None:
        with pytest.raises(FailedError) as failed:
            await raw(replay)
        assert failed.value.kind == "foreign"

    with_archive({RAW: Answer(200, {**DATED, "Link": '<http://other.example/>; rel="original"'})}, talk)


def test_url_is_that_of_the_capture() -> None:
    """The archive may hold another spelling of the address that was asked for."""

    async def talk(_: Scripted, replay: ReplayClient) -> None:
        copy = await raw(replay)
        assert copy is not None
        assert copy.capture.uri == "https://www.example.com/Page"

    with_archive({RAW: Answer(200, {**DATED, "Link": '<https://www.example.com/Page>; rel="original"'})}, talk)


def test_original_headers_lose_their_prefix() -> None:
    """Prefixed headers are the original server's; others are only where the archive is known to leave them alone."""
    headers = {
        **DATED,
        "X-Archive-Orig-Server": "old",
        "x-archive-orig-last-modified": HTTP_DATE,
        "X-Archive-Src": "x.warc.gz",
        "X-A": "b",
    }

    async def talk(_: Scripted, replay: ReplayClient) -> None:
        copy = await raw(replay)
        assert copy is not None
        known = {name.lower(): value for name, value in copy.headers}
        assert known == {"content-type": "text/html", "server": "old", "last-modified": HTTP_DATE}
        assert copy.header("LAST-modified") == HTTP_DATE
        copy = await raw(ReplayClient(replay.archive, replay.client, replay.problems, plain_headers=True))
        assert copy is not None
        assert copy.header("x-a") == "b"
        assert copy.header("memento-datetime") is None
        assert copy.header("src") is None

    with_archive({RAW: Answer(200, headers)}, talk)


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
    """The body is the page, whether the archive sends the coding on or only tells of it, rightly or not."""

    async def talk(_: Scripted, replay: ReplayClient) -> None:
        address = raw_memento_url(replay.archive, DATE, PAGE)
        assert address is not None
        copy = await replay.fetch(PAGE, address)
        assert copy is not None
        with copy.body:
            assert copy.body.read() == expected

    with_archive({RAW: Answer(200, {**DATED, "Content-Type": mime, field: "gzip"}, body)}, talk)


def test_truncated_capture_is_reported() -> None:
    """Where the index has a digest, a body without it is counted, and given all the same."""

    async def talk(server: Scripted, replay: ReplayClient) -> None:
        address = raw_memento_url(replay.archive, DATE, PAGE)
        assert address is not None
        for body, told in ((b"whole", {}), (b"who", {"other-digest": 1})):
            digest = "sha256:" + hashlib.sha256(b"whole").hexdigest()
            server.answers[RAW] = Answer(200, DATED, body)
            copy = await replay.fetch(PAGE, address, Capture(PAGE, "com,example)/page", DATE, digest=digest))
            assert copy is not None
            with copy.body:
                assert copy.body.read() == body
            assert replay.problems.counts == told

    with_archive({}, talk)


def test_wrong_lengths_are_ignored_after_the_first() -> None:
    """An archive that passes on captured lengths that are too short gets one request more, not one a capture."""
    whole = b"a body and two bytes more"
    capture = Capture(PAGE, "com,example)/page", DATE, digest="sha256:" + hashlib.sha256(whole).hexdigest())

    async def answering(talk: Talk) -> None:
        await talk.answer(200, whole, content_length=str(len(whole) - 2), memento_datetime=HTTP_DATE)

    async def run() -> None:
        async with faulty(answering) as server, make_http_client() as http_client:
            archive = Archive("a", "A", ArchiveKind.WAYBACK, replay=f"{server.url}/web/{{datetime}}id_/{{uri}}")
            replay = ReplayClient(archive, http_client, Problems())
            address = f"{server.url}{RAW}"
            for number in range(12):
                copy = await replay.fetch(PAGE, address, capture)
                assert copy is not None
                with copy.body:
                    assert copy.body.read() == whole
                assert len(server.asked) == number + 2
            without = await replay.fetch(PAGE, address, replace(capture, digest=None))
            assert without is not None  # nothing says that its length is wrong
            with without.body:
                assert without.body.read() == whole[:-2]
            assert replay.problems.counts == {}

    asyncio.run(run())


def test_memento_urls_are_parsed() -> None:
    """They are made from the registry's templates, and say their date and page."""
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
    """Nothing in them can end the request or climb out of the archive's folder."""
    assert normalize_input_url(uri) == expected
