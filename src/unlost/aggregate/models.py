"""What a client of the aggregator passes and gets: routing options, cache control, archive reports, the result."""

import json
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal, Protocol, Self

from unlost import dates
from unlost.logs import upstream
from unlost.memento.timemap import Mementos

LAST_MEMENTO = "last"
"""What `Wish.selects` is for the last memento."""


@dataclass(frozen=True, slots=True)
class RoutingOptions:
    """Which archives to ask. Answers to equal wishes are the same answer.

    archives: the ids of the only archives to ask, also if they are off; None for all that are on.
    broadcast: whether to ask all of them, whatever their maps and filters say.
    top_k: how many to ask at most: those that most likely have the page.
    min_probability: how likely an archive must have the page to be asked, 0 to 1. Above 0, pages are missed that are
        held: it buys precision with recall.
    prefers: ids of archives that are asked and no others, if any of them may have the page; for a first try.
    selects: only the memento closest to this date is needed, 14 digits, or the last one (`LAST`); None for all
        mementos. Archives that have a TimeGate are queried by it then.
    """

    archives: frozenset[str] | None = None
    broadcast: bool = False
    top_k: int | None = None
    min_probability: float = 0.0
    preferred: frozenset[str] | None = None
    closest_to: str | None = None

    @property
    def for_all_mementos(self) -> Self:
        """The same wish for all mementos."""
        return self if self.closest_to is None else replace(self, closest_to=None)

    @property
    def needs_likelihood(self) -> bool:
        """Whether it matters how likely an archive has the page, and not only whether it may."""
        return self.top_k is not None or self.min_probability > 0


@dataclass(frozen=True, slots=True)
class CacheControl:
    """Whether an answer that was kept will do.

    no_cache: nothing that was kept will do; what comes is kept.
    only_if_cached: no archive is to be asked.
    """

    no_cache: bool = False
    only_if_cached: bool = False


ArchiveOutcome = (
    upstream.UpstreamOutcome
    | Literal[
        "dormant",  # it failed so often that it is not asked for a while
        "not-now",  # its limits are used up, or it said to wait
        "excluded",  # it does not show the page: an answer, too
        "incomplete",  # it listed some copies and then failed, or has more than it lists
    ]
)
"""What came of asking an archive, or why it was not asked although it should have been."""
ANSWERED_OUTCOMES = frozenset({"hit", "miss", "excluded"})
"""The outcomes after which nothing more is to be expected of an archive."""


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What came of one archive that was to be asked for a page.

    archive: its id. reason: why it was to be asked. outcome: what came of it.
    mementos: how many copies it listed.
    duration_ms: from asking to the end of the answer.
    message: what went wrong, in a sentence; empty if nothing did.
    """

    archive: str
    reason: upstream.RoutingReason
    outcome: ArchiveOutcome
    mementos: int = 0
    duration_ms: float = 0.0
    message: str = ""

    @property
    def has_answered(self) -> bool:
        """Whether the archive said all that it has to say."""
        return self.outcome in ANSWERED_OUTCOMES


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
        self,
        uri: str,
        options: RoutingOptions = RoutingOptions(),  # noqa: B008
        cache_control: CacheControl = CacheControl(),  # noqa: B008
    ) -> AggregateResult:
        """Return the copies of a page, and what came of every archive.

        No archive's failure is raised. Raises UriError for what is no address, NotKeptError if no archive is to be
        asked and nothing was kept, UsageError for a wish that cannot be met, such as an archive that nobody knows.
        """
        ...
