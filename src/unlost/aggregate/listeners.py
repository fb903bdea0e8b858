"""Listeners to upstream responses: hit rates, and the log of upstream responses."""

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


class UpstreamListener(Protocol):
    """Is told at once and in the event loop, which waits: what takes long must be put aside. May raise nothing."""

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Take what came of one archive. One that was left alone, since it is dormant, is not told here."""
        ...

    def on_result(self, result: AggregateResult) -> None:
        """Take an answer for which archives were asked; those that were kept are not told."""
        ...


class ListenerGroup:
    """Tells everybody; who raises is logged, spoils nothing and is told again.

    >>> logging.disable()
    >>> ListenerGroup([None]).on_upstream_result(None)  # which has no such method
    >>> logging.disable(logging.NOTSET)
    """

    def __init__(self, listeners: Sequence[UpstreamListener]) -> None:
        self._listeners = tuple(listeners)
        self._faults = 0

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Tell what came of one archive."""
        for listener in self._listeners:
            self._notify(lambda listener=listener: listener.on_upstream_result(result))  # type: ignore[misc]  # of a known type

    def on_result(self, result: AggregateResult) -> None:
        """Tell an answer."""
        for listener in self._listeners:
            self._notify(lambda listener=listener: listener.on_result(result))  # type: ignore[misc]

    def _notify(self, what: Callable[[], None]) -> None:
        try:
            what()
        except Exception:  # noqa: BLE001  a listener of any kind may fail in any way
            self._faults += 1
            # The 1st, 2nd, 4th, 8th …: one that always fails would fill the log.
            if self._faults & (self._faults - 1) == 0:
                _log.exception("a listener failed (for the %d. time): the answer is not affected", self._faults)


DEFAULT_CAPACITY = 10_000
"""How many answers wait to be written, at most: some seconds' worth for a busy aggregator, of a few MB."""
_GATHER_SECONDS = 0.25  # seconds in which answers gather, to be written together
_LINE_END = ord("\n")


class UpstreamLog:
    """A log that is open, to append answers to. Use it as an async context manager: at its end, everything is written.

    Lines are written beside the event loop, all that wait in one go, to the end of the file, so that several processes
    may write to one. A file that was renamed or removed, as programs do that rotate logs, is made anew. What cannot be
    written, since a disk is full or too slow, is lost, counted and told; no answer waits for it.

    path: the file; its folder is made if need be. clock: waits while lines gather.
    capacity: how many answers wait at most. tell: gets a line for people when lines begin to be lost, and when no more
        are.
    written, lost: how many lines were, so far.
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
        self._lost_before: int | None = None  # how many were lost when that began

    async def __aenter__(self) -> Self:
        """Begin to write."""
        self._writer = asyncio.create_task(self._write_all())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write what waits, and close the file."""
        self._is_closing = True
        self._wake_event.set()
        if self._writer is not None:
            await self._writer
        await asyncio.to_thread(self._file.close)

    def append(self, answer: UpstreamLogEntry) -> None:
        """Have an answer written soon. It is lost, and counted, if too many wait already."""
        if self._is_closing or len(self._queue) >= self._capacity:
            self._count_lost(1, "it is written too slowly")
            return
        self._queue.append(answer)
        if not self._wake_event.is_set():
            self._wake_event.set()

    async def _write_all(self) -> None:
        while not self._is_closing or self._queue:
            await self._wake_event.wait()
            if not self._is_closing:
                await self._clock.sleep(_GATHER_SECONDS)
            self._wake_event.clear()
            answers = list(self._queue)
            written, problem = await asyncio.to_thread(self._write, answers)
            # Only now: what is being written is in memory, too, and counts.
            for _ in answers:
                self._queue.popleft()
            self.written += written
            if problem is not None:
                self._count_lost(len(answers) - written, problem)
            elif answers and self._lost_before is not None and len(self._queue) < self._capacity:
                self._warn(f"{self.path}: written again, after {self.lost - self._lost_before} answers were lost")
                self._lost_before = None
            if self._is_closing:
                self._wake_event.set()

    def _write(self, answers: list[UpstreamLogEntry]) -> tuple[int, str | None]:
        """Return how many were written, and why not the others."""
        lines, problem = [], None
        for answer in answers:
            try:
                lines.append(format_log_entry(answer))
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
    """The file, for one thread at a time. appended: how many lines the last append wrote, also if it failed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._is_cut = False
        self.appended = 0

    def append(self, lines: list[bytes]) -> int:
        """Write lines, and return how many. Raises OSError."""
        self.appended = 0
        descriptor = self._opened()
        # What was cut by a full disk, or a kill, is half a line: the next one must not be taken for its end.
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

    def _opened(self) -> int:
        """Return the file, or the one that has its name now."""
        if self._descriptor is not None:
            with suppress(FileNotFoundError):
                if os.path.samestat(self._path.stat(), os.fstat(self._descriptor)):
                    return self._descriptor
            self.close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # A pipe that nobody reads fails at once instead of waiting for somebody who does. To read is for the last byte.
        flags = os.O_RDWR if self._path.is_file() else os.O_WRONLY
        flags |= os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        self._descriptor = os.open(self._path, flags, 0o644)
        self._is_cut = _ends_mid_line(self._descriptor)
        return self._descriptor

    def close(self) -> None:
        """Close it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _ends_mid_line(descriptor: int) -> bool:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or not found.st_size:
        return False
    return os.pread(descriptor, 1, found.st_size - 1) != b"\n"


_LOGGED_OUTCOMES: dict[str, upstream.UpstreamOutcome] = {
    "excluded": "miss",
    "not-now": "limited",
    "incomplete": "too-large",
}


class HitRateListener:
    """A listener that teaches a router."""

    def __init__(self, router: ArchiveRouter) -> None:
        self._router = router

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Learn from one answer, as from the log."""
        self._router.learn(result.target, _logged_outcome(result.report))

    def on_result(self, result: AggregateResult) -> None:
        """Learn nothing more."""


class UpstreamLogListener:
    """A listener that writes every answer to a log."""

    def __init__(self, log: UpstreamLog) -> None:
        self._log = log

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Append one answer."""
        self._log.append(log_record(result))

    def on_result(self, result: AggregateResult) -> None:
        """Write nothing more."""


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
    """Return the outcome in the words of the log.

    An archive that lists some copies has the page, whatever became of the rest. An exclusion is a miss, since it is
    none of the archive's holdings that anybody could get. A list that was cut before its first copy says neither.
    """
    if report.mementos:
        return "hit"
    return _LOGGED_OUTCOMES.get(report.outcome) or cast("upstream.UpstreamOutcome", report.outcome)


def _format_time(seconds: float) -> str:
    whole = to_iso(from_epoch(str(int(seconds))))
    return f"{whole[:-1]}.{int(seconds % 1 * 1_000):03d}Z"


def _key_or_none(uri: str) -> str | None:
    try:
        return key(uri)
    except UriError:
        return None
