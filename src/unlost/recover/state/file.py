"""The SQLite file of a recovery: opened safely, by one process at a time, changed in batches."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unlost.errors import InputError

VERSION = 2
"""Of the tables. Files of version 1, which know neither rejected copies nor candidates, are brought to it when they are
opened."""

NAME = "state.sqlite"

_CACHE_KIB = 32 << 10  # of the file, in memory, however large it is
_SCHEMA = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE listing (
    archive TEXT NOT NULL, prefix TEXT NOT NULL, outcome TEXT, captures INTEGER NOT NULL DEFAULT 0, message TEXT,
    until REAL, PRIMARY KEY (archive, prefix)
) WITHOUT ROWID;
CREATE TABLE resource (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, folded TEXT NOT NULL, uri TEXT NOT NULL, use TEXT NOT NULL,
    standing TEXT NOT NULL, hops INTEGER NOT NULL, uses INTEGER NOT NULL DEFAULT 0, rank INTEGER NOT NULL DEFAULT 0,
    near TEXT, archive TEXT, record INTEGER, reason TEXT, changed TEXT
);
CREATE INDEX resource_folded ON resource (folded);
CREATE INDEX resource_turn ON resource (archive, rank, id) WHERE standing = 'queued';
CREATE INDEX resource_standing ON resource (standing);
CREATE TABLE alias (name TEXT PRIMARY KEY, resource INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE link (source INTEGER NOT NULL, target INTEGER NOT NULL, PRIMARY KEY (source, target)) WITHOUT ROWID;
CREATE INDEX link_target ON link (target);
CREATE TABLE capture (
    id INTEGER PRIMARY KEY, resource INTEGER NOT NULL, archive TEXT NOT NULL, datetime TEXT NOT NULL, uri TEXT NOT NULL,
    status INTEGER, mime TEXT, digest TEXT, length INTEGER, redirect TEXT, urim TEXT, migrated INTEGER,
    revisit INTEGER NOT NULL, revisit_uri TEXT, revisit_datetime TEXT, filename TEXT, offset INTEGER, skip INTEGER,
    outcome TEXT, UNIQUE (resource, archive, datetime, uri)
);
CREATE TABLE asked (
    resource INTEGER NOT NULL, archive TEXT NOT NULL, outcome TEXT NOT NULL, PRIMARY KEY (resource, archive)
) WITHOUT ROWID;
CREATE TABLE record (
    id INTEGER PRIMARY KEY, resource INTEGER NOT NULL, worth INTEGER NOT NULL, listed_digest TEXT, file TEXT NOT NULL,
    offset INTEGER NOT NULL, size INTEGER NOT NULL, data TEXT NOT NULL, UNIQUE (file, offset)
);
CREATE INDEX record_resource ON record (resource);
CREATE INDEX record_digest ON record (listed_digest) WHERE listed_digest IS NOT NULL;
"""
_SINCE_1 = """
CREATE TABLE rejected (
    record INTEGER PRIMARY KEY, worth INTEGER NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL
);
CREATE TABLE candidate (
    name TEXT NOT NULL UNIQUE, folded TEXT NOT NULL, uri TEXT NOT NULL, use TEXT NOT NULL, hops INTEGER NOT NULL,
    near TEXT, wanted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX candidate_folded ON candidate (folded);
"""


class StateFile:
    """The file, with a transaction that is opened by the first change and ended by `commit`.

    So whoever is killed has what was committed. Raises InputError for a file of another kind or version, a link in its
    place, and where another process has it; OSError where the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.connection = self._opened(folder)
        except BaseException:
            os.close(self._lock)
            raise
        self._folder = folder

    def _opened(self, folder: Path) -> sqlite3.Connection:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = f"{folder}: another process is at work on it: wait for that one, or give another folder by -o"
            raise InputError(message) from None
        file = folder / NAME
        for each in (file, folder / f"{NAME}-wal", folder / f"{NAME}-shm", folder / f"{NAME}-journal"):
            if each.is_symlink():
                raise InputError(f"{each}: a link, which is not followed: remove it")
        with explained(file):
            connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            try:
                _prepare(connection, file)
            except BaseException:
                connection.close()
                raise
        return connection

    def begin(self) -> None:
        """Open a transaction, unless there is one: call it before every change."""
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make all changes last. Raises OSError for a full disk; what was committed before is not affected."""
        if self.connection.in_transaction:
            with explained(self._folder / NAME):
                self.connection.execute("COMMIT")

    def close(self) -> None:
        """Forget what was not committed, and let others have it."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            self.connection.close()
        finally:
            os.close(self._lock)


def storable(value: object) -> object:
    """Return a value as SQLite takes it: a text with bytes that were no UTF-8 is none, and goes as bytes."""
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogatepass")
    return value


def text_of(value: Any) -> Any:  # noqa: ANN401  whatever stands in a column
    """Return a value as it was before it was made storable."""
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


def certain_text(value: object) -> str:
    """Return the same of a text. Raises ValueError for what is none: a state may say anything."""
    found = text_of(value)
    if not isinstance(found, str):
        raise ValueError("no text")  # noqa: TRY004  one error for bytes that are no text, and for no text
    return found


@contextmanager
def explained(file: Path) -> Iterator[None]:
    """Turn what SQLite says into words about a file. Raises InputError, OSError for a full disk."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE):
            import errno  # noqa: PLC0415  rare

            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(file)) from error
        if isinstance(error, sqlite3.OperationalError):
            raise OSError(None, str(error), os.fspath(file)) from error
        raise InputError(f"{file}: not the state of a recovery: {error}") from error


def check_tables(connection: sqlite3.Connection, file: Path) -> None:
    """Raise InputError for a file in which anything runs that somebody else wrote: views, triggers."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE type NOT IN ('table', 'index')").fetchone():
        raise InputError(f"{file}: not the state of a recovery: it has more than tables")


def _prepare(connection: sqlite3.Connection, file: Path) -> None:
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute("PRAGMA journal_mode = WAL")
    # A power cut may take the last seconds, which are asked for again; a kill takes nothing.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA temp_store = MEMORY")
    check_tables(connection, file)
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found == 0 and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        _change(connection, _SCHEMA + _SINCE_1)
    elif found == 1:
        _change(connection, _SINCE_1)
    elif found != VERSION:
        raise InputError(f"{file}: expected the state of a recovery in version {VERSION}, found {found}")


def _change(connection: sqlite3.Connection, statements: str) -> None:
    """Bring the tables to this version, all at once."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in filter(str.strip, statements.split(";")):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
