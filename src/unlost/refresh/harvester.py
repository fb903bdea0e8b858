"""Harvests pages again: rounds of pages that are due, visited by hosts in parallel."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from unlost._core import VERSION
from unlost.clock import Clock, SystemClock
from unlost.crawl.fetcher import DEFAULT_TIMEOUTS, Fetcher
from unlost.crawl.models import DEFAULT_DELAY_SECONDS, MAX_RESOURCE_BYTES
from unlost.crawl.politeness import (
    MAX_WAIT_SECONDS,
    EventCallback,
    FetchStoppedError,
    PoliteFetcher,
    run_host_tasks,
    run_shielded,
)
from unlost.crawl.warc_store import MAX_WARC_BYTES, CrawlWarcStore
from unlost.errors import RobotsError, SiteError, SiteWaitError, UriError
from unlost.http.exchange import Timeouts
from unlost.http.resolver import Resolver
from unlost.http.url import parse_url
from unlost.index.cdx import index_key
from unlost.refresh.change_rate import change_probability, estimate_change_rate, estimate_page_rate
from unlost.refresh.harvest_state import HarvestPage, HarvestState, HostBehaviour
from unlost.refresh.harvest_store import StoredVisit, VisitLog, store_visit
from unlost.refresh.page_visitor import (
    DEFAULT_CHANGE_PROBABILITY,
    FetchMethod,
    PageVisitor,
    PageVisitResult,
    choose_fetch_method,
)
from unlost.refresh.policy import Policy, url_host
from unlost.refresh.visit import Visit
from unlost.uri.normalize import normalize_input_url

_MAX_HOST_INTERVALS = 500  # pages whose visits tell how often those of a host change
_BATCH_SIZE = 1000


@dataclass(slots=True)
class HarvestRound:
    """What a round has to do.

    is_resumed: whether it was begun before. wanted: pages that are to be visited. not_due: pages that have hardly
    changed since they were looked at.
    """

    is_resumed: bool
    pending: int = 0
    not_due: int = 0


def normalize_visit_url(uri: str) -> str:
    """Return an address as requests and their answers have it. Raises UriError for one that nobody can visit.

    >>> normalize_visit_url("Example.com/a b#c")
    'http://example.com/a%20b'
    """
    try:
        return str(parse_url(normalize_input_url(uri)))
    except ValueError as error:
        raise UriError(f"not an address to visit: {error}", "malformed") from error


def add_pages(state: HarvestState, uris: Iterable[str], *, is_given: bool = True) -> None:
    """Take pages, whose addresses are visitable. is_given: whether a person named them."""
    rest = ((uri, index_key(uri), url_host(uri)) for uri in uris)
    while batch := list(islice(rest, _BATCH_SIZE)):
        state.add_pages(batch, is_given=is_given)


def begin_round(
    state: HarvestState,
    now: int,
    *,
    only_listed: bool,
    min_change_probability: float | None = None,
    restart: bool = False,
) -> HarvestRound:
    """Begin a round, or go on with the one that is not ended; pages that are new join it.

    only_listed: the pages that were given last, and no others. now: milliseconds since 1970. due: how likely a page
    must have changed to be visited; None for all. anew: do not go on with a round that was begun.
    """
    found = HarvestRound(is_resumed=not restart and state.count_pending() > 0)
    if not found.is_resumed:
        state.begin_round()
    number, schedule = state.round(), _RoundSchedule(state, now, min_change_probability)
    for page in state.pages(only_listed=only_listed):
        if page.round == number:
            continue  # done already
        if schedule.is_due(page):
            state.enqueue(page.id)
        else:
            found.not_due += 1
    state.commit()
    found.pending = state.count_pending()
    return found


class _RoundSchedule:
    """When pages are to be looked at, by their own past and by that of their hosts."""

    def __init__(self, state: HarvestState, now: int, min_change_probability: float | None) -> None:
        self._state, self._now, self._min_change_probability = state, now, min_change_probability
        self._host_rates: dict[str, float | None] = {}

    def is_due(self, page: HarvestPage) -> bool:
        """Return whether a page has likely enough changed; what is not held is always due."""
        if (
            self._min_change_probability is None
            or page.snapshot is None
            or page.last_visit is None
            or page.last_visit > self._now
        ):
            return True  # also what was looked at in the future, as an index may say
        rate = estimate_page_rate(page.intervals, self._host_rate(url_host(page.uri)))
        chance = change_probability(rate, (self._now - page.last_visit) / 1000)
        return chance is None or chance >= self._min_change_probability

    def _host_rate(self, host: str) -> float | None:
        if host not in self._host_rates:
            if len(self._host_rates) > _BATCH_SIZE:
                self._host_rates.clear()  # lists are often sorted by host
            found = estimate_change_rate(self._state.host_intervals(host, _MAX_HOST_INTERVALS))
            self._host_rates[host] = found.per_second if found is not None and found.changes else None
        return self._host_rates[host]


_MAX_ATTEMPTS = 2  # visits of what broke off or took too long
_RETRIED_ERRORS = frozenset({"timeout", "reset"})
_UNREACHABLE_ERRORS = frozenset({"refused", "dns", "unreachable", "proxy"})
_MAX_FAILURES = 5  # visits in a row that find nobody: then the host is left alone
_SUSPENSION_SECONDS = 3_600.0  # for how long that is said to be


@dataclass(frozen=True, slots=True)
class HarvestOptions:
    """How to visit.

    contact: an address of mail or of a page, for whoever looks after a site; without one, pauses are twice as long.
    delay: seconds between two requests to one host, at least. hosts_at_once: each by one request.
    proxies: whether to go through those of the environment. patience: how many seconds a host may keep us waiting by
    saying so. keep_noarchive: whether bodies are kept although their page asks not to.
    """

    contact: str | None = None
    delay: float = DEFAULT_DELAY_SECONDS
    hosts_at_once: int = 4
    proxies: bool = False
    max_wait: float = MAX_WAIT_SECONDS
    keep_noarchive: bool = False
    max_bytes: int = MAX_RESOURCE_BYTES
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    warc_bytes: int = MAX_WARC_BYTES
    resolver: Resolver | None = None


@dataclass(slots=True)
class HarvestResult:
    """How a run ended.

    outcomes: how many pages ended how in this round. pending: still to be visited.
    waiting: hosts that said to come back later, or were not there, until when in seconds since 1970.
    audited, lies: skips that were checked in this run, and those that had changed.
    """

    outcomes: dict[str, int]
    pending: int
    suspended_hosts: dict[str, float]
    is_stopped: bool
    audited: int = 0
    false_claims: int = 0


async def harvest(
    state: HarvestState,
    folder: Path,
    policy: Policy,
    options: HarvestOptions,
    clock: Clock | None = None,
    *,
    on_event: EventCallback = lambda _, __: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> HarvestResult:
    """Visit all pages that are pending in a state, and keep what changed in `warc/` of its folder.

    What is inside a network is visited only on hosts that a person named. tell: gets what happens, as docs/harvest.md
    lists it. should_stop: is asked often whether to end in order. Whatever ends it, also a kill, the same call goes on
    where it ended. Raises InputError and OSError for a folder that cannot be used.
    """
    clock = clock or SystemClock()
    warcs = CrawlWarcStore(folder / "warc", clock, f"unlost/{VERSION}", max_bytes=options.warc_bytes)
    warcs.reconcile(state)
    for host, lies in state.false_claims().items():
        for group, (changed, _) in lies.items():
            policy.note(host, group, changed=True, times=changed)
    delay = options.delay
    if options.contact is None:
        delay *= 2
        on_event("no-contact", {"delay": delay})
    try:
        with VisitLog(folder, state) as log:
            async with Fetcher(
                state.given_urls(),
                clock,
                options.contact,
                options.timeouts,
                use_proxies=options.proxies,
                resolver=options.resolver,
            ) as visitor:
                polite = PoliteFetcher(
                    visitor, state, clock, delay, max_wait=options.max_wait, on_event=on_event, should_stop=should_stop
                )
                return await _Harvester(state, policy, options, polite, warcs, log, clock, on_event, should_stop).run()
    finally:
        state.commit()
        warcs.close()


class _Harvester:
    """One run of a harvest."""

    def __init__(
        self,
        state: HarvestState,
        policy: Policy,
        options: HarvestOptions,
        fetcher: PoliteFetcher,
        warcs: CrawlWarcStore,
        log: VisitLog,
        clock: Clock,
        on_event: EventCallback,
        should_stop: Callable[[], bool],
    ) -> None:
        self._state, self._policy, self._options, self._warcs, self._log = state, policy, options, warcs, log
        self._clock, self._on_event, self._should_stop = clock, on_event, should_stop
        self._visitor = PageVisitor(fetcher, policy, self._now, options.max_bytes)
        self._is_stopped = False
        self._suspended_hosts: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._audited = self._false_claims = 0
        self._disk = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> HarvestResult:
        """Do all that can be done now."""
        self._state.forget_failed_robots()
        self._state.commit()

        def hosts() -> list[str]:
            return (
                []
                if self._is_over()
                else [host for host in self._state.pending_hosts() if host not in self._suspended_hosts]
            )

        await run_host_tasks(hosts, self._visit_host, self._options.hosts_at_once, self._tasks, asyncio.Event())
        return HarvestResult(
            self._state.count_outcomes(),
            self._state.count_pending(),
            self._suspended_hosts,
            self._is_stopped,
            self._audited,
            self._false_claims,
        )

    def _now(self) -> int:
        return int(self._clock.now() * 1000)

    def _is_over(self) -> bool:
        self._is_stopped = self._is_stopped or self._should_stop()
        return self._is_stopped

    async def _visit_host(self, host: str) -> None:
        while not self._is_over() and host not in self._suspended_hosts:
            page = self._state.next_page(host)
            if page is None:
                return
            try:
                await self._visit(page, host)
            except FetchStoppedError:
                self._is_stopped = True
                return
            self._state.commit()

    async def _visit(self, page: HarvestPage, host: str) -> None:
        treatment = self._state.host_behaviour(host)
        now = self._now()
        since = 0.0 if page.last_visit is None else (now - page.last_visit) / 1000
        chance = change_probability(estimate_page_rate(page.intervals), since)
        way = choose_fetch_method(
            self._policy, treatment, page.snapshot, now, DEFAULT_CHANGE_PROBABILITY if chance is None else chance
        )
        try:
            found = await self._visitor.visit(page.uri, url_host(page.uri), page.snapshot, treatment, way)
        except SiteWaitError as error:
            self._suspend_host(host, error.until)
        except RobotsError as error:
            if error.is_temporary:
                self._suspend_host(host, self._clock.now() + _SUSPENSION_SECONDS)
            else:
                self._finish_unvisited(page, way, "forbidden", "robots")
        except SiteError as error:
            self._handle_failure(page, host, way, error)
        else:
            self._failures.pop(host, None)
            try:
                await run_shielded(self._store(page, host, way, found))
            finally:
                found.close()

    async def _store(self, page: HarvestPage, host: str, method: FetchMethod, result: PageVisitResult) -> None:
        """Keep what came, and what was learned from it: all of it, or nothing if a kill comes."""
        async with self._disk:
            by_text, keep_noarchive = self._policy.by_text, self._options.keep_noarchive
            kept = await asyncio.to_thread(
                store_visit, result, page.snapshot, self._warcs, by_text=by_text, keep_noarchive=keep_noarchive
            )
            # From here to the commit nobody else gets a turn: files and state agree whenever a kill comes.
            treatment = self._update_behaviour(page, result, kept)
            if treatment != self._state.host_behaviour(host):
                self._state.store_host_behaviour(host, treatment)
            for place in kept.locations:
                self._state.add_record(place, page.id)
            if kept.snapshot is not None:
                self._state.store_snapshot(page.id, kept.snapshot)
            self._state.record_visit(page, kept.visit.time, kept.changed)
            self._log.add(kept.visit, method.value, kept.outcome)
            self._state.finish(page.id, kept.outcome)
            self._state.commit()
        about = {"uri": page.uri, "way": method.value, "status": kept.visit.status}
        if result.weight is not None:
            about["audit"] = "changed" if kept.changed else "same"
        self._on_event(kept.outcome, about)

    def _update_behaviour(self, page: HarvestPage, result: PageVisitResult, stored: StoredVisit) -> HostBehaviour:
        """Take what a download or an audit found into account; return how the host is known from now on."""
        treatment, decision = result.behaviour, result.decision
        if result.weight is not None and stored.changed is not None:
            self._audited += 1
            self._false_claims += stored.changed
            if result.had_304:
                treatment = treatment.increment("against" if stored.changed else "spared")
        if decision is not None and stored.changed and stored.visit.digest is not None:
            host = url_host(page.uri)
            self._policy.note(host, decision.group, changed=True)
            self._state.add_false_claim(host, decision.group)
        return treatment

    def _handle_failure(self, page: HarvestPage, host: str, method: FetchMethod, error: SiteError) -> None:
        if error.kind in _UNREACHABLE_ERRORS:
            self._failures[host] = self._failures.get(host, 0) + 1
            if self._failures[host] >= _MAX_FAILURES:
                self._suspend_host(host, self._clock.now() + _SUSPENSION_SECONDS)
        if error.kind in _RETRIED_ERRORS and page.attempts + 1 < _MAX_ATTEMPTS:
            self._state.requeue(page.id)
            return
        self._finish_unvisited(page, method, "failed", error.kind)

    def _suspend_host(self, host: str, until: float) -> None:
        self._suspended_hosts[host] = until
        self._on_event("closed", {"host": host, "until": until})

    def _finish_unvisited(self, page: HarvestPage, method: FetchMethod, outcome: str, reason: str) -> None:
        """Say that there was no answer."""
        self._log.add(Visit(page.uri, time=self._now(), status=0), method.value, outcome)
        self._state.finish(page.id, outcome)
        self._on_event(outcome, {"uri": page.uri, "way": method.value, "reason": reason})
