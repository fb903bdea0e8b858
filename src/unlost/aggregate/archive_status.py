"""The status of each archive: whether it is queried and why, its circuit breaker, its map, its hit rate.

Used by the page and the JSON about archives, by the metrics, and by the pages of administrators.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from unlost._core import VERSION
from unlost.aggregate.holdings_store import HoldingsStatus, HoldingsStore
from unlost.aggregate.models import AggregateResult
from unlost.aggregate.router import ArchiveRouter
from unlost.aggregate.upstream import UpstreamResult
from unlost.clock import Clock
from unlost.dates import from_epoch, to_datetime, to_iso
from unlost.http.circuit_breaker import BreakerRegistry, BreakerStatus
from unlost.mementomap.lookup import ArchiveHoldings
from unlost.registry.loader import Registry
from unlost.registry.models import Archive

BreakerLabel = Literal["active", "trial", "dormant"]
"""Whether an archive is asked: it is; once, to see whether it answers again; it is not, for a while."""


@dataclass(frozen=True, slots=True)
class ArchiveStatus:
    """How one archive stands with us. Numbers are kept over restarts, times are in seconds since 1970.

    asked: whether it is asked unless it is named; why: what decides whether it is asked for a page, in a sentence.
    breaker: as above; until: when it is asked again, if it is dormant.
    failure: what came of asking it last, in words, unless it answered.
    has_map: whether a map or filters of it are in use. map_made, map_checked: of these: when they were made, if they
        tell, and when we last looked for newer ones.
    routed, routed_hits: how often its map said that it may hold a page, and how often it did.
    explored, explored_hits: how often it was asked although its map said no, and how often that was wrong.
    hit_rate: the share of all questions that it had an answer to, as learned.
    """

    archive: Archive
    is_queried: bool
    reason: str
    breaker: BreakerLabel = "active"
    retry_at: float | None = None
    failure: str | None = None
    has_map: bool = False
    map_created: float | None = None
    map_checked: float | None = None
    routed: int = 0
    routed_hits: int = 0
    explored: int = 0
    explored_hits: int = 0
    hit_rate: float | None = None


class ArchiveStatusProvider(Protocol):
    """Whoever knows how archives stand."""

    def archive_statuses(self) -> Sequence[ArchiveStatus]:
        """Return all archives of the registry, in its order."""
        ...


class ArchiveStatusTracker:
    """Whoever knows how archives stand. It is a listener of the aggregator, too."""

    def __init__(
        self, registry: Registry, holdings_store: HoldingsStore, router: ArchiveRouter, breakers: BreakerRegistry
    ) -> None:
        self._registry = registry
        self._holdings_store = holdings_store
        self._router = router
        self._breakers = breakers
        self._failures: dict[str, str] = {}

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Remember why an archive has not answered, until it does."""
        report = result.report
        if report.has_answered or result.final_outcome == "hit":
            self._failures.pop(report.archive, None)
        else:
            self._failures[report.archive] = f"{report.outcome}: {report.message}" if report.message else report.outcome

    def on_result(self, result: AggregateResult) -> None:
        """Do nothing: what came of single archives was told."""

    def archive_statuses(self) -> list[ArchiveStatus]:
        """Return all archives of the registry, in its order."""
        knowledge = {each.archive: each for each in self._holdings_store.statuses()}
        conditions = self._breakers.statuses()
        holdings = self._holdings_store.holdings()
        return [
            self._archive_status(each, knowledge.get(each.id), conditions.get(each.id), holdings)
            for each in self._registry
        ]

    def _archive_status(
        self,
        archive: Archive,
        known: HoldingsStatus | None,
        condition: BreakerStatus | None,
        holdings: Mapping[str, ArchiveHoldings],
    ) -> ArchiveStatus:
        accuracy = self._router.stats.accuracy(archive.id)
        return ArchiveStatus(
            archive,
            archive.enabled,
            _describe_routing(archive, known),
            "active" if condition is None else condition.state.value,
            None if condition is None else condition.until,
            failure=self._failures.get(archive.id),
            has_map=known is not None and bool(known.map or known.filters),
            map_created=_newest_map_time(holdings.get(archive.id)),
            map_checked=None if known is None else known.checked_at,
            routed=accuracy.precision.total,
            routed_hits=accuracy.precision.hits,
            explored=accuracy.false_negatives.total,
            explored_hits=accuracy.false_negatives.hits,
            hit_rate=round(self._router.stats.rates.rate(archive.id), 4),
        )


def _describe_routing(archive: Archive, known: HoldingsStatus | None) -> str:
    if not archive.enabled:
        return "it is off: only if it is named"
    if known is None:
        return "it has no map: its hit rate counts"
    filters = [] if not known.filters else ["its filter" if known.filters == 1 else f"{known.filters} filters"]
    parts = [*(["its map"] if known.map else []), *filters]
    verb = "decides" if len(parts) == 1 and known.filters < 2 else "decide"
    said = f"{' and '.join(parts)} {verb}" if parts else "what is known of it cannot be used: its hit rate counts"
    return "; ".join([said, *known.problems])


def _newest_map_time(holdings: ArchiveHoldings | None) -> float | None:
    """Return when the newest part of it was made, in seconds since 1970; None if none says."""
    if holdings is None:
        return None
    dates = [date for each in holdings.filters if (date := each.built_at or each.latest)]
    return max((to_datetime(date).timestamp() for date in dates), default=None)


def describe_archives(statuses: Sequence[ArchiveStatus], clock: Clock, *, is_public: bool = False) -> dict[str, object]:
    """Return everything as JSON has it: times as ISO 8601, ages and waits in seconds, shares from 0 to 1.

    is_public: of failures, only the kind: messages may have URLs that users looked up, and paths of files.
    """
    now = clock.now()
    return {
        "name": "unlost",
        "version": VERSION,
        "time": _format_time(now),
        "archives": [_describe_archive(each, now, is_public=is_public) for each in statuses],
    }


def _describe_archive(status: ArchiveStatus, now: float, *, is_public: bool) -> dict[str, object]:
    archive = status.archive
    failure = status.failure
    if failure is not None and is_public:
        failure = failure.partition(":")[0]
    found: dict[str, object] = {
        "id": archive.id,
        "name": archive.name,
        "kind": str(archive.kind),
        "asked": status.is_queried,
        "why": status.reason,
        "breaker": status.breaker,
        "last_failure": failure,
        "seconds_until_asked": round(status.retry_at - now) if status.retry_at and status.retry_at > now else None,
        "hit_rate": status.hit_rate,
        "map": None,
        "routed": {"asked": status.routed, "hits": status.routed_hits},
        "explored": {"asked": status.explored, "hits": status.explored_hits},
        "precision": _share(status.routed_hits, status.routed),
        "wrong_refusals": _share(status.explored_hits, status.explored),
    }
    if status.has_map:
        made = status.map_created
        found["map"] = {
            "made": None if made is None else _format_time(made),
            "age_seconds": None if made is None else max(0, round(now - made)),
            "checked": None if status.map_checked is None else _format_time(status.map_checked),
        }
    return found


def _format_time(seconds: float) -> str:
    return to_iso(from_epoch(str(int(seconds))))


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
