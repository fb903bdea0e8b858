"""An SQLite file for the progress of resumable work: exclusive lock, schema check, one transaction per step."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from unlost.errors import InputError, UsageError
from unlost.sqlite import transaction


def split_statements(schema: str) -> tuple[str, ...]:
    """Split a schema into statements, in the form in which SQLite stores them."""
    return tuple(statement.strip() for statement in schema.split(";") if statement.strip())


class ProgressFile:
    """The progress of one task. Use it as a context manager; it locks the file exclusively.

    Changes are transactional: a killed process loses at most the current step.

    Args:
        path: The file.
        what: Name of the task, for messages.
        version: Schema version, stored as `PRAGMA user_version`; 0 is reserved for a new file.
        schema: Statements that create the tables; one of them is `fact` with the columns `name` and `value`.

    Raises:
        InputError: The file is not a progress file of this task, or another process has it open.
    """

    def __init__(self, path: Path, what: str, version: int, schema: Sequence[str]) -> None:
        self._path = path
        self._what = what
        self._version = version
        self._schema = schema
        try:
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None)
            try:
                self._open()
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.Error as error:
            raise self._unusable_file_error(error) from error

    def _open(self) -> None:
        # Without the lock, a second process would send all requests again.
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("BEGIN EXCLUSIVE")
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        tables = self._connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL LIMIT 100").fetchall()
        self._connection.execute("COMMIT")
        # Exactly these tables: a view or trigger in an untrusted file would run with every query.
        if (version, sorted(sql for (sql,) in tables)) not in ((0, []), (self._version, sorted(self._schema))):
            raise self._foreign_file_error()

    def _foreign_file_error(self) -> InputError:
        return InputError(
            f"{self._path}: not the state of {_article(self._what)}: give another name by --state, or delete it"
        )

    def _unusable_file_error(self, error: sqlite3.Error) -> InputError:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_FULL:
            return InputError(f"{self._path}: no room on the disk: make some, and the same command goes on")
        if code == sqlite3.SQLITE_CANTOPEN:
            return InputError(f"{self._path}: cannot be written: expected a file in a folder that can be")
        if code == sqlite3.SQLITE_NOTADB:
            return self._foreign_file_error()
        if code == sqlite3.SQLITE_BUSY:
            return InputError(f"{self._path}: another process works on this {self._what}: wait for it, or end it")
        return InputError(
            f"{self._path}: cannot be used as the state of {_article(self._what)}: {error}; delete it to begin anew"
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Close the file. Remove it if no work has begun."""
        try:
            is_empty = error is None or isinstance(error, InputError | UsageError)
            is_empty = is_empty and not self._has_begun()
        except sqlite3.Error:
            is_empty = False
        self._connection.close()
        if is_empty:
            self._path.unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error):
            raise self._unusable_file_error(error) from error

    def _has_begun(self) -> bool:
        return bool(self._connection.execute("PRAGMA user_version").fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with transaction(self._connection):
            yield self._connection

    def plan(self) -> dict[str, object] | None:
        """Return the parameters with which the task was begun; None if it has not begun."""
        if not self._has_begun():
            return None
        try:
            plan = json.loads(self._fact("plan") or "{}")
        except (ValueError, RecursionError):
            plan = None
        if not isinstance(plan, dict):
            raise self._foreign_file_error()
        return plan

    def check_plan(self, plan: Mapping[str, object]) -> None:
        """Raise UsageError if the task was begun with other parameters."""
        stored = self.plan() or {}
        for name in sorted({*stored, *plan}):
            if stored.get(name) != plan.get(name):
                raise UsageError(
                    f"{self._path}: begun with other options or inputs: {name} was {_excerpt(stored.get(name))} and is "
                    f"{_excerpt(plan.get(name))}. Give the same as before, or --restart to ask everything anew"
                )

    @contextmanager
    def _initialize(self, plan: Callable[[], Mapping[str, object]]) -> Iterator[sqlite3.Connection]:
        """Create the tables, run the block, and store the plan, which is computed last, in one transaction."""
        with self._transaction() as data:
            for statement in self._schema:
                data.execute(statement)
            yield data
            data.execute("INSERT INTO fact VALUES ('plan', ?)", (json.dumps(plan()),))
            data.execute(f"PRAGMA user_version = {self._version}")

    def clear(self) -> None:
        """Drop all tables, to start from scratch."""
        with self._transaction() as data:
            tables = [name for (name,) in data.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                data.execute(f"DROP TABLE {table}")
            data.execute("PRAGMA user_version = 0")

    def _fact(self, name: str) -> str | None:
        row = self._connection.execute("SELECT value FROM fact WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])


def _article(what: str) -> str:
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"


def _excerpt(value: object) -> str:
    return ascii(value)[:60]
