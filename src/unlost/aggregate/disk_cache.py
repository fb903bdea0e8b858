"""Disk cache of results: an SQLite file shared between processes, with checksums and a size limit."""

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
_APPLICATION_ID = 0x756E6C73  # "unls", identifies our files
_PAGE_BYTES = 4096
_MAX_INLINE_BYTES = 1024  # larger entries get overflow pages
_ROW_OVERHEAD = 150  # bytes of an entry besides its data: key, numbers, two indexes
_EVICTION_TARGET = 0.9  # share of the limit that eviction leaves, so that it does not run for each entry
_EVICTION_BATCH = 64  # entries
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
"""  # 60: an entry dated later by more than `cache.MAX_CLOCK_SKEW` was written with a wrong clock
# By expiry and not by last use: reading then writes nothing, so processes do not wait for each other, and misses, whose
# lifetime is shorter, are evicted first.
_EVICT = "DELETE FROM answer WHERE number IN (SELECT number FROM answer ORDER BY until LIMIT ?)"

_MIN_COMPRESSED_BYTES = 512  # smaller results are not worth compressing
_MAX_RESULT_BYTES = 1 << 28  # uncompressed; we never write larger ones
_HEAD = struct.Struct(">IBI")  # CRC-32 of everything after it, whether the body is compressed, length of the JSON

DEFAULT_DISK_BYTES = 1 << 28
"""Default size of the cache on disk."""
_QUEUE_BYTES = 1 << 24  # results that wait to be written; further ones are dropped
_GATHER_SECONDS = 0.2  # for which results are batched before they are written
_READ_TIMEOUT = 1.0  # seconds; a network file system may hang
_MAX_PENDING_READS = 10_000  # beyond that, look-ups skip the disk
_BACKOFF_SECONDS = 60.0  # after a disk failure
_log = logging.getLogger(__name__)


class CacheRow(NamedTuple):
    """One cached result.

    Attributes:
        key: As returned by `cache_key`.
        made: When the result was created, in seconds since 1970.
        until: When it becomes stale, in seconds since 1970.
        data: As returned by `serialize_result`.
    """

    key: bytes
    made: float
    until: float
    data: bytes


class CacheDatabase:
    """A connection to the file, opened on first use. For one thread at a time.

    A damaged file is renamed and replaced with an empty one, which is reported through `warn`.

    Raises:
        InputError: The file belongs to another application or has another version. (All methods.)
        sqlite3.Error, OSError: The file cannot be used at the moment. (All methods.)
    """

    def __init__(self, file: Path, max_bytes: int, warn: Callable[[str], None]) -> None:
        self._file = file
        self._lock_file = file.with_name(file.name + ".lock")
        self._max_bytes = max_bytes
        self._warn = warn
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None

    def get(self, keys: Sequence[bytes]) -> list[CacheRow | None]:
        """Return the row of each key, fresh or not; None for a missing one."""
        select = "SELECT key, made, until, data FROM answer WHERE key = ?"

        def read(connection: sqlite3.Connection) -> list[CacheRow | None]:
            rows = (connection.execute(select, (key,)).fetchone() for key in keys)
            return [None if row is None else CacheRow(*row) for row in rows]

        return self._run(read)

    def put(self, rows: Sequence[CacheRow]) -> None:
        """Store rows, unless a stored one is newer, and evict those that expire first.

        Each row is stored completely or not at all. Large batches are split into several transactions with evictions in
        between, so that the file does not grow far beyond its limit.
        """
        remaining = deque(rows)

        def write(connection: sqlite3.Connection) -> None:
            while remaining:
                written = size = 0
                with transaction(connection):
                    while written < len(remaining) and size <= self._max_bytes // 16:
                        row = remaining[written]
                        written += 1
                        size += row_size(row)
                        connection.execute(_PUT, (*row[:3], row_size(row), row.data))
                    self._evict(connection)
                for _ in range(written):
                    remaining.popleft()

        self._run(write)

    def remove(self, keys: Sequence[bytes]) -> None:
        """Delete rows."""

        def delete(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.executemany("DELETE FROM answer WHERE key = ?", ((key,) for key in keys))

        self._run(delete)

    def total(self) -> tuple[int, int]:
        """Return the number of rows and their total size in bytes."""

        def count(connection: sqlite3.Connection) -> tuple[int, int]:
            totals: tuple[int, int] = connection.execute(
                "SELECT (SELECT count(*) FROM answer), (SELECT bytes FROM total)"
            ).fetchone()
            return totals

        return self._run(count)

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
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
            # A full disk, a lock or a missing folder: the file itself may be intact.
            self.close()
            raise
        except sqlite3.DatabaseError as error:
            self._set_aside(error)
        return work(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            if _inode(self._file) == self._inode:
                return self._connection
            self.close()  # the file was replaced or removed
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Only the owner may read which URLs were looked up. SQLite creates the -wal and -shm files with the same mode.
        os.close(os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._inode = _inode(self._file)
        connection = sqlite3.connect(self._file, timeout=5.0, isolation_level=None, check_same_thread=False)
        try:
            # SQLite does not wait for locks during the switch to WAL, so processes open the file one after the other.
            with lock_file(self._lock_file):
                _prepare(connection, self._file)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        """Rename a damaged file, unless another process already has."""
        self.close()
        with lock_file(self._lock_file):
            if _inode(self._file) != self._inode:
                return
            damaged_file = self._file.with_name(self._file.name + ".damaged")
            for suffix in ("-wal", "-shm"):
                self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                self._file.replace(damaged_file)
        self._warn(
            f"{self._file}: {error}: set aside as {damaged_file.name}, and begun anew; nothing but kept answers is lost"
        )


def row_size(row: CacheRow) -> int:
    """Return the approximate size of a row in the file, in bytes."""
    length = len(row.data)
    return _ROW_OVERHEAD + (length if length < _MAX_INLINE_BYTES else -(-length // _PAGE_BYTES) * _PAGE_BYTES)


def _prepare(connection: sqlite3.Connection, file: Path) -> None:
    """Create the schema of a new file, or check that of an existing one. Raises InputError if it is not a cache."""
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
    # With WAL, a power failure may lose the last transactions but does not corrupt the file.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {1 << 22}")


def _has_schema(connection: sqlite3.Connection, file: Path) -> bool:
    """Return whether the file has our schema; False for an empty file. Raises InputError for any other file."""
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


def cache_key(scope: str, uri: str, options: RoutingOptions) -> bytes:
    """Return the key of a result: a hash of the scope, the URL and the options.

    Args:
        scope: As returned by `cache_scope`.
        uri: The page.
        options: The routing options.
    """
    return blake2b(json.dumps(_cache_identity(scope, uri, options)).encode(), digest_size=20).digest()


def serialize_result(scope: str, options: RoutingOptions, result: AggregateResult) -> bytes:
    """Return a result as bytes, without its times, which are stored in columns of their own.

    >>> result = AggregateResult("http://a/", Mementos(), (ArchiveReport("a", "routed", "miss"),), ("b",), 1.0, 2.0)
    >>> options = RoutingOptions()
    >>> deserialize_result("", "http://a/", options, serialize_result("", options, result), 1.0, 2.0).reports[0].outcome
    'miss'
    """
    reports = [[each.archive, each.reason, each.outcome, each.mementos, each.message] for each in result.reports]
    head = json.dumps(
        [_cache_identity(scope, result.uri, options), reports, result.passed_over], separators=(",", ":")
    ).encode()
    body = head + result.mementos.pack()
    is_compressed = len(body) > _MIN_COMPRESSED_BYTES
    if is_compressed:
        body = zlib.compress(body, 1)
    payload = _HEAD.pack(0, is_compressed, len(head))[4:] + body
    return zlib.crc32(payload).to_bytes(4, "big") + payload


def deserialize_result(
    scope: str, uri: str, options: RoutingOptions, data: bytes, created_at: float, expires_at: float
) -> AggregateResult:
    """Return the result. Raises InputError if the data is damaged or belongs to another request."""
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
            Mementos.unpack(body[length:]),
            tuple(
                ArchiveReport(archive, reason, outcome, count, message=message)
                for archive, reason, outcome, count, message in reports
            ),
            tuple(passed_over),
            created_at,
            expires_at,
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


def cache_scope(archives: Iterable[Archive]) -> str:
    """Return a hash of a set of archives. Cached results are valid only for the archives they were requested from."""
    settings = sorted(
        (each.id, each.kind, each.timemap, each.timegate, each.cdx, each.replay, each.enabled) for each in archives
    )
    return sha256(repr(settings).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class DiskCache:
    """Cache of results in a file that outlives the process and may be shared. Use it as an async context manager.

    Failures of the disk are reported once, and cost only cached results.

    Args:
        file: The file; created when needed.
        clock: Source of time.
        scope: As returned by `cache_scope`.
        max_bytes: Approximate size of the file.
        warn: Called with messages for the user, also from threads; logs them by default.

    Attributes:
        written: Number of results written.
        unwritten: Number of results dropped, because too many were waiting or the disk failed.
        unreadable: Number of damaged results that were removed.
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
        """Return the cache; the file is opened on first use."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write pending results and close the file."""
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
        """Return a cached result; None if there is no fresh one or it cannot be read."""
        if self._is_backing_off() or len(self._pending_reads) > _MAX_PENDING_READS:
            return None
        future = asyncio.get_running_loop().create_future()
        self._pending_reads.append((cache_key(self._scope, uri, options), uri, options, future))
        if self._read_task is None:
            self._read_task = asyncio.create_task(self._read_all())
        try:
            async with asyncio.timeout(_READ_TIMEOUT):
                result = await future
        except TimeoutError as error:
            self._back_off(error)
            return None
        return result if result is not None and is_fresh(result, self._clock.now()) else None

    def put(self, options: RoutingOptions, result: AggregateResult) -> None:
        """Queue a result for writing. It is dropped and counted if the queue is full or the disk has failed."""
        size = memory_size(result)
        if self._is_backing_off() or self._pending_bytes + size > _QUEUE_BYTES or self._is_closed:
            self.unwritten += 1
            return
        self._pending_bytes += size
        self._pending_writes.append((options, result))
        if self._write_task is None:
            self._write_task = asyncio.create_task(self._write_all())

    async def flush(self) -> None:
        """Wait until all queued results are written."""
        self._flush_event.set()
        try:
            while self._write_task is not None:
                await asyncio.shield(self._write_task)
        finally:
            self._flush_event.clear()

    async def _read_all(self) -> None:
        """Read for all waiting callers, until there are none."""
        loop = asyncio.get_running_loop()
        try:
            while self._pending_reads:
                pending, self._pending_reads = self._pending_reads, []
                results: list[AggregateResult | None] = [None] * len(pending)
                try:
                    results = await loop.run_in_executor(self._reader, self._read, [read[:3] for read in pending])
                except (sqlite3.Error, OSError, InputError) as error:
                    self._back_off(error)
                finally:
                    for (*_, future), result in zip(pending, results, strict=True):
                        if not future.done():
                            future.set_result(result)
        finally:
            self._read_task = None

    def _read(self, requests: list[tuple[bytes, str, RoutingOptions]]) -> list[AggregateResult | None]:
        """Read results, in a thread."""
        results: list[AggregateResult | None] = []
        damaged: list[bytes] = []
        for (key, uri, options), row in zip(
            requests, self._read_database.get([key for key, *_ in requests]), strict=True
        ):
            try:
                result = (
                    None
                    if row is None
                    else deserialize_result(self._scope, uri, options, row.data, row.made, row.until)
                )
            except InputError as error:
                if not self.unreadable:
                    self._warn(f"{error}: it is removed, and asked for again; others are only counted")
                self.unreadable += 1
                damaged.append(key)
                result = None
            results.append(result)
        if damaged:
            self._read_database.remove(damaged)
        return results

    async def _write_all(self) -> None:
        """Write queued results, until there are none."""
        loop = asyncio.get_running_loop()
        try:
            while self._pending_writes:
                await self._gather()
                batch, self._pending_writes, self._pending_bytes = self._pending_writes, [], 0
                try:
                    lost = await loop.run_in_executor(self._writer, self._write, batch)
                except (sqlite3.Error, OSError, InputError) as error:
                    self._back_off(error)
                    lost = len(batch)
                else:
                    self._has_warned = False
                self.unwritten += lost
                self.written += len(batch) - lost
        finally:
            self._write_task = None

    async def _gather(self) -> None:
        """Wait for more results of the same batch, unless `flush` was called."""
        try:
            async with asyncio.timeout(_GATHER_SECONDS):
                await self._flush_event.wait()
        except TimeoutError:
            pass

    def _write(self, batch: list[tuple[RoutingOptions, AggregateResult]]) -> int:
        """Write results, in a thread; return how many were dropped, mostly because they are too large."""
        rows = {}
        for options, result in batch:
            try:
                data = serialize_result(self._scope, options, result)
            except ValueError:
                continue  # text that cannot be encoded, such as lone surrogates
            key = cache_key(self._scope, result.uri, options)
            if len(data) <= self._max_bytes // 8:
                rows[key] = CacheRow(key, result.created_at, result.expires_at, data)
        self._write_database.put(list(rows.values()))
        return len(batch) - len(rows)

    def _is_backing_off(self) -> bool:
        # The upper limit matters if the clock was set back.
        return 0 < self._backoff_until - self._clock.now() <= _BACKOFF_SECONDS

    def _back_off(self, error: Exception) -> None:
        """Stop using the disk for `_BACKOFF_SECONDS`, and warn once until a write succeeds."""
        self._backoff_until = self._clock.now() + _BACKOFF_SECONDS
        if not self._has_warned:
            self._has_warned = True
            reason = str(error) or f"not read within {_READ_TIMEOUT:g} s"
            self._warn(f"answers cannot be kept on disk: {reason}: they are kept in memory only; tried again later")
