"""Builds the service from its options: HTTP clients, router, caches, aggregator, and the application's context."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from unlost.aggregate.aggregator import ConcurrencyLimits, MementoAggregator
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
from unlost.http.limit_store import FileLimitStore, LimitStore
from unlost.http.policy import MAX_WAITS, POLICIES, RETRIES, Timeouts
from unlost.jobs.tasks import background_task
from unlost.mementomap.lookup import REBUILD_AFTER_DAYS
from unlost.problems import Problems
from unlost.registry.loader import Registry, without_default_limits
from unlost.registry.models import Archive
from unlost.web.metrics import Metrics
from unlost.web.monitoring import EventStream, MetricsListener
from unlost.web.proxy import ReplaySource

if TYPE_CHECKING:
    from unlost.aggregate.listeners import UpstreamListener
    from unlost.jobs.service import JobService

_MAP_CHECK_SECONDS = 300.0  # interval of checks for newer maps
_SAVE_SECONDS = 60.0  # interval at which learned statistics are saved


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """Components of the web application.

    Attributes:
        finder: Finds mementos. If it has a method `get_cached(uri, options)` that returns a result or None without
            blocking, that is called first.
        replay_source: Fetches captures for the `proxy` format.
        archive_status: Status of the archives.
        clock: Source of time.
        metrics: Metrics for Prometheus.
        events: Event stream.
        root: Base URL of the service without a trailing slash; None to use the URL of each request.
        published_map: MementoMap file to publish.
        default_options: Routing options of requests that set none.
        memory: Bytes for cached response bodies.
        job_service: The job service; None if jobs are not served.
        routes_by_referer: Query the archive of the referring page first.
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


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Options of the service, or of a single query by a command.

    Attributes:
        archives: All archives, including disabled ones.
        state: Folder for persistent state.
        cache: Folder for cached data.
        on_message: Called with messages for the operator, a line each.
        deadline: Seconds that a response may take.
        result_lifetime: Seconds for which results with mementos are cached.
        miss_lifetime: Seconds for which results without mementos are cached.
        root: See `ServiceContext`.
        published_map: See `ServiceContext.published_map`.
        default_options: See `ServiceContext.default_options`.
        upstream_log: File for a log of all upstream responses, JSON Lines.
        exploration_share: Share of URLs for which one archive is queried that routing would skip.
        contact: Contact of the operator in the user agent.
        filter_age: Days for which a filter may exclude URLs that a wildcard of the map covers.
        memory: Bytes for results in memory, and again for rendered bodies.
        is_long_running: Whether to cache results on disk, reload maps and save learned statistics.
        limit_store: Store of rate-limit states; by default a folder in `state`.
        routes_by_referer: See `ServiceContext.routes_by_referer`.
        connectivity: Records which archives can be reached.
        concurrency: Bounds of the adaptive number of concurrent requests to one archive.
    """

    archives: Sequence[Archive]
    state: Path
    cache: Path
    on_message: Callable[[str], None]
    deadline: float = 10.0
    result_lifetime: float = 86_400.0
    miss_lifetime: float = 3_600.0
    root: str | None = None
    published_map: Path | None = None
    default_options: RoutingOptions = field(default_factory=RoutingOptions)
    upstream_log: Path | None = None
    exploration_share: float = DEFAULT_EXPLORATION_SHARE
    contact: str | None = None
    filter_age: float = REBUILD_AFTER_DAYS
    memory: int = DEFAULT_MEMORY_BYTES
    is_long_running: bool = True
    limit_store: LimitStore | None = None
    routes_by_referer: bool = False
    connectivity: Connectivity | None = None
    concurrency: ConcurrencyOptions = field(default_factory=ConcurrencyOptions)


@asynccontextmanager
async def build_service(
    options: ServiceOptions, clock: Clock | None = None, previous: ServiceContext | None = None
) -> AsyncIterator[ServiceContext]:
    """Create the components of a service, and close them when the block ends.

    The registry is never changed in place: a reload builds a second set of components, so that no request sees two
    registries.

    Args:
        options: The options.
        clock: Source of time.
        previous: Context that is replaced. Its metrics, event stream and circuit breakers are reused.
    """
    clock = clock or SystemClock()
    metrics, events = (Metrics(), EventStream()) if previous is None else (previous.metrics, previous.events)
    registry = Registry(tuple(map(without_default_limits, options.archives)))
    async with AsyncExitStack() as stack:
        store = options.limit_store or FileLimitStore(options.state / "limits", warn=options.on_message)
        timeouts = Timeouts.within(options.deadline)
        max_wait = min(MAX_WAITS["aggregate"], options.deadline / 2)
        client = await stack.enter_async_context(
            ArchiveHttpClient(
                store,
                clock,
                options.contact,
                timeouts,
                max_wait,
                retries=RETRIES["aggregate"],
                concurrency=options.concurrency,
                max_slot_wait=options.deadline,
                warn=options.on_message,
                connectivity=options.connectivity,
            )
        )
        # For maps and for replayed captures, which may be large.
        download_client = await stack.enter_async_context(
            ArchiveHttpClient(store, clock, options.contact, warn=lambda _: None, concurrency=options.concurrency)
        )
        holdings = HoldingsStore(
            registry,
            download_client,
            options.cache / "maps",
            clock,
            max_age=timedelta(options.filter_age),
            warn=options.on_message,
        )
        await holdings.load()
        router = ArchiveRouter(registry, holdings, LearnedStats(registry), exploration_share=options.exploration_share)
        previous_finder = None if previous is None else previous.finder
        breakers = (
            previous_finder.breakers
            if isinstance(previous_finder, MementoAggregator)
            else BreakerRegistry(clock, POLICIES["aggregate"])
        )
        archive_status = ArchiveStatusTracker(registry, holdings, router, breakers)
        listeners: list[UpstreamListener] = [HitRateListener(router), MetricsListener(metrics, events), archive_status]
        disk = None
        if options.is_long_running:
            _restore_hit_rates(router, options)
            disk = DiskCache(options.cache / "timemaps.sqlite", clock, cache_scope(registry), warn=options.on_message)
            await stack.enter_async_context(background_task(holdings.watch(clock, _MAP_CHECK_SECONDS)))
            await stack.enter_async_context(background_task(_save_periodically(router, options, clock)))
        if options.upstream_log is not None:
            log = await stack.enter_async_context(UpstreamLog(options.upstream_log, clock, warn=options.on_message))
            listeners.append(UpstreamLogListener(log))
        aggregator = await stack.enter_async_context(
            MementoAggregator(
                router,
                client,
                clock,
                breakers=breakers,
                memory=MemoryCache(clock, options.memory),
                disk=disk,
                lifetimes=CacheLifetimes(options.result_lifetime, options.miss_lifetime),
                limits=ConcurrencyLimits(options.deadline),
                listeners=listeners,
            )
        )
        replay_source = ReplaySource(registry, download_client)
        yield ServiceContext(
            aggregator, replay_source, archive_status, clock, metrics, events,
            options.root, options.published_map, options.default_options, options.memory,
            routes_by_referer=options.routes_by_referer,
        )  # fmt: skip


def _hit_rates_file(options: ServiceOptions) -> Path:
    return options.state / "hit-rates.json"


def _restore_hit_rates(router: ArchiveRouter, options: ServiceOptions) -> None:
    """Restore the learned statistics; if none were saved, compute them from the upstream log."""
    if not router.stats.restore(_hit_rates_file(options), options.on_message) and options.upstream_log is not None:
        router.learn_from_log(read_recent_responses(options.upstream_log, Problems()))


async def _save_periodically(router: ArchiveRouter, options: ServiceOptions, clock: Clock) -> None:
    """Save the learned statistics periodically and on exit."""
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
        options.on_message(f"{_hit_rates_file(options)}: what was learnt cannot be saved: {error.strerror or error}")
