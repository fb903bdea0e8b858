"""Which archives are to be asked for a page, and why: what a router answers."""

from dataclasses import dataclass
from typing import Protocol

from unlost.aggregate.hit_rates import Evidence
from unlost.aggregate.wish import RoutingOptions
from unlost.archives.archive import Archive
from unlost.formats import upstream


@dataclass(frozen=True, slots=True)
class RouteTarget:
    """One archive that is to be asked.

    reason: why. likelihood: how likely it has the page, from 0 to 1, as far as answers have taught.
    ground: what its map and filters say about the page, if they were looked at; to be given back when it has answered.
    """

    archive: Archive
    reason: upstream.RoutingReason
    likelihood: float = 1.0
    evidence: Evidence = Evidence.ANY


@dataclass(frozen=True, slots=True)
class ArchiveRoute:
    """Whom to ask for a page.

    asked: those to ask, each once. passed_over: the ids of those that are on and not asked: they have nothing, most
    likely. Both are in the order of the registry.
    """

    targets: tuple[RouteTarget, ...]
    passed_over: tuple[str, ...] = ()


class RouteProvider(Protocol):
    """Whoever chooses archives."""

    def route(self, uri: str, options: RoutingOptions) -> ArchiveRoute:
        """Return whom to ask for a page; at once, since the event loop waits.

        Raises UriError for what is no address, UsageError for a wish that cannot be met.
        """
        ...
