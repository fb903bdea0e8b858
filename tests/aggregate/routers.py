"""Routers that leave nothing to chance, and what they chose."""

from random import Random
from typing import Any

from tests.aggregate.maps import Knowing
from unlost.aggregate import ArchiveRoute, ArchiveRouter, LearnedStats
from unlost.registry import Archive, Registry

PAGE = "http://example.com/a"


def router(archives: list[Archive], known: Knowing | None = None, **options: Any) -> ArchiveRouter:  # noqa: ANN401  those of Router
    """Return a router that explores nothing unless it is told to."""
    options = {"exploring": 0.0, "random": Random(7), **options}  # noqa: S311
    return ArchiveRouter(Registry(tuple(archives)), known or Knowing(), LearnedStats(archives), **options)


def asked(route: ArchiveRoute) -> list[tuple[str, str]]:
    """Return who is asked, and why."""
    return [(choice.archive.id, choice.reason) for choice in route.targets]
