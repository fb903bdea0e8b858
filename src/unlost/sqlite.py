"""SQLite: transactions, file locks, and state files of long-running work.

A state file is opened by one process at a time, in WAL mode, and changed in batches. Errors of SQLite become
InputError or OSError.
"""

import errno
import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from unlost.errors import InputError

_LOCK_SECONDS = 10.0


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all that is done in the block, or nothing of it. The connection must not begin transactions by itself.

    >>> connection = sqlite3.connect(":memory:", isolation_level=None)
    >>> with transaction(connection):
    ...     _ = connection.execute("CREATE TABLE a (b)")
    >>> connection.execute("SELECT count(*) FROM a").fetchone()
    (0,)
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk ends it by itself
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def lock_file(file: Path) -> Iterator[None]:
    """Lock a file, which is created, while the block runs; the lock ends with the process.

    SQLite does not wait for locks while a file changes to WAL, so processes have to open it one after the other.

    Raises OSError if another process has the lock for long.
    """
    with closing(file.open("ab")) as opened:
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        yield


STATE_FILE_NAME = "state.sqlite"
_MIN_FREE_BYTES = 1 << 16  # bytes that are left of a disk at least, unless it is full: SQLite asks for 32 KB at once
_CACHE_KIB = 32 << 10  # of the file, in memory, however large it is


class StateFile:
    """The file in a folder, with a transaction that is opened by the first change and ended by `commit`.

    So whoever is killed has what was committed. Use it as a context manager. Raises InputError for a file of another
    kind or version, a link in its place, and where another process has it; OSError where the folder cannot be written.

    what: whose state it is, for messages: `a recovery`. prepare: makes the tables, or refuses those that are there.
    """

    def __init__(self, folder: Path, description: str, prepare: Callable[[sqlite3.Connection, Path], None]) -> None:
        self._description = description
        self._prepare = prepare
        self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.connection = self._open(folder)
        except BaseException:
            os.close(self._lock)
            raise
        self._folder = folder

    def _open(self, folder: Path) -> sqlite3.Connection:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = f"{folder}: another process is at work on it: wait for that one, or give another folder by -o"
            raise InputError(message) from None
        file = folder / STATE_FILE_NAME
        for each in (
            file,
            folder / f"{STATE_FILE_NAME}-wal",
            folder / f"{STATE_FILE_NAME}-shm",
            folder / f"{STATE_FILE_NAME}-journal",
        ):
            if each.is_symlink():
                raise InputError(f"{each}: a link, which is not followed: remove it")
        with translate_sqlite_errors(file, self._description):
            connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            try:
                connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
                connection.execute("PRAGMA journal_mode = WAL")
                # A power cut may take the last seconds, which are asked for again; a kill takes nothing.
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA temp_store = MEMORY")
                self._prepare(connection, file)
            except BaseException:
                connection.close()
                raise
        return connection

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Keep what was changed, unless something went wrong meanwhile, and close the file."""
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()

    def begin(self) -> None:
        """Open a transaction, unless there is one: call it before every change."""
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make all changes last. Raises OSError for a full disk; what was committed before is not affected."""
        if self.connection.in_transaction:
            with translate_sqlite_errors(self._folder / STATE_FILE_NAME, self._description):
                self.connection.execute("COMMIT")

    def close(self) -> None:
        """Forget what was not committed, and let others have it."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            self.connection.close()
        finally:
            os.close(self._lock)


def encode_text(value: object) -> object:
    """Return a value as SQLite takes it: a text with bytes that were no UTF-8 is none, and goes as bytes."""
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogatepass")
    return value


def decode_text(value: Any) -> Any:  # noqa: ANN401  whatever stands in a column
    """Return a value as it was before it was made storable."""
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


def require_text(value: object) -> str:
    """Return the same of a text. Raises ValueError for what is none: a state may say anything."""
    found = decode_text(value)
    if not isinstance(found, str):
        raise ValueError("no text")  # noqa: TRY004  one error for bytes that are no text, and for no text
    return found


@contextmanager
def translate_sqlite_errors(file: Path, description: str) -> Iterator[None]:
    """Turn what SQLite says into words about a file. Raises InputError, OSError for a full disk.

    what: whose state it should be, as in StateFile.
    """
    try:
        yield
    except sqlite3.Error as error:
        if isinstance(error, sqlite3.OperationalError):
            raise os_error_of(error, file) from error
        raise InputError(f"{file}: not the state of {description}: {error}") from error


def os_error_of(error: sqlite3.Error, file: Path) -> OSError:
    """Return what the system would have said where SQLite says that a file cannot be written or opened."""
    code = getattr(error, "sqlite_errorcode", 0)
    reason = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_READONLY: errno.EROFS}.get(code & 0xFF)
    if code & 0xFF in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        # It tells what it tried to do, not why that failed: the disk is asked.
        disk = os.statvfs(file.parent)
        if disk.f_flag & os.ST_RDONLY:
            reason = errno.EROFS
        elif code == sqlite3.SQLITE_IOERR_WRITE or disk.f_bavail * disk.f_frsize < _MIN_FREE_BYTES:
            reason = errno.ENOSPC
    if reason is None:
        return OSError(None, str(error), os.fspath(file))
    return OSError(reason, os.strerror(reason), os.fspath(file))


def reject_views_and_triggers(connection: sqlite3.Connection, file: Path, description: str) -> None:
    """Raise InputError for a file in which anything runs that somebody else wrote: views, triggers."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE type NOT IN ('table', 'index')").fetchone():
        raise InputError(f"{file}: not the state of {description}: it has more than tables")


def migrate_schema(connection: sqlite3.Connection, statements: str, version: int) -> None:
    """Bring the tables of a file to a version, all at once. statements: none may have a semicolon within."""
    connection.execute("BEGIN IMMEDIATE")
    for statement in filter(str.strip, statements.split(";")):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute("COMMIT")


def schema_version(connection: sqlite3.Connection) -> int | None:
    """Return the version of a file's tables; None if there are none."""
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    is_new = found == 0 and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return None if is_new else found
