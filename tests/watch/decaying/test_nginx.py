"""The decaying web on nginx: crawled, watched, and looked up in archives."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.external.nginx import serve_site as served
from tests.virtual_clock import VirtualClock
from tests.watch.decaying.archives import Behaviour, Truth
from tests.watch.decaying.checks import EVENING, assert_lifetimes, run_archives
from tests.watch.decaying.web import BEGIN, DAY, DecayingWeb
from unlost.check import CheckOptions, CrawledSite, SiteCrawlOptions, SiteSource, VisitDatabase, VisitHistory
from unlost.crawl import CrawlConfig, CrawlOutcome
from unlost.watch import PolitePageFetcher, VisitResult, Watcher

CONTACT = "me@example.org"
BEHAVIOURS = (
    Behaviour("prompt", every=2, keeps=2),
    Behaviour("flaky", every=1, hidden=3, keeps=1, lists=False, ends=(".html",)),
    Behaviour("late", every=3, offset=2, lag=4, ends=(".pdf", ".png"), migrates=("application/pdf",)),
)


def folders(top: Path) -> tuple[Path, Path]:
    """Make folders for the web and for nginx."""
    for name in ("web", "work"):
        (top / name).mkdir()
    return top / "web", top / "work"


@pytest.mark.parametrize("day", [0, 1, 2, 45, 90])
def test_crawl_finds_the_golden_counts(day: int, tmp_path: Path) -> None:
    """954 files on day 0, 952, 945, 554, and 32 on the last, with URLs and dates."""
    web = DecayingWeb()
    folder, work = folders(tmp_path)
    web.write(folder, day)

    async def seen(base: str) -> Counter[str]:
        clock = VirtualClock(BEGIN + day * DAY)
        serve_site = CrawledSite(
            CrawlConfig((base,), delay=0, sitemaps=False), SiteCrawlOptions(tmp_path / "crawl", clock, CONTACT)
        )
        found: Counter[str] = Counter()
        async for each in serve_site.resources():
            assert (each.outcome, each.status) == (CrawlOutcome.FETCHED, 200), each
            assert each.last_modified is not None
            found[str(each.mime)] += 1
        return found

    with served(folder, work) as base:
        counts = asyncio.run(seen(base))
    assert counts.total() == {0: 954, 1: 952, 2: 945, 45: 554, 90: 32}[day]
    html, pdf, images = (sum(each) for each in zip(*(web.counts(b, day) for b in range(1, 31)), strict=True))
    assert counts["text/html"] == html + 1
    assert counts["application/pdf"] == pdf
    assert counts["image/gif"] + counts["image/jpeg"] + counts["image/png"] == images + 1


class Crawls:
    """Crawls the web."""

    def __init__(self, glances: PolitePageFetcher, folder: Path, clock: VirtualClock) -> None:
        self.page_fetcher = glances
        self._folder = folder
        self._clock = clock

    @asynccontextmanager
    async def open(self, url: str, visit: int, known: Sequence[str]) -> AsyncIterator[SiteSource]:
        """Return the site to crawl."""
        plan = CrawlConfig((url,), extra=tuple(known), delay=0)
        yield CrawledSite(plan, SiteCrawlOptions(self._folder / f"crawl-{visit}", self._clock, CONTACT), [url])


async def visit_every_day(truth: Truth, folder: Path, base: str, top: Path) -> list[VisitResult]:
    """Visit the web on every day."""
    clock = VirtualClock(BEGIN)
    visits = []
    glances = PolitePageFetcher([base], clock, CONTACT, 0)
    async with run_archives(truth.behaviours, clock) as (means, servers), glances:
        sites = Crawls(glances, top, clock)
        depth = CheckOptions(sample=None, thorough=True)
        watcher = Watcher(top / "visits.sqlite", clock, sites, means, depth, interval=DAY)
        for day in range(truth.days):
            clock.advance(BEGIN + day * DAY + EVENING - clock.now())
            truth.web.write(folder, day)
            for behaviour in truth.behaviours:
                servers[behaviour.id].captures = truth.stored(behaviour, base, day)
            visited = await watcher.visit(base)
            visits.append(visited)
    return visits


def test_watch_matches_the_truth(tmp_path: Path) -> None:
    """States on every day, and lifetimes of every file in every archive."""
    truth = Truth(DecayingWeb(bins=3, last=6), BEHAVIOURS, days=14)
    folder, work = folders(tmp_path)
    with served(folder, work) as base:
        visits = asyncio.run(visit_every_day(truth, folder, base, tmp_path))
        assert [visited.health.health for visited in visits] == ["fine"] * truth.days
        for day, visited in enumerate(visits):
            found = {state.value: count for state, count in visited.check.stats.states.items()}
            assert found == Counter(truth.state(path, day) for path in truth.paths), day
        with VisitDatabase(tmp_path / "visits.sqlite") as file:
            history = VisitHistory(file, 1)
            counts = [{state.value: n for state, n in each.states.items() if n} for each in history.finished_visits()]
            assert counts[-1] == Counter(truth.state(path, truth.days - 1) for path in truth.paths)
        assert_lifetimes(tmp_path / "visits.sqlite", truth, base)


@pytest.mark.long
def test_watch_of_the_whole_collection_matches_the_truth(tmp_path: Path) -> None:
    """954 files, 30 bins, every day until two weeks after the last removal."""
    behaviours = (
        Behaviour("prompt", every=7, keeps=10),
        Behaviour("late", every=10, offset=3, lag=25, ends=(".html", ".pdf"), hidden=4),
    )
    truth = Truth(DecayingWeb(), behaviours, days=105)
    folder, work = folders(tmp_path)
    with served(folder, work) as base:
        visits = asyncio.run(visit_every_day(truth, folder, base, tmp_path))
    for day, visited in enumerate(visits):
        found = {state.value: count for state, count in visited.check.stats.states.items()}
        assert found == Counter(truth.state(path, day) for path in truth.paths), day
    assert_lifetimes(tmp_path / "visits.sqlite", truth, base)
