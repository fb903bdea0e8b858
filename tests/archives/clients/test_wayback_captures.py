"""Captures fetched from the Wayback Machine, and their metadata."""

from dataclasses import replace
from urllib.parse import quote

import pytest

from tests.archives.clients.wayback import PAGE, with_archive
from tests.archives.helpers import collect_captures
from tests.external.wayback_cdx import FakeWayback, StoredCapture
from unlost.archives import WaybackClient
from unlost.http import ArchiveHttpClient
from unlost.registry import RequestKind


def test_capture_has_its_own_headers_and_date() -> None:
    """The archive redirects to the closest capture, whose date is returned."""
    stored = [StoredCapture(PAGE, "20140210000001", b"old", headers=(("Server", "Apache"), ("X-A", "b")))]
    stored.append(StoredCapture(PAGE, "20160210000001", b"new"))

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        fetched = await client.get(PAGE, "2014")
        assert fetched is not None
        with fetched.body:
            assert fetched.body.read() == b"old"
        assert fetched.capture.datetime == "20140210000001"
        assert (fetched.capture.status, fetched.capture.mime, fetched.capture.archive) == (
            200,
            "text/html",
            "fake.wayback",
        )
        assert fetched.capture.urim == f"{fake.base}/web/20140210000001/{PAGE}"
        assert fetched.headers == (("Content-Type", "text/html; charset=x-odd"), ("Server", "Apache"), ("X-A", "b"))
        last = await client.get(PAGE)
        assert last is not None
        last.body.close()
        assert last.capture.datetime == "20160210000001"
        assert await client.last_capture_date(PAGE) == "20160210000001"
        assert len(fake.paths(RequestKind.INDEX)) == 1

    with_archive(stored, scenario)


def test_listed_capture_that_moved_has_another_date() -> None:
    """Index fields of one date are not applied to the capture of another."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        (capture,) = await collect_captures(client.captures(PAGE))
        fake.captures = [replace(fake.captures[0], timestamp="20150210000001", mimetype="image/png")]
        fetched = await client.fetch(capture)
        assert fetched is not None
        fetched.body.close()
        assert fetched.capture.datetime == "20150210000001"
        assert (fetched.capture.digest, fetched.capture.length, fetched.capture.mime) == (None, None, "image/png")
        fake.captures = []
        assert await client.fetch(capture) is None

    with_archive([StoredCapture(PAGE, "20140210000001")], scenario)


@pytest.mark.parametrize("status", [404, 500, 503])
def test_captured_error_is_a_capture(status: int) -> None:
    """With Memento-Datetime, any status is the original server's."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fetched = await WaybackClient(fake.archive(), http_client).get(PAGE)
        assert fetched is not None
        with fetched.body:
            assert fetched.body.read() == b"gone"
        assert fetched.capture.status == status

    with_archive([StoredCapture(PAGE, "20140210000001", b"gone", statuscode=status)], scenario)


@pytest.mark.parametrize("location", ["/elsewhere?a=1", "http://example.com/elsewhere?a=1"])
def test_status_of_a_redirect_is_that_of_the_index(location: str) -> None:
    """The archive returns 302; the capture has the indexed status, if it was queried."""
    stored = [StoredCapture(PAGE, "20140210000001", b"", statuscode=301, location=location)]
    stored.append(StoredCapture("http://example.com/elsewhere?a=1", "20140210000001", b"there"))

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        (capture,) = await collect_captures(client.captures(PAGE))
        fetched = await client.fetch(capture)
        assert fetched is not None
        fetched.body.close()
        assert (fetched.capture.status, fetched.capture.redirect) == (301, "http://example.com/elsewhere?a=1")
        fetched = await client.get(PAGE, "2012")
        assert fetched is not None
        fetched.body.close()
        assert (fetched.capture.status, fetched.capture.redirect) == (None, "http://example.com/elsewhere?a=1")
        assert fetched.capture.datetime == "20140210000001"

    with_archive(stored, scenario)


def test_redirect_to_the_same_page_elsewhere_is_a_capture() -> None:
    """Redirects from http to https or to `www` have the same key and are captures."""
    stored = [StoredCapture(PAGE, "20140210000001", b"", statuscode=301, location="https://www.example.com/page")]

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        (capture,) = await collect_captures(client.captures(PAGE))
        fetched = await client.fetch(capture)
        assert fetched is not None
        fetched.body.close()
        assert (fetched.capture.status, fetched.capture.redirect) == (301, "https://www.example.com/page")

    with_archive(stored, scenario)


def test_unusual_urls_are_sent_unchanged() -> None:
    """Escapes, queries and slashes are appended to the archive's URL unchanged."""
    unusual = [
        "http://example.com/a%2Fb?c=%26&d=e%20f",
        "http://example.com//x",
        "http://example.com/?q=http://a.com/?b=c",
    ]

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        for url in unusual:
            fetched = await client.get(url)
            assert fetched is not None, url
            with fetched.body:
                assert fetched.body.read() == quote(url).encode()
        # Dot segments are resolved before the URL is appended.
        assert await client.get("http://example.com/a/../../../../cdx/search/cdx?url=x") is None
        assert fake.paths(RequestKind.INDEX) == []

    with_archive([StoredCapture(url, "20140210000001", quote(url).encode()) for url in unusual], scenario)
