"""The SQLite schema of a recovery's state, its migrations, and the names of its facts."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unlost import sqlite
from unlost.errors import InputError

SCHEMA_VERSION = 3
"""Version of the schema. Older files are migrated when opened. Version 1 had no rejected captures and no candidates,
version 2 no substitutes and no doubtful or empty captures."""
_DESCRIPTION = "a recovery"
_SCHEMA = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE listing (
    archive TEXT NOT NULL, prefix TEXT NOT NULL, outcome TEXT, captures INTEGER NOT NULL DEFAULT 0, message TEXT,
    until REAL, PRIMARY KEY (archive, prefix)
) WITHOUT ROWID;
CREATE TABLE resource (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, folded TEXT NOT NULL, uri TEXT NOT NULL, use TEXT NOT NULL,
    standing TEXT NOT NULL, hops INTEGER NOT NULL, uses INTEGER NOT NULL DEFAULT 0, rank INTEGER NOT NULL DEFAULT 0,
    near TEXT, archive TEXT, record INTEGER, reason TEXT, changed TEXT
);
CREATE INDEX resource_folded ON resource (folded);
CREATE INDEX resource_turn ON resource (archive, rank, id) WHERE standing = 'queued';
CREATE INDEX resource_standing ON resource (standing);
CREATE TABLE alias (name TEXT PRIMARY KEY, resource INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE link (source INTEGER NOT NULL, target INTEGER NOT NULL, PRIMARY KEY (source, target)) WITHOUT ROWID;
CREATE INDEX link_target ON link (target);
CREATE TABLE capture (
    id INTEGER PRIMARY KEY, resource INTEGER NOT NULL, archive TEXT NOT NULL, datetime TEXT NOT NULL, uri TEXT NOT NULL,
    status INTEGER, mime TEXT, digest TEXT, length INTEGER, redirect TEXT, urim TEXT, migrated INTEGER,
    revisit INTEGER NOT NULL, revisit_uri TEXT, revisit_datetime TEXT, filename TEXT, offset INTEGER, skip INTEGER,
    outcome TEXT, UNIQUE (resource, archive, datetime, uri)
);
CREATE TABLE asked (
    resource INTEGER NOT NULL, archive TEXT NOT NULL, outcome TEXT NOT NULL, PRIMARY KEY (resource, archive)
) WITHOUT ROWID;
CREATE TABLE record (
    id INTEGER PRIMARY KEY, resource INTEGER NOT NULL, worth INTEGER NOT NULL, listed_digest TEXT, file TEXT NOT NULL,
    offset INTEGER NOT NULL, size INTEGER NOT NULL, data TEXT NOT NULL, UNIQUE (file, offset)
);
CREATE INDEX record_resource ON record (resource);
CREATE INDEX record_digest ON record (listed_digest) WHERE listed_digest IS NOT NULL;
"""
_SINCE_1 = """
CREATE TABLE rejected (
    record INTEGER PRIMARY KEY, worth INTEGER NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL
);
CREATE TABLE candidate (
    name TEXT NOT NULL UNIQUE, folded TEXT NOT NULL, uri TEXT NOT NULL, use TEXT NOT NULL, hops INTEGER NOT NULL,
    near TEXT, wanted INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX candidate_folded ON candidate (folded);
"""
# Renumbers `CaptureQuality`: DOUBTFUL and EMPTY were inserted in version 3.
_QUALITY = "CASE worth WHEN 5 THEN 7 WHEN 6 THEN 8 WHEN 7 THEN {empty} WHEN 8 THEN 10 WHEN 9 THEN 11 ELSE worth END"
_EMPTY = """CASE WHEN coalesce(json_extract(data, '$.capture.status'), 200) IN (204, 205, 304)
    OR json_extract(data, '$.truncated') IS NOT NULL THEN 9 ELSE 6 END"""
SUBSTITUTE_TABLE = "CREATE {kind} substitute (resource INTEGER PRIMARY KEY, other INTEGER NOT NULL)"
"""The table of resources that are replaced by one that differs only in its query. `kind` is `TABLE`, or `TEMP TABLE`
for files of older versions that are only read."""
_NEW_SINCE_2 = SUBSTITUTE_TABLE.format(kind="TABLE") + ";"
_SINCE_2 = f"""{_NEW_SINCE_2}
UPDATE record SET worth = {_QUALITY.format(empty=_EMPTY)};
UPDATE rejected SET worth = {_QUALITY.format(empty=6)};
UPDATE resource SET record = (
    SELECT record.id FROM record WHERE record.resource = resource.id ORDER BY record.worth, record.id LIMIT 1
) WHERE standing = 'missing' AND record IS NOT NULL;
"""  # noqa: S608  no external input in it


class RecoveryStateFile(sqlite.StateFile):
    """The SQLite file of a recovery. Raises the errors of `sqlite.StateFile`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, _DESCRIPTION, _prepare_schema)


@contextmanager
def explain_sqlite_errors(file: Path) -> Iterator[None]:
    """Translate SQLite errors for a file into InputError, or OSError if the disk is full."""
    with sqlite.translate_sqlite_errors(file, _DESCRIPTION):
        yield


def check_tables(connection: sqlite3.Connection, file: Path) -> None:
    """Raise InputError if the file contains views or triggers, which would run untrusted SQL."""
    sqlite.reject_views_and_triggers(connection, file, _DESCRIPTION)


def _prepare_schema(connection: sqlite3.Connection, file: Path) -> None:
    check_tables(connection, file)
    version = sqlite.schema_version(connection)
    if version is None:
        sqlite.migrate_schema(connection, _SCHEMA + _SINCE_1 + _NEW_SINCE_2, SCHEMA_VERSION)
    elif version == 1:
        sqlite.migrate_schema(connection, _SINCE_1 + _SINCE_2, SCHEMA_VERSION)
    elif version == 2:
        sqlite.migrate_schema(connection, _SINCE_2, SCHEMA_VERSION)
    elif version != SCHEMA_VERSION:
        raise InputError(f"{file}: expected the state of a recovery in version {SCHEMA_VERSION}, found {version}")


REQUESTS_FACT = "requests"
"""Requests sent over all runs, by archive, then by kind, as JSON."""
SKIPPED_LINKS_FACT = "trapped"
"""Number of links that were not followed over all runs, by reason, as JSON."""
LOOKUPS_FACT = "lookups-other-hosts"
"""Number of queries for resources on other hosts, over all runs."""
SESSION_IDS_FACT = "session-ids"
"""Number of listed URLs with a session id, which were merged into the URL without it."""
CASE_INSENSITIVE_FACT = "case-insensitive"
"""`yes` once the site's server was found to ignore letter case."""
