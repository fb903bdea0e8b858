"""The job database: SQLite in a file, or PostgreSQL. Each change is one transaction."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url

from unlost.clock import Clock, SystemClock
from unlost.errors import DatabaseError, InputError, UsageError
from unlost.jobs import migrations
from unlost.sqlite import lock_file

T = TypeVar("T")

_BUSY_SECONDS = 30.0  # maximum wait for SQLite's single writer; a change takes about a millisecond
# Pauses between attempts to become SQLite's writer. SQLite's own pauses grow to 0.1 s, which would delay the response
# to an order. Workers, whose databases are not durable, wait longer between attempts, since no client waits for them.
_RETRY_SECONDS, _WORKER_RETRY_SECONDS = 0.0005, 0.004
_SET_BUSY_TIMEOUT = f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000:.0f}"
_OPTIMISTIC_TRIES = 4  # attempts to write without the write lock, before it is taken
_CONNECT_SECONDS = 10
_POOL_SIZE = 10  # connections of one process
_IDLE_MS = 60_000  # PostgreSQL ends a transaction that was idle for this long: its process was suspended
_STATEMENT_MS = 60_000  # PostgreSQL cancels a statement that takes longer


def file_url(file: Path) -> str:
    """Return the URL of a SQLite database file."""
    return f"sqlite:///{file.absolute()}"


class Database:
    """A connection pool for one database, shared by all threads of a process.

    Methods raise `InputError` if the tables belong to a newer version of unlost, and `DatabaseError` if the database
    cannot be reached or written; then nothing was changed.

    Args:
        url: `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`. The password never appears in messages.
        clock: Source of time. By default the clock of the PostgreSQL server, so that all workers agree; with SQLite the
            system clock.
        is_durable: For SQLite, whether a commit survives a power failure. Workers do without: work that is lost is
            repeated from the job's folders.

    Raises:
        UsageError: The URL is invalid, or the PostgreSQL driver is missing.
    """

    def __init__(self, url: str, clock: Clock | None = None, *, is_durable: bool = True) -> None:
        database_url = _parse_url(url)
        self.is_shared = database_url.get_backend_name() == "postgresql"
        """Whether processes on other machines may use the database."""
        self._name = database_url.render_as_string(hide_password=True)
        self._clock = clock if clock is not None or self.is_shared else SystemClock()
        self._retry_seconds = _RETRY_SECONDS if is_durable else _WORKER_RETRY_SECONDS
        self._writer_lock = nullcontext() if self.is_shared else _WriterLock()
        try:
            self._engine = (
                _create_postgresql_engine(database_url)
                if self.is_shared
                else _create_sqlite_engine(database_url, self._retry_seconds, is_durable=is_durable)
            )
        except ImportError:
            message = "PostgreSQL needs a driver: install unlost with its extra, `pip install unlost[postgresql]`"
            raise UsageError(message) from None

    def __repr__(self) -> str:
        """Return the URL without its password."""
        return f"Database({self._name})"

    def prepare(self) -> None:
        """Create the tables, or upgrade them to the current schema."""
        with self.writing() as connection:
            migrations.upgrade(connection)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a read-write transaction. With SQLite, it holds the write lock from its start."""
        with self._writer_lock, self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def lock_names(self, connection: Connection, *names: str) -> None:
        """Lock names until the transaction ends, so that counts are exact.

        Under PostgreSQL's isolation level READ COMMITTED, two transactions could otherwise both count themselves as the
        last one within a limit. A transaction that waited sees what the previous holder has written. SQLite has a
        single writer, so there is nothing to do.
        """
        if self.is_shared:
            numbers = {int.from_bytes(sha256(name.encode()).digest()[:8], "big", signed=True) for name in names}
            for number in sorted(numbers):  # in sorted order, so that transactions do not deadlock
                connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run a function in a read-write transaction and return its result.

        With SQLite the function first runs without the write lock, and is repeated if another transaction wrote in the
        meantime: reads and computations before its first write block no other writer. It must have no side effects
        outside of the database.
        """
        for _ in range(0 if self.is_shared else _OPTIMISTIC_TRIES):
            try:
                with self._writer_lock, self._transaction("BEGIN") as connection:
                    # A transaction that had to wait for another writer would work on outdated data.
                    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
                    try:
                        return work(connection)
                    finally:
                        connection.exec_driver_sql(_SET_BUSY_TIMEOUT)
            except DatabaseError as error:
                if not _is_busy(error.__cause__):
                    raise
            time.sleep(self._retry_seconds)
        with self.writing() as connection:
            return work(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a read-only transaction. It does not block others."""
        with self._transaction("BEGIN") as connection:
            yield connection

    def now(self, connection: Connection) -> float:
        """Return the time of the database's clock, in seconds since 1970."""
        if self._clock is not None:
            return self._clock.now()
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())

    def checkpoint(self, *, truncates: bool = False) -> None:
        """Copy committed changes from SQLite's write-ahead log to the database file.

        Readers and writers are not blocked. A process that keeps a durable database open must call this regularly, or
        the log grows.

        Args:
            truncates: Also empty the log if no other connection uses it, so that removed data does not remain there.
        """
        if not self.is_shared:
            with self._translate_errors(), closing(self._engine.raw_connection()) as connection:
                cursor = connection.cursor()
                if not truncates:
                    cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
                    return
                cursor.execute("PRAGMA busy_timeout = 0")
                try:
                    cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                finally:
                    cursor.execute(_SET_BUSY_TIMEOUT)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with self._translate_errors(), self._engine.connect() as plain:
            connection = plain.execution_options(unlost_begin=begin)
            with connection.begin():
                yield connection

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlalchemy.exc.OperationalError, sqlalchemy.exc.InterfaceError, sqlalchemy.exc.TimeoutError) as error:
            reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
            raise DatabaseError(f"{self._name}: {reason[:300]}") from error
        except sqlalchemy.exc.DatabaseError as error:
            reason = str(error.orig).strip().partition("\n")[0]
            raise InputError(f"{self._name}: not the database of jobs, or a damaged one: {reason[:300]}") from error


