"""Watching sites: schedule, stored losses, hooks, clock changes and kills."""

import asyncio
import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from tests.aggregate.maps import MemoryHoldings
from tests.external.wayback_cdx import FakeWayback, StoredCapture, fake_wayback
from tests.virtual_clock import VirtualClock
from tests.watch.watching.flaky_site import BEGIN, DAY, FlakySite, Habits
from unlost import uri
from unlost.aggregate import ArchiveRouter, LearnedStats, UpstreamClient
from unlost.archives import create_client
from unlost.check import (
    ArchiveAccess,
    AvailabilityState,
    CheckOptions,
    SiteSource,
    UrlProber,
    VisitDatabase,
    VisitHistory,
)
from unlost.check import history as history_module
from unlost.check import visit_store as present_module
from unlost.crawl import CrawlOutcome, LiveResource
from unlost.errors import OfflineError
from unlost.http import POLICIES, ArchiveHttpClient, MemoryLimitStore
from unlost.registry import Archive, ArchiveKind, Registry
from unlost.sqlite import transaction
from unlost.watch import LossHook, LossStore, VisitResult, Watcher
from unlost.watch import losses as losses_module

QUIET = Habits(0, 0, 0, 0, 0, 0, 0, 0)
"""Nothing happens to a site."""


class FlakySites:
    """Visits flaky sites, with their expected health."""

    knows_links = True
    probe: UrlProber | None = None

    def __init__(self, site: FlakySite) -> None:
        self.page_fetcher = site
        self.crawls = 0
        self._known: Sequence[str] = ()

    @asynccontextmanager
    async def open(self, url: str, visit: int, known: Sequence[str]) -> AsyncIterator[SiteSource]:
        """Return itself."""
        del url, visit
        self._known = known
        yield self

    async def resources(self) -> AsyncIterator[LiveResource]:
        """Yield the pages."""
        self.crawls += 1
        site = self.page_fetcher
        filter_of_pages = [site.home, *(f"{site.home}page{number}.html" for number in range(3))]
        for each in dict.fromkeys([*filter_of_pages, *self._known]):
            found = await site.fetch(each)
            outcome = CrawlOutcome.FETCHED if found.status else CrawlOutcome.FAILED
            yield LiveResource(each, uri.key(each), outcome, found.status, "text/html", digest=found.digest, hops=1)

    def prefixes(self) -> Sequence[str]:
        """Return the prefixes to list."""
        return [self.page_fetcher.home]


class WatchedSite:
    """A watch of one flaky site, with an archive that lists it and one that does not."""

    def __init__(self, file: Path, site: FlakySite, on_loss: str | None = None) -> None:
        self.file = file
        self.site = site
        self.clock = VirtualClock(BEGIN)
        self.sites = FlakySites(site)
        self.on_loss = None if on_loss is None else LossHook.parse(on_loss)
        self.servers: tuple[FakeWayback, ...] = ()

    @asynccontextmanager
    async def watcher(self, every: float = DAY) -> AsyncIterator[Watcher]:
        """Yield the watcher."""
        filter_of_pages = [StoredCapture(f"{self.site.home}page{number}.html", "20231001000000") for number in range(2)]
        async with (
            fake_wayback(filter_of_pages[:1], self.clock) as first,
            fake_wayback(filter_of_pages, self.clock) as second,
            ArchiveHttpClient(MemoryLimitStore(), self.clock, "me@example.org") as client,
        ):
            self.servers = first, second
            single = Archive("single", "Single", ArchiveKind.MEMENTO, timemap=second.archive().timemap)
            registry = Registry((first.archive(), single))
            router = ArchiveRouter(registry, MemoryHoldings(), LearnedStats(registry), exploration_share=0)
            lists = {first.archive().id: create_client(first.archive(), client)}
            means = ArchiveAccess(
                {each.id: each for each in registry}, lists, UpstreamClient(client, self.clock), router
            )
            yield Watcher(
                self.file,
                self.clock,
                self.sites,
                means,
                CheckOptions(None),
                interval=every,
                on_loss=self.on_loss,
            )

    async def visit(self, watcher: Watcher, day: float) -> VisitResult:
        """Make a visit on a day."""
        self.clock.advance(BEGIN + day * DAY - self.clock.now())
        self.site.now = self.clock.now()
        return await watcher.visit(self.site.home)

    def days(self, *days: float) -> list[VisitResult]:
        """Make visits on these days."""

        async def visits() -> list[VisitResult]:
            async with self.watcher() as watcher:
                return [await self.visit(watcher, day) for day in days]

        return asyncio.run(visits())


@pytest.fixture
def site() -> FlakySite:
    """Return a site that is lost on day 5."""
    return FlakySite(7, 30, QUIET, "parked", 5)


