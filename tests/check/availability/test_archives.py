"""Queries to archives about a site: failures are no absences, and no query is repeated."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.aggregate.maps import MemoryHoldings, map_of_rows
from tests.check.availability.resources import archive_captures, live_resource
from tests.external.scripted_server import ScriptedResponse, ScriptedServer, scripted_server
from tests.external.wayback_cdx import FakeWayback, StoredCapture, fake_wayback
from tests.virtual_clock import VirtualClock
from unlost.aggregate import ArchiveRouter, LearnedStats, UpstreamClient
from unlost.archives import FetchedCapture, create_client
from unlost.check import (
    ArchiveAccess,
    ArchiveQueryResult,
    AvailabilityQuery,
    AvailabilityState,
    CaptureSampler,
    CheckStats,
    CurrentVisit,
    UrlProber,
    VisitDatabase,
    VisitHistory,
    compute_check_stats,
)
from unlost.crawl import LiveResource
from unlost.errors import FailedError
from unlost.http import POLICIES, ArchiveHttpClient, MemoryLimitStore
from unlost.mementomap import ArchiveHoldings
from unlost.registry import Archive, ArchiveKind, Registry

BASE = "http://site.example/"
PAGES = [live_resource(f"p{number}") for number in range(40)]
NOW = "20260601000000"


def make_captures(numbers: Sequence[int], status: int = 200) -> list[StoredCapture]:
    """Return captures of pages of the site."""
    return [StoredCapture(f"{BASE}p{number}", "20250101000000", statuscode=status) for number in numbers]


class CheckSetup:
    """Archives, and a visit in progress."""

    def __init__(self, present: CurrentVisit, courier: ArchiveHttpClient, clock: VirtualClock) -> None:
        self.present = present
        self._courier = courier
        self._clock = clock

    async def send(
        self,
        *archives: Archive,
        known: MemoryHoldings | None = None,
        sample: int | None = None,
        thorough: bool = False,
        look: UrlProber | None = None,
    ) -> tuple[ArchiveQueryResult, CheckStats]:
        """Query the archives, and return the result."""
        registry = Registry(archives)
        router = ArchiveRouter(registry, known or MemoryHoldings(), LearnedStats(registry), exploration_share=0)
        lists = {each.id: create_client(each, self._courier) for each in archives if each.lister}
        means = ArchiveAccess(
            {each.id: each for each in archives}, lists, UpstreamClient(self._courier, self._clock), router
        )
        asking = AvailabilityQuery(self.present, means, sample=sample, thorough=thorough, probe=look, max_probed=5)
        result = await asking.run([BASE])
        return result, compute_check_stats(self.present.availabilities([each.id for each in archives]), NOW)


def run(file: Path, work: Callable[[CheckSetup], Awaitable[None]]) -> None:
    """Begin a visit that has seen the pages, and run a test with it."""

    async def working() -> None:
        clock = VirtualClock()
        with VisitDatabase(file) as opened:
            history = VisitHistory(opened, opened.get_or_add_site(BASE))
            visit, _ = history.begin_visit(clock.now())
            present = history.current_visit(visit)
            present.record_live(PAGES)
            async with ArchiveHttpClient(MemoryLimitStore(), clock, "me@example.org") as client:
                await work(CheckSetup(present, client, clock))

    asyncio.run(working())


def only_timemaps(server: FakeWayback) -> Archive:
    """Return an archive that lists nothing."""
    return Archive("single", "Single", ArchiveKind.MEMENTO, timemap=server.archive().timemap)


def unresponsive_archive(server: ScriptedServer) -> Archive:
    """Return an archive that never responds."""
    return Archive("failing", "Failing", ArchiveKind.MEMENTO, timemap=f"{server.base}/none/")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a visit database."""
    return tmp_path / "visits.sqlite"


def test_complete_listing_needs_no_single_queries(file: Path) -> None:
    """One listing instead of forty queries; errors and redirects are no captures."""

    async def work(targets_of: CheckSetup) -> None:
        async with fake_wayback(
            [*make_captures(range(10)), *make_captures(range(10, 20), 404), *make_captures(range(20, 25), 302)]
        ) as server:
            _, found = await targets_of.send(server.archive())
        assert found.states == {AvailabilityState.REPLICATED: 10, AvailabilityState.VULNERABLE: 30}
        assert len(server.requests) == 1

    run(file, work)


def test_only_unlisted_resources_are_queried_singly(file: Path) -> None:
    """One archive lists ten pages, another without listings is queried for thirty, or for all forty if thorough."""

    async def work(targets_of: CheckSetup) -> None:
        async with fake_wayback(make_captures(range(10))) as first, fake_wayback(make_captures(range(5, 15))) as second:
            _, found = await targets_of.send(first.archive(), only_timemaps(second))
            assert found.states == {AvailabilityState.REPLICATED: 15, AvailabilityState.VULNERABLE: 25}
            assert len(second.requests) == 30

    run(file, work)

    async def thorough(targets_of: CheckSetup) -> None:
        async with fake_wayback(make_captures(range(10))) as first, fake_wayback(make_captures(range(5, 15))) as second:
            _, found = await targets_of.send(first.archive(), only_timemaps(second), thorough=True)
            assert len(second.requests) == 40
            assert found.by_archives == {1: 10, 2: 5}

    run(file, thorough)


