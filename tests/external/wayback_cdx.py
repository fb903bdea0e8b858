"""A fake Wayback Machine: its CDX server, replay, rate limits and errors."""

import json
import re
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urljoin

from aiohttp import web

from tests.external.local_server import serve_handler
from unlost import dates, uri
from unlost.clock import Clock, SystemClock
from unlost.registry import Archive, ArchiveKind, PrefixListing, RateLimit, RequestKind, SourcedNumber

FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
_REPLAY = re.compile(r"/web/(\d{1,14})(?:[a-z]{2}_)?/(.+)", re.DOTALL)
_BLOCKED = "org.archive.wayback.exception.{}: Blocked Site Error"


@dataclass(frozen=True)
class StoredCapture:
    """A capture. Its CDX row has `-` for None; `location` makes it a redirect."""

    original: str
    timestamp: str
    body: bytes = b"<p>hello</p>"
    mimetype: str = "text/html"
    statuscode: int | None = 200
    digest: str = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"
    location: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    coding: str | None = None

    @property
    def urlkey(self) -> str:
        """Its SURT; for other schemes, its URL."""
        return uri.surt(self.original) if uri.foreign_scheme(self.original) is None else self.original

    def row(self) -> list[str]:
        """Return its CDX row."""
        status = "-" if self.statuscode is None else str(self.statuscode)
        length = str(len(self.body))
        return [self.urlkey, self.timestamp, self.original, self.mimetype, status, self.digest, length]


