"""Embedded resources of a page: the archive of the page is queried first."""

import asyncio
from typing import Any, cast

import pytest

from unlost.aggregate import (
    AggregateResult,
    ArchiveStatus,
    CacheControl,
    MementoRequest,
    RequestHeaders,
    RoutingOptions,
    ServiceUrls,
)
from unlost.clock import SystemClock
from unlost.memento import Mementos, MementoTuple
from unlost.web import Application, ServiceContext, referring_page, route_by_referer

ROOT = "http://us.example"
PAGE = "http://a.example/page"
HELD = {
    PAGE: (("20100101000000", "old.org"), ("20200101000000", "new.org")),
    "http://a.example/both.png": (("20100101000000", "old.org"), ("20200101000000", "new.org")),
    "http://a.example/other.png": (("20150101000000", "other.org"),),
}


class NoArchives:
    """A registry without archives."""

    def archive_statuses(self) -> list[ArchiveStatus]:
        """Return no statuses."""
        return []


class Finder:
    """A finder with fixed results that records the preferred archives."""

    def __init__(self) -> None:
        self.wishes: list[tuple[str, frozenset[str] | None]] = []

    def get_cached(self, uri: str, wish: RoutingOptions) -> AggregateResult | None:
        """Return the cached result, for the page only."""
        return self._found(uri, wish) if uri == PAGE else None

    async def find(
        self,
        uri: str,
        wish: RoutingOptions = RoutingOptions(),  # noqa: B008
        freshness: CacheControl = CacheControl(),  # noqa: ARG002, B008
    ) -> AggregateResult:
        """Return the mementos of the preferred archives."""
        self.wishes.append((uri, wish.preferred))
        return self._found(uri, wish)

    def _found(self, uri: str, wish: RoutingOptions) -> AggregateResult:
        rows = [
            MementoTuple(date, archive, f"http://{archive}/{date}/{uri}")
            for date, archive in HELD.get(uri, ())
            if wish.preferred is None or archive in wish.preferred
        ]
        return AggregateResult(uri, Mementos(rows), (), (), 0.0, 60.0)


@pytest.mark.parametrize(
    ("referer", "page"),
    [
        (b"http://us.example/timegate/http://a.example/page", PAGE),
        (b"http://us.example/memento/2014/http://a.example/page", PAGE),
        (b"http://us.example/memento/proxy/20140101/http%3A%2F%2Fa.example%2Fpage", PAGE),
        (b"http://us.example/timemap/link/http://a.example/page?x=1", PAGE + "?x=1"),
        (b"http://a.example/page#part", PAGE),
        (b"http://a.example/a%20b", "http://a.example/a%20b"),
        (b"http://us.example/about", None),
        (b"http://us.example/memento/never/http://a.example/", None),
        (b"http://us.example/timemap/", None),
        (b"javascript:alert(1)", None),
        (b"http://" + b"a" * 20_000, None),
        (b"", None),
    ],
)
def test_referring_page(referer: bytes, page: str | None) -> None:
    """From its own URL or one of the service; an invalid Referer is ignored."""
    assert referring_page(referer, ROOT) == page


@pytest.mark.parametrize(
    ("endpoint", "date", "wish", "expected"),
    [
        ("timegate", "", RoutingOptions(), {"new.org"}),
        ("timegate", "20110101000000", RoutingOptions(), {"old.org"}),
        ("memento", "20110101000000", RoutingOptions(top_k=3), {"old.org"}),
        ("timemap", "", RoutingOptions(), None),
        ("timegate", "", RoutingOptions(broadcast=True), None),
        ("timegate", "", RoutingOptions(archives=frozenset({"a"})), None),
    ],
)
def test_archive_of_the_page_is_preferred(
    endpoint: str, date: str, wish: RoutingOptions, expected: set[str] | None
) -> None:
    """The archive with the closest memento; none for TimeMaps or if the request selects archives."""
    memento_request = MementoRequest(endpoint, "", date, "http://a.example/both.png")
    found = route_by_referer(
        memento_request, RequestHeaders(ServiceUrls(ROOT), wish), PAGE.encode(), Finder().get_cached
    )
    assert (None if found is None else found.preferred) == expected


def ask(path: str, referer: bytes, *, by_page: bool) -> tuple[int, dict[bytes, bytes], Finder]:
    """Send a request to an application; return the status, headers and look-ups."""
    finder = Finder()
    parts = ServiceContext(finder, cast("Any", None), NoArchives(), SystemClock(), root=ROOT, routes_by_referer=by_page)
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:  # noqa: ANN401
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"us.example"), (b"referer", referer)],
        "scheme": "http",
    }
    asyncio.run(Application(parts)(cast("Any", scope), cast("Any", None), send))
    headers: dict[bytes, bytes] = {}
    for name, value in sent[0]["headers"]:
        headers[name] = headers[name] + b", " + value if name in headers else value
    return sent[0]["status"], headers, finder


def test_only_the_pages_archive_is_queried_if_it_has_the_resource() -> None:
    """One archive and one look-up; the response varies by Referer."""
    status, headers, finder = ask("/timegate/http://a.example/both.png", PAGE.encode(), by_page=True)
    assert status == 302
    assert headers[b"location"].startswith(b"http://new.org/")
    assert finder.wishes == [("http://a.example/both.png", frozenset({"new.org"}))]
    assert b"referer" in headers[b"vary"]


def test_other_archives_are_queried_if_it_has_nothing() -> None:
    """A second look-up queries all archives."""
    status, headers, finder = ask("/timegate/http://a.example/other.png", PAGE.encode(), by_page=True)
    assert (status, headers[b"location"]) == (302, b"http://other.org/20150101000000/http://a.example/other.png")
    assert [prefers for _, prefers in finder.wishes] == [frozenset({"new.org"}), None]


def test_no_archive_is_preferred_by_default() -> None:
    """Without the option, the Referer is ignored."""
    _, headers, finder = ask("/timegate/http://a.example/both.png", PAGE.encode(), by_page=False)
    assert finder.wishes == [("http://a.example/both.png", None)]
    assert b"referer" not in headers[b"vary"]
