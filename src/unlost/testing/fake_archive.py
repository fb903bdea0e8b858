"""A fake web archive for tests: an HTTP server on the loopback interface that serves given captures.

The module also has the faults that the archive simulates, and a writer for the registry file of `--archives`.
"""

import base64
import hashlib
import json
import re
import socket
import struct
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from os import PathLike
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Literal, NamedTuple, Self, TypeAlias
from urllib.parse import parse_qs, urljoin

from unlost import dates, uri
from unlost.errors import InputError, UsageError
from unlost.registry.models import Archive, ArchiveKind, PrefixListing, RateLimit, SourcedNumber

CDX_FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
"""Columns of a CDX row, in the order of the Wayback Machine's CDX server. The first row of its JSON names them."""
TIMEMAP_PATH, TIMEGATE_PATH, CDX_PATH, REPLAY_PATH = "/timemap/", "/timegate/", "/cdx/search/cdx", "/web/"
"""Path prefixes of the endpoints."""
_REPLAY_URL = re.compile(r"/web/(\d{1,14})(?:[a-z]{2}_)?/(.+)", re.DOTALL)
_MAX_ROWS = 100_000  # of a CDX response without a `limit`
_FIRST, _LAST = "0001", "9999"  # default `from` and `to`: all dates
_LIMIT_SOURCE = "what the test says"
_POLL_SECONDS = 0.02  # interval at which the server checks whether to shut down
_MAX_DELAY_SECONDS = 3_600.0  # replaces longer delays, such as math.inf

Asked = Literal["timemap", "timegate", "replay", "cdx", "other"]
"""Kind of a request; `other` is any path that the archive does not serve."""


class Request(NamedTuple):
    """A request that the fake archive received.

    Attributes:
        kind: Endpoint that was requested.
        path: Request target including the query, as received.
        headers: Headers, with names in lower case.
    """

    kind: Asked
    path: str
    headers: dict[str, str]


class Copy(NamedTuple):
    """A capture as a test defines it. A plain tuple with at least a datetime is equivalent.

    Attributes:
        datetime: Capture time: a datetime, or text such as `2014`, `20140210000001` or `2014-02-10`. UTC if it has no
            time zone.
        body: Bytes, or text to encode as UTF-8.
        mime: Content-Type header.
        status: HTTP status of the original response.
        location: Target of a redirect.
    """

    datetime: datetime | str
    body: bytes | str = b""
    mime: str = "text/html"
    status: int = 200
    location: str | None = None


Held: TypeAlias = Mapping[str, Iterable[Copy | tuple[object, ...]]]
"""Captures by URL: `{url: [(datetime, body, mime, status), …]}`."""


class FakeCapture(NamedTuple):
    """A capture in the fake archive.

    Attributes:
        key: SURT of the URL.
        timestamp: Capture time, 14 digits.
    """

    key: str
    timestamp: str
    original: str
    body: bytes
    mime: str
    status: int
    location: str | None

    def cdx_row(self) -> list[str]:
        """Return the CDX columns as in `CDX_FIELDS`."""
        digest = base64.b32encode(hashlib.sha1(self.body, usedforsecurity=False).digest()).decode()
        mime = self.mime.partition(";")[0].strip()
        return [self.key, self.timestamp, self.original, mime, str(self.status), digest, str(len(self.body))]


class FakeHoldings:
    """All captures, sorted by SURT and date. URLs with the same SURT are one page."""

    def __init__(self, held: Held) -> None:
        captures = [_make_capture(url, Copy(*capture)) for url, definitions in held.items() for capture in definitions]
        self._stored = sorted(captures, key=lambda capture: (capture.key, capture.timestamp))

    def __iter__(self) -> Iterator[FakeCapture]:
        """Iterate over all captures."""
        return iter(self._stored)

    def merged_with(self, held: Held) -> "FakeHoldings":
        """Return new holdings that also contain `held`."""
        merged = FakeHoldings(held)
        merged._stored = sorted([*self._stored, *merged._stored], key=lambda each: (each.key, each.timestamp))
        return merged

    def captures_of(self, url: str) -> list[FakeCapture]:
        """Return the captures of a URL, by date.

        Raises:
            UriError: The URL is invalid.
        """
        key = uri.surt(url)
        return [each for each in self._stored if each.key == key]

    def closest_to(self, url: str, timestamp: str) -> FakeCapture | None:
        """Return the capture of a URL closest to a timestamp of 1 to 14 digits; None if there is none.

        Raises:
            UriError: The URL is invalid.
            DateError: The timestamp is invalid.
        """
        captures = self.captures_of(url)
        if not captures:
            return None
        target = dates.to_datetime(dates.pad(timestamp))
        return min(captures, key=lambda each: abs(dates.to_datetime(each.timestamp) - target))

    def list_captures(self, url: str, match: str, first: str, last: str) -> list[FakeCapture]:
        """Return the captures that match a CDX query.

        Args:
            url: URL of the query.
            match: `exact`, `prefix`, `host` or `domain`.
            first: Earliest timestamp, 1 to 14 digits.
            last: Latest timestamp, 1 to 14 digits.

        Raises:
            UriError: The URL is invalid.
        """
        key = uri.surt(url)
        host = key.partition(")")[0]
        prefixes = {"exact": (key,), "host": (f"{host})",), "domain": (f"{host})", f"{host},")}.get(match, (key,))
        rows = self._stored[bisect_left(self._stored, (host,)) :]  # SURTs of subdomains begin with that of the domain
        return [
            each
            for each in rows
            if each.key.startswith(prefixes)
            and (match != "exact" or each.key == key)
            and dates.pad(first) <= each.timestamp <= dates.pad(last, round_up=True)
        ]


