"""What was found of a page in all archives that were asked."""

from dataclasses import dataclass
from typing import Protocol

from unlost.aggregate.mementos import Mementos
from unlost.aggregate.report import Report
from unlost.aggregate.wish import Freshness, Wish


@dataclass(frozen=True, slots=True)
class Found:
    """The copies of a page, and what came of every archive.

    uri: the page (URI-R), as it was asked for. mementos: its copies.
    reports: of each archive that was to be asked, in the order of their ids. passed_over: the ids of those that were
        not, since their maps or hit rates say that they have nothing.
    made: when the archives had been asked, in seconds since 1970. until: until when it may be kept, the same.
    from_cache: whether nobody had to be asked.
    """

    uri: str
    mementos: Mementos
    reports: tuple[Report, ...]
    passed_over: tuple[str, ...]
    made: float
    until: float
    from_cache: bool = False

    @property
    def failures(self) -> tuple[Report, ...]:
        """The reports of archives that did not say all that they have to say: there may be more copies."""
        return tuple(report for report in self.reports if not report.has_answered)


class Finds(Protocol):
    """Whoever finds the copies of a page."""

    async def find(self, uri: str, wish: Wish = Wish(), freshness: Freshness = Freshness()) -> Found:  # noqa: B008
        """Return the copies of a page, and what came of every archive.

        No archive's failure is raised. Raises UriError for what is no address, NotKeptError if no archive is to be
        asked and nothing was kept, UsageError for a wish that cannot be met, such as an archive that nobody knows.
        """
        ...
