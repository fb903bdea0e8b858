"""Builds an aggregator from its configuration: HTTP clients, holdings, router, circuit breakers, caches, listeners."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from unlost.aggregate.aggregator import ConcurrencyLimits, MementoAggregator
from unlost.aggregate.archive_status import ArchiveStatusTracker
from unlost.aggregate.cache import DEFAULT_MEMORY_BYTES, CacheLifetimes, MemoryCache
from unlost.aggregate.disk_cache import DiskCache, cache_scope
from unlost.aggregate.hit_rates import LearnedStats, read_recent_responses
from unlost.aggregate.holdings_store import HoldingsStore
from unlost.aggregate.listeners import HitRateListener, UpstreamLog, UpstreamLogListener
from unlost.aggregate.router import DEFAULT_EXPLORATION_SHARE, ArchiveRouter
from unlost.background_task import background_task
from unlost.clock import Clock, SystemClock
from unlost.http.circuit_breaker import BreakerRegistry
from unlost.http.client import ArchiveHttpClient
from unlost.http.concurrency import ConcurrencyOptions
from unlost.http.connectivity import Connectivity
from unlost.http.limit_store import FileLimitStore, LimitStore
from unlost.http.policy import MAX_WAITS, POLICIES, RETRIES, Timeouts
from unlost.mementomap.lookup import REBUILD_AFTER_DAYS
from unlost.problems import Problems
from unlost.registry.loader import Registry, without_default_limits
from unlost.registry.models import Archive

if TYPE_CHECKING:
    from unlost.aggregate.listeners import UpstreamListener

_MAP_CHECK_SECONDS = 300.0  # interval of checks for newer maps
_SAVE_SECONDS = 60.0  # interval at which learned statistics are saved


@dataclass(frozen=True, slots=True)
class AggregatorConfig:
    """Configuration of an aggregator: of a service, or for the look-ups of a command or a program.

    Attributes:
        archives: All archives, including disabled ones.
        state: Folder for persistent state.
        cache: Folder for cached data.
        on_message: Called with messages for the operator, a line each.
        deadline: Seconds that a response may take.
        result_lifetime: Seconds for which results with mementos are cached.
        miss_lifetime: Seconds for which results without mementos are cached.
        upstream_log: File for a log of all upstream responses, JSON Lines.
        exploration_share: Share of URLs for which one archive is queried that routing would skip.
        contact: Contact of the operator in the user agent.
        filter_age: Days for which a filter may exclude URLs that a wildcard of the map covers.
        memory: Bytes for results in memory, and again for rendered bodies of a service.
        is_long_running: Whether to cache results on disk, reload maps and save learned statistics.
        limit_store: Store of rate-limit states; by default a folder in `state`.
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
    upstream_log: Path | None = None
    exploration_share: float = DEFAULT_EXPLORATION_SHARE
    contact: str | None = None
    filter_age: float = REBUILD_AFTER_DAYS
    memory: int = DEFAULT_MEMORY_BYTES
    is_long_running: bool = True
    limit_store: LimitStore | None = None
    connectivity: Connectivity | None = None
    concurrency: ConcurrencyOptions = field(default_factory=ConcurrencyOptions)


@dataclass(frozen=True, slots=True)
class AggregatorComponents:
    """A running aggregator and what belongs to it.

    Attributes:
        aggregator: The aggregator.
        archive_status: Status of its archives.
        registry: Its archives.
        download_client: HTTP client for maps and captures, which may be large.
    """

    aggregator: MementoAggregator
    archive_status: ArchiveStatusTracker
    registry: Registry
    download_client: ArchiveHttpClient