@dataclass
class FakeWayback:
    """The archive.

    Attributes:
        captures: Its captures.
        excluded: Excluded hosts, each with the name of the exception in the response.
        max_rows: Maximum number of rows of a query over all its pages.
        index_response: Verbatim response to all index queries, if set.
        per_minute: Requests of each kind that are admitted in any 60 seconds; others get 429 without Retry-After.
        requests: Time, kind and path of every request, also of refused ones.
        refused: Number of requests refused by the rate limit.
    """

    captures: list[StoredCapture]
    clock: Clock = field(default_factory=SystemClock)
    excluded: dict[str, str] = field(default_factory=dict)
    max_rows: int = 150_000
    index_response: bytes | None = None
    per_minute: dict[RequestKind, int] = field(default_factory=dict)
    base: str = ""
    requests: list[tuple[float, RequestKind, str]] = field(default_factory=list)
    refused: int = 0
    _admitted: dict[RequestKind, deque[float]] = field(default_factory=dict)

    def archive(self, rows_per_page: int = 1_000, cap: int | None = None) -> Archive:
        """Return its registry entry."""
        source = "chosen by the test"
        matches = ("exact", "prefix", "host", "domain")
        return Archive(
            "fake.wayback", "Fake Wayback", ArchiveKind.WAYBACK,
            timemap=f"{self.base}/web/timemap/link/",
            timegate=f"{self.base}/web/",
            cdx=f"{self.base}/cdx/search/cdx",
            replay=f"{self.base}/web/{{datetime}}id_/{{uri}}",
            lister=PrefixListing(matches, SourcedNumber(rows_per_page, source), SourcedNumber(cap,
            source) if cap else None),
            limits=tuple(RateLimit(number, 60, (kind,), source) for kind, number in self.per_minute.items()),
        )  # fmt: skip

    def paths(self, kind: RequestKind) -> list[str]:
        """Return the paths of the requests of a kind."""
        return [path for _, each, path in self.requests if each == kind]

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Respond to a request."""
        path = request.raw_path
        is_index = path.startswith(("/cdx/", "/web/timemap/"))
        kind = RequestKind.INDEX if is_index else RequestKind.REPLAY
        now = self.clock.now()
        self.requests.append((now, kind, path))
        if self._is_rate_limited(kind, now):
            self.refused += 1
            return web.Response(status=429, text="Too Many Requests")
        url = request.query.get("url", path)
        for host, exception in self.excluded.items():
            if host in url:
                return web.Response(status=403, text=_BLOCKED.format(exception))
        if path.startswith("/cdx/"):
            return self._index(dict(request.query))
        if path.startswith("/web/timemap/link/"):
            return self._timemap(path.removeprefix("/web/timemap/link/"))
        return self._replay(path)

    def _is_rate_limited(self, kind: RequestKind, now: float) -> bool:
        if kind not in self.per_minute:
            return False
        admitted = self._admitted.setdefault(kind, deque())
        while admitted and admitted[0] <= now - 60:
            admitted.popleft()
        if len(admitted) >= self.per_minute[kind]:
            return True
        admitted.append(now)
        return False

    def _index(self, query: dict[str, str]) -> web.Response:
        if self.index_response is not None:
            return web.Response(body=self.index_response, content_type="application/json")
        rows = sorted(
            (row for row in self.captures if matches_query(row, query)), key=lambda row: (row.urlkey, row.timestamp)
        )
        start = int(query.get("resumeKey", "r0").removeprefix("r"))
        limit = int(query.get("limit", self.max_rows))
        if limit < 0:
            rows, start, limit = rows[limit:], 0, -limit
        end = min(start + limit, self.max_rows)
        page = [row.row() for row in rows[start:end]]
        if not page:
            return web.Response(text="[]\n", content_type="application/json")
        lines: list[list[str]] = [list(FIELDS), *page]
        if query.get("showResumeKey") == "true" and end < min(len(rows), self.max_rows):
            lines += [[], [f"r{end}"]]
        text = "[" + ",\n".join(json.dumps(line) for line in lines) + "]\n"
        return web.Response(text=text, content_type="application/json")

    def _timemap(self, url: str) -> web.Response:
        found = self._captures_of(url)
        if not found:
            return web.Response(status=404)
        lines = [f'<{url}>; rel="original"']
        for row in found:
            urim = f"{self.base}/web/{row.timestamp}/{row.original}"
            lines.append(f'<{urim}>; rel="memento"; datetime="{dates.to_http(row.timestamp)}"')
        return web.Response(text=",\n".join(lines), content_type="application/link-format")

    def _replay(self, path: str) -> web.Response:
        found = _REPLAY.fullmatch(path)
        if not found:
            return web.Response(status=404, text="not found")
        requested, url = found.groups()
        captures = self._captures_of(url)
        if not captures:
            return web.Response(status=404, text="<html>not archived</html>", content_type="text/html")
        datetime = dates.to_datetime(dates.pad(requested))
        capture = min(captures, key=lambda row: abs(dates.to_datetime(row.timestamp) - datetime))
        if capture.timestamp != requested:
            location = f"/web/{capture.timestamp}id_/{url}"
            return web.Response(status=302, headers={"Location": location, "X-Archive-Redirect-Reason": "closest"})
        return self._capture_response(capture)

    def _capture_response(self, capture: StoredCapture) -> web.Response:
        headers = [
            ("Memento-Datetime", dates.to_http(capture.timestamp)),
            ("Link", f'<{capture.original}>; rel="original", <{self.base}/web/{capture.original}>; rel="timegate"'),
            ("Content-Type", capture.mimetype),
            ("Server", "fake"),
            ("X-Archive-Orig-Content-Type", f"{capture.mimetype}; charset=x-odd"),
            *((f"X-Archive-Orig-{name}", value) for name, value in capture.headers),
        ]
        if capture.coding:
            headers.append(("X-Archive-Orig-Content-Encoding", capture.coding))
        status = capture.statuscode or 200
        if capture.location is not None:
            target = urljoin(capture.original, capture.location)
            headers.append(("Location", f"{self.base}/web/{capture.timestamp}id_/{target}"))
            status = 302  # for any captured status
        response = web.Response(status=status, body=capture.body)
        response.headers.clear()
        response.headers.extend(headers)
        return response

    def _captures_of(self, url: str) -> list[StoredCapture]:
        key = uri.surt(url)
        # A revisit has the body of another capture.
        return sorted((row for row in self.captures if row.urlkey == key), key=lambda row: row.timestamp)


def matches_query(row: StoredCapture, query: dict[str, str]) -> bool:
    """Return whether a row matches an index query."""
    url = query["url"]
    match = query.get("matchType", "exact")
    key = uri.surt(url)
    if not (query.get("from", "0") <= row.timestamp <= query.get("to", "9")):
        return False
    if match == "exact":
        return row.urlkey == key
    host = key.partition(")")[0]
    if ")" not in row.urlkey:
        return True  # `mailto:` and `data:` rows are in every listing
    if match == "host":
        return row.urlkey.startswith(f"{host})")
    if match == "domain":
        return row.urlkey.startswith((f"{host})", f"{host},"))
    return row.urlkey.startswith(key)


@asynccontextmanager
async def fake_wayback(stored: Iterable[StoredCapture], clock: Clock | None = None) -> AsyncIterator[FakeWayback]:
    """Run the archive on loopback."""
    server = FakeWayback(list(stored), clock or SystemClock())
    async with serve_handler(server.handle) as server.base:
        yield server


def make_captures(count: int, host: str = "example.com") -> list[StoredCapture]:
    """Return captures of some pages of a host."""
    return [StoredCapture(f"http://{host}/{number:06d}", "20140210000001") for number in range(count)]
