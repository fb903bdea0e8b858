"""The disk cache of results: an SQLite file that processes share, with checksums and a size limit."""

import asyncio
import json
import logging
import os
import sqlite3
import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import blake2b, sha256
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

from unlost.aggregate.cache import is_fresh, memory_size
from unlost.aggregate.models import AggregateResult, ArchiveReport, RoutingOptions
from unlost.clock import Clock
from unlost.errors import InputError
from unlost.memento.timemap import Mementos
from unlost.registry.models import Archive
from unlost.sqlite import lock_file, transaction

T = TypeVar("T")
FORMAT_VERSION = 1
_APPLICATION_ID = 0x756E6C73  # "unls", by which the file is known to be ours
_PAGE_BYTES = 4096
_MAX_INLINE_BYTES = 1024  # bytes; larger entries get pages of their own
_ROW_OVERHEAD = 150  # bytes of an entry besides its contents: key, numbers, two indexes
_EVICTION_TARGET = 0.9  # of the limit is left when room is made, so that it is not made for each entry
_EVICTION_BATCH = 64  # entries at a time
_SCHEMA = """
CREATE TABLE answer (
    number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, made REAL NOT NULL, until REAL NOT NULL,
    size INTEGER NOT NULL, data BLOB NOT NULL
)
; CREATE INDEX answer_until ON answer (until)
; CREATE TABLE total (bytes INTEGER NOT NULL)
; INSERT INTO total VALUES (0)
; CREATE TRIGGER added AFTER INSERT ON answer BEGIN UPDATE total SET bytes = bytes + new.size; END
; CREATE TRIGGER removed AFTER DELETE ON answer BEGIN UPDATE total SET bytes = bytes - old.size; END
; CREATE TRIGGER changed AFTER UPDATE ON answer BEGIN UPDATE total SET bytes = bytes + new.size - old.size; END
"""
_STATEMENTS = tuple(each.strip() for each in _SCHEMA.split("\n;"))
_PUT = """
INSERT INTO answer (key, made, until, size, data) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET made = excluded.made, until = excluded.until, size = excluded.size, data = excluded.data
WHERE excluded.made >= answer.made OR excluded.made < answer.made - 60
"""  # what is later than now by more than `cache.CLOCKS` was kept by a clock that was wrong
_EVICT = "DELETE FROM answer WHERE number IN (SELECT number FROM answer ORDER BY until LIMIT ?)"


class CacheRow(NamedTuple):
    """One answer. made, until: seconds since 1970. data: as `packing` makes it."""

    key: bytes
    made: float
    until: float
    data: bytes


