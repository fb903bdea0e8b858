"""What the Wayback Machine lists, by an archive that has its habits."""

import json
from dataclasses import replace
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.archives.clients.wayback import PAGE, array, row, with_archive
from tests.archives.helpers import collected, listed
from tests.neighbours.wayback_cdx import FakeWayback, Stored, pages
from unlost.archives import WaybackClient
from unlost.capture import Capture
from unlost.errors import DateError, FailedError, ListCutError, UnsupportedError, UriError
from unlost.http import ArchiveHttpClient
from unlost.registry import RequestKind

DIGEST = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


def test_captures_have_all_fields_of_the_index() -> None:
    """Date, status, type, digest, length, URI-M and key are those of the row, normalised."""

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        found = await listed(WaybackClient(fake.archive(), http_client).captures(PAGE))
        assert found == [
            Capture(
                PAGE, "com,example)/page", "20140210000001", 200, "text/html", DIGEST, 12, archive="fake.wayback",
                urim=f"{fake.base}/web/20140210000001/{PAGE}", migrated=False,
            )
        ]  # fmt: skip

    with_archive([Stored(PAGE, "20140210000001"), Stored("http://example.com/other", "20140210000001")], talk)


def test_no_captures_is_an_empty_list() -> None:
    """An empty array is an answer, not an error."""

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        assert await listed(client.captures(PAGE)) == []
        assert await client.get(PAGE) is None
        assert await client.last_capture_date(PAGE) is None
        fake.instead = b""
        assert await collected(client.captures(PAGE)) != ([], None)

    with_archive([], talk)


def test_url_is_percent_encoded() -> None:
    """A query of the address is no query of the index."""
    address = "http://example.com/a b?x=1&limit=0&url=http://other.example/%26#part"

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        assert len(await listed(WaybackClient(fake.archive(), http_client).captures(address))) == 1
        asked = parse_qs(urlsplit(fake.paths(RequestKind.INDEX)[-1]).query)
        assert asked["url"] == ["http://example.com/a%20b?x=1&limit=0&url=http://other.example/%26"]

    with_archive([Stored("http://example.com/a%20b?x=1&limit=0&url=http://other.example/%26", "2014" + "01" * 5)], talk)


def test_fields_are_read_by_name() -> None:
    """The first row says which column is which, and further columns do no harm."""

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fake.instead = json.dumps(
            [["statuscode", "new", "original", "timestamp"], ["404", {}, PAGE, "2014"], ["404", "x", PAGE, "2014"]]
        ).encode()
        client = WaybackClient(fake.archive(), http_client)
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
def test_pages_are_followed_by_resume_key(count: int) -> None:
    """Every row of a list comes once, in order, by as few questions as there are pages, all of them the same query."""

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(rows_per_page=10), http_client)
        found, error = await collected(client.list_prefix("http://example.com/"))
        assert [capture.uri for capture in found] == [stored.original for stored in fake.stored]
        # A first page that is full and has no key may be all, or the archive may know no keys.
        assert isinstance(error, ListCutError) == (count == 10)
        asked = [parse_qs(urlsplit(path).query) for path in fake.paths(RequestKind.INDEX)]
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
def test_cut_list_raises_after_its_rows(cap: int) -> None:
    """Where the cap of the archive is reached everything before it has been given."""

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fake.cap = cap
        client = WaybackClient(fake.archive(rows_per_page=10, cap=cap), http_client)
        found, error = await collected(client.list_prefix("http://example.com/"))
        assert len(found) == cap
        assert isinstance(error, ListCutError)
        assert len(fake.asked) == -(-cap // 10)

    with_archive(pages(35), talk)


def test_resume_key_continues_beyond_the_cap() -> None:
    """A site that has more rows than one query gives is listed whole."""

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(rows_per_page=10, cap=20), http_client)
        assert len(await listed(client.list_prefix("http://example.com/"))) == 35

    with_archive(pages(35), talk)


def test_repeated_resume_key_ends_the_list() -> None:
    """A list that leads in a circle is malformed; nothing is asked for ever."""

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fake.instead = array(row(), [], ["again"])
        found, error = await collected(WaybackClient(fake.archive(), http_client).captures(PAGE))
        assert len(found) == 1
        assert isinstance(error, FailedError)
        assert error.kind == "malformed"
        assert len(fake.asked) == 2

    with_archive([], talk)


