"""Listeners of the aggregator, which receive upstream responses and results: hit rates, and the upstream log."""

import asyncio
import logging
import os
import stat
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol, Self, cast

from unlost.aggregate.models import AggregateResult, ArchiveReport
from unlost.aggregate.router import ArchiveRouter
from unlost.aggregate.upstream import UpstreamResult
from unlost.clock import Clock
from unlost.dates import from_epoch, to_iso
from unlost.errors import InputError, UriError
from unlost.logs import upstream
from unlost.logs.upstream import UpstreamLogEntry, format_log_entry
from unlost.redaction import strip_userinfo
from unlost.uri import key

_log = logging.getLogger(__name__)

DEFAULT_CAPACITY = 10_000
"""Maximum number of entries waiting to be written: a few seconds of a busy aggregator, a few MB."""
_GATHER_SECONDS = 0.25  # for which entries are batched
_LINE_END = ord("\n")

# The log knows fewer outcomes than the aggregator; the others have the same name in both.
_LOGGED_OUTCOMES: dict[str, upstream.UpstreamOutcome] = {
    "excluded": "miss",
    "not-now": "limited",
    "incomplete": "too-large",
}


class UpstreamListener(Protocol):
    """Receives upstream responses and results, synchronously in the event loop. It must not block or raise."""

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Handle the result of one archive. Archives skipped because of an open circuit are not reported."""
        ...

    def on_result(self, result: AggregateResult) -> None:
        """Handle a result for which archives were queried; cached results are not reported."""
        ...


class ListenerGroup:
    """Calls all listeners. An exception of a listener is logged and has no other effect.

    >>> logging.disable()
    >>> ListenerGroup([None]).on_upstream_result(None)  # None has no such method
    >>> logging.disable(logging.NOTSET)
    """

    def __init__(self, listeners: Sequence[UpstreamListener]) -> None:
        self._listeners = tuple(listeners)
        self._faults = 0

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Report the result of one archive."""
        for listener in self._listeners:
            self._notify(lambda listener=listener: listener.on_upstream_result(result))  # type: ignore[misc]

    def on_result(self, result: AggregateResult) -> None:
        """Report a result."""
        for listener in self._listeners:
            self._notify(lambda listener=listener: listener.on_result(result))  # type: ignore[misc]

    def _notify(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception:  # noqa: BLE001  a listener of any kind may fail in any way
            self._faults += 1
            # Log the 1st, 2nd, 4th, 8th …, so that a listener that always fails does not fill the log.
            if self._faults & (self._faults - 1) == 0:
                _log.exception("a listener failed (for the %d. time): the answer is not affected", self._faults)


class UpstreamLog:
    """Log of upstream responses, opened for appending. Use it as an async context manager.

    Entries are written in batches, each with one write to a file opened with O_APPEND, so that the lines of several
    processes do not mix. Leaving the context writes all waiting entries. A file renamed or removed by log rotation is
    created again. Entries that cannot be written, because the disk is full or too slow, are lost, counted and reported;
    no response waits for the log.

    Args:
        path: The file; its directory is created if necessary.
        clock: Source of time.
        capacity: Maximum number of waiting entries.
        warn: Called with a message when entries begin to be lost, and when the log works again.

    Attributes:
        written: Number of entries written.
        lost: Number of entries lost.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        clock: Clock,
        *,
        capacity: int = DEFAULT_CAPACITY,
        warn: Callable[[str], None] = _log.warning,
    ) -> None:
        self.path = Path(path)
        self.written = 0
        self.lost = 0
        self._clock = clock
        self._capacity = capacity
        self._warn = warn
        self._queue: deque[UpstreamLogEntry] = deque()
        self._wake_event = asyncio.Event()
        self._is_closing = False
        self._writer: asyncio.Task[None] | None = None
        self._file = _LogFile(self.path)
        self._lost_before: int | None = None  # value of `lost` when the current failure began

    async def __aenter__(self) -> Self:
        """Start writing."""
        self._writer = asyncio.create_task(self._write_all())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write waiting entries and close the file."""
        self._is_closing = True
        self._wake_event.set()
        if self._writer is not None:
            await self._writer
        await asyncio.to_thread(self._file.close)

    def append(self, entry: UpstreamLogEntry) -> None:
        """Queue an entry. It is lost, and counted, if the queue is full."""
        if self._is_closing or len(self._queue) >= self._capacity:
            self._count_lost(1, "it is written too slowly")
            return
        self._queue.append(entry)
        if not self._wake_event.is_set():
            self._wake_event.set()

    async def _write_all(self) -> None:
        while not self._is_closing or self._queue:
            await self._wake_event.wait()
            if not self._is_closing:
                await self._clock.sleep(_GATHER_SECONDS)
            self._wake_event.clear()
            batch = list(self._queue)
            written, problem = await asyncio.to_thread(self._write, batch)
            # Removed only now, so that entries being written count towards the capacity.
            for _ in batch:
                self._queue.popleft()
            self.written += written
            if problem is not None:
                self._count_lost(len(batch) - written, problem)
            elif batch and self._lost_before is not None and len(self._queue) < self._capacity:
                self._warn(f"{self.path}: written again, after {self.lost - self._lost_before} answers were lost")
                self._lost_before = None
            if self._is_closing:
                self._wake_event.set()

    def _write(self, entries: list[UpstreamLogEntry]) -> tuple[int, str | None]:
        """Write entries; return how many were written, and why the others were not."""
        lines, problem = [], None
        for entry in entries:
            try:
                lines.append(format_log_entry(entry))
            except InputError as error:
                problem = f"an answer that cannot be: {error}"
        try:
            written = self._file.append(lines)
        except OSError as error:
            return self._file.appended, error.strerror or str(error)
        return written, problem

    def _count_lost(self, count: int, problem: str) -> None:
        if self._lost_before is None:
            self._lost_before = self.lost
            self._warn(f"{self.path}: answers are lost: {problem}")
        self.lost += count


class _LogFile:
    """The log file, for one thread at a time.

    `appended` is the number of lines written by the last call of `append`, even if it failed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._is_cut = False
        self.appended = 0

    def append(self, lines: list[bytes]) -> int:
        """Append lines and return their number. Raises OSError."""
        self.appended = 0
        descriptor = self._open()
        # A full disk or a kill may leave a partial line; end it, so that the next entry is not appended to it.
        head = b"\n" if self._is_cut and lines else b""
        data = head + b"".join(lines)
        sent = 0
        try:
            while sent < len(data):
                sent += os.write(descriptor, memoryview(data)[sent:])
        finally:
            if sent:
                self._is_cut = data[sent - 1] != _LINE_END
                self.appended = data.count(b"\n", len(head), max(sent, len(head)))
        return self.appended

    def _open(self) -> int:
        """Return the descriptor, reopening the file if it was renamed or removed."""
        if self._descriptor is not None:
            with suppress(FileNotFoundError):
                if os.path.samestat(self._path.stat(), os.fstat(self._descriptor)):
                    return self._descriptor
            self.close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # O_NONBLOCK: opening a pipe without a reader fails instead of blocking. O_RDWR: the last byte is read below.
        flags = os.O_RDWR if self._path.is_file() else os.O_WRONLY
        flags |= os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        self._descriptor = os.open(self._path, flags, 0o644)
        self._is_cut = _ends_mid_line(self._descriptor)
        return self._descriptor

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _ends_mid_line(descriptor: int) -> bool:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or not status.st_size:
        return False
    return os.pread(descriptor, 1, status.st_size - 1) != b"\n"


class HitRateListener:
    """Updates the hit rates of a router."""

    def __init__(self, router: ArchiveRouter) -> None:
        self._router = router

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Learn from one response, with the outcome that the log records."""
        self._router.learn(result.target, _logged_outcome(result.report))

    def on_result(self, result: AggregateResult) -> None:
        """Do nothing: `on_upstream_result` has seen the single responses."""


class UpstreamLogListener:
    """Logs every upstream response."""

    def __init__(self, log: UpstreamLog) -> None:
        self._log = log

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Append one response."""
        self._log.append(log_record(result))

    def on_result(self, result: AggregateResult) -> None:
        """Do nothing: `on_upstream_result` has seen the single responses."""


def log_record(result: UpstreamResult) -> upstream.UpstreamLogEntry:
    """Return the log record of a request to one archive, without the user name and password of the URL."""
    report = result.report
    first, last = result.mementos.first, result.mementos.last
    return upstream.UpstreamLogEntry(
        _format_time(result.time),
        report.archive,
        strip_userinfo(result.uri),
        result.endpoint,
        _logged_outcome(report),
        report.reason,
        _key_or_none(result.uri),
        mementos=report.mementos,
        first=first.datetime if first else None,
        last=last.datetime if last else None,
        duration_ms=report.duration_ms,
    )


def _logged_outcome(report: ArchiveReport) -> upstream.UpstreamOutcome:
    """Return the outcome as the log records it.

    An archive that lists some mementos has the page, even if the list broke off. An exclusion is a miss, because the
    mementos are not accessible. A list that broke off before its first memento is neither.
    """
    if report.mementos:
        return "hit"
    return _LOGGED_OUTCOMES.get(report.outcome) or cast("upstream.UpstreamOutcome", report.outcome)


def _format_time(seconds: float) -> str:
    iso_time = to_iso(from_epoch(str(int(seconds))))
    return f"{iso_time[:-1]}.{int(seconds % 1 * 1_000):03d}Z"


def _key_or_none(uri: str) -> str | None:
    try:
        return key(uri)
    except UriError:
        return None
