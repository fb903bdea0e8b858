"""Harvests pages again: one host at a time each, until nothing is left or somebody stops it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from unlost._core import VERSION
from unlost.archives.asking.addresses import Resolver
from unlost.archives.asking.exchange import Deadlines
from unlost.clock import Clock, SystemClock
from unlost.crawl.hosts import to_its_end, visit_hosts
from unlost.crawl.plan import DELAY_SECONDS, MAX_RESOURCE_BYTES
from unlost.crawl.polite import PATIENCE_SECONDS, PoliteVisitor, StoppedError, Tell
from unlost.crawl.visitor import DEADLINES, Visitor
from unlost.crawl.warcs import MAX_BYTES, CrawlWarcs
from unlost.errors import RobotsError, SiteError, SiteWaitError
from unlost.refresh.harvest.choice import USUAL_CHANCE, Way, choose
from unlost.refresh.harvest.keeping import Kept, keep
from unlost.refresh.harvest.log import VisitLog
from unlost.refresh.harvest.state import HarvestState, Page
from unlost.refresh.harvest.treatment import Treatment
from unlost.refresh.harvest.visiting import Found, PageVisitor
from unlost.refresh.policy import Policy, host_of
from unlost.refresh.scheduling import chance_of_change, expected_rate
from unlost.refresh.visit import Visit

_TRIES = 2  # visits of what broke off or took too long
_AGAIN = frozenset({"timeout", "reset"})
_GONE = frozenset({"refused", "dns", "unreachable", "proxy"})
_PATIENT = 5  # visits in a row that find nobody: then the host is left alone
_REST_SECONDS = 3_600.0  # for how long that is said to be


@dataclass(frozen=True, slots=True)
class Manners:
    """How to visit.

    contact: an address of mail or of a page, for whoever looks after a site; without one, pauses are twice as long.
    delay: seconds between two requests to one host, at least. hosts_at_once: each by one request.
    proxies: whether to go through those of the environment. patience: how many seconds a host may keep us waiting by
    saying so. keep_noarchive: whether bodies are kept although their page asks not to.
    """

    contact: str | None = None
    delay: float = DELAY_SECONDS
    hosts_at_once: int = 4
    proxies: bool = False
    patience: float = PATIENCE_SECONDS
    keep_noarchive: bool = False
    max_bytes: int = MAX_RESOURCE_BYTES
    deadlines: Deadlines = DEADLINES
    warc_bytes: int = MAX_BYTES
    resolver: Resolver | None = None


@dataclass(slots=True)
class Harvested:
    """How a run ended.

    outcomes: how many pages ended how in this round. pending: still to be visited.
    waiting: hosts that said to come back later, or were not there, until when in seconds since 1970.
    audited, lies: skips that were checked in this run, and those that had changed.
    """

    outcomes: dict[str, int]
    pending: int
    waiting: dict[str, float]
    is_stopped: bool
    audited: int = 0
    lies: int = 0


async def harvest(
    state: HarvestState,
    folder: Path,
    policy: Policy,
    manners: Manners,
    clock: Clock | None = None,
    *,
    tell: Tell = lambda _, __: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Harvested:
    """Visit all pages that are pending in a state, and keep what changed in `warc/` of its folder.

    What is inside a network is visited only on hosts that a person named. tell: gets what happens, as docs/harvest.md
    lists it. should_stop: is asked often whether to end in order. Whatever ends it, also a kill, the same call goes on
    where it ended. Raises InputError and OSError for a folder that cannot be used.
    """
    clock = clock or SystemClock()
    warcs = CrawlWarcs(folder / "warc", clock, f"unlost/{VERSION}", max_bytes=manners.warc_bytes)
    warcs.agree(state)
    for host, lies in state.lies().items():
        for group, (changed, _) in lies.items():
            policy.note(host, group, changed=True, times=changed)
    delay = manners.delay
    if manners.contact is None:
        delay *= 2
        tell("no-contact", {"delay": delay})
    try:
        with VisitLog(folder, state) as log:
            async with Visitor(
                state.given(),
                clock,
                manners.contact,
                manners.deadlines,
                proxies=manners.proxies,
                resolver=manners.resolver,
            ) as visitor:
                polite = PoliteVisitor(
                    visitor, state, clock, delay, patience=manners.patience, tell=tell, should_stop=should_stop
                )
                return await _Harvest(state, policy, manners, polite, warcs, log, clock, tell, should_stop).run()
    finally:
        state.commit()
        warcs.close()


class _Harvest:
    """One run of a harvest."""

    def __init__(
        self,
        state: HarvestState,
        policy: Policy,
        manners: Manners,
        polite: PoliteVisitor,
        warcs: CrawlWarcs,
        log: VisitLog,
        clock: Clock,
        tell: Tell,
        should_stop: Callable[[], bool],
    ) -> None:
        self._state, self._policy, self._manners, self._warcs, self._log = state, policy, manners, warcs, log
        self._clock, self._tell, self._should_stop = clock, tell, should_stop
        self._visitor = PageVisitor(polite, policy, self._now, manners.max_bytes)
        self._is_stopped = False
        self._waiting: dict[str, float] = {}
        self._absent: dict[str, int] = {}
        self._audited = self._lies = 0
        self._disk = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> Harvested:
        """Do all that can be done now."""
        self._state.forget_faults()
        self._state.commit()

        def hosts() -> list[str]:
            return [] if self._is_over() else [host for host in self._state.hosts() if host not in self._waiting]

        await visit_hosts(hosts, self._visit_all, self._manners.hosts_at_once, self._tasks, asyncio.Event())
        return Harvested(
            self._state.outcomes(), self._state.pending(), self._waiting, self._is_stopped, self._audited, self._lies
        )

    def _now(self) -> int:
        return int(self._clock.now() * 1000)

    def _is_over(self) -> bool:
        self._is_stopped = self._is_stopped or self._should_stop()
        return self._is_stopped

    async def _visit_all(self, host: str) -> None:
        while not self._is_over() and host not in self._waiting:
            page = self._state.take(host)
            if page is None:
                return
            try:
                await self._visit(page, host)
            except StoppedError:
                self._is_stopped = True
                return
            self._state.commit()

    async def _visit(self, page: Page, host: str) -> None:
        treatment = self._state.treatment(host)
        now = self._now()
        since = 0.0 if page.looked is None else (now - page.looked) / 1000
        chance = chance_of_change(expected_rate(page.intervals), since)
        way = choose(self._policy, treatment, page.held, now, USUAL_CHANCE if chance is None else chance)
        try:
            found = await self._visitor.visit(page.uri, host_of(page.uri), page.held, treatment, way)
        except SiteWaitError as error:
            self._close(host, error.until)
        except RobotsError as error:
            if error.is_for_now:
                self._close(host, self._clock.now() + _REST_SECONDS)
            else:
                self._end(page, way, "forbidden", "robots")
        except SiteError as error:
            self._failed(page, host, way, error)
        else:
            self._absent.pop(host, None)
            try:
                await to_its_end(self._keep(page, host, way, found))
            finally:
                found.close()

    async def _keep(self, page: Page, host: str, way: Way, found: Found) -> None:
        """Keep what came, and what was learned from it: all of it, or nothing if a kill comes."""
        async with self._disk:
            by_text, keep_noarchive = self._policy.by_text, self._manners.keep_noarchive
            kept = await asyncio.to_thread(
                keep, found, page.held, self._warcs, by_text=by_text, keep_noarchive=keep_noarchive
            )
            # From here to the commit nobody else gets a turn: files and state agree whenever a kill comes.
            treatment = self._learned(page, found, kept)
            if treatment != self._state.treatment(host):
                self._state.keep_treatment(host, treatment)
            for place in kept.places:
                self._state.note_record(place, page.id)
            if kept.held is not None:
                self._state.hold(page.id, kept.held)
            self._state.note_look(page, kept.visit.time, kept.changed)
            self._log.add(kept.visit, way.value, kept.outcome)
            self._state.finish(page.id, kept.outcome)
            self._state.commit()
        about = {"uri": page.uri, "way": way.value, "status": kept.visit.status}
        if found.weight is not None:
            about["audit"] = "changed" if kept.changed else "same"
        self._tell(kept.outcome, about)

    def _learned(self, page: Page, found: Found, kept: Kept) -> Treatment:
        """Take what a download or an audit found into account; return how the host is known from now on."""
        treatment, decision = found.treatment, found.decision
        if found.weight is not None and kept.changed is not None:
            self._audited += 1
            self._lies += kept.changed
            if found.had_304:
                treatment = treatment.noting("against" if kept.changed else "spared")
        if decision is not None and kept.changed and kept.visit.digest is not None:
            host = host_of(page.uri)
            self._policy.note(host, decision.group, changed=True)
            self._state.note_lie(host, decision.group)
        return treatment

    def _failed(self, page: Page, host: str, way: Way, error: SiteError) -> None:
        if error.kind in _GONE:
            self._absent[host] = self._absent.get(host, 0) + 1
            if self._absent[host] >= _PATIENT:
                self._close(host, self._clock.now() + _REST_SECONDS)
        if error.kind in _AGAIN and page.tries + 1 < _TRIES:
            self._state.try_again(page.id)
            return
        self._end(page, way, "failed", error.kind)

    def _close(self, host: str, until: float) -> None:
        self._waiting[host] = until
        self._tell("closed", {"host": host, "until": until})

    def _end(self, page: Page, way: Way, outcome: str, reason: str) -> None:
        """Say that there was no answer."""
        self._log.add(Visit(page.uri, time=self._now(), status=0), way.value, outcome)
        self._state.finish(page.id, outcome)
        self._tell(outcome, {"uri": page.uri, "way": way.value, "reason": reason})
