"""Changes to a database that are there all together or not at all."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


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
