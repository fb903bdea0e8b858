"""Index of the archive files in a directory: an SQLite file in which captures are found by key, date or digest.

New and changed files are read again; deleted files are removed. Each call opens the database, so that calls may come
from any thread; other processes may read while one writes. The index is a cache and never trusted: a database that is
damaged, of another version or missing is created again.

SQLite and not a sorted CDXJ: files come, change and go one by one, queries by key and by digest need two orders, and
processes share it by transactions.
"""

import math
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

from unlost import uri
from unlost.capture import Capture
from unlost.errors import InputError, UriError
from unlost.file_lock import acquire_lock
from unlost.index.warc_index import is_archive_file, read_archive_captures
from unlost.problems import Problem, Problems
from unlost.sqlite import transaction

INDEX_VERSION = 1
"""Version of the tables. An index of another version is created again."""
INDEXED, INCOMPLETE, NOT_ARCHIVE, UNREADABLE = "indexed", "begun", "other", "unreadable"
"""States of a file: indexed; being indexed; not an archive file; not readable."""
_BATCH_ROWS = 5_000
_BATCH_BYTES = 4 << 20
_ROW_BYTES = 400  # of a row, without its texts of variable length
_BUSY_SECONDS = 60.0  # wait for another writer, whose transactions are short
_CACHE_KB = 32 << 10  # of the writer: keys are inserted in random order, each in another page
_MAX_RESULT_BYTES = 4 << 20  # of the texts in a result, which is truncated beyond: a URL may have megabytes
_SCHEMA = """
CREATE TABLE file (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, stamp INTEGER NOT NULL,
    state TEXT NOT NULL);
CREATE TABLE capture (id INTEGER PRIMARY KEY, file INTEGER NOT NULL, key TEXT NOT NULL, datetime TEXT NOT NULL,
    uri TEXT NOT NULL, status INTEGER, mime TEXT, digest TEXT, length INTEGER, redirect TEXT, revisit INTEGER NOT NULL,
    of_uri TEXT, of_datetime TEXT, member TEXT, offset INTEGER NOT NULL, skip INTEGER NOT NULL);
CREATE INDEX capture_by_key ON capture (key, datetime, id);
CREATE INDEX capture_by_digest ON capture (digest) WHERE NOT revisit AND digest IS NOT NULL;
CREATE INDEX capture_by_file ON capture (file);
CREATE TABLE problem (file INTEGER NOT NULL, kind TEXT NOT NULL, count INTEGER NOT NULL, offset INTEGER NOT NULL,
    name TEXT NOT NULL, message TEXT NOT NULL);
CREATE INDEX problem_by_file ON problem (file);
"""
_COLUMNS = (
    "capture.id, key, datetime, uri, status, mime, digest, length, redirect, revisit, of_uri, of_datetime, member, "
    "offset, skip, path"
)
_SELECT_CAPTURES = f"SELECT {_COLUMNS} FROM capture CROSS JOIN file ON file.id = capture.file WHERE state <> 'begun'"  # noqa: S608
# CROSS JOIN makes SQLite search captures first, then their files.
_INSERT_CAPTURE = f"INSERT INTO capture VALUES ({', '.join('?' * 16)})"  # noqa: S608


class FileStat(NamedTuple):
    """A regular file.

    Attributes:
        path: Path relative to the root directory, in the file system's encoding; the name of the file if it is the
            root.
        size: Size in bytes.
        modified: Time of the last change of its content, nanoseconds since 1970.
        changed: Time of the last change of its metadata, nanoseconds since 1970.
    """

    path: bytes
    size: int
    modified: int
    changed: int


def walk_files(root: Path) -> Iterator[FileStat]:
    """Yield the regular files below a directory, or the one file given, in a stable order.

    Symbolic links are followed; each directory is visited once. Skipped are pipes and devices, which could block, files
    that are deleted meanwhile, and files without permission. Raises OSError if the root itself cannot be read.
    """
    top = root.stat()
    if stat.S_ISREG(top.st_mode):
        yield FileStat(os.fsencode(root.name), top.st_size, top.st_mtime_ns, top.st_ctime_ns)
        return
    with os.scandir(root):
        pass  # raises OSError; subdirectories that cannot be listed are skipped
    entered = {(top.st_dev, top.st_ino)}
    pending = [os.fsencode(root)]
    while pending:
        folder = pending.pop()
        folders = []
        for path in _list_folder(folder):
            try:
                file_stat = os.stat(path)  # noqa: PTH116  Path does not support bytes
            except OSError:
                continue
            if stat.S_ISDIR(file_stat.st_mode) and (file_stat.st_dev, file_stat.st_ino) not in entered:
                entered.add((file_stat.st_dev, file_stat.st_ino))
                folders.append(path)
            elif stat.S_ISREG(file_stat.st_mode):
                relative = os.path.relpath(path, os.fsencode(root))
                yield FileStat(relative, file_stat.st_size, file_stat.st_mtime_ns, file_stat.st_ctime_ns)
        pending += reversed(folders)


