"""Inside: an index listed beside `cdx_toolkit`, the copy closest to a date beside `memento-client`; prints JSON.

usage: python -m bench.peers.asking FOLDER CAPTURES PAGES
CAPTURES: in the index that is listed. PAGES: that the closest copy is asked for, one after the other.

Each is a process, its start-up counted. For closest copies both are used as libraries: memento-client has no command.
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
from bench.peers.machine import BASE, NAME, Machine, serving
from bench.peers.row import Row
from bench.peers.sealed import LIVING, begin, environment
from bench.peers.site import HOST
from unlost.registry import Archive, ArchiveKind, RequestKind
from unlost.testing import write_registry

UNLOST = Path(sys.executable).with_name("unlost")
DATE, WANTED, CLOSEST = "Sun, 01 Apr 2012 12:00:00 GMT", "20120401120000", "20120501000000"
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
    async with ArchiveHttpClient(MemoryLimitStore(), SystemClock(), contact="bench@example.com") as courier:
        async for capture in WaybackClient(archive, courier).under(sys.argv[1]):
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


class Asked:
    """A process that asked the machine.

    lines: what it printed. requests: how often it asked. seconds: how long it took. failure: its last words, if it did.
    """

    def __init__(self, command: list[str | Path], machine: Machine, folder: Path) -> None:
        before = len(machine.requests)
        start = time.perf_counter()
        env = {**environment(folder), "UNLOST_HOME": str(folder / "home"), "UNLOST_CONTACT": "bench@example.com"}
        done = subprocess.run(command, env=env, capture_output=True, check=False, timeout=600)
        self.seconds = time.perf_counter() - start
        self.requests = len(machine.requests) - before
        self.lines = done.stdout.decode().splitlines()
        self.failure = done.stderr.decode().strip().splitlines()[-1:] if done.returncode else []
        if done.returncode:
            print(done.stderr.decode()[-2000:], file=sys.stderr)


def listings(captures: int, folder: Path) -> list[Row]:
    """List all captures of a host."""
    machine = Machine(make_captures(captures, HOST))
    with serving(machine, _certificate(folder)):
        ours = Asked([sys.executable, "-c", OUR_LISTING, f"http://{HOST}/"], machine, folder)
        theirs = Asked([program("cdx_toolkit", "cdxt"), "--ia", "iter", f"{HOST}/*"], machine, folder)
    work = f"listing {captures:,} captures"
    return [
        Row(work, "cdx_toolkit", "captures listed", len(set(ours.lines)), len(set(theirs.lines)), more_is_better=True),
        Row(work, "cdx_toolkit", "requests", ours.requests, theirs.requests),
        Row(work, "cdx_toolkit", "seconds", ours.seconds, theirs.seconds),
    ]


def closest(count: int, folder: Path) -> list[Row]:
    """Ask for the copy closest to a date: of a page whose server is gone, of one that is alive, and of several."""
    lost, living = f"http://{HOST}/page", [f"http://{LIVING}/{number}" for number in range(count)]
    machine = Machine([StoredCapture(page, moment) for page in [lost, *living] for moment in _STORED], is_limited=False)
    # An archive of one's own: without limits, since those of the Wayback Machine would be all that is measured.
    own = Archive(
        "own", "Own", ArchiveKind.MEMENTO, timemap=f"{BASE}/web/timemap/link/", timegate=f"{BASE}/web/", limits=()
    )
    registry = write_registry(folder / "archives.toml", own)
    client: list[str | Path] = [program("memento-client", "python"), "-c", THEIR_CLOSEST, f"{BASE}/web/", DATE]
    found = []
    works = {"a page whose server is gone": [lost], "a living page": living[:1], f"{count} living pages": living}
    with serving(machine, _certificate(folder)), _living(machine):
        for what, asked in works.items():
            own_command: list[str | Path] = [sys.executable, "-c", OUR_CLOSEST, registry, WANTED]
            ours, theirs = (_fastest([*command, *asked], machine, folder) for command in (own_command, client))
            work = f"the copy closest to a date, of {what}"
            said = f"memento-client ends with `{theirs.failure[0]}`" if theirs.failure else ""
            right = Row(
                work, "memento-client", "right answers", _right(ours), _right(theirs), more_is_better=True, options=said
            )
            found.append(right)
            if right.theirs:  # how fast it fails is of no use to anybody
                found.append(Row(work, "memento-client", "requests", ours.requests, theirs.requests))
                found.append(Row(work, "memento-client", "seconds", ours.seconds, theirs.seconds))
    return found


@contextmanager
def _living(machine: Machine) -> Iterator[None]:
    """Run the server of the living pages; what it is asked counts, too."""

    class Pages(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            """Serve a page."""
            machine.requests.append((machine.clock.now(), RequestKind.REPLAY, self.path))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET  # noqa: N815  as the base class wants it

    server = ThreadingHTTPServer(("127.0.0.1", 80), Pages)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _fastest(command: list[str | Path], machine: Machine, folder: Path) -> Asked:
    """Run it three times, since it is soon over and machines are busy."""
    return min((Asked(command, machine, folder) for _ in range(3)), key=lambda asked: asked.seconds)


def _right(asked: Asked) -> int:
    return sum(f"/web/{CLOSEST}/" in line for line in asked.lines)


def _certificate(folder: Path) -> tuple[Path, Path]:
    return folder / f"{NAME}.pem", folder / f"{NAME}.key"


def main() -> None:
    """Run both."""
    folder, captures, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    begin()
    found: list[dict[str, Any]] = [row.plain() for row in [*listings(captures, folder), *closest(count, folder)]]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
