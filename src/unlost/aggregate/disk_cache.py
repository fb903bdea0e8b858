"""Keeps answers on disk, beside the event loop: read and written in batches, by threads of their own."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Self

from unlost.aggregate.cache import is_fresh, memory_size
from unlost.aggregate.disk_table import CacheDatabase, CacheRow
from unlost.aggregate.found import AggregateResult
from unlost.aggregate.packing import cache_key, serialize_result, deserialize_result
from unlost.aggregate.wish import RoutingOptions
from unlost.archives.archive import Archive
from unlost.clock import Clock
from unlost.errors import InputError

DEFAULT_DISK_BYTES = 1 << 28
"""How much is kept on disk, unless somebody says otherwise."""

_QUEUE_BYTES = 1 << 24  # of answers that wait to be written; what is more is not kept
_GATHER_SECONDS = 0.2  # that answers are gathered before they are written together
_READ_TIMEOUT = 1.0  # for which somebody waits for a disk; a network's may hang
_MAX_PENDING_READS = 10_000  # that wait for the disk; whoever comes then asks archives
_BACKOFF_SECONDS = 60.0  # that a disk which cannot be used is left alone
_log = logging.getLogger(__name__)


def cache_scope(archives: Iterable[Archive]) -> str:
    """Return what stands for a set of archives: kept answers are of use only where the same ones would be asked."""
    known = sorted(
        (each.id, each.kind, each.timemap, each.timegate, each.cdx, each.replay, each.enabled) for each in archives
    )
    return sha256(repr(known).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class DiskCache:
    """Kept answers in a file that outlives the process, and that others may use, too. Use it as a context manager.

    Whatever goes wrong with the file is told, once, and costs only what would have been kept.

    file: made when it is needed. scope: as `scope_of` has it. max_bytes: of the file, about.
    tell: gets lines for people; by default the log of this module. It is called in threads, too.
    written, unwritten: answers that were written, and those that were not since too many came at once or the disk
        cannot be used. unreadable: kept answers that turned out to be damaged, and were removed.
    """

    def __init__(
        self,
        file: Path,
        clock: Clock,
        scope: str = "",
        max_bytes: int = DEFAULT_DISK_BYTES,
        warn: Callable[[str], None] = _log.warning,
    ) -> None:
        self.written = 0
        self.unwritten = 0
        self.unreadable = 0
        self._clock = clock
        self._scope = scope
        self._warn = warn
        self._max_bytes = max_bytes
        self._read_database, self._write_database = (
            CacheDatabase(file, max_bytes, warn),
            CacheDatabase(file, max_bytes, warn),
        )
        self._reader = ThreadPoolExecutor(1, "unlost-cache-read")
        self._writer = ThreadPoolExecutor(1, "unlost-cache-write")
        self._pending_reads: list[tuple[bytes, str, RoutingOptions, asyncio.Future[AggregateResult | None]]] = []
        self._pending_writes: list[tuple[RoutingOptions, AggregateResult]] = []
        self._pending_bytes = 0
        self._has_warned = False
        self._backoff_until = 0.0
        self._read_task: asyncio.Task[None] | None = None
        self._write_task: asyncio.Task[None] | None = None
        self._flush_event = asyncio.Event()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        """Do nothing yet."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write what waits, and close the file."""
        self._is_closed = True
        await self.flush()
        if self._read_task is not None:
            await self._read_task
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._reader, self._read_database.close)
        await loop.run_in_executor(self._writer, self._write_database.close)
        self._reader.shutdown()
        self._writer.shutdown()

    async def get(self, uri: str, options: RoutingOptions) -> AggregateResult | None:
        """Return what was kept; None if there is nothing that may still be given, or it cannot be read."""
        if self._is_backing_off() or len(self._pending_reads) > _MAX_PENDING_READS:
            return None
        answer = asyncio.get_running_loop().create_future()
        self._pending_reads.append((cache_key(self._scope, uri, options), uri, options, answer))
        if self._read_task is None:
            self._read_task = asyncio.create_task(self._read_all())
        try:
            async with asyncio.timeout(_READ_TIMEOUT):
                found = await answer
        except TimeoutError as error:
            self._back_off(error)
            return None
        return found if found is not None and is_fresh(found, self._clock.now()) else None

    def put(self, options: RoutingOptions, result: AggregateResult) -> None:
        """Keep an answer soon; if too many wait already, or the disk cannot be used, it is not kept, and counted."""
        size = memory_size(result)
        if self._is_backing_off() or self._pending_bytes + size > _QUEUE_BYTES or self._is_closed:
            self.unwritten += 1
            return
        self._pending_bytes += size
        self._pending_writes.append((options, result))
        if self._write_task is None:
            self._write_task = asyncio.create_task(self._write_all())

    async def flush(self) -> None:
        """Wait until everything is written that waits for it."""
        self._flush_event.set()
        try:
            while self._write_task is not None:
                await asyncio.shield(self._write_task)
        finally:
            self._flush_event.clear()

    async def _read_all(self) -> None:
        """Read for everybody who waits, as often as somebody does."""
        loop = asyncio.get_running_loop()
        try:
            while self._pending_reads:
                asked, self._pending_reads = self._pending_reads, []
                found: list[AggregateResult | None] = [None] * len(asked)
                try:
                    found = await loop.run_in_executor(self._reader, self._read, [each[:3] for each in asked])
                except (sqlite3.Error, OSError, InputError) as error:
                    self._back_off(error)
                finally:
                    for (*_, answer), each in zip(asked, found, strict=True):
                        if not answer.done():
                            answer.set_result(each)
        finally:
            self._read_task = None

    def _read(self, asked: list[tuple[bytes, str, RoutingOptions]]) -> list[AggregateResult | None]:
        """Read answers, in a thread."""
        found: list[AggregateResult | None] = []
        damaged: list[bytes] = []
        for (key, uri, wish), row in zip(asked, self._read_database.get([key for key, *_ in asked]), strict=True):
            try:
                each = (
                    None if row is None else deserialize_result(self._scope, uri, wish, row.data, row.made, row.until)
                )
            except InputError as error:
                if not self.unreadable:
                    self._warn(f"{error}: it is removed, and asked for again; others are only counted")
                self.unreadable += 1
                damaged.append(key)
                each = None
            found.append(each)
        if damaged:
            self._read_database.remove(damaged)
        return found

    async def _write_all(self) -> None:
        """Write what there is, as often as there is something."""
        loop = asyncio.get_running_loop()
        try:
            while self._pending_writes:
                await self._gather()
                answers, self._pending_writes, self._pending_bytes = self._pending_writes, [], 0
                try:
                    lost = await loop.run_in_executor(self._writer, self._write, answers)
                except (sqlite3.Error, OSError, InputError) as error:
                    self._back_off(error)
                    lost = len(answers)
                else:
                    self._has_warned = False
                self.unwritten += lost
                self.written += len(answers) - lost
        finally:
            self._write_task = None

    async def _gather(self) -> None:
        """Wait for more, unless somebody waits for the end."""
        try:
            async with asyncio.timeout(_GATHER_SECONDS):
                await self._flush_event.wait()
        except TimeoutError:
            pass

    def _write(self, answers: list[tuple[RoutingOptions, AggregateResult]]) -> int:
        """Write answers, in a thread; return how many cannot be: for their size, most likely."""
        rows = {}
        for wish, found in answers:
            try:
                data = serialize_result(self._scope, wish, found)
            except ValueError:
                continue  # text that is none
            key = cache_key(self._scope, found.uri, wish)
            if len(data) <= self._max_bytes // 8:
                rows[key] = CacheRow(key, found.created_at, found.expires_at, data)
        self._write_database.put(list(rows.values()))
        return len(answers) - len(rows)

    def _is_backing_off(self) -> bool:
        # By a clock that was set back it is not longer.
        return 0 < self._backoff_until - self._clock.now() <= _BACKOFF_SECONDS

    def _back_off(self, error: Exception) -> None:
        """Leave the disk alone for a while, and tell it once."""
        self._backoff_until = self._clock.now() + _BACKOFF_SECONDS
        if not self._has_warned:
            self._has_warned = True
            reason = str(error) or f"not read within {_READ_TIMEOUT:g} s"
            self._warn(f"answers cannot be kept on disk: {reason}: they are kept in memory only; tried again later")
