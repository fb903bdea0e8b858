"""Metrics in the Prometheus text format, and a stream of server-sent events.

A slow client misses events and is sent their number; other clients are not affected. Events contain no URLs, and
responses have no CORS headers, since look-ups of users are private.
"""

import asyncio
import contextlib
import json
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from unlost.aggregate.archive_status import ArchiveStatus
from unlost.aggregate.models import AggregateResult
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
METRICS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Media type of the Prometheus text exposition format."""
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
_BREAKER_VALUES = {"active": 0, "trial": 1, "dormant": 2}
MetricLabels = tuple[tuple[str, str], ...]


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


@dataclass(slots=True)
class _Histogram:
    """A histogram of durations. `counts` has one entry per bound, and one for values above all bounds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(_BOUNDS, seconds)] += 1
        self.total += seconds

    def lines(self, name: str, labels: MetricLabels) -> Iterator[str]:
        cumulative = 0
        for bound, count in zip((*map(str, _BOUNDS), "+Inf"), self.counts, strict=True):
            cumulative += count
            yield _line(f"{name}_bucket", (*labels, ("le", bound)), cumulative)
        yield _line(f"{name}_sum", labels, round(self.total, 6))
        yield _line(f"{name}_count", labels, cumulative)


class Metrics:
    """Counters since the start of the service.

    Every label has few values: endpoint, status, archive, outcome, reason.
    """

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: dict[str, _Histogram] = {}
        self._upstream: Counter[tuple[str, str, str]] = Counter()
        self._upstream_seconds: dict[str, _Histogram] = {}
        self._lookups: Counter[bool] = Counter()

    def count_request(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a response."""
        self._requests[endpoint, status] += 1
        histogram = self._seconds.get(endpoint)
        if histogram is None:
            histogram = self._seconds[endpoint] = _Histogram()
        histogram.add(seconds)

    def count_lookup(self, from_cache: bool) -> None:
        """Count a look-up, and whether it was served from the cache."""
        self._lookups[from_cache] += 1

    def count_upstream(self, result: AggregateResult) -> None:
        """Count the outcome of each archive. Must be called once per upstream query."""
        for report in result.reports:
            self._upstream[report.archive, report.outcome, report.reason] += 1
            self._upstream_seconds.setdefault(report.archive, _Histogram()).add(report.duration_ms / 1_000)

    def render(self, statuses: Sequence[ArchiveStatus], gauges: Mapping[str, tuple[str, float]]) -> bytes:
        """Render all metrics in the Prometheus text format. `gauges` has further values with their help texts."""
        return ("\n".join(self._lines(statuses, gauges)) + "\n").encode()

    def _lines(self, statuses: Sequence[ArchiveStatus], gauges: Mapping[str, tuple[str, float]]) -> Iterator[str]:
        yield from _head("unlost_requests_total", "counter", "Answers, by endpoint and status.")
        for (endpoint, status), count in sorted(self._requests.items()):
            yield _line("unlost_requests_total", (("endpoint", endpoint), ("status", str(status))), count)
        yield from _head("unlost_request_seconds", "histogram", "How long answers took, by endpoint.")
        for endpoint, histogram in sorted(self._seconds.items()):
            yield from histogram.lines("unlost_request_seconds", (("endpoint", endpoint),))
        yield from _head("unlost_finds_total", "counter", "Pages that were looked for, by whether a kept answer did.")
        for from_cache in (True, False):
            yield _line("unlost_finds_total", (("from_cache", str(from_cache).lower()),), self._lookups[from_cache])
        yield from _head("unlost_upstream_total", "counter", "What came of asking archives, and why they were asked.")
        for (archive, outcome, reason), count in sorted(self._upstream.items()):
            labels = (("archive", archive), ("outcome", outcome), ("reason", reason))
            yield _line("unlost_upstream_total", labels, count)
        yield from _head("unlost_upstream_seconds", "histogram", "How long archives took.")
        for archive, histogram in sorted(self._upstream_seconds.items()):
            yield from histogram.lines("unlost_upstream_seconds", (("archive", archive),))
        yield from _archive_lines(statuses)
        for name, (help_text, value) in gauges.items():
            yield from _head(name, "counter" if name.endswith("_total") else "gauge", help_text)
            yield _line(name, (), value)


def _archive_lines(statuses: Sequence[ArchiveStatus]) -> Iterator[str]:
    metrics: tuple[tuple[str, str, str, Iterable[tuple[str, float | None]]], ...] = (
        (
            "unlost_breaker_state",
            "gauge",
            "Whether an archive is asked: 0 always, 1 to see whether it answers again, 2 not for a while.",
            ((each.archive.id, _BREAKER_VALUES[each.breaker]) for each in statuses),
        ),
        (
            "unlost_map_made_seconds",
            "gauge",
            "When the map or filter of an archive was made, in seconds since 1970.",
            ((each.archive.id, each.map_created) for each in statuses),
        ),
        (
            "unlost_routed_total",
            "counter",
            "How often the map of an archive said that it may hold a page.",
            ((each.archive.id, each.routed) for each in statuses),
        ),
        (
            "unlost_routed_hits_total",
            "counter",
            "How often it did.",
            ((each.archive.id, each.routed_hits) for each in statuses),
        ),
        (
            "unlost_explored_total",
            "counter",
            "How often an archive was asked although its map said no.",
            ((each.archive.id, each.explored) for each in statuses),
        ),
        (
            "unlost_explored_hits_total",
            "counter",
            "How often the map was wrong.",
            ((each.archive.id, each.explored_hits) for each in statuses),
        ),
    )
    for name, kind, help_text, values in metrics:
        yield from _head(name, kind, help_text)
        for archive, value in values:
            if value is not None:
                yield _line(name, (("archive", archive),), value)


def _head(name: str, kind: str, help_text: str) -> tuple[str, str]:
    return f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"


def _line(name: str, labels: MetricLabels, value: float) -> str:
    inner = ",".join(f'{label}="{_escape_label(text)}"' for label, text in labels)
    return f"{name}{{{inner}}} {value}" if inner else f"{name} {value}"


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


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
