"""The index of a folder of archive files: an SQLite file in which captures are found by key, date or digest.

Each call opens the database for itself, so calls may come from any thread. Other processes may read while one writes:
rows become visible with their whole file, in transactions of a moment each.
"""

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

from unlost import uri
from unlost.archives.file_walk import FoundFile, walk
from unlost.errors import InputError, UriError
from unlost.formats.capture import Capture
from unlost.formats.problems import Problem, Problems
from unlost.formats.warcindex import is_archive, read_archive

_VERSION = 1
"""Of the tables: an index of another version is made anew."""

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
_FROM = f"SELECT {_COLUMNS} FROM capture CROSS JOIN file ON file.id = capture.file WHERE state <> 'begun'"  # noqa: S608
# CROSS JOIN: captures are found first, then their files, whatever SQLite thinks of it.
_INSERT = f"INSERT INTO capture VALUES ({', '.join('?' * 16)})"  # noqa: S608

# What the state of a file can be: rows of it are there; some are; it holds no captures by its form; it cannot be read.
_INDEXED, _BEGUN, _OTHER, _UNREADABLE = "indexed", "begun", "other", "unreadable"

_BUSY_SECONDS = 60.0  # others write for moments only
_LOCK_POLL_SECONDS = 0.05
_BATCH_ROWS = 5_000
_BATCH_BYTES = 4 << 20
_ROW_BYTES = 400  # of a row without its texts of any length


class StoppedError(Exception):
    """Whoever asked for an update does not want it any more."""


class Found(NamedTuple):
    """A capture and where its record is.

    place: its key, date and number: where the next page of a list goes on.
    path: of the file, relative to the folder. member: the WARC's name in a WACZ, without `archive/`.
    """

    capture: Capture
    place: tuple[str, str, int]
    path: bytes
    member: str | None


class FileIndex:
    """The captures of all archive files below a folder, or of one file.

    database: the SQLite file; its folder is made if need be. Beside it lies a file that is locked while one process
    brings the index up to date.
    """

    def __init__(self, root: Path, database: Path) -> None:
        self.root = root
        self._database = database

    def is_current(self) -> bool:
        """Return whether the files are those that are indexed. Raises OSError if the folder cannot be read."""
        if not self._database.exists():
            return False
        with self._open() as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                return False
            changed, vanished = _compared(connection, self.root)
            return not changed and not vanished

    def update(self, stop: Event, on_file: Callable[[str], object] | None = None) -> None:
        """Bring the index up to date: files that are new or changed are read, those that vanished are left out.

        stop: when it is set, StoppedError is raised soon; what was finished is kept. on_file: is told which file is
        read. Raises OSError and sqlite3.Error if the folder cannot be read or the database cannot be written.
        """
        self._database.parent.mkdir(parents=True, exist_ok=True)
        with self._lock(stop), self._open() as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                _create(connection)
            changed, vanished = _compared(connection, self.root)
            for number in vanished:
                _forget(connection, number)
            for file in changed:
                if on_file is not None:
                    on_file(file.path.decode("utf-8", "backslashreplace"))
                self._read(connection, file, stop)

    def remove(self) -> None:
        """Remove the database, as one that is damaged."""
        for path in (self._database, self._database.with_name(self._database.name + "-journal")):
            path.unlink(missing_ok=True)

    def page(
        self, low: str, high: str, dates: tuple[str, str], after: tuple[str, str, int] | None, count: int
    ) -> list[Found]:
        """Return captures from one key to before another, from a date to a date, by key and date: so many at most.

        after: the last one's place, to go on behind it. It may be fewer than `count` although more follow; none only
        at the end.
        """
        where = "AND (key, datetime, capture.id) > (?, ?, ?) AND key < ? AND datetime BETWEEN ? AND ?"
        begin = (low, "", 0) if after is None else after
        return self._found(f"{where} ORDER BY key, datetime, capture.id LIMIT ?", *begin, high, *dates, count)

    def nearest(self, key: str, last: str, count: int) -> list[Found]:
        """Return the captures of a page on both sides of the end of a date, the nearest so many of each side."""
        before = self._found("AND key = ? AND datetime <= ? ORDER BY datetime DESC LIMIT ?", key, last, count)
        after = self._found("AND key = ? AND datetime > ? ORDER BY datetime LIMIT ?", key, last, count)
        return before + after

    def at(self, capture: Capture) -> Found | None:
        """Return the record that a capture speaks of by name and offset; None if it is not there."""
        where = "AND key = ? AND datetime = ? AND offset = ? AND skip = ?"
        found = self._found(where, capture.key, capture.datetime, capture.offset, capture.skip)
        return next((each for each in found if each.capture.filename == capture.filename), None)

    def originals(self, capture: Capture, count: int) -> list[Found]:
        """Return records that have the body of a revisit: those that it names, then those of the same digest."""
        named = []
        if capture.revisit_of is not None:
            address, moment = capture.revisit_of
            where = "AND NOT revisit AND key = ? AND datetime = ? ORDER BY uri = ? DESC LIMIT ?"
            with suppress(UriError):
                named = self._found(where, uri.key(address), moment, address, count)
        if capture.digest is None:
            return named
        # The same page before another one, and what was there by then, the latest first.
        where = "AND NOT revisit AND digest = ? ORDER BY key = ? DESC, datetime <= ? DESC, datetime DESC LIMIT ?"
        return named + self._found(where, capture.digest, capture.key, capture.datetime, count)

    def last_date(self, key: str) -> str | None:
        """Return the date of the last capture of a page."""
        found = self._found("AND key = ? ORDER BY datetime DESC LIMIT 1", key)
        return found[0].capture.datetime if found else None

    def problems(self) -> Problems:
        """Return what could not be read of all the files."""
        problems = Problems()
        with self._open() as connection:
            for kind, count, offset, name, message in connection.execute(
                "SELECT kind, count, offset, name, message FROM problem ORDER BY file"
            ):
                problems.add(Problem(kind, name, None, offset, message), count)
        return problems

    def _found(self, where: str, *values: object) -> list[Found]:
        found, held = [], 0
        with self._open() as connection:
            for row in connection.execute(f"{_FROM} {where}", values):
                found.append(_found(row))
                held += len(row[1]) + len(row[3]) + len(row[8] or "")
                if held > _BATCH_BYTES:
                    break
        return found

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._database, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()

    @contextmanager
    def _lock(self, stop: Event) -> Iterator[None]:
        """Be the one process, and the one thread of it, that writes. The lock goes with the process."""
        with self._database.with_name(self._database.name + ".lock").open("ab") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if stop.wait(_LOCK_POLL_SECONDS):
                        raise StoppedError from None
            yield

    def _read(self, connection: sqlite3.Connection, file: FoundFile, stop: Event) -> None:
        """Index a file anew."""
        path = self.root if self.root.is_file() else self.root / os.fsdecode(file.path)
        problems = Problems()
        row = (file.path, file.size, file.modified, _BEGUN)
        number = connection.execute("INSERT INTO file (path, size, stamp, state) VALUES (?, ?, ?, ?)", row).lastrowid
        state, stamp = _INDEXED, file.modified
        try:
            if is_archive(path):
                captures = read_archive(path, problems, on_read=lambda _: _check(stop))
                _insert(connection, number, captures, _is_zip(path), stop)
            else:
                state = _OTHER
        except InputError as error:
            # Not known by its contents, but by who may read it: that changes without them.
            state, stamp = _UNREADABLE, file.changed
            problems.add(Problem("unreadable", str(path), None, 0, str(error).removeprefix(f"{path}: ")))
        first = problems.first
        with _transaction(connection):
            connection.executemany(
                "INSERT INTO problem VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (number, kind, count, first[kind].offset, *map(_writable, (first[kind].file, first[kind].message)))
                    for kind, count in problems.counts.items()
                ],
            )
            connection.execute("UPDATE file SET state = ?, stamp = ? WHERE id = ?", (state, stamp, number))


