"""Asks an aggregator for every address of the site, by maps and without them, and counts what that took."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unlost.aggregate.wish import Freshness, Wish
from unlost.api.loop_thread import LoopThread
from unlost.archives.archive import Archive
from unlost.service.assembly import Options, assembled

_DEADLINE = 60.0  # seconds for one answer: the machine may be busy, and nobody waits for a page
_FRESH = Freshness(no_cache=True)


@dataclass(frozen=True, slots=True)
class Routed:
    """What the aggregator did for all addresses together.

    sent: requests to archives, by their maps. not_sent: those that maps have saved. both by archive.
    found: copies that came, with maps. found_by_all: copies that came when everybody was asked for everything.
    failed: answers that did not come.
    """

    addresses: int
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


def routed(archives: Mapping[str, Archive], maps: Mapping[str, Path], addresses: Sequence[str], folder: Path) -> Routed:
    """Ask for all addresses twice: those that may have one by their maps, then everybody.

    folder: for the aggregator's own files. Nothing is raised for an archive that fails: it is counted.
    """
    known = [replace(each, mementomap=str(maps[name])) for name, each in archives.items()]
    # Nothing is asked at random, so that the numbers are the same each time.
    options = Options(known, folder / "state", folder / "cache", _silent, _DEADLINE, exploring=0.0, stays=False)
    with LoopThread("unlost.demo") as loop:
        return loop.run(_asked(options, addresses))


async def _asked(options: Options, addresses: Sequence[str]) -> Routed:
    sent, not_sent = (Counter({each.id: 0 for each in options.archives}) for _ in range(2))
    found = found_by_all = failed = 0
    async with assembled(options) as parts:
        for address in addresses:
            by_maps = await parts.finds.find(address, Wish(), _FRESH)
            by_all = await parts.finds.find(address, Wish(broadcast=True), _FRESH)
            sent.update(each.archive for each in by_maps.reports)
            not_sent.update(by_maps.passed_over)
            found += len(by_maps.mementos)
            found_by_all += len(by_all.mementos)
            failed += len(by_maps.failures) + len(by_all.failures)
    return Routed(len(addresses), dict(sent), dict(not_sent), found, found_by_all, failed)


def _silent(_: str) -> None:
    """Say nothing."""
