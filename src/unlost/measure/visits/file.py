"""The SQLite file of visits: opened safely, by one process at a time."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOENT
from pathlib import Path
from typing import Self

from unlost.errors import InputError
from unlost.formats.unread import unreadable_error_for_errno
from unlost.state_file import os_error_of
from unlost.transactions import transaction

SCHEMA_VERSION = 1
"""Of the tables."""

_APPLICATION_ID = 0x756E6C77  # "unlw": so that another program's database is not taken for one of ours
_CACHE_KIB = 16 << 10  # of the file, in memory, however large it is
# What stands behind `live` is of the visit that goes on, or was the last; the spans are of all visits. A span is a run
# of visits, one after the other, that saw the same: so the file grows with what changes, not with the days.
_SCHEMA = """
CREATE TABLE site (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE);
CREATE TABLE visit (
    id INTEGER PRIMARY KEY, site INTEGER NOT NULL, time REAL NOT NULL, is_dated INTEGER NOT NULL DEFAULT 1,
    stage TEXT NOT NULL, look TEXT, reason TEXT, before INTEGER, fresh INTEGER NOT NULL DEFAULT 0,
    replicated INTEGER NOT NULL DEFAULT 0, endangered INTEGER NOT NULL DEFAULT 0, vulnerable INTEGER NOT NULL DEFAULT 0,
    unrecoverable INTEGER NOT NULL DEFAULT 0, unknown INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX visit_site ON visit (site, id);
CREATE TABLE resource (
    id INTEGER PRIMARY KEY, site INTEGER NOT NULL, key TEXT NOT NULL, uri TEXT NOT NULL, mime TEXT, first_live INTEGER,
    downloads INTEGER NOT NULL DEFAULT 0, changes INTEGER NOT NULL DEFAULT 0, digest TEXT, UNIQUE (site, key)
);
CREATE TABLE live (
    resource INTEGER PRIMARY KEY, uri TEXT NOT NULL, outcome TEXT NOT NULL, status INTEGER, mime TEXT, length INTEGER,
    digest TEXT, seen TEXT, last_modified TEXT, redirect TEXT, hops INTEGER, linked_from INTEGER NOT NULL,
    is_in_sitemap INTEGER NOT NULL, is_noarchive INTEGER NOT NULL, cache_control TEXT,
    is_drawn INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE held (
    resource INTEGER NOT NULL, archive TEXT NOT NULL, copies INTEGER NOT NULL, first TEXT NOT NULL, last TEXT NOT NULL,
    digest TEXT, migrated INTEGER, PRIMARY KEY (resource, archive)
) WITHOUT ROWID;
CREATE TABLE asked (
    resource INTEGER NOT NULL, archive TEXT NOT NULL, has_answered INTEGER NOT NULL, PRIMARY KEY (resource, archive)
) WITHOUT ROWID;
CREATE TABLE listed (
    site INTEGER NOT NULL, archive TEXT NOT NULL, prefix TEXT NOT NULL, is_whole INTEGER NOT NULL,
    rows INTEGER NOT NULL, beside INTEGER NOT NULL, message TEXT, PRIMARY KEY (site, archive, prefix)
) WITHOUT ROWID;
CREATE TABLE live_span (
    resource INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, is_live INTEGER NOT NULL,
    PRIMARY KEY (resource, first)
) WITHOUT ROWID;
CREATE INDEX live_span_last ON live_span (resource, last);
CREATE TABLE held_span (
    resource INTEGER NOT NULL, archive TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    is_held INTEGER NOT NULL, PRIMARY KEY (resource, archive, first)
) WITHOUT ROWID;
CREATE INDEX held_span_last ON held_span (resource, archive, last);
CREATE TABLE page (
    site INTEGER NOT NULL, place INTEGER NOT NULL, uri TEXT NOT NULL, datetime TEXT NOT NULL, digest TEXT,
    text TEXT NOT NULL, PRIMARY KEY (site, place)
) WITHOUT ROWID;
CREATE TABLE loss (
    id INTEGER PRIMARY KEY, site INTEGER NOT NULL, visit INTEGER NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL,
    since INTEGER NOT NULL, over INTEGER, is_told INTEGER NOT NULL DEFAULT 0
);
"""


_ADDED_TABLES = "CREATE TABLE IF NOT EXISTS judged (resource INTEGER PRIMARY KEY, verdict TEXT NOT NULL)"
"""What the first files did not have."""


class VisitDatabase:
    """The file. Use it as a context manager, or close it.

    Raises InputError for a file of another kind or version, a link in its place, and where another process has it;
    OSError where it cannot be written. is_read_only: only for looking: nothing is made or changed.
    """

    def __init__(self, file: Path, *, is_read_only: bool = False) -> None:
        self.path = file
        besides = [file.with_name(f"{file.name}-{end}") for end in ("journal", "wal", "shm")]
        for each in (file, *besides):
            if each.is_symlink():
                raise InputError(f"{each}: a link, which is not followed: remove it, or name another file")
        if is_read_only and not file.exists():
            raise unreadable_error_for_errno(file, ENOENT, "nothing was watched into it yet")
        with translate_sqlite_errors(file):
            # What a killed process left has to be put into the file before anybody can read it; where nothing was left,
            # it is read as it stands, since anything else would write beside it.
            reading = "mode=rw" if besides[1].exists() else "immutable=1"
            where = f"{file.absolute().as_uri()}?{reading if is_read_only else 'mode=rwc'}"
            self.connection = sqlite3.connect(where, uri=True, isolation_level=None, timeout=0)
            try:
                _prepare_database(self.connection, file, is_read_only=is_read_only)
            except BaseException:
                self.connection.close()
                raise

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Let others have it."""
        self.connection.close()

    def get_or_add_site(self, url: str) -> int:
        """Return the number of a site, which is noted if it is new."""
        row = self.connection.execute("SELECT id FROM site WHERE url = ?", (url,)).fetchone()
        if row is None:
            row = self.connection.execute("INSERT INTO site (url) VALUES (?) RETURNING id", (url,)).fetchone()
        return int(row[0])

    def sites(self) -> list[tuple[int, str]]:
        """Return all sites: their numbers and addresses, in the order in which they came."""
        return [
            (int(number), str(url)) for number, url in self.connection.execute("SELECT id, url FROM site ORDER BY id")
        ]


@contextmanager
def translate_sqlite_errors(file: Path) -> Iterator[None]:
    """Turn what SQLite says into words about a file. Raises InputError, OSError for a full disk."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_BUSY:
            raise InputError(
                f"{file}: another process is at work on it: wait for that one, or name another file"
            ) from None
        if isinstance(error, sqlite3.OperationalError):
            raise os_error_of(error, file) from error
        raise InputError(f"{file}: not a file of visits: {error}") from error


def _prepare_database(connection: sqlite3.Connection, file: Path, *, is_read_only: bool) -> None:
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute("PRAGMA temp_store = MEMORY")
    if not is_read_only:
        # From the first change on nobody else has it: two processes would visit the site twice.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        # A power cut may take the last answers, which are asked for again; a kill takes nothing.
        connection.execute("PRAGMA synchronous = NORMAL")
        with transaction(connection):
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION_ID:
        raise InputError(f"{file}: a database, but not of visits: name another file")
    if version != SCHEMA_VERSION:
        raise InputError(
            f"{file}: expected visits in version {SCHEMA_VERSION}, found {version}: it is of another unlost"
        )
    if not is_read_only:
        connection.execute(_ADDED_TABLES)