def _list_folder(folder: bytes) -> list[bytes]:
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))  # noqa: PTH118, PTH208  bytes
    except OSError:
        return []


class IndexedCapture(NamedTuple):
    """A capture and the location of its record.

    Attributes:
        capture: The capture.
        position: Key, date and row number, after which the next page of a listing begins.
        path: Path of the file, relative to the root directory.
        member: Name of the WARC file in a WACZ, without `archive/`.
    """

    capture: Capture
    position: tuple[str, str, int]
    path: bytes
    member: str | None


def has_index_tables(connection: sqlite3.Connection) -> bool:
    """Return whether a database has the tables of this version."""
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] == INDEX_VERSION)


def create_index_tables(connection: sqlite3.Connection) -> None:
    """Create the tables, and drop older ones."""
    with transaction(connection):
        for table in ("file", "capture", "problem"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {INDEX_VERSION}")


def delete_file(connection: sqlite3.Connection, number: int) -> None:
    """Delete a file and all its rows."""
    with transaction(connection):
        connection.execute("DELETE FROM file WHERE id = ?", (number,))
        connection.execute("DELETE FROM problem WHERE file = ?", (number,))
        connection.execute("DELETE FROM capture WHERE file = ?", (number,))


def add_file(connection: sqlite3.Connection, path: bytes, size: int, stamp: int) -> int:
    """Add a file in the state `INCOMPLETE`, and return its number."""
    row = (path, size, stamp, INCOMPLETE)
    number = connection.execute("INSERT INTO file (path, size, stamp, state) VALUES (?, ?, ?, ?)", row).lastrowid
    assert number is not None  # noqa: S101  a row was inserted
    return number


def add_captures(connection: sqlite3.Connection, file: int, captures: list[Capture], in_zip: bool) -> None:
    """Add captures of a file. With `in_zip`, their `filename` is that of a member of it."""
    connection.executemany(
        _INSERT_CAPTURE, (_capture_values(file, capture, capture.filename if in_zip else None) for capture in captures)
    )


def finish_file(connection: sqlite3.Connection, file: int, state: str, stamp: int, problems: Problems) -> None:
    """Set the final state of a file, and store its problems."""
    first = problems.first
    connection.executemany(
        "INSERT INTO problem VALUES (?, ?, ?, ?, ?, ?)",
        [
            (file, kind, count, first[kind].offset, *map(_escape_surrogates, (first[kind].file, first[kind].message)))
            for kind, count in problems.counts.items()
        ],
    )
    connection.execute("UPDATE file SET state = ?, stamp = ? WHERE id = ?", (state, stamp, file))


def read_problems(connection: sqlite3.Connection) -> Problems:
    """Return the problems of all files."""
    problems = Problems()
    rows = connection.execute("SELECT kind, count, offset, name, message FROM problem ORDER BY file")
    for kind, count, offset, name, message in rows:
        problems.add(Problem(kind, name, None, offset, message), count)
    return problems


def _escape_surrogates(text: str) -> str:
    """Return a text without surrogates, which file names in other encodings contain."""
    return text.encode("utf-8", "backslashreplace").decode()


def _capture_values(file: int, capture: Capture, member: str | None) -> tuple[object, ...]:
    original = capture.revisit_of or (None, None)
    return (
        None, file, capture.key, capture.datetime, capture.uri, capture.status, capture.mime, capture.digest,
        capture.length, capture.redirect, capture.revisit, *original, member, capture.offset, capture.skip or 0,
    )  # fmt: skip


def parse_capture_row(row: tuple[Any, ...]) -> IndexedCapture:
    """Return the capture of a row."""
    (number, key, moment, url, status, mime, digest, length, redirect, revisit) = row[:10]
    (original_url, original_moment, member, offset, skip, path) = row[10:]
    name = path.decode("utf-8", "backslashreplace")
    capture = Capture(
        uri=url,
        key=key,
        datetime=moment,
        status=status,
        mime=mime,
        digest=digest,
        length=length,
        redirect=redirect,
        revisit=bool(revisit),
        revisit_of=(original_url, original_moment) if original_url is not None else None,
        filename=name if member is None else f"{name}/archive/{member}",
        offset=offset,
        skip=skip or None,
    )
    return IndexedCapture(capture, (key, moment, number), path, member)


class IndexingStoppedError(Exception):
    """The caller was cancelled while the index was updated."""


def index_file(connection: sqlite3.Connection, path: Path, file: FileStat, stop: Event) -> None:
    """Index a file that is not in the index. Raises IndexingStoppedError, sqlite3.Error.

    A small file takes one transaction, because each transaction waits for the disk. The rows of a large file are
    inserted in batches, which queries do not see before the file is finished.
    """

    def check(_: int = 0) -> None:
        if stop.is_set():
            raise IndexingStoppedError

    check()
    rows = _CaptureBatchWriter(connection, file, _is_zip(path))
    problems = Problems()
    state, stamp = INDEXED, file.modified
    try:
        if is_archive_file(path):
            for capture in read_archive_captures(path, problems, on_read=check):
                rows.add(capture)
        else:
            state = NOT_ARCHIVE
    except InputError as error:
        # The rows read so far are stored. An unreadable file is retried after a change of its permissions, too.
        state, stamp = UNREADABLE, file.changed
        problems.add(Problem("unreadable", str(path), None, 0, str(error).removeprefix(f"{path}: ")))
    rows.finish(state, stamp, problems)


def _is_zip(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"PK"
    except OSError:
        return False  # the reader reports the error


class _CaptureBatchWriter:
    """Writes the rows of a file into the database, in batches."""

    def __init__(self, connection: sqlite3.Connection, file: FileStat, in_zip: bool) -> None:
        self._connection = connection
        self._file = file
        self._in_zip = in_zip
        self._number: int | None = None
        self._batch: list[Capture] = []
        self._batch_bytes = 0

    def add(self, capture: Capture) -> None:
        if capture.key is None:
            return  # records such as `dns:` are not pages; invalid URLs were counted as problems
        self._batch.append(capture)
        self._batch_bytes += _ROW_BYTES + len(capture.key) + len(capture.uri) + len(capture.redirect or "")
        if len(self._batch) >= _BATCH_ROWS or self._batch_bytes >= _BATCH_BYTES:
            with transaction(self._connection):
                self._write()

    def finish(self, state: str, stamp: int, problems: Problems) -> None:
        with transaction(self._connection):
            finish_file(self._connection, self._write(), state, stamp, problems)

    def _write(self) -> int:
        """Write the batch, and return the number of the file."""
        if self._number is None:
            file = self._file
            self._number = add_file(self._connection, file.path, file.size, file.modified)
        add_captures(self._connection, self._number, self._batch, self._in_zip)
        self._batch, self._batch_bytes = [], 0
        return self._number


class WarcFileIndex:
    """The captures of all archive files below a directory, or of one file.

    Args:
        root: The directory or file.
        database: The SQLite file. Its directory is created if necessary. A lock file next to it is locked while a
            process updates the index.
    """

    def __init__(self, root: Path, database: Path) -> None:
        self.root = root
        self._database = database

    def is_current(self) -> bool:
        """Return whether the index matches the files. Raises OSError if the directory cannot be read."""
        if not self._database.exists():
            return False
        with self._open() as connection:
            if not has_index_tables(connection):
                return False
            changed, deleted = _compare_files(connection, self.root)
            return not changed and not deleted

    def update(self, stop: Event, on_file: Callable[[str], object] | None = None) -> None:
        """Update the index: read new and changed files, remove deleted ones.

        Args:
            stop: When set, IndexingStoppedError is raised soon. Finished files remain indexed.
            on_file: Called with the name of each file before it is read.

        Raises:
            OSError: The directory cannot be read.
            sqlite3.Error: The database cannot be written.
        """
        self._database.parent.mkdir(parents=True, exist_ok=True)
        with self._lock(stop), self._open() as connection:
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
            if not has_index_tables(connection):
                create_index_tables(connection)
            changed, deleted = _compare_files(connection, self.root)
            for number in deleted:
                delete_file(connection, number)
            for file in changed:
                if on_file is not None:
                    on_file(file.path.decode("utf-8", "backslashreplace"))
                path = self.root if self.root.is_file() else self.root / os.fsdecode(file.path)
                index_file(connection, path, file, stop)

    def remove(self) -> None:
        """Delete the database, as after damage."""
        for path in (self._database, self._database.with_name(self._database.name + "-journal")):
            path.unlink(missing_ok=True)

    def captures_between(
        self, low: str, high: str, dates: tuple[str, str], after: tuple[str, str, int] | None, count: int
    ) -> list[IndexedCapture]:
        """Return at most `count` captures with keys from `low` to before `high`, in a range of dates, by key and date.

        `after` is the position of the last capture of the previous page. The listing ends with an empty page; a page
        may have fewer than `count` captures before that.
        """
        where = "AND (key, datetime, capture.id) > (?, ?, ?) AND key < ? AND datetime BETWEEN ? AND ?"
        begin = (low, "", 0) if after is None else after
        return self._select(f"{where} ORDER BY key, datetime, capture.id LIMIT ?", *begin, high, *dates, count)

    def captures_near(self, key: str, last: str, count: int) -> list[IndexedCapture]:
        """Return the captures of a page nearest to the end of a date, at most `count` on each side."""
        before = self._select("AND key = ? AND datetime <= ? ORDER BY datetime DESC LIMIT ?", key, last, count)
        after = self._select("AND key = ? AND datetime > ? ORDER BY datetime LIMIT ?", key, last, count)
        return before + after

    def find_record(self, capture: Capture) -> IndexedCapture | None:
        """Return the record that a capture names by file and offset; None if it does not exist."""
        where = "AND key = ? AND datetime = ? AND offset = ? AND skip = ?"
        rows = self._select(where, capture.key, capture.datetime, capture.offset, capture.skip or 0)
        return next((each for each in rows if each.capture.filename == capture.filename), None)

    def find_originals(self, capture: Capture, count: int) -> list[IndexedCapture]:
        """Return records that may have the body of a revisit: those that it names, then those with the same digest."""
        named = []
        if capture.revisit_of is not None:
            url, moment = capture.revisit_of
            where = "AND NOT revisit AND key = ? AND datetime = ? ORDER BY uri = ? DESC LIMIT ?"
            with suppress(UriError):
                named = self._select(where, uri.key(url), moment, url, count)
        if capture.digest is None:
            return named
        # Records of the same page first, then earlier ones, the latest first.
        where = "AND NOT revisit AND digest = ? ORDER BY key = ? DESC, datetime <= ? DESC, datetime DESC LIMIT ?"
        return named + self._select(where, capture.digest, capture.key, capture.datetime, count)

    def last_date(self, key: str) -> str | None:
        """Return the date of the last capture of a page."""
        rows = self._select("AND key = ? ORDER BY datetime DESC LIMIT 1", key)
        return rows[0].capture.datetime if rows else None

    def problems(self) -> Problems:
        """Return the problems of all files."""
        with self._open() as connection:
            return read_problems(connection)

    def _select(self, where: str, *values: object) -> list[IndexedCapture]:
        rows, size = [], 0
        with self._open() as connection:
            for row in connection.execute(f"{_SELECT_CAPTURES} {where}", values):
                rows.append(parse_capture_row(row))
                size += len(row[1]) + len(row[3]) + len(row[8] or "")
                if size > _MAX_RESULT_BYTES:
                    break
        return rows

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._database, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()

    @contextmanager
    def _lock(self, stop: Event) -> Iterator[None]:
        """Hold the lock of the only writer, among processes and threads. It is released when the process ends."""

        def wait(seconds: float) -> None:
            if stop.wait(seconds):
                raise IndexingStoppedError

        with self._database.with_name(self._database.name + ".lock").open("ab") as file:
            acquire_lock(file.fileno(), math.inf, wait)
            yield


def _compare_files(connection: sqlite3.Connection, root: Path) -> tuple[list[FileStat], list[int]]:
    """Return the files to read, and the numbers of the files to delete. All file names are held in memory."""
    indexed = {
        path: (number, size, stamp, state)
        for number, path, size, stamp, state in connection.execute("SELECT id, path, size, stamp, state FROM file")
    }
    changed, deleted = [], []
    for file in walk_files(root):
        number, size, stamp, state = indexed.pop(file.path, (None, 0, 0, INCOMPLETE))
        is_same = (file.size, file.changed if state == UNREADABLE else file.modified) == (size, stamp)
        if state == INCOMPLETE or not is_same:
            changed.append(file)
            deleted += [number] if number is not None else []
    return changed, deleted + [number for number, *_ in indexed.values()]
