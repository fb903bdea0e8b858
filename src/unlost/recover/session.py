"""One run of a recovery, and its result.

Lists the site in all archives, dispatches requests by priority, follows links.
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
from unlost.http.circuit_breaker import LISTING_INCOMPLETE, CircuitBreakers, Suspension
from unlost.recover import estimate, warc_store
from unlost.recover.estimate import ArchiveCost
from unlost.recover.fetcher import ResourceFetcher
from unlost.recover.frontier import RecoveryFrontier, merge_case_variants
from unlost.recover.listings import NO_CONTENT, SKIP_REASONS, ListingCoverage, listing_time_span, query_listing
from unlost.recover.options import CONFIRMATION_THRESHOLD, EventCallback, RecoverOptions, RecoverPolicy
from unlost.recover.scope import RecoveryScope
from unlost.recover.state.captures import ListingStatus
from unlost.recover.state.resources import UNASSIGNED, NewResource, RecoveryResource, ResourceStatus
from unlost.recover.state.schema import LOOKUPS_FACT, SESSION_IDS_FACT
from unlost.recover.state.store import RecoveryState, RequestsSent
from unlost.recover.warc_store import WarcStore
from unlost.registry.models import ArchiveKind
from unlost.uri import names


@dataclass(frozen=True, slots=True)
class RecoveryRunResult:
    """How a run ended.

    counts: resources by standing. closed: archives that are not asked for now, and why.
    unlisted: archives whose list is not whole, and why; those that have no lists are not among them.
    failed: how many resources are missing since an archive failed, and may be had another time.
    trapped: links that were not followed, by reason.
    is_stopped: whether somebody stopped it.
    is_enough: whether there is as much as the plan allows: the same plan recovers no more.
    doubtful: how many of the recovered resources have no capture but one that the quality verdict speaks against.
    left_out: listed resources that are not fetched, by the reason.
    session_ids: listed URLs with a session id, which were taken for the URL without it.
    unlistable: archives that cannot list all they hold, and why: `unsupported` or `cut`.
    unconfirmed: how many listed resources wait for a confirmation, since there are so many.
    other_host_lookups: queries for resources of other hosts, over all runs.
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

    @property
    def is_done(self) -> bool:
        """Return whether there is nothing left to do."""
        return not (
            self.counts[ResourceStatus.QUEUED] or self.suspended or self.unlisted or self.failed or self.unconfirmed
        )


LISTING_TIMEOUT_SECONDS = 120.0
"""How long the first resource waits for lists; what is listed later is added."""
_DONE = "yes"
_BUT_FAILURES = "but-failures"
_LISTING_RETRY_SECONDS = 600.0  # after which it is asked for it again, if the run still goes on
_COMMIT_SECONDS = 0.5  # between two commits: what is killed in between is found again in the WARCs
# What is looked at again when archives may have gained something; nobody is asked for what is known.
_REQUEUE_CONDITION = {
    False: "standing IN ('missing', 'substituted')",
    True: "standing IN ('missing', 'substituted', 'recovered')",
}
_POLL_SECONDS = 10.0  # between two looks at whether to stop, while waiting
_CONFIRMED = "confirmed"
_ASSIGN_BATCH_SIZE = 200  # resources, between two looks at anything else


