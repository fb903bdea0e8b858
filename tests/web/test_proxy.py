"""Replay of captures by the proxy."""

import pytest

from tests.web.client import Client
from tests.web.fixed_results import DATES, PAGE


def test_memento_is_proxied_in_a_sandbox(service: Client) -> None:
    """The body is complete; scripts, cookies and connection headers are not passed on."""
    response = service.request(f"/memento/proxy/20140210/{PAGE}")
    assert (response.status, len(response.body)) == (200, 300_025)
    assert response.headers["content-type"] == "text/html; charset=x-odd"
    policy = response.headers["content-security-policy"]
    assert policy.startswith("sandbox;")
    assert "allow-scripts" not in policy
    assert "default-src 'none'" in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert not {"set-cookie", "connection", "content-encoding"} & response.headers.keys()
    assert service.request(f"/api/proxy/20140210/{PAGE}").body == response.body


def test_captured_redirect_targets_the_proxy(service: Client) -> None:
    """To the memento of its target at the same date."""
    response = service.request("/memento/proxy/2014/http://moved.example/")
    assert response.status == 302
    assert response.headers["location"].startswith(f"{service.base}/memento/proxy/{DATES[2]}/http://elsewhere.example/")
    assert response.headers["memento-datetime"] == "Mon, 10 Feb 2014 00:00:01 GMT"


@pytest.mark.parametrize(("page", "status"), [("nocopy", 502), ("notnow", 503), ("broke", 502), ("nothing", 404)])
def test_archive_errors_have_matching_statuses(service: Client, page: str, status: int) -> None:
    """The response names the archive and is not cached."""
    response = service.request(f"/memento/proxy/2014/http://{page}.example/")
    assert (response.status, response.headers["content-type"]) == (status, "text/plain; charset=utf-8")
    assert "memento-datetime" not in response.headers
    if page == "notnow":
        assert 25 <= int(response.headers["retry-after"]) <= 30
    if page in ("notnow", "broke"):
        assert "a.org" in response.text
        assert response.headers["cache-control"] == "no-store"


def test_mementos_in_files_are_proxied(service: Client) -> None:
    """A TimeGate redirects to the proxy, not to a WARC file."""
    for year in ("2014", "2015"):
        response = service.request(f"/memento/{year}/http://file.example/")
        own = f"{service.base}/memento/proxy/{year}0101000000/http://file.example/"
        assert (response.status, response.headers["location"]) == (302, own)
        assert service.request(own.removeprefix(service.base)).status == 200
    assert service.request("/timegate/http://file.example/").headers["location"].startswith("https://b.org/2016/")
