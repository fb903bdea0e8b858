"""Routers without randomness, and the targets of a route."""

from random import Random
from typing import Any

from tests.aggregate.maps import MemoryHoldings
from unlost.aggregate import ArchiveRoute, ArchiveRouter, LearnedStats
from unlost.registry import Archive, Registry

PAGE = "http://example.com/a"


def router(archives: list[Archive], known: MemoryHoldings | None = None, **options: Any) -> ArchiveRouter:  # noqa: ANN401  those of Router
    """Return a router that does not explore by default."""
    options = {"exploration_share": 0.0, "random": Random(7), **options}  # noqa: S311
    return ArchiveRouter(Registry(tuple(archives)), known or MemoryHoldings(), LearnedStats(archives), **options)


def targets_of(route: ArchiveRoute) -> list[tuple[str, str]]:
    """Return id and reason of each target."""
    return [(choice.archive.id, choice.reason) for choice in route.targets]
