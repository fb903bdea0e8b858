"""The one place that makes a running service of options: couriers, router, caches, aggregator, application."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from unlost.aggregate.aggregator import MAX_LIMIT_WAIT, MementoAggregator, ConcurrencyLimits
from unlost.aggregate.breaker import BreakerRegistry
from unlost.aggregate.cache import DEFAULT_MEMORY_BYTES, CacheLifetimes, MemoryCache
from unlost.aggregate.disk_cache import DiskCache, cache_scope
from unlost.aggregate.experience import LearnedStats, read_recent_responses
from unlost.aggregate.known import HoldingsStore
from unlost.aggregate.routing import DEFAULT_EXPLORATION_SHARE, ArchiveRouter
from unlost.aggregate.teaching import UpstreamLogListener, HitRateListener
from unlost.aggregate.upstream_log import UpstreamLog
from unlost.aggregate.wish import RoutingOptions
from unlost.archives.archive import Archive
from unlost.archives.asking.connectivity import Connectivity
from unlost.archives.asking.courier import ArchiveHttpClient
from unlost.archives.asking.exchange import Timeouts
from unlost.archives.manners.concurrency import ConcurrencyOptions
from unlost.archives.manners.limit_store import FileLimitStore, LimitStore
from unlost.archives.registry.registry import Registry, without_default_limits
from unlost.clock import Clock, SystemClock
from unlost.formats.problems import Problems
from unlost.holdings.ageing import REBUILD_AFTER_DAYS
from unlost.service.copies import ReplaySource
from unlost.service.going_on import background_task
from unlost.service.metrics import Metrics
from unlost.service.monitor import EventStream
from unlost.service.parts import ServiceContext
from unlost.service.standings import ArchiveStatusTracker
from unlost.service.telling import MetricsListener

if TYPE_CHECKING:
    from unlost.aggregate.listener import UpstreamListener

_MAP_CHECK_SECONDS = 300.0  # between two looks for newer maps
_SAVE_SECONDS = 60.0  # between two savings of what was learnt


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What a service, or a command that asks once, is told.

    archives: all that there are, also those that are off. state: the folder for what must outlive the process, cache:
        for what need not.
    deadline: seconds that one answer may take. keep: seconds for which what was found is kept; keep_misses: for which
        it is kept that nothing was.
    root, published, wish: as `Parts` has them. upstream_log: where every answer of an archive is written, NDJSON.
    exploring: the share of pages for which one archive is asked that would be passed over.
    contact: whom archives can write to. tell: gets what people should know, a line each.
    filter_age: days for which a filter may deny pages that a wildcard of the map covers.
    memory: bytes for answers that are kept in memory, and as many again for how they are shown.
    limits: where the limits of archives are counted; by default, in the folder for what must outlive the process.
    by_page: as `Parts` has it. network: records which archives can be reached.
    concurrency: the bounds within which the number of requests at once to one archive adapts.
    stays: whether it goes on: then answers are kept on disk, maps are read anew, and what is learnt is saved.
    """

    archives: Sequence[Archive]
    state: Path
    cache: Path
    tell: Callable[[str], None]
    deadline: float = 10.0
    keep: float = 86_400.0
    keep_misses: float = 3_600.0
    root: str | None = None
    published: Path | None = None
    wish: RoutingOptions = field(default_factory=RoutingOptions)
    upstream_log: Path | None = None
    exploring: float = DEFAULT_EXPLORATION_SHARE
    contact: str | None = None
    filter_age: float = REBUILD_AFTER_DAYS
    memory: int = DEFAULT_MEMORY_BYTES
    stays: bool = True
    limits: LimitStore | None = None
    by_page: bool = False
    network: Connectivity | None = None
    concurrency: ConcurrencyOptions = field(default_factory=ConcurrencyOptions)


