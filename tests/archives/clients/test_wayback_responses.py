"""Invalid, refused and throttled responses of the Wayback Machine."""

import asyncio

import pytest

from tests.archives.clients.wayback import PAGE, array, row, with_archive
from tests.archives.helpers import collect_captures, collect_until_error, make_http_client
from tests.external.wayback_cdx import FakeWayback, StoredCapture, fake_wayback, make_captures
from tests.virtual_clock import VirtualClock
from unlost.archives import MementoClient, WaybackClient
from unlost.errors import ExcludedError, FailedError
from unlost.http import ArchiveHttpClient
from unlost.registry import RequestKind


@pytest.mark.parametrize("exception", ["AdministrativeAccessControlException", "RobotAccessControlException"])
def test_blocked_site_is_excluded(exception: str) -> None:
    """403 with one of two exception names is a rule of the archive, for listings and captures."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fake.excluded["example.com"] = exception
        client = WaybackClient(fake.archive(), http_client)
        _, error = await collect_until_error(client.captures(PAGE))
        assert isinstance(error, ExcludedError)
        with pytest.raises(ExcludedError):
            await client.get(PAGE)
        with pytest.raises(ExcludedError):
            await client.last_capture_date(PAGE)
        fake.excluded["example.com"] = "Something"
        _, error = await collect_until_error(client.captures(PAGE))
        assert isinstance(error, FailedError)
        assert error.kind == "status"

    with_archive([StoredCapture(PAGE, "20140210000001")], scenario)


def test_invalid_rows_are_skipped_and_counted() -> None:
    """Wrong types, lengths and dates affect only their row."""
    bad: list[object] = [
        row()[:-1],
        [*row(), "more"],
        row(timestamp="99999999999999"),
        row(timestamp="1" * 400),
        [*row()[:1], 10**300, *row()[2:]],
        [*row()[:2], None, *row()[3:]],
        [*row()[:2], True, *row()[3:]],
        row("http://example.com/\ud800"),
        row("http://exa mple.com\n/"),
        "text", 17, None, {"a": [1]}, [["nested"]], row(),
    ]  # fmt: skip

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fake.index_response = array(row(timestamp="20130101000000"), *bad, row(timestamp="20150101000000"))
        client = WaybackClient(fake.archive(), http_client)
        results = await collect_captures(client.captures(PAGE))
        assert [capture.datetime for capture in results] == ["20130101000000", "20140210000001", "20150101000000"]
        assert client.problems.total == 12, "what stands between two rows is one"
        assert set(client.problems.counts) == {"bad-field-count", "bad-date", "bad-address", "bad-json"}

    with_archive([], scenario)


def test_invalid_utf8_is_preserved() -> None:
    """A URL in another charset is valid."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fake.index_response = array(row("http://example.com/PLACE")).replace(b"PLACE", b"\xfc")
        results = await collect_captures(WaybackClient(fake.archive(), http_client).captures("http://example.com/%FC"))
        assert [capture.uri for capture in results] == ["http://example.com/%FC"]

    with_archive([], scenario)


def test_duplicate_rows_are_dropped() -> None:
    """Rows with different status or digest are different captures."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        other = [*row()[:4], "404", *row()[5:]]
        fake.index_response = array(row(), row(), other, row())
        results = await collect_captures(WaybackClient(fake.archive(), http_client).captures(PAGE))
        assert [capture.status for capture in results] == [200, 404]

    with_archive([], scenario)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>502</html>",
        b"",
        b"\xff" * 5_000_000,
        b"[" * 5_000_000,
        b"[{" * 2_500_000,
        b"[" + b'{"a":' * 100_000 + b"1",
        b"[" + b"{}," * 1_000_000,
        b"[" + b"[]," * 1_000_000,
        b'["' + b"x" * 9_000_000,
        b"[" + b'["' * 1_000_000,
        b"9" * 5_000_000,
        array(row())[:-1],
        array(row())[:-20],
        array([True] * 7, [None] * 7),
        b'{"error": "no"}',
        b'["urlkey", "timestamp", "original"]',
    ],
    ids=lambda body: repr(body[:12]),
)
def test_other_text_is_malformed(body: bytes) -> None:
    """Garbage and truncated listings are not empty listings."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fake.index_response = body
        client = WaybackClient(fake.archive(), http_client)
        _, error = await asyncio.wait_for(collect_until_error(client.captures(PAGE)), 20)
        assert isinstance(error, FailedError)
        assert error.kind == "malformed"

    with_archive([], scenario)


def test_exclusion_instead_of_a_list() -> None:
    """A body with the exception's name is an exclusion for any status."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fake.index_response = b"org.archive.wayback.exception.RobotAccessControlException: blocked"
        _, error = await collect_until_error(WaybackClient(fake.archive(), http_client).captures(PAGE))
        assert isinstance(error, ExcludedError)

    with_archive([], scenario)


def test_rate_limit_is_respected() -> None:
    """Listings and TimeMaps share 30 requests per minute, and replay does not wait for them."""

    async def run() -> None:
        clock = VirtualClock()
        async with fake_wayback(make_captures(60), clock) as fake, make_http_client(clock) as http_client:
            fake.per_minute = {RequestKind.INDEX: 30, RequestKind.REPLAY: 600}
            begin = clock.now()
            client = WaybackClient(fake.archive(rows_per_page=1), http_client)
            timemaps = MementoClient(fake.archive(), http_client)
            results, lists = await asyncio.gather(
                collect_captures(client.list_prefix("http://example.com")),
                asyncio.gather(
                    *(collect_captures(timemaps.captures(stored.original)) for stored in fake.captures[:20])
                ),
            )
            assert (len(results), [len(each) for each in lists]) == (60, [1] * 20)
            assert fake.refused == 0
            times = [at for at, _, _ in fake.requests]
            assert len(times) == 80
            assert max(sum(at <= each < at + 60 for each in times) for at in times) <= 30
            assert 100 < clock.now() - begin < 300
            assert await client.get(fake.captures[0].original + "x") is None
            assert fake.requests[-1][:2] == (clock.now(), RequestKind.REPLAY)

    asyncio.run(run())


def test_throttling_is_obeyed() -> None:
    """Without a known limit, 429 without Retry-After pauses requests for a minute, and no row is lost."""

    async def run() -> None:
        clock = VirtualClock()
        async with fake_wayback(make_captures(70), clock) as fake, make_http_client(clock) as http_client:
            archive = fake.archive(rows_per_page=1)
            fake.per_minute = {RequestKind.INDEX: 30}
            results = await collect_captures(WaybackClient(archive, http_client).list_prefix("http://example.com"))
            assert [capture.uri for capture in results] == [stored.original for stored in fake.captures]
            assert fake.refused == 2
            assert clock.slept.count(60.0) + sum(50 < each < 60 for each in clock.slept) >= 2

    asyncio.run(run())