def recording_hook(file: Path) -> str:
    """Return a command that writes its arguments to a file."""
    output = "json.dumps([sys.argv[1:], os.environ['UNLOST_LOSS']]) + chr(10)"
    code = f"import json, os, sys; open({str(file)!r}, 'a').write({output})"
    return f"{sys.executable} -c \"{code}\" first 'second word'"


def test_loss_is_recorded_and_notified_once(site: FlakySite, tmp_path: Path) -> None:
    """At the second failed visit; then unarchived resources are unrecoverable, others endangered."""
    out = tmp_path / "out"
    watch = WatchedSite(tmp_path / "visits.sqlite", site, recording_hook(out))
    visits = watch.days(3, 4, 5, 6, 7, 8)
    assert [visited.health.health for visited in visits] == ["fine", "fine", *["parked"] * 4]
    assert [visited.loss is not None for visited in visits] == [False, False, False, True, True, True]
    assert [visited.is_news for visited in visits] == [False, False, False, True, False, False]
    assert out.read_text().splitlines() == [json.dumps([["first", "second word", site.home, "parked"], "parked"])]
    before, after = visits[1].check.stats.states, visits[-1].check.stats.states
    assert before == {AvailabilityState.REPLICATED: 2, AvailabilityState.VULNERABLE: 2}
    assert after == {AvailabilityState.ENDANGERED: 2, AvailabilityState.UNRECOVERABLE: 2}


def test_site_that_comes_back_can_be_lost_again(site: FlakySite, tmp_path: Path) -> None:
    """Both losses are stored with their first and last visits, and notified."""
    out = tmp_path / "out"
    watch = WatchedSite(tmp_path / "visits.sqlite", site, recording_hook(out))
    watch.days(3, 5, 6)
    site.lost = None
    (again,) = watch.days(7)
    assert again.is_news
    assert again.loss is not None
    assert again.loss.over == BEGIN + 7 * DAY
    site.lost = "unresponsive"
    watch.days(8, 9, 10)
    with VisitDatabase(watch.file, is_read_only=True) as file:
        found = LossStore(file, 1).all_losses()
    days = [
        [None if time is None else (time - BEGIN) / DAY for time in (each.since, each.noticed, each.over)]
        for each in found
    ]
    assert days == [[5, 6, 7], [8, 9, None]]
    assert [json.loads(line)[1] for line in out.read_text().splitlines()] == ["parked", "unresponsive"]


def test_failed_hook_is_reported(site: FlakySite, tmp_path: Path) -> None:
    """It is not run again, and the watch continues."""
    watch = WatchedSite(tmp_path / "visits.sqlite", site, f"{sys.executable} -c 'raise SystemExit(7)'")
    visits = watch.days(3, 5, 6, 7)
    assert [visited.hook_error for visited in visits] == [None, None, f"{sys.executable}: ended with 7", None]
    missing = WatchedSite(tmp_path / "other.sqlite", site, "/nonexistent/command")
    assert missing.days(3, 5, 6)[-1].hook_error == "/nonexistent/command: No such file or directory"


@pytest.mark.parametrize("home", ["http://a.example/;touch${IFS}x", "http://a.example/`touch x`$(touch x)"])
def test_text_of_a_site_is_never_parsed_by_a_shell(home: str, tmp_path: Path) -> None:
    """A URL is one argument, also of the user's own shell command."""
    out = tmp_path / "out"
    command = LossHook.parse(f"sh -c 'cd {tmp_path}; printf %s \"$1 $UNLOST_REASON\" > {out}' name")
    assert command.run(home, "parked", "it says $(touch y)", "2026-01-01") is None
    assert out.read_text() == f"{home} it says $(touch y)"
    assert {each.name for each in tmp_path.iterdir()} == {"out"}


def watched_until(watch: WatchedSite, visits: int, jumps: Callable[[VirtualClock, int], None]) -> list[float]:
    """Watch until this number of visits; return their days. `jumps` may move the clock after each."""

    async def watching() -> list[float]:
        days: list[float] = []
        done = asyncio.Event()

        def tell(visited: VisitResult) -> None:
            days.append(round((visited.check.visit.time - BEGIN) / DAY, 2))
            jumps(watch.clock, len(days))
            if len(days) >= visits:
                done.set()

        async with watch.watcher() as watcher:
            watcher._on_visit = tell
            task = asyncio.create_task(watcher.watch([watch.site.home]))
            await asyncio.wait([task, asyncio.create_task(done.wait())], return_when=asyncio.FIRST_COMPLETED)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return days

    return asyncio.run(watching())


