"""Changes to a database that are there all together or not at all."""

import fcntl
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

_LOCK_SECONDS = 10.0


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do all that is done in the block, or nothing of it. The connection must not begin transactions by itself.

    >>> connection = sqlite3.connect(":memory:", isolation_level=None)
    >>> with transaction(connection):
    ...     _ = connection.execute("CREATE TABLE a (b)")
    >>> connection.execute("SELECT count(*) FROM a").fetchone()
    (0,)
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # a full disk ends it by itself
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def lock_file(file: Path) -> Iterator[None]:
    """Lock a file, which is created, while the block runs; the lock ends with the process.

    SQLite does not wait for locks while a file changes to WAL, so processes have to open it one after the other.

    Raises OSError if another process has the lock for long.
    """
    with closing(file.open("ab")) as opened:
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        yield
