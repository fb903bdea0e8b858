"""Conformance with RFC 7089."""

import pytest

from tests.web.client import Client
from tests.web.fixed_results import DATES, PAGE, mementos_of
from unlost.dates import to_http
from unlost.memento import LinkFormatTimeMap, read_timemap
from unlost.problems import Problems

GATE = f"/timegate/{PAGE}"
URIMS = [each.uri for each in mementos_of(PAGE)]


def links(value: str) -> LinkFormatTimeMap:
    """Parse a Link header."""
    problems = Problems()
    found = read_timemap(value.encode(), problems)
    assert problems.total == 0
    return found


# ---------------------------------------------------------------- TimeGate


@pytest.mark.parametrize(
    ("accept_datetime", "location"),
    [
        (None, 3),
        ("Mon, 01 Jan 1990 00:00:00 GMT", 0),
        ("Mon, 10 Feb 2014 00:00:01 GMT", 2),
        ("Fri, 01 Mar 2002 00:00:00 GMT", 1),
        ("Tue, 01 Jan 2030 00:00:00 GMT", 3),
    ],
)
def test_timegate_redirects_to_the_closest_memento(service: Client, accept_datetime: str | None, location: int) -> None:
    """302 with Location; without a date the last memento, outside of the range the first or last."""
    response = service.request(GATE, headers={"Accept-Datetime": accept_datetime} if accept_datetime else {})
    assert (response.status, response.headers["location"]) == (302, URIMS[location])
    assert response.headers["vary"].lower() == "accept-datetime, prefer"
    assert "memento-datetime" not in response.headers


def test_timegate_links(service: Client) -> None:
    """Original, TimeMap with type, from and until, and first, last, previous, next and selected memento."""
    response = service.request(GATE, headers={"Accept-Datetime": "Fri, 01 Mar 2002 00:00:00 GMT"})
    timemap = links(response.headers["link"])
    assert timemap.original == PAGE
    assert timemap.timemaps[0].uri == f"{service.base}/timemap/link/{PAGE}"
    assert timemap.timemaps[0].type == "application/link-format"
    assert (timemap.timemaps[0].start, timemap.timemaps[0].until) == (DATES[0], DATES[-1])
    assert {each.uri: each.datetime for each in timemap.mementos} == dict(zip(URIMS, DATES, strict=True))
    assert [each.uri for each in timemap.mementos if each.first] == [URIMS[0]]
    assert [each.uri for each in timemap.mementos if each.last] == [URIMS[3]]
    assert f'<{URIMS[2]}>; rel="next memento"' in response.headers["link"]
    assert "prev" in response.headers["link"]


@pytest.mark.parametrize(
    "accept_datetime",
    [
        "yesterday",
        "Mon, 01 Jan 1899 00:00:00 GMT",
        "Mon, 01 Jan 0001 00:00:00 GMT",
        "2014-02-10T00:00:01Z",
        "20140210000001",
        "Mon, 10 Feb 2014 00:00:01 +0100",
        "Mon, 10 Feb 2014 00:00:01 EST",
        "Mon, 10 Feb 2014 00:00:01",
        "Mon, 31 Feb 2014 00:00:01 GMT",
        "Monday, 10-Feb-14 00:00:01 GMT",
        "Mon, 10 Feb 2014 00:00:01 GMT; x",
    ],
)
def test_timegate_rejects_invalid_dates(service: Client, accept_datetime: str) -> None:
    """A malformed Accept-Datetime, or one that is not in GMT, gives 400."""
    response = service.request(GATE, headers={"Accept-Datetime": accept_datetime})
    assert (response.status, response.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert "GMT" in response.text
    assert response.headers["vary"].lower() == "accept-datetime, prefer"


def test_timegate_without_mementos(service: Client) -> None:
    """404 has Vary and no count."""
    response = service.request("/timegate/http://nothing.example/")
    assert (response.status, response.headers["x-memento-count"]) == (404, "0")
    assert response.headers["vary"].lower() == "accept-datetime, prefer"
    assert response.headers["content-type"].startswith("text/plain")


# ---------------------------------------------------------------- TimeMap


@pytest.mark.parametrize("page", [PAGE, "http://one.example/"])
def test_timemap_contents(service: Client, page: str) -> None:
    """Original, self with from and until, TimeGate, and all mementos by date."""
    response = service.request(f"/timemap/link/{page}")
    timemap = links(response.text)
    expected = list(mementos_of(page))[: 1 if "one" in page else None]
    assert (response.status, response.headers["content-type"]) == (200, "application/link-format")
    assert response.headers["x-memento-count"] == str(len(expected))
    assert timemap.original == page
    assert timemap.self_link is not None
    assert timemap.self_link.uri == f"{service.base}/timemap/link/{page}"
    assert (timemap.self_link.start, timemap.self_link.until) == (expected[0].datetime, expected[-1].datetime)
    assert timemap.timegate == f"{service.base}/timegate/{page}"
    assert [(each.datetime, each.uri) for each in timemap.mementos] == [(row.datetime, row.uri) for row in expected]
    assert timemap.mementos[0].first
    assert timemap.mementos[-1].last


# ---------------------------------------------------------------- HEAD, and copies that are passed on


@pytest.mark.parametrize(
    "path",
    [
        GATE,
        f"/timemap/link/{PAGE}",
        f"/timemap/json/{PAGE}",
        f"/memento/2014/{PAGE}",
        f"/memento/json/2014/{PAGE}",
        f"/memento/proxy/2014/{PAGE}",
        "/timegate/http://nothing.example/",
        "/timemap/xml/http://a/",
        f"/summary/json/{PAGE}",
        "/about",
        "/health",
        "/",
        "/nowhere",
        f"/api/find?uri={PAGE}",
    ],
)
def test_head_equals_get(service: Client, path: str) -> None:
    """The same status and headers without a body."""
    service.request(path)
    get, head = service.request(path), service.request(path, "HEAD")
    volatile = ("date", "cache-control")
    assert head.body == b""
    assert head.status == get.status
    assert {name: value for name, value in head.headers.items() if name not in volatile} == {
        name: value for name, value in get.headers.items() if name not in volatile
    }


def test_proxied_mementos(service: Client) -> None:
    """They have Memento-Datetime, and Link with the original."""
    response = service.request(f"/memento/proxy/2014/{PAGE}")
    assert response.status == 200
    assert response.headers["memento-datetime"] == to_http(DATES[2])
    assert links(response.headers["link"]).original == PAGE