def _parse_url(url: str) -> URL:
    expected = "expected postgresql://USER:PASSWORD@HOST/NAME or sqlite:///FILE"
    try:
        database_url = make_url(url)
        backend = database_url.get_backend_name()
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise UsageError(f"the database's address is none: {expected}") from None
    if backend not in ("sqlite", "postgresql") or not database_url.database or database_url.database == ":memory:":
        raise UsageError(f"the database's address names none: {expected}")
    if database_url.drivername == "postgresql":
        return database_url.set(drivername="postgresql+psycopg")
    return database_url


def _create_postgresql_engine(database_url: URL) -> Engine:
    # A worker that is suspended during a change must not lock a job forever.
    options = f"-c statement_timeout={_STATEMENT_MS} -c idle_in_transaction_session_timeout={_IDLE_MS}"
    # With these, a broken network is noticed within about 30 s instead of hours.
    keepalive = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
    arguments = {"connect_timeout": _CONNECT_SECONDS, "options": options, **keepalive}
    return create_engine(
        database_url, pool_pre_ping=True, pool_size=_POOL_SIZE, max_overflow=_POOL_SIZE, connect_args=arguments,
        isolation_level="READ COMMITTED", hide_parameters=True,
    )  # fmt: skip


def _create_sqlite_engine(database_url: URL, retry_seconds: float, *, is_durable: bool) -> Engine:
    def configure(connection: sqlite3.Connection, _: Any) -> None:  # noqa: ANN401  what SQLAlchemy passes
        # Python's own transaction handling would begin transactions too late, and as DEFERRED.
        connection.isolation_level = None
        try:
            # SQLite does not wait for locks while a file changes to WAL mode, so processes open it one at a time.
            with lock_file(Path(f"{database_url.database}.lock")):
                connection.execute("PRAGMA journal_mode = WAL")
        except OSError as error:
            raise sqlite3.OperationalError(error.strerror) from error
        connection.execute("PRAGMA secure_delete = ON")  # removed names and email addresses are overwritten
        connection.execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")
        if is_durable:
            connection.execute("PRAGMA wal_autocheckpoint = 0")  # `checkpoint` does it, so that no order waits for it

    engine = create_engine(
        database_url, pool_size=_POOL_SIZE, max_overflow=_POOL_SIZE, connect_args={"timeout": _BUSY_SECONDS},
        hide_parameters=True,
    )  # fmt: skip
    event.listen(engine, "connect", configure)
    event.listen(engine, "begin", lambda connection: _begin_transaction(connection, retry_seconds))
    return engine


class _WriterLock:
    """Serializes writes of this process's threads, so that they do not all poll SQLite's lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=_BUSY_SECONDS):
            raise DatabaseError("the database of jobs is locked by another change, which does not end")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _begin_transaction(connection: Connection, retry_seconds: float) -> None:
    # SQLite has no row locks: a writer takes the write lock before it reads.
    begin = connection.get_execution_options().get("unlost_begin", "BEGIN")
    if begin == "BEGIN":
        connection.exec_driver_sql(begin)
        return
    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
    try:
        end = time.monotonic() + _BUSY_SECONDS
        while not _try_begin(connection, begin, is_last=time.monotonic() >= end):
            time.sleep(retry_seconds)
    finally:
        connection.exec_driver_sql(_SET_BUSY_TIMEOUT)


def _try_begin(connection: Connection, begin: str, *, is_last: bool) -> bool:
    try:
        connection.exec_driver_sql(begin)
    except sqlalchemy.exc.OperationalError as error:
        if is_last or not _is_busy(error):
            raise
        return False
    return True


def _is_busy(error: BaseException | None) -> bool:
    """Return whether another connection holds the write lock, or has written since this transaction began."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0)
    return bool(code & 0xFF == sqlite3.SQLITE_BUSY)
