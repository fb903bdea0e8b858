"""How archives stand with us: what the aggregator's parts know of each, put together."""

from collections.abc import Mapping

from unlost.aggregate.asking import Asked
from unlost.aggregate.breaker import Breakers, Condition
from unlost.aggregate.found import Found
from unlost.aggregate.known import Knowledge, Known
from unlost.aggregate.routing import Router
from unlost.archives.archive import Archive
from unlost.archives.registry.registry import Registry
from unlost.dates import to_datetime
from unlost.holdings.routing import Holdings
from unlost.service.standing import Standing


class Standings:
    """Whoever knows how archives stand. It is a listener of the aggregator, too."""

    def __init__(self, registry: Registry, known: Known, router: Router, breakers: Breakers) -> None:
        self._registry = registry
        self._known = known
        self._router = router
        self._breakers = breakers
        self._failures: dict[str, str] = {}

    def heard(self, asked: Asked) -> None:
        """Remember why an archive has not answered, until it does."""
        report = asked.report
        if report.has_answered or asked.ended == "hit":
            self._failures.pop(report.archive, None)
        else:
            self._failures[report.archive] = f"{report.outcome}: {report.message}" if report.message else report.outcome

    def found(self, found: Found) -> None:
        """Do nothing: what came of single archives was told."""

    def standings(self) -> list[Standing]:
        """Return all archives of the registry, in its order."""
        knowledge = {each.archive: each for each in self._known.knowledge()}
        conditions = self._breakers.conditions()
        holdings = self._known.all()
        return [
            self._standing(each, knowledge.get(each.id), conditions.get(each.id), holdings) for each in self._registry
        ]

    def _standing(
        self, archive: Archive, known: Knowledge | None, condition: Condition | None, holdings: Mapping[str, Holdings]
    ) -> Standing:
        accuracy = self._router.experience.accuracy(archive.id)
        return Standing(
            archive,
            archive.enabled,
            _why(archive, known),
            "active" if condition is None else condition.state.value,
            None if condition is None else condition.until,
            failure=self._failures.get(archive.id),
            has_map=known is not None and bool(known.map or known.filters),
            map_made=_made(holdings.get(archive.id)),
            map_checked=None if known is None else known.checked,
            routed=accuracy.precision.total,
            routed_hits=accuracy.precision.hits,
            explored=accuracy.false_negatives.total,
            explored_hits=accuracy.false_negatives.hits,
            hit_rate=round(self._router.experience.rates.rate(archive.id), 4),
        )


def _why(archive: Archive, known: Knowledge | None) -> str:
    if not archive.enabled:
        return "it is off: only if it is named"
    if known is None:
        return "it has no map: its hit rate counts"
    filters = [] if not known.filters else ["its filter" if known.filters == 1 else f"{known.filters} filters"]
    parts = [*(["its map"] if known.map else []), *filters]
    verb = "decides" if len(parts) == 1 and known.filters < 2 else "decide"
    said = f"{' and '.join(parts)} {verb}" if parts else "what is known of it cannot be used: its hit rate counts"
    return "; ".join([said, *known.problems])


def _made(holdings: Holdings | None) -> float | None:
    """Return when the newest part of it was made, in seconds since 1970; None if none says."""
    if holdings is None:
        return None
    dates = [date for each in holdings.filters if (date := each.made or each.latest)]
    return max((to_datetime(date).timestamp() for date in dates), default=None)
