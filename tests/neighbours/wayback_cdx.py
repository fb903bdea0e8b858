"""A fake Wayback Machine: its CDX server, replay, rate limits and errors."""

import json
import re
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urljoin

from aiohttp import web

from tests.neighbours.listening import listening
from unlost import dates, uri
from unlost.clock import Clock, SystemClock
from unlost.registry import Archive, ArchiveKind, PrefixListing, RateLimit, RequestKind, SourcedNumber

FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
_REPLAY = re.compile(r"/web/(\d{1,14})(?:[a-z]{2}_)?/(.+)", re.DOTALL)
_BLOCKED = "org.archive.wayback.exception.{}: Blocked Site Error"


@dataclass(frozen=True)
class Stored:
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
        stored: Its captures.
        excluded: Excluded hosts, each with the name of the exception in the response.
        cap: Maximum number of rows of a query over all its pages.
        instead: Verbatim response to all index queries, if set.
        minute: Requests of each kind that are admitted in any 60 seconds; others get 429 without Retry-After.
        asked: Time, kind and path of every request, also of refused ones.
        refused: Number of requests refused by the rate limit.
    """

    stored: list[Stored]
    clock: Clock = field(default_factory=SystemClock)
    excluded: dict[str, str] = field(default_factory=dict)
    cap: int = 150_000
    instead: bytes | None = None
    minute: dict[RequestKind, int] = field(default_factory=dict)
    base: str = ""
    asked: list[tuple[float, RequestKind, str]] = field(default_factory=list)
    refused: int = 0
    _answered: dict[RequestKind, deque[float]] = field(default_factory=dict)

    def archive(self, rows_per_page: int = 1_000, cap: int | None = None) -> Archive:
        """Return its registry entry."""
        source = "what the test says"
        matches = ("exact", "prefix", "host", "domain")
        return Archive(
            "fake.wayback", "Fake Wayback", ArchiveKind.WAYBACK,
            timemap=f"{self.base}/web/timemap/link/",
            timegate=f"{self.base}/web/",
            cdx=f"{self.base}/cdx/search/cdx",
            replay=f"{self.base}/web/{{datetime}}id_/{{uri}}",
            lister=PrefixListing(matches, SourcedNumber(rows_per_page, source), SourcedNumber(cap,
            source) if cap else None),
            limits=tuple(RateLimit(number, 60, (work,), source) for work, number in self.minute.items()),
        )  # fmt: skip

    def paths(self, work: RequestKind) -> list[str]:
        """Return the paths of the requests of a kind."""
        return [path for _, each, path in self.asked if each == work]

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Respond to a request."""
        path = request.raw_path
        is_index = path.startswith(("/cdx/", "/web/timemap/"))
        work = RequestKind.INDEX if is_index else RequestKind.REPLAY
        now = self.clock.now()
        self.asked.append((now, work, path))
        if self._is_too_much(work, now):
            self.refused += 1
            return web.Response(status=429, text="Too Many Requests")
        address = request.query.get("url", path)
        for host, exception in self.excluded.items():
            if host in address:
                return web.Response(status=403, text=_BLOCKED.format(exception))
        if path.startswith("/cdx/"):
            return self._index(dict(request.query))
        if path.startswith("/web/timemap/link/"):
            return self._timemap(path.removeprefix("/web/timemap/link/"))
        return self._replay(path)

    def _is_too_much(self, work: RequestKind, now: float) -> bool:
        if work not in self.minute:
            return False
        answered = self._answered.setdefault(work, deque())
        while answered and answered[0] <= now - 60:
            answered.popleft()
        if len(answered) >= self.minute[work]:
            return True
        answered.append(now)
        return False

    def _index(self, query: dict[str, str]) -> web.Response:
        if self.instead is not None:
            return web.Response(body=self.instead, content_type="application/json")
        rows = sorted(
            (row for row in self.stored if is_asked_for(row, query)), key=lambda row: (row.urlkey, row.timestamp)
        )
        start = int(query.get("resumeKey", "r0").removeprefix("r"))
        limit = int(query.get("limit", self.cap))
        if limit < 0:
            rows, start, limit = rows[limit:], 0, -limit
        end = min(start + limit, self.cap)
        page = [row.row() for row in rows[start:end]]
        if not page:
            return web.Response(text="[]\n", content_type="application/json")
        lines: list[list[str]] = [list(FIELDS), *page]
        if query.get("showResumeKey") == "true" and end < min(len(rows), self.cap):
            lines += [[], [f"r{end}"]]
        text = "[" + ",\n".join(json.dumps(line) for line in lines) + "]\n"
        return web.Response(text=text, content_type="application/json")

    def _timemap(self, address: str) -> web.Response:
        found = self._copies(address)
        if not found:
            return web.Response(status=404)
        lines = [f'<{address}>; rel="original"']
        for row in found:
            urim = f"{self.base}/web/{row.timestamp}/{row.original}"
            lines.append(f'<{urim}>; rel="memento"; datetime="{dates.to_http(row.timestamp)}"')
        return web.Response(text=",\n".join(lines), content_type="application/link-format")

    def _replay(self, path: str) -> web.Response:
        found = _REPLAY.fullmatch(path)
        if not found:
            return web.Response(status=404, text="no such place")
        wanted, address = found.groups()
        copies = self._copies(address)
        if not copies:
            return web.Response(status=404, text="<html>not archived</html>", content_type="text/html")
        moment = dates.to_datetime(dates.pad(wanted))
        copy = min(copies, key=lambda row: abs(dates.to_datetime(row.timestamp) - moment))
        if copy.timestamp != wanted:
            place = f"/web/{copy.timestamp}id_/{address}"
            return web.Response(status=302, headers={"Location": place, "X-Archive-Redirect-Reason": "closest"})
        return self._copy(copy)

    def _copy(self, copy: Stored) -> web.Response:
        headers = [
            ("Memento-Datetime", dates.to_http(copy.timestamp)),
            ("Link", f'<{copy.original}>; rel="original", <{self.base}/web/{copy.original}>; rel="timegate"'),
            ("Content-Type", copy.mimetype),
            ("Server", "fake"),
            ("X-Archive-Orig-Content-Type", f"{copy.mimetype}; charset=x-odd"),
            *((f"X-Archive-Orig-{name}", value) for name, value in copy.headers),
        ]
        if copy.coding:
            headers.append(("X-Archive-Orig-Content-Encoding", copy.coding))
        status = copy.statuscode or 200
        if copy.location is not None:
            target = urljoin(copy.original, copy.location)
            headers.append(("Location", f"{self.base}/web/{copy.timestamp}id_/{target}"))
            status = 302  # for any captured status
        response = web.Response(status=status, body=copy.body)
        response.headers.clear()
        response.headers.extend(headers)
        return response

    def _copies(self, address: str) -> list[Stored]:
        key = uri.surt(address)
        # A revisit has the body of another capture.
        return sorted((row for row in self.stored if row.urlkey == key), key=lambda row: row.timestamp)


def is_asked_for(row: Stored, query: dict[str, str]) -> bool:
    """Return whether a row matches an index query."""
    asked = query["url"]
    kind = query.get("matchType", "exact")
    key = uri.surt(asked)
    if not (query.get("from", "0") <= row.timestamp <= query.get("to", "9")):
        return False
    if kind == "exact":
        return row.urlkey == key
    host = key.partition(")")[0]
    if ")" not in row.urlkey:
        return True  # `mailto:` and `data:` rows are in every listing
    if kind == "host":
        return row.urlkey.startswith(f"{host})")
    if kind == "domain":
        return row.urlkey.startswith((f"{host})", f"{host},"))
    return row.urlkey.startswith(key)


@asynccontextmanager
async def fake_wayback(stored: Iterable[Stored], clock: Clock | None = None) -> AsyncIterator[FakeWayback]:
    """Run the archive on loopback."""
    server = FakeWayback(list(stored), clock or SystemClock())
    async with listening(server.handle) as server.base:
        yield server


def pages(count: int, host: str = "example.com") -> list[Stored]:
    """Return captures of some pages of a host."""
    return [Stored(f"http://{host}/{number:06d}", "20140210000001") for number in range(count)]
