"""Keeps answers on disk, beside the event loop: read and written in batches, by threads of their own."""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Self

from unlost.aggregate.cache import is_fresh, size_of
from unlost.aggregate.disk_table import AnswerFile, Row
from unlost.aggregate.found import Found
from unlost.aggregate.packing import key_of, packed, unpacked
from unlost.aggregate.wish import Wish
from unlost.archives.archive import Archive
from unlost.clock import Clock
from unlost.errors import InputError

MAX_BYTES = 1 << 28
"""How much is kept on disk, unless somebody says otherwise."""

_QUEUE_BYTES = 1 << 24  # of answers that wait to be written; what is more is not kept
_GATHERED_SECONDS = 0.2  # that answers are gathered before they are written together
_READ_SECONDS = 1.0  # for which somebody waits for a disk; a network's may hang
_QUESTIONS = 10_000  # that wait for the disk; whoever comes then asks archives
_REST_SECONDS = 60.0  # that a disk which cannot be used is left alone
_log = logging.getLogger(__name__)


def scope_of(archives: Iterable[Archive]) -> str:
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
        max_bytes: int = MAX_BYTES,
        tell: Callable[[str], None] = _log.warning,
    ) -> None:
        self.written = 0
        self.unwritten = 0
        self.unreadable = 0
        self._clock = clock
        self._scope = scope
        self._tell = tell
        self._max_bytes = max_bytes
        self._reading, self._writing = AnswerFile(file, max_bytes, tell), AnswerFile(file, max_bytes, tell)
        self._reader = ThreadPoolExecutor(1, "unlost-cache-read")
        self._writer = ThreadPoolExecutor(1, "unlost-cache-write")
        self._questions: list[tuple[bytes, str, Wish, asyncio.Future[Found | None]]] = []
        self._answers: list[tuple[Wish, Found]] = []
        self._waiting_bytes = 0
        self._is_told = False
        self._rests_until = 0.0
        self._asker: asyncio.Task[None] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        """Do nothing yet."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write what waits, and close the file."""
        self._is_closed = True
        await self.flush()
        if self._asker is not None:
            await self._asker
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._reader, self._reading.close)
        await loop.run_in_executor(self._writer, self._writing.close)
        self._reader.shutdown()
        self._writer.shutdown()

    async def get(self, uri: str, wish: Wish) -> Found | None:
        """Return what was kept; None if there is nothing that may still be given, or it cannot be read."""
        if self._rests() or len(self._questions) > _QUESTIONS:
            return None
        answer = asyncio.get_running_loop().create_future()
        self._questions.append((key_of(self._scope, uri, wish), uri, wish, answer))
        if self._asker is None:
            self._asker = asyncio.create_task(self._answer_all())
        try:
            async with asyncio.timeout(_READ_SECONDS):
                found = await answer
        except TimeoutError as error:
            self._fail(error)
            return None
        return found if found is not None and is_fresh(found, self._clock.now()) else None

    def put(self, wish: Wish, found: Found) -> None:
        """Keep an answer soon; if too many wait already, or the disk cannot be used, it is not kept, and counted."""
        size = size_of(found)
        if self._rests() or self._waiting_bytes + size > _QUEUE_BYTES or self._is_closed:
            self.unwritten += 1
            return
        self._waiting_bytes += size
        self._answers.append((wish, found))
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._write_all())

    async def flush(self) -> None:
        """Wait until everything is written that waits for it."""
        self._hurry.set()
        try:
            while self._keeper is not None:
                await asyncio.shield(self._keeper)
        finally:
            self._hurry.clear()

    async def _answer_all(self) -> None:
        """Read for everybody who waits, as often as somebody does."""
        loop = asyncio.get_running_loop()
        try:
            while self._questions:
                asked, self._questions = self._questions, []
                found: list[Found | None] = [None] * len(asked)
                try:
                    found = await loop.run_in_executor(self._reader, self._read, [each[:3] for each in asked])
                except (sqlite3.Error, OSError, InputError) as error:
                    self._fail(error)
                finally:
                    for (*_, answer), each in zip(asked, found, strict=True):
                        if not answer.done():
                            answer.set_result(each)
        finally:
            self._asker = None

    def _read(self, asked: list[tuple[bytes, str, Wish]]) -> list[Found | None]:
        """Read answers, in a thread."""
        found: list[Found | None] = []
        damaged: list[bytes] = []
        for (key, uri, wish), row in zip(asked, self._reading.get([key for key, *_ in asked]), strict=True):
            try:
                each = None if row is None else unpacked(self._scope, uri, wish, row.data, row.made, row.until)
            except InputError as error:
                if not self.unreadable:
                    self._tell(f"{error}: it is removed, and asked for again; others are only counted")
                self.unreadable += 1
                damaged.append(key)
                each = None
            found.append(each)
        if damaged:
            self._reading.remove(damaged)
        return found

    async def _write_all(self) -> None:
        """Write what there is, as often as there is something."""
        loop = asyncio.get_running_loop()
        try:
            while self._answers:
                await self._gather()
                answers, self._answers, self._waiting_bytes = self._answers, [], 0
                try:
                    lost = await loop.run_in_executor(self._writer, self._write, answers)
                except (sqlite3.Error, OSError, InputError) as error:
                    self._fail(error)
                    lost = len(answers)
                else:
                    self._is_told = False
                self.unwritten += lost
                self.written += len(answers) - lost
        finally:
            self._keeper = None

    async def _gather(self) -> None:
        """Wait for more, unless somebody waits for the end."""
        try:
            async with asyncio.timeout(_GATHERED_SECONDS):
                await self._hurry.wait()
        except TimeoutError:
            pass

    def _write(self, answers: list[tuple[Wish, Found]]) -> int:
        """Write answers, in a thread; return how many cannot be: for their size, most likely."""
        rows = {}
        for wish, found in answers:
            try:
                data = packed(self._scope, wish, found)
            except ValueError:
                continue  # text that is none
            key = key_of(self._scope, found.uri, wish)
            if len(data) <= self._max_bytes // 8:
                rows[key] = Row(key, found.made, found.until, data)
        self._writing.put(list(rows.values()))
        return len(answers) - len(rows)

    def _rests(self) -> bool:
        # By a clock that was set back it is not longer.
        return 0 < self._rests_until - self._clock.now() <= _REST_SECONDS

    def _fail(self, error: Exception) -> None:
        """Leave the disk alone for a while, and tell it once."""
        self._rests_until = self._clock.now() + _REST_SECONDS
        if not self._is_told:
            self._is_told = True
            reason = str(error) or f"not read within {_READ_SECONDS:g} s"
            self._tell(f"answers cannot be kept on disk: {reason}: they are kept in memory only; tried again later")
