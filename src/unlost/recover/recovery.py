"""Recovers a site: asks archives what they hold, fetches what is wanted in order of its value, follows links."""

import asyncio
import math
import random
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace

from unlost import dates
from unlost.archives.archive import Kind
from unlost.archives.repository import Repository
from unlost.clock import Clock
from unlost.errors import UriError
from unlost.pages.link import Use
from unlost.recover import estimate, keeping
from unlost.recover.doors import UNLISTED, Closing, Doors
from unlost.recover.estimate import Cost
from unlost.recover.following import Following
from unlost.recover.knowledge import Knowledge
from unlost.recover.letter_case import merge_case_variants
from unlost.recover.listing import ask_for_list, span_of
from unlost.recover.listing_filter import LEFT_OUT, NO_CONTENT
from unlost.recover.plan import LARGE, Plan, Policy
from unlost.recover.result import Result
from unlost.recover.scope import Scope
from unlost.recover.serving import Serving
from unlost.recover.state.listings import Listed
from unlost.recover.state.reading import LOOKUPS, SESSION_IDS
from unlost.recover.state.resources import UNASSIGNED, Resource, Standing, Wanted
from unlost.recover.state.state import Sent, State
from unlost.recover.telling import Tell
from unlost.recover.warcs import Warcs
from unlost.uri import naming

LISTING_SECONDS = 120.0
"""How long the first resource waits for lists; what is listed later is added."""

_DONE = "yes"
_BUT_FAILURES = "but-failures"
_REST_SECONDS = 600.0  # after which it is asked for it again, if the run still goes on
_COMMIT_SECONDS = 0.5  # between two commits: what is killed in between is found again in the WARCs
# What is looked at again when archives may have gained something; nobody is asked for what is known.
_AGAIN = {
    False: "standing IN ('missing', 'substituted')",
    True: "standing IN ('missing', 'substituted', 'recovered')",
}
_LOOK_SECONDS = 10.0  # between two looks at whether to stop, while waiting
_CONFIRMED = "confirmed"
_ASSIGNED_AT_ONCE = 200  # resources, between two looks at anything else


