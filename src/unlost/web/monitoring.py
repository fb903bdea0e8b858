"""A stream of server-sent events, and the listener that counts and publishes results of the aggregator.

A slow client misses events and is sent their number; other clients are not affected. Events contain no URLs, and
responses have no CORS headers, since look-ups of users are private.
"""

import asyncio
import contextlib
import json
from collections import Counter, deque

from unlost.aggregate.models import AggregateResult
from unlost.web.metrics import Metrics
from unlost.web.responses import PRIVATE_HEADERS, Receive, Send, send_response, text_response, wait_for_disconnect

_QUEUE = 256  # events queued for one reader: a few seconds of a busy service
_MAX_READERS = 100  # of the stream, in all
_MAX_READERS_PER_CLIENT = 25  # limit per client network, so that one client cannot use up all connections
_HEARTBEAT_SECONDS = 15.0  # many proxies close a connection after 30 s without data
_EVENT_STREAM_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would buffer events until it has several kilobytes
)


class _EventReader:
    """A client of the event stream, with its queued events and the number of lost ones."""

    def __init__(self) -> None:
        self.queue: deque[bytes] = deque()
        self.lost = 0
        self.wakeup = asyncio.Event()

    def add(self, event: bytes) -> bool:
        """Queue an event. Returns False if the queue is full."""
        self.wakeup.set()
        if len(self.queue) >= _QUEUE:
            self.lost += 1
            return False
        self.queue.append(event)
        return True

    def drain(self) -> bytes:
        """Return and remove all queued events, followed by the number of lost ones."""
        self.wakeup.clear()
        data = b"".join(self.queue)
        self.queue.clear()
        if self.lost:
            data += _format_event("lost", {"count": self.lost})
            self.lost = 0
        return data


class EventStream:
    """Publishes events to clients. A comment is sent after `heartbeat` seconds without events."""

    def __init__(self, heartbeat: float = _HEARTBEAT_SECONDS) -> None:
        self._heartbeat = heartbeat
        self._readers: set[_EventReader] = set()
        self._clients: Counter[str] = Counter()
        self._closed = False
        self.lost = 0

    @property
    def readers(self) -> int:
        """Number of connected readers."""
        return len(self._readers)

    def publish(self, name: str, **fields: object) -> None:
        """Publish an event to all readers. Costs nothing without readers."""
        if self._readers:
            event = _format_event(name, fields)
            for reader in self._readers:
                self.lost += not reader.add(event)

    def close(self) -> None:
        """Disconnect each reader after its queued events were sent."""
        self._closed = True
        for reader in self._readers:
            reader.wakeup.set()

    async def serve(self, method: str, receive: Receive, send: Send, client: str = "") -> int:
        """Serve the event stream until the client disconnects or the stream is closed.

        Args:
            method: GET or HEAD.
            receive: ASGI receive function.
            send: ASGI send function.
            client: Key of the client's network, for the limit per client.

        Returns:
            The status.
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
        disconnect = asyncio.ensure_future(wait_for_disconnect(receive))
        try:
            await send(
                {"type": "http.response.start", "status": 200, "headers": [*PRIVATE_HEADERS, *_EVENT_STREAM_HEADERS]}
            )
            await self._send_events(reader, disconnect, send)
        finally:
            self._readers.discard(reader)
            self._clients[client] -= 1
            self._clients += Counter()  # drops clients without readers
            disconnect.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await disconnect
        return 200

    async def _send_events(self, reader: _EventReader, disconnect: "asyncio.Future[None]", send: Send) -> None:
        data = b": unlost\n\n"
        while not disconnect.done():
            # A client that receives nothing is disconnected by `BoundedConnection`.
            await send({"type": "http.response.body", "body": data, "more_body": True})
            if self._closed and not reader.queue:
                await send({"type": "http.response.body", "body": b""})
                return
            wait = asyncio.ensure_future(reader.wakeup.wait())
            await asyncio.wait((wait, disconnect), timeout=self._heartbeat, return_when=asyncio.FIRST_COMPLETED)
            wait.cancel()
            data = reader.drain() or b":\n\n"


def _format_event(name: str, fields: dict[str, object]) -> bytes:
    # JSON escapes line breaks, so text in a field cannot start another event.
    return f"event: {name}\ndata: {json.dumps(fields)}\n\n".encode()


class MetricsListener:
    """Counts and publishes the results of the aggregator; an `UpstreamListener`."""

    def __init__(self, metrics: Metrics, events: EventStream) -> None:
        self._metrics = metrics
        self._events = events

    def on_upstream_result(self, result: object) -> None:
        """Do nothing: `on_result` gets the reports of all archives."""

    def on_result(self, result: AggregateResult) -> None:
        """Count the outcome of each archive, and publish it without the URL, since look-ups of users are private."""
        self._metrics.count_upstream(result)
        if not self._events.readers:
            return
        for report in result.reports:
            self._events.publish(
                "upstream",
                archive=report.archive,
                outcome=report.outcome,
                reason=report.reason,
                mementos=report.mementos,
                milliseconds=round(report.duration_ms, 3),
            )
