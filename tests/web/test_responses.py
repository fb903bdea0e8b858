"""Headers and statuses of responses."""

import json

import pytest

from tests.web.client import Client
from tests.web.fixed_results import PAGE


def test_failures_are_reported_in_headers(service: Client) -> None:
    """In a header and in the JSON, together with the mementos that were found."""
    response = service.request("/timemap/json/http://partly.example/")
    assert response.status == 200
    assert response.headers["x-archives-failed"] == "b.org=timeout"
    assert "timeout" in json.dumps(json.loads(response.text))
    assert response.headers["x-memento-count"] == "2"
    assert service.request("/timegate/http://partly.example/").headers["x-archives-failed"] == "b.org=timeout"
    assert "x-archives-failed" not in service.request(f"/timemap/json/{PAGE}").headers


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    "path",
    [
        *(f"timemap/{form}/" for form in ("link", "json", "cdxj", "text")),
        "timemap/link/20140101000000-20150101000000/",
        "timegate/",
        "memento/2014/",
        *(f"{endpoint}/{form}/2014/" for endpoint in ("memento", "api") for form in ("link", "json", "cdxj", "proxy")),
        "summary/json/",
        "summary/text/",
        "api/find?uri=",
        "api/find?date=2014&uri=",
    ],
)
def test_no_mementos_with_failed_archive_is_503(service: Client, path: str, method: str) -> None:
    """With the reasons and Retry-After, uncached, and without X-Memento-Count."""
    response = service.request(f"/{path}http://failed.example/", method)
    assert (response.status, response.headers["x-archives-failed"]) == (503, "b.org=timeout")
    assert response.headers["cache-control"] == "no-store"
    assert int(response.headers["retry-after"]) == 10
    assert "x-memento-count" not in response.headers
    assert "etag" not in response.headers
    assert response.headers["vary"] == ("accept-datetime, prefer" if path == "timegate/" else "prefer")
    if method == "GET":
        assert response.text.startswith("No mementos of http://failed.example/ were found, but 1 of 2 archives did not")
        assert "b.org: timeout" in response.text


def test_empty_date_span_with_failed_archive_is_503(service: Client) -> None:
    """The failed archive may have mementos of that span."""
    response = service.request("/timemap/link/20210101000000-20220101000000/http://partly.example/")
    assert (response.status, response.headers["cache-control"]) == (503, "no-store")
    assert "x-memento-count" not in response.headers


def test_retry_after_is_when_the_first_limit_or_breaker_admits_requests(service: Client) -> None:
    """In seconds, at least one."""
    assert 15 < int(service.request("/timemap/link/http://limited.example/").headers["retry-after"]) <= 20
    assert service.request("/timegate/http://due.example/").headers["retry-after"] == "1"


def test_cache_lifetime(service: Client) -> None:
    """As long as the result is cached, also for misses."""
    for path, longest in ((f"/timemap/link/{PAGE}", 60), ("/timemap/link/http://nothing.example/", 30)):
        control = service.request(path, headers={"Cache-Control": "no-cache"}).headers["cache-control"]
        name, _, seconds = control.partition("=")
        assert name == "max-age"
        assert longest - 5 <= int(seconds) <= longest


@pytest.mark.parametrize("path", ["timemap/link", "timemap/json", "timemap/cdxj", "memento/link/2014", "summary/json"])
def test_not_modified(service: Client, path: str) -> None:
    """A matching If-None-Match gives 304 without a body."""
    first = service.request(f"/{path}/{PAGE}")
    etag = first.headers["etag"]
    for known in (etag, f'"other", W/{etag.removeprefix("W/")}', "*"):
        again = service.request(f"/{path}/{PAGE}", headers={"If-None-Match": known})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
        assert "content-type" not in again.headers
    assert service.request(f"/{path}/{PAGE}", headers={"If-None-Match": '"other"'}).status == 200
    assert service.request(f"/{path}/{PAGE}", "HEAD", {"If-None-Match": etag}).status == 304
    assert service.request(f"/{path}/http://one.example/", headers={"If-None-Match": etag}).status == 200


def test_only_if_cached(service: Client) -> None:
    """504 if nothing is cached."""
    headers = {"Cache-Control": "only-if-cached"}
    never = service.request("/timemap/link/http://never-asked.example/", headers=headers)
    assert (never.status, never.headers["cache-control"]) == (504, "no-store")
    service.request(f"/timemap/link/{PAGE}")
    assert service.request(f"/timemap/link/{PAGE}", headers=headers).status == 200
    assert service.request("/api/find?uri=http://never-asked.example/", headers=headers).status == 504


