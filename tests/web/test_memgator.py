"""Compatibility with MemGator: endpoints, formats, spellings of URLs, errors."""

import json

import pytest

from tests.web.client import Client
from tests.web.fixed_results import PAGE, mementos_of
from unlost.dates import to_http, to_iso

ROWS = mementos_of(PAGE)
SPAN = f'from="{to_http(ROWS[0].datetime)}"; until="{to_http(ROWS[-1].datetime)}"'


def line(place: int, rel: str) -> str:
    """Return the entry of a memento."""
    return f'<{ROWS[place].uri}>; rel="{rel}"; datetime="{to_http(ROWS[place].datetime)}",\n'


def test_link_timemap_equals_memgator(service: Client) -> None:
    """Entries end with a comma and a newline; RFC 7089 adds from and until."""
    base = service.base
    lists = "".join(
        f'<{base}/timemap/{form}/{PAGE}>; rel="timemap"; type="{kind}",\n'
        for form, kind in (
            ("link", "application/link-format"),
            ("json", "application/json"),
            ("cdxj", "application/cdxj+ors"),
        )
    )
    expected = (
        f'<{PAGE}>; rel="original",\n'
        f'<{base}/timemap/link/{PAGE}>; rel="self"; type="application/link-format"; {SPAN},\n'
        + line(0, "first memento")
        + line(1, "memento")
        + line(2, "memento")
        + line(3, "last memento")
        + lists
        + f'<{base}/timegate/{PAGE}>; rel="timegate"\n'
    )
    assert service.request(f"/timemap/link/{PAGE}").text == expected


def test_single_memento_is_first_and_last(service: Client) -> None:
    """As `first last memento`."""
    assert 'rel="first last memento"' in service.request("/timemap/link/http://one.example/").text


def test_json_timemap(service: Client) -> None:
    """The same names, order and dates."""
    response = service.request(f"/timemap/json/{PAGE}")
    listed = [{"datetime": to_iso(row.datetime), "uri": row.uri} for row in ROWS]
    base = service.base
    assert response.headers["content-type"] == "application/json"
    assert list(json.loads(response.text).items())[:5] == [
        ("original_uri", PAGE),
        ("self", f"{base}/timemap/json/{PAGE}"),
        ("mementos", {"list": listed, "first": listed[0], "last": listed[-1]}),
        ("timemap_uri", {f"{form}_format": f"{base}/timemap/{form}/{PAGE}" for form in ("link", "json", "cdxj")}),
        ("timegate_uri", f"{base}/timegate/{PAGE}"),
    ]


def test_cdxj_timemap_equals_memgator(service: Client) -> None:
    """Headers, then one line per memento."""
    response = service.request(f"/timemap/cdxj/{PAGE}")
    base = service.base
    rels = ("first memento", "memento", "memento", "last memento")
    maps = ", ".join(f'"{form}_format": "{base}/timemap/{form}/{PAGE}"' for form in ("link", "json", "cdxj"))
    rows = "".join(
        f'{row.datetime} {{"uri": "{row.uri}", "rel": "{rel}", "datetime": "{to_http(row.datetime)}"}}\n'
        for row, rel in zip(ROWS, rels, strict=True)
    )
    assert response.headers["content-type"] == "application/cdxj+ors"
    assert response.text == (
        '!context ["http://tools.ietf.org/html/rfc7089"]\n'
        f'!id {{"uri": "{base}/timemap/cdxj/{PAGE}"}}\n'
        '!keys ["memento_datetime_YYYYMMDDhhmmss"]\n'
        f'!meta {{"original_uri": "{PAGE}"}}\n'
        f'!meta {{"timegate_uri": "{base}/timegate/{PAGE}"}}\n'
        f'!meta {{"timemap_uri": {{{maps}}}}}\n' + rows
    )


@pytest.mark.parametrize("place", ["memento", "api"])
def test_descriptions_have_five_mementos(service: Client, place: str) -> None:
    """`/memento/{format}` and `/api/{format}` have first, last, previous, next and closest."""
    response = service.request(f"/{place}/json/2009/http://many.example/")
    mementos = json.loads(response.text)["mementos"]
    assert response.status == 200
    assert {"first", "last", "prev", "next", "closest"} <= mementos.keys()
    assert len(mementos.get("list", [])) <= 5
    assert mementos["closest"]["datetime"].startswith("2009-01-01")
    assert service.request(f"/{place}/link/2009/http://many.example/").text.count("memento") <= 6
    assert service.request(f"/{place}/cdxj/2009/http://many.example/").headers["content-type"] == "application/cdxj+ors"


@pytest.mark.parametrize(
    ("date", "place"),
    [("1990", 0), ("2002", 1), ("200202", 1), ("20140210", 2), ("2014021000", 2), ("20140210000001", 2), ("2030", 3)],
)
def test_memento_redirects(service: Client, date: str, place: int) -> None:
    """Dates of 4 to 14 digits in the path redirect to the closest memento."""
    response = service.request(f"/memento/{date}/{PAGE}")
    assert (response.status, response.headers["location"]) == (302, ROWS[place].uri)


