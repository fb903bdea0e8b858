"""A made-up Wayback Machine with the real one's address: index, TimeMaps, TimeGate, copies, limits and bad transfers.

It answers what the peers ask the real one: wildcards, `fl`, `filter`, `page`, text and JSON. How it answers is what the
documentation of the real one and the code of its clients say. Limits are those that are known of it, of a minute, but
counted in spans of ten seconds.
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

from bench.peers.site import Trouble
from unlost import dates
from unlost.registry import RequestKind

NAME = "web.archive.org"
BASE = f"https://{NAME}"
SPAN = 10.0
"""Seconds in which questions are counted; as long as who asks too much is asked to wait."""
PER_SPAN = {RequestKind.INDEX: 5, RequestKind.REPLAY: 100}
"""What is answered in a span: 30 and 600 a minute, as the Wayback Machine is known to (docs/archives.md)."""
BUSY_SECONDS = 2
PAGE_ROWS = 3_000
"""Rows of a page of the index where pages are asked for by number: about as many as a block of the real one."""


@dataclass
class Machine(FakeWayback):
    """The archive, while one tool asks it.

    troubles: which transfers go wrong, by date and address. seconds: how long each answer takes.
    too_soon: requests that came before the time that a refusal had named was over. unavailable: how often it was (503).
    """

    troubles: dict[tuple[str, str], Trouble] = field(default_factory=dict)
    seconds: float = 0.02
    is_limited: bool = True
    too_soon: int = 0
    unavailable: int = 0
    _happened: dict[tuple[str, str], int] = field(default_factory=dict)
    _until: dict[RequestKind, float] = field(default_factory=dict)
    _spans: dict[RequestKind, deque[float]] = field(default_factory=dict)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        path = request.raw_path.removeprefix(BASE)  # some ask with the whole address, as one asks proxies
        work = RequestKind.INDEX if path.startswith(("/cdx/", "/web/timemap/")) else RequestKind.REPLAY
        self.requests.append((self.clock.now(), work, path))
        await asyncio.sleep(self.seconds)
        if self.is_limited and self._is_refused(work, self.clock.now()):
            self.refused += 1
            return web.Response(status=429, text="Too Many Requests", headers={"Retry-After": f"{SPAN:.0f}"})
        if path.startswith("/cdx/"):
            return self._rows(parse_qsl(request.query_string))
        if path.startswith("/web/timemap/link/"):
            return self._timemap(path.removeprefix("/web/timemap/link/"))
        if path.startswith("/web/http"):
            return self._timegate(path.removeprefix("/web/"), request.headers.get("Accept-Datetime"))
        return await self._sent(request, self._replay(path))

    def _is_refused(self, work: RequestKind, now: float) -> bool:
        if now < self._until.get(work, 0.0):
            self.too_soon += 1
            return True
        answered = self._spans.setdefault(work, deque())
        while answered and answered[0] <= now - SPAN:
            answered.popleft()
        if len(answered) >= PER_SPAN[work]:
            self._until[work] = now + SPAN
            return True
        answered.append(now)
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
                rows = [row for row in rows if _passes(row, value)]
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

    def _timegate(self, address: str, wanted: str | None) -> web.Response:
        copies = self._captures_of(address)
        if not copies:
            return web.Response(status=404, text="not archived")
        moment = dates.to_datetime(dates.from_http(wanted)) if wanted else dates.to_datetime(copies[-1].timestamp)
        copy = min(copies, key=lambda row: abs(dates.to_datetime(row.timestamp) - moment))
        headers = {"Vary": "accept-datetime", "Location": self._urim(copy), "Link": self._links(address, copies)}
        return web.Response(status=302, headers=headers)

    def _urim(self, copy: StoredCapture, flag: str = "") -> str:
        return f"{self.base}/web/{copy.timestamp}{flag}/{copy.original}"

    def _links(self, address: str, copies: list[StoredCapture]) -> str:
        ends = {copies[0].timestamp: "first memento", copies[-1].timestamp: "last memento"}
        return ", ".join(
            [
                f'<{address}>; rel="original"',
                f'<{self.base}/web/timemap/link/{address}>; rel="timemap"; type="application/link-format"',
                f'<{self.base}/web/{address}>; rel="timegate"',
                *(f'<{self._urim(copy)}>; rel="{ends[copy.timestamp]}"; datetime="{dates.to_http(copy.timestamp)}"'
                  for copy in (copies[0], copies[-1])),
            ]
        )  # fmt: skip

    def _captures_of(self, address: str) -> list[StoredCapture]:
        # Some clients escape all of an address, also its `?` and `&`.
        return super()._captures_of(address) or super()._captures_of(unquote(address))

    def _capture_response(self, copy: StoredCapture) -> web.Response:
        response = super()._capture_response(copy)
        is_revisit = copy.statuscode is None
        mime = next(
            (row.mimetype for row in self.captures if row.digest == copy.digest and row.statuscode), copy.mimetype
        )
        response.headers["Content-Type"] = mime if is_revisit else copy.mimetype
        stored = dict(copy.headers)
        response.headers["X-Archive-Orig-Content-Type"] = stored.get("Content-Type", response.headers["Content-Type"])
        response.headers["Link"] = self._links(copy.original, self._captures_of(copy.original))
        response.headers["X-Capture"] = f"{copy.timestamp} {copy.original}"
        return response

    async def _sent(self, request: web.BaseRequest, response: web.Response) -> web.StreamResponse:
        """Send a copy, or what goes wrong with it."""
        moment, _, address = response.headers.pop("X-Capture", " ").partition(" ")
        trouble = self.troubles.get((moment, address))
        happened = self._happened.get((moment, address), 0)
        if trouble is None or (trouble.times is not None and happened >= trouble.times):
            return response
        self._happened[moment, address] = happened + 1
        if trouble.what == "503":
            self.unavailable += 1
            return web.Response(status=503, text="Service Unavailable", headers={"Retry-After": str(BUSY_SECONDS)})
        body = bytes(response.body) if isinstance(response.body, bytes) else b""
        cut = web.StreamResponse(status=response.status, headers=response.headers)
        cut.content_length = len(body)
        await cut.prepare(request)
        await cut.write(body[: len(body) // 2])
        if request.transport is not None:
            request.transport.close()  # what was written is sent, then nothing more
        return cut


def _passes(row: StoredCapture, condition: str) -> bool:
    """Return whether a row passes a filter: a field and an expression for all of it, after a `!` the opposite."""
    name, _, expression = condition.removeprefix("!").partition(":")
    value = dict(zip(FIELDS, row.row(), strict=True)).get(name, "")
    return bool(re.fullmatch(expression, value)) != condition.startswith("!")


@contextmanager
def serving(machine: Machine, certificate: tuple[Path, Path], port: int = 443) -> Iterator[int]:
    """Let a machine answer on the loopback interface, in a thread of its own; yield the port."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate)
    loop = asyncio.new_event_loop()

    async def begin() -> tuple[web.ServerRunner, int]:
        runner = web.ServerRunner(web.Server(machine.answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
        return runner, int(runner.addresses[0][1])

    runner, taken = loop.run_until_complete(begin())
    machine.base = BASE
    thread = Thread(target=loop.run_forever, name="wayback", daemon=True)
    thread.start()
    try:
        yield taken
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
