"""Harvests pages repeatedly: rounds of due pages, visited with several hosts in parallel."""

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
from unlost.http.pool import Resolver
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

_MAX_HOST_INTERVALS = 500  # intervals for the change rate of a host
_BATCH_SIZE = 1000

_MAX_ATTEMPTS = 2  # per page and round, after a timeout or a connection reset
_RETRIED_ERRORS = frozenset({"timeout", "reset"})
_UNREACHABLE_ERRORS = frozenset({"refused", "dns", "unreachable", "proxy"})
_MAX_FAILURES = 5  # consecutive; then the host is suspended for the rest of the run
_SUSPENSION_SECONDS = 3_600.0  # reported as the end of the suspension


@dataclass(slots=True)
class HarvestRound:
    """A round of visits.

    Attributes:
        is_resumed: Whether the round was begun earlier.
        pending: Number of pages to visit.
        not_due: Number of pages that have probably not changed since their last visit.
    """

    is_resumed: bool
    pending: int = 0
    not_due: int = 0


def normalize_visit_url(uri: str) -> str:
    """Return a URL as it is requested. Raises UriError if it is invalid.

    >>> normalize_visit_url("Example.com/a b#c")
    'http://example.com/a%20b'
    """
    try:
        return str(parse_url(normalize_input_url(uri)))
    except ValueError as error:
        raise UriError(f"not an address to visit: {error}", "malformed") from error


def add_pages(state: HarvestState, uris: Iterable[str], *, is_given: bool = True) -> None:
    """Add pages by their normalized URLs.

    Args:
        is_given: Whether the user named them.
    """
    pages = ((uri, index_key(uri), url_host(uri)) for uri in uris)
    while batch := list(islice(pages, _BATCH_SIZE)):
        state.add_pages(batch, is_given=is_given)


def begin_round(
    state: HarvestState,
    now: int,
    *,
    only_listed: bool,
    min_change_probability: float | None = None,
    restart: bool = False,
) -> HarvestRound:
    """Begin a round, or resume the last one if it is not finished; new pages join it.

    Args:
        now: Milliseconds since 1970.
        only_listed: Whether to visit only the listed pages.
        min_change_probability: Visit a page only if it has changed with this probability; None for all pages.
        restart: Whether to begin a new round even if the last one is not finished.
    """
    result = HarvestRound(is_resumed=not restart and state.count_pending() > 0)
    if not result.is_resumed:
        state.begin_round()
    round_number, schedule = state.round(), _RoundSchedule(state, now, min_change_probability)
    for page in state.pages(only_listed=only_listed):
        if page.round == round_number:
            continue  # visited in this round
        if schedule.is_due(page):
            state.enqueue(page.id)
        else:
            result.not_due += 1
    state.commit()
    result.pending = state.count_pending()
    return result


class _RoundSchedule:
    """Decides which pages are due, by their change rates and those of their hosts."""

    def __init__(self, state: HarvestState, now: int, min_change_probability: float | None) -> None:
        self._state, self._now, self._min_change_probability = state, now, min_change_probability
        self._host_rates: dict[str, float | None] = {}

    def is_due(self, page: HarvestPage) -> bool:
        """Return whether a page has probably changed. Pages without snapshot are always due."""
        if (
            self._min_change_probability is None
            or page.snapshot is None
            or page.last_visit is None
            or page.last_visit > self._now
        ):
            return True  # also if the last visit is in the future, as imported from an index
        rate = estimate_page_rate(page.intervals, self._host_rate(url_host(page.uri)))
        probability = change_probability(rate, (self._now - page.last_visit) / 1000)
        return probability is None or probability >= self._min_change_probability

    def _host_rate(self, host: str) -> float | None:
        if host not in self._host_rates:
            if len(self._host_rates) > _BATCH_SIZE:
                self._host_rates.clear()  # a simple bound: pages of a host are usually adjacent
            estimate = estimate_change_rate(self._state.host_intervals(host, _MAX_HOST_INTERVALS))
            self._host_rates[host] = estimate.per_second if estimate is not None and estimate.changes else None
        return self._host_rates[host]


