"""Queries the archives of the decaying web, and compares the results with the truth."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.aggregate.maps import MemoryHoldings
from tests.external.wayback_cdx import FakeWayback, fake_wayback
from tests.virtual_clock import VirtualClock
from tests.watch.decaying.archives import Behaviour, Truth, file_url, type_of
from tests.watch.decaying.web import BEGIN, DAY
from unlost.aggregate import ArchiveRouter, LearnedStats, UpstreamClient
from unlost.archives import create_client
from unlost.check import ANY_ARCHIVE, ArchiveAccess, CheckResult, VisitDatabase, VisitHistory
from unlost.http import ArchiveHttpClient, MemoryLimitStore
from unlost.registry import Registry
from unlost.watch import resource_lifetimes

EVENING = DAY * 3 // 4


@asynccontextmanager
async def run_archives(
    behaviours: Sequence[Behaviour], clock: VirtualClock
) -> AsyncIterator[tuple[ArchiveAccess, dict[str, FakeWayback]]]:
    """Run archives; yield the clients for them, and their servers by id."""
    async with AsyncExitStack() as stack:
        servers = {each.id: await stack.enter_async_context(fake_wayback([], clock)) for each in behaviours}
        registry = Registry(tuple(each.archive(servers[each.id]) for each in behaviours))
        client = await stack.enter_async_context(ArchiveHttpClient(MemoryLimitStore(), clock, "me@example.org"))
        archives = {each.id: each for each in registry}
        clients = {name: create_client(each, client) for name, each in archives.items() if each.lister}
        router = ArchiveRouter(registry, MemoryHoldings(), LearnedStats(registry), exploration_share=0)
        yield ArchiveAccess(archives, clients, UpstreamClient(client, clock), router), servers


def assert_captures(checked: CheckResult, truth: Truth, base: str, day: int) -> None:
    """Compare number, staleness and format of captures with the truth."""
    files = truth.web.files(day)
    paths = {file_url(base, path): path for path in truth.paths}
    for standing in checked.current.availabilities(checked.archives):
        path = paths[standing.live.uri]
        displayed = {each.id: each.captures(truth, path, day) for each in truth.behaviours}
        assert {held.archive: held.captures for held in standing.held} == {
            name: len(days) for name, days in displayed.items() if days
        }
        last = max((days[-1] for days in displayed.values() if days), default=None)
        if path in files and last is not None:
            changed = files[path][1]
            assert standing.stale_days == max(0.0, changed - last - 0.5), path
            changes = [type_of(path) in each.migrates for each in truth.behaviours if displayed[each.id]]
            assert standing.is_migrated == all(changes)


def assert_lifetimes(file: Path, truth: Truth, base: str) -> None:
    """Compare the lifetimes of all files, in each archive and in any, with the truth."""
    names = [each.id for each in truth.behaviours]
    late = 0
    with VisitDatabase(file, is_read_only=True) as opened:
        history = VisitHistory(opened, opened.sites()[0][0])
        assert history.archives() == sorted(names)
        for archive in (ANY_ARCHIVE, *names):
            lives = {uri: life for uri, _, life in resource_lifetimes(history, archive)}
            assert len(lives) == len(truth.paths)
            for path in truth.paths:
                life = lives[file_url(base, path)]
                expected = truth.life(path, names if archive == ANY_ARCHIVE else [archive])
                found = {
                    "t0": _day(life.t0), "ta": _day(life.ta), "tr": _day(life.tr), "tp": _day(life.tp),
                    "ttl_c": _days(life.ttl_c), "p_r": life.p_r, "is_late": life.is_late,
                    "vulnerable": _days(life.vulnerable), "endangered": _days(life.endangered),
                }  # fmt: skip
                assert found == pytest.approx(expected), (archive, path)
                late += life.is_late
    assert late > 0, "the test has late caching in it"


def _day(time: float | None) -> float | None:
    return None if time is None else (time - BEGIN - EVENING) / DAY


def _days(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / DAY
