"""The database of jobs: SQLite in a file, or PostgreSQL. Each change is one transaction."""

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

_BUSY_SECONDS = 30.0  # that somebody waits for SQLite's one writer; a change takes a millisecond
# Between two attempts to be that writer. SQLite's own pauses grow to a tenth of a second, and who ordered something
# would wait for all of them. Whoever is not durable, a worker, steps back: nobody waits for its answer.
_RETRY_SECONDS, _WORKER_RETRY_SECONDS = 0.0005, 0.004
_SET_BUSY_TIMEOUT = f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000:.0f}"
_OPTIMISTIC_TRIES = 4  # to write without having kept others from it, before they are
_CONNECT_SECONDS = 10
_POOL_SIZE = 10  # connections of one process
_IDLE_MS = 60_000  # after which PostgreSQL ends a transaction in which nothing happens: its process was stopped
_STATEMENT_MS = 60_000


def file_url(file: Path) -> str:
    """Return the address of a database in a file."""
    return f"sqlite:///{file.absolute()}"


class Database:
    """One database, for all threads of a process.

    url: `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`; a password is never part of a message.
    is_durable: whether a change outlives a loss of power at once, for SQLite. Whoever works on jobs can do without:
        what is lost of it is done again, from the folders that are there.
    clock: whose time counts; by default that of PostgreSQL's machine, so that all workers have the same, or with
        SQLite that of this one.

    Raises UsageError for an address that is none, InputError for tables of a newer unlost, DatabaseError whenever the
    database cannot be reached or written; then nothing was changed.
    """

    def __init__(self, url: str, clock: Clock | None = None, *, is_durable: bool = True) -> None:
        address = _parse_url(url)
        self.is_shared = address.get_backend_name() == "postgresql"
        """Whether other machines may use it."""
        self._name = address.render_as_string(hide_password=True)
        self._clock = clock if clock is not None or self.is_shared else SystemClock()
        self._retry = _RETRY_SECONDS if is_durable else _WORKER_RETRY_SECONDS
        self._writer_lock = nullcontext() if self.is_shared else _WriterLock()
        try:
            self._engine = _create_postgresql_engine(address) if self.is_shared else _create_sqlite_engine(
                address, self._retry, is_durable=is_durable
            )  # fmt: skip
        except ImportError:
            message = "PostgreSQL needs a driver: install unlost with its extra, `pip install unlost[postgresql]`"
            raise UsageError(message) from None

    def __repr__(self) -> str:
        """Return where it is, without a password."""
        return f"Database({self._name})"

    def prepare(self) -> None:
        """Bring the tables to the newest form, or make them."""
        with self.writing() as connection:
            migrations.upgrade(connection)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a transaction that may change things: with SQLite, the only one that does."""
        with self._writer_lock, self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def lock_names(self, connection: Connection, *names: str) -> None:
        """Keep all others out who are about one of these names, until the transaction ends: what is counted is exact.

        Whoever waits here sees what the one before has written. In SQLite, who may write is alone anyway.
        """
        if self.is_shared:
            numbers = {int.from_bytes(sha256(name.encode()).digest()[:8], "big", signed=True) for name in names}
            for number in sorted(numbers):  # in one order for all, so that no two wait for each other
                connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do something in a transaction that may change things, and return what it returned.

        With SQLite it may be done several times, until nobody else has written meanwhile: so what it looks at and
        thinks before its first change keeps nobody waiting. It must not change anything but the database.
        """
        for _ in range(0 if self.is_shared else _OPTIMISTIC_TRIES):
            try:
                with self._writer_lock, self._transaction("BEGIN") as connection:
                    # Who waits for another writer here is outdated by then.
                    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
                    try:
                        return work(connection)
                    finally:
                        connection.exec_driver_sql(_SET_BUSY_TIMEOUT)
            except DatabaseError as error:
                if not _is_busy(error.__cause__):
                    raise
            time.sleep(self._retry)
        with self.writing() as connection:
            return work(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a transaction that only looks, and keeps nobody waiting."""
        with self._transaction("BEGIN") as connection:
            yield connection

    def now(self, connection: Connection) -> float:
        """Return the time that counts, in seconds since 1970."""
        if self._clock is not None:
            return self._clock.now()
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())

    def checkpoint(self, *, truncates: bool = False) -> None:
        """Bring what was written lately to its place in SQLite's file; meanwhile everybody may read and write.

        Whoever keeps a database open that is durable has to do it now and then, or its log grows.
        is_emptied: have nothing of what was removed stay in the log, either, if nobody is busy just now.
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
        address = make_url(url)
        backend = address.get_backend_name()
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise UsageError(f"the database's address is none: {expected}") from None
    if backend not in ("sqlite", "postgresql") or not address.database or address.database == ":memory:":
        raise UsageError(f"the database's address names none: {expected}")
    return address.set(drivername="postgresql+psycopg") if address.drivername == "postgresql" else address


def _create_postgresql_engine(address: URL) -> Engine:
    # A worker that is stopped in the middle of a change must not keep a job locked for ever.
    options = f"-c statement_timeout={_STATEMENT_MS} -c idle_in_transaction_session_timeout={_IDLE_MS}"
    keepalive = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
    arguments = {"connect_timeout": _CONNECT_SECONDS, "options": options, **keepalive}
    return create_engine(
        address, pool_pre_ping=True, pool_size=_POOL_SIZE, max_overflow=_POOL_SIZE, connect_args=arguments,
        isolation_level="READ COMMITTED", hide_parameters=True,
    )  # fmt: skip


def _create_sqlite_engine(address: URL, retry: float, *, is_durable: bool) -> Engine:
    def prepared(connection: sqlite3.Connection, _: Any) -> None:  # noqa: ANN401  what SQLAlchemy passes
        # Python would begin transactions by itself, later than they must, and of the wrong kind.
        connection.isolation_level = None
        try:
            # SQLite does not wait for locks while a file changes to WAL, so processes open it one after the other.
            with lock_file(Path(f"{address.database}.lock")):
                connection.execute("PRAGMA journal_mode = WAL")
        except OSError as error:
            raise sqlite3.OperationalError(error.strerror) from error
        connection.execute("PRAGMA secure_delete = ON")  # names and mail addresses that are removed are no more
        connection.execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")
        if is_durable:
            connection.execute("PRAGMA wal_autocheckpoint = 0")  # `tidy` does it, so that no order waits for it

    engine = create_engine(
        address, pool_size=_POOL_SIZE, max_overflow=_POOL_SIZE, connect_args={"timeout": _BUSY_SECONDS},
        hide_parameters=True,
    )  # fmt: skip
    event.listen(engine, "connect", prepared)
    event.listen(engine, "begin", lambda connection: _begin_transaction(connection, retry))
    return engine


class _WriterLock:
    """Lets one thread of this process at a time write, in place of all of them asking SQLite again and again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=_BUSY_SECONDS):
            raise DatabaseError("the database of jobs is locked by another change, which does not end")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _begin_transaction(connection: Connection, retry: float) -> None:
    # SQLite knows no locked rows: whoever wants to write waits for its turn before it looks.
    begin = connection.get_execution_options().get("unlost_begin", "BEGIN")
    if begin == "BEGIN":
        connection.exec_driver_sql(begin)
        return
    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
    try:
        end = time.monotonic() + _BUSY_SECONDS
        while not _try_begin(connection, begin, is_last=time.monotonic() >= end):
            time.sleep(retry)
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
    """Return whether somebody else writes, or has written since we looked."""
    code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0)
    return bool(code & 0xFF == sqlite3.SQLITE_BUSY)
