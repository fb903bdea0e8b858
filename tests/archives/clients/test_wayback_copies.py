"""Copies of the Wayback Machine: which of them comes, and what is said of it."""

from dataclasses import replace
from urllib.parse import quote

import pytest

from tests.archives.clients.wayback import PAGE, with_archive
from tests.archives.helpers import listed
from tests.neighbours.wayback_cdx import FakeWayback, Stored
from unlost.archives import WaybackClient
from unlost.http import ArchiveHttpClient
from unlost.registry import RequestKind


def test_capture_has_its_own_headers_and_date() -> None:
    """From any date the archive leads to the closest copy, and that is what is said to have come."""
    stored = [Stored(PAGE, "20140210000001", b"old", headers=(("Server", "Apache"), ("X-A", "b")))]
    stored.append(Stored(PAGE, "20160210000001", b"new"))

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        copy = await client.get(PAGE, "2014")
        assert copy is not None
        with copy.body:
            assert copy.body.read() == b"old"
        assert copy.capture.datetime == "20140210000001"
        assert (copy.capture.status, copy.capture.mime, copy.capture.archive) == (200, "text/html", "fake.wayback")
        assert copy.capture.urim == f"{fake.base}/web/20140210000001/{PAGE}"
        assert copy.headers == (("Content-Type", "text/html; charset=x-odd"), ("Server", "Apache"), ("X-A", "b"))
        last = await client.get(PAGE)
        assert last is not None
        last.body.close()
        assert last.capture.datetime == "20160210000001"
        assert await client.last_capture_date(PAGE) == "20160210000001"
        assert len(fake.paths(RequestKind.INDEX)) == 1

    with_archive(stored, talk)


def test_listed_capture_that_moved_has_another_date() -> None:
    """What the index said of one date is not said of the copy of another that came instead."""

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        (capture,) = await listed(client.captures(PAGE))
        fake.stored = [replace(fake.stored[0], timestamp="20150210000001", mimetype="image/png")]
        copy = await client.fetch(capture)
        assert copy is not None
        copy.body.close()
        assert copy.capture.datetime == "20150210000001"
        assert (copy.capture.digest, copy.capture.length, copy.capture.mime) == (None, None, "image/png")
        fake.stored = []
        assert await client.fetch(capture) is None

    with_archive([Stored(PAGE, "20140210000001")], talk)


@pytest.mark.parametrize("status", [404, 500, 503])
def test_captured_error_is_a_capture(status: int) -> None:
    """With Memento-Datetime any status is that of the original server."""

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        copy = await WaybackClient(fake.archive(), http_client).get(PAGE)
        assert copy is not None
        with copy.body:
            assert copy.body.read() == b"gone"
        assert copy.capture.status == status

    with_archive([Stored(PAGE, "20140210000001", b"gone", statuscode=status)], talk)


@pytest.mark.parametrize("location", ["/elsewhere?a=1", "http://example.com/elsewhere?a=1"])
def test_status_of_a_redirect_is_that_of_the_index(location: str) -> None:
    """The archive says 302 and its own address; the capture says what was, as far as the index was asked."""
    stored = [Stored(PAGE, "20140210000001", b"", statuscode=301, location=location)]
    stored.append(Stored("http://example.com/elsewhere?a=1", "20140210000001", b"there"))

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        (capture,) = await listed(client.captures(PAGE))
        copy = await client.fetch(capture)
        assert copy is not None
        copy.body.close()
        assert (copy.capture.status, copy.capture.redirect) == (301, "http://example.com/elsewhere?a=1")
        copy = await client.get(PAGE, "2012")
        assert copy is not None
        copy.body.close()
        assert (copy.capture.status, copy.capture.redirect) == (None, "http://example.com/elsewhere?a=1")
        assert copy.capture.datetime == "20140210000001"

    with_archive(stored, talk)


def test_redirect_to_the_same_page_elsewhere_is_a_capture() -> None:
    """From http to https and `www` the key is the same; it was captured all the same."""
    stored = [Stored(PAGE, "20140210000001", b"", statuscode=301, location="https://www.example.com/page")]

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        (capture,) = await listed(client.captures(PAGE))
        copy = await client.fetch(capture)
        assert copy is not None
        copy.body.close()
        assert (copy.capture.status, copy.capture.redirect) == (301, "https://www.example.com/page")

    with_archive(stored, talk)


def test_unusual_urls_are_sent_unchanged() -> None:
    """Escapes, queries and slashes in an address are put behind the archive's own unharmed."""
    odd = ["http://example.com/a%2Fb?c=%26&d=e%20f", "http://example.com//x", "http://example.com/?q=http://a.com/?b=c"]

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        for address in odd:
            copy = await client.get(address)
            assert copy is not None, address
            with copy.body:
                assert copy.body.read() == quote(address).encode()
        # What would climb out of the archive's own folder is resolved before.
        assert await client.get("http://example.com/a/../../../../cdx/search/cdx?url=x") is None
        assert fake.paths(RequestKind.INDEX) == []

    with_archive([Stored(address, "20140210000001", quote(address).encode()) for address in odd], talk)
