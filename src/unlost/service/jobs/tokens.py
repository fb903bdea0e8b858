"""Tokens of those who look after jobs. Only their hashes are kept."""

import secrets
import time
from hashlib import sha256

from sqlalchemy import func, insert, select

from unlost.service.jobs.database import Database
from unlost.service.jobs.tables import TOKENS

_TOKEN_CACHE_SECONDS = 5.0  # for which a token that was revoked elsewhere may still be taken


class AdminTokens:
    """The tokens in a database.

    They are 256 bits at random: there is nothing to try out, so one hash is enough, and a slow one for passwords that
    people think of would only slow every request.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cache: dict[str, tuple[float, str]] = {}

    def cached_name(self, token: str) -> str | None:
        """Return whose token it was some seconds ago; None if nobody looked: then `name_of` says."""
        until, name = self._cache.get(_hash_token(token), (0.0, ""))
        return name if time.monotonic() < until else None

    def create(self, name: str) -> str:
        """Make a token for somebody, and return it: it cannot be had again."""
        token = f"unlost_{secrets.token_urlsafe(32)}"
        with self._database.writing() as connection:
            now = self._database.now(connection)
            connection.execute(insert(TOKENS).values(hash=_hash_token(token), name=name, made=now))
        return token

    def find_name(self, token: str) -> str | None:
        """Return whose token it is; None if it is none."""
        hashed = _hash_token(token)
        with self._database.reading() as connection:
            name = connection.execute(select(TOKENS.c.name).where(TOKENS.c.hash == hashed)).scalar_one_or_none()
        if name is None:
            self._cache.pop(hashed, None)  # only tokens that are some are remembered: there are few of them
        else:
            self._cache[hashed] = (time.monotonic() + _TOKEN_CACHE_SECONDS, name)
        return name

    def list_names(self) -> list[str]:
        """Return whose tokens there are."""
        with self._database.reading() as connection:
            return list(connection.execute(select(TOKENS.c.name).order_by(TOKENS.c.made)).scalars())

    def count(self) -> int:
        """Return how many there are."""
        with self._database.reading() as connection:
            return int(connection.execute(select(func.count()).select_from(TOKENS)).scalar_one())

    def revoke(self, name: str) -> int:
        """Make all tokens of somebody worthless; return how many there were."""
        with self._database.writing() as connection:
            return connection.execute(TOKENS.delete().where(TOKENS.c.name == name)).rowcount


def _hash_token(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
