"""Server-sent events: slow readers lose events without affecting others."""

import asyncio
import json
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.web.client import Client, HttpResponse, run_fixed_service
from tests.web.fixed_results import NOISY
from unlost.web import EventStream, Message

REQUEST = b"GET /monitor HTTP/1.1\r\nHost: a\r\n\r\n"


@contextmanager
def open_event_stream(service: Client) -> Iterator[socket.socket]:
    """Open an event stream and yield its connection."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 18)  # or it would grow by itself
        connection.settimeout(20)
        connection.connect(("127.0.0.1", service.port))
        connection.sendall(REQUEST)
        seen = b""
        while b": unlost" not in seen:
            seen += connection.recv(1 << 12)
        assert b"text/event-stream" in seen
        assert b"access-control-" not in seen.lower()
        yield connection


def read_until(connection: socket.socket, pattern: bytes) -> bytes:
    """Read up to a pattern, with a timeout."""
    seen = bytearray()
    expected = re.compile(pattern)
    deadline = time.monotonic() + 30
    while not expected.search(seen, max(0, len(seen) - (1 << 18))):  # a piece of it may have come before
        assert time.monotonic() < deadline, seen[-500:]
        piece = connection.recv(1 << 17)
        assert piece, seen[-500:]
        seen += piece
    return bytes(seen)


def noise(service: Client) -> HttpResponse:
    """Cause an event of 8,000 bytes."""
    return service.request(f"/timemap/link/{NOISY}", headers={"Cache-Control": "no-cache"})


def test_events_and_heartbeats(service: Client) -> None:
    """Requests and upstream results are published as JSON, with comments in between."""
    with open_event_stream(service) as connection:
        read_until(connection, rb":\r?\n")
        service.request("/timemap/link/http://me:secret@partly.example/?a", headers={"Cache-Control": "no-cache"})
        service.request("/timemap/link/http://partly.example/", headers={"Cache-Control": "no-cache"})
        seen = read_until(connection, rb"event: upstream[^$]*b.org[^$]*event: request\n[^\n]*\n\n")
    events = [
        (match[1].decode(), json.loads(match[2])) for match in re.finditer(rb"event: (\w+)\ndata: (\{.*?\})\n\n", seen)
    ]
    upstream = [fields for name, fields in events if name == "upstream" and fields["archive"] == "b.org"]
    assert upstream[0]["outcome"] == "timeout"
    requests = [fields for name, fields in events if name == "request"]
    assert requests[-1]["endpoint"] == "timemap"
    assert requests[-1]["status"] == 200
    assert b"partly" not in seen, "no URL that a user looked up"


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "POST"])
def test_event_stream_has_no_cors_headers(service: Client, method: str) -> None:
    """For all methods; for GET, `watching` checks it."""
    response = service.request("/monitor", method=method, headers={"Origin": "https://evil.example"})
    assert not [name for name in response.headers if name.startswith("access-control-")]
    assert response.status == {"HEAD": 200, "OPTIONS": 204, "POST": 405}[method]


def test_slow_reader_does_not_block_others(service: Client) -> None:
    """A client that does not read loses events and gets their number; others get all of them at once."""
    with open_event_stream(service) as slow, open_event_stream(service) as quick, ThreadPoolExecutor() as executor:
        received = executor.submit(read_until, quick, rb'"endpoint": "health"')
        for _ in range(1_500):
            assert noise(service).status == 404
        service.request("/health")
        assert received.result().count(b"event: request") == 1_501
        assert b"event: lost" not in received.result()
        seen = read_until(slow, rb"event: lost\ndata: \{[^\n]*\}\n")
    lost = json.loads(re.findall(rb"event: lost\ndata: (\{.*?\})", seen)[-1])["count"]
    assert 0 < lost < 3_000
    metrics = service.request("/metrics").text
    assert int(re.search(r"^unlost_monitor_lost_total (\d+)(?:\.0)?$", metrics, re.MULTILINE)[1]) >= lost  # type: ignore[index]


def test_stalled_readers_are_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients whose connection is open but stalled are disconnected."""
    monkeypatch.setenv("STALLED_SECONDS", "1")
    with run_fixed_service(tmp_path) as service, open_event_stream(service):
        assert _readers(service) == 1
        deadline = time.monotonic() + 20
        while _readers(service):
            noise(service)
            assert time.monotonic() < deadline


def test_disconnected_readers_are_removed(service: Client) -> None:
    """A closed connection is not counted any more."""
    with open_event_stream(service):
        assert _readers(service) >= 1
    deadline = time.monotonic() + 20
    while _readers(service):  # it is noticed with the next heartbeat, a fifth of a second later
        assert time.monotonic() < deadline


def test_readers_are_limited_per_client() -> None:
    """Other networks are not affected, and a disconnected reader makes room."""

    async def run() -> None:
        monitor, sent = EventStream(), list[Message]()
        gone = [asyncio.Event() for _ in range(26)]

        async def send(message: Message) -> None:
            sent.append(message)

        def following(number: int, client: str) -> "asyncio.Task[int]":
            async def receive() -> Message:
                await gone[number].wait()
                return {"type": "http.disconnect"}

            return asyncio.create_task(monitor.serve("GET", receive, send, client))

        crowd = [following(number, "here") for number in range(25)]
        while monitor.readers < 25:
            await asyncio.sleep(0)
        assert await following(25, "here") == 429
        other = following(25, "elsewhere")
        while monitor.readers < 26:
            await asyncio.sleep(0)
        gone[0].set()
        assert await crowd[0] == 200
        again = following(1, "here")
        while monitor.readers < 26:
            await asyncio.sleep(0)
        for each in gone:
            each.set()
        assert set(await asyncio.gather(*crowd, other, again)) == {200}
        assert monitor.readers == 0

    asyncio.run(run())


def test_readers_are_counted_by_client_network(service: Client) -> None:
    """Another reader from the same network gets an error."""
    with ExitStack() as stack:
        for _ in range(25):
            stack.enter_context(open_event_stream(service))
        response = service.request("/monitor")
        assert (response.status, response.headers["retry-after"]) == (429, "60")
        assert "access-control-allow-origin" not in response.headers


def _readers(service: Client) -> int:
    found = re.search(r"^unlost_monitor_readers (\d+)(?:\.0)?$", service.request("/metrics").text, re.MULTILINE)
    assert found
    return int(found[1])
