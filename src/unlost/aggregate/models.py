"""Data model of the aggregator: routing options, cache control, archive reports and the result."""

import json
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal, Protocol, Self

from unlost import dates
from unlost.logs import upstream
from unlost.memento.timemap import Mementos

LAST_MEMENTO = "last"
"""Value of `RoutingOptions.closest_to` that selects the last memento."""

ArchiveOutcome = (
    upstream.UpstreamOutcome
    | Literal[
        "dormant",  # its circuit is open after repeated failures
        "not-now",  # rate limited, or its quota is exhausted
        "excluded",  # the archive blocks access to the page; a complete response
        "incomplete",  # it listed some mementos and then failed, or holds more than it lists
    ]
)
"""Outcome of a request to an archive, or the reason why none was sent."""
ANSWERED_OUTCOMES = frozenset({"hit", "miss", "excluded"})
"""Outcomes that are complete: repeating the request would not add mementos."""

_DIGEST_BATCH = 20_000  # mementos serialized at a time
_FUTURE_SECONDS = 86_400.0  # tolerance, because clocks and time zones of archives differ


@dataclass(frozen=True, slots=True)
class RoutingOptions:
    """Which archives to query.

    Options are hashable: results are cached by URL and options.

    Attributes:
        archives: IDs of the only archives to query, including disabled ones; None for all enabled archives.
        broadcast: Whether to query all of them, regardless of MementoMaps, filters and hit rates.
        top_k: Maximum number of archives to query, the likeliest first; None for no limit.
        min_probability: Minimum probability, from 0 to 1, that an archive holds the page. Values above 0 raise
            precision and lower recall.
        preferred: IDs of archives that are queried alone if any of them may hold the page; for a first attempt.
        closest_to: Select only the memento closest to this date (14 digits), or the last one (`LAST_MEMENTO`); None for
            all mementos. Archives with a TimeGate are then queried through it.
    """

    archives: frozenset[str] | None = None
    broadcast: bool = False
    top_k: int | None = None
    min_probability: float = 0.0
    preferred: frozenset[str] | None = None
    closest_to: str | None = None

    @property
    def for_all_mementos(self) -> Self:
        """The same options without a selected date."""
        return self if self.closest_to is None else replace(self, closest_to=None)

    @property
    def needs_likelihood(self) -> bool:
        """Whether the choice depends on how likely an archive holds the page, not only on whether it may."""
        return self.top_k is not None or self.min_probability > 0


@dataclass(frozen=True, slots=True)
class CacheControl:
    """Whether a cached result is acceptable, as in the request header `Cache-Control`.

    Attributes:
        no_cache: Ignore cached results; the new result is cached.
        only_if_cached: Query no archive.
    """

    no_cache: bool = False
    only_if_cached: bool = False


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """Result of one archive that was selected for a look-up.

    Attributes:
        archive: ID of the archive.
        reason: Why the archive was selected.
        outcome: What the request resulted in.
        mementos: Number of mementos listed.
        duration_ms: Time from the request to the end of the response.
        message: Description of the failure; empty if there was none.
    """

    archive: str
    reason: upstream.RoutingReason
    outcome: ArchiveOutcome
    mementos: int = 0
    duration_ms: float = 0.0
    message: str = ""

    @property
    def has_answered(self) -> bool:
        """Whether the archive responded completely."""
        return self.outcome in ANSWERED_OUTCOMES


@dataclass(frozen=True, slots=True)
class AggregateResult:
    """Mementos of a page, with a report for each selected archive.

    Attributes:
        uri: Requested URL (URI-R).
        mementos: Merged mementos of all archives.
        reports: One report for each selected archive, sorted by ID.
        passed_over: IDs of the archives that were not selected, because their maps or hit rates say that they hold
            nothing.
        created_at: When the archives had responded, in seconds since 1970.
        expires_at: When the result becomes stale, in seconds since 1970.
        from_cache: Whether the result was cached, so that no archive was queried for it.
        retry_at: When the first rate limit or circuit breaker of an archive that did not respond admits requests again,
            in seconds since 1970; None if unknown.
        is_selection: Whether TimeGates were queried; `mementos` then has only those that the TimeGates named.
        known_ends: Whether the first and the last of `mementos` are the first and the last that the archives hold.
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
        """32 hexadecimal digits over the URL, mementos, outcomes, messages and archives passed over.

        Times, durations and the cache status do not count. For a million mementos it takes 110 ms, so it is computed in
        a thread for long TimeMaps.
        """
        if self._digest is None:
            reports = [[each.archive, each.reason, each.outcome, each.mementos, each.message] for each in self.reports]
            text = json.dumps([self.uri, reports, self.passed_over]).encode()
            digest = sha256(text + b"\n")
            for begin in range(0, max(1, len(self.mementos)), _DIGEST_BATCH):
                digest.update(self.mementos[begin : begin + _DIGEST_BATCH].pack())
            # Computed once: a cached result is served many times.
            object.__setattr__(self, "_digest", digest.hexdigest()[:32])
        return self._digest or ""

    @property
    def last_index(self) -> int:
        """Index of the last memento; -1 without mementos.

        Mementos dated more than a day in the future do not count, unless there are no others: their dates are wrong.
        """
        present, _ = self._present_mementos()
        return (present or len(self.mementos)) - 1

    def closest_index(self, date: str | None) -> int | None:
        """Return the index of the memento closest to a date, or of the last memento without a date.

        Args:
            date: 14 digits. A memento dated in the future is returned only if the date is in the future, too.

        Returns:
            The index, or None without mementos.
        """
        if not date or not len(self.mementos):
            return self.last_index if len(self.mementos) else None
        index = self.mementos.closest(date)
        if index is not None and index > self.last_index and date <= self._present_mementos()[1]:
            return self.last_index
        return index

    def _present_mementos(self) -> tuple[int, str]:
        """Return the number of mementos not dated in the future, and the 14 digits from which dates count as future."""
        if self._present is None:
            future = dates.from_epoch(str(int(self.created_at + _FUTURE_SECONDS)))
            object.__setattr__(self, "_present", (self.mementos.until(future), future))
        return self._present or (0, "")

    @property
    def failures(self) -> tuple[ArchiveReport, ...]:
        """Reports of archives that did not respond completely: there may be more mementos."""
        return tuple(report for report in self.reports if not report.has_answered)


class MementoFinder(Protocol):
    """Finds the mementos of a page."""

    async def find(
        self,
        uri: str,
        options: RoutingOptions = RoutingOptions(),  # noqa: B008
        cache_control: CacheControl = CacheControl(),  # noqa: B008
    ) -> AggregateResult:
        """Return the mementos of a page, with a report for each selected archive.

        A failing archive raises nothing; its report says what failed.

        Raises:
            UriError: The URL is invalid.
            NotKeptError: Only a cached result is acceptable, and there is none.
            UsageError: The options are invalid, such as an unknown archive.
        """
        ...