class CacheDatabase:
    """One connection to the file; it is used by one thread at a time. Nothing is opened before it is needed.

    tell: gets a line for people when the file was damaged and was set aside.
    Methods raise sqlite3.Error or OSError where the file cannot be used now, InputError where it is not ours.
    """

    def __init__(self, file: Path, max_bytes: int, warn: Callable[[str], None]) -> None:
        self._file = file
        self._lock_file = file.with_name(file.name + ".lock")
        self._max_bytes = max_bytes
        self._warn = warn
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None

    def get(self, keys: Sequence[bytes]) -> list[CacheRow | None]:
        """Return what is kept under each key, however old; None where there is nothing."""
        select = "SELECT key, made, until, data FROM answer WHERE key = ?"

        def read(connection: sqlite3.Connection) -> list[CacheRow | None]:
            found = (connection.execute(select, (key,)).fetchone() for key in keys)
            return [None if row is None else CacheRow(*row) for row in found]

        return self._run(read)

    def put(self, rows: Sequence[CacheRow]) -> None:
        """Keep answers; one that is somewhat older than what is kept is not. Those that are over first make room.

        Each is kept whole or not at all. Room is made again and again, so that the file grows little beyond its size.
        """
        left = deque(rows)

        def write(connection: sqlite3.Connection) -> None:
            while left:
                written = size = 0
                with transaction(connection):
                    while written < len(left) and size <= self._max_bytes // 16:
                        row = left[written]
                        written += 1
                        size += row_size(row)
                        connection.execute(_PUT, (*row[:3], row_size(row), row.data))
                    self._evict(connection)
                for _ in range(written):
                    left.popleft()

        self._run(write)

    def remove(self, keys: Sequence[bytes]) -> None:
        """Remove answers."""

        def delete(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.executemany("DELETE FROM answer WHERE key = ?", ((key,) for key in keys))

        self._run(delete)

    def total(self) -> tuple[int, int]:
        """Return how many answers there are, and their bytes."""

        def count(connection: sqlite3.Connection) -> tuple[int, int]:
            found: tuple[int, int] = connection.execute(
                "SELECT (SELECT count(*) FROM answer), (SELECT bytes FROM total)"
            ).fetchone()
            return found

        return self._run(count)

    def close(self) -> None:
        """Close the connection; it is opened again if it is needed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _evict(self, connection: sqlite3.Connection) -> None:
        (total,) = connection.execute("SELECT bytes FROM total").fetchone()
        if total <= self._max_bytes:
            return
        while total > self._max_bytes * _EVICTION_TARGET:
            if connection.execute(_EVICT, (_EVICTION_BATCH,)).rowcount <= 0:
                break
            (total,) = connection.execute("SELECT bytes FROM total").fetchone()

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return work(self._open())
        except sqlite3.OperationalError:
            # A full disk, a lock, a missing folder: what is in the file may well be in order.
            self.close()
            raise
        except sqlite3.DatabaseError as error:
            self._set_aside(error)
        return work(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            if _inode(self._file) == self._inode:
                return self._connection
            self.close()  # somebody put another file in its place, or removed it
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # What people looked for is nobody else's business; SQLite gives its other files the same mode.
        os.close(os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._inode = _inode(self._file)
        connection = sqlite3.connect(self._file, timeout=5.0, isolation_level=None, check_same_thread=False)
        try:
            # SQLite does not wait for locks while a file changes to WAL, so processes open it one after the other.
            with lock_file(self._lock_file):
                _prepare(connection, self._file)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        """Put a damaged file out of the way, unless another process was faster."""
        self.close()
        with lock_file(self._lock_file):
            if _inode(self._file) != self._inode:
                return
            aside = self._file.with_name(self._file.name + ".damaged")
            for ending in ("-wal", "-shm"):
                self._file.with_name(self._file.name + ending).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                self._file.replace(aside)
        self._warn(
            f"{self._file}: {error}: set aside as {aside.name}, and begun anew; nothing but kept answers is lost"
        )


def row_size(row: CacheRow) -> int:
    """Return about how many bytes of the file an answer takes."""
    length = len(row.data)
    return _ROW_OVERHEAD + (length if length < _MAX_INLINE_BYTES else -(-length // _PAGE_BYTES) * _PAGE_BYTES)


def _prepare(connection: sqlite3.Connection, file: Path) -> None:
    """Make a new file ready, and look whether an old one is ours. Raises InputError if it is not."""
    connection.execute("PRAGMA busy_timeout = 5000")
    connection.execute("PRAGMA cache_size = -2048")
    if not _has_schema(connection, file):
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        with transaction(connection):
            for statement in _STATEMENTS:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
    connection.execute("PRAGMA journal_mode = WAL")
    # A loss of power may cost the last answers, never the file.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {1 << 22}")


def _has_schema(connection: sqlite3.Connection, file: Path) -> bool:
    """Return whether a file has our tables; False if it has none at all."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if (application, version) == (_APPLICATION_ID, FORMAT_VERSION):
        return True
    if application == _APPLICATION_ID:
        raise InputError(f"{file}: of version {version}: expected {FORMAT_VERSION}; give each unlost a file of its own")
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application or version or tables:
        raise InputError(f"{file}: a database of something else: choose another file")
    return False


def _inode(file: Path) -> int | None:
    try:
        return file.stat().st_ino
    except OSError:
        return None


_MIN_COMPRESSED_BYTES = 512  # bytes; what is smaller is not worth compressing
_MAX_RESULT_BYTES = 1 << 28  # of an answer, uncompressed; what is larger was not written by us
_HEAD = struct.Struct(">IBI")  # checksum of all behind it, whether that is compressed, length of the first part


def cache_key(scope: str, uri: str, options: RoutingOptions) -> bytes:
    """Return by what an answer is known: the same for the same page, wish and scope, and for no others.

    scope: what stands for the archives that there are.
    """
    return blake2b(json.dumps(_cache_identity(scope, uri, options)).encode(), digest_size=20).digest()


def serialize_result(scope: str, options: RoutingOptions, result: AggregateResult) -> bytes:
    """Return an answer as bytes, without its times, which stand beside it.

    >>> found = AggregateResult("http://a/", Mementos(), (ArchiveReport("a", "routed", "miss"),), ("b",), 1.0, 2.0)
    >>> deserialize_result("", "http://a/", RoutingOptions(), serialize_result("", RoutingOptions(), found), 1.0, 2.0).reports[0].outcome
    'miss'
    """
    reports = [[each.archive, each.reason, each.outcome, each.mementos, each.message] for each in result.reports]
    said = json.dumps(
        [_cache_identity(scope, result.uri, options), reports, result.passed_over], separators=(",", ":")
    ).encode()
    body = said + result.mementos.packed()
    is_compressed = len(body) > _MIN_COMPRESSED_BYTES
    if is_compressed:
        body = zlib.compress(body, 1)
    rest = _HEAD.pack(0, is_compressed, len(said))[4:] + body
    return zlib.crc32(rest).to_bytes(4, "big") + rest


def deserialize_result(
    scope: str, uri: str, options: RoutingOptions, data: bytes, made: float, until: float
) -> AggregateResult:
    """Return the answer. Raises InputError if it is damaged, or one to another question."""
    try:
        checksum, is_compressed, length = _HEAD.unpack_from(data)
        if zlib.crc32(data[4:]) != checksum:
            raise InputError("a kept answer is damaged: its checksum is another")
        body = data[_HEAD.size :]
        if is_compressed:
            inflater = zlib.decompressobj()
            body = inflater.decompress(body, _MAX_RESULT_BYTES)
        identity, reports, passed_over = json.loads(body[:length])
        if identity != _cache_identity(scope, uri, options):
            raise InputError("a kept answer is one to another question")
        return AggregateResult(
            uri,
            Mementos.unpacked(body[length:]),
            tuple(
                ArchiveReport(archive, reason, outcome, n, message=said)
                for archive, reason, outcome, n, said in reports
            ),
            tuple(passed_over),
            made,
            until,
            from_cache=True,
        )
    except (struct.error, zlib.error, ValueError, TypeError) as error:
        raise InputError(f"a kept answer cannot be read: {error!s:.100}") from error


def _cache_identity(scope: str, uri: str, options: RoutingOptions) -> list[object]:
    return [
        scope,
        uri,
        None if options.archives is None else sorted(options.archives),
        options.broadcast,
        options.top_k,
        options.min_probability,
        None if options.preferred is None else sorted(options.preferred),
    ]


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
