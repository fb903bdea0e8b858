"""Asks an aggregator for every address of the site, by maps and without them, and counts what that took."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unlost.aggregate.wish import CacheControl, RoutingOptions
from unlost.api.loop_thread import LoopThread
from unlost.archives.archive import Archive
from unlost.service.assembly import ServiceOptions, build_service

_DEADLINE_SECONDS = 60.0  # seconds for one answer: the machine may be busy, and nobody waits for a page
_FRESH = CacheControl(no_cache=True)


@dataclass(frozen=True, slots=True)
class DemoRouting:
    """What the aggregator did for all addresses together.

    sent: requests to archives, by their maps. not_sent: those that maps have saved. both by archive.
    found: copies that came, with maps. found_by_all: copies that came when everybody was asked for everything.
    failed: answers that did not come.
    """

    urls: int
    sent: Mapping[str, int]
    not_sent: Mapping[str, int]
    found: int
    found_by_all: int
    failed: int

    @property
    def requests(self) -> int:
        """How many were sent."""
        return sum(self.sent.values())

    @property
    def saved(self) -> int:
        """How many were not."""
        return sum(self.not_sent.values())


def measure_routing(
    archives: Mapping[str, Archive], maps: Mapping[str, Path], urls: Sequence[str], folder: Path
) -> DemoRouting:
    """Ask for all addresses twice: those that may have one by their maps, then everybody.

    folder: for the aggregator's own files. Nothing is raised for an archive that fails: it is counted.
    """
    known = [replace(each, mementomap=str(maps[name])) for name, each in archives.items()]
    # Nothing is asked at random, so that the numbers are the same each time.
    options = ServiceOptions(
        known, folder / "state", folder / "cache", _ignore_message, _DEADLINE_SECONDS, exploring=0.0, stays=False
    )
    with LoopThread("unlost.demo") as loop:
        return loop.run(_query_all(options, urls))


async def _query_all(options: ServiceOptions, urls: Sequence[str]) -> DemoRouting:
    sent, not_sent = (Counter({each.id: 0 for each in options.archives}) for _ in range(2))
    found = found_by_all = failed = 0
    async with build_service(options) as parts:
        for address in urls:
            by_maps = await parts.finder.find(address, RoutingOptions(), _FRESH)
            by_all = await parts.finder.find(address, RoutingOptions(broadcast=True), _FRESH)
            sent.update(each.archive for each in by_maps.reports)
            not_sent.update(by_maps.passed_over)
            found += len(by_maps.mementos)
            found_by_all += len(by_all.mementos)
            failed += len(by_maps.failures) + len(by_all.failures)
    return DemoRouting(len(urls), dict(sent), dict(not_sent), found, found_by_all, failed)


def _ignore_message(_: str) -> None:
    """Say nothing."""