@dataclass(frozen=True, slots=True)
class HarvestOptions:
    """How to visit pages.

    Attributes:
        contact: Email address or URL for site operators, sent in User-Agent. Without it, delays are doubled.
        delay: Minimum seconds between two requests to one host.
        hosts_at_once: Number of hosts visited in parallel, one request each.
        proxies: Whether to use the proxies of the environment.
        max_wait: Longest wait in seconds that a host may demand by Retry-After.
        keep_noarchive: Whether to store pages that say `noarchive`.
        max_bytes: Limit of one body after content decoding.
        warc_bytes: Size at which a WARC file is closed and the next one begun.
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
    """Result of a run.

    Attributes:
        outcomes: Number of pages by outcome in this round.
        pending: Number of pages still to be visited.
        suspended_hosts: Hosts left for a later run, with the time to retry in seconds since 1970.
        is_stopped: Whether the run was stopped by its caller.
        audited: Number of skips audited in this run.
        false_claims: Number of audited pages that had changed.
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
    """Visit all pending pages, and store changed ones in `warc/` of the folder.

    However a run ends, even by a kill, the same call resumes it. Private and local addresses are fetched only on
    origins that the user named.

    Args:
        on_event: Called with each event and its details; docs/harvest.md lists the events.
        should_stop: Polled; the run stops gracefully once it returns True.

    Raises:
        InputError: The folder has unusable files.
        OSError: The folder cannot be read or written.
    """
    clock = clock or SystemClock()
    warcs = CrawlWarcStore(folder / "warc", clock, f"unlost/{VERSION}", max_bytes=options.warc_bytes)
    warcs.reconcile(state)
    for host, changes_by_group in state.false_claims().items():
        for group, (changed, _) in changes_by_group.items():
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
            ) as fetcher:
                polite_fetcher = PoliteFetcher(
                    fetcher, state, clock, delay, max_wait=options.max_wait, on_event=on_event, should_stop=should_stop
                )
                return await _Harvester(
                    state, policy, options, polite_fetcher, warcs, log, clock, on_event, should_stop
                ).run()
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
        """Visit all pages that can be visited now."""
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
        behaviour = self._state.host_behaviour(host)
        now = self._now()
        elapsed = 0.0 if page.last_visit is None else (now - page.last_visit) / 1000
        probability = change_probability(estimate_page_rate(page.intervals), elapsed)
        method = choose_fetch_method(
            self._policy,
            behaviour,
            page.snapshot,
            now,
            DEFAULT_CHANGE_PROBABILITY if probability is None else probability,
        )
        try:
            result = await self._visitor.visit(page.uri, url_host(page.uri), page.snapshot, behaviour, method)
        except SiteWaitError as error:
            self._suspend_host(host, error.until)
        except RobotsError as error:
            if error.is_temporary:
                self._suspend_host(host, self._clock.now() + _SUSPENSION_SECONDS)
            else:
                self._finish_unvisited(page, method, "forbidden", "robots")
        except SiteError as error:
            self._handle_failure(page, host, method, error)
        else:
            self._failures.pop(host, None)
            try:
                await run_shielded(self._store(page, host, method, result))
            finally:
                result.close()

    async def _store(self, page: HarvestPage, host: str, method: FetchMethod, result: PageVisitResult) -> None:
        """Store a response and what was learned from it in one transaction."""
        async with self._disk:
            by_text, keep_noarchive = self._policy.by_text, self._options.keep_noarchive
            stored = await asyncio.to_thread(
                store_visit, result, page.snapshot, self._warcs, by_text=by_text, keep_noarchive=keep_noarchive
            )
            # No await from here to the commit: files and state agree whenever the process is killed.
            behaviour = self._update_behaviour(page, result, stored)
            if behaviour != self._state.host_behaviour(host):
                self._state.store_host_behaviour(host, behaviour)
            for location in stored.locations:
                self._state.add_record(location, page.id)
            if stored.snapshot is not None:
                self._state.store_snapshot(page.id, stored.snapshot)
            self._state.record_visit(page, stored.visit.time, stored.changed)
            self._log.add(stored.visit, method.value, stored.outcome)
            self._state.finish(page.id, stored.outcome)
            self._state.commit()
        details = {"uri": page.uri, "way": method.value, "status": stored.visit.status}
        if result.weight is not None:
            details["audit"] = "changed" if stored.changed else "same"
        self._on_event(stored.outcome, details)

    def _update_behaviour(self, page: HarvestPage, result: PageVisitResult, stored: StoredVisit) -> HostBehaviour:
        """Count what a download or an audit revealed; return the updated behaviour of the host."""
        behaviour, decision = result.behaviour, result.decision
        if result.weight is not None and stored.changed is not None:
            self._audited += 1
            self._false_claims += stored.changed
            if result.had_304:
                behaviour = behaviour.increment("against" if stored.changed else "spared")
        if decision is not None and stored.changed and stored.visit.digest is not None:
            host = url_host(page.uri)
            self._policy.note(host, decision.group, changed=True)
            self._state.add_false_claim(host, decision.group)
        return behaviour

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
        """Record and report that there was no response."""
        self._log.add(Visit(page.uri, time=self._now(), status=0), method.value, outcome)
        self._state.finish(page.id, outcome)
        self._on_event(outcome, {"uri": page.uri, "way": method.value, "reason": reason})