@asynccontextmanager
async def build_service(
    options: ServiceOptions, clock: Clock | None = None, previous: ServiceContext | None = None
) -> AsyncIterator[ServiceContext]:
    """Yield the parts of a service, ready to ask; close everything that they opened afterwards.

    previous: the parts that these replace. Metrics, event streams and circuit breakers are taken over from them.
    """
    clock = clock or SystemClock()
    metrics, monitor = (Metrics(), EventStream()) if previous is None else (previous.metrics, previous.events)
    registry = Registry(tuple(map(without_default_limits, options.archives)))
    async with AsyncExitStack() as stack:
        store = options.limits or FileLimitStore(options.state / "limits", warn=options.tell)
        deadlines = Timeouts(min(5.0, options.deadline), options.deadline, options.deadline, options.deadline)
        patience = min(MAX_LIMIT_WAIT, options.deadline / 2)
        courier = await stack.enter_async_context(
            ArchiveHttpClient(
                store,
                clock,
                options.contact,
                deadlines,
                patience,
                retries=0,
                concurrency=options.concurrency,
                max_slot_wait=options.deadline,
                warn=options.tell,
                connectivity=options.network,
            )
        )
        # For maps and for copies that are passed on, which may be large.
        patient = await stack.enter_async_context(
            ArchiveHttpClient(store, clock, options.contact, warn=lambda _: None, concurrency=options.concurrency)
        )
        known = HoldingsStore(
            registry, patient, options.cache / "maps", clock, max_age=timedelta(options.filter_age), warn=options.tell
        )
        await known.load()
        router = ArchiveRouter(registry, known, LearnedStats(registry), exploring=options.exploring)
        replaced = None if previous is None else previous.finder
        breakers = replaced.breakers if isinstance(replaced, MementoAggregator) else BreakerRegistry(clock)
        stands = ArchiveStatusTracker(registry, known, router, breakers)
        listeners: list[UpstreamListener] = [HitRateListener(router), MetricsListener(metrics, monitor), stands]
        disk = None
        if options.stays:
            _restore_hit_rates(router, options)
            disk = DiskCache(options.cache / "timemaps.sqlite", clock, cache_scope(registry), warn=options.tell)
            await stack.enter_async_context(background_task(known.watch(clock, _MAP_CHECK_SECONDS)))
            await stack.enter_async_context(background_task(_save_periodically(router, options, clock)))
        if options.upstream_log is not None:
            log = await stack.enter_async_context(UpstreamLog(options.upstream_log, clock, warn=options.tell))
            listeners.append(UpstreamLogListener(log))
        aggregator = await stack.enter_async_context(
            MementoAggregator(
                router,
                courier,
                clock,
                breakers=breakers,
                memory=MemoryCache(clock, options.memory),
                disk=disk,
                lifetimes=CacheLifetimes(options.keep, options.keep_misses),
                limits=ConcurrencyLimits(options.deadline),
                listeners=listeners,
            )
        )
        copies = ReplaySource(registry, patient)
        yield ServiceContext(
            aggregator, copies, stands, clock, metrics, monitor,
            options.root, options.published, options.wish, options.memory, routes_by_referer=options.by_page,
        )  # fmt: skip


def _hit_rates_file(options: ServiceOptions) -> Path:
    return options.state / "hit-rates.json"


def _restore_hit_rates(router: ArchiveRouter, options: ServiceOptions) -> None:
    """Take what was learnt before; if nothing was saved, from the log of upstream answers."""
    if not router.stats.restore(_hit_rates_file(options), options.tell) and options.upstream_log is not None:
        router.learn_from_log(read_recent_responses(options.upstream_log, Problems()))


async def _save_periodically(router: ArchiveRouter, options: ServiceOptions, clock: Clock) -> None:
    """Save what is learnt now and then, and at the end."""
    try:
        while True:
            await clock.sleep(_SAVE_SECONDS)
            await asyncio.to_thread(_save_hit_rates, router, options)
    finally:
        _save_hit_rates(router, options)


def _save_hit_rates(router: ArchiveRouter, options: ServiceOptions) -> None:
    try:
        router.stats.save(_hit_rates_file(options))
    except OSError as error:
        options.tell(f"{_hit_rates_file(options)}: what was learnt cannot be saved: {error.strerror or error}")
