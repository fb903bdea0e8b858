"""Schedules the requests of one run of a recovery.

A scheduler queries the archives' listings, dispatches requests by priority, follows links, and returns a result. If a
run is stopped or killed, the next one resumes it from the same state.
"""

import asyncio
import math
import random
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from unlost import dates
from unlost.archives.base import ArchiveClient
from unlost.clock import Clock
from unlost.errors import UriError
from unlost.html.links import LinkKind
from unlost.http.circuit_breaker import BreakerRegistry, Suspension
from unlost.http.policy import POLICIES
from unlost.recovery import estimate, warc_store
from unlost.recovery.estimate import ArchiveCost
from unlost.recovery.events import (
    ArchiveSuspended,
    CaseVariantsMerged,
    EventListener,
    ListingEnded,
    ProgressCounted,
    StartPageMissing,
    WarcBytesLost,
)
from unlost.recovery.fetcher import ResourceFetcher
from unlost.recovery.frontier import RecoveryFrontier, merge_case_variants
from unlost.recovery.listings import (
    LISTING_INCOMPLETE,
    NO_CONTENT,
    SKIP_REASONS,
    ListingCoverage,
    listing_time_span,
    query_listing,
)
from unlost.recovery.options import CONFIRMATION_THRESHOLD, RecoverOptions, RecoverPolicy
from unlost.recovery.scope import RecoveryScope
from unlost.recovery.state.captures import ListingStatus
from unlost.recovery.state.resources import UNASSIGNED, NewResource, RecoveryResource, ResourceStatus
from unlost.recovery.state.schema import LOOKUPS_FACT, SESSION_IDS_FACT
from unlost.recovery.state.store import RecoveryState, RequestsSent
from unlost.recovery.warc_store import WarcStore
from unlost.registry.models import ArchiveKind
from unlost.uri import names


@dataclass(frozen=True, slots=True)
class RecoveryRunResult:
    """The result of one run.

    Attributes:
        counts: Number of resources by status.
        suspended: Archives that have queued resources and may not be queried now, with the reason.
        unlisted: Archives whose listing failed or is deferred, with the error message. Archives without a listing API
            are not included.
        failed: Resources that are missing because an archive failed; a later run may recover them.
        skipped_links: Number of links that were not followed, by reason.
        is_stopped: Whether the run was stopped by the caller.
        has_reached_limit: Whether `RecoverOptions.limit` is reached, so that the same options recover no more.
        doubtful: Recovered resources whose only captures were rejected by the quality classifier.
        left_out: Number of listed resources that are not fetched, by reason.
        unlistable: Archives that cannot list everything they hold, with the listing status.
        unconfirmed: Number of listed resources that await the user's confirmation.
        other_host_lookups: Queries for resources on other hosts, over all runs.
        session_ids: Listed URLs with a session id, which were merged into the URL without it.
        requests: Requests sent in this run, by archive and kind.
    """

    counts: Mapping[ResourceStatus, int]
    suspended: Mapping[str, Suspension]
    unlisted: Mapping[str, str]
    failed: int
    skipped_links: Mapping[str, int]
    is_stopped: bool
    has_reached_limit: bool
    doubtful: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    unlistable: Mapping[str, str] = field(default_factory=dict)
    unconfirmed: int = 0
    other_host_lookups: int = 0
    session_ids: int = 0
    requests: RequestsSent = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return not (
            self.counts[ResourceStatus.QUEUED] or self.suspended or self.unlisted or self.failed or self.unconfirmed
        )


LISTING_TIMEOUT_SECONDS = 120.0
"""How long fetching is delayed for listings. Listings that arrive later are added while the run is in progress."""
_DONE = "yes"
_DONE_EXCEPT_FAILURES = "but-failures"
_COMMIT_SECONDS = 0.5  # between commits; records written since the last commit are read back from the WARC files
# Resources that are queued again when archives may have gained captures. Known responses are not requested again.
_REQUEUE_CONDITION = {
    False: "standing IN ('missing', 'substituted')",
    True: "standing IN ('missing', 'substituted', 'recovered')",
}
_POLL_SECONDS = 10.0  # maximum interval between two calls of `should_stop` while waiting
_CONFIRMED_FACT = "confirmed"
_ASSIGN_BATCH_SIZE = 200  # resources scheduled before the event loop runs other tasks


