"""Builds a running service from its options: HTTP clients, router, caches, aggregator, context of the application."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from unlost.aggregate.aggregator import MAX_LIMIT_WAIT, ConcurrencyLimits, MementoAggregator
from unlost.aggregate.archive_status import ArchiveStatusProvider, ArchiveStatusTracker
from unlost.aggregate.cache import DEFAULT_MEMORY_BYTES, CacheLifetimes, MemoryCache
from unlost.aggregate.disk_cache import DiskCache, cache_scope
from unlost.aggregate.hit_rates import LearnedStats, read_recent_responses
from unlost.aggregate.holdings_store import HoldingsStore
from unlost.aggregate.listeners import HitRateListener, UpstreamLog, UpstreamLogListener
from unlost.aggregate.models import MementoFinder, RoutingOptions
from unlost.aggregate.router import DEFAULT_EXPLORATION_SHARE, ArchiveRouter
from unlost.clock import Clock, SystemClock
from unlost.http.circuit_breaker import BreakerRegistry
from unlost.http.client import ArchiveHttpClient
from unlost.http.concurrency import ConcurrencyOptions
from unlost.http.connectivity import Connectivity
from unlost.http.exchange import Timeouts
from unlost.http.limit_store import FileLimitStore, LimitStore
from unlost.jobs.tasks import background_task
from unlost.mementomap.lookup import REBUILD_AFTER_DAYS
from unlost.problems import Problems
from unlost.registry.loader import Registry, without_default_limits
from unlost.registry.models import Archive
from unlost.web.monitoring import EventStream, Metrics, MetricsListener
from unlost.web.proxy import ReplaySource

if TYPE_CHECKING:
    from unlost.aggregate.listeners import UpstreamListener
    from unlost.jobs.service import JobService


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """What the web application is made of.

    finds: whoever finds copies. If it has `kept(uri, wish) -> Found | None`, that is tried first, and must not wait.
    copies: where `proxy` gets copies. stands: who knows how archives stand.
    root: our own address, without a slash at its end; None for the one by which each request calls us.
    published: the file of a MementoMap to publish.
    wish: which archives to ask where a request does not say.
    memory: bytes for bodies that were rendered.
    by_page: whether requisites of a page are first asked of the archive that had the page.
    desk: where recoveries are ordered; None if they are not.
    """

    finder: MementoFinder
    replay_source: ReplaySource
    archive_status: ArchiveStatusProvider
    clock: Clock
    metrics: Metrics = field(default_factory=Metrics)
    events: EventStream = field(default_factory=EventStream)
    root: str | None = None
    published_map: Path | None = None
    default_options: RoutingOptions = field(default_factory=RoutingOptions)
    memory: int = 1 << 24
    job_service: "JobService | None" = None
    routes_by_referer: bool = False


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
