"""Reads one archive file into the index: all its captures, and what could not be read of it."""

import sqlite3
from pathlib import Path
from threading import Event

from unlost.archives.local import file_tables
from unlost.archives.local.file_walk import FileStat
from unlost.errors import InputError
from unlost.formats.capture import Capture
from unlost.formats.problems import Problem, Problems
from unlost.formats.warcindex import is_archive_file, read_archive_captures
from unlost.transactions import transaction

_BATCH_ROWS = 5_000
_BATCH_BYTES = 4 << 20
_ROW_BYTES = 400  # of a row without its texts of any length


class IndexingStoppedError(Exception):
    """Whoever asked for an update does not want it any more."""


def index_file(connection: sqlite3.Connection, path: Path, file: FileStat, stop: Event) -> None:
    """Index a file that is not in the index. Raises StoppedError, sqlite3.Error.

    A small one takes one transaction, since each of them waits for the disk; of a large one the rows come in batches,
    which are not seen before its end.
    """

    def check(_: int = 0) -> None:
        if stop.is_set():
            raise IndexingStoppedError

    check()
    rows = _CaptureBatchWriter(connection, file, _is_zip(path))
    problems = Problems()
    state, stamp = file_tables.INDEXED, file.modified
    try:
        if is_archive_file(path):
            for capture in read_archive_captures(path, problems, on_read=check):
                rows.add(capture)
        else:
            state = file_tables.NOT_ARCHIVE
    except InputError as error:
        # What was read is kept. It is known again not by its contents, but by who may read it: that changes without.
        state, stamp = file_tables.UNREADABLE, file.changed
        problems.add(Problem("unreadable", str(path), None, 0, str(error).removeprefix(f"{path}: ")))
    rows.finish(state, stamp, problems)


def _is_zip(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"PK"
    except OSError:
        return False  # whoever reads it says why it cannot be


class _CaptureBatchWriter:
    """The rows of a file on their way into the database."""

    def __init__(self, connection: sqlite3.Connection, file: FileStat, in_zip: bool) -> None:
        self._connection = connection
        self._file = file
        self._in_zip = in_zip
        self._number: int | None = None
        self._batch: list[Capture] = []
        self._batch_bytes = 0

    def add(self, capture: Capture) -> None:
        if capture.key is None:
            return  # `dns:` and the like are no pages; what is broken was counted as a problem
        self._batch.append(capture)
        self._batch_bytes += _ROW_BYTES + len(capture.key) + len(capture.uri) + len(capture.redirect or "")
        if len(self._batch) >= _BATCH_ROWS or self._batch_bytes >= _BATCH_BYTES:
            with transaction(self._connection):
                self._write()

    def finish(self, state: str, stamp: int, problems: Problems) -> None:
        with transaction(self._connection):
            file_tables.finish_file(self._connection, self._write(), state, stamp, problems)

    def _write(self) -> int:
        """Write the batch, and return the file's number."""
        if self._number is None:
            file = self._file
            self._number = file_tables.add_file(self._connection, file.path, file.size, file.modified)
        file_tables.add_captures(self._connection, self._number, self._batch, self._in_zip)
        self._batch, self._batch_bytes = [], 0
        return self._number
