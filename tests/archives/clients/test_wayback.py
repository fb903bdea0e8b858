"""Listings of the Wayback Machine, by a fake with its behaviour."""

import json
from dataclasses import replace
from itertools import pairwise
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.archives.clients.wayback import PAGE, array, row, with_archive
from tests.archives.helpers import collect_captures, collect_until_error
from tests.external.wayback_cdx import FakeWayback, StoredCapture, make_captures
from unlost.archives import WaybackClient
from unlost.capture import Capture
from unlost.errors import DateError, FailedError, ListCutError, UnsupportedError, UriError
from unlost.http import ArchiveHttpClient
from unlost.registry import RequestKind

DIGEST = "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


def test_captures_have_all_fields_of_the_index() -> None:
    """Date, status, type, digest, length, URI-M and key are those of the row, normalised."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        results = await collect_captures(WaybackClient(fake.archive(), http_client).captures(PAGE))
        assert results == [
            Capture(
                PAGE, "com,example)/page", "20140210000001", 200, "text/html", DIGEST, 12, archive="fake.wayback",
                urim=f"{fake.base}/web/20140210000001/{PAGE}", migrated=False,
            )
        ]  # fmt: skip

    with_archive(
        [StoredCapture(PAGE, "20140210000001"), StoredCapture("http://example.com/other", "20140210000001")], scenario
    )


def test_empty_response_is_an_empty_list() -> None:
    """An empty array is a valid response."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        assert await collect_captures(client.captures(PAGE)) == []
        assert await client.get(PAGE) is None
        assert await client.last_capture_date(PAGE) is None
        fake.index_response = b""
        assert await collect_until_error(client.captures(PAGE)) != ([], None)

    with_archive([], scenario)


def test_url_is_percent_encoded() -> None:
    """The URL's query is not part of the index query."""
    url_text = "http://example.com/a b?x=1&limit=0&url=http://other.example/%26#part"

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        assert len(await collect_captures(WaybackClient(fake.archive(), http_client).captures(url_text))) == 1
        requested = parse_qs(urlsplit(fake.paths(RequestKind.INDEX)[-1]).query)
        assert requested["url"] == ["http://example.com/a%20b?x=1&limit=0&url=http://other.example/%26"]

    with_archive(
        [StoredCapture("http://example.com/a%20b?x=1&limit=0&url=http://other.example/%26", "2014" + "01" * 5)],
        scenario,
    )


