"""The one place that makes a running service of options: couriers, router, caches, aggregator, application."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from unlost.aggregate.aggregator import PATIENCE, Aggregator, Bounds
from unlost.aggregate.breaker import Breakers
from unlost.aggregate.cache import MAX_BYTES, Lifetimes, MemoryCache
from unlost.aggregate.disk_cache import DiskCache, scope_of
from unlost.aggregate.experience import Experience, last_answers
from unlost.aggregate.known import Known
from unlost.aggregate.routing import DEFAULT_EXPLORING, Router
from unlost.aggregate.teaching import Logging, Teaching
from unlost.aggregate.upstream_log import UpstreamLog
from unlost.aggregate.wish import Wish
from unlost.archives.archive import Archive
from unlost.archives.asking.connectivity import Connectivity
from unlost.archives.asking.courier import Courier
from unlost.archives.asking.exchange import Deadlines
from unlost.archives.manners.concurrency import ConcurrencyOptions
from unlost.archives.manners.limit_store import FileLimitStore, LimitStore
from unlost.archives.registry.registry import Registry, without_default_limits
from unlost.clock import Clock, SystemClock
from unlost.formats.problems import Problems
from unlost.holdings.ageing import REBUILD_AFTER_DAYS
from unlost.service.copies import Copies
from unlost.service.going_on import going_on
from unlost.service.metrics import Metrics
from unlost.service.monitor import Monitor
from unlost.service.parts import Parts
from unlost.service.standings import Standings
from unlost.service.telling import Telling

if TYPE_CHECKING:
    from unlost.aggregate.listener import Listener

_WATCHED_SECONDS = 300.0  # between two looks for newer maps
_SAVED_SECONDS = 60.0  # between two savings of what was learnt


@dataclass(frozen=True, slots=True)
class Options:
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
    wish: Wish = field(default_factory=Wish)
    upstream_log: Path | None = None
    exploring: float = DEFAULT_EXPLORING
    contact: str | None = None
    filter_age: float = REBUILD_AFTER_DAYS
    memory: int = MAX_BYTES
    stays: bool = True
    limits: LimitStore | None = None
    by_page: bool = False
    network: Connectivity | None = None
    concurrency: ConcurrencyOptions = field(default_factory=ConcurrencyOptions)


@asynccontextmanager
async def assembled(
    options: Options, clock: Clock | None = None, previous: Parts | None = None
) -> AsyncIterator[Parts]:
    """Yield the parts of a service, ready to ask; close everything that they opened afterwards.

    previous: the parts that these replace. Metrics, event streams and circuit breakers are taken over from them.
    """
    clock = clock or SystemClock()
    metrics, monitor = (Metrics(), Monitor()) if previous is None else (previous.metrics, previous.monitor)
    registry = Registry(tuple(map(without_default_limits, options.archives)))
    async with AsyncExitStack() as stack:
        store = options.limits or FileLimitStore(options.state / "limits", tell=options.tell)
        deadlines = Deadlines(min(5.0, options.deadline), options.deadline, options.deadline, options.deadline)
        patience = min(PATIENCE, options.deadline / 2)
        courier = await stack.enter_async_context(
            Courier(
                store,
                clock,
                options.contact,
                deadlines,
                patience,
                retries=0,
                concurrency=options.concurrency,
                slot_patience=options.deadline,
                tell=options.tell,
                network=options.network,
            )
        )
        # For maps and for copies that are passed on, which may be large.
        patient = await stack.enter_async_context(
            Courier(store, clock, options.contact, tell=lambda _: None, concurrency=options.concurrency)
        )
        known = Known(
            registry, patient, options.cache / "maps", clock, max_age=timedelta(options.filter_age), tell=options.tell
        )
        await known.load()
        router = Router(registry, known, Experience(registry), exploring=options.exploring)
        replaced = None if previous is None else previous.finds
        breakers = replaced.breakers if isinstance(replaced, Aggregator) else Breakers(clock)
        stands = Standings(registry, known, router, breakers)
        listeners: list[Listener] = [Teaching(router), Telling(metrics, monitor), stands]
        disk = None
        if options.stays:
            _learn(router, options)
            disk = DiskCache(options.cache / "timemaps.sqlite", clock, scope_of(registry), tell=options.tell)
            await stack.enter_async_context(going_on(known.watch(clock, _WATCHED_SECONDS)))
            await stack.enter_async_context(going_on(_saving(router, options, clock)))
        if options.upstream_log is not None:
            log = await stack.enter_async_context(UpstreamLog(options.upstream_log, clock, tell=options.tell))
            listeners.append(Logging(log))
        aggregator = await stack.enter_async_context(
            Aggregator(
                router,
                courier,
                clock,
                breakers=breakers,
                memory=MemoryCache(clock, options.memory),
                disk=disk,
                lifetimes=Lifetimes(options.keep, options.keep_misses),
                bounds=Bounds(options.deadline),
                listeners=listeners,
            )
        )
        copies = Copies(registry, patient)
        yield Parts(
            aggregator, copies, stands, clock, metrics, monitor,
            options.root, options.published, options.wish, options.memory, by_page=options.by_page,
        )  # fmt: skip


def _learnt(options: Options) -> Path:
    return options.state / "hit-rates.json"


def _learn(router: Router, options: Options) -> None:
    """Take what was learnt before; if nothing was saved, from the log of upstream answers."""
    if not router.experience.restore(_learnt(options), options.tell) and options.upstream_log is not None:
        router.learn_answers(last_answers(options.upstream_log, Problems()))


async def _saving(router: Router, options: Options, clock: Clock) -> None:
    """Save what is learnt now and then, and at the end."""
    try:
        while True:
            await clock.sleep(_SAVED_SECONDS)
            await asyncio.to_thread(_save, router, options)
    finally:
        _save(router, options)


def _save(router: Router, options: Options) -> None:
    try:
        router.experience.save(_learnt(options))
    except OSError as error:
        options.tell(f"{_learnt(options)}: what was learnt cannot be saved: {error.strerror or error}")
