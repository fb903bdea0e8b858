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

RESULTS = 120
"""How many results every search has."""

WORDS = ["boat", "Lisboa", "água", *(f"{a}{b}" for a in ("harbour", "river", "winter") for b in "abcdefghijklmnopqrst")]


def number_of(text: str, modulus: int) -> int:
    """Return a number derived from a text."""
    return int.from_bytes(sha256(text.encode()).digest()[:8]) % modulus


@dataclass
class Sampled:
    """The running archive.

    Attributes:
        asked: Requested paths in order.
        has_asked: Set after the first request.
        hold: While it is not set, requests are blocked.
        status: Status of the TimeMaps of some pages.
        rubbish: Pages with invalid TimeMaps.
    """

    port: int = 0
    asked: list[str] = field(default_factory=list)
    has_asked: threading.Event = field(default_factory=threading.Event)
    hold: threading.Event = field(default_factory=threading.Event)
    status: dict[str, int] = field(default_factory=dict)
    rubbish: set[str] = field(default_factory=set)
    _victim: tuple[int, int, int, float] | None = None

    def entry(self) -> str:
        """Return its registry entry, with the id `f`."""
        base = f"http://127.0.0.1:{self.port}/"
        return (
            f'[[archive]]\nid = "f"\nname = "F"\nkind = "memento"\nlimits = []\ntimemap = "{base}timemap/"\n'
            f'search = "{base}textsearch?q={{terms}}"\n'
        )

    def end_at(self, request: int, process: int, sign: int = signal.SIGKILL, delay: float = 0.0) -> None:
        """Send a signal to a process, some seconds after a number of further requests."""
        self._victim = (len(self.asked) + request, process, sign, delay)

    def answer(self, path: str) -> tuple[int, bytes]:
        """Return a status and a body."""
        self.asked.append(path)
        self.has_asked.set()
        self.hold.wait()
        if self._victim and len(self.asked) >= self._victim[0]:
            _, process, sign, delay = self._victim
            self._victim = None
            threading.Thread(target=_end, args=(process, sign, delay)).start()
        if path.startswith("/timemap/"):
            return self._timemap(path.removeprefix("/timemap/"))
        query = parse_qs(urlsplit(path).query)
        return 200, json.dumps(
            self._results(query["q"][0], int(query["offset"][0]), int(query["maxItems"][0]))
        ).encode()

    def _timemap(self, uri: str) -> tuple[int, bytes]:
        if uri in self.rubbish:
            return 200, b"<html>rubbish</html>"
        copies = "".join(
            f',\n<http://127.0.0.1:{self.port}/2014010{day}000000/{uri}>; rel="memento"; '
            f'datetime="{name}, 0{day} Jan 2014 00:00:00 GMT"'
            for day, name in list(enumerate(("Wed", "Thu", "Fri"), 1))[: 1 + number_of(uri, 3)]
        )
        return self.status.get(uri, 200), f'<{uri}>; rel="original"{copies}'.encode()

    def _results(self, terms: str, offset: int, count: int) -> dict[str, object]:
        items = [self._result(terms, number) for number in range(offset, min(offset + count, RESULTS))]
        more = {"next_page": "http://elsewhere.example/"} if offset + count < RESULTS else {}
        return {"serviceName": "F", "estimated_nr_results": 10**30, "response_items": items, **more}

    def _result(self, terms: str, number: int) -> dict[str, object]:
        name = f"{terms} {number}"
        words = [WORDS[number_of(f"{name} {at}", len(WORDS))] for at in range(3)]
        return {
            "title": f"<em>{words[0]}</em> &amp; {words[1]}",
            "snippet": words[2],
            "originalURL": f"http://s{number_of(name, 5)}.example/{number_of(name, 10**9)}",
            "tstamp": f"{1996 + number_of(name, 20)}0101000000",
            "mimeType": ("text/html", "application/pdf")[number_of(name, 2)],
        }


def _end(process: int, sign: int, delay: float) -> None:
    time.sleep(delay)
    os.kill(process, sign)


@contextmanager
def sampled() -> Iterator[Sampled]:
    """Run the archive on loopback."""
    archive = Sampled()
    archive.hold.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: otherwise the second waits for an acknowledgement
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            status, body = archive.answer(self.path)
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
            archive.hold.set()
            server.shutdown()
            thread.join()
