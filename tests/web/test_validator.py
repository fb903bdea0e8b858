"""The rules of LANL's memento-validator, one test for each, at a real server.

The validator finds a header only by its name in the usual case, and so do these tests.
"""

import pytest

from tests.web.client import Client, HttpResponse
from tests.web.fixed_results import DATES, PAGE, mementos_of
from unlost import dates
from unlost.memento import LinkFormatTimeMap, TimeMapEntry, read_timemap
from unlost.problems import Problems

GATE = f"/timegate/{PAGE}"
MAP = f"/timemap/link/{PAGE}"
COPY = f"/memento/proxy/2014/{PAGE}"
URIMS = [each.uri for each in mementos_of(PAGE)]


def header(response: HttpResponse, name: str) -> str:
    """Return a header by its name as it was sent."""
    assert name in response.names
    return response.headers[name.lower()]


def timegate(service: Client, date: str | None, page: str = PAGE) -> HttpResponse:
    """Request a TimeGate."""
    return service.request(f"/timegate/{page}", headers={} if date is None else {"Accept-Datetime": date})


def links(response: HttpResponse) -> LinkFormatTimeMap:
    """Parse the links of a response."""
    problems = Problems()
    found = read_timemap(header(response, "Link").encode(), problems)
    assert not problems.total
    return found


def parse_timemap(service: Client, page: str = PAGE) -> LinkFormatTimeMap:
    """Parse the TimeMap."""
    problems = Problems()
    found = read_timemap(service.request(f"/timemap/link/{page}").body, problems)
    assert not problems.total
    return found


def ends(found: LinkFormatTimeMap) -> tuple[list[TimeMapEntry], list[TimeMapEntry]]:
    """Return the mementos with relation first and last."""
    return [each for each in found.mementos if each.first], [each for each in found.mementos if each.last]


# ---------------------------------------------------------------- header names


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (GATE, {"Location", "Link", "Vary", "Content-Type", "X-Memento-Count", "Cache-Control", "Date", "Server"}),
        (MAP, {"Content-Type", "Content-Length", "ETag", "Vary", "Access-Control-Allow-Origin"}),
        (COPY, {"Memento-Datetime", "Link", "Content-Type", "Content-Security-Policy"}),
        ("/timegate/http://nothing.example/", {"Vary", "Content-Type", "X-Memento-Count"}),
        ("/about", {"Content-Type", "Content-Length"}),
        ("/health", {"Content-Type", "X-Content-Type-Options"}),
    ],
)
def test_header_names_have_their_usual_case(service: Client, path: str, names: set[str]) -> None:
    """Each part of a name is capitalized, in all endpoints."""
    response = service.request(path)
    assert names <= response.names
    assert [name for name in response.names if name == name.lower()] == []


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (b"GET /about HTTP/1.0\r\nHost: a\r\n\r\n", b"\r\nConnection: close\r\n"),
        (f"HEAD {GATE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode(), b"\r\nLocation: "),
        (f"GET {GATE} HTTP/1.1\r\nHost: a\r\n\r\nGET {GATE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode(),
         b"\r\nLocation: "),
    ],
)  # fmt: skip
def test_header_names_on_the_wire(service: Client, request_: bytes, expected: bytes) -> None:
    """Also for headers of the server, for HEAD, and for pipelined requests."""
    heads = [part.partition(b"\r\n\r\n")[0] for part in service.raw(request_).split(b"HTTP/1.1 ")[1:]]
    assert len(heads) == request_.count(b"Host: ")
    for head in heads:
        assert expected in head + b"\r\n"
        names = [line.partition(b":")[0] for line in head.split(b"\r\n")[1:]]
        assert [name for name in names if name == name.lower()] == []


# ---------------------------------------------------------------- TimeGate


def test_timegate_redirects(service: Client) -> None:
    """Status 302, with a Location."""
    response = timegate(service, dates.to_http(DATES[1]))
    assert (response.status, header(response, "Location")) == (302, URIMS[1])


def test_timegate_varies(service: Client) -> None:
    """Vary names accept-datetime, whatever the status."""
    for date in (None, dates.to_http(DATES[1]), "broken"):
        assert "accept-datetime" in header(timegate(service, date), "Vary").lower()


def test_timegate_links_the_original_and_the_timemap(service: Client) -> None:
    """The TimeMap with its type."""
    found = links(timegate(service, None))
    assert found.original == PAGE
    assert (f"{service.base}{MAP}", "application/link-format") in [(each.uri, each.type) for each in found.timemaps]