def to_timestamp(when: datetime | str) -> str:
    """Return a date as a 14-digit timestamp.

    Raises:
        DateError: The text is not a date.

    >>> to_timestamp("2014"), to_timestamp(datetime(2014, 2, 10))
    ('20140101000000', '20140210000000')
    """
    if isinstance(when, str):
        return dates.from_user_input(when)
    return dates.from_datetime(when if when.tzinfo else when.replace(tzinfo=UTC))


def _make_capture(url: str, definition: Copy) -> FakeCapture:
    body = definition.body.encode() if isinstance(definition.body, str) else definition.body
    return FakeCapture(
        uri.surt(url),
        to_timestamp(definition.datetime),
        url,
        body,
        definition.mime,
        definition.status,
        definition.location,
    )


@dataclass(frozen=True, slots=True)
class FakeResponse:
    """Status, headers and body of a response."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def request_kind(path: str) -> Asked:
    """Return the endpoint that a path belongs to.

    >>> request_kind("/timemap/link/http://a.example/"), request_kind("/web/2014id_/http://a.example/")
    ('timemap', 'replay')
    >>> request_kind("/")
    'other'
    """
    kinds: dict[str, Asked] = {
        TIMEMAP_PATH: "timemap",
        TIMEGATE_PATH: "timegate",
        CDX_PATH: "cdx",
        REPLAY_PATH: "replay",
    }
    return next((kind for prefix, kind in kinds.items() if path.startswith(prefix)), "other")


@dataclass(frozen=True, slots=True)
class FakeResponder:
    """Creates the responses of an archive.

    Attributes:
        holdings: Captures to serve.
        base: Base URL of the archive, without a trailing slash.
    """

    holdings: FakeHoldings
    base: str

    def respond(self, path: str, headers: Mapping[str, str]) -> FakeResponse:
        """Return the response to a request.

        Args:
            path: Request target including the query.
            headers: Request headers, with names in lower case.
        """
        try:
            match request_kind(path):
                case "timemap":
                    return self._timemap(path.removeprefix(TIMEMAP_PATH))
                case "timegate":
                    return self._timegate(path.removeprefix(TIMEGATE_PATH), headers.get("accept-datetime"))
                case "replay":
                    return self._replay(path)
                case "cdx":
                    return self._index({name: values[-1] for name, values in parse_qs(path.partition("?")[2]).items()})
        except (InputError, ValueError, KeyError) as error:
            return _text_response(HTTPStatus.BAD_REQUEST, str(error))
        return _text_response(HTTPStatus.NOT_FOUND, "no such place")

    def memento_url(self, capture: FakeCapture, flag: str = "") -> str:
        """Return the URI-M of a capture.

        Args:
            capture: The capture.
            flag: `id_` for the raw memento.
        """
        return f"{self.base}{REPLAY_PATH}{capture.timestamp}{flag}/{capture.original}"

    def _timemap(self, target: str) -> FakeResponse:
        form, _, url = target.partition("/")
        captures = self.holdings.captures_of(url)
        if form not in ("link", "json"):
            return _text_response(HTTPStatus.NOT_FOUND, "expected link or json")
        if not captures:
            return _text_response(HTTPStatus.NOT_FOUND, "not archived")
        if form == "json":
            return self._json(url, captures)
        entries = [
            f'<{url}>; rel="original"',
            f'<{self.base}{TIMEMAP_PATH}link/{url}>; rel="self"; type="application/link-format"',
            f'<{self.base}{TIMEGATE_PATH}{url}>; rel="timegate"',
            *(self._link(capture, _memento_rel(captures, capture)) for capture in captures),
        ]
        return FakeResponse(200, {"Content-Type": "application/link-format"}, (",\n".join(entries) + "\n").encode())

    def _json(self, url: str, captures: list[FakeCapture]) -> FakeResponse:
        entries = [
            {"datetime": dates.to_iso(capture.timestamp), "uri": self.memento_url(capture)} for capture in captures
        ]
        document = {
            "original_uri": url,
            "self": f"{self.base}{TIMEMAP_PATH}json/{url}",
            "mementos": {"list": entries, "first": entries[0], "last": entries[-1]},
            "timemap_uri": {f"{form}_format": f"{self.base}{TIMEMAP_PATH}{form}/{url}" for form in ("link", "json")},
            "timegate_uri": f"{self.base}{TIMEGATE_PATH}{url}",
        }
        return FakeResponse(200, {"Content-Type": "application/json"}, json.dumps(document, indent=2).encode() + b"\n")

    def _timegate(self, url: str, accept_datetime: str | None) -> FakeResponse:
        captures = self.holdings.captures_of(url)
        capture = None
        if captures:
            capture = (
                captures[-1]
                if accept_datetime is None
                else self.holdings.closest_to(url, dates.from_http(accept_datetime))
            )
        if capture is None:
            return _text_response(HTTPStatus.NOT_FOUND, "not archived")
        headers = {"Vary": "accept-datetime", "Location": self.memento_url(capture), "Link": self._links(url, capture)}
        return FakeResponse(HTTPStatus.FOUND, headers)

    def _replay(self, path: str) -> FakeResponse:
        match = _REPLAY_URL.fullmatch(path)
        if match is None:
            return _text_response(HTTPStatus.NOT_FOUND, "expected a date and an address")
        timestamp, url = match.groups()
        capture = self.holdings.closest_to(url, timestamp)
        if capture is None:
            return _text_response(HTTPStatus.NOT_FOUND, "not archived")
        flag = "id_" if path.startswith(f"{REPLAY_PATH}{timestamp}id_/") else ""
        if capture.timestamp != timestamp:
            return FakeResponse(HTTPStatus.FOUND, {"Location": self.memento_url(capture, flag)})
        # `Memento-Datetime` marks a response as a capture, whatever its status is.
        headers = {
            "Content-Type": capture.mime,
            "X-Archive-Orig-Content-Type": capture.mime,
            "Memento-Datetime": dates.to_http(capture.timestamp),
            "Link": self._links(capture.original, capture),
        }
        if capture.location is not None:
            target = urljoin(capture.original, capture.location)
            headers["Location"] = f"{self.base}{REPLAY_PATH}{capture.timestamp}{flag}/{target}"
        return FakeResponse(capture.status, headers, capture.body)

    def _index(self, query: Mapping[str, str]) -> FakeResponse:
        match = query.get("matchType", "exact")
        rows = self.holdings.list_captures(query["url"], match, query.get("from", _FIRST), query.get("to", _LAST))
        limit = int(query.get("limit", _MAX_ROWS))
        start = int(query.get("resumeKey", "0"))
        if limit < 0:
            rows, limit = rows[limit:], -limit
        page = rows[start : start + limit]
        has_more = start + limit < len(rows) and query.get("showResumeKey") == "true"
        if query.get("output") != "json":
            lines = [" ".join(row.cdx_row()) for row in page] + (["", str(start + limit)] if has_more else [])
            return _text_response(200, "".join(f"{line}\n" for line in lines))
        table: list[list[str]] = [list(CDX_FIELDS), *(row.cdx_row() for row in page)] if page else []
        table += [[], [str(start + limit)]] if has_more else []
        text = "[" + ",\n".join(map(json.dumps, table)) + "]\n"
        return FakeResponse(200, {"Content-Type": "application/json"}, text.encode())

    def _links(self, url: str, capture: FakeCapture) -> str:
        links = (
            f'<{url}>; rel="original"',
            f'<{self.base}{TIMEGATE_PATH}{url}>; rel="timegate"',
            f'<{self.base}{TIMEMAP_PATH}link/{url}>; rel="timemap"; type="application/link-format"',
        )
        return ", ".join((*links, self._link(capture, _memento_rel(self.holdings.captures_of(url), capture))))

    def _link(self, capture: FakeCapture, rel: str) -> str:
        return f'<{self.memento_url(capture)}>; rel="{rel}"; datetime="{dates.to_http(capture.timestamp)}"'


def _memento_rel(captures: list[FakeCapture], capture: FakeCapture) -> str:
    ends = (("first", captures[0]), ("last", captures[-1]))
    return " ".join([*(name for name, end in ends if end is capture), "memento"])


def _text_response(status: int, text: str) -> FakeResponse:
    return FakeResponse(status, {"Content-Type": "text/plain; charset=utf-8"}, text.encode("utf-8", "replace"))


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
        id: Archive ID for registries.

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
            # A linger time of 0 makes `close` send RST instead of FIN.
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
