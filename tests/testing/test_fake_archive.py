"""The fake archive for tests of users: protocols and faults."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.run import unlost
from unlost.errors import DateError, UriError, UsageError
from unlost.memento import read_timemap
from unlost.problems import Problems
from unlost.testing import Copy, FakeArchive, Fault, Held, write_registry

PAGE = "http://lost.example/page"
HELD: Held = {
    PAGE: [
        (datetime(2014, 2, 10, 0, 0, 1, tzinfo=UTC), "<p>öld"),
        Copy("2016", b"new", "text/plain; charset=utf-8", 404),
    ],
    "http://lost.example/moved": [Copy("2014", "", status=301, location="/page")],
    "http://www.sub.lost.example/": [("2014",)],
}


@pytest.fixture
def archive() -> Iterator[FakeArchive]:
    """Run one."""
    with FakeArchive(HELD) as running:
        yield running


class _Unfollowed(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Do not follow redirects."""


def request(url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, lower-case headers and body; redirects are not followed."""
    request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})  # noqa: S310
    try:
        response = urllib.request.build_opener(_Unfollowed()).open(request)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        return int(response.status), {name.lower(): value for name, value in response.headers.items()}, response.read()


def test_timemap_lists_all_captures(archive: FakeArchive) -> None:
    """In link-format and JSON, for any spelling of the URL; others are 404."""
    problems = Problems()
    status, headers, body = request(archive.timemap_address("http://www.LOST.example:80/page"))
    found = read_timemap(body, problems)
    assert (status, headers["content-type"], problems.total) == (200, "application/link-format", 0)
    assert [each.datetime for each in found.mementos] == ["20140210000001", "20160101000000"]
    listed = json.loads(request(archive.timemap_address(PAGE, "json"))[2])["mementos"]
    assert [each["uri"] for each in listed["list"]] == [each.uri for each in found.mementos]
    assert listed["last"]["datetime"] == "2016-01-01T00:00:00Z"
    assert request(archive.timemap_address("http://lost.example/other"))[0] == 404


def test_timegate_redirects_to_closest_memento(archive: FakeArchive) -> None:
    """By Accept-Datetime, by default to the last; an invalid date is rejected."""
    gate = archive.timegate_address(PAGE)
    status, headers, _ = request(gate, Accept_Datetime="Mon, 01 Jan 2015 00:00:00 GMT")
    assert (status, headers["vary"]) == (302, "accept-datetime")
    assert headers["location"] == f"{archive.address}/web/20140210000001/{PAGE}"
    assert request(gate)[1]["location"].startswith(f"{archive.address}/web/20160101000000/")
    assert request(gate, Accept_Datetime="yesterday")[0] == 400
    assert request(archive.timegate_address("http://lost.example/other"))[0] == 404


def test_replay_returns_captures_unchanged(archive: FakeArchive) -> None:
    """Body, type, status and date; another date redirects to the closest; redirects stay in the archive."""
    status, headers, body = request(archive.raw_address("20140210000001", PAGE))
    assert (status, body, headers["memento-datetime"]) == (200, "<p>öld".encode(), "Mon, 10 Feb 2014 00:00:01 GMT")
    assert 'rel="original"' in headers["link"]
    assert request(archive.raw_address("2030", PAGE))[1]["location"] == archive.raw_address("20160101000000", PAGE)
    status, headers, body = request(archive.raw_address(datetime(2016, 1, 1), PAGE))  # noqa: DTZ001  it is UTC then
    assert (status, body, headers["content-type"]) == (404, b"new", "text/plain; charset=utf-8")
    moved = request(archive.raw_address("20140101000000", "http://lost.example/moved"))
    assert (moved[0], moved[1]["location"]) == (301, archive.raw_address("20140101000000", PAGE))


def test_cdx_server_is_compatible_with_wayback_machine(archive: FakeArchive) -> None:
    """JSON arrays with a header, by URL, prefix, host and domain, date range and page."""
    cdx = f"{archive.address}/cdx/search/cdx?output=json&url="

    def rows(query: str) -> list[list[str]]:
        found: list[list[str]] = json.loads(request(cdx + query)[2])
        return found

    assert rows(PAGE)[0] == ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
    assert [row[1] for row in rows(PAGE)[1:]] == ["20140210000001", "20160101000000"]
    assert [row[3:5] for row in rows(PAGE)[1:]] == [["text/html", "200"], ["text/plain", "404"]]
    assert [row[1] for row in rows(f"{PAGE}&from=2015&to=2016")[1:]] == ["20160101000000"]
    assert [row[1] for row in rows(f"{PAGE}&limit=-1")[1:]] == ["20160101000000"]
    counts = [len(rows(f"http://lost.example/&matchType={match}")) - 1 for match in ("host", "domain", "prefix")]
    assert counts == [3, 4, 3]
    first = rows("lost.example&matchType=host&limit=2&showResumeKey=true")
    assert (len(first), first[-2]) == (5, [])
    assert len(rows(f"lost.example&matchType=host&limit=2&showResumeKey=true&resumeKey={first[-1][0]}")) == 2
    assert rows("other.example") == []
    assert request(f"{archive.address}/cdx/search/cdx?url={PAGE}&limit=1")[2].startswith(
        b"example,lost)/page 20140210000001 "
    )
    assert request(f"{archive.address}/cdx/search/cdx")[0] == 400


def test_faults_are_simulated(archive: FakeArchive) -> None:
    """For a number of requests, for some request kinds, one after another, until healed."""
    place = archive.timemap_address(PAGE)
    archive.fail(Fault.unavailable(retry_after=7), times=1)
    archive.fail(Fault.too_many(), times=2, kinds=["timemap"])
    status, headers, _ = request(place)
    assert (status, headers["retry-after"]) == (503, "7")
    assert [request(place)[0], request(archive.timegate_address(PAGE))[0], request(place)[0], request(place)[0]] == [
        429,
        302,
        429,
        200,
    ]
    archive.fail(Fault.garbage())
    assert request(place)[0] == 200
    assert b"\xff" in request(place)[2]
    archive.heal()
    archive.fail(Fault.dead())
    with pytest.raises((ConnectionError, http.client.HTTPException, urllib.error.URLError)):
        request(place)
    archive.heal()
    assert request(place)[0] == 200
    assert archive.count("timemap") == archive.count() - 1 == 8


def test_stopping_the_archive_ends_a_delay() -> None:
    """Later connections are refused."""
    from threading import Thread

    from tests.waiting import wait_until

    with FakeArchive(HELD) as archive:
        archive.fail(Fault.slow(3_600))
        place = archive.timemap_address(PAGE)
        thread = Thread(target=request, args=(place,))
        thread.start()
        wait_until(lambda: archive.count() == 1)
    thread.join(60)
    assert not thread.is_alive()
    with pytest.raises(urllib.error.URLError):
        request(place)


def test_requests_are_recorded(archive: FakeArchive) -> None:
    """With kind, path and headers."""
    request(archive.timemap_address(PAGE), X_Mine="1")
    request(f"{archive.address}/favicon.ico")
    first, second = archive.requests
    assert (first.kind, first.path, first.headers["x-mine"]) == ("timemap", f"/timemap/link/{PAGE}", "1")
    assert second.kind == "other"


def test_commands_accept_the_registry_entry(archive: FakeArchive, tmp_path: Path) -> None:
    """`unlost` recovers from it and queries it, as both archive kinds."""
    home = {"UNLOST_HOME": str(tmp_path / "home"), "UNLOST_CONTACT": "me@example.org"}
    for kind in ("wayback", "memento"):
        registry = write_registry(tmp_path / "archives.toml", archive.registry_entry(kind))
        done = unlost("timemap", PAGE, "--archives", str(registry), "--format", "text", env=home)
        assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)
        folder = tmp_path / kind
        done = unlost("recover", PAGE, "--page", "--archives", str(registry), "-o", str(folder), env=home)
        assert b"1 recovered" in done.stderr


def test_invalid_arguments_raise_at_once() -> None:
    """Invalid URLs, dates and kinds, and an archive that is not running."""
    with pytest.raises(UriError):
        FakeArchive({"dns:example.com": [("2014",)]})
    with pytest.raises(DateError):
        FakeArchive({PAGE: [("some day",)]})
    with pytest.raises(UsageError, match="`with` block"):
        _ = FakeArchive().address
    with FakeArchive() as archive, pytest.raises(UsageError, match="wayback or memento"):
        archive.registry_entry("flat")


def test_stopped_archive_resets_open_connections(archive: FakeArchive) -> None:
    """Also reused ones."""
    connection = http.client.HTTPConnection(archive.address.removeprefix("http://"))
    connection.request("HEAD", f"/timemap/link/{PAGE}")
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"")
    archive.stop()
    connection.request("GET", f"/timemap/link/{PAGE}")
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        connection.getresponse()
    connection.close()
