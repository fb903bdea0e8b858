"""For any response, clients return or raise only what they document, after few requests."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st

from tests.archives.helpers import collect_until_error
from tests.virtual_clock import VirtualClock
from unlost import dates
from unlost.archives import (
    ArchiveClient,
    ArchiveTodayClient,
    CommonCrawlClient,
    MementoClient,
    PywbClient,
    WaybackClient,
)
from unlost.capture import Capture
from unlost.errors import ArchiveError
from unlost.http import HttpRequest, HttpResponse
from unlost.registry import Archive, ArchiveKind, PrefixListing, SourcedNumber

T = TypeVar("T")
PAGE = "http://example.com/a"
DATE = "20140210000001"
MAX_REQUESTS = 1_100  # requests of one call; a TimeMap may have a thousand pages
_LISTER = PrefixListing(("exact", "prefix", "host", "domain"), SourcedNumber(2, "a test"), SourcedNumber(40, "a test"))
_places = st.sampled_from(
    [
        "", "/", "x", "http://[", "//", "http://a.org", f"/web/{DATE}id_/{PAGE}", "/web/2014/http://b.com", "mailto:x",
        f"http://a.org/web/{DATE}/http://b.com/", f"http://a.org/web/{DATE}/{PAGE}", "/web/99999999999999/http://b.com",
        f"http://a.org/web/{PAGE}", "http://a.org:99999/", "http://b.org/\udcff", "http://a.org/map/2", "\0\n", "ftp://a.org/",
    ]
)  # fmt: skip
_dates = st.sampled_from(["", "never", "Mon, 10 Feb 2014 00:00:01 GMT", "Mon, 99 Feb 99999 00:00:01 GMT", "\udcff"])
_links = st.builds(
    lambda position, rel, date: f'<{position}>; rel="{rel}"; datetime="{date}"; from="{date}"',
    _places, st.sampled_from(["original", "memento", "timemap", "last memento", "self", "x"]), _dates,
)  # fmt: skip
_headers = st.lists(
    st.one_of(
        st.tuples(st.just("Location"), _places),
        st.tuples(st.just("Content-Location"), _places),
        st.tuples(st.just("Memento-Datetime"), _dates),
        st.tuples(st.just("Link"), _links),
        st.tuples(st.sampled_from(["Content-Type", "X-Archive-Orig-", "X-Archive-Orig-X"]), st.text(max_size=9)),
        st.just(("Content-Encoding", "gzip")),
    ),
    max_size=4,
)
_values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), _places, st.just([1]),
    st.sampled_from([PAGE, DATE, "-", "200", "warc/revisit", {"a": {}}]),
)  # fmt: skip
_names = ["timestamp", "original", "url", "statuscode", "digest", "length", "is_fuzzy", "redirect", "mime"]
_tables = st.lists(st.lists(_values, max_size=4), max_size=4).map(
    lambda rows: json.dumps([["timestamp", "original", "statuscode"], *rows, [], [f"key{len(rows)}"]]).encode()
)
_lines = st.lists(st.dictionaries(st.sampled_from(_names), _values, max_size=5), max_size=4).map(
    lambda rows: b"\n".join(json.dumps(row).encode() for row in rows)
)
_timemaps = st.lists(_links, max_size=4).map(lambda links: ",\n".join(links).encode("utf-8", "replace"))
_words = [b"", b"\x1f\x8b\x08", b"[[", b"[", b"{", b"<html>", b"x.RobotAccessControlException", b"Self Redirect"]
_crawls = [{"id": "CC-MAIN-2014-10", "cdx-api": "http://a.org/CC-MAIN-2014-10-index"}]
_words += [json.dumps(_crawls).encode(), b'{"pages": 2}', b'{"message": "No Captures found"}', b"<html>captcha"]
_bodies = st.one_of(st.binary(max_size=40), _tables, _lines, _timemaps, st.sampled_from(_words))
_statuses = st.sampled_from([200, 200, 200, 301, 302, 303, 304, 307, 400, 403, 404, 429, 451, 500, 999])


@dataclass
class ArbitraryHttpClient:
    """An HTTP client that repeats arbitrary responses."""

    responses: list[tuple[int, list[tuple[str, str]], bytes]]
    requested: list[str] = field(default_factory=list)

    async def send(self, _: Archive, request: HttpRequest) -> HttpResponse:
        """Return the next response."""
        status, headers, body = self.responses[len(self.requested) % len(self.responses)]
        self.requested.append(request.url)
        assert len(self.requested) < MAX_REQUESTS
        request.url.encode("utf-8", "surrogateescape")
        return HttpResponse(request.url, status, tuple(headers), BytesIO(body), len(body))


def clients(http_client: ArbitraryHttpClient, raw: bool) -> list[ArchiveClient]:
    """Return one client of each kind."""
    archive = Archive(
        "a", "A", ArchiveKind.MEMENTO, timemap="http://a.org/map/", timegate="http://a.org/web/", cdx="http://a.org/cdx",
        replay="http://a.org/web/{datetime}id_/{uri}" if raw else None, lister=_LISTER,
    )  # fmt: skip
    return [
        WaybackClient(archive, http_client),
        PywbClient(archive, http_client),
        MementoClient(archive, http_client),
        MementoClient(Archive("b", "B", ArchiveKind.MEMENTO, timegate="http://a.org/web/"), http_client),
        ArchiveTodayClient(archive, http_client, clock=VirtualClock()),
        CommonCrawlClient(replace(archive, replay="http://a.org/{filename}"), http_client),
    ]


async def result_of(call: Callable[[], Awaitable[T]]) -> T | None:
    """Return the result of a call; None if it raises an allowed error."""
    try:
        return await call()
    except ArchiveError:
        return None


def assert_valid(capture: Capture) -> None:
    """Check the documented properties of a capture."""
    dates.to_datetime(capture.datetime)
    assert capture.key is not None
    assert capture.key.startswith("com,example)")
    capture.uri.encode()


@given(responses=st.lists(st.tuples(_statuses, _headers, _bodies), min_size=1, max_size=4), raw=st.booleans())
def test_arbitrary_responses_raise_only_archive_errors(
    responses: list[tuple[int, list[tuple[str, str]], bytes]], raw: bool
) -> None:
    """Captures belong to the requested page and have dates; errors name the archive."""

    async def run() -> None:
        http_client = ArbitraryHttpClient(responses)
        for client in clients(http_client, raw):
            for captures in (client.captures(PAGE), client.list_prefix("http://example.com", "2014")):
                http_client.requested.clear()
                results, _ = await collect_until_error(captures)
                for capture in results:
                    assert_valid(capture)
            listed = Capture(PAGE, "com,example)/a", DATE, urim=f"http://a.org/web/{DATE}/{PAGE}")
            for call in (lambda: client.get(PAGE, "2014"), lambda: client.fetch(listed), lambda: client.get(PAGE)):  # noqa: B023
                http_client.requested.clear()
                fetched = await result_of(call)
                if fetched is not None:
                    assert_valid(fetched.capture)
                    fetched.body.close()
            http_client.requested.clear()
            await result_of(lambda: client.last_capture_date(PAGE))  # noqa: B023

    asyncio.run(run())