def _check(stop: Event) -> None:
    if stop.is_set():
        raise StoppedError


def _compared(connection: sqlite3.Connection, root: Path) -> tuple[list[FoundFile], list[int]]:
    """Return which files are to be read, and the numbers of those whose rows are to go; memory is for their names."""
    known = {
        path: (number, size, stamp, state)
        for number, path, size, stamp, state in connection.execute("SELECT id, path, size, stamp, state FROM file")
    }
    changed, vanished = [], []
    for file in walk(root):
        number, size, stamp, state = known.pop(file.path, (None, 0, 0, _BEGUN))
        is_same = (file.size, file.changed if state == _UNREADABLE else file.modified) == (size, stamp)
        if state == _BEGUN or not is_same:
            changed.append(file)
            vanished += [number] if number is not None else []
    return changed, vanished + [number for number, *_ in known.values()]


def _create(connection: sqlite3.Connection) -> None:
    with _transaction(connection):
        for table in ("file", "capture", "problem"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {_VERSION}")


def _forget(connection: sqlite3.Connection, number: int) -> None:
    with _transaction(connection):
        connection.execute("DELETE FROM file WHERE id = ?", (number,))
        connection.execute("DELETE FROM problem WHERE file = ?", (number,))
        connection.execute("DELETE FROM capture WHERE file = ?", (number,))


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"PK"


def _insert(
    connection: sqlite3.Connection, file: int | None, captures: Iterator[Capture], in_zip: bool, stop: Event
) -> None:
    batch: list[tuple[object, ...]] = []
    held = 0
    for capture in captures:
        if capture.key is None:
            continue  # `dns:` and the like are no pages; what is broken was counted as a problem
        batch.append(_row(file, capture, capture.filename if in_zip else None))
        held += _ROW_BYTES + len(capture.key) + len(capture.uri) + len(capture.redirect or "")
        if len(batch) >= _BATCH_ROWS or held >= _BATCH_BYTES:
            _check(stop)
            with _transaction(connection):
                connection.executemany(_INSERT, batch)
            batch, held = [], 0
    with _transaction(connection):
        connection.executemany(_INSERT, batch)


def _writable(text: str) -> str:
    """Return a text without what is no text, as file names of any bytes become."""
    return text.encode("utf-8", "backslashreplace").decode()


def _row(file: int | None, capture: Capture, member: str | None) -> tuple[object, ...]:
    original = capture.revisit_of or (None, None)
    return (
        None, file, capture.key, capture.datetime, capture.uri, capture.status, capture.mime, capture.digest,
        capture.length, capture.redirect, capture.revisit, *original, member, capture.offset, capture.skip,
    )  # fmt: skip


def _found(row: tuple[Any, ...]) -> Found:
    (number, key, moment, address, status, mime, digest, length, redirect, revisit) = row[:10]
    (of_address, of_moment, member, offset, skip, path) = row[10:]
    name = path.decode("utf-8", "backslashreplace")
    capture = Capture(
        uri=address,
        key=key,
        datetime=moment,
        status=status,
        mime=mime,
        digest=digest,
        length=length,
        redirect=redirect,
        revisit=bool(revisit),
        revisit_of=(of_address, of_moment) if of_address is not None else None,
        filename=name if member is None else f"{name}/archive/{member}",
        offset=offset,
        skip=skip,
    )
    return Found(capture, (key, moment, number), path, member)
