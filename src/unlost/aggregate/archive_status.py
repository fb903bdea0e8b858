"""Status of each archive: whether it is queried and why, its circuit breaker, its map and its hit rate.

Used by the HTML page and the JSON about archives, by the metrics, and by the administrators' pages.
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
"""State of an archive's circuit breaker: closed, half-open (one trial request is sent), or open (not queried)."""


@dataclass(frozen=True, slots=True)
class ArchiveStatus:
    """Status of one archive. Counts survive restarts; times are in seconds since 1970.

    Attributes:
        archive: The archive.
        is_queried: Whether it is enabled. A disabled archive is queried only if a request names it.
        reason: Sentence that says what decides whether it is queried for a page.
        breaker: State of its circuit breaker.
        retry_at: When it is queried again; None unless its circuit is open.
        failure: Outcome and message of the last request; None if it succeeded.
        has_map: Whether a map or filters of it are in use.
        map_created: When the newest filter was built; None if unknown.
        map_checked: When newer versions of its map and filters were last checked for.
        routed: Number of requests sent because its map or filters say that it may hold the page.
        routed_hits: Number of those for which it had mementos.
        explored: Number of requests sent although its map denies the page.
        explored_hits: Number of those for which it had mementos, so that the map was wrong.
        hit_rate: Learned share of requests for which it has mementos.
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
    """Provides the status of archives."""

    def archive_statuses(self) -> Sequence[ArchiveStatus]:
        """Return the status of all archives of the registry, in its order."""
        ...


class ArchiveStatusTracker:
    """Collects the status of archives. It is also a listener of the aggregator (`UpstreamListener`)."""

    def __init__(
        self, registry: Registry, holdings_store: HoldingsStore, router: ArchiveRouter, breakers: BreakerRegistry
    ) -> None:
        self._registry = registry
        self._holdings_store = holdings_store
        self._router = router
        self._breakers = breakers
        self._failures: dict[str, str] = {}

    def on_upstream_result(self, result: UpstreamResult) -> None:
        """Record why an archive failed, until it responds again."""
        report = result.report
        if report.has_answered or result.final_outcome == "hit":
            self._failures.pop(report.archive, None)
        else:
            self._failures[report.archive] = f"{report.outcome}: {report.message}" if report.message else report.outcome

    def on_result(self, result: AggregateResult) -> None:
        """Do nothing: `on_upstream_result` has seen the single responses."""

    def archive_statuses(self) -> list[ArchiveStatus]:
        """Return the status of all archives of the registry, in its order."""
        holdings_statuses = {status.archive: status for status in self._holdings_store.statuses()}
        breaker_statuses = self._breakers.statuses()
        holdings = self._holdings_store.holdings()
        return [
            self._archive_status(archive, holdings_statuses.get(archive.id), breaker_statuses.get(archive.id), holdings)
            for archive in self._registry
        ]

    def _archive_status(
        self,
        archive: Archive,
        holdings_status: HoldingsStatus | None,
        breaker_status: BreakerStatus | None,
        holdings: Mapping[str, ArchiveHoldings],
    ) -> ArchiveStatus:
        accuracy = self._router.stats.accuracy(archive.id)
        return ArchiveStatus(
            archive,
            archive.enabled,
            _describe_routing(archive, holdings_status),
            "active" if breaker_status is None else breaker_status.state.value,
            None if breaker_status is None else breaker_status.until,
            failure=self._failures.get(archive.id),
            has_map=holdings_status is not None and bool(holdings_status.map or holdings_status.filters),
            map_created=_newest_map_time(holdings.get(archive.id)),
            map_checked=None if holdings_status is None else holdings_status.checked_at,
            routed=accuracy.precision.total,
            routed_hits=accuracy.precision.hits,
            explored=accuracy.false_negatives.total,
            explored_hits=accuracy.false_negatives.hits,
            hit_rate=round(self._router.stats.rates.rate(archive.id), 4),
        )


def _describe_routing(archive: Archive, holdings_status: HoldingsStatus | None) -> str:
    if not archive.enabled:
        return "disabled: queried only if named"
    if holdings_status is None:
        return "no map: routed by hit rate"
    filters = (
        []
        if not holdings_status.filters
        else ["its filter" if holdings_status.filters == 1 else f"{holdings_status.filters} filters"]
    )
    parts = [*(["its map"] if holdings_status.map else []), *filters]
    description = f"routed by {' and '.join(parts)}" if parts else "map not usable: routed by hit rate"
    return "; ".join([description, *holdings_status.problems])


def _newest_map_time(holdings: ArchiveHoldings | None) -> float | None:
    """Return when the newest filter was built, in seconds since 1970; None if unknown."""
    if holdings is None:
        return None
    dates = [date for each in holdings.filters if (date := each.built_at or each.latest)]
    return max((to_datetime(date).timestamp() for date in dates), default=None)


def describe_archives(statuses: Sequence[ArchiveStatus], clock: Clock, *, is_public: bool = False) -> dict[str, object]:
    """Return all statuses as a JSON object: times in ISO 8601, ages and waits in seconds, shares from 0 to 1.

    Args:
        statuses: The statuses.
        clock: Source of the current time.
        is_public: Reduce failures to their kind: messages may contain URLs that users looked up, and file paths.
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
    members: dict[str, object] = {
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
        created_at = status.map_created
        members["map"] = {
            "made": None if created_at is None else _format_time(created_at),
            "age_seconds": None if created_at is None else max(0, round(now - created_at)),
            "checked": None if status.map_checked is None else _format_time(status.map_checked),
        }
    return members


def _format_time(seconds: float) -> str:
    return to_iso(from_epoch(str(int(seconds))))


def _share(count: int, total: int) -> float | None:
    return round(count / total, 4) if total else None
