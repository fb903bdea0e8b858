"""Listeners: learned statistics and the upstream log."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from tests.aggregate.maps import MemoryHoldings
from tests.aggregate.stubs import Archives, make_archive, timemap
from tests.cli.run import unlost
from tests.virtual_clock import VirtualClock
from unlost.aggregate import (
    ArchiveRouter,
    HitRateListener,
    LearnedStats,
    MementoAggregator,
    RoutingAccuracy,
    UpstreamLog,
    UpstreamLogListener,
    read_recent_responses,
)
from unlost.errors import ExcludedError, FailedError, NotNowError
from unlost.http import HttpRequest
from unlost.problems import Problems
from unlost.registry import Archive, Registry

if TYPE_CHECKING:
    from unlost.aggregate import UpstreamListener

ARCHIVE = make_archive("a")
MORE = b'<http://b.example/2>; rel="timemap"; from="Mon, 10 Feb 2014 00:00:01 GMT"'  # may not be requested
BEHAVIOURS = {
    "held": timemap("a", ["20140210000001"], "http://a.com/held"),
    "partly": timemap("a", ["20140210000001"], "http://a.com/partly") + b",\n" + MORE,
    "missed": timemap("a", [], "http://a.com/missed"),
    "excluded": ExcludedError("it does not show it", "a"),
    "cut": MORE,
    "unreadable": timemap("a", ["20140210000001"], "http://a.com/x").replace(b"GMT", b"???").replace(b"/2014", b"/x"),
    "failed": FailedError("status 500", "a", "status"),
    "later": NotNowError("its rate is used up", "a", 0.0, "rate"),
}
LOGGED = {
    "held": "hit", "partly": "hit", "missed": "miss", "excluded": "miss", "cut": "too-large",
    "unreadable": "malformed", "failed": "http-5xx", "later": "limited",
}  # fmt: skip


def router(*archives: Archive) -> ArchiveRouter:
    """Return a router without learned statistics."""
    registry = Registry(archives)
    return ArchiveRouter(registry, MemoryHoldings(), LearnedStats(registry), exploration_share=0.0)


async def log_all(path: Path, *, router_: ArchiveRouter) -> None:
    """Query an archive for one page of each kind."""

    async def respond(request: HttpRequest) -> object:
        return BEHAVIOURS[request.url.rpartition("/")[2]]

    clock = VirtualClock()
    async with UpstreamLog(path, clock) as log:
        listeners: list[UpstreamListener] = [HitRateListener(router_), UpstreamLogListener(log)]
        async with MementoAggregator(router_, Archives(a=respond), clock, listeners=listeners) as aggregator:
            for name in BEHAVIOURS:
                await aggregator.find(f"http://a.com/{name}")


def test_logged_outcomes_equal_learned_outcomes(tmp_path: Path) -> None:
    """A partial list is a hit, an exclusion a miss, and a list broken off before its first memento neither."""
    path = tmp_path / "upstream.ndjson"
    live, later = router(ARCHIVE), router(ARCHIVE)
    asyncio.run(log_all(path, router_=live))
    problems = Problems()
    responses = list(read_recent_responses(path, problems))
    assert {respond.uri.rpartition("/")[2]: respond.outcome for respond in responses} == LOGGED
    assert problems.total == 0
    assert later.learn_from_log(responses) == len(BEHAVIOURS)
    assert live.stats.accuracy("a") == RoutingAccuracy(learned_hits=2, learned_misses=2)
    assert later.stats.accuracy("a") == live.stats.accuracy("a")
    assert later.stats.rates.export_counts() == live.stats.rates.export_counts()


def test_userinfo_is_not_logged(tmp_path: Path) -> None:
    """It is removed from the URL."""
    path = tmp_path / "upstream.ndjson"

    async def run() -> None:
        clock = VirtualClock()

        async def respond(_: HttpRequest) -> object:
            return b""

        async with UpstreamLog(path, clock) as log:
            router_ = router(ARCHIVE)
            async with MementoAggregator(
                router_, Archives(a=respond), clock, listeners=[UpstreamLogListener(log)]
            ) as aggregator:
                await aggregator.find("http://me:secret@a.com/x@y")

    asyncio.run(run())
    (logged,) = read_recent_responses(path, Problems())
    assert logged.uri == "http://a.com/x@y"
    assert "secret" not in path.read_text()


def test_logged_misses_become_exclusions(tmp_path: Path) -> None:
    """With `unlost map exclude`: only misses, not failures."""
    path, before, after = tmp_path / "upstream.ndjson", tmp_path / "a.ukvs", tmp_path / "b.ukvs"
    asyncio.run(log_all(path, router_=router(ARCHIVE)))
    before.write_text('!fields {"keys": ["surt"], "values": ["frequency"]}\n* 9\ncom,a)/* 8\n')
    options = ["--misses", str(path), "--archive", "a", "--date", "2023-11-15", "-o", str(after)]
    done = unlost("map", "exclude", str(before), *options)
    assert done.returncode == 0, done.stderr
    added = [line.split()[0] for line in after.read_text().splitlines() if '"expires"' in line]
    assert added == ["com,a)/excluded", "com,a)/missed"]
