"""SQLite: transactions, file locks, and state files of long-running work.

A state file is opened by one process at a time, in WAL mode, and changed in batches. SQLite errors are converted to
InputError or OSError.
"""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from unlost.errors import InputError
from unlost.file_lock import acquire_lock

_LOCK_SECONDS = 10.0

STATE_FILE_NAME = "state.sqlite"
_MIN_FREE_BYTES = 1 << 16  # a disk with less counts as full: SQLite allocates 32 KB at once
_CACHE_KIB = 32 << 10  # page cache in memory


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the block in a transaction. The connection must be in autocommit mode (`isolation_level=None`).

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
        if connection.in_transaction:  # SQLite rolls back by itself when the disk is full
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def lock_file(file: Path) -> Iterator[None]:
    """Create and lock a file while the block runs; the lock ends with the process.

    SQLite does not wait for locks while it switches to WAL, so processes must open a database one after the other.
    Raises OSError if another process holds the lock for more than `_LOCK_SECONDS`.
    """
    with closing(file.open("ab")) as lock:
        acquire_lock(lock.fileno(), _LOCK_SECONDS)
        yield


class StateFile:
    """The state file of a folder. The first change opens a transaction, which `commit` ends.

    A killed process loses only uncommitted changes. Use it as a context manager.

    Args:
        folder: The folder, which is locked while the file is open.
        description: What the state belongs to, for messages: `a recovery`.
        prepare: Creates the tables, or checks existing ones.

    Raises:
        InputError: The file has another kind or version or is a symbolic link, or another process has it open.
        OSError: The folder is not writable.
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
            acquire_lock(self._lock)
        except OSError:
            message = f"{folder}: another process is at work on it: wait for that one, or give another folder by -o"
            raise InputError(message) from None
        file = folder / STATE_FILE_NAME
        for database_file in (
            file,
            folder / f"{STATE_FILE_NAME}-wal",
            folder / f"{STATE_FILE_NAME}-shm",
            folder / f"{STATE_FILE_NAME}-journal",
        ):
            if database_file.is_symlink():
                raise InputError(f"{database_file}: a link, which is not followed: remove it")
        with translate_sqlite_errors(file, self._description):
            connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            try:
                connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
                connection.execute("PRAGMA journal_mode = WAL")
                # A power failure may lose the last seconds, which are requested again. A kill loses no commit.
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA temp_store = MEMORY")
                self._prepare(connection, file)
            except BaseException:
                connection.close()
                raise
        return connection

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        """Commit, unless an exception occurred, and close the file."""
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()

    def begin(self) -> None:
        """Begin a transaction unless there is one. Call it before every change."""
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit all changes. Raises OSError for a full disk; earlier commits are not affected."""
        if self.connection.in_transaction:
            with translate_sqlite_errors(self._folder / STATE_FILE_NAME, self._description):
                self.connection.execute("COMMIT")

    def close(self) -> None:
        """Roll back uncommitted changes, and release the file."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            self.connection.close()
        finally:
            os.close(self._lock)


def encode_text(value: object) -> object:
    """Return a value that SQLite can store: text with lone surrogates, which UTF-8 cannot encode, becomes bytes."""
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogatepass")
    return value


def decode_text(value: Any) -> Any:  # noqa: ANN401  any column type
    """Reverse `encode_text`."""
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


def require_text(value: object) -> str:
    """Decode a text column. Raises ValueError for other types, since a state file is untrusted."""
    text = decode_text(value)
    if not isinstance(text, str):
        raise ValueError("no text")  # noqa: TRY004  the same error as for invalid bytes
    return text


@contextmanager
def translate_sqlite_errors(file: Path, description: str) -> Iterator[None]:
    """Convert SQLite errors to InputError, or OSError for a full disk.

    Args:
        file: The database.
        description: As in StateFile.
    """
    try:
        yield
    except sqlite3.Error as error:
        if isinstance(error, sqlite3.OperationalError):
            raise os_error_of(error, file) from error
        raise InputError(f"{file}: not the state of {description}: {error}") from error


def os_error_of(error: sqlite3.Error, file: Path) -> OSError:
    """Return the OSError that corresponds to an SQLite error when opening or writing a file."""
    code = getattr(error, "sqlite_errorcode", 0)
    reason = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_READONLY: errno.EROFS}.get(code & 0xFF)
    if code & 0xFF in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        # SQLite reports the failed operation, not the reason (`disk I/O error`, `unable to open database file`).
        disk = os.statvfs(file.parent)
        if disk.f_flag & os.ST_RDONLY:
            reason = errno.EROFS
        elif code == sqlite3.SQLITE_IOERR_WRITE or disk.f_bavail * disk.f_frsize < _MIN_FREE_BYTES:
            reason = errno.ENOSPC
    if reason is None:
        return OSError(None, str(error), os.fspath(file))
    return OSError(reason, os.strerror(reason), os.fspath(file))


def reject_views_and_triggers(connection: sqlite3.Connection, file: Path, description: str) -> None:
    """Raise InputError if an untrusted database contains views or triggers, whose SQL would run with each query."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE type NOT IN ('table', 'index')").fetchone():
        raise InputError(f"{file}: not the state of {description}: it has more than tables")


def migrate_schema(connection: sqlite3.Connection, statements: str, version: int) -> None:
    """Migrate the schema to a version, in one transaction.

    Args:
        connection: The database.
        statements: SQL, separated by semicolons, which no statement may contain.
        version: The new schema version.
    """
    connection.execute("BEGIN IMMEDIATE")
    for statement in filter(str.strip, statements.split(";")):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute("COMMIT")


def schema_version(connection: sqlite3.Connection) -> int | None:
    """Return the schema version of a database; None if it is empty."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    is_new = version == 0 and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return None if is_new else version
