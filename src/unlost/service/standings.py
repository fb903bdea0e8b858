"""How archives stand with us: what the aggregator's parts know of each, put together."""

from collections.abc import Mapping

from unlost.aggregate.breaker import Breakers, Condition
from unlost.aggregate.known import Knowledge, Known
from unlost.aggregate.routing import Router
from unlost.archives.archive import Archive
from unlost.archives.registry.registry import Registry
from unlost.dates import to_datetime
from unlost.holdings.routing import Holdings
from unlost.service.standing import Standing


class Standings:
    """Whoever knows how archives stand."""

    def __init__(self, registry: Registry, known: Known, router: Router, breakers: Breakers) -> None:
        self._registry = registry
        self._known = known
        self._router = router
        self._breakers = breakers

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
    parts = [*(["its map"] if known.map else []), *([f"{known.filters} filters"] if known.filters else [])]
    said = f"{' and '.join(parts)} decide" if parts else "what is known of it cannot be used: its hit rate counts"
    return "; ".join([said, *known.problems])


def _made(holdings: Holdings | None) -> float | None:
    """Return when the newest part of it was made, in seconds since 1970; None if none says."""
    if holdings is None:
        return None
    dates = [date for each in holdings.filters if (date := each.made or each.latest)]
    return max((to_datetime(date).timestamp() for date in dates), default=None)
