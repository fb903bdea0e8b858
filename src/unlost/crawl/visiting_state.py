"""What every state of visits to the living web has: facts, rules of robots.txt, and which WARCs were there before."""

import json
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

from unlost import state_file
from unlost.crawl.robots import RobotsResponse
from unlost.errors import InputError

FACT_TABLE = "CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;\n"
ROBOTS_TABLE = (
    "CREATE TABLE robots (origin TEXT PRIMARY KEY, asked REAL NOT NULL, status INTEGER, text BLOB NOT NULL) "
    "WITHOUT ROWID;\n"
)


def prepare_state(
    connection: sqlite3.Connection, file: Path, description: str, application: int, version: int, schema: str
) -> None:
    """Make the tables of a state, or refuse those that are there.

    application: what SQLite files of this kind are told by, since others have the same name. Raises InputError.
    """
    state_file.reject_views_and_triggers(connection, file, description)
    found = state_file.schema_version(connection)
    if found is None:
        connection.execute(f"PRAGMA application_id = {application}")
        state_file.migrate_schema(connection, schema, version)
    elif (found, connection.execute("PRAGMA application_id").fetchone()[0]) != (version, application):
        raise InputError(f"{file}: expected the state of {description} in version {version}, found another one")


class FetchState(state_file.StateFile):
    """A state with the tables `FACT_TABLE` and `ROBOTS_TABLE`, and others. It is a RobotsStore."""

    def __init__(self, folder: Path, what: str, prepare: Callable[[sqlite3.Connection, Path], None]) -> None:
        super().__init__(folder, what, prepare)
        self._execute = self.connection.execute

    def files_before_state(self, files: Iterable[str]) -> frozenset[str]:
        """Return which WARCs were there before this state was: `files`, when it is asked for the first time."""
        self.begin()
        text = json.dumps(sorted(files))
        self._execute("INSERT OR IGNORE INTO fact VALUES ('files before', ?)", (text,))
        (kept,) = self._execute("SELECT value FROM fact WHERE name = 'files before'").fetchone()
        return frozenset(json.loads(kept))

    def get(self, origin: str) -> RobotsResponse | None:
        """Return what robots.txt of a site said."""
        row = self._execute("SELECT asked, status, text FROM robots WHERE origin = ?", (origin,)).fetchone()
        return None if row is None else RobotsResponse(float(row[0]), row[1], bytes(row[2]))

    def put(self, origin: str, response: RobotsResponse) -> None:
        """Keep what it said."""
        self.begin()
        self._execute(
            "INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?)",
            (origin, response.requested_at, response.status, response.text),
        )

    def forget_failed_robots(self) -> None:
        """Forget which sites gave no robots.txt, so that another run asks for it."""
        self.begin()
        self._execute("DELETE FROM robots WHERE status IS NULL OR status >= 500 OR status = 429")