def test_timegate_links_dated_mementos_and_the_selected_one(service: Client) -> None:
    """Each has a datetime of its own; the one that Location names is among them."""
    for date in (None, *map(dates.to_http, DATES)):
        response = timegate(service, date)
        found = links(response)
        assert found.mementos
        assert not any(each.is_dated_by_uri for each in found.mementos)
        assert header(response, "Location") in [each.uri for each in found.mementos]


@pytest.mark.parametrize("page", [PAGE, "http://one.example/", "http://future.example/", "http://many.example/"])
@pytest.mark.parametrize("date", [None, "Thu, 01 Jan 1990 00:00:00 GMT", "Mon, 01 Jan 2018 00:00:00 GMT"])
def test_timegate_first_and_last_are_those_of_the_timemap(service: Client, page: str, date: str | None) -> None:
    """One of each in both."""
    first, last = ends(links(timegate(service, date, page)))
    assert (first, last) == ends(parse_timemap(service, page))
    assert (len(first), len(last)) == (1, 1)


@pytest.mark.parametrize("date", [None, "", "  "])
def test_timegate_without_date_redirects_to_the_last_memento(service: Client, date: str | None) -> None:
    """Without Accept-Datetime, or with a blank one."""
    response = timegate(service, date)
    assert (response.status, header(response, "Location")) == (302, URIMS[-1])


@pytest.mark.parametrize(
    ("date", "place"), [("Mon, 01 Jan 1900 00:00:00 GMT", 0), ("Thu, 01 Jan 2026 00:00:00 GMT", -1)]
)
def test_timegate_with_date_outside_the_range(service: Client, date: str, place: int) -> None:
    """A date before the first memento gives the first, a date after the last gives the last."""
    response = timegate(service, date)
    assert (response.status, header(response, "Location")) == (302, URIMS[place])


@pytest.mark.parametrize("date", ["broken", "Mon, 31 Feb 2014 00:00:01 GMT", "Sun, 31 Dec 1899 23:59:59 GMT"])
def test_timegate_rejects_malformed_dates(service: Client, date: str) -> None:
    """Status 400."""
    assert timegate(service, date).status == 400


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        (None, "20201231235959"),
        ("Thu, 01 Jan 2026 00:00:00 GMT", "20201231235959"),
        ("Wed, 01 Jan 2098 00:00:00 GMT", "20990101000000"),
        ("Fri, 01 Jan 9990 00:00:00 GMT", "99991231235959"),
    ],
)
def test_memento_with_future_date_is_not_the_last(service: Client, date: str | None, expected: str) -> None:
    """It is selected only for a date in the future; TimeMaps list it after the last."""
    page = "http://future.example/"
    assert header(timegate(service, date, page), "Location") == f"http://a.org/web/{expected}/{page}"
    found = parse_timemap(service, page)
    assert [(each.datetime[:4], each.first, each.last) for each in found.mementos] == [
        ("2014", True, False),
        ("2020", False, True),
        ("2099", False, False),
        ("9999", False, False),
    ]
    assert service.request(f"/memento/json/2026/{page}").text.count("2020-12-31") == 2, "last and closest"
    assert service.request(f"/summary/json/{page}").text.count("2020-12-31") == 1


# ---------------------------------------------------------------- TimeMap


def test_timemap(service: Client) -> None:
    """200 with a Content-Type; link-format with original, self, TimeGate, and a datetime for each memento."""
    response = service.request(MAP)
    assert (response.status, header(response, "Content-Type")) == (200, "application/link-format")
    found = parse_timemap(service)
    assert (found.original, found.timegate) == (PAGE, f"{service.base}{GATE}")
    assert found.self_link is not None
    assert found.self_link.uri == f"{service.base}{MAP}"
    assert len(found.mementos) == len(DATES)
    assert not any(each.is_dated_by_uri for each in found.mementos)


# ---------------------------------------------------------------- Memento


def test_memento(service: Client) -> None:
    """200 with Memento-Datetime, and Link with original, TimeGate, TimeMap and mementos."""
    response = service.request(COPY)
    assert (response.status, header(response, "Memento-Datetime")) == (200, dates.to_http(DATES[2]))
    found = links(response)
    assert (found.original, found.timegate) == (PAGE, f"{service.base}{GATE}")
    assert f"{service.base}{MAP}" in [each.uri for each in found.timemaps]
    assert DATES[2] in [each.datetime for each in found.mementos]
    assert ends(found) == ends(parse_timemap(service))
