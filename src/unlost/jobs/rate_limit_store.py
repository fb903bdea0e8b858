"""Rate-limit state of archives in the database, shared by all workers on any machine."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects import postgresql, sqlite

from unlost.errors import InputError
from unlost.http.rate_limit import RateLimitState
from unlost.jobs.database import Database
from unlost.jobs.tables import RATE_LIMITS

T = TypeVar("T")

_EMPTY_CACHE_SECONDS = 0.25  # how long a state without entries is assumed to stay empty, as in the file-based store
_log = logging.getLogger(__name__)


class DatabaseLimitStore:
    """A `LimitStore` with one row per archive, which is locked while it is changed."""

    is_blocking = True

    def __init__(self, database: Database, warn: Callable[[str], None] = _log.warning) -> None:
        self._database = database
        self._warn = warn
        self._empty_since: dict[str, float] = {}

    def is_known_empty(self, archive: str) -> bool:
        """Return whether the archive's state had no entries within the last 0.25 s."""
        since = self._empty_since.get(archive)
        return since is not None and time.monotonic() - since < _EMPTY_CACHE_SECONDS

    def update(self, archive: str, change: Callable[[RateLimitState], tuple[RateLimitState, T]]) -> T:
        """Replace the state of an archive by the first value that `change` returns, and return the second.

        Raises:
            DatabaseError: The database cannot be reached. No request may be sent then, since its limits are unknown.
        """
        started_at = time.monotonic()
        with self._database.writing() as connection:
            before = self._load_locked(connection, archive)
            after, result = change(before)
            if after != before:
                values = update(RATE_LIMITS).where(RATE_LIMITS.c.archive == archive).values(ledger=after.to_json())
                connection.execute(values)
        if after == RateLimitState():
            self._empty_since[archive] = started_at
        else:
            self._empty_since.pop(archive, None)
        return result

    def _load_locked(self, connection: Connection, archive: str) -> RateLimitState:
        """Return the state of an archive, with its row locked until the transaction ends."""
        query = select(RATE_LIMITS.c.ledger).where(RATE_LIMITS.c.archive == archive).with_for_update()
        text = connection.execute(query).scalar_one_or_none()
        if text is None:
            dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
            new_row = dialect.insert(RATE_LIMITS).values(archive=archive, ledger=RateLimitState().to_json())
            connection.execute(new_row.on_conflict_do_nothing())
            text = connection.execute(query).scalar_one()
        try:
            return RateLimitState.from_json(text)
        except InputError:
            self._warn(f"{archive}: the account of its limits is damaged: they are thought used up until midnight UTC")
            return RateLimitState(lost=True)
