"""What commands ask archives with for many pages: patiently, and only those that may have them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unlost.aggregate.asking import Asker
from unlost.aggregate.experience import Experience
from unlost.aggregate.known import Known
from unlost.aggregate.routing import Router
from unlost.archives.opening import open_repository
from unlost.archives.registry.registry import Registry
from unlost.cli import config
from unlost.cli.asking import PATIENCE_SECONDS, connectivity_of, open_courier
from unlost.cli.messages import say
from unlost.clock import Clock
from unlost.measure.availability.asking import Means

if TYPE_CHECKING:
    from unlost.archives.archive import Archive


@asynccontextmanager
async def opened_means(
    archives: "Mapping[str, Archive]", given: Mapping[str, Any], clock: Clock
) -> AsyncIterator[Means]:
    """Yield what asks archives; close everything afterwards. given: the options of the command, by their names."""
    registry = Registry(tuple(archives.values()))
    network = connectivity_of(archives.values())
    async with open_courier(given["contact"], PATIENCE_SECONDS, proxies=given["proxy"], network=network) as courier:
        known = Known(registry, courier, _maps(), clock, tell=partial(say, level="note"))
        await known.load()
        router = Router(registry, known, Experience(registry), exploring=0.0)
        repositories = {name: open_repository(each, courier) for name, each in archives.items()}
        listing = {name: each for name, each in repositories.items() if _lists(archives[name])}
        yield Means(archives, listing, Asker(courier, clock), router, repositories)


def _lists(archive: "Archive") -> bool:
    return archive.lister is not None or archive.folder is not None


def _maps() -> Path:
    return config.cache() / "maps"
