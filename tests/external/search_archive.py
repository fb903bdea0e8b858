"""A fake archive with TimeMaps and a full-text search like Arquivo.pt's, which can fail, block, and kill a client."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

RESULT_COUNT = 120
"""Number of results of every search."""

WORDS = ["boat", "Lisboa", "água", *(f"{a}{b}" for a in ("harbour", "river", "winter") for b in "abcdefghijklmnopqrst")]


def hash_to_number(text: str, modulus: int) -> int:
    """Return a number derived from a text."""
    return int.from_bytes(sha256(text.encode()).digest()[:8]) % modulus


@dataclass
class FakeSearchArchive:
    """The running archive.

    Attributes:
        requests: Requested paths in order.
        request_received: Set after the first request.
        unblocked: Requests are blocked while it is not set.
        timemap_status: Status of the TimeMaps of some pages.
        invalid_timemaps: Pages with invalid TimeMaps.
    """

    port: int = 0
    requests: list[str] = field(default_factory=list)
    request_received: threading.Event = field(default_factory=threading.Event)
    unblocked: threading.Event = field(default_factory=threading.Event)
    timemap_status: dict[str, int] = field(default_factory=dict)
    invalid_timemaps: set[str] = field(default_factory=set)
    _pending_signal: tuple[int, int, int, float] | None = None

    def entry(self) -> str:
        """Return its registry entry, with the id `f`."""
        base = f"http://127.0.0.1:{self.port}/"
        return (
            f'[[archive]]\nid = "f"\nname = "F"\nkind = "memento"\nlimits = []\ntimemap = "{base}timemap/"\n'
            f'search = "{base}textsearch?q={{terms}}"\n'
        )

    def send_signal_at(self, request: int, process: int, sign: int = signal.SIGKILL, delay: float = 0.0) -> None:
        """Send a signal to a process, some seconds after a number of further requests."""
        self._pending_signal = (len(self.requests) + request, process, sign, delay)

    def respond(self, path: str) -> tuple[int, bytes]:
        """Return a status and a body."""
        self.requests.append(path)
        self.request_received.set()
        self.unblocked.wait()
        if self._pending_signal and len(self.requests) >= self._pending_signal[0]:
            _, process, sign, delay = self._pending_signal
            self._pending_signal = None
            threading.Thread(target=_send_signal, args=(process, sign, delay)).start()
        if path.startswith("/timemap/"):
            return self._timemap(path.removeprefix("/timemap/"))
        query = parse_qs(urlsplit(path).query)
        return 200, json.dumps(
            self._results(query["q"][0], int(query["offset"][0]), int(query["maxItems"][0]))
        ).encode()

    def _timemap(self, uri: str) -> tuple[int, bytes]:
        if uri in self.invalid_timemaps:
            return 200, b"<html>rubbish</html>"
        mementos = "".join(
            f',\n<http://127.0.0.1:{self.port}/2014010{day}000000/{uri}>; rel="memento"; '
            f'datetime="{name}, 0{day} Jan 2014 00:00:00 GMT"'
            for day, name in list(enumerate(("Wed", "Thu", "Fri"), 1))[: 1 + hash_to_number(uri, 3)]
        )
        return self.timemap_status.get(uri, 200), f'<{uri}>; rel="original"{mementos}'.encode()

    def _results(self, terms: str, offset: int, count: int) -> dict[str, object]:
        items = [self._result(terms, number) for number in range(offset, min(offset + count, RESULT_COUNT))]
        more = {"next_page": "http://elsewhere.example/"} if offset + count < RESULT_COUNT else {}
        return {"serviceName": "F", "estimated_nr_results": 10**30, "response_items": items, **more}

    def _result(self, terms: str, number: int) -> dict[str, object]:
        name = f"{terms} {number}"
        words = [WORDS[hash_to_number(f"{name} {at}", len(WORDS))] for at in range(3)]
        return {
            "title": f"<em>{words[0]}</em> &amp; {words[1]}",
            "snippet": words[2],
            "originalURL": f"http://s{hash_to_number(name, 5)}.example/{hash_to_number(name, 10**9)}",
            "tstamp": f"{1996 + hash_to_number(name, 20)}0101000000",
            "mimeType": ("text/html", "application/pdf")[hash_to_number(name, 2)],
        }


def _send_signal(process: int, sign: int, delay: float) -> None:
    time.sleep(delay)
    os.kill(process, sign)


@contextmanager
def fake_search_archive() -> Iterator[FakeSearchArchive]:
    """Run the archive on loopback."""
    archive = FakeSearchArchive()
    archive.unblocked.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: otherwise the second waits for an acknowledgement
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            status, body = archive.respond(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Disable the log."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Ignore errors of killed clients."""

    with Server(("127.0.0.1", 0), Handler) as server:
        archive.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield archive
        finally:
            archive.unblocked.set()
            server.shutdown()
            thread.join()