@pytest.mark.parametrize(
    "path",
    [
        "/timemap",
        "/timemap/",
        "/timemap/link",
        "/timemap/link/",
        f"/timemap/xml/{PAGE}",
        f"/timemap/{PAGE}",
        "/timegate/",
        "/timegate",
        "/memento/",
        f"/memento/{PAGE}",
        "/memento/2014",
        "/memento/2014/",
        f"/memento/201/{PAGE}",
        f"/memento/20141/{PAGE}",
        f"/memento/20141301/{PAGE}",
        f"/memento/00000101/{PAGE}",
        f"/memento/1899/{PAGE}",
        f"/memento/json/18991231235959/{PAGE}",
        f"/timemap/link/18991231235959-20140101000000/{PAGE}",
        f"/api/find?uri={PAGE}&date=1899",
        f"/memento/text/2014/{PAGE}",
        f"/memento/json/{PAGE}",
        f"/api/json/{PAGE}",
        f"/api/2014/{PAGE}",
        "/api/find",
        "/api/find?uri=",
        f"/api/find?uri={PAGE}&format=xml",
        f"/api/find?uri={PAGE}&date=1",
        "/timemap/link/ftp://a.example/",
        "/timemap/link/http://",
        "/timemap/link/http://a..b%20c:x/",
    ],
)
def test_malformed_requests(service: Client, path: str) -> None:
    """Status 400 with the expected value as text."""
    response = service.request(path)
    assert (response.status, response.headers["content-type"]) == (400, "text/plain; charset=utf-8"), response.text
    assert response.text.strip()
    assert response.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("http://a.example/?x=1&y=2,3", "http://a.example/?x=1&y=2,3"),
        ("http%3A%2F%2Fa.example%2F%3Fx%3D1%26y", "http://a.example/?x=1&y"),
        ("a.example/b", "http://a.example/b"),
        ("a.example:8080/b", "http://a.example:8080/b"),
        ("https://a.example/a%20b", "https://a.example/a%20b"),
        ("http:/a.example/", "http://a.example/"),
        ("http://a.example/a,b;c", "http://a.example/a,b;c"),
        ("http://a.example/?archives=x&top_k=no", "http://a.example/?archives=x&top_k=no"),
        ("http://a.example/%E4%B8%AD?q=%C3%BC", "http://a.example/%E4%B8%AD?q=%C3%BC"),
        ("http://a.example/%2523", "http://a.example/%23"),
        ("http://a.example/%23x", "http://a.example/%23x"),
        ("http://a.example/../b", "http://a.example/../b"),
    ],
)
def test_url_spellings(service: Client, written: str, meant: str) -> None:
    """Percent-encoding is decoded once, `http://` is added if there is no scheme, and the query belongs to the page."""
    response = service.request(f"/timemap/link/{written}")
    assert (response.status, response.text) == (404, f"No mementos of {meant} were found\n")


def test_timemap_of_a_date_span(service: Client) -> None:
    """`2014-…` that is not a date span belongs to the URL."""
    part = service.request(f"/timemap/link/20020120142510-20140210000001/{PAGE}")
    assert part.status == 200
    assert [row.uri in part.text for row in ROWS] == [False, True, True, False]
    assert part.headers["etag"] != service.request(f"/timemap/link/{PAGE}").headers["etag"]
    assert service.request(f"/timemap/link/20210101000000-20220101000000/{PAGE}").status == 404
    assert service.request(f"/timemap/link/20211301000000-20220101000000/{PAGE}").status == 400
    assert "http://2014-2015/a" in service.request("/timemap/link/2014-2015/a").text


def test_headers(service: Client) -> None:
    """Responses have CORS headers."""
    for path in (f"/timemap/link/{PAGE}", f"/timegate/{PAGE}", "/timegate/http://nothing.example/", "/about", "/no"):
        headers = service.request(path).headers
        assert headers["access-control-allow-origin"] == "*"
        assert {"Link", "Location", "X-Memento-Count", "Server"} <= set(
            headers["access-control-expose-headers"].split(", ")
        )
        assert headers["server"].startswith("unlost/")


def test_text_and_summary(service: Client) -> None:
    """Plain lines, and counts by archive and year."""
    text = service.request(f"/timemap/text/{PAGE}")
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert [row.uri in line for row, line in zip(ROWS, text.text.splitlines(), strict=True)] == [True] * 4
    summary = json.loads(service.request(f"/summary/json/{PAGE}").text)
    assert summary["years"] == {"1996": 1, "2002": 1, "2014": 1, "2020": 1}
    assert "a.org" in summary["archives"]
    assert "1996" in service.request(f"/summary/text/{PAGE}").text
    assert service.request("/summary/xml/a").status == 400
