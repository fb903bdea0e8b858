"""The client for the Wayback Machine, against an archive that has its habits."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from tests.archives.collected import a_courier, collected, listed
from tests.neighbours.wayback_cdx import FIELDS, FakeWayback, Stored, fake_wayback, pages
from tests.virtual_clock import VirtualClock
from unlost.archives.archive import Work
from unlost.archives.asking.courier import Courier
from unlost.archives.clients.memento import MementoArchive
from unlost.archives.clients.wayback import WaybackArchive
from unlost.errors import (
    DateError,
    ExcludedError,
    FailedError,
    ListCutError,
    UnsupportedError,
    UriError,
)
from unlost.formats.capture import Capture

PAGE = "http://example.com/page"
DIGEST = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


def with_archive(
    stored: list[Stored],
    talk: Callable[[FakeWayback, Courier], Awaitable[None]],
) -> None:
    """Run a conversation with an archive that holds something."""

    async def run() -> None:
        async with fake_wayback(stored) as fake, a_courier() as courier:
            await talk(fake, courier)

    asyncio.run(run())


def array(*rows: object) -> bytes:
    """Return rows as the index gives them, below the names of their fields."""
    return json.dumps([list(FIELDS), *rows]).encode()


def row(original: str = PAGE, timestamp: str = "20140210000001") -> list[str]:
    """Return a good row."""
    return ["com,example)/page", timestamp, original, "text/html", "200", "D", "100"]


def test_captures_of_a_page_come_with_all_that_the_index_says() -> None:
    """Date, status, type, digest, length, URI-M and key are those of the row, normalised."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        found = await listed(WaybackArchive(fake.archive(), courier).captures(PAGE))
        assert found == [
            Capture(
                PAGE, "com,example)/page", "20140210000001", 200, "text/html", DIGEST, 12, archive="fake.wayback",
                urim=f"{fake.base}/web/20140210000001/{PAGE}", migrated=False,
            )
        ]  # fmt: skip

    with_archive([Stored(PAGE, "20140210000001"), Stored("http://example.com/other", "20140210000001")], talk)


def test_nothing_held_is_an_empty_list() -> None:
    """An empty array is an answer, not an error."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        client = WaybackArchive(fake.archive(), courier)
        assert await listed(client.captures(PAGE)) == []
        assert await client.get(PAGE) is None
        assert await client.crawl_date(PAGE) is None
        fake.instead = b""
        assert await collected(client.captures(PAGE)) != ([], None)

    with_archive([], talk)


def test_the_address_is_percent_encoded() -> None:
    """A query of the address is no query of the index."""
    address = "http://example.com/a b?x=1&limit=0&url=http://other.example/%26#part"

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        assert len(await listed(WaybackArchive(fake.archive(), courier).captures(address))) == 1
        asked = parse_qs(urlsplit(fake.paths(Work.INDEX)[-1]).query)
        assert asked["url"] == ["http://example.com/a%20b?x=1&limit=0&url=http://other.example/%26"]

    with_archive([Stored("http://example.com/a%20b?x=1&limit=0&url=http://other.example/%26", "2014" + "01" * 5)], talk)


def test_fields_are_told_by_their_names() -> None:
    """The first row says which column is which, and further columns do no harm."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        fake.instead = json.dumps(
            [["statuscode", "new", "original", "timestamp"], ["404", {}, PAGE, "2014"], ["404", "x", PAGE, "2014"]]
        ).encode()
        client = WaybackArchive(fake.archive(), courier)
        found = await listed(client.captures(PAGE))
        assert [(capture.status, capture.datetime, capture.mime) for capture in found] == [
            (404, "20140101000000", None)
        ]
        fake.instead = b'[["a", "b"], ["c", "d"]]'
        _, error = await collected(client.captures(PAGE))
        assert isinstance(error, FailedError)
        assert error.kind == "malformed"

    with_archive([], talk)


