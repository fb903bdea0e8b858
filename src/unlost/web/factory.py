"""Builds the service from its options: the aggregator, and the context of the web application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from unlost.aggregate.aggregator import MementoAggregator
from unlost.aggregate.archive_status import ArchiveStatusProvider
from unlost.aggregate.factory import AggregatorConfig, build_aggregator
from unlost.aggregate.models import MementoFinder, RoutingOptions
from unlost.clock import Clock, SystemClock
from unlost.web.metrics import Metrics
from unlost.web.monitoring import EventStream, MetricsListener
from unlost.web.proxy import ReplaySource

if TYPE_CHECKING:
    from unlost.jobs.service import JobService


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
class ServiceOptions(AggregatorConfig):
    """Options of the service.

    Attributes:
        root: See `ServiceContext`.
        published_map: See `ServiceContext.published_map`.
        default_options: See `ServiceContext.default_options`.
        routes_by_referer: See `ServiceContext.routes_by_referer`.
    """

    root: str | None = None
    published_map: Path | None = None
    default_options: RoutingOptions = field(default_factory=RoutingOptions)
    routes_by_referer: bool = False


@asynccontextmanager
async def build_service(
    options: ServiceOptions, clock: Clock | None = None, previous: ServiceContext | None = None
) -> AsyncIterator[ServiceContext]:
    """Create the components of a service, and close them when the block ends.

    Args:
        options: The options.
        clock: Source of time.
        previous: Context that is replaced. Its metrics, event stream and circuit breakers are reused.
    """
    clock = clock or SystemClock()
    metrics, events = (Metrics(), EventStream()) if previous is None else (previous.metrics, previous.events)
    replaced = previous.finder if previous is not None and isinstance(previous.finder, MementoAggregator) else None
    async with build_aggregator(options, clock, replaced, [MetricsListener(metrics, events)]) as components:
        yield ServiceContext(
            components.aggregator,
            ReplaySource(components.registry, components.download_client),
            components.archive_status,
            clock,
            metrics,
            events,
            options.root,
            options.published_map,
            options.default_options,
            options.memory,
            routes_by_referer=options.routes_by_referer,
        )
