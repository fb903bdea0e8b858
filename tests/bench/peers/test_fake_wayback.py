"""Tests of the fake Wayback Machine: responses, rate limits and transfer faults."""

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench.peers.fake_wayback import BASE, NAME, REQUESTS_PER_WINDOW, WINDOW_SECONDS, RateLimitedWayback, serve_archive
from bench.peers.lost_site import TransferFault

from tests.external.certificate import make_certificate
from tests.external.wayback_cdx import StoredCapture
from tests.virtual_clock import VirtualClock
from unlost.registry import RequestKind

PAGE = "http://lost.example/a?x=1&y=2"
STORED = [
    StoredCapture(PAGE, "20120101000000", b"<p>one</p>"),
    StoredCapture(PAGE, "20140101000000", b"<p>two</p>"),
    StoredCapture(PAGE, "20160101000000", b"<p>gone</p>", statuscode=404),
    StoredCapture("http://lost.example/b.png", "20130101000000", b"png", "image/png", digest="B"),
    StoredCapture("http://lost.example/b.png", "20150101000000", b"png", "warc/revisit", None, digest="B"),
]


class ArchiveConnection:
    """A connection to the archive that trusts its certificate."""

    def __init__(self, archive: RateLimitedWayback, port: int, trusted: Path) -> None:
        self.archive = archive
        self._port = port
        self._tls = ssl.create_default_context(cafile=str(trusted))

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Request a path; return status, headers and body."""
        connection = http.client.HTTPConnection(NAME)
        plain = socket.create_connection(("127.0.0.1", self._port), 30)
        connection.sock = self._tls.wrap_socket(plain, server_hostname=NAME)
        try:
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, dict(response.headers), response.read()
        finally:
            connection.close()

    def index(self, query: str) -> bytes:
        """Query the index."""
        return self.get(f"/cdx/search/cdx?{query}")[2]


@pytest.fixture(scope="module")
def archive_certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Provide a certificate for the archive's host name, and its key."""
    return make_certificate(tmp_path_factory.mktemp("signed"), NAME)


@contextmanager
def run_archive(
    archive_certificate: tuple[Path, Path], faults: dict[tuple[str, str], TransferFault] | None = None
) -> Iterator[ArchiveConnection]:
    """Run the archive."""
    archive = RateLimitedWayback(list(STORED), VirtualClock(), faults=faults or {}, response_seconds=0)
    with serve_archive(archive, archive_certificate, 0) as port:
        yield ArchiveConnection(archive, port, archive_certificate[0])


def test_index_supports_the_queries_of_peers(archive_certificate: tuple[Path, Path]) -> None:
    """Wildcards, fields, filters, text, JSON with resume keys, and numbered pages up to an empty one."""
    with run_archive(archive_certificate) as responses:
        rows = json.loads(responses.index("url=lost.example/*&output=json&fl=timestamp,original"))
        assert rows[0] == ["timestamp", "original"]
        assert len(rows) == 6
        good = responses.index("url=lost.example/*&filter=statuscode:200&filter=!mimetype:image/.*&fl=timestamp")
        assert good.split() == [b"20120101000000", b"20140101000000"]
        cut = json.loads(responses.index("url=lost.example/*&output=json&fl=timestamp&limit=2&showResumeKey=true"))
        assert cut[-2:] == [[], ["2"]]
        assert responses.index("url=lost.example/*&page=0").count(b"\n") == 5
    with run_archive(archive_certificate) as responses:
        assert responses.index("url=lost.example/*&page=1") == b""
        assert responses.index("url=nobody.example/*&output=json") == b"[]\n"


def test_replay_accepts_the_url_forms_of_clients(archive_certificate: tuple[Path, Path]) -> None:
    """Raw replay, absolute request targets, and escaped URLs; a revisit has the type of its original."""
    with run_archive(archive_certificate) as responses:
        escaped = "http://lost.example/a%3Fx%3D1%26y%3D2"
        for path in (f"/web/20140101000000id_/{PAGE}", f"{BASE}/web/20140101000000id_/{escaped}"):
            status, headers, body = responses.get(path)
            assert (status, body) == (200, b"<p>two</p>")
            assert headers["Memento-Datetime"] == "Wed, 01 Jan 2014 00:00:00 GMT"
        _, headers, body = responses.get("/web/20150101000000id_/http://lost.example/b.png")
        assert (headers["Content-Type"], body) == ("image/png", b"png")
        status, headers, _ = responses.get(f"/web/{PAGE}", Accept_Datetime="Sun, 01 Dec 2013 00:00:00 GMT")
        assert (status, headers["Location"]) == (302, f"{BASE}/web/20140101000000/{PAGE}")


def test_requests_above_the_limit_are_refused_until_retry_after(archive_certificate: tuple[Path, Path]) -> None:
    """A request above the limit gets 429 with Retry-After; an earlier retry counts as too soon."""
    with run_archive(archive_certificate) as responses:
        attempts = [
            responses.get("/cdx/search/cdx?url=lost.example") for _ in range(REQUESTS_PER_WINDOW[RequestKind.INDEX] + 2)
        ]
        assert [status for status, _, _ in attempts[-3:]] == [200, 429, 429]
        assert attempts[-1][1]["Retry-After"] == "10"
        assert responses.get(f"/web/20140101000000id_/{PAGE}")[0] == 200  # replay has its own limit
        assert (responses.archive.refused, responses.archive.too_soon) == (2, 1)
        clock = responses.archive.clock
        assert isinstance(clock, VirtualClock)
        clock.advance(WINDOW_SECONDS)
        assert responses.get("/cdx/search/cdx?url=lost.example")[0] == 200
        assert (responses.archive.refused, responses.archive.too_soon) == (2, 1)


def test_transfers_fail_as_often_as_configured(archive_certificate: tuple[Path, Path]) -> None:
    """A transfer breaks off after half of the body and then succeeds; a 503 occurs once."""
    faults = {("20120101000000", PAGE): TransferFault("cut", 1), ("20140101000000", PAGE): TransferFault("503", 1)}
    with run_archive(archive_certificate, faults) as responses:
        with pytest.raises(http.client.IncompleteRead) as broken:
            responses.get(f"/web/20120101000000id_/{PAGE}")
        assert broken.value.partial == b"<p>on"
        assert responses.get(f"/web/20120101000000id_/{PAGE}")[2] == b"<p>one</p>"
        status, headers, _ = responses.get(f"/web/20140101000000id_/{PAGE}")
        assert (status, headers["Retry-After"]) == (503, "2")
        assert responses.get(f"/web/20140101000000id_/{PAGE}")[0] == 200
