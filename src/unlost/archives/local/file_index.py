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

from unlost import uri
from unlost.archives.local.file_reading import IndexingStoppedError, index_file
from unlost.archives.local.file_tables import (
    INCOMPLETE,
    _SELECT_CAPTURES,
    UNREADABLE,
    IndexedCapture,
    create_index_tables,
    delete_file,
    parse_capture_row,
    has_index_tables,
    read_problems,
)
from unlost.archives.local.file_walk import FileStat, walk_files
from unlost.errors import UriError
from unlost.formats.capture import Capture
from unlost.formats.problems import Problems

_BUSY_SECONDS = 60.0  # others write for moments only
_LOCK_POLL_SECONDS = 0.05
_CACHE_KB = 32 << 10  # of the one who writes: keys come in no order, and each may touch another page
_MAX_RESULT_BYTES = 4 << 20  # of the texts in an answer: beyond them it ends, since addresses may have megabytes


class WarcFileIndex:
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
            if not has_index_tables(connection):
                return False
            changed, vanished = _compare_files(connection, self.root)
            return not changed and not vanished

    def update(self, stop: Event, on_file: Callable[[str], object] | None = None) -> None:
        """Bring the index up to date: files that are new or changed are read, those that vanished are left out.

        stop: when it is set, StoppedError is raised soon; what was finished is kept. on_file: is told which file is
        read. Raises OSError and sqlite3.Error if the folder cannot be read or the database cannot be written.
        """
        self._database.parent.mkdir(parents=True, exist_ok=True)
        with self._lock(stop), self._open() as connection:
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
            if not has_index_tables(connection):
                create_index_tables(connection)
            changed, vanished = _compare_files(connection, self.root)
            for number in vanished:
                delete_file(connection, number)
            for file in changed:
                if on_file is not None:
                    on_file(file.path.decode("utf-8", "backslashreplace"))
                path = self.root if self.root.is_file() else self.root / os.fsdecode(file.path)
                index_file(connection, path, file, stop)

    def remove(self) -> None:
        """Remove the database, as one that is damaged."""
        for path in (self._database, self._database.with_name(self._database.name + "-journal")):
            path.unlink(missing_ok=True)

    def captures_between(
        self, low: str, high: str, dates: tuple[str, str], after: tuple[str, str, int] | None, count: int
    ) -> list[IndexedCapture]:
        """Return captures from one key to before another, from a date to a date, by key and date: so many at most.

        after: the last one's place, to go on behind it. It may be fewer than `count` although more follow; none only
        at the end.
        """
        where = "AND (key, datetime, capture.id) > (?, ?, ?) AND key < ? AND datetime BETWEEN ? AND ?"
        begin = (low, "", 0) if after is None else after
        return self._select(f"{where} ORDER BY key, datetime, capture.id LIMIT ?", *begin, high, *dates, count)

    def captures_near(self, key: str, last: str, count: int) -> list[IndexedCapture]:
        """Return the captures of a page on both sides of the end of a date, the nearest so many of each side."""
        before = self._select("AND key = ? AND datetime <= ? ORDER BY datetime DESC LIMIT ?", key, last, count)
        after = self._select("AND key = ? AND datetime > ? ORDER BY datetime LIMIT ?", key, last, count)
        return before + after

    def find_record(self, capture: Capture) -> IndexedCapture | None:
        """Return the record that a capture speaks of by name and offset; None if it is not there."""
        where = "AND key = ? AND datetime = ? AND offset = ? AND skip = ?"
        found = self._select(where, capture.key, capture.datetime, capture.offset, capture.skip or 0)
        return next((each for each in found if each.capture.filename == capture.filename), None)

    def find_originals(self, capture: Capture, count: int) -> list[IndexedCapture]:
        """Return records that have the body of a revisit: those that it names, then those of the same digest."""
        named = []
        if capture.revisit_of is not None:
            address, moment = capture.revisit_of
            where = "AND NOT revisit AND key = ? AND datetime = ? ORDER BY uri = ? DESC LIMIT ?"
            with suppress(UriError):
                named = self._select(where, uri.key(address), moment, address, count)
        if capture.digest is None:
            return named
        # The same page before another one, and what was there by then, the latest first.
        where = "AND NOT revisit AND digest = ? ORDER BY key = ? DESC, datetime <= ? DESC, datetime DESC LIMIT ?"
        return named + self._select(where, capture.digest, capture.key, capture.datetime, count)

    def last_date(self, key: str) -> str | None:
        """Return the date of the last capture of a page."""
        found = self._select("AND key = ? ORDER BY datetime DESC LIMIT 1", key)
        return found[0].capture.datetime if found else None

    def problems(self) -> Problems:
        """Return what could not be read of all the files."""
        with self._open() as connection:
            return read_problems(connection)

    def _select(self, where: str, *values: object) -> list[IndexedCapture]:
        rows, held = [], 0
        with self._open() as connection:
            for row in connection.execute(f"{_SELECT_CAPTURES} {where}", values):
                rows.append(parse_capture_row(row))
                held += len(row[1]) + len(row[3]) + len(row[8] or "")
                if held > _MAX_RESULT_BYTES:
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
        """Be the one process, and the one thread of it, that writes. The lock goes with the process."""
        with self._database.with_name(self._database.name + ".lock").open("ab") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if stop.wait(_LOCK_POLL_SECONDS):
                        raise IndexingStoppedError from None
            yield


def _compare_files(connection: sqlite3.Connection, root: Path) -> tuple[list[FileStat], list[int]]:
    """Return which files are to be read, and the numbers of those whose rows are to go; memory is for their names."""
    known = {
        path: (number, size, stamp, state)
        for number, path, size, stamp, state in connection.execute("SELECT id, path, size, stamp, state FROM file")
    }
    changed, vanished = [], []
    for file in walk_files(root):
        number, size, stamp, state = known.pop(file.path, (None, 0, 0, INCOMPLETE))
        is_same = (file.size, file.changed if state == UNREADABLE else file.modified) == (size, stamp)
        if state == INCOMPLETE or not is_same:
            changed.append(file)
            vanished += [number] if number is not None else []
    return changed, vanished + [number for number, *_ in known.values()]
