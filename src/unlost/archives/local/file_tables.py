"""The tables of the index of archive files, and what is in a row of them."""

import sqlite3
from typing import Any, NamedTuple

from unlost.formats.capture import Capture
from unlost.formats.problems import Problem, Problems
from unlost.transactions import transaction

INDEX_VERSION = 1
"""Of the tables: an index of another version is made anew."""

INDEXED, INCOMPLETE, NOT_ARCHIVE, UNREADABLE = "indexed", "begun", "other", "unreadable"
"""What the state of a file can be: its rows are there; some of them are; it is no archive file; it cannot be read."""

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
# CROSS JOIN: captures are found first, then their files, whatever SQLite thinks of it.
_INSERT_CAPTURE = f"INSERT INTO capture VALUES ({', '.join('?' * 16)})"  # noqa: S608


class IndexedCapture(NamedTuple):
    """A capture and where its record is.

    place: its key, date and number: where the next page of a list goes on.
    path: of the file, relative to the folder. member: the WARC's name in a WACZ, without `archive/`.
    """

    capture: Capture
    position: tuple[str, str, int]
    path: bytes
    member: str | None


def has_index_tables(connection: sqlite3.Connection) -> bool:
    """Return whether a database has these tables."""
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] == INDEX_VERSION)


def create_index_tables(connection: sqlite3.Connection) -> None:
    """Make the tables, in the place of older ones."""
    with transaction(connection):
        for table in ("file", "capture", "problem"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {INDEX_VERSION}")


def delete_file(connection: sqlite3.Connection, number: int) -> None:
    """Remove a file and all its rows."""
    with transaction(connection):
        connection.execute("DELETE FROM file WHERE id = ?", (number,))
        connection.execute("DELETE FROM problem WHERE file = ?", (number,))
        connection.execute("DELETE FROM capture WHERE file = ?", (number,))


def add_file(connection: sqlite3.Connection, path: bytes, size: int, stamp: int) -> int:
    """Add a file that is begun, and return its number."""
    row = (path, size, stamp, INCOMPLETE)
    number = connection.execute("INSERT INTO file (path, size, stamp, state) VALUES (?, ?, ?, ?)", row).lastrowid
    assert number is not None  # noqa: S101  a row was inserted
    return number


def add_captures(connection: sqlite3.Connection, file: int, captures: list[Capture], in_zip: bool) -> None:
    """Add captures of a file. in_zip: whether their `filename` is that of a member of it."""
    connection.executemany(
        _INSERT_CAPTURE, (_capture_values(file, capture, capture.filename if in_zip else None) for capture in captures)
    )


def finish_file(connection: sqlite3.Connection, file: int, state: str, stamp: int, problems: Problems) -> None:
    """Say what became of a file, and what could not be read of it."""
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
    """Return what could not be read of all files."""
    problems = Problems()
    rows = connection.execute("SELECT kind, count, offset, name, message FROM problem ORDER BY file")
    for kind, count, offset, name, message in rows:
        problems.add(Problem(kind, name, None, offset, message), count)
    return problems


def _escape_surrogates(text: str) -> str:
    """Return a text without what is no text, as file names of any bytes become."""
    return text.encode("utf-8", "backslashreplace").decode()


def _capture_values(file: int, capture: Capture, member: str | None) -> tuple[object, ...]:
    original = capture.revisit_of or (None, None)
    return (
        None, file, capture.key, capture.datetime, capture.uri, capture.status, capture.mime, capture.digest,
        capture.length, capture.redirect, capture.revisit, *original, member, capture.offset, capture.skip or 0,
    )  # fmt: skip


def parse_capture_row(row: tuple[Any, ...]) -> IndexedCapture:
    """Return what a row says that `FIND` found."""
    """Return what a row says that `FIND` found."""
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
        skip=skip or None,
    )
    return IndexedCapture(capture, (key, moment, number), path, member)
