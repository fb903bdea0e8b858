"""How archives stand with us: what the aggregator's parts know of each, put together."""

from collections.abc import Mapping

from unlost.aggregate.asking import UpstreamResult
from unlost.aggregate.breaker import BreakerRegistry, BreakerStatus
from unlost.aggregate.found import AggregateResult
from unlost.aggregate.known import HoldingsStatus, HoldingsStore
from unlost.aggregate.routing import ArchiveRouter
from unlost.archives.archive import Archive
from unlost.archives.registry.registry import Registry
from unlost.dates import to_datetime
from unlost.holdings.routing import ArchiveHoldings
from unlost.service.standing import ArchiveStatus


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
