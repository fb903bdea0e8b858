"""What happens in the service, as it happens, for whoever watches: server-sent events.

A client that reads slowly loses events and receives their number; other clients are not affected. Events have no URLs,
and responses have no CORS headers.
"""

import asyncio
import contextlib
import json
from collections import Counter, deque

from unlost.service.answers import PRIVATE_HEADERS, Receive, Send, send_response, wait_for_disconnect, text_response

_QUEUE = 256  # events that wait for one reader: some seconds of a busy service
_MAX_READERS = 100
_MAX_READERS_PER_CLIENT = 25  # from one network address: nobody has all places
_HEARTBEAT_SECONDS = 15.0  # less than the half minute after which proxies close what is silent
_EVENT_STREAM_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would keep events until it has a few kilobytes of them
)


class _EventReader:
    """Somebody who watches. waiting: what it has not been sent. lost: how many events it was too slow for."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.lost = 0
        self.has_news = asyncio.Event()

    def add(self, event: bytes) -> bool:
        """Keep an event for it; return False if there is no room."""
        self.has_news.set()
        if len(self.waiting) >= _QUEUE:
            self.lost += 1
            return False
        self.waiting.append(event)
        return True

    def drain(self) -> bytes:
        """Return all that waits, with what was lost behind it, since that came later."""
        self.has_news.clear()
        data = b"".join(self.waiting)
        self.waiting.clear()
        if self.lost:
            data += _format_event("lost", {"count": self.lost})
            self.lost = 0
        return data


class EventStream:
    """Tells readers what happens. heartbeat: seconds of silence after which a line is sent that says nothing."""

    def __init__(self, heartbeat: float = _HEARTBEAT_SECONDS) -> None:
        self._heartbeat = heartbeat
        self._readers: set[_EventReader] = set()
        self._clients: Counter[str] = Counter()
        self._closed = False
        self.lost = 0

    @property
    def readers(self) -> int:
        """How many watch."""
        return len(self._readers)

    def publish(self, name: str, **fields: object) -> None:
        """Tell everybody who watches; it costs nothing if nobody does."""
        if self._readers:
            event = _format_event(name, fields)
            for reader in self._readers:
                self.lost += not reader.add(event)

    def close(self) -> None:
        """Let every reader go once it has what waits for it."""
        self._closed = True
        for reader in self._readers:
            reader.has_news.set()

    async def serve(self, method: str, receive: Receive, send: Send, client: str = "") -> int:
        """Answer a request with everything that happens from now on, until the reader or the service ends.

        client: whence it comes. Returns the status.
        """
        if method == "HEAD":
            await send(
                {"type": "http.response.start", "status": 200, "headers": [*PRIVATE_HEADERS, *_EVENT_STREAM_HEADERS]}
            )
            await send({"type": "http.response.body", "body": b""})
            return 200
        if self._closed or len(self._readers) >= _MAX_READERS:
            await send_response(
                text_response(503, f"{len(self._readers)} readers watch already: no more may", (b"retry-after", b"60")),
                method,
                send,
                PRIVATE_HEADERS,
            )
            return 503
        if self._clients[client] >= _MAX_READERS_PER_CLIENT:
            await send_response(
                text_response(
                    429, f"{_MAX_READERS_PER_CLIENT} readers watch from there: no more may", (b"retry-after", b"60")
                ),
                method,
                send,
                PRIVATE_HEADERS,
            )
            return 429
        reader = _EventReader()
        self._readers.add(reader)
        self._clients[client] += 1
        gone = asyncio.ensure_future(wait_for_disconnect(receive))
        try:
            await send(
                {"type": "http.response.start", "status": 200, "headers": [*PRIVATE_HEADERS, *_EVENT_STREAM_HEADERS]}
            )
            await self._send_events(reader, gone, send)
        finally:
            self._readers.discard(reader)
            self._clients[client] -= 1
            self._clients += Counter()  # whoever has no reader is forgotten
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await gone
        return 200

    async def _send_events(self, reader: _EventReader, gone: "asyncio.Future[None]", send: Send) -> None:
        data = b": unlost\n\n"
        while not gone.done():
            # Whoever takes nothing at all is let go by the connection, and is gone then.
            await send({"type": "http.response.body", "body": data, "more_body": True})
            if self._closed and not reader.waiting:
                await send({"type": "http.response.body", "body": b""})
                return
            news = asyncio.ensure_future(reader.has_news.wait())
            await asyncio.wait((news, gone), timeout=self._heartbeat, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
            data = reader.drain() or b":\n\n"


def _format_event(name: str, fields: dict[str, object]) -> bytes:
    # JSON escapes the ends of lines: no text of anybody can begin an event of its own.
    return f"event: {name}\ndata: {json.dumps(fields)}\n\n".encode()
