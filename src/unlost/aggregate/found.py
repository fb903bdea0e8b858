"""What was found of a page in all archives that were asked."""

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

from unlost import dates
from unlost.aggregate.report import ArchiveReport
from unlost.aggregate.wish import CacheControl, RoutingOptions
from unlost.formats.mementos import Mementos

_DIGEST_BATCH = 20_000  # whose bytes are in memory at a time
_FUTURE_SECONDS = 86_400.0  # after the archives were queried: clocks and time zones of archives differ


@dataclass(frozen=True, slots=True)
class AggregateResult:
    """The copies of a page, and what came of every archive.

    uri: the page (URI-R), as it was asked for. mementos: its copies.
    reports: of each archive that was to be asked, in the order of their ids. passed_over: the ids of those that were
        not, since their maps or hit rates say that they have nothing.
    made: when the archives had been asked, in seconds since 1970. until: until when it may be kept, the same.
    from_cache: whether nobody had to be asked.
    retry_at: when the first rate limit or circuit breaker of an archive that did not answer admits requests again, in
        seconds since 1970; None if that is not known.
    is_selection: whether TimeGates were queried: then only those mementos are known that they named.
    known_ends: whether the first and the last of `mementos` are the first and the last that the archives have.
    """

    uri: str
    mementos: Mementos
    reports: tuple[ArchiveReport, ...]
    passed_over: tuple[str, ...]
    created_at: float
    expires_at: float
    from_cache: bool = False
    retry_at: float | None = None
    is_selection: bool = False
    known_ends: tuple[bool, bool] = (True, True)
    _digest: str | None = field(default=None, init=False, repr=False, compare=False)
    _present: tuple[int, str] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def digest(self) -> str:
        """32 hexadecimal digits that are the same for the same page, copies, outcomes, messages and archives left out.

        When it was found, how long that took and whether it was kept do not matter.
        """
        if self._digest is None:
            said = [[each.archive, each.reason, each.outcome, each.mementos, each.message] for each in self.reports]
            text = json.dumps([self.uri, said, self.passed_over]).encode()
            digest = sha256(text + b"\n")
            for begin in range(0, max(1, len(self.mementos)), _DIGEST_BATCH):
                digest.update(self.mementos[begin : begin + _DIGEST_BATCH].packed())
            # It is found out once, for an answer that is kept is given often.
            object.__setattr__(self, "_digest", digest.hexdigest()[:32])
        return self._digest or ""

    @property
    def last_index(self) -> int:
        """The index of the last memento; -1 without mementos.

        Mementos dated more than a day in the future do not count, unless there are no others: their dates are wrong.
        """
        present, _ = self._present_mementos()
        return (present or len(self.mementos)) - 1

    def closest_index(self, date: str | None) -> int | None:
        """Return the index of the memento closest to a date; without a date, of the last. None without mementos.

        date: 14 digits. A memento dated in the future is returned only if the date is in the future, too.
        """
        if not date or not len(self.mementos):
            return self.last_index if len(self.mementos) else None
        place = self.mementos.closest(date)
        if place is not None and place > self.last_index and date <= self._present_mementos()[1]:
            return self.last_index
        return place

    def _present_mementos(self) -> tuple[int, str]:
        """Return how many mementos are not dated in the future, and when the future begins."""
        if self._present is None:
            future = dates.from_epoch(str(int(self.created_at + _FUTURE_SECONDS)))
            object.__setattr__(self, "_present", (self.mementos.until(future), future))
        return self._present or (0, "")

    @property
    def failures(self) -> tuple[ArchiveReport, ...]:
        """The reports of archives that did not say all that they have to say: there may be more copies."""
        return tuple(report for report in self.reports if not report.has_answered)


class MementoFinder(Protocol):
    """Whoever finds the copies of a page."""

    async def find(
        self, uri: str, options: RoutingOptions = RoutingOptions(), cache_control: CacheControl = CacheControl()
    ) -> AggregateResult:  # noqa: B008
        """Return the copies of a page, and what came of every archive.

        No archive's failure is raised. Raises UriError for what is no address, NotKeptError if no archive is to be
        asked and nothing was kept, UsageError for a wish that cannot be met, such as an archive that nobody knows.
        """
        ...
