"""A fake Wayback Machine with the host name of the real one: index, TimeMaps, TimeGate, replay, rate limits and faults.

It supports the queries of the peers: wildcards, `fl`, `filter`, `page`, text and JSON. Responses follow the
documentation of the real archive and the code of its clients. Rate limits are the known limits per minute, applied to
windows of ten seconds.
"""

import asyncio
import json
import re
import ssl
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qsl, unquote

from aiohttp import web
from tests.external.wayback_cdx import FIELDS, FakeWayback, StoredCapture, matches_query

from bench.peers.lost_site import TransferFault
from unlost import dates
from unlost.registry import RequestKind

NAME = "web.archive.org"
BASE = f"https://{NAME}"
WINDOW_SECONDS = 10.0
"""Window of the rate limit, which is also the Retry-After of a refusal."""
REQUESTS_PER_WINDOW = {RequestKind.INDEX: 5, RequestKind.REPLAY: 100}
"""Admitted requests of a window: 30 and 600 a minute, as known of the Wayback Machine (docs/archives.md)."""
RETRY_AFTER_SECONDS = 2
PAGE_ROWS = 3_000
"""Rows of a numbered page of the index: about as many as a block of the real one."""


@dataclass
class RateLimitedWayback(FakeWayback):
    """The archive during the run of one tool.

    Attributes:
        faults: Faults of transfers by date and URL.
        response_seconds: Duration of each response.
        is_limited: Whether rate limits apply.
        too_soon: Requests before the Retry-After of a refusal had passed.
        unavailable: Number of responses with status 503.
    """

    faults: dict[tuple[str, str], TransferFault] = field(default_factory=dict)
    response_seconds: float = 0.02
    is_limited: bool = True
    too_soon: int = 0
    unavailable: int = 0
    _fault_counts: dict[tuple[str, str], int] = field(default_factory=dict)
    _blocked_until: dict[RequestKind, float] = field(default_factory=dict)
    _windows: dict[RequestKind, deque[float]] = field(default_factory=dict)

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """Respond to a request."""
        path = request.raw_path.removeprefix(BASE)  # some clients send the absolute form, as to a proxy
        kind = RequestKind.INDEX if path.startswith(("/cdx/", "/web/timemap/")) else RequestKind.REPLAY
        self.requests.append((self.clock.now(), kind, path))
        await asyncio.sleep(self.response_seconds)
        if self.is_limited and self._is_refused(kind, self.clock.now()):
            self.refused += 1
            return web.Response(status=429, text="Too Many Requests", headers={"Retry-After": f"{WINDOW_SECONDS:.0f}"})
        if path.startswith("/cdx/"):
            return self._rows(parse_qsl(request.query_string))
        if path.startswith("/web/timemap/link/"):
            return self._timemap(path.removeprefix("/web/timemap/link/"))
        if path.startswith("/web/http"):
            return self._timegate(path.removeprefix("/web/"), request.headers.get("Accept-Datetime"))
        return await self._send_with_faults(request, self._replay(path))

    def _is_refused(self, kind: RequestKind, now: float) -> bool:
        if now < self._blocked_until.get(kind, 0.0):
            self.too_soon += 1
            return True
        admitted = self._windows.setdefault(kind, deque())
        while admitted and admitted[0] <= now - WINDOW_SECONDS:
            admitted.popleft()
        if len(admitted) >= REQUESTS_PER_WINDOW[kind]:
            self._blocked_until[kind] = now + WINDOW_SECONDS
            return True
        admitted.append(now)
        return False

    def _rows(self, pairs: list[tuple[str, str]]) -> web.Response:
        query = dict(pairs)
        if query["url"].endswith("*"):
            query |= {"url": query["url"].removesuffix("*"), "matchType": "prefix"}
        rows = sorted(
            (row for row in self.captures if matches_query(row, query)), key=lambda row: (row.urlkey, row.timestamp)
        )
        for name, value in pairs:
            if name == "filter":
                rows = [row for row in rows if _matches_filter(row, value)]
        start, limit = int(query.get("resumeKey", 0)), int(query.get("limit", self.max_rows))
        if "page" in query:
            start = int(query["page"]) * PAGE_ROWS
            limit = min(limit, PAGE_ROWS)
            if start >= len(rows):
                return web.Response(text="")
        names = query.get("fl", ",".join(FIELDS)).split(",")
        listed = [
            [dict(zip(FIELDS, row.row(), strict=True))[name] for name in names] for row in rows[start : start + limit]
        ]
        more = start + limit if query.get("showResumeKey") == "true" and start + limit < len(rows) else None
        if query.get("output") != "json":
            lines = [" ".join(row) for row in listed] + (["", str(more)] if more else [])
            return web.Response(text="".join(f"{line}\n" for line in lines))
        table: list[list[str]] = [names, *listed] if listed else []
        table += [[], [str(more)]] if more else []
        return web.Response(text="[" + ",\n".join(map(json.dumps, table)) + "]\n", content_type="application/json")

    def _timegate(self, url: str, requested: str | None) -> web.Response:
        captures = self._captures_of(url)
        if not captures:
            return web.Response(status=404, text="not archived")
        datetime = (
            dates.to_datetime(dates.from_http(requested)) if requested else dates.to_datetime(captures[-1].timestamp)
        )
        capture = min(captures, key=lambda row: abs(dates.to_datetime(row.timestamp) - datetime))
        headers = {"Vary": "accept-datetime", "Location": self._urim(capture), "Link": self._links(url, captures)}
        return web.Response(status=302, headers=headers)

    def _urim(self, capture: StoredCapture, flag: str = "") -> str:
        return f"{self.base}/web/{capture.timestamp}{flag}/{capture.original}"

    def _links(self, url: str, captures: list[StoredCapture]) -> str:
        ends = {captures[0].timestamp: "first memento", captures[-1].timestamp: "last memento"}
        return ", ".join(
            [
                f'<{url}>; rel="original"',
                f'<{self.base}/web/timemap/link/{url}>; rel="timemap"; type="application/link-format"',
                f'<{self.base}/web/{url}>; rel="timegate"',
                *(f'<{self._urim(capture)}>; rel="{ends[capture.timestamp]}"; '
                  f'datetime="{dates.to_http(capture.timestamp)}"'
                  for capture in (captures[0], captures[-1])),
            ]
        )  # fmt: skip

    def _captures_of(self, url: str) -> list[StoredCapture]:
        # Some clients escape the whole URL, including `?` and `&`.
        return super()._captures_of(url) or super()._captures_of(unquote(url))

    def _capture_response(self, capture: StoredCapture) -> web.Response:
        response = super()._capture_response(capture)
        is_revisit = capture.statuscode is None
        mime = next(
            (row.mimetype for row in self.captures if row.digest == capture.digest and row.statuscode), capture.mimetype
        )
        response.headers["Content-Type"] = mime if is_revisit else capture.mimetype
        stored = dict(capture.headers)
        response.headers["X-Archive-Orig-Content-Type"] = stored.get("Content-Type", response.headers["Content-Type"])
        response.headers["Link"] = self._links(capture.original, self._captures_of(capture.original))
        response.headers["X-Capture"] = f"{capture.timestamp} {capture.original}"
        return response

    async def _send_with_faults(self, request: web.BaseRequest, response: web.Response) -> web.StreamResponse:
        """Send a capture, or its fault."""
        datetime, _, url = response.headers.pop("X-Capture", " ").partition(" ")
        fault = self.faults.get((datetime, url))
        count = self._fault_counts.get((datetime, url), 0)
        if fault is None or (fault.times is not None and count >= fault.times):
            return response
        self._fault_counts[datetime, url] = count + 1
        if fault.kind == "503":
            self.unavailable += 1
            return web.Response(
                status=503, text="Service Unavailable", headers={"Retry-After": str(RETRY_AFTER_SECONDS)}
            )
        body = bytes(response.body) if isinstance(response.body, bytes) else b""
        cut = web.StreamResponse(status=response.status, headers=response.headers)
        cut.content_length = len(body)
        await cut.prepare(request)
        await cut.write(body[: len(body) // 2])
        if request.transport is not None:
            request.transport.close()  # the written part is sent before the connection closes
        return cut


def _matches_filter(row: StoredCapture, condition: str) -> bool:
    """Return whether a row matches a filter: `field:expression` for the whole value, negated by a leading `!`."""
    name, _, expression = condition.removeprefix("!").partition(":")
    value = dict(zip(FIELDS, row.row(), strict=True)).get(name, "")
    return bool(re.fullmatch(expression, value)) != condition.startswith("!")


@contextmanager
def serve_archive(archive: RateLimitedWayback, certificate: tuple[Path, Path], port: int = 443) -> Iterator[int]:
    """Serve an archive on loopback in its own thread; yield the port."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate)
    loop = asyncio.new_event_loop()

    async def start() -> tuple[web.ServerRunner, int]:
        runner = web.ServerRunner(web.Server(archive.respond))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        return runner, int(runner.addresses[0][1])

    runner, bound_port = loop.run_until_complete(start())
    archive.base = BASE
    thread = Thread(target=loop.run_forever, name="wayback", daemon=True)
    thread.start()
    try:
        yield bound_port
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
