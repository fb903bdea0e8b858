"""How often one visitor may have archives asked what they hold: they are other people's servers."""

from sqlalchemy import and_, delete, insert

from unlost.service.jobs.database import Database
from unlost.service.jobs.rules import tallied
from unlost.service.jobs.tables import TALLIES

_KIND = "look"
_MOST = 30  # in that time: of somebody who types an address, corrects it, and has ten sites
_SECONDS = 600.0


class LookLimit:
    """Counts look-ups by whence they come, in the database: for all processes that answer together."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def takes(self, client: str) -> bool:
        """Return whether somebody may have another one; if so, it is counted. Raises as `Database` does."""
        with self._database.writing() as connection:
            self._database.alone(connection, f"{_KIND} {client}")
            now = self._database.now(connection)
            if tallied(connection, _KIND, client, now - _SECONDS) >= _MOST:
                return False
            is_over = and_(TALLIES.c.kind == _KIND, TALLIES.c.at < now - _SECONDS)
            connection.execute(delete(TALLIES).where(is_over))
            connection.execute(insert(TALLIES).values(kind=_KIND, who=client, at=now))
        return True
