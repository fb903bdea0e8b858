"""How often one visitor may have archives asked what they hold: they are other people's servers."""

from sqlalchemy import and_, delete, insert

from unlost.service.jobs.database import Database
from unlost.service.jobs.rules import count_tallies
from unlost.service.jobs.tables import TALLIES

_LOOKUP_TALLY = "look"
_MAX_LOOKUPS = 30  # in that time: of somebody who types an address, corrects it, and has ten sites
_LOOKUP_WINDOW_SECONDS = 600.0


class LookupRateLimit:
    """Counts look-ups by whence they come, in the database: for all processes that answer together."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def try_acquire(self, client: str) -> bool:
        """Return whether somebody may have another one; if so, it is counted. Raises as `Database` does."""
        with self._database.writing() as connection:
            self._database.lock_names(connection, f"{_LOOKUP_TALLY} {client}")
            now = self._database.now(connection)
            if count_tallies(connection, _LOOKUP_TALLY, client, now - _LOOKUP_WINDOW_SECONDS) >= _MAX_LOOKUPS:
                return False
            is_over = and_(TALLIES.c.kind == _LOOKUP_TALLY, TALLIES.c.at < now - _LOOKUP_WINDOW_SECONDS)
            connection.execute(delete(TALLIES).where(is_over))
            connection.execute(insert(TALLIES).values(kind=_LOOKUP_TALLY, who=client, at=now))
        return True