def test_visits_follow_the_schedule(site: FlakySite, tmp_path: Path) -> None:
    """One a day; a restarted watch waits until the next is due."""
    watch = WatchedSite(tmp_path / "visits.sqlite", site)
    assert watched_until(watch, 4, lambda _, __: None) == [0, 1, 2, 3]
    assert watched_until(watch, 2, lambda _, __: None) == [4, 5]
    assert max(watch.clock.slept) <= 3_600


def test_clock_jump_does_not_stop_a_watch(site: FlakySite, tmp_path: Path) -> None:
    """A hundred days forward and back: the next visit comes within a day."""

    def jumps(clock: VirtualClock, count: int) -> None:
        if count == 2:
            clock.advance(100 * DAY)
        if count == 3:
            clock.advance(-100 * DAY)

    watch = WatchedSite(tmp_path / "visits.sqlite", site)
    days = watched_until(watch, 6, jumps)
    assert days == [0, 1, 101, 1, 2, 3]
    with VisitDatabase(watch.file, is_read_only=True) as file:
        dated = [each.is_dated for each in VisitHistory(file, 1).finished_visits()]
    assert dated == [True, True, False, True, True, True]


class KilledError(BaseException):
    """Simulates a killed process."""


def dump(file: Path) -> list[str]:
    """Return the contents of a database without times."""
    with closing(sqlite3.connect(file)) as connection:
        return [line for line in connection.iterdump() if not line.startswith('INSERT INTO "sqlite')]


DAYS = (2, 3, 4, 5, 6, 7, 8)


@pytest.fixture(scope="module")
def uninterrupted_visits(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the contents after visits without a kill."""
    file = tmp_path_factory.mktemp("undisturbed") / "visits.sqlite"
    WatchedSite(file, FlakySite(7, 30, QUIET, "parked", 5)).days(*DAYS)
    return dump(file)


@pytest.mark.parametrize("point", range(1, 56))
def test_killed_watch_resumes(
    point: int, uninterrupted_visits: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill at any change, the repeated visit gives the same database."""
    watch = WatchedSite(tmp_path / "visits.sqlite", FlakySite(7, 30, QUIET, "parked", 5))
    left = point

    @contextmanager
    def failing(connection: sqlite3.Connection) -> Iterator[None]:
        nonlocal left
        with transaction(connection):
            yield
            left -= 1
            if left == 0:
                raise KilledError

    async def visits() -> int:
        kills = 0
        async with watch.watcher() as watcher:
            for day in DAYS:
                try:
                    await watch.visit(watcher, day)
                except KilledError:
                    kills += 1
                    await watch.visit(watcher, day)
        return kills

    for module in (present_module, history_module, losses_module):
        monkeypatch.setattr(module, "transaction", failing)
    assert asyncio.run(visits()) == 1
    assert dump(watch.file) == uninterrupted_visits


def test_loss_is_recorded_in_the_transaction_of_its_visit(
    site: FlakySite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill in between would hide it for a day."""
    watch = WatchedSite(tmp_path / "visits.sqlite", site)
    between: list[bool] = []

    @contextmanager
    def seen(connection: sqlite3.Connection) -> Iterator[None]:
        with transaction(connection):
            yield
        done = connection.execute("SELECT count(*) FROM visit WHERE stage = 'done' AND look <> 'fine'").fetchone()[0]
        between.append(done >= 2 and not connection.execute("SELECT count(*) FROM loss").fetchone()[0])

    monkeypatch.setattr(history_module, "transaction", seen)
    watch.days(*range(2, 16))
    with VisitDatabase(watch.file, is_read_only=True) as file:
        assert file.connection.execute("SELECT count(*) FROM loss").fetchone()[0] == 1
    assert between
    assert not any(between)


def test_offline_watch_pauses_and_tries_again(site: FlakySite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `POLICIES["watch"]` says; after a visit the schedule applies again."""
    watch = WatchedSite(tmp_path / "visits.sqlite", site)
    policy = POLICIES["watch"]
    visited_at: list[float] = []

    async def work() -> None:
        async with watch.watcher() as watcher:
            visit = watcher.visit

            async def visit_or_fail(url: str) -> VisitResult:
                visited_at.append(watch.clock.now())
                if len(visited_at) in (1, 2, 4):
                    raise OfflineError("offline", "no connection")
                if len(visited_at) == 6:
                    raise asyncio.CancelledError
                return await visit(url)

            monkeypatch.setattr(watcher, "visit", visit_or_fail)
            with pytest.raises(asyncio.CancelledError):
                await watcher.watch([site.home])

    asyncio.run(work())
    waits = [later - earlier for earlier, later in pairwise(visited_at)]
    assert [round(wait) for wait in waits] == [policy.pause, policy.pause, DAY, policy.pause, DAY]
