"""`unlost serve` with a slow archive: options for concurrent requests."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

import pytest

from tests.cli.run import UNLOST
from tests.web.server_process import run_process, wait_for_client

CLIENTS = 24
SECONDS = 0.3
TIMEMAP = b'<http://a/1>; rel="memento"; datetime="Mon, 10 Feb 2014 00:00:01 GMT"'


@dataclass
class Load:
    """Current and maximum number of concurrent requests."""

    now: int = 0
    most: int = 0
    lock: Lock = field(default_factory=Lock)

    def add(self, number: int) -> None:
        """Add to the number of requests."""
        with self.lock:
            self.now += number
            self.most = max(self.most, self.now)


class _Server(ThreadingHTTPServer):
    request_queue_size = 128


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[Load, Path]]:
    """Run an archive that takes a third of a second per TimeMap; yield its load and a registry without limits."""
    load = Load()

    class Archive(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            load.add(1)
            time.sleep(SECONDS)
            load.add(-1)
            self.send_response(200)
            self.send_header("Content-Length", str(len(TIMEMAP)))
            self.end_headers()
            self.wfile.write(TIMEMAP)

        def log_message(self, *_: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Archive)
    server.daemon_threads = True
    registry = tmp_path / "archives.toml"
    timemap = f"http://127.0.0.1:{server.server_port}/"
    registry.write_text(f'[[archive]]\nid = "a"\nname = "a"\nkind = "memento"\ntimemap = "{timemap}"\n')
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield load, registry
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(("options", "most"), [((), CLIENTS), (("--upstream-initial", "9", "--upstream-max", "4"), 4)])
def test_no_memento_is_lost_while_requests_wait(slow: tuple[Load, Path], options: tuple[str, ...], most: int) -> None:
    """The archive gets the allowed number of concurrent requests, and all responses are in time."""
    load, registry = slow
    environment = {"UNLOST_HOME": str(registry.parent), "UNLOST_CONTACT": "me@example.org"}
    command: list[str | Path] = [UNLOST, "serve", "--port", "0", "--archives", registry, "--deadline", "20", *options]
    with run_process(command, environment) as process, ThreadPoolExecutor(CLIENTS) as clients:
        client = wait_for_client(process)
        pages = [f"/timemap/link/http://site{number}.example/" for number in range(2 * CLIENTS)]
        responses = list(clients.map(client.request, pages))
    assert {(each.status, each.headers["x-memento-count"]) for each in responses} == {(200, "1")}
    assert 0.7 * most < load.most <= most
