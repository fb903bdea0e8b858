"""A fake web archive for tests: an HTTP server on the loopback interface that serves given captures.

Also the faults that it can simulate, and a writer for the registry file to use with `--archives`.
"""

import json
import socket
import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from os import PathLike
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

from unlost.errors import UsageError
from unlost.registry.models import Archive, ArchiveKind, PrefixListing, RateLimit, SourcedNumber
from unlost.testing.responses import (
    CDX_PATH,
    REPLAY_PATH,
    TIMEGATE_PATH,
    TIMEMAP_PATH,
    Asked,
    FakeHoldings,
    FakeResponder,
    FakeResponse,
    Held,
    Request,
    request_kind,
    to_timestamp,
)


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure of a fake archive. Create it with one of the class methods and pass it to `FakeArchive.fail`.

    Attributes:
        status: HTTP status of the error response; None if the archive sends the correct response.
        retry_after: Value of the Retry-After header in seconds; None to omit the header.
        body: Body of the error response.
        delay: Seconds to wait before responding.
        is_dead: Whether the connection is reset instead.

    >>> Fault.too_many(retry_after=60).status, Fault.slow(3).delay
    (429, 3)
    """

    status: int | None = None
    retry_after: int | None = None
    body: bytes = b""
    delay: float = 0.0
    is_dead: bool = False

    @classmethod
    def slow(cls, seconds: float) -> Self:
        """Delay each response; `math.inf` waits until the archive stops.

        Stopping the archive ends the delay, so that a test does not have to wait for it.
        """
        return cls(delay=seconds)

    @classmethod
    def unavailable(cls, retry_after: int | None = None) -> Self:
        """Respond with 503 Service Unavailable.

        Args:
            retry_after: Value of the Retry-After header in seconds; None to omit the header.
        """
        return cls(503, retry_after, b"down for maintenance")

    @classmethod
    def too_many(cls, retry_after: int | None = None) -> Self:
        """Respond with 429 Too Many Requests.

        Args:
            retry_after: Value of the Retry-After header in seconds; None to omit the header.
        """
        return cls(429, retry_after, b"too many requests")

    @classmethod
    def dead(cls) -> Self:
        """Accept connections and reset them."""
        return cls(is_dead=True)

    @classmethod
    def garbage(cls) -> Self:
        """Respond with 200 and a body that no parser accepts."""
        return cls(200, None, b'\x00\xff<html>]}{,,; rel="memento"\xfe')


_LIMIT_SOURCE = "what the test says"
_POLL_SECONDS = 0.02  # interval at which the server checks whether to shut down
_MAX_DELAY_SECONDS = 3_600.0  # replaces longer delays, such as math.inf


@dataclass(slots=True)
class _PlannedFault:
    """A pending fault.

    Attributes:
        times: Number of requests still to fail; None for no limit.
        kinds: Request kinds to fail; empty for all.
    """

    fault: Fault
    times: int | None
    kinds: frozenset[Asked]


class FakeArchive:
    """A web archive for tests. Use it as a context manager; it serves HTTP on a free port until the block ends.

    It implements Memento (RFC 7089): TimeMaps in link-format and JSON, a TimeGate, and mementos with `Memento-Datetime`
    under `/web/DATETIME/URL`, raw under `/web/DATETIMEid_/URL`. It also has a CDX server compatible with the Wayback
    Machine's. Any thread or process of this machine can send requests; the archive itself sends none.

    Args:
        held: Captures by URL, `{url: [(datetime, body, mime, status), …]}`; only the datetime is required.
        id: Archive id for registries.

    Attributes:
        requests: All requests received, in order of arrival, including those that were made to fail.

    >>> from unlost.testing import FakeArchive
    >>> with FakeArchive({"http://lost.example/": [("2014", "old"), ("2016", "new")]}, id="mine") as archive:
    ...     archive.registry_entry().id
    'mine'
    """

    def __init__(self, held: Held | None = None, *, id: str = "fake") -> None:  # noqa: A002  name of the registry field
        self.id = id
        self.requests: list[Request] = []
        self._holdings = FakeHoldings(held or {})
        self._faults: list[_PlannedFault] = []
        self._lock = Lock()
        self._is_stopped = Event()
        self._server: _FakeArchiveServer | None = None
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        """Start the server.

        Raises:
            UsageError: The archive was already started.
        """
        if self._is_stopped.is_set() or self._server is not None:
            raise UsageError("a fake archive is used once: make another one")
        self._server = _FakeArchiveServer(self)
        self._thread = Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), name=self.id, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        """Stop the server. `requests` and `count` remain available."""
        self.stop()

    def stop(self) -> None:
        """Stop the server before the block ends. Later connections are refused."""
        self._is_stopped.set()
        if self._server is not None and self._thread is not None and self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    @property
    def address(self) -> str:
        """The base URL, without a trailing slash.

        Raises:
            UsageError: The archive has not been started.
        """
        if self._server is None:
            raise UsageError("the archive has no address before it is started: use it in a `with` block")
        return f"http://127.0.0.1:{self._server.server_port}"

    def raw_address(self, when: datetime | str, url: str) -> str:
        """Return the URL of the raw memento (URI-M) of `url` closest to a date.

        Raises:
            DateError: The date is invalid.
        """
        digits = when if isinstance(when, str) and when.isdecimal() else to_timestamp(when)
        return f"{self.address}{REPLAY_PATH}{digits}id_/{url}"

    def timemap_address(self, url: str, form: str = "link") -> str:
        """Return the URL of the TimeMap (URI-T) of `url`.

        Args:
            url: Original URL (URI-R).
            form: `link` or `json`.
        """
        return f"{self.address}{TIMEMAP_PATH}{form}/{url}"

    def timegate_address(self, url: str) -> str:
        """Return the URL of the TimeGate (URI-G) of `url`."""
        return f"{self.address}{TIMEGATE_PATH}{url}"

    def registry_entry(self, kind: str = "wayback") -> Archive:
        """Return a registry entry for `unlost.recover`, `unlost.Aggregator` or `write_registry`, without rate limits.

        Args:
            kind: `wayback` if clients should use the CDX server, `memento` for TimeMaps and TimeGate only.

        Raises:
            UsageError: `kind` is neither of the two.
        """
        if kind not in (ArchiveKind.WAYBACK, ArchiveKind.MEMENTO):
            raise UsageError(f"{kind[:40]}: expected the kind wayback or memento")
        base = self.address
        has_index = kind == ArchiveKind.WAYBACK
        return Archive(
            self.id, self.id, ArchiveKind(kind),
            timemap=f"{base}{TIMEMAP_PATH}link/",
            timegate=f"{base}{TIMEGATE_PATH}",
            cdx=f"{base}{CDX_PATH}" if has_index else None,
            replay=f"{base}{REPLAY_PATH}{{datetime}}id_/{{uri}}",
            lister=PrefixListing(("exact", "prefix", "host", "domain"), SourcedNumber(1_000,
            _LIMIT_SOURCE)) if has_index else None,
        )  # fmt: skip

    def add(self, held: Held) -> None:
        """Add captures. They are served from the next request on."""
        with self._lock:
            self._holdings = self._holdings.merged_with(held)

    def fail(self, fault: Fault, *, times: int | None = None, kinds: Collection[Asked] = ()) -> None:
        """Add a fault. Faults apply in the order in which they were added.

        Args:
            fault: What to simulate.
            times: Number of requests to fail; None for all until `heal` is called.
            kinds: Request kinds to fail; empty for all.
        """
        with self._lock:
            self._faults.append(_PlannedFault(fault, times, frozenset(kinds)))

    def heal(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._faults.clear()

    def count(self, kind: Asked | None = None) -> int:
        """Return the number of requests received, of one kind or in total."""
        with self._lock:
            return sum(kind in (None, each.kind) for each in self.requests)

    def _respond(self, path: str, headers: dict[str, str]) -> FakeResponse | None:
        """Record a request and return the response after any delay; None if the connection is to be reset."""
        if self._is_stopped.is_set():
            return None  # keep-alive connection opened before the archive was stopped
        kind = request_kind(path)
        with self._lock:
            self.requests.append(Request(kind, path, headers))
            holdings = self._holdings
            fault = self._next_fault(kind)
        if fault is not None:
            self._is_stopped.wait(min(fault.delay, _MAX_DELAY_SECONDS))
            if fault.is_dead:
                return None
            if fault.status is not None:
                error_headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
                return FakeResponse(fault.status, error_headers, fault.body)
        return FakeResponder(holdings, self.address).respond(path, headers)

    def _next_fault(self, kind: Asked) -> Fault | None:
        for planned in self._faults:
            if not planned.kinds or kind in planned.kinds:
                if planned.times is not None:
                    planned.times -= 1
                    if planned.times <= 0:
                        self._faults.remove(planned)
                return planned.fault
        return None


class _FakeArchiveServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # tests open many connections at once

    def __init__(self, archive: FakeArchive) -> None:
        self.archive = archive
        super().__init__(("127.0.0.1", 0), _RequestHandler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Do nothing: clients may disconnect at any time."""