def test_interval_of_a_sample_contains_the_true_share(file: Path) -> None:
    """Of a sample of twenty; other pages are unknown."""

    async def work(targets_of: CheckSetup) -> None:
        async with fake_wayback(make_captures(range(0, 40, 2))) as server:
            _, found = await targets_of.send(only_timemaps(server), sample=20)
            assert len(server.requests) == 20
        assert found.states[AvailabilityState.UNKNOWN] == 20
        assert found.score.sampled == 20
        assert found.score.interval is not None
        low, high = found.score.interval
        assert low < 0.5 < high
        assert high - low < 0.4

    run(file, work)


def test_failed_query_is_not_an_absence(file: Path) -> None:
    """The page is unknown, not vulnerable; after some failures the archive is not queried further."""

    async def work(targets_of: CheckSetup) -> None:
        async with fake_wayback(make_captures(range(10))) as first, scripted_server({}) as second:
            second.responses.update({f"/none/{page.uri}": ScriptedResponse(500) for page in PAGES})
            result, found = await targets_of.send(first.archive(), unresponsive_archive(second))
            assert found.states == {AvailabilityState.REPLICATED: 10, AvailabilityState.UNKNOWN: 30}
            assert list(result.given_up) == ["failing"]
            assert len(set(second.requests)) == POLICIES["check"].failures
            # The next run queries it again. One response resets the count.
            del second.responses[f"/none/{next(iter(PAGES)).uri}"]
            second.requests.clear()
            second.responses.clear()
            result, found = await targets_of.send(first.archive(), unresponsive_archive(second))
            assert (list(result.given_up), found.states[AvailabilityState.UNKNOWN]) == ([], 0)

    run(file, work)


def test_archive_with_a_failed_listing_is_queried_singly(file: Path) -> None:
    """With the same result."""

    async def work(targets_of: CheckSetup) -> None:
        async with fake_wayback(make_captures(range(10))) as server:
            server.index_response = b"<html>maintenance</html>"
            archive = server.archive()
            # Its own TimeMaps still work.
            _, found = await targets_of.send(replace(archive, kind=ArchiveKind.WAYBACK))
            assert found.states == {AvailabilityState.REPLICATED: 10, AvailabilityState.VULNERABLE: 30}
        assert [each.is_whole for each in targets_of.present.listings()] == [False]

    run(file, work)


def test_answered_queries_are_not_repeated(file: Path) -> None:
    """A visit resumes with the stored listings and results."""

    async def work(targets_of: CheckSetup) -> None:
        async with fake_wayback(make_captures(range(10))) as first, fake_wayback(make_captures(range(20))) as second:
            archives = first.archive(), only_timemaps(second)
            _, before = await targets_of.send(*archives, sample=12)
            count = len(first.requests), len(second.requests)
            _, after = await targets_of.send(*archives, sample=12)
            assert (len(first.requests), len(second.requests)) == count
            assert before == after

    run(file, work)


def test_archive_excluded_by_its_map_is_not_queried(file: Path, tmp_path: Path) -> None:
    """A map that denies the host answers for all of its pages."""
    other = map_of_rows(tmp_path, "org,other)/* 3\n")

    async def work(targets_of: CheckSetup) -> None:
        async with fake_wayback(make_captures(range(10))) as server:
            archive = only_timemaps(server)
            known = MemoryHoldings({archive.id: ArchiveHoldings(other, [])})
            _, found = await targets_of.send(archive, known=known)
            assert server.requests == []
        assert found.states == {AvailabilityState.VULNERABLE: 40}

    run(file, work)


def test_listed_urls_that_the_crawl_missed_are_probed(file: Path) -> None:
    """A sample of listed but unlinked URLs: missing ones are endangered, others are live."""
    gone = [StoredCapture(f"{BASE}old{number}", "20240101000000") for number in range(20)]
    looked: list[str] = []

    async def look(uris: list[str]) -> list[LiveResource]:
        looked.extend(uris)
        return [live_resource(each.removeprefix(BASE), 404 if at else 200, hops=None) for at, each in enumerate(uris)]

    async def work(targets_of: CheckSetup) -> None:
        async with fake_wayback([*make_captures(range(40)), *gone]) as server:
            _, found = await targets_of.send(server.archive(), look=look)
        assert found.states == {AvailabilityState.REPLICATED: 41, AvailabilityState.ENDANGERED: 4}
        assert len(looked) == 5
        assert targets_of.present.listings()[0].beside == 20

    run(file, work)


class FailingCaptures:
    """A client whose captures cannot be fetched. `asked` has the requested URLs."""

    def __init__(self) -> None:
        self.archive = Archive("a", "A", ArchiveKind.MEMENTO)
        self.asked: list[str] = []
        self.is_failing = True

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Fail, or return no capture."""
        del date
        self.asked.append(uri)
        if self.is_failing:
            raise FailedError("no", "a", "timeout")
        return None


def test_archive_that_gives_no_captures_is_skipped(file: Path) -> None:
    """As `POLICIES["check-captures"]` says; the next run requests them."""

    async def work(targets_of: CheckSetup) -> None:
        present, client = targets_of.present, FailingCaptures()
        present.record_holdings({page.key: archive_captures("a") for page in PAGES[:20]})
        await CaptureSampler(present, {"a": client}, 20).classify_sample(("a",))  # type: ignore[dict-item]
        assert len(client.asked) == POLICIES["check-captures"].failures
        assert present.verdicts() == {}
        client.is_failing = False
        await CaptureSampler(present, {"a": client}, 20).classify_sample(("a",))  # type: ignore[dict-item]
        assert list(present.verdicts().values()) == ["absent"] * 20

    run(file, work)
