"""The rate-limit state of archives in the database: limits hold for all workers together, on any machine."""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects import postgresql, sqlite

from unlost.errors import InputError
from unlost.http.rate_limit import RateLimitState
from unlost.jobs.database import Database
from unlost.jobs.tables import ACCOUNTS

T = TypeVar("T")

_EMPTY_CACHE_SECONDS = 0.25  # for which an account that had no entries is thought to have none, as files have it
_log = logging.getLogger(__name__)


class DatabaseLimitStore:
    """An account for each archive, in a row that is locked while it is changed: a `LimitStore`."""

    is_blocking = True

    def __init__(self, database: Database, warn: Callable[[str], None] = _log.warning) -> None:
        self._database = database
        self._warn = warn
        self._empty_since: dict[str, float] = {}

    def is_known_empty(self, archive: str) -> bool:
        """Return whether an account was seen to have no entries, a quarter of a second ago at most."""
        seen = self._empty_since.get(archive)
        return seen is not None and time.monotonic() - seen < _EMPTY_CACHE_SECONDS

    def update(self, archive: str, change: Callable[[RateLimitState], tuple[RateLimitState, T]]) -> T:
        """Replace an archive's account, and return what the function returned beside it.

        Raises DatabaseError if the database cannot be reached: limits that cannot be kept are no reason to send
        without.
        """
        begun = time.monotonic()
        with self._database.writing() as connection:
            before = self._load_locked(connection, archive)
            after, result = change(before)
            if after != before:
                values = update(ACCOUNTS).where(ACCOUNTS.c.archive == archive).values(ledger=after.to_json())
                connection.execute(values)
        if after == RateLimitState():
            self._empty_since[archive] = begun
        else:
            self._empty_since.pop(archive, None)
        return result

    def _load_locked(self, connection: Connection, archive: str) -> RateLimitState:
        """Return the account of an archive, which nobody else can change until this transaction ends."""
        chosen = select(ACCOUNTS.c.ledger).where(ACCOUNTS.c.archive == archive).with_for_update()
        text = connection.execute(chosen).scalar_one_or_none()
        if text is None:
            kind = postgresql if connection.dialect.name == "postgresql" else sqlite
            new = kind.insert(ACCOUNTS).values(archive=archive, ledger=RateLimitState().to_json())
            connection.execute(new.on_conflict_do_nothing())
            text = connection.execute(chosen).scalar_one()
        try:
            return RateLimitState.from_json(text)
        except InputError:
            self._warn(f"{archive}: the account of its limits is damaged: they are thought used up until midnight UTC")
            return RateLimitState(lost=True)