def test_resume_keys_without_new_captures_end_the_list() -> None:
    """New keys to the same rows, for ever, are given up after some pages."""

    class Endless(FakeWayback):
        def _index(self, query: dict[str, str]) -> object:  # type: ignore[override]
            self.instead = array(row(), [], [f"key {len(self.asked)}"])
            return super()._index(query)

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fake.__class__ = Endless
        found, error = await collected(WaybackClient(fake.archive(), http_client).captures(PAGE))
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

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        found = await listed(WaybackClient(fake.archive(), http_client).captures(PAGE))
        assert [(capture.revisit, capture.status, capture.mime) for capture in found] == [
            (False, 200, "text/html"),
            (True, None, None),
        ]
        assert found[0].digest == found[1].digest

    with_archive(stored, talk)


def test_rows_of_other_schemes_are_skipped() -> None:
    """`mailto:` and `data:` come with a list of a site and are no pages of it."""
    stored = [Stored(PAGE, "20140210000001"), Stored("mailto:a@example.com", "20140210000001")]
    stored.append(Stored("data:text/plain,hello", "20140210000001"))

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        assert [capture.uri for capture in await listed(client.list_prefix("http://example.com"))] == [PAGE]
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
def test_prefix_determines_the_match_type(prefix: str, match: str, url: str, expected: list[str]) -> None:
    """An address ends in a path, a host or begins with `*.`; what comes back beyond it is left out."""
    stored = [
        Stored("http://example.com/a/1", "20140210000001"),
        Stored("https://www.example.com/ab", "20140210000001"),
        Stored("http://sub.example.com/a/1", "20140210000001"),
        Stored("http://example.company/a/1", "20140210000001"),
    ]

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        assert [capture.uri for capture in await listed(client.list_prefix(prefix))] == expected
        asked = parse_qs(urlsplit(fake.paths(RequestKind.INDEX)[-1]).query)
        assert (asked["matchType"], asked["url"]) == ([match], [url])
        # An archive that gives everything, whatever it is asked.
        fake.instead = array(*(each.row() for each in stored))
        client = WaybackClient(fake.archive(), http_client)
        assert [capture.uri for capture in await listed(client.list_prefix(prefix))] == expected
        assert client.problems.counts["elsewhere"] >= 4 - len(expected)

    with_archive(stored, talk)


def test_unsupported_match_type_is_not_requested() -> None:
    """Without the kind of match that a prefix needs, and without a lister, no request is sent."""

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        archive = fake.archive()
        assert archive.lister is not None
        only_prefix = replace(archive, lister=replace(archive.lister, matches=("exact", "prefix")))
        _, error = await collected(WaybackClient(only_prefix, http_client).list_prefix("*.example.com"))
        assert isinstance(error, UnsupportedError)
        _, error = await collected(WaybackClient(replace(archive, lister=None), http_client).list_prefix(PAGE))
        assert isinstance(error, UnsupportedError)
        _, error = await collected(WaybackClient(replace(archive, cdx=None), http_client).captures(PAGE))
        assert isinstance(error, UnsupportedError)
        assert fake.asked == []
        # A host is what begins with its address.
        assert len(await listed(WaybackClient(only_prefix, http_client).list_prefix("http://example.com"))) == 3

    with_archive(pages(3), talk)


def test_dates_are_padded_and_inclusive() -> None:
    """A year is its first to its last second, and an archive that ignores the span does not widen it."""
    stored = [Stored(PAGE, date) for date in ("20131231235959", "20140101000000", "20151231235959", "20160101000000")]

    async def talk(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        wanted = ["20140101000000", "20151231235959"]
        assert [capture.datetime for capture in await listed(client.list_prefix(PAGE, "2014", "2015"))] == wanted
        asked = parse_qs(urlsplit(fake.paths(RequestKind.INDEX)[-1]).query)
        assert (asked["from"], asked["to"]) == (["20140101000000"], ["20151231235959"])
        fake.instead = array(*(each.row() for each in stored))
        assert [capture.datetime for capture in await listed(client.list_prefix(PAGE, "2014", "2015"))] == wanted
        assert client.problems.counts == {"other-date": 2}
        with pytest.raises(DateError):
            await listed(client.list_prefix(PAGE, "next year"))
        with pytest.raises(UriError):
            await listed(client.captures("mailto:a@example.com"))

    with_archive(stored, talk)
