"""Listing an index, relative to `cdx_toolkit`, and the closest memento, relative to `memento-client`; prints JSON.

usage: python -m bench.peers.archive_queries FOLDER CAPTURES PAGES
CAPTURES: captures of the listed index. PAGES: pages whose closest memento is requested, one after another.

It runs in the sandbox. Each client is a process, including start-up. For closest mementos both tools are used as
libraries, since memento-client has no command.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tests.external.wayback_cdx import StoredCapture, make_captures

from bench.peers.environments import program
from bench.peers.fake_wayback import BASE, NAME, RateLimitedWayback, serve_archive
from bench.peers.lost_site import HOST
from bench.peers.row import Row
from bench.peers.sandbox import LIVE_HOST, set_up_network, tool_environment
from unlost.registry import Archive, ArchiveKind, RequestKind
from unlost.testing import write_registry

UNLOST = Path(sys.executable).with_name("unlost")
DATE, REQUESTED, CLOSEST = "Sun, 01 Apr 2012 12:00:00 GMT", "20120401120000", "20120501000000"
_STORED = ("20100501000000", CLOSEST, "20140501000000")

OUR_LISTING = """
import asyncio, sys
from unlost.http.client import ArchiveHttpClient
from unlost.archives.cdx_client import WaybackClient
from unlost.http.limit_store import MemoryLimitStore
from unlost.clock import SystemClock
from unlost import load_registry

async def main():
    archive = next(each for each in load_registry() if each.id == "web.archive.org")
    async with ArchiveHttpClient(MemoryLimitStore(), SystemClock(), contact="bench@example.com") as client:
        async for capture in WaybackClient(archive, client).list_prefix(sys.argv[1]):
            print(capture.datetime, capture.uri)

asyncio.run(main())
"""
OUR_CLOSEST = """
import pathlib, sys
import unlost

archives = list(unlost.load_registry(pathlib.Path(sys.argv[1])))
with unlost.Aggregator(archives, contact="bench@example.com") as aggregator:
    for page in sys.argv[3:]:
        print(aggregator.closest(page, sys.argv[2]).uri)
"""
THEIR_CLOSEST = """
import sys
from memento_client import MementoClient

client = MementoClient(timegate_uri=sys.argv[1], check_native_timegate=False)
for page in sys.argv[3:]:
    found = client.get_memento_info(page, client.convert_to_datetime(sys.argv[2]))
    print(found["mementos"]["closest"]["uri"][0])
"""


class ClientRun:
    """A client process that queried the fake archive.

    Attributes:
        lines: Lines of its output.
        requests: Number of requests.
        seconds: Duration.
        failure: Last line of its error output, if it failed.
    """

    def __init__(self, command: list[str | Path], archive_server: RateLimitedWayback, folder: Path) -> None:
        before = len(archive_server.requests)
        start = time.perf_counter()
        env = {**tool_environment(folder), "UNLOST_HOME": str(folder / "home"), "UNLOST_CONTACT": "bench@example.com"}
        done = subprocess.run(command, env=env, capture_output=True, check=False, timeout=600)
        self.seconds = time.perf_counter() - start
        self.requests = len(archive_server.requests) - before
        self.lines = done.stdout.decode().splitlines()
        self.failure = done.stderr.decode().strip().splitlines()[-1:] if done.returncode else []
        if done.returncode:
            print(done.stderr.decode()[-2000:], file=sys.stderr)


def measure_listings(captures: int, folder: Path) -> list[Row]:
    """List all captures of a host."""
    archive_server = RateLimitedWayback(make_captures(captures, HOST))
    with serve_archive(archive_server, _certificate(folder)):
        ours = ClientRun([sys.executable, "-c", OUR_LISTING, f"http://{HOST}/"], archive_server, folder)
        theirs = ClientRun([program("cdx_toolkit", "cdxt"), "--ia", "iter", f"{HOST}/*"], archive_server, folder)
    work = f"listing {captures:,} captures"
    return [
        Row(work, "cdx_toolkit", "captures listed", len(set(ours.lines)), len(set(theirs.lines)), more_is_better=True),
        Row(work, "cdx_toolkit", "requests", ours.requests, theirs.requests),
        Row(work, "cdx_toolkit", "seconds", ours.seconds, theirs.seconds),
    ]


def measure_closest(count: int, folder: Path) -> list[Row]:
    """Request the memento closest to a date: of a page whose server is gone, of a live page, and of several."""
    lost, live = f"http://{HOST}/page", [f"http://{LIVE_HOST}/{number}" for number in range(count)]
    archive_server = RateLimitedWayback(
        [StoredCapture(page, timestamp) for page in [lost, *live] for timestamp in _STORED], is_limited=False
    )
    # Without rate limits: those of the Wayback Machine would dominate the measurement.
    own = Archive(
        "own", "Own", ArchiveKind.MEMENTO, timemap=f"{BASE}/web/timemap/link/", timegate=f"{BASE}/web/", limits=()
    )
    registry = write_registry(folder / "archives.toml", own)
    client: list[str | Path] = [program("memento-client", "python"), "-c", THEIR_CLOSEST, f"{BASE}/web/", DATE]
    found = []
    tasks = {"a page whose server is gone": [lost], "a living page": live[:1], f"{count} living pages": live}
    with serve_archive(archive_server, _certificate(folder)), _serve_live_pages(archive_server):
        for what, pages in tasks.items():
            own_command: list[str | Path] = [sys.executable, "-c", OUR_CLOSEST, registry, REQUESTED]
            ours, theirs = (
                _fastest_run([*command, *pages], archive_server, folder) for command in (own_command, client)
            )
            work = f"the copy closest to a date, of {what}"
            failure = f"memento-client ends with `{theirs.failure[0]}`" if theirs.failure else ""
            correct = Row(
                work,
                "memento-client",
                "right answers",
                _count_correct(ours),
                _count_correct(theirs),
                more_is_better=True,
                options=failure,
            )
            found.append(correct)
            if correct.theirs:  # the speed of a failure is irrelevant
                found.append(Row(work, "memento-client", "requests", ours.requests, theirs.requests))
                found.append(Row(work, "memento-client", "seconds", ours.seconds, theirs.seconds))
    return found


@contextmanager
def _serve_live_pages(archive_server: RateLimitedWayback) -> Iterator[None]:
    """Run the server of the live pages; its requests are counted, too."""

    class Pages(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Disable the log."""

        def do_GET(self) -> None:
            """Serve a page."""
            archive_server.requests.append((archive_server.clock.now(), RequestKind.REPLAY, self.path))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET  # noqa: N815  name of the base class

    server = ThreadingHTTPServer(("127.0.0.1", 80), Pages)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _fastest_run(command: list[str | Path], archive_server: RateLimitedWayback, folder: Path) -> ClientRun:
    """Return the fastest of three runs, since a run is short."""
    return min((ClientRun(command, archive_server, folder) for _ in range(3)), key=lambda run: run.seconds)


def _count_correct(run: ClientRun) -> int:
    return sum(f"/web/{CLOSEST}/" in line for line in run.lines)


def _certificate(folder: Path) -> tuple[Path, Path]:
    return folder / f"{NAME}.pem", folder / f"{NAME}.key"


def main() -> None:
    """Run both comparisons."""
    folder, captures, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    set_up_network()
    found: list[dict[str, Any]] = [
        row.to_json() for row in [*measure_listings(captures, folder), *measure_closest(count, folder)]
    ]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
