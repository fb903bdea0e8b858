"""Which archives were asked what they hold below which prefix, and what came of it."""

from dataclasses import dataclass
from enum import StrEnum

from unlost.recover.state.file import RecoveryStateFile


class ListingStatus(StrEnum):
    """What came of a lister query."""

    DONE = "done"
    TRUNCATED = "cut"
    """It ended at a cap: the archive may hold more."""
    UNSUPPORTED = "unsupported"
    """The archive has no such list, and may hold anything."""
    EXCLUDED = "excluded"
    """It does not show the site."""
    FAILED = "failed"
    """It gave no whole list: the next run asks again."""
    NOT_NOW = "not-now"
    """It was not asked, or not to the end: a limit, or a block."""


@dataclass(frozen=True, slots=True)
class ListingRow:
    """One lister query, over all its pages.

    captures: how many were listed that had not been listed before.
    message: what was wrong; None if nothing was. until: when the archive may be asked again, seconds since 1970.
    """

    archive: str
    prefix: str
    outcome: ListingStatus
    captures: int
    message: str | None = None
    until: float | None = None


class ListingTable:
    """The table of lister queries."""

    def __init__(self, file: RecoveryStateFile) -> None:
        self._file = file

    def store(self, listing: ListingRow) -> None:
        """Keep what came of one, in the place of what came of it before."""
        self._file.begin()
        row = (listing.archive, listing.prefix, listing.outcome.value, listing.captures, listing.message, listing.until)
        self._file.connection.execute("INSERT OR REPLACE INTO listing VALUES (?, ?, ?, ?, ?, ?)", row)

    def all(self) -> list[ListingRow]:
        """Return all of them."""
        rows = self._file.connection.execute("SELECT archive, prefix, outcome, captures, message, until FROM listing")
        return [ListingRow(archive, prefix, ListingStatus(outcome), *more) for archive, prefix, outcome, *more in rows]

    def clear(self) -> None:
        """Forget all, so that they are asked for again; captures that were listed are kept."""
        self._file.begin()
        self._file.connection.execute("DELETE FROM listing")