def test_archive_selection(service: Client) -> None:
    """By Prefer, or by query parameters; an unknown archive gives 400."""
    chosen = service.request(
        f"/timemap/link/{PAGE}", headers={"Prefer": 'archives="a.org"; top-k=3, min-probability=0.5, broadcast'}
    )
    assert (chosen.status, chosen.headers["x-memento-count"]) == (200, "2")
    assert "prefer" in chosen.headers["vary"]
    # Otherwise a cache would return the result of the default archives for a selection.
    assert service.request(f"/timemap/link/{PAGE}").headers["vary"] == "prefer"
    gate = service.request(f"/timegate/{PAGE}", headers={"Prefer": "archives=a.org"})
    assert sorted(gate.headers["vary"].split(", ")) == ["accept-datetime", "prefer"]
    assert "b.org" not in gate.headers["location"]
    found = service.request(f"/api/find?uri={PAGE}%3Fa=b&archives=a.org")
    assert found.status == 404
    found = service.request("/api/find?uri=http%3A%2F%2Fexample.com%2F&archives=b.org&format=text&top_k=5&broadcast=1")
    assert (found.status, found.headers["x-memento-count"], found.text.count("a.org")) == (200, "2", 0)
    closest = service.request(f"/api/find?uri={PAGE}&archives=b.org&date=2003")
    assert json.loads(closest.text)["mementos"]["closest"]["datetime"].startswith("2002")
    for headers in (
        {"Prefer": "archives=nobody"},
        {"Prefer": "top-k=0"},
        {"Prefer": "min-probability=2"},
        {"Prefer": 'archives="'},
    ):
        response = service.request(f"/timemap/link/{PAGE}", headers=headers)
        assert (response.status, response.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert service.request(f"/timemap/link/{PAGE}", headers={"Prefer": "respond-async, wait=5"}).status == 200


def test_repeated_headers_are_joined(service: Client) -> None:
    """All of their values count."""
    more = "Cache-Control: no-cache\r\nCache-Control: max-age=0\r\nPrefer: archives=a.org\r\nPrefer: top-k=3\r\n"
    raw = service.raw(f"GET /timemap/text/{PAGE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{more}\r\n".encode())
    assert b"X-Memento-Count: 2\r\n" in raw
    only = "Cache-Control: only-if-cached\r\nCache-Control: no-transform\r\n"
    request = f"GET /timemap/text/twice.example HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{only}\r\n"
    assert service.raw(request.encode()).startswith(b"HTTP/1.1 504 ")


def test_methods(service: Client) -> None:
    """GET, HEAD and OPTIONS; all others give 405."""
    for path in (f"/timemap/link/{PAGE}", f"/timegate/{PAGE}", "/about", "/monitor", "/"):
        for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND"):
            if method == "CONNECT":
                continue  # its target is no path
            response = service.request(path, method)
            assert (response.status, response.headers["allow"]) == (405, "GET, HEAD, OPTIONS"), method
        preflight = service.request(path, "OPTIONS", {"Access-Control-Request-Headers": "accept-datetime"})
        assert (preflight.status, preflight.body) == (204, b"")
        if path != "/monitor":  # which scripts of other sites may not read
            assert "Accept-Datetime" in preflight.headers["access-control-allow-headers"]


def test_not_found_lists_the_endpoints(service: Client) -> None:
    """With status 404."""
    response = service.request("/wayback/http://a.example/")
    assert (response.status, response.headers["content-type"]) == (404, "text/plain; charset=utf-8")
    for endpoint in ("/timemap/", "/timegate/", "/memento/", "/summary/", "/about", "/monitor", "/metrics", "/health"):
        assert endpoint in response.text
    assert service.request("/mementomap").status == 404
    assert service.request("/static/../application.py").status == 404
    assert service.request("/static/..%2fapplication.py").status == 404


def test_internal_errors_and_overload(service: Client) -> None:
    """500 without details; 503 with Retry-After."""
    response = service.request("/timemap/link/http://broken.example/")
    assert response.status == 500
    assert "planted" not in response.text
    busy = service.request("/timemap/link/http://busy.example/")
    assert (busy.status, busy.headers["retry-after"]) == (503, "5")
    assert service.request("/?uri=http://busy.example/").status == 503
    assert service.request("/api/find?uri=http://busy.example/").status == 503


def test_about(service: Client) -> None:
    """Archives and their statuses as JSON or HTML, by content negotiation."""
    about = json.loads(service.request("/about").text)
    first, second, third = about["archives"]
    assert (first["id"], first["asked"], first["why"]) == ("a.org", True, "its map says so")
    assert (first["map"]["made"], first["precision"], first["wrong_refusals"]) == ("2023-11-14T22:13:20Z", 0.9, 0.2)
    assert second["breaker"] == "dormant"
    assert 490 <= second["seconds_until_asked"] <= 500
    assert third["asked"] is False
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    page = service.request("/about", headers=browser)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "Archive A" in page.text
    assert "<img" not in page.text
    assert service.request("/about?format=json", headers=browser).headers["content-type"] == "application/json"
    assert service.request("/about", headers={"Accept": "application/json, text/html"}).text.startswith("{")


def test_health(service: Client) -> None:
    """For monitoring of the process."""
    response = service.request("/health")
    assert (response.status, json.loads(response.text)) == (200, {"status": "ok"})