class Recovery:
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
        plan: Plan,
        state: State,
        warcs: Warcs,
        repositories: Mapping[str, Repository],
        clock: Clock,
        tell: Tell,
        *,
        connections: int = 6,
        wait: float = 0.0,
        until_done: bool = False,
        should_stop: Callable[[], bool] = lambda: False,
        sent: Sent | None = None,
        confirm: Callable[[int, Callable[[float], list[Cost]], bool], bool] = lambda *_: True,
    ) -> None:
        self._plan = plan
        self._state = state
        self._warcs = warcs
        self._repositories = repositories
        self._clock = clock
        self._tell = tell
        # Some more are at hand when an answer comes, so that the archive is asked on while that is being kept.
        self._at_once = 1 if wait else connections + connections // 4
        self._wait = wait
        self._until_done = until_done
        self._should_stop = should_stop
        self._sent = sent
        self._confirm = confirm
        self._unconfirmed = 0
        self._sent_before = state.requests()
        self._trapped_before: dict[str, int] = {}
        self._scope = Scope.of(plan)
        self._doors = Doors(clock)
        year = int(dates.from_epoch(str(int(clock.now())))[:4])
        self._following = Following(plan, self._scope, state, year)
        self._serving = Serving(
            plan, self._scope, state, warcs, repositories, self._doors, self._following, clock, tell
        )
        self._busy: dict[str, set[int]] = {archive: set() for archive in repositories}
        self._linked_busy: set[int] = set()  # those of them that links point to
        self._ready: set[str] = set()
        self._wake = asyncio.Event()
        self._lists: set[asyncio.Task[None]] = set()
        self._is_begun = False
        self._is_tried_again = False
        self._is_stopped = False
        self._announced: set[str] = set()  # those that were said to be closed, and still are

    async def run(self) -> Result:
        """Do all that can be done now. Raises OSError for a full disk; nothing that was stored is lost by that."""
        self._state.keep_plan(self._plan)
        self._adopt()
        self._begin_round()
        try:
            async with asyncio.TaskGroup() as tasks:
                committing = tasks.create_task(self._commit_often())
                await self._list_all(tasks)
                if self._is_confirmed():
                    self._following.begin()
                    self._want_listed()
                    await self._dispatch(tasks)
                    if self._following.begin_from_lists():
                        self._tell("no-start", {"uri": self._plan.url})
                        await self._dispatch(tasks)
                    self._check_substitutes()
                committing.cancel()
                for each in self._lists:  # it was stopped, or has as much as was wanted
                    each.cancel()
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self._commit()
        return self._result()

    async def costs(self, share: float) -> tuple[list[Cost], dict[str, str]]:
        """Ask for lists, and for nothing else; return what is left to ask, as `estimate.costs` has it.

        And the archives of which nobody can tell, since they gave no whole list, and why.
        """
        self._state.keep_plan(self._plan)
        self._adopt()
        self._begin_round()
        async with asyncio.TaskGroup() as tasks:
            await self._list_all(tasks, None)
        self._commit()
        unknown = self._unlisted(Listed.FAILED, Listed.NOT_NOW, Listed.CUT, Listed.UNSUPPORTED)
        return self._costs(share), unknown

    # What was there before

    def _adopt(self) -> None:
        """Bring state and WARCs into agreement: whoever wrote them may have been killed between the two."""
        known = dict(self._state.records.ends())
        for file, end in known.items():
            size = self._warcs.size_of(file)
            if size < end:
                self._tell("lost", {"file": file, "bytes": end - size})
                for resource in self._state.records.forget_behind(file, size):
                    left = self._state.records.of(resource)
                    self._state.resources.choose(resource, left[0].id if left else None)
                    kept = {(each.record.capture.archive, each.record.capture.datetime) for each in left}
                    self._state.captures.forget_stored(resource, kept)
                    self._state.resources.requeue("id = ?", resource)
        for record in self._warcs.adopt(self._state.records.ends()):
            try:
                name = naming.name_of(record.capture.uri, ignore_case=self._plan.ignore_case)
            except UriError:
                continue
            number = self._state.resources.add([Wanted(name, record.capture.uri, Use.PAGE, name.count("/") + 1)])[name]
            self._serving.note(self._state.resources.get(number), keeping.reread(self._warcs, record))
            # Not now: whether it is wanted, and how far it is from a beginning, is seen when its turn comes.
            self._state.follow_again(is_wanted=True)
        self._state.commit()

    def _begin_round(self) -> None:
        """Ask again for what failed; and if the last run was done, for everything that archives may have gained."""
        state = self._state
        self._trapped_before = state.trapped()
        self._is_tried_again = state.fact("done") == _BUT_FAILURES
        if state.fact("done") == _DONE or state.fact("span") != span_of(self._plan):
            state.listings.forget()
            state.resources.forget_reasons(reason=NO_CONTENT)
            state.captures.forget_asked()
            state.candidates.forget_wanted()
        state.keep_fact("done", "")
        state.keep_fact("span", span_of(self._plan))
        again = state.captures.ask_again()
        self._serving.failed_before = frozenset(again)
        for number in again:
            state.resources.requeue("id = ?", number)
        state.resources.requeue(_AGAIN[self._plan.all_versions])
        for archive in state.resources.waiting():
            state.resources.assign_all(archive)
        state.commit()

    # Lists

    async def _list_all(self, tasks: asyncio.TaskGroup, seconds: float | None = LISTING_SECONDS) -> None:
        """Ask all archives for their lists, and wait for them, so long at most."""
        if self._plan.policy is not Policy.NAIVE:
            before = {(each.archive, each.prefix): each.outcome for each in self._state.listings.all()}
            lists = [
                self._begin_list(archive, prefix, tasks)
                for archive in self._repositories
                for prefix in self._scope.prefixes
                if before.get((archive, prefix), Listed.FAILED) in (Listed.FAILED, Listed.NOT_NOW)
            ]
            end = math.inf if seconds is None else time.monotonic() + seconds
            left: Collection[asyncio.Task[None]] = lists
            while left and not self._is_over() and (patience := end - time.monotonic()) > 0:
                left = (await asyncio.wait(left, timeout=min(patience, _LOOK_SECONDS)))[1]
        self._learn()

    def _begin_list(self, archive: str, prefix: str, tasks: asyncio.TaskGroup) -> asyncio.Task[None]:
        # It counts from now on, not from when its task gets its first turn: nobody may think meanwhile that none comes.
        task = tasks.create_task(self._list(archive, prefix))
        self._lists.add(task)
        task.add_done_callback(self._end_list)
        return task

    def _end_list(self, task: asyncio.Task[None]) -> None:
        self._lists.discard(task)
        self._wake.set()

    async def _list(self, archive: str, prefix: str) -> None:
        listing = await ask_for_list(self._repositories[archive], prefix, self._plan, self._state)
        self._tell(
            "listed",
            {
                "archive": archive,
                "prefix": prefix,
                "outcome": listing.outcome.value,
                "captures": listing.captures,
                **({"message": listing.message} if listing.message else {}),
            },
        )
        if listing.outcome in (Listed.FAILED, Listed.NOT_NOW):
            # It is not asked page by page: what it may have waits until it can be asked for its list.
            until = listing.until or self._clock.now() + _REST_SECONDS
            self._doors.closed[archive] = Closing(until, UNLISTED, listing.message or "")
        elif archive in self._doors.closed:
            self._doors.reopen(archive)
        if self._is_begun:
            self._ready.add(archive)
            self._learn()
            self._want_listed()
            self._state.resources.requeue(_AGAIN[self._plan.all_versions])

    def _learn(self) -> None:
        """Make use of what was listed since the last time."""
        archives = [each.archive for each in self._repositories.values()]
        self._serving.knowledge = Knowledge(archives, self._state.listings.all())
        if not self._plan.ignore_case:
            busy = set().union(*self._busy.values())
            if merged := merge_case_variants(self._state, busy):
                self._serving.forget(merged)
                self._tell("case-insensitive", {"merged": len(merged)})
        self._following.want_candidates()

    def _want_listed(self) -> None:
        """Queue what is listed, unless there is so much of it that the user has to confirm it first."""
        if self._plan.policy.uses_listings and self._is_confirmed():
            self._following.want_listed()

    def _is_confirmed(self) -> bool:
        """Ask for a confirmation if there is much to fetch; return whether to fetch it."""
        limit = self._plan.limit
        if not self._plan.policy.uses_listings or (limit is not None and limit <= LARGE):
            return True
        if self._state.resources.counts()[Standing.LISTED] <= LARGE:
            return True
        count = self._following.listed_to_want()
        if count <= max(LARGE, int(self._state.fact(_CONFIRMED) or 0)):
            return True
        if self._unconfirmed or not self._confirm(count, lambda share: self._costs(share, LARGE), self._is_begun):
            self._unconfirmed = count
            return False
        self._state.keep_fact(_CONFIRMED, str(count))
        return True

    def _costs(self, share: float, most: int | None = None) -> list[Cost]:
        archives = {name: each.archive for name, each in self._repositories.items()}
        return estimate.costs(archives, self._scope, self._serving, self._state, share, most)

    def _check_substitutes(self) -> None:
        """Call resources missing whose substitute did not come back either."""
        now = dates.from_epoch(str(int(self._clock.now())))
        for resource in self._state.resources.without_substitute():
            self._serving.end_without_substitute(resource, now)

    # Work

    async def _dispatch(self, tasks: asyncio.TaskGroup) -> None:
        """Keep every archive as busy as it may be, with the most valuable that it can give, until nothing is left."""
        self._is_begun = True
        self._ready.update(self._repositories)
        while True:
            self._wake.clear()
            self._reopen(tasks)
            has_more = self._assign()
            for archive in self._ready.copy():
                self._start(archive, tasks)
            if has_more and not self._is_to_stop():
                await asyncio.sleep(0)
            elif any(self._busy.values()) or (self._lists and not self._is_over()):
                await self._woken()
            elif self._is_over() or not await self._waited():
                return

    def _is_to_stop(self) -> bool:
        self._is_stopped = self._is_stopped or self._should_stop()
        return self._is_stopped

    def _is_over(self) -> bool:
        """Return whether somebody stopped it, or there will be as much as was wanted: nothing more is begun."""
        limit = self._plan.limit
        coming = sum(map(len, self._busy.values()))
        return self._is_to_stop() or (limit is not None and self._serving.recovered + coming >= limit)

    def _assign(self) -> bool:
        """Say whose turn it is for what is new in the queue; return whether there is more of that."""
        out = set().union(*self._busy.values())
        for _ in range(_ASSIGNED_AT_ONCE):
            resource = self._state.resources.take(UNASSIGNED, out)
            if resource is None:
                return False
            archive = self._serving.settle(resource)
            if archive is not None:
                self._ready.add(archive)
        return True

    def _start(self, archive: str, tasks: asyncio.TaskGroup) -> None:
        """Begin as much for an archive as it may be asked at once."""
        busy = self._busy[archive]
        while len(busy) < self._at_once and archive not in self._doors.closed and not self._is_over():
            resource = self._state.resources.take(archive, busy)
            if resource is None:
                self._ready.discard(archive)
                return
            if not resource.is_linked and busy & self._linked_busy:
                return  # what is on its way may have links, and these come before what is only listed
            busy.add(resource.id)
            if resource.is_linked:
                self._linked_busy.add(resource.id)
            tasks.create_task(self._serve(resource, archive))

    async def _serve(self, resource: Resource, archive: str) -> None:
        try:
            turn = await self._serving.serve(resource, archive)
            if self._wait:
                await self._clock.sleep(self._wait * random.uniform(0.5, 1.5))  # noqa: S311  no secret
        finally:
            self._busy[archive].discard(resource.id)
            self._linked_busy.discard(resource.id)
            self._wake.set()
        self._ready.update((archive,) if turn is None else (archive, turn))
        if archive in self._doors.closed:
            self._announce(archive)

    def _announce(self, archive: str) -> None:
        """Say that an archive is closed, unless that was said; others may have the same bytes."""
        closing = self._doors.closed[archive]
        if archive not in self._announced:
            self._announced.add(archive)
            self._tell("waiting", {"archive": archive, "until": closing.until, "reason": closing.reason})
            self._state.resources.assign_all(archive)

    def _reopen(self, tasks: asyncio.TaskGroup) -> None:
        """Ask those again whose time has come; those without a list, for that."""
        now = self._clock.now()
        for archive, closing in list(self._doors.closed.items()):
            if closing.until > now:
                continue
            self._announced.discard(archive)
            if closing.reason == UNLISTED:
                self._doors.closed[archive] = replace(closing, until=math.inf)
                for prefix in self._scope.prefixes:
                    self._begin_list(archive, prefix, tasks)
            else:
                self._doors.reopen(archive)
                self._ready.add(archive)

    async def _waited(self) -> bool:
        """Wait for the first archive that can be asked again, if somebody wants that; return whether it is to go on."""
        waited_for = self._state.resources.waiting().keys() | self._unlisted(Listed.NOT_NOW).keys()
        times = [closing.until for archive, closing in self._doors.closed.items() if archive in waited_for]
        if not times or not self._until_done:
            return False
        while (left := min(times) - self._clock.now()) > 0 and not self._is_over():
            await self._clock.sleep(min(left, _LOOK_SECONDS))
        return True

    async def _woken(self) -> None:
        """Wait until something has come, and not longer than it takes to look whether to stop."""
        # Not `wait_for`: before Python 3.12 it loses a Ctrl-C that comes together with what is waited for.
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                await self._wake.wait()

    async def _commit_often(self) -> None:
        pause = _COMMIT_SECONDS
        while True:
            await asyncio.sleep(pause)
            begun = time.monotonic()
            self._commit()
            counts = self._state.resources.counts()
            self._tell("progress", {standing.value: count for standing, count in counts.items()})
            # Counting a million takes a while.
            pause = max(_COMMIT_SECONDS, 20 * (time.monotonic() - begun))

    def _commit(self) -> None:
        """Make all changes last, and with them how much was asked for them."""
        if self._sent is not None:
            self._state.keep_requests(self._sent_before, self._sent)
        self._state.keep_trapped(self._trapped_before, self._following.trapped)
        self._state.commit()

    def _unlisted(self, *outcomes: Listed) -> dict[str, str]:
        """Return the archives whose lists ended so, and why, as far as this plan asks for these lists."""
        prefixes = () if self._plan.policy is Policy.NAIVE else self._scope.prefixes
        return {
            each.archive: each.message or ""
            for each in self._state.listings.all()
            if each.outcome in outcomes and each.archive in self._repositories and each.prefix in prefixes
        }

    def _result(self) -> Result:
        state = self._state
        unlisted = self._unlisted(Listed.FAILED, Listed.NOT_NOW)
        waiting = state.resources.waiting()
        closed = {archive: closing for archive, closing in self._doors.closed.items() if waiting.get(archive)}
        failed = state.resources.failed()
        session_ids = state.captures.count_session_ids()
        state.keep_fact(SESSION_IDS, str(session_ids))
        result = Result(
            state.resources.counts(),
            closed,
            unlisted,
            failed,
            dict(self._following.trapped),
            self._is_stopped,
            self._plan.limit is not None and self._serving.recovered >= self._plan.limit,
            state.resources.doubtful(),
            {reason: count for reason, count in state.resources.left_out().items() if reason in LEFT_OUT},
            {
                archive: outcome.value
                for outcome in (Listed.UNSUPPORTED, Listed.CUT)
                for archive in self._unlisted(outcome)
                if self._repositories[archive].archive.kind is not Kind.LIVE
            },
            self._unconfirmed,
            int(state.fact(LOOKUPS) or 0),
            session_ids,
        )
        if not result.counts[Standing.QUEUED]:
            state.follow_again(is_wanted=False)
        # What failed is tried again alone. If it fails once more, archives are asked for what they have gained anyway.
        is_done = result.is_done or (self._is_tried_again and replace(result, failed=0).is_done)
        failures = _BUT_FAILURES if replace(result, failed=0).is_done else ""
        state.keep_fact("done", _DONE if is_done else failures)
        state.commit()
        return result
