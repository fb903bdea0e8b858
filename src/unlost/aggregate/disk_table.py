"""The file of kept answers: an SQLite database that processes share, that heals, and that has a size."""

import os
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from unlost.errors import InputError
from unlost.transactions import lock_file, transaction

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
