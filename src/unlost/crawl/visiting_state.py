"""What every state of visits to the living web has: facts, rules of robots.txt, and which WARCs were there before."""

import json
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

from unlost import state_file
from unlost.crawl.robots import KeptRobots
from unlost.errors import InputError

FACT_TABLE = "CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;\n"
ROBOTS_TABLE = (
    "CREATE TABLE robots (origin TEXT PRIMARY KEY, asked REAL NOT NULL, status INTEGER, text BLOB NOT NULL) "
    "WITHOUT ROWID;\n"
)


def prepared(
    connection: sqlite3.Connection, file: Path, what: str, application: int, version: int, schema: str
) -> None:
    """Make the tables of a state, or refuse those that are there.

    application: what SQLite files of this kind are told by, since others have the same name. Raises InputError.
    """
    state_file.check_tables(connection, file, what)
    found = state_file.version_of(connection)
    if found is None:
        connection.execute(f"PRAGMA application_id = {application}")
        state_file.change_tables(connection, schema, version)
    elif (found, connection.execute("PRAGMA application_id").fetchone()[0]) != (version, application):
        raise InputError(f"{file}: expected the state of {what} in version {version}, found another one")


class VisitingState(state_file.StateFile):
    """A state with the tables `FACT_TABLE` and `ROBOTS_TABLE`, and others. It is a RobotsStore."""

    def __init__(self, folder: Path, what: str, prepare: Callable[[sqlite3.Connection, Path], None]) -> None:
        super().__init__(folder, what, prepare)
        self._run = self.connection.execute

    def files_before(self, files: Iterable[str]) -> frozenset[str]:
        """Return which WARCs were there before this state was: `files`, when it is asked for the first time."""
        self.begin()
        text = json.dumps(sorted(files))
        self._run("INSERT OR IGNORE INTO fact VALUES ('files before', ?)", (text,))
        (kept,) = self._run("SELECT value FROM fact WHERE name = 'files before'").fetchone()
        return frozenset(json.loads(kept))

    def get(self, origin: str) -> KeptRobots | None:
        """Return what robots.txt of a site said."""
        row = self._run("SELECT asked, status, text FROM robots WHERE origin = ?", (origin,)).fetchone()
        return None if row is None else KeptRobots(float(row[0]), row[1], bytes(row[2]))

    def put(self, origin: str, kept: KeptRobots) -> None:
        """Keep what it said."""
        self.begin()
        self._run("INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?)", (origin, kept.asked, kept.status, kept.text))

    def forget_faults(self) -> None:
        """Forget which sites gave no robots.txt, so that another run asks for it."""
        self.begin()
        self._run("DELETE FROM robots WHERE status IS NULL OR status >= 500 OR status = 429")
