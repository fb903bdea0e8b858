"""Watching the decaying web day by day: every statistic has a known value."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from tests.virtual_clock import VirtualClock
from tests.watch.decaying.archives import Behaviour, Truth, day_timestamp, file_url, type_of
from tests.watch.decaying.checks import EVENING, assert_captures, assert_lifetimes, run_archives
from tests.watch.decaying.web import BEGIN, DAY, DecayingWeb
from unlost import dates, uri
from unlost.check import (
    ArchiveAccess,
    CheckOptions,
    CheckResult,
    UrlProber,
    VisitDatabase,
    VisitHistory,
    check_site,
    resume_or_begin_visit,
)
from unlost.crawl import CrawlOutcome, LiveResource

BASE = "http://decaying.example/"
BEHAVIOURS = (
    Behaviour("prompt", every=1, keeps=2),
    Behaviour("slow", every=4, offset=1, lag=3, keeps=5, ends=(".html",), migrates=("text/html",)),
    Behaviour("flaky", every=2, hidden=3, keeps=1, lists=False, ends=(".html", ".pdf")),
    Behaviour("late", every=3, offset=2, lag=6, ends=(".pdf", ".png")),
)
SLOW_ONLY = (
    Behaviour("slow", every=4, offset=2, lag=5, keeps=3),
    Behaviour("flaky", every=3, offset=1, hidden=2, keeps=2, lists=False),
)


class SeenSite:
    """A site with given resources."""

    knows_links = True
    probe: UrlProber | None = None

    def __init__(self, resources: Sequence[LiveResource], prefixes: Sequence[str] = (BASE,)) -> None:
        self._resources = resources
        self._prefixes = prefixes

    async def resources(self) -> AsyncIterator[LiveResource]:
        """Yield the resources."""
        for each in self._resources:
            yield each

    def prefixes(self) -> Sequence[str]:
        """Return the prefixes to list."""
        return self._prefixes


def seen_on(truth: Truth, day: int) -> Iterator[LiveResource]:
    """Yield the results of a perfect crawl, for all files that ever existed."""
    files = truth.web.files(day)
    for path in truth.paths:
        uri_r = file_url(BASE, path)
        if path in files:
            changed = dates.from_epoch(str(BEGIN + files[path][1] * DAY))
            yield LiveResource(
                uri_r, uri.key(uri_r), CrawlOutcome.FETCHED, 200, type_of(path), last_modified=changed, hops=1
            )
        else:
            yield LiveResource(uri_r, uri.key(uri_r), CrawlOutcome.FETCHED, 404, hops=None)


async def visit_every_day(truth: Truth, file: Path, *, thorough: bool = True) -> list[Counter[str]]:
    """Visit the web on every day, and return the number of files in each state."""
    clock = VirtualClock(BEGIN)
    counts = []
    async with run_archives(truth.behaviours, clock) as (means, servers):
        for day in range(truth.days):
            clock.advance(BEGIN + day * DAY + EVENING - clock.now())
            for behaviour in truth.behaviours:
                servers[behaviour.id].captures = truth.stored(behaviour, BASE, day)
            with VisitDatabase(file) as opened:
                history = VisitHistory(opened, opened.get_or_add_site(BASE))
                checked = await visit_once(history, clock, means, truth, day, thorough=thorough)
                assert_captures(checked, truth, BASE, day)
                states = history.finish_visit(checked.visit, checked.archives)
                counts.append(Counter({str(state): count for state, count in states.items()}))
    return counts


async def visit_once(
    history: VisitHistory, clock: VirtualClock, means: ArchiveAccess, truth: Truth, day: int, *, thorough: bool
) -> CheckResult:
    """Make one visit."""
    visit, _ = await resume_or_begin_visit(history, clock)
    site = SeenSite(list(seen_on(truth, day)))
    return await check_site(history, visit, site, means, CheckOptions(sample=None, thorough=thorough))


@pytest.mark.parametrize("behaviours", [BEHAVIOURS, SLOW_ONLY], ids=["four", "slow"])
def test_every_statistic_matches_the_truth(behaviours: Sequence[Behaviour], tmp_path: Path) -> None:
    """States on every day; t0, ta, tr, tp, TTL_c, P_r, both periods and late caching of every file in every archive."""
    truth = Truth(DecayingWeb(bins=4, last=12), behaviours, days=26)
    counts = asyncio.run(visit_every_day(truth, tmp_path / "visits.sqlite"))
    for day, found in enumerate(counts):
        assert found == Counter(truth.state(path, day) for path in truth.paths), day
    assert_lifetimes(tmp_path / "visits.sqlite", truth, BASE)


def test_archives_crawl_before_the_visits() -> None:
    """On the same day."""
    assert day_timestamp(0) == "20231115120000"
