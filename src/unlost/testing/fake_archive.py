"""A web archive for tests: an HTTP server on the loopback interface that serves given captures and fails on demand.

Also its faults, and the registry file that names it for `--archives`.
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
    """How an archive fails. Made by one of the methods, and given to `FakeArchive.fail`.

    status: what it answers in the place of the truth; None if it does not.
    retry_after: what it says there, seconds; None for nothing.
    body: what it says beside that. delay: seconds before it answers. is_dead: whether it breaks the connection.

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
        """Return the fault of an archive that answers truly, but late; `math.inf` for never.

        The wait ends with the archive: no test has to wait for it.
        """
        return cls(delay=seconds)

    @classmethod
    def unavailable(cls, retry_after: int | None = None) -> Self:
        """Return that of one that answers 503. retry_after: seconds that it wants to be left alone."""
        return cls(503, retry_after, b"down for maintenance")

    @classmethod
    def too_many(cls, retry_after: int | None = None) -> Self:
        """Return that of one that answers 429. retry_after: the same."""
        return cls(429, retry_after, b"too many requests")

    @classmethod
    def dead(cls) -> Self:
        """Return that of one that takes connections and breaks them."""
        return cls(is_dead=True)

    @classmethod
    def garbage(cls) -> Self:
        """Return that of one that answers 200, and what it says is nothing."""
        return cls(200, None, b'\x00\xff<html>]}{,,; rel="memento"\xfe')


_LIMIT_SOURCE = "what the test says"
_POLL_SECONDS = 0.02  # between two looks at whether it is to end
_MAX_DELAY_SECONDS = 3_600.0  # of a delay; no test takes as long


@dataclass(slots=True)
class _PlannedFault:
    """A fault that is to come. times: how often still; None for always. kinds: of requests; empty for all."""

    fault: Fault
    times: int | None
    kinds: frozenset[Asked]


class FakeArchive:
    """An archive that holds what it is told to. Use it as a context manager; it is asked by HTTP while the block lasts.

    held: what it holds, as `{url: [(datetime, body, mime, status), …]}`; all but the first of a tuple may be left out.
    id: what registries call it.

    It speaks Memento (RFC 7089): TimeMaps in link-format and JSON, a TimeGate, copies with `Memento-Datetime` under
    `/web/DATETIME/URL`, raw under `/web/DATETIMEid_/URL`; and has an index server in the form of the Wayback Machine's.
    It may be asked from any thread and any process of this machine. Nothing else of this machine is reached by it.

    requests: all that it was asked, in the order in which that came; also what it failed to answer.

    >>> from unlost.testing import FakeArchive
    >>> with FakeArchive({"http://lost.example/": [("2014", "old"), ("2016", "new")]}, id="mine") as archive:
    ...     archive.registry_entry().id
    'mine'
    """

    def __init__(self, held: Held | None = None, *, id: str = "fake") -> None:  # noqa: A002  as registries call it
        self.id = id
        self.requests: list[Request] = []
        self._holdings = FakeHoldings(held or {})
        self._faults: list[_PlannedFault] = []
        self._lock = Lock()
        self._is_stopped = Event()
        self._server: _FakeArchiveServer | None = None
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        """Begin to answer, on a free port."""
        if self._is_stopped.is_set() or self._server is not None:
            raise UsageError("a fake archive is used once: make another one")
        self._server = _FakeArchiveServer(self)
        self._thread = Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), name=self.id, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        """Stop it: whoever asks from now on is refused. What it was asked stays known."""
        self.stop()

    def stop(self) -> None:
        """Stop it before the block ends. Connections are refused then, as by a machine that is switched off."""
        self._is_stopped.set()
        if self._server is not None and self._thread is not None and self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    @property
    def address(self) -> str:
        """Its address, without a slash at the end. Raises UsageError before it was started."""
        if self._server is None:
            raise UsageError("the archive has no address before it is started: use it in a `with` block")
        return f"http://127.0.0.1:{self._server.server_port}"

    def raw_address(self, when: datetime | str, url: str) -> str:
        """Return where the copy of a page that is closest to a date is, as it was captured. Raises DateError."""
        digits = when if isinstance(when, str) and when.isdecimal() else to_timestamp(when)
        return f"{self.address}{REPLAY_PATH}{digits}id_/{url}"

    def timemap_address(self, url: str, form: str = "link") -> str:
        """Return where the copies of a page are listed. form: `link` or `json`."""
        return f"{self.address}{TIMEMAP_PATH}{form}/{url}"

    def timegate_address(self, url: str) -> str:
        """Return where the copy that is closest to the header `Accept-Datetime` is found."""
        return f"{self.address}{TIMEGATE_PATH}{url}"

    def registry_entry(self, kind: str = "wayback") -> Archive:
        """Return the archive as `unlost.recover` and `unlost.Aggregator` take it, and `write_registry` writes it.

        kind: `wayback`, to be asked by its index, or `memento`, by TimeMaps and its TimeGate alone. It has no limits.
        Raises UsageError for another kind.
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
        """Hold more from now on."""
        with self._lock:
            self._holdings = self._holdings.merged_with(held)

    def fail(self, fault: Fault, *, times: int | None = None, kinds: Collection[Asked] = ()) -> None:
        """Fail from now on, behind faults that were said before.

        times: how many requests; None for all until `heal`. kinds: of which kinds; all if none is named.
        """
        with self._lock:
            self._faults.append(_PlannedFault(fault, times, frozenset(kinds)))

    def heal(self) -> None:
        """Answer truly from now on."""
        with self._lock:
            self._faults.clear()

    def count(self, kind: Asked | None = None) -> int:
        """Return how many requests came, of one kind or of all."""
        with self._lock:
            return sum(kind in (None, each.kind) for each in self.requests)

    def _respond(self, path: str, headers: dict[str, str]) -> FakeResponse | None:
        """Note a request; return the answer when it is time for that, None if the connection is to break."""
        if self._is_stopped.is_set():
            return None  # a connection from before
        kind = request_kind(path)
        with self._lock:
            self.requests.append(Request(kind, path, headers))
            held = self._holdings
            fault = self._next_fault(kind)
        if fault is not None:
            self._is_stopped.wait(min(fault.delay, _MAX_DELAY_SECONDS))
            if fault.is_dead:
                return None
            if fault.status is not None:
                told = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
                return FakeResponse(fault.status, told, fault.body)
        return FakeResponder(held, self.address).respond(path, headers)

    def _next_fault(self, kind: Asked) -> Fault | None:
        for each in self._faults:
            if not each.kinds or kind in each.kinds:
                if each.times is not None:
                    each.times -= 1
                    if each.times <= 0:
                        self._faults.remove(each)
                return each.fault
        return None


class _FakeArchiveServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # as many come at once as a test likes

    def __init__(self, archive: FakeArchive) -> None:
        self.archive = archive
        super().__init__(("127.0.0.1", 0), _RequestHandler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: whoever asked has gone, and that is its right."""


class _RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _FakeArchiveServer

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Answer as to GET, without a body."""
        self.do_GET()

    def do_GET(self) -> None:
        """Answer, or break the connection."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.archive._respond(self.path, headers)  # noqa: SLF001  it is its other half
        if answer is None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Length": str(len(answer.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)


def write_registry(path: str | PathLike[str], *archives: Archive) -> Path:
    """Write a registry of these archives and no others, without any limits but their own; return its path."""
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
