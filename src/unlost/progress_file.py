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
    """Return the statements of a schema, each as the database will keep it."""
    return tuple(statement.strip() for statement in schema.split(";") if statement.strip())


class ProgressFile:
    """The file of one piece of work. Use it as a context manager; nobody else can open it meanwhile.

    what: the work, in a word, for messages. version: of its tables; schema: the statements that make them, one of them
    the table `fact` with the columns `name` and `value`.

    Each change is on the disk, or will be, as a whole: a process that is killed loses at most what was under way.
    Raises InputError for a file that is no such one, or that another process has open.
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
        # The lock is the file's only protection from a second process, which would ask everything twice.
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("BEGIN EXCLUSIVE")
        found = self._connection.execute("PRAGMA user_version").fetchone()[0]
        made = self._connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL LIMIT 100").fetchall()
        self._connection.execute("COMMIT")
        # Exactly these tables: a view or a trigger in somebody's file would run with every question to it.
        if (found, sorted(sql for (sql,) in made)) not in ((0, []), (self._version, sorted(self._schema))):
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
        """Close the file; one in which nothing was begun goes."""
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
        """Make changes that are there all together or not at all."""
        with transaction(self._connection):
            yield self._connection

    def plan(self) -> dict[str, object] | None:
        """Return what the work is about, as it was told when it began; None if it has not."""
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
        """Raise UsageError if the work was begun with another plan."""
        before = self.plan() or {}
        for name in sorted({*before, *plan}):
            if before.get(name) != plan.get(name):
                raise UsageError(
                    f"{self._path}: begun with other options or inputs: {name} was {_excerpt(before.get(name))} and is "
                    f"{_excerpt(plan.get(name))}. Give the same as before, or --restart to ask everything anew"
                )

    @contextmanager
    def _initialize(self, plan: Callable[[], Mapping[str, object]]) -> Iterator[sqlite3.Connection]:
        """Make the tables, then what the block adds, then the plan, which is asked for last: all of it or nothing."""
        with self._transaction() as data:
            for statement in self._schema:
                data.execute(statement)
            yield data
            data.execute("INSERT INTO fact VALUES ('plan', ?)", (json.dumps(plan()),))
            data.execute(f"PRAGMA user_version = {self._version}")

    def clear(self) -> None:
        """Begin anew, with nothing asked."""
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