def test_fields_are_read_by_name() -> None:
    """The first row names the columns; additional columns are ignored."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fake.index_response = json.dumps(
            [["statuscode", "new", "original", "timestamp"], ["404", {}, PAGE, "2014"], ["404", "x", PAGE, "2014"]]
        ).encode()
        client = WaybackClient(fake.archive(), http_client)
        results = await collect_captures(client.captures(PAGE))
        assert [(capture.status, capture.datetime, capture.mime) for capture in results] == [
            (404, "20140101000000", None)
        ]
        fake.index_response = b'[["a", "b"], ["c", "d"]]'
        _, error = await collect_until_error(client.captures(PAGE))
        assert isinstance(error, FailedError)
        assert error.kind == "malformed"

    with_archive([], scenario)


@pytest.mark.parametrize("count", [1, 9, 10, 11, 95])
def test_pages_are_followed_by_resume_key(count: int) -> None:
    """Every row is listed once and in order, with one request per page."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(rows_per_page=10), http_client)
        results, error = await collect_until_error(client.list_prefix("http://example.com/"))
        assert [capture.uri for capture in results] == [stored.original for stored in fake.captures]
        # A full first page without a key may be complete, or the archive may not support keys.
        assert isinstance(error, ListCutError) == (count == 10)
        requested = [parse_qs(urlsplit(path).query) for path in fake.paths(RequestKind.INDEX)]
        assert len(requested) == -(-count // 10)
        assert [each.pop("resumeKey", None) for each in requested] == [
            None,
            *([f"r{10 * n}"] for n in range(1, len(requested))),
        ]
        assert all(one == other for one, other in pairwise(requested))
        assert requested[0]["limit"] == ["10"]
        assert requested[0]["showResumeKey"] == ["true"]
        assert "page" not in requested[0]

    with_archive(make_captures(count), scenario)


@pytest.mark.parametrize("cap", [30, 33])
def test_cut_list_raises_after_its_rows(cap: int) -> None:
    """Captures up to the archive's cap are yielded before the error."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fake.max_rows = cap
        client = WaybackClient(fake.archive(rows_per_page=10, cap=cap), http_client)
        results, error = await collect_until_error(client.list_prefix("http://example.com/"))
        assert len(results) == cap
        assert isinstance(error, ListCutError)
        assert len(fake.requests) == -(-cap // 10)

    with_archive(make_captures(35), scenario)


def test_resume_key_continues_beyond_the_cap() -> None:
    """A site with more rows than one query returns is listed completely."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(rows_per_page=10, cap=20), http_client)
        assert len(await collect_captures(client.list_prefix("http://example.com/"))) == 35

    with_archive(make_captures(35), scenario)


def test_repeated_resume_key_ends_the_list() -> None:
    """A cyclic listing is malformed."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fake.index_response = array(row(), [], ["again"])
        results, error = await collect_until_error(WaybackClient(fake.archive(), http_client).captures(PAGE))
        assert len(results) == 1
        assert isinstance(error, FailedError)
        assert error.kind == "malformed"
        assert len(fake.requests) == 2

    with_archive([], scenario)


def test_resume_keys_without_new_captures_end_the_list() -> None:
    """New keys with repeated rows are followed for a limited number of pages."""

    class Endless(FakeWayback):
        def _index(self, query: dict[str, str]) -> object:  # type: ignore[override]
            self.index_response = array(row(), [], [f"key {len(self.requests)}"])
            return super()._index(query)

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        fake.__class__ = Endless
        results, error = await collect_until_error(WaybackClient(fake.archive(), http_client).captures(PAGE))
        assert len(results) == 1
        assert isinstance(error, FailedError)
        assert len(fake.requests) < 10

    with_archive([], scenario)


def test_revisits_are_never_dropped() -> None:
    """A `warc/revisit` row without a status is a revisit capture."""
    stored = [
        StoredCapture(PAGE, "20140210000001"),
        StoredCapture(PAGE, "20150210000001", mimetype="warc/revisit", statuscode=None),
    ]

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        results = await collect_captures(WaybackClient(fake.archive(), http_client).captures(PAGE))
        assert [(capture.revisit, capture.status, capture.mime) for capture in results] == [
            (False, 200, "text/html"),
            (True, None, None),
        ]
        assert results[0].digest == results[1].digest

    with_archive(stored, scenario)


def test_rows_of_other_schemes_are_skipped() -> None:
    """`mailto:` and `data:` rows of a site are not pages."""
    stored = [StoredCapture(PAGE, "20140210000001"), StoredCapture("mailto:a@example.com", "20140210000001")]
    stored.append(StoredCapture("data:text/plain,hello", "20140210000001"))

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        assert [capture.uri for capture in await collect_captures(client.list_prefix("http://example.com"))] == [PAGE]
        assert client.problems.counts == {"foreign-scheme": 2}

    with_archive(stored, scenario)


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
    """A prefix is a path, a host, or begins with `*.`; other results are filtered out."""
    stored = [
        StoredCapture("http://example.com/a/1", "20140210000001"),
        StoredCapture("https://www.example.com/ab", "20140210000001"),
        StoredCapture("http://sub.example.com/a/1", "20140210000001"),
        StoredCapture("http://example.company/a/1", "20140210000001"),
    ]

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        assert [capture.uri for capture in await collect_captures(client.list_prefix(prefix))] == expected
        requested = parse_qs(urlsplit(fake.paths(RequestKind.INDEX)[-1]).query)
        assert (requested["matchType"], requested["url"]) == ([match], [url])
        # An archive that ignores the query's period.
        fake.index_response = array(*(each.row() for each in stored))
        client = WaybackClient(fake.archive(), http_client)
        assert [capture.uri for capture in await collect_captures(client.list_prefix(prefix))] == expected
        assert client.problems.counts["elsewhere"] >= 4 - len(expected)

    with_archive(stored, scenario)


def test_unsupported_match_type_is_not_requested() -> None:
    """Without prefix listing no request is sent."""

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        archive = fake.archive()
        assert archive.lister is not None
        only_prefix = replace(archive, lister=replace(archive.lister, matches=("exact", "prefix")))
        _, error = await collect_until_error(WaybackClient(only_prefix, http_client).list_prefix("*.example.com"))
        assert isinstance(error, UnsupportedError)
        _, error = await collect_until_error(
            WaybackClient(replace(archive, lister=None), http_client).list_prefix(PAGE)
        )
        assert isinstance(error, UnsupportedError)
        _, error = await collect_until_error(WaybackClient(replace(archive, cdx=None), http_client).captures(PAGE))
        assert isinstance(error, UnsupportedError)
        assert fake.requests == []
        # A host is queried as a URL prefix.
        assert (
            len(await collect_captures(WaybackClient(only_prefix, http_client).list_prefix("http://example.com"))) == 3
        )

    with_archive(make_captures(3), scenario)


def test_dates_are_padded_and_inclusive() -> None:
    """A year extends from its first to its last second, and extra results are filtered out."""
    stored = [
        StoredCapture(PAGE, date) for date in ("20131231235959", "20140101000000", "20151231235959", "20160101000000")
    ]

    async def scenario(fake: FakeWayback, http_client: ArchiveHttpClient) -> None:
        client = WaybackClient(fake.archive(), http_client)
        wanted = ["20140101000000", "20151231235959"]
        assert [
            capture.datetime for capture in await collect_captures(client.list_prefix(PAGE, "2014", "2015"))
        ] == wanted
        requested = parse_qs(urlsplit(fake.paths(RequestKind.INDEX)[-1]).query)
        assert (requested["from"], requested["to"]) == (["20140101000000"], ["20151231235959"])
        fake.index_response = array(*(each.row() for each in stored))
        assert [
            capture.datetime for capture in await collect_captures(client.list_prefix(PAGE, "2014", "2015"))
        ] == wanted
        assert client.problems.counts == {"other-date": 2}
        with pytest.raises(DateError):
            await collect_captures(client.list_prefix(PAGE, "next year"))
        with pytest.raises(UriError):
            await collect_captures(client.captures("mailto:a@example.com"))

    with_archive(stored, scenario)