class RecoveryScheduler:
    """One run of a recovery, with its state and clients open.

    Args:
        options: What to recover.
        state: The database of the recovery.
        warcs: The WARC files of the recovery.
        clients: Archive clients by id, in the order of preference where nothing else decides.
        clock: The source of time.
        on_event: Receives the events of the run.
        connections: Concurrent requests that the HTTP client sends to one archive.
        wait: Mean pause in seconds, randomized by half, between a response of an archive and the next request to it.
            If it is not 0, requests to an archive are sent one at a time.
        until_done: Whether to wait for archives that may not be queried now.
        should_stop: Returns whether to stop. It is called often.
        requests_sent: Requests sent in this run by archive and kind; the HTTP clients update it.
        confirm: Called before more than `CONFIRMATION_THRESHOLD` listed resources are fetched, with their number, a
            function that estimates the cost for a share of the rate limits, and whether fetching has begun (a listing
            may arrive late). If it returns false, they are not fetched.
    """

    def __init__(
        self,
        options: RecoverOptions,
        state: RecoveryState,
        warcs: WarcStore,
        clients: Mapping[str, ArchiveClient],
        clock: Clock,
        on_event: EventListener,
        *,
        connections: int = 6,
        wait: float = 0.0,
        until_done: bool = False,
        should_stop: Callable[[], bool] = lambda: False,
        requests_sent: RequestsSent | None = None,
        confirm: Callable[[int, Callable[[float], list[ArchiveCost]], bool], bool] = lambda *_: True,
    ) -> None:
        self._options = options
        self._state = state
        self._warcs = warcs
        self._clients = clients
        self._clock = clock
        self._on_event = on_event
        # Slightly more resources than connections, so that the next request is sent while a response is stored.
        self._max_in_flight = 1 if wait else connections + connections // 4
        self._wait = wait
        self._until_done = until_done
        self._should_stop = should_stop
        self._requests_sent = requests_sent
        self._confirm = confirm
        self._unconfirmed = 0
        self._requests_before = state.requests_by_archive()
        self._skipped_links_before: dict[str, int] = {}
        self._scope = RecoveryScope.of(options)
        self._breakers = BreakerRegistry(clock, POLICIES["recover"])
        year = int(dates.from_epoch(str(int(clock.now())))[:4])
        self._frontier = RecoveryFrontier(options, self._scope, state, year)
        self._fetcher = ResourceFetcher(
            options, self._scope, state, warcs, clients, self._breakers, self._frontier, clock, on_event
        )
        self._in_flight: dict[str, set[int]] = {archive: set() for archive in clients}
        self._linked_in_flight: set[int] = set()  # the subset that links point to
        self._ready: set[str] = set()
        self._wake = asyncio.Event()
        self._listing_tasks: set[asyncio.Task[None]] = set()
        self._is_dispatching = False
        self._is_retry = False
        self._is_stopped = False
        self._reported_suspensions: set[str] = set()  # archives in suspension for which an event was sent

    async def run(self) -> RecoveryRunResult:
        """Do everything that can be done now.

        Raises:
            OSError: A file could not be written (disk full). Nothing stored so far is lost.
        """
        self._state.store_options(self._options)
        self._recover_from_crash()
        self._begin_round()
        try:
            async with asyncio.TaskGroup() as tasks:
                committing = tasks.create_task(self._commit_periodically())
                await self._query_listings(tasks)
                if self._is_confirmed():
                    self._frontier.enqueue_seeds()
                    self._enqueue_listed()
                    await self._dispatch(tasks)
                    if self._frontier.enqueue_listed_without_start():
                        self._on_event(StartPageMissing(self._options.url))
                        await self._dispatch(tasks)
                    self._check_substitutes()
                committing.cancel()
                for each in self._listing_tasks:  # still running if the run was stopped or reached its limit
                    each.cancel()
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self._commit()
        return self._result()

    async def estimate_costs(self, share: float) -> tuple[list[ArchiveCost], dict[str, str]]:
        """Query the listings and estimate the remaining requests; fetch nothing.

        Returns:
            The remaining requests by archive, and the archives whose requests are unknown because they gave no
            complete listing, with the reason.
        """
        self._state.store_options(self._options)
        self._recover_from_crash()
        self._begin_round()
        async with asyncio.TaskGroup() as tasks:
            await self._query_listings(tasks, None)
        self._commit()
        unknown = self._archives_by_outcome(
            ListingStatus.FAILED, ListingStatus.NOT_NOW, ListingStatus.TRUNCATED, ListingStatus.UNSUPPORTED
        )
        return self._costs(share), unknown

    # Preparation

    def _recover_from_crash(self) -> None:
        """Make the state and the WARC files consistent after a crash between writing one and the other."""
        known = dict(self._state.records.known_ends())
        for file, end in known.items():
            size = self._warcs.file_size(file)
            if size < end:
                self._on_event(WarcBytesLost(file, end - size))
                for resource in self._state.records.delete_after(file, size):
                    remaining = self._state.records.of_resource(resource)
                    self._state.resources.set_best_record(resource, remaining[0].id if remaining else None)
                    stored = {(each.record.capture.archive, each.record.capture.datetime) for each in remaining}
                    self._state.captures.reset_stored(resource, stored)
                    self._state.resources.requeue("id = ?", resource)
        for record in self._warcs.replay_unknown_records(self._state.records.known_ends()):
            try:
                name = names.page_name(record.capture.uri, ignore_case=self._options.ignore_case)
            except UriError:
                continue
            resource_id = self._state.resources.add(
                [NewResource(name, record.capture.uri, LinkKind.PAGE, name.count("/") + 1)]
            )[name]
            self._fetcher.store_record(
                self._state.resources.get(resource_id), warc_store.load_stored(self._warcs, record)
            )
            # Its links are followed when it is scheduled: its scope and its distance from a seed are not known yet.
            self._state.set_refollow_links(refollow=True)
        self._state.commit()

    def _begin_round(self) -> None:
        """Queue what failed; if the last run was complete, also everything that archives may have captured since."""
        state = self._state
        self._skipped_links_before = state.skipped_links()
        self._is_retry = state.fact("done") == _DONE_EXCEPT_FAILURES
        if state.fact("done") == _DONE or state.fact("span") != listing_time_span(self._options):
            state.listings.clear()
            state.resources.clear_skip_reasons(reason=NO_CONTENT)
            state.captures.clear_queries()
            state.candidates.reset_enqueued()
        state.set_fact("done", "")
        state.set_fact("span", listing_time_span(self._options))
        failed = state.captures.reset_failed()
        self._fetcher.failed_before = frozenset(failed)
        for resource_id in failed:
            state.resources.requeue("id = ?", resource_id)
        state.resources.requeue(_REQUEUE_CONDITION[self._options.all_versions])
        for archive in state.resources.count_queued_by_archive():
            state.resources.assign_all(archive)
        state.commit()

    # Listings

    async def _query_listings(self, tasks: asyncio.TaskGroup, seconds: float | None = LISTING_TIMEOUT_SECONDS) -> None:
        """Query the listings of all archives and wait for them, at most for `seconds`."""
        if self._options.policy is not RecoverPolicy.NAIVE:
            previous = {(each.archive, each.prefix): each.outcome for each in self._state.listings.all()}
            listing_tasks = [
                self._start_listing(archive, prefix, tasks)
                for archive in self._clients
                for prefix in self._scope.prefixes
                if previous.get((archive, prefix), ListingStatus.FAILED)
                in (ListingStatus.FAILED, ListingStatus.NOT_NOW)
            ]
            end = math.inf if seconds is None else time.monotonic() + seconds
            pending: Collection[asyncio.Task[None]] = listing_tasks
            while pending and not self._is_ending() and (remaining := end - time.monotonic()) > 0:
                pending = (await asyncio.wait(pending, timeout=min(remaining, _POLL_SECONDS)))[1]
        self._apply_listings()

    def _start_listing(self, archive: str, prefix: str, tasks: asyncio.TaskGroup) -> asyncio.Task[None]:
        # Counted when created, not when first run: otherwise the dispatcher could end in between.
        task = tasks.create_task(self._query_listing(archive, prefix))
        self._listing_tasks.add(task)
        task.add_done_callback(self._on_listing_done)
        return task

    def _on_listing_done(self, task: asyncio.Task[None]) -> None:
        self._listing_tasks.discard(task)
        self._wake.set()

    async def _query_listing(self, archive: str, prefix: str) -> None:
        listing = await query_listing(self._clients[archive], prefix, self._options, self._state)
        self._on_event(ListingEnded(archive, prefix, listing.outcome.value, listing.captures, listing.message or None))
        if listing.outcome in (ListingStatus.FAILED, ListingStatus.NOT_NOW):
            # The archive is not queried page by page: its resources wait until its listing can be requested again.
            until = listing.until or self._clock.now() + POLICIES["recover"].pause
            self._breakers.breaker(archive).open(until, LISTING_INCOMPLETE, listing.message or "")
        else:
            self._breakers.breaker(archive).half_open()
        if self._is_dispatching:
            self._ready.add(archive)
            self._apply_listings()
            self._enqueue_listed()
            self._state.resources.requeue(_REQUEUE_CONDITION[self._options.all_versions])

    def _apply_listings(self) -> None:
        """Apply the listings that ended since the last call."""
        archives = [each.archive for each in self._clients.values()]
        self._fetcher.coverage = ListingCoverage(archives, self._state.listings.all())
        if not self._options.ignore_case:
            busy = set().union(*self._in_flight.values())
            if merged := merge_case_variants(self._state, busy):
                self._fetcher.forget_planned(merged)
                self._on_event(CaseVariantsMerged(len(merged)))
        self._frontier.enqueue_candidates()

    def _enqueue_listed(self) -> None:
        """Enqueue what is listed, unless the user has to confirm it first."""
        if self._options.policy.uses_listings and self._is_confirmed():
            self._frontier.enqueue_listed()

    def _is_confirmed(self) -> bool:
        """Request a confirmation if there is much to fetch; return whether to fetch it."""
        limit = self._options.limit
        if not self._options.policy.uses_listings or (limit is not None and limit <= CONFIRMATION_THRESHOLD):
            return True
        if self._state.resources.counts()[ResourceStatus.LISTED] <= CONFIRMATION_THRESHOLD:
            return True
        count = self._frontier.count_listed_to_enqueue()
        if count <= max(CONFIRMATION_THRESHOLD, int(self._state.fact(_CONFIRMED_FACT) or 0)):
            return True
        if self._unconfirmed or not self._confirm(
            count, lambda share: self._costs(share, CONFIRMATION_THRESHOLD), self._is_dispatching
        ):
            self._unconfirmed = count
            return False
        self._state.set_fact(_CONFIRMED_FACT, str(count))
        return True

    def _costs(self, share: float, max_resources: int | None = None) -> list[ArchiveCost]:
        archives = {name: each.archive for name, each in self._clients.items()}
        return estimate.estimate_costs(archives, self._scope, self._fetcher, self._state, share, max_resources)

    def _check_substitutes(self) -> None:
        """Finish resources whose substitute was not recovered either."""
        now = dates.from_epoch(str(int(self._clock.now())))
        for resource in self._state.resources.without_substitute():
            self._fetcher.finish_without_substitute(resource, now)

    # Dispatch

    async def _dispatch(self, tasks: asyncio.TaskGroup) -> None:
        """Fetch from all archives in parallel, resources of the lowest rank first, until the queues are empty.

        An archive that is suspended keeps its queue; the others continue.
        """
        self._is_dispatching = True
        self._ready.update(self._clients)
        while True:
            self._wake.clear()
            self._resume_archives(tasks)
            has_more = self._schedule_new()
            for archive in self._ready.copy():
                self._start_fetches(archive, tasks)
            if has_more and not self._should_end():
                await asyncio.sleep(0)
            elif any(self._in_flight.values()) or (self._listing_tasks and not self._is_ending()):
                await self._wait_for_event()
            elif self._is_ending() or not await self._wait_for_archive():
                return

    def _should_end(self) -> bool:
        self._is_stopped = self._is_stopped or self._should_stop()
        return self._is_stopped

    def _is_ending(self) -> bool:
        """Return whether no new request is sent: the run was stopped, or will reach its limit."""
        limit = self._options.limit
        in_flight = sum(map(len, self._in_flight.values()))
        return self._should_end() or (limit is not None and self._fetcher.recovered + in_flight >= limit)

    def _schedule_new(self) -> bool:
        """Assign new resources in the queue to archives; return whether there may be more."""
        in_flight = set().union(*self._in_flight.values())
        for _ in range(_ASSIGN_BATCH_SIZE):
            resource = self._state.resources.next_queued(UNASSIGNED, in_flight)
            if resource is None:
                return False
            archive = self._fetcher.schedule_next(resource)
            if archive is not None:
                self._ready.add(archive)
        return True

    def _start_fetches(self, archive: str, tasks: asyncio.TaskGroup) -> None:
        """Start as many fetches from an archive as may be in flight at once."""
        busy = self._in_flight[archive]
        while len(busy) < self._max_in_flight and archive not in self._breakers.suspended and not self._is_ending():
            resource = self._state.resources.next_queued(archive, busy)
            if resource is None:
                self._ready.discard(archive)
                return
            if not resource.is_linked and busy & self._linked_in_flight:
                # The captures in flight may have links, and linked resources precede those that are only listed, so
                # that an interrupted recovery has complete pages. This costs one round trip for each level of links.
                return
            busy.add(resource.id)
            if resource.is_linked:
                self._linked_in_flight.add(resource.id)
            tasks.create_task(self._fetch(resource, archive))

    async def _fetch(self, resource: RecoveryResource, archive: str) -> None:
        try:
            next_archive = await self._fetcher.fetch_next(resource, archive)
            if self._wait:
                await self._clock.sleep(self._wait * random.uniform(0.5, 1.5))  # noqa: S311  no secret
        finally:
            self._in_flight[archive].discard(resource.id)
            self._linked_in_flight.discard(resource.id)
            self._wake.set()
        self._ready.update((archive,) if next_archive is None else (archive, next_archive))
        if archive in self._breakers.suspended:
            self._report_suspension(archive)

    def _report_suspension(self, archive: str) -> None:
        """Report once that an archive is suspended, and reassign its resources: others may have the same bytes."""
        suspension = self._breakers.suspended[archive]
        if archive not in self._reported_suspensions:
            self._reported_suspensions.add(archive)
            self._on_event(ArchiveSuspended(archive, suspension.until, suspension.reason))
            self._state.resources.assign_all(archive)

    def _resume_archives(self, tasks: asyncio.TaskGroup) -> None:
        """Resume archives whose suspension has ended: request the missing listing, or let a trial request through."""
        now = self._clock.now()
        for archive, suspension in self._breakers.suspended.items():
            if suspension.until > now:
                continue
            self._reported_suspensions.discard(archive)
            if suspension.reason == LISTING_INCOMPLETE:
                self._breakers.breaker(archive).open(math.inf, LISTING_INCOMPLETE, suspension.message)
                for prefix in self._scope.prefixes:
                    self._start_listing(archive, prefix, tasks)
            else:
                self._breakers.breaker(archive).half_open()
                self._ready.add(archive)

    async def _wait_for_archive(self) -> bool:
        """Wait until the first suspended archive may be queried, if `until_done`; return whether to resume."""
        waiting = (
            self._state.resources.count_queued_by_archive().keys()
            | self._archives_by_outcome(ListingStatus.NOT_NOW).keys()
        )
        times = [suspension.until for archive, suspension in self._breakers.suspended.items() if archive in waiting]
        if not times or not self._until_done:
            return False
        while (remaining := min(times) - self._clock.now()) > 0 and not self._is_ending():
            await self._clock.sleep(min(remaining, _POLL_SECONDS))
        return True

    async def _wait_for_event(self) -> None:
        """Wait for an event, at most until `should_stop` is due."""
        # Not `asyncio.wait_for`: before Python 3.12 it loses a cancellation that coincides with the event.
        with suppress(TimeoutError):
            async with asyncio.timeout(_POLL_SECONDS):
                await self._wake.wait()

    async def _commit_periodically(self) -> None:
        pause = _COMMIT_SECONDS
        while True:
            await asyncio.sleep(pause)
            started = time.monotonic()
            self._commit()
            counts = self._state.resources.counts()
            self._on_event(ProgressCounted(counts))
            # Counting a million resources takes long: it may take 5 % of the time.
            pause = max(_COMMIT_SECONDS, 20 * (time.monotonic() - started))

    def _commit(self) -> None:
        """Commit all changes, including the request counters."""
        if self._requests_sent is not None:
            self._state.store_requests(self._requests_before, self._requests_sent)
        self._state.store_skipped_links(self._skipped_links_before, self._frontier.skipped_links)
        self._state.commit()

    def _archives_by_outcome(self, *outcomes: ListingStatus) -> dict[str, str]:
        """Return the archives whose listings have these statuses, with the error message."""
        prefixes = () if self._options.policy is RecoverPolicy.NAIVE else self._scope.prefixes
        return {
            each.archive: each.message or ""
            for each in self._state.listings.all()
            if each.outcome in outcomes and each.archive in self._clients and each.prefix in prefixes
        }

    def _result(self) -> RecoveryRunResult:
        state = self._state
        unlisted = self._archives_by_outcome(ListingStatus.FAILED, ListingStatus.NOT_NOW)
        waiting = state.resources.count_queued_by_archive()
        suspended = {
            archive: suspension for archive, suspension in self._breakers.suspended.items() if waiting.get(archive)
        }
        failed = state.resources.count_failed()
        session_ids = state.captures.count_session_ids()
        state.set_fact(SESSION_IDS_FACT, str(session_ids))
        result = RecoveryRunResult(
            state.resources.counts(),
            suspended,
            unlisted,
            failed,
            dict(self._frontier.skipped_links),
            self._is_stopped,
            self._options.limit is not None and self._fetcher.recovered >= self._options.limit,
            state.resources.count_doubtful(),
            {reason: count for reason, count in state.resources.count_skipped().items() if reason in SKIP_REASONS},
            {
                archive: outcome.value
                for outcome in (ListingStatus.UNSUPPORTED, ListingStatus.TRUNCATED)
                for archive in self._archives_by_outcome(outcome)
                if self._clients[archive].archive.kind is not ArchiveKind.LIVE
            },
            self._unconfirmed,
            int(state.fact(LOOKUPS_FACT) or 0),
            session_ids,
        )
        if not result.counts[ResourceStatus.QUEUED]:
            state.set_refollow_links(refollow=False)
        # After a run with failures, only these are retried. If they fail again, the run counts as complete.
        is_done = result.is_done or (self._is_retry and replace(result, failed=0).is_done)
        failures = _DONE_EXCEPT_FAILURES if replace(result, failed=0).is_done else ""
        state.set_fact("done", _DONE if is_done else failures)
        state.commit()
        return result