@pytest.mark.parametrize("count", [1, 9, 10, 11, 95])
def test_pages_are_followed_by_their_key(count: int) -> None:
    """Every row of a list comes once, in order, by as few questions as there are pages, all of them the same query."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        client = WaybackArchive(fake.archive(rows_per_page=10), courier)
        found, error = await collected(client.under("http://example.com/"))
        assert [capture.uri for capture in found] == [stored.original for stored in fake.stored]
        # A first page that is full and has no key may be all, or the archive may know no keys.
        assert isinstance(error, ListCutError) == (count == 10)
        asked = [parse_qs(urlsplit(path).query) for path in fake.paths(Work.INDEX)]
        assert len(asked) == -(-count // 10)
        assert [each.pop("resumeKey", None) for each in asked] == [
            None,
            *([f"r{10 * n}"] for n in range(1, len(asked))),
        ]
        assert all(one == other for one, other in pairwise(asked))
        assert asked[0]["limit"] == ["10"]
        assert asked[0]["showResumeKey"] == ["true"]
        assert "page" not in asked[0]

    with_archive(pages(count), talk)


@pytest.mark.parametrize("cap", [30, 33])
def test_a_list_that_was_cut_says_so_behind_its_rows(cap: int) -> None:
    """Where the cap of the archive is reached everything before it has been given."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        fake.cap = cap
        client = WaybackArchive(fake.archive(rows_per_page=10, cap=cap), courier)
        found, error = await collected(client.under("http://example.com/"))
        assert len(found) == cap
        assert isinstance(error, ListCutError)
        assert len(fake.asked) == -(-cap // 10)

    with_archive(pages(35), talk)


def test_a_key_leads_on_beyond_the_cap_of_a_query() -> None:
    """A site that has more rows than one query gives is listed whole."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        client = WaybackArchive(fake.archive(rows_per_page=10, cap=20), courier)
        assert len(await listed(client.under("http://example.com/"))) == 35

    with_archive(pages(35), talk)


def test_a_key_that_comes_again_ends_the_list() -> None:
    """A list that leads in a circle is malformed; nothing is asked for ever."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        fake.instead = array(row(), [], ["again"])
        found, error = await collected(WaybackArchive(fake.archive(), courier).captures(PAGE))
        assert len(found) == 1
        assert isinstance(error, FailedError)
        assert error.kind == "malformed"
        assert len(fake.asked) == 2

    with_archive([], talk)


def test_keys_that_lead_to_nothing_new_end_the_list() -> None:
    """New keys to the same rows, for ever, are given up after some pages."""

    class Endless(FakeWayback):
        def _index(self, query: dict[str, str]) -> object:  # type: ignore[override]
            self.instead = array(row(), [], [f"key {len(self.asked)}"])
            return super()._index(query)

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        fake.__class__ = Endless
        found, error = await collected(WaybackArchive(fake.archive(), courier).captures(PAGE))
        assert len(found) == 1
        assert isinstance(error, FailedError)
        assert len(fake.asked) < 10

    with_archive([], talk)


def test_revisits_are_never_dropped() -> None:
    """A row of `warc/revisit` without a status is a capture that says `as before`."""
    stored = [
        Stored(PAGE, "20140210000001"),
        Stored(PAGE, "20150210000001", mimetype="warc/revisit", statuscode=None),
    ]

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        found = await listed(WaybackArchive(fake.archive(), courier).captures(PAGE))
        assert [(capture.revisit, capture.status, capture.mime) for capture in found] == [
            (False, 200, "text/html"),
            (True, None, None),
        ]
        assert found[0].digest == found[1].digest

    with_archive(stored, talk)


def test_rows_of_other_schemes_are_left_out() -> None:
    """`mailto:` and `data:` come with a list of a site and are no pages of it."""
    stored = [Stored(PAGE, "20140210000001"), Stored("mailto:a@example.com", "20140210000001")]
    stored.append(Stored("data:text/plain,hello", "20140210000001"))

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        client = WaybackArchive(fake.archive(), courier)
        assert [capture.uri for capture in await listed(client.under("http://example.com"))] == [PAGE]
        assert client.problems.counts == {"foreign-scheme": 2}

    with_archive(stored, talk)


@pytest.mark.parametrize(
    ("prefix", "match", "url", "expected"),
    [
        ("http://example.com", "host", "example.com", ["http://example.com/a/1", "https://www.example.com/ab"]),
        (
            "http://example.com/",
            "prefix",
            "http://example.com/",
            ["http://example.com/a/1", "https://www.example.com/ab"],
        ),
        ("example.com/a/", "prefix", "http://example.com/a/", ["http://example.com/a/1"]),
        (
            "http://example.com/a",
            "prefix",
            "http://example.com/a",
            ["http://example.com/a/1", "https://www.example.com/ab"],
        ),
        (
            "*.example.com",
            "domain",
            "example.com",
            ["http://example.com/a/1", "https://www.example.com/ab", "http://sub.example.com/a/1"],
        ),
    ],
)
def test_a_prefix_chooses_the_kind_of_match(prefix: str, match: str, url: str, expected: list[str]) -> None:
    """An address ends in a path, a host or begins with `*.`; what comes back beyond it is left out."""
    stored = [
        Stored("http://example.com/a/1", "20140210000001"),
        Stored("https://www.example.com/ab", "20140210000001"),
        Stored("http://sub.example.com/a/1", "20140210000001"),
        Stored("http://example.company/a/1", "20140210000001"),
    ]

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        client = WaybackArchive(fake.archive(), courier)
        assert [capture.uri for capture in await listed(client.under(prefix))] == expected
        asked = parse_qs(urlsplit(fake.paths(Work.INDEX)[-1]).query)
        assert (asked["matchType"], asked["url"]) == ([match], [url])
        # An archive that gives everything, whatever it is asked.
        fake.instead = array(*(each.row() for each in stored))
        client = WaybackArchive(fake.archive(), courier)
        assert [capture.uri for capture in await listed(client.under(prefix))] == expected
        assert client.problems.counts["elsewhere"] >= 4 - len(expected)

    with_archive(stored, talk)


def test_what_a_lister_cannot_do_is_not_asked() -> None:
    """Without the kind of match that a prefix needs, and without a lister, no request is sent."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        archive = fake.archive()
        assert archive.lister is not None
        only_prefix = replace(archive, lister=replace(archive.lister, matches=("exact", "prefix")))
        _, error = await collected(WaybackArchive(only_prefix, courier).under("*.example.com"))
        assert isinstance(error, UnsupportedError)
        _, error = await collected(WaybackArchive(replace(archive, lister=None), courier).under(PAGE))
        assert isinstance(error, UnsupportedError)
        _, error = await collected(WaybackArchive(replace(archive, cdx=None), courier).captures(PAGE))
        assert isinstance(error, UnsupportedError)
        assert fake.asked == []
        # A host is what begins with its address.
        assert len(await listed(WaybackArchive(only_prefix, courier).under("http://example.com"))) == 3

    with_archive(pages(3), talk)


def test_dates_are_sent_whole_and_both_inclusive() -> None:
    """A year is its first to its last second, and an archive that ignores the span does not widen it."""
    stored = [Stored(PAGE, date) for date in ("20131231235959", "20140101000000", "20151231235959", "20160101000000")]

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        client = WaybackArchive(fake.archive(), courier)
        wanted = ["20140101000000", "20151231235959"]
        assert [capture.datetime for capture in await listed(client.under(PAGE, "2014", "2015"))] == wanted
        asked = parse_qs(urlsplit(fake.paths(Work.INDEX)[-1]).query)
        assert (asked["from"], asked["to"]) == (["20140101000000"], ["20151231235959"])
        fake.instead = array(*(each.row() for each in stored))
        assert [capture.datetime for capture in await listed(client.under(PAGE, "2014", "2015"))] == wanted
        assert client.problems.counts == {"other-date": 2}
        with pytest.raises(DateError):
            await listed(client.under(PAGE, "next year"))
        with pytest.raises(UriError):
            await listed(client.captures("mailto:a@example.com"))

    with_archive(stored, talk)


@pytest.mark.parametrize("exception", ["AdministrativeAccessControlException", "RobotAccessControlException"])
def test_a_blocked_site_is_excluded(exception: str) -> None:
    """403 with one of two names is the archive's rule, not a fault, for lists and for copies."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        fake.excluded["example.com"] = exception
        client = WaybackArchive(fake.archive(), courier)
        _, error = await collected(client.captures(PAGE))
        assert isinstance(error, ExcludedError)
        with pytest.raises(ExcludedError):
            await client.get(PAGE)
        with pytest.raises(ExcludedError):
            await client.crawl_date(PAGE)
        fake.excluded["example.com"] = "Something"
        _, error = await collected(client.captures(PAGE))
        assert isinstance(error, FailedError)
        assert error.kind == "status"

    with_archive([Stored(PAGE, "20140210000001")], talk)


def test_bad_rows_are_lost_alone_and_counted() -> None:
    """Rows of wrong types, lengths and dates do not keep the others from coming."""
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

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        fake.instead = array(row(timestamp="20130101000000"), *bad, row(timestamp="20150101000000"))
        client = WaybackArchive(fake.archive(), courier)
        found = await listed(client.captures(PAGE))
        assert [capture.datetime for capture in found] == ["20130101000000", "20140210000001", "20150101000000"]
        assert client.problems.total == 12, "what stands between two rows is one"
        assert set(client.problems.counts) == {"bad-field-count", "bad-date", "bad-address", "bad-json"}

    with_archive([], talk)


def test_bytes_that_are_no_utf8_are_kept_escaped() -> None:
    """An address of another charset is still an address."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        fake.instead = array(row("http://example.com/PLACE")).replace(b"PLACE", b"\xfc")
        found = await listed(WaybackArchive(fake.archive(), courier).captures("http://example.com/%FC"))
        assert [capture.uri for capture in found] == ["http://example.com/%FC"]

    with_archive([], talk)


def test_the_same_row_comes_once() -> None:
    """Repeated rows are one capture; what differs in status or digest is another."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        other = [*row()[:4], "404", *row()[5:]]
        fake.instead = array(row(), row(), other, row())
        found = await listed(WaybackArchive(fake.archive(), courier).captures(PAGE))
        assert [capture.status for capture in found] == [200, 404]

    with_archive([], talk)


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
def test_what_is_no_list_is_malformed(body: bytes) -> None:
    """Rubbish of any kind, or a list that breaks off, is not mistaken for `nothing held`."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        fake.instead = body
        client = WaybackArchive(fake.archive(), courier)
        _, error = await asyncio.wait_for(collected(client.captures(PAGE)), 20)
        assert isinstance(error, FailedError)
        assert error.kind == "malformed"

    with_archive([], talk)


def test_an_exclusion_in_the_place_of_a_list() -> None:
    """A body that names the exception is an exclusion whatever its status."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        fake.instead = b"org.archive.wayback.exception.RobotAccessControlException: blocked"
        _, error = await collected(WaybackArchive(fake.archive(), courier).captures(PAGE))
        assert isinstance(error, ExcludedError)

    with_archive([], talk)


def test_a_copy_has_its_own_headers_and_the_date_that_is_true() -> None:
    """From any date the archive leads to the closest copy, and that is what is said to have come."""
    stored = [Stored(PAGE, "20140210000001", b"old", headers=(("Server", "Apache"), ("X-A", "b")))]
    stored.append(Stored(PAGE, "20160210000001", b"new"))

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        client = WaybackArchive(fake.archive(), courier)
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
        assert await client.crawl_date(PAGE) == "20160210000001"
        assert len(fake.paths(Work.INDEX)) == 1

    with_archive(stored, talk)


def test_a_listed_copy_that_moved_is_another() -> None:
    """What the index said of one date is not said of the copy of another that came instead."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        client = WaybackArchive(fake.archive(), courier)
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
def test_a_captured_error_is_a_capture(status: int) -> None:
    """With Memento-Datetime any status is that of the original server."""

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        copy = await WaybackArchive(fake.archive(), courier).get(PAGE)
        assert copy is not None
        with copy.body:
            assert copy.body.read() == b"gone"
        assert copy.capture.status == status

    with_archive([Stored(PAGE, "20140210000001", b"gone", statuscode=status)], talk)


@pytest.mark.parametrize("location", ["/elsewhere?a=1", "http://example.com/elsewhere?a=1"])
def test_the_true_code_of_a_redirect_is_in_the_index(location: str) -> None:
    """The archive says 302 and its own address; the capture says what was, as far as the index was asked."""
    stored = [Stored(PAGE, "20140210000001", b"", statuscode=301, location=location)]
    stored.append(Stored("http://example.com/elsewhere?a=1", "20140210000001", b"there"))

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        client = WaybackArchive(fake.archive(), courier)
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


def test_a_redirect_to_the_same_page_elsewhere_is_a_capture() -> None:
    """From http to https and `www` the key is the same; it was captured all the same."""
    stored = [Stored(PAGE, "20140210000001", b"", statuscode=301, location="https://www.example.com/page")]

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        client = WaybackArchive(fake.archive(), courier)
        (capture,) = await listed(client.captures(PAGE))
        copy = await client.fetch(capture)
        assert copy is not None
        copy.body.close()
        assert (copy.capture.status, copy.capture.redirect) == (301, "https://www.example.com/page")

    with_archive(stored, talk)


def test_odd_addresses_reach_the_archive_as_they_are() -> None:
    """Escapes, queries and slashes in an address are put behind the archive's own unharmed."""
    odd = ["http://example.com/a%2Fb?c=%26&d=e%20f", "http://example.com//x", "http://example.com/?q=http://a.com/?b=c"]

    async def talk(fake: FakeWayback, courier: Courier) -> None:
        client = WaybackArchive(fake.archive(), courier)
        for address in odd:
            copy = await client.get(address)
            assert copy is not None, address
            with copy.body:
                assert copy.body.read() == quote(address).encode()
        # What would climb out of the archive's own folder is resolved before.
        assert await client.get("http://example.com/a/../../../../cdx/search/cdx?url=x") is None
        assert fake.paths(Work.INDEX) == []

    with_archive([Stored(address, "20140210000001", quote(address).encode()) for address in odd], talk)


def test_no_more_is_asked_than_the_archive_allows() -> None:
    """With 30 a minute, lists and TimeMaps together, nothing is ever refused, and replay does not wait for them."""

    async def run() -> None:
        clock = VirtualClock()
        async with fake_wayback(pages(60), clock) as fake, a_courier(clock) as courier:
            fake.minute = {Work.INDEX: 30, Work.REPLAY: 600}
            begin = clock.now()
            client = WaybackArchive(fake.archive(rows_per_page=1), courier)
            timemaps = MementoArchive(fake.archive(), courier)
            found, lists = await asyncio.gather(
                listed(client.under("http://example.com")),
                asyncio.gather(*(listed(timemaps.captures(stored.original)) for stored in fake.stored[:20])),
            )
            assert (len(found), [len(each) for each in lists]) == (60, [1] * 20)
            assert fake.refused == 0
            times = [at for at, _, _ in fake.asked]
            assert len(times) == 80
            assert max(sum(at <= each < at + 60 for each in times) for at in times) <= 30
            assert 100 < clock.now() - begin < 300
            assert await client.get(fake.stored[0].original + "x") is None
            assert fake.asked[-1][:2] == (clock.now(), Work.REPLAY)

    asyncio.run(run())


def test_being_told_to_wait_is_obeyed() -> None:
    """Where the registry knows no limit, 429 without a word of how long costs a minute, and no row is lost."""

    async def run() -> None:
        clock = VirtualClock()
        async with fake_wayback(pages(70), clock) as fake, a_courier(clock) as courier:
            archive = fake.archive(rows_per_page=1)
            fake.minute = {Work.INDEX: 30}
            found = await listed(WaybackArchive(archive, courier).under("http://example.com"))
            assert [capture.uri for capture in found] == [stored.original for stored in fake.stored]
            assert fake.refused == 2
            assert clock.slept.count(60.0) + sum(50 < each < 60 for each in clock.slept) >= 2

    asyncio.run(run())
