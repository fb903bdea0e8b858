"""Copies that are passed on: whole, shut in, without anybody's connection; and how archives fail to give them."""

import pytest

from tests.service.client import Client
from tests.service.prepared import DATES, PAGE


def test_a_copy_is_passed_on_shut_in(service: Client) -> None:
    """The bytes are all there; scripts, cookies and the connection's own headers are not let through."""
    answer = service.ask(f"/memento/proxy/20140210/{PAGE}")
    assert (answer.status, len(answer.body)) == (200, 300_025)
    assert answer.headers["content-type"] == "text/html; charset=x-odd"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox;")
    assert "allow-scripts" not in policy
    assert "default-src 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not {"set-cookie", "connection", "content-encoding"} & answer.headers.keys()
    assert service.ask(f"/api/proxy/20140210/{PAGE}").body == answer.body


def test_a_captured_redirect_leads_on_here(service: Client) -> None:
    """To the copy of its target at the same date."""
    answer = service.ask("/memento/proxy/2014/http://moved.example/")
    assert answer.status == 302
    assert answer.headers["location"].startswith(f"{service.base}/memento/proxy/{DATES[2]}/http://elsewhere.example/")
    assert answer.headers["memento-datetime"] == "Mon, 10 Feb 2014 00:00:01 GMT"


@pytest.mark.parametrize(("page", "status"), [("nocopy", 502), ("notnow", 503), ("broke", 502), ("nothing", 404)])
def test_archives_that_do_not_give_their_copy(service: Client, page: str, status: int) -> None:
    """It is said which archive, and nobody keeps that."""
    answer = service.ask(f"/memento/proxy/2014/http://{page}.example/")
    assert (answer.status, answer.headers["content-type"]) == (status, "text/plain; charset=utf-8")
    assert "memento-datetime" not in answer.headers
    if page == "notnow":
        assert 25 <= int(answer.headers["retry-after"]) <= 30
    if page in ("notnow", "broke"):
        assert "a.org" in answer.text
        assert answer.headers["cache-control"] == "no-store"


def test_records_in_files_are_reached_through_us(service: Client) -> None:
    """A TimeGate leads to what a browser can show, not into a file of a gigabyte or of this machine."""
    for year in ("2014", "2015"):
        answer = service.ask(f"/memento/{year}/http://file.example/")
        own = f"{service.base}/memento/proxy/{year}0101000000/http://file.example/"
        assert (answer.status, answer.headers["location"]) == (302, own)
        assert service.ask(own.removeprefix(service.base)).status == 200
    assert service.ask("/timegate/http://file.example/").headers["location"].startswith("https://b.org/2016/")
