"""What commands ask archives with for many pages: patiently, and only those that may have them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unlost.aggregate.asking import UpstreamClient
from unlost.aggregate.experience import LearnedStats
from unlost.aggregate.known import HoldingsStore
from unlost.aggregate.routing import ArchiveRouter
from unlost.archives.opening import create_client
from unlost.archives.registry.registry import Registry
from unlost.cli import config
from unlost.cli.asking import LIMIT_WAIT_SECONDS, track_connectivity, open_http_client
from unlost.cli.messages import say
from unlost.clock import Clock
from unlost.measure.availability.asking import ArchiveAccess

if TYPE_CHECKING:
    from unlost.archives.archive import Archive


@asynccontextmanager
async def open_archive_access(
    archives: "Mapping[str, Archive]", options: Mapping[str, Any], clock: Clock
) -> AsyncIterator[ArchiveAccess]:
    """Yield what asks archives; close everything afterwards. given: the options of the command, by their names."""
    registry = Registry(tuple(archives.values()))
    network = track_connectivity(archives.values())
    async with open_http_client(
        options["contact"], LIMIT_WAIT_SECONDS, proxies=options["proxy"], network=network
    ) as courier:
        known = HoldingsStore(registry, courier, _map_cache_folder(), clock, warn=partial(say, level="note"))
        await known.load()
        router = ArchiveRouter(registry, known, LearnedStats(registry), exploring=0.0)
        repositories = {name: create_client(each, courier) for name, each in archives.items()}
        listing = {name: each for name, each in repositories.items() if _has_listing(archives[name])}
        yield ArchiveAccess(archives, listing, UpstreamClient(courier, clock), router, repositories)


def _has_listing(archive: "Archive") -> bool:
    return archive.lister is not None or archive.folder is not None


def _map_cache_folder() -> Path:
    return config.cache_folder() / "maps"
