"""Chromium's newest cache: entries in some SQLite files."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from unlost.errors import ArchiveFileError
from unlost.formats.chromium_entry import ChromiumEntry, parse_response_info
from unlost.formats.kept import CHUNK_BYTES, MAX_HEAD_BYTES, MAX_KEY_BYTES, Chunks
from unlost.formats.problems import Problem, Problems

SQL_FILE_NAME = re.compile(r"sqldb[0-9]{1,3}")
"""A file with entries."""

_MAX_KEY_BYTES = MAX_KEY_BYTES * 2
_MAX_VALUE_BYTES = 1 << 26  # of one piece of a body; Chromium writes far smaller ones
_PROGRESS_STEPS = 1_000_000  # of SQLite's machine between two looks at the clock of a file made to keep it busy
_MAX_PROGRESS_CALLS = 200  # some ten seconds: a million entries take a fraction of them
_LOCK_WAIT_SECONDS = 1.0  # for a browser that holds the file

# Damage also shows in texts, those of error messages among them, and in types.
_SQL_ERRORS = (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, TypeError, OverflowError)

_SELECT_ENTRIES = f"""
    SELECT res_id, cache_key, body_end, head FROM resources
    WHERE doomed = 0 AND length(head) BETWEEN 1 AND {MAX_HEAD_BYTES} AND length(cache_key) <= {_MAX_KEY_BYTES}
"""  # noqa: S608  numbers of ours
_SELECT_RANGES = "SELECT start, end FROM blobs WHERE res_id = ? ORDER BY start"
_SELECT_BODY = "SELECT start, end, blob FROM blobs WHERE res_id = ? ORDER BY start"


def read_sql_entries(folder: Path, problems: Problems) -> Iterator[ChromiumEntry]:
    """Yield the entries of a folder. Problems: `damaged` entries, and `unreadable` files: a browser may hold them."""
    for path in sorted(folder.iterdir()):
        if not SQL_FILE_NAME.fullmatch(path.name) or not path.is_file():
            continue
        try:
            with closing(_connect(path)) as file:
                for row in file.execute(_SELECT_ENTRIES):
                    try:
                        yield _build_sql_entry(file, path, *row)
                    except (ArchiveFileError, TypeError) as error:
                        problems.add(Problem("damaged", path.name, None, 0, f"entry {row[0]}: {error}"))
        except _SQL_ERRORS as error:
            message = f"{error}: close the browser that uses it, or copy the folder and read the copy"
            problems.add(Problem("unreadable", path.name, None, 0, message))


def read_sql_entry(folder: Path, filename: str) -> ChromiumEntry | None:
    """Return an entry by the name that it has in records; None if it is gone. Raises ArchiveFileError."""
    name, _, number = filename.partition("#")
    path = folder / name
    if not path.is_file():
        return None
    try:
        with closing(_connect(path)) as file:
            row = file.execute(f"{_SELECT_ENTRIES} AND res_id = ?", (int(number),)).fetchone()
            return None if row is None else _build_sql_entry(file, path, *row)
    except _SQL_ERRORS as error:
        raise ArchiveFileError(f"expected an entry of a cache: {error}") from None


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file for reading only, without trust in what is in it."""
    file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_LOCK_WAIT_SECONDS)
    rounds = 0

    def tick() -> int:
        nonlocal rounds
        rounds += 1
        return int(rounds > _MAX_PROGRESS_CALLS)

    try:
        file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        file.set_progress_handler(tick, _PROGRESS_STEPS)
        file.text_factory = lambda text: text.decode("utf-8", "replace")
        file.execute("PRAGMA trusted_schema = OFF")
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE %'"
        tables = {name for (name,) in file.execute(query)}
        if not {"resources", "blobs"} <= tables:
            raise sqlite3.DatabaseError("expected the tables of a cache, found others")  # noqa: TRY301  closed below
    except BaseException:
        file.close()
        raise
    return file


def _build_sql_entry(
    file: sqlite3.Connection, path: Path, number: int, key: str, length: int, head: bytes
) -> ChromiumEntry:
    if not (isinstance(key, str) and isinstance(length, int) and isinstance(head, bytes)) or length < 0:
        raise ArchiveFileError("expected a key, a length and a head, found something else")
    info = parse_response_info(head)
    end = 0
    for start, stop in file.execute(_SELECT_RANGES, (number,)):
        if start != end:
            break
        end = stop
    filename = f"{path.name}#{number}"
    return ChromiumEntry(key, info, length, end != length, filename, 0, lambda: _read_sql_body(path, number, length))


def _read_sql_body(path: Path, number: int, length: int) -> Chunks:
    end = 0
    try:
        with closing(_connect(path)) as file:
            for start, stop, piece in file.execute(_SELECT_BODY, (number,)):
                if start != end or stop - start != len(piece):
                    break
                end = stop
                for place in range(0, len(piece), CHUNK_BYTES):
                    yield piece[place : place + CHUNK_BYTES]
    except _SQL_ERRORS as error:
        raise ArchiveFileError(f"expected a body: {error}") from None
    if end != length:
        raise ArchiveFileError(f"expected a body of {length} bytes, found {end}")