class _RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _FakeArchiveServer

    def log_message(self, *_: object) -> None:
        """Do nothing: the default writes to stderr."""

    def do_HEAD(self) -> None:
        """Send the headers of the response to GET."""
        self.do_GET()

    def do_GET(self) -> None:
        """Send the response, or reset the connection."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        response = self.server.archive._respond(self.path, headers)  # noqa: SLF001  same module
        if response is None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        self.send_response(response.status)
        for name, value in {**response.headers, "Content-Length": str(len(response.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)


def write_registry(path: str | PathLike[str], *archives: Archive) -> Path:
    """Write a registry file that contains only these archives, and return its path.

    No default rate limits are added; the file has those of the given archives.
    """
    file = Path(path)
    file.write_text("".join(map(_format_entry, archives)))
    return file


def _format_entry(archive: Archive) -> str:
    fields = {
        "id": archive.id,
        "name": archive.name,
        "kind": str(archive.kind),
        "timemap": archive.timemap,
        "timegate": archive.timegate,
        "cdx": archive.cdx,
        "replay": archive.replay,
        "folder": archive.folder,
    }
    lines = ["[[archive]]", *(f"{name} = {json.dumps(value)}" for name, value in fields.items() if value is not None)]
    if archive.migrated:
        lines.append(f"migrated = {json.dumps(archive.migrated)}")
    lister = archive.lister
    if lister is not None:
        rows = f"{{ value = {int(lister.rows_per_page.value)}, source = {json.dumps(lister.rows_per_page.source)} }}"
        lines.append(f"lister = {{ matches = {json.dumps(lister.matches)}, rows_per_page = {rows} }}")
    if archive.kind is not ArchiveKind.FILES:
        lines.append(f"limits = [{_format_limits(archive.limits, is_quota=False)}]")
        lines.append(f"quotas = [{_format_limits(archive.quotas, is_quota=True)}]")
    return "\n".join(lines) + "\n\n"


def _format_limits(limits: Iterable[RateLimit], *, is_quota: bool) -> str:
    return ", ".join(
        f"{{ requests = {limit.requests}, "
        + ("" if is_quota else f"seconds = {limit.seconds}, ")
        + f"works = {json.dumps([str(work) for work in limit.works])}, source = {json.dumps(limit.source)} }}"
        for limit in limits
    )