class RecoverySession:
    """One run.

    repositories: the archives to ask, by id, in the order in which they are asked where nothing else decides.
    connections: how many questions the courier has on their way to one archive at once.
    wait: seconds, more or less, between one answer of an archive and the next question, which then come one by one.
    until_done: whether to wait for archives that are not to be asked now.
    should_stop: whether somebody wants it to end; asked often.
    sent: how many requests have gone to which archive, by kind, so far in this run: counted by whoever sends them.
    confirm: called before more than `LARGE` listed resources are fetched, with their number and a function that
        estimates the cost for a share of the limits, and whether fetching has begun already: a listing may come late.
        If it returns false, they are not fetched.
    """

    def __init__(
        self,
        options: RecoverOptions,
        state: RecoveryState,
        warcs: WarcStore,
        repositories: Mapping[str, ArchiveClient],
        clock: Clock,
        on_event: EventCallback,
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
        self._repositories = repositories
        self._clock = clock
        self._on_event = on_event
        # Some more are at hand when an answer comes, so that the archive is asked on while that is being kept.
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
        self._breakers = CircuitBreakers(clock)
        year = int(dates.from_epoch(str(int(clock.now())))[:4])
        self._frontier = RecoveryFrontier(options, self._scope, state, year)
        self._fetcher = ResourceFetcher(
            options, self._scope, state, warcs, repositories, self._breakers, self._frontier, clock, on_event
        )
        self._in_flight: dict[str, set[int]] = {archive: set() for archive in repositories}
        self._linked_in_flight: set[int] = set()  # those of them that links point to
        self._ready: set[str] = set()
        self._wake = asyncio.Event()
        self._listing_tasks: set[asyncio.Task[None]] = set()
        self._is_dispatching = False
        self._is_retry = False
        self._is_stopped = False
        self._reported_suspensions: set[str] = set()  # those that were said to be closed, and still are

    async def run(self) -> RecoveryRunResult:
        """Do all that can be done now. Raises OSError for a full disk; nothing that was stored is lost by that."""
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
                        self._on_event("no-start", {"uri": self._options.url})
                        await self._dispatch(tasks)
                    self._check_substitutes()
                committing.cancel()
                for each in self._listing_tasks:  # it was stopped, or has as much as was wanted
                    each.cancel()
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self._commit()
        return self._result()

    async def estimate_costs(self, share: float) -> tuple[list[ArchiveCost], dict[str, str]]:
        """Ask for lists, and for nothing else; return what is left to ask, as `estimate.costs` has it.

        And the archives of which nobody can tell, since they gave no whole list, and why.
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

    # What was there before

    def _recover_from_crash(self) -> None:
        """Bring state and WARCs into agreement: whoever wrote them may have been killed between the two."""
        known = dict(self._state.records.known_ends())
        for file, end in known.items():
            size = self._warcs.file_size(file)
            if size < end:
                self._on_event("lost", {"file": file, "bytes": end - size})
                for resource in self._state.records.delete_after(file, size):
                    left = self._state.records.of_resource(resource)
                    self._state.resources.set_best_record(resource, left[0].id if left else None)
                    kept = {(each.record.capture.archive, each.record.capture.datetime) for each in left}
                    self._state.captures.reset_stored(resource, kept)
                    self._state.resources.requeue("id = ?", resource)
        for record in self._warcs.replay_unknown_records(self._state.records.known_ends()):
            try:
                name = names.page_name(record.capture.uri, ignore_case=self._options.ignore_case)
            except UriError:
                continue
            number = self._state.resources.add(
                [NewResource(name, record.capture.uri, LinkKind.PAGE, name.count("/") + 1)]
            )[name]
            self._fetcher.store_record(self._state.resources.get(number), warc_store.load_stored(self._warcs, record))
            # Not now: whether it is wanted, and how far it is from a beginning, is seen when its turn comes.
            self._state.set_refollow_links(refollow=True)
        self._state.commit()

    def _begin_round(self) -> None:
        """Ask again for what failed; and if the last run was done, for everything that archives may have gained."""
        state = self._state
        self._skipped_links_before = state.skipped_links()
        self._is_retry = state.fact("done") == _BUT_FAILURES
        if state.fact("done") == _DONE or state.fact("span") != listing_time_span(self._options):
            state.listings.clear()
            state.resources.clear_skip_reasons(reason=NO_CONTENT)
            state.captures.clear_queries()
            state.candidates.reset_enqueued()
        state.set_fact("done", "")
        state.set_fact("span", listing_time_span(self._options))
        again = state.captures.reset_failed()
        self._fetcher.failed_before = frozenset(again)
        for number in again:
            state.resources.requeue("id = ?", number)
        state.resources.requeue(_REQUEUE_CONDITION[self._options.all_versions])
        for archive in state.resources.count_queued_by_archive():
            state.resources.assign_all(archive)
        state.commit()

    # Lists

    async def _query_listings(self, tasks: asyncio.TaskGroup, seconds: float | None = LISTING_TIMEOUT_SECONDS) -> None:
        """Ask all archives for their lists, and wait for them, so long at most."""
        if self._options.policy is not RecoverPolicy.NAIVE:
            before = {(each.archive, each.prefix): each.outcome for each in self._state.listings.all()}
            lists = [
                self._start_listing(archive, prefix, tasks)
                for archive in self._repositories
                for prefix in self._scope.prefixes
                if before.get((archive, prefix), ListingStatus.FAILED) in (ListingStatus.FAILED, ListingStatus.NOT_NOW)
            ]
            end = math.inf if seconds is None else time.monotonic() + seconds
            left: Collection[asyncio.Task[None]] = lists
            while left and not self._is_ending() and (patience := end - time.monotonic()) > 0:
                left = (await asyncio.wait(left, timeout=min(patience, _POLL_SECONDS)))[1]
        self._apply_listings()

    def _start_listing(self, archive: str, prefix: str, tasks: asyncio.TaskGroup) -> asyncio.Task[None]:
        # It counts from now on, not from when its task gets its first turn: nobody may think meanwhile that none comes.
        task = tasks.create_task(self._query_listing(archive, prefix))
        self._listing_tasks.add(task)
        task.add_done_callback(self._on_listing_done)
        return task

    def _on_listing_done(self, task: asyncio.Task[None]) -> None:
        self._listing_tasks.discard(task)
        self._wake.set()

    async def _query_listing(self, archive: str, prefix: str) -> None:
        listing = await query_listing(self._repositories[archive], prefix, self._options, self._state)
        self._on_event(
            "listed",
            {
                "archive": archive,
                "prefix": prefix,
                "outcome": listing.outcome.value,
                "captures": listing.captures,
                **({"message": listing.message} if listing.message else {}),
            },
        )
        if listing.outcome in (ListingStatus.FAILED, ListingStatus.NOT_NOW):
            # It is not asked page by page: what it may have waits until it can be asked for its list.
            until = listing.until or self._clock.now() + _LISTING_RETRY_SECONDS
            self._breakers.suspended[archive] = Suspension(until, LISTING_INCOMPLETE, listing.message or "")
        elif archive in self._breakers.suspended:
            self._breakers.half_open(archive)
        if self._is_dispatching:
            self._ready.add(archive)
            self._apply_listings()
            self._enqueue_listed()
            self._state.resources.requeue(_REQUEUE_CONDITION[self._options.all_versions])

    def _apply_listings(self) -> None:
        """Make use of what was listed since the last time."""
        archives = [each.archive for each in self._repositories.values()]
        self._fetcher.coverage = ListingCoverage(archives, self._state.listings.all())
        if not self._options.ignore_case:
            busy = set().union(*self._in_flight.values())
            if merged := merge_case_variants(self._state, busy):
                self._fetcher.forget_planned(merged)
                self._on_event("case-insensitive", {"merged": len(merged)})
        self._frontier.enqueue_candidates()

    def _enqueue_listed(self) -> None:
        """Queue what is listed, unless there is so much of it that the user has to confirm it first."""
        if self._options.policy.uses_listings and self._is_confirmed():
            self._frontier.enqueue_listed()

    def _is_confirmed(self) -> bool:
        """Ask for a confirmation if there is much to fetch; return whether to fetch it."""
        limit = self._options.limit
        if not self._options.policy.uses_listings or (limit is not None and limit <= CONFIRMATION_THRESHOLD):
            return True
        if self._state.resources.counts()[ResourceStatus.LISTED] <= CONFIRMATION_THRESHOLD:
            return True
        count = self._frontier.count_listed_to_enqueue()
        if count <= max(CONFIRMATION_THRESHOLD, int(self._state.fact(_CONFIRMED) or 0)):
            return True
        if self._unconfirmed or not self._confirm(
            count, lambda share: self._costs(share, CONFIRMATION_THRESHOLD), self._is_dispatching
        ):
            self._unconfirmed = count
            return False
        self._state.set_fact(_CONFIRMED, str(count))
        return True

    def _costs(self, share: float, most: int | None = None) -> list[ArchiveCost]:
        archives = {name: each.archive for name, each in self._repositories.items()}
        return estimate.estimate_costs(archives, self._scope, self._fetcher, self._state, share, most)

    def _check_substitutes(self) -> None:
        """Call resources missing whose substitute did not come back either."""
        now = dates.from_epoch(str(int(self._clock.now())))
        for resource in self._state.resources.without_substitute():
            self._fetcher.finish_without_substitute(resource, now)

    # Work

    async def _dispatch(self, tasks: asyncio.TaskGroup) -> None:
        """Keep every archive as busy as it may be, with the most valuable that it can give, until nothing is left."""
        self._is_dispatching = True
        self._ready.update(self._repositories)
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
        """Return whether somebody stopped it, or there will be as much as was wanted: nothing more is begun."""
        limit = self._options.limit
        coming = sum(map(len, self._in_flight.values()))
        return self._should_end() or (limit is not None and self._fetcher.recovered + coming >= limit)

    def _schedule_new(self) -> bool:
        """Say whose turn it is for what is new in the queue; return whether there is more of that."""
        out = set().union(*self._in_flight.values())
        for _ in range(_ASSIGN_BATCH_SIZE):
            resource = self._state.resources.next_queued(UNASSIGNED, out)
            if resource is None:
                return False
            archive = self._fetcher.schedule_next(resource)
            if archive is not None:
                self._ready.add(archive)
        return True

    def _start_fetches(self, archive: str, tasks: asyncio.TaskGroup) -> None:
        """Begin as much for an archive as it may be asked at once."""
        busy = self._in_flight[archive]
        while len(busy) < self._max_in_flight and archive not in self._breakers.suspended and not self._is_ending():
            resource = self._state.resources.next_queued(archive, busy)
            if resource is None:
                self._ready.discard(archive)
                return
            if not resource.is_linked and busy & self._linked_in_flight:
                return  # what is on its way may have links, and these come before what is only listed
            busy.add(resource.id)
            if resource.is_linked:
                self._linked_in_flight.add(resource.id)
            tasks.create_task(self._fetch(resource, archive))

    async def _fetch(self, resource: RecoveryResource, archive: str) -> None:
        try:
            turn = await self._fetcher.fetch_next(resource, archive)
            if self._wait:
                await self._clock.sleep(self._wait * random.uniform(0.5, 1.5))  # noqa: S311  no secret
        finally:
            self._in_flight[archive].discard(resource.id)
            self._linked_in_flight.discard(resource.id)
            self._wake.set()
        self._ready.update((archive,) if turn is None else (archive, turn))
        if archive in self._breakers.suspended:
            self._report_suspension(archive)

    def _report_suspension(self, archive: str) -> None:
        """Say that an archive is closed, unless that was said; others may have the same bytes."""
        closing = self._breakers.suspended[archive]
        if archive not in self._reported_suspensions:
            self._reported_suspensions.add(archive)
            self._on_event("waiting", {"archive": archive, "until": closing.until, "reason": closing.reason})
            self._state.resources.assign_all(archive)

    def _resume_archives(self, tasks: asyncio.TaskGroup) -> None:
        """Ask those again whose time has come; those without a list, for that."""
        now = self._clock.now()
        for archive, closing in list(self._breakers.suspended.items()):
            if closing.until > now:
                continue
            self._reported_suspensions.discard(archive)
            if closing.reason == LISTING_INCOMPLETE:
                self._breakers.suspended[archive] = replace(closing, until=math.inf)
                for prefix in self._scope.prefixes:
                    self._start_listing(archive, prefix, tasks)
            else:
                self._breakers.half_open(archive)
                self._ready.add(archive)

    async def _wait_for_archive(self) -> bool:
        """Wait for the first archive that can be asked again, if somebody wants that; return whether it is to go on."""
        waited_for = (
            self._state.resources.count_queued_by_archive().keys()
            | self._archives_by_outcome(ListingStatus.NOT_NOW).keys()
        )
        times = [closing.until for archive, closing in self._breakers.suspended.items() if archive in waited_for]
        if not times or not self._until_done:
            return False
        while (left := min(times) - self._clock.now()) > 0 and not self._is_ending():
            await self._clock.sleep(min(left, _POLL_SECONDS))
        return True

    async def _wait_for_event(self) -> None:
        """Wait until something has come, and not longer than it takes to look whether to stop."""
        # Not `wait_for`: before Python 3.12 it loses a Ctrl-C that comes together with what is waited for.
        with suppress(TimeoutError):
            async with asyncio.timeout(_POLL_SECONDS):
                await self._wake.wait()

    async def _commit_periodically(self) -> None:
        pause = _COMMIT_SECONDS
        while True:
            await asyncio.sleep(pause)
            begun = time.monotonic()
            self._commit()
            counts = self._state.resources.counts()
            self._on_event("progress", {standing.value: count for standing, count in counts.items()})
            # Counting a million takes a while.
            pause = max(_COMMIT_SECONDS, 20 * (time.monotonic() - begun))

    def _commit(self) -> None:
        """Make all changes last, and with them how much was asked for them."""
        if self._requests_sent is not None:
            self._state.store_requests(self._requests_before, self._requests_sent)
        self._state.store_skipped_links(self._skipped_links_before, self._frontier.skipped_links)
        self._state.commit()

    def _archives_by_outcome(self, *outcomes: ListingStatus) -> dict[str, str]:
        """Return the archives whose lists ended so, and why, as far as this plan asks for these lists."""
        prefixes = () if self._options.policy is RecoverPolicy.NAIVE else self._scope.prefixes
        return {
            each.archive: each.message or ""
            for each in self._state.listings.all()
            if each.outcome in outcomes and each.archive in self._repositories and each.prefix in prefixes
        }

    def _result(self) -> RecoveryRunResult:
        state = self._state
        unlisted = self._archives_by_outcome(ListingStatus.FAILED, ListingStatus.NOT_NOW)
        waiting = state.resources.count_queued_by_archive()
        closed = {archive: closing for archive, closing in self._breakers.suspended.items() if waiting.get(archive)}
        failed = state.resources.count_failed()
        session_ids = state.captures.count_session_ids()
        state.set_fact(SESSION_IDS_FACT, str(session_ids))
        result = RecoveryRunResult(
            state.resources.counts(),
            closed,
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
                if self._repositories[archive].archive.kind is not ArchiveKind.LIVE
            },
            self._unconfirmed,
            int(state.fact(LOOKUPS_FACT) or 0),
            session_ids,
        )
        if not result.counts[ResourceStatus.QUEUED]:
            state.set_refollow_links(refollow=False)
        # What failed is tried again alone. If it fails once more, archives are asked for what they have gained anyway.
        is_done = result.is_done or (self._is_retry and replace(result, failed=0).is_done)
        failures = _BUT_FAILURES if replace(result, failed=0).is_done else ""
        state.set_fact("done", _DONE if is_done else failures)
        state.commit()
        return result
