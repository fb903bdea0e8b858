"""Chromium's newest cache: entries in some SQLite files."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from unlost.errors import ArchiveFileError
from unlost.formats.chromium_entry import Entry, read_info
from unlost.formats.kept import CHUNK, MAX_HEAD_BYTES, MAX_KEY_BYTES, Chunks
from unlost.formats.problems import Problem, Problems

NAME = re.compile(r"sqldb[0-9]{1,3}")
"""A file with entries."""

_MAX_KEY = MAX_KEY_BYTES * 2
_MAX_VALUE_BYTES = 1 << 26  # of one piece of a body; Chromium writes far smaller ones
_STEPS = 1_000_000  # of SQLite's machine between two looks at the clock of a file made to keep it busy
_MAX_ROUNDS = 200  # some ten seconds: a million entries take a fraction of them
_WAIT_SECONDS = 1.0  # for a browser that holds the file

# Damage also shows in texts, those of error messages among them, and in types.
_ERRORS = (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, TypeError, OverflowError)

_ENTRIES = f"""
    SELECT res_id, cache_key, body_end, head FROM resources
    WHERE doomed = 0 AND length(head) BETWEEN 1 AND {MAX_HEAD_BYTES} AND length(cache_key) <= {_MAX_KEY}
"""  # noqa: S608  numbers of ours
_PIECES = "SELECT start, end FROM blobs WHERE res_id = ? ORDER BY start"
_BODY = "SELECT start, end, blob FROM blobs WHERE res_id = ? ORDER BY start"


def read_entries(folder: Path, problems: Problems) -> Iterator[Entry]:
    """Yield the entries of a folder. Problems: `damaged` entries, and `unreadable` files: a browser may hold them."""
    for path in sorted(folder.iterdir()):
        if not NAME.fullmatch(path.name) or not path.is_file():
            continue
        try:
            with closing(_connect(path)) as file:
                for row in file.execute(_ENTRIES):
                    try:
                        yield _entry(file, path, *row)
                    except (ArchiveFileError, TypeError) as error:
                        problems.add(Problem("damaged", path.name, None, 0, f"entry {row[0]}: {error}"))
        except _ERRORS as error:
            message = f"{error}: close the browser that uses it, or copy the folder and read the copy"
            problems.add(Problem("unreadable", path.name, None, 0, message))


def read_entry(folder: Path, filename: str) -> Entry | None:
    """Return an entry by the name that it has in records; None if it is gone. Raises ArchiveFileError."""
    name, _, number = filename.partition("#")
    path = folder / name
    if not path.is_file():
        return None
    try:
        with closing(_connect(path)) as file:
            row = file.execute(f"{_ENTRIES} AND res_id = ?", (int(number),)).fetchone()
            return None if row is None else _entry(file, path, *row)
    except _ERRORS as error:
        raise ArchiveFileError(f"expected an entry of a cache: {error}") from None


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file for reading only, without trust in what is in it."""
    file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_WAIT_SECONDS)
    rounds = 0

    def tick() -> int:
        nonlocal rounds
        rounds += 1
        return int(rounds > _MAX_ROUNDS)

    try:
        file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
        file.set_progress_handler(tick, _STEPS)
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


def _entry(file: sqlite3.Connection, path: Path, number: int, key: str, length: int, head: bytes) -> Entry:
    if not (isinstance(key, str) and isinstance(length, int) and isinstance(head, bytes)) or length < 0:
        raise ArchiveFileError("expected a key, a length and a head, found something else")
    info = read_info(head)
    end = 0
    for start, stop in file.execute(_PIECES, (number,)):
        if start != end:
            break
        end = stop
    filename = f"{path.name}#{number}"
    return Entry(key, info, length, end != length, filename, 0, lambda: _body(path, number, length))


def _body(path: Path, number: int, length: int) -> Chunks:
    end = 0
    try:
        with closing(_connect(path)) as file:
            for start, stop, piece in file.execute(_BODY, (number,)):
                if start != end or stop - start != len(piece):
                    break
                end = stop
                for place in range(0, len(piece), CHUNK):
                    yield piece[place : place + CHUNK]
    except _ERRORS as error:
        raise ArchiveFileError(f"expected a body: {error}") from None
    if end != length:
        raise ArchiveFileError(f"expected a body of {length} bytes, found {end}")
