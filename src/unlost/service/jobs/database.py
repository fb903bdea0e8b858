"""The database of jobs: SQLite in a file, or PostgreSQL; each change in one transaction, or not at all."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url

from unlost.clock import Clock, SystemClock
from unlost.errors import DatabaseError, InputError, UsageError
from unlost.service.jobs import migrations

_BUSY_SECONDS = 30.0  # that somebody waits for SQLite's one writer; a change takes a millisecond
_CONNECT_SECONDS = 10
_AT_ONCE = 10  # connections of one process
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
        address = _address(url)
        self.is_shared = address.get_backend_name() == "postgresql"
        """Whether other machines may use it."""
        self._name = address.render_as_string(hide_password=True)
        self._clock = clock if clock is not None or self.is_shared else SystemClock()
        try:
            self._engine = _postgresql(address) if self.is_shared else _sqlite(address, is_durable=is_durable)
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
        with self._explained(), self._engine.connect() as plain:
            connection = plain.execution_options(unlost_begin="BEGIN IMMEDIATE")
            with connection.begin():
                yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a transaction that only looks, and keeps nobody waiting."""
        with self._explained(), self._engine.connect() as plain:
            connection = plain.execution_options(unlost_begin="BEGIN")
            with connection.begin():
                yield connection

    def now(self, connection: Connection) -> float:
        """Return the time that counts, in seconds since 1970."""
        if self._clock is not None:
            return self._clock.now()
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlalchemy.exc.OperationalError, sqlalchemy.exc.InterfaceError, sqlalchemy.exc.TimeoutError) as error:
            reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
            raise DatabaseError(f"{self._name}: {reason[:300]}") from error
        except sqlalchemy.exc.DatabaseError as error:
            reason = str(error.orig).strip().partition("\n")[0]
            raise InputError(f"{self._name}: not the database of jobs, or a damaged one: {reason[:300]}") from error


def _address(url: str) -> URL:
    expected = "expected postgresql://USER:PASSWORD@HOST/NAME or sqlite:///FILE"
    try:
        address = make_url(url)
        backend = address.get_backend_name()
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise UsageError(f"the database's address is none: {expected}") from None
    if backend not in ("sqlite", "postgresql") or not address.database or address.database == ":memory:":
        raise UsageError(f"the database's address names none: {expected}")
    return address.set(drivername="postgresql+psycopg") if address.drivername == "postgresql" else address


def _postgresql(address: URL) -> Engine:
    # A worker that is stopped in the middle of a change must not keep a job locked for ever.
    options = f"-c statement_timeout={_STATEMENT_MS} -c idle_in_transaction_session_timeout={_IDLE_MS}"
    keepalive = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
    arguments = {"connect_timeout": _CONNECT_SECONDS, "options": options, **keepalive}
    return create_engine(
        address, pool_pre_ping=True, pool_size=_AT_ONCE, max_overflow=_AT_ONCE, connect_args=arguments,
        isolation_level="READ COMMITTED", hide_parameters=True,
    )  # fmt: skip


def _sqlite(address: URL, *, is_durable: bool) -> Engine:
    def prepared(connection: sqlite3.Connection, _: Any) -> None:  # noqa: ANN401  what SQLAlchemy passes
        # Python would begin transactions by itself, later than they must, and of the wrong kind.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")

    engine = create_engine(
        address, pool_size=_AT_ONCE, max_overflow=_AT_ONCE, connect_args={"timeout": _BUSY_SECONDS},
        hide_parameters=True,
    )  # fmt: skip
    event.listen(engine, "connect", prepared)
    event.listen(engine, "begin", _begun)
    return engine


def _begun(connection: Connection) -> None:
    # SQLite knows no locked rows: whoever wants to write waits for its turn before it looks.
    connection.exec_driver_sql(connection.get_execution_options().get("unlost_begin", "BEGIN"))