@asynccontextmanager
async def build_aggregator(
    config: AggregatorConfig,
    clock: Clock | None = None,
    previous: MementoAggregator | None = None,
    listeners: "Sequence[UpstreamListener]" = (),
) -> AsyncIterator[AggregatorComponents]:
    """Create an aggregator, and close it when the block ends.

    The registry is never changed in place: a reload builds a second aggregator, so that no request sees two registries.

    Args:
        config: The configuration.
        clock: Source of time.
        previous: Aggregator that is replaced. Its circuit breakers are reused.
        listeners: Receive the results of look-ups.
    """
    clock = clock or SystemClock()
    registry = Registry(tuple(map(without_default_limits, config.archives)))
    async with AsyncExitStack() as stack:
        store = config.limit_store or FileLimitStore(config.state / "limits", warn=config.on_message)
        timeouts = Timeouts.within(config.deadline)
        max_wait = min(MAX_WAITS["aggregate"], config.deadline / 2)
        client = await stack.enter_async_context(
            ArchiveHttpClient(
                store,
                clock,
                config.contact,
                timeouts,
                max_wait,
                retries=RETRIES["aggregate"],
                concurrency=config.concurrency,
                max_slot_wait=config.deadline,
                warn=config.on_message,
                connectivity=config.connectivity,
            )
        )
        # For maps and for replayed captures, which may be large.
        download_client = await stack.enter_async_context(
            ArchiveHttpClient(store, clock, config.contact, warn=lambda _: None, concurrency=config.concurrency)
        )
        holdings = HoldingsStore(
            registry,
            download_client,
            config.cache / "maps",
            clock,
            max_age=timedelta(config.filter_age),
            warn=config.on_message,
        )
        await holdings.load()
        router = ArchiveRouter(registry, holdings, LearnedStats(registry), exploration_share=config.exploration_share)
        breakers = BreakerRegistry(clock, POLICIES["aggregate"]) if previous is None else previous.breakers
        archive_status = ArchiveStatusTracker(registry, holdings, router, breakers)
        all_listeners: list[UpstreamListener] = [HitRateListener(router), *listeners, archive_status]
        disk = None
        if config.is_long_running:
            _restore_hit_rates(router, config)
            disk = DiskCache(config.cache / "timemaps.sqlite", clock, cache_scope(registry), warn=config.on_message)
            await stack.enter_async_context(background_task(holdings.watch(clock, _MAP_CHECK_SECONDS)))
            await stack.enter_async_context(background_task(_save_periodically(router, config, clock)))
        if config.upstream_log is not None:
            log = await stack.enter_async_context(UpstreamLog(config.upstream_log, clock, warn=config.on_message))
            all_listeners.append(UpstreamLogListener(log))
        aggregator = await stack.enter_async_context(
            MementoAggregator(
                router,
                client,
                clock,
                breakers=breakers,
                memory=MemoryCache(clock, config.memory),
                disk=disk,
                lifetimes=CacheLifetimes(config.result_lifetime, config.miss_lifetime),
                limits=ConcurrencyLimits(config.deadline),
                listeners=all_listeners,
            )
        )
        yield AggregatorComponents(aggregator, archive_status, registry, download_client)


def _hit_rates_file(config: AggregatorConfig) -> Path:
    return config.state / "hit-rates.json"


def _restore_hit_rates(router: ArchiveRouter, config: AggregatorConfig) -> None:
    """Restore the learned statistics; if none were saved, compute them from the upstream log."""
    if not router.stats.restore(_hit_rates_file(config), config.on_message) and config.upstream_log is not None:
        router.learn_from_log(read_recent_responses(config.upstream_log, Problems()))


async def _save_periodically(router: ArchiveRouter, config: AggregatorConfig, clock: Clock) -> None:
    """Save the learned statistics periodically and on exit."""
    try:
        while True:
            await clock.sleep(_SAVE_SECONDS)
            await asyncio.to_thread(_save_hit_rates, router, config)
    finally:
        _save_hit_rates(router, config)


def _save_hit_rates(router: ArchiveRouter, config: AggregatorConfig) -> None:
    try:
        router.stats.save(_hit_rates_file(config))
    except OSError as error:
        config.on_message(f"{_hit_rates_file(config)}: what was learnt cannot be saved: {error.strerror or error}")
