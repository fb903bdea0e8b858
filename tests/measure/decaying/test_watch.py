"""Watching the decaying web day by day: every figure that is derived has a known truth."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.measure.decaying.archives import Behaviour, Truth, moment, type_of
from tests.measure.decaying.web import BEGIN, DAY, DecayingWeb
from tests.neighbours.wayback_cdx import FakeWayback, fake_wayback
from tests.virtual_clock import VirtualClock
from unlost import dates, uri
from unlost.aggregate.asking import Asker
from unlost.aggregate.experience import Experience
from unlost.aggregate.routing import Router
from unlost.archives.asking.courier import Courier
from unlost.archives.manners.limit_store import MemoryLimitStore
from unlost.archives.opening import open_repository
from unlost.archives.registry.registry import Registry
from unlost.crawl.resource import LiveResource, Outcome
from unlost.holdings.routing import Holdings
from unlost.measure.availability.asking import Looks, Means
from unlost.measure.availability.checking import Checked, Depth, begun, check_site
from unlost.measure.visits.file import VisitsFile
from unlost.measure.visits.history import ANY, History
from unlost.measure.watching.survey import lives_of

BASE = "http://decaying.example/"
EVENING = DAY * 3 // 4
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


class NoMaps:
    """Nothing is known of what archives have."""

    def all(self) -> dict[str, Holdings]:
        """Return nothing."""
        return {}

    def set_aside(self, archive: str, problem: str) -> None:
        """Do nothing."""


class SeenSite:
    """A site of which a test says what is on it."""

    knows_links = True
    look: Looks | None = None

    def __init__(self, resources: Sequence[LiveResource], prefixes: Sequence[str] = (BASE,)) -> None:
        self._resources = resources
        self._prefixes = prefixes

    async def resources(self) -> AsyncIterator[LiveResource]:
        """Yield what it has."""
        for each in self._resources:
            yield each

    def prefixes(self) -> Sequence[str]:
        """Return what is asked for lists of."""
        return self._prefixes


def seen_on(truth: Truth, day: int) -> Iterator[LiveResource]:
    """Yield what a perfect crawl sees of all files that there ever were."""
    files = truth.web.files(day)
    for path in truth.paths:
        address = BASE + path
        if path in files:
            changed = dates.from_epoch(str(BEGIN + files[path][1] * DAY))
            yield LiveResource(
                address, uri.key(address), Outcome.FETCHED, 200, type_of(path), last_modified=changed, hops=1
            )
        else:
            yield LiveResource(address, uri.key(address), Outcome.FETCHED, 404, hops=None)


@asynccontextmanager
async def asked(
    behaviours: Sequence[Behaviour], clock: VirtualClock
) -> AsyncIterator[tuple[Means, dict[str, FakeWayback]]]:
    """Run archives, and yield what asks them, and their servers by id."""
    async with AsyncExitStack() as stack:
        servers = {each.id: await stack.enter_async_context(fake_wayback([], clock)) for each in behaviours}
        registry = Registry(tuple(each.archive(servers[each.id]) for each in behaviours))
        courier = await stack.enter_async_context(Courier(MemoryLimitStore(), clock, "me@example.org"))
        archives = {each.id: each for each in registry}
        repositories = {name: open_repository(each, courier) for name, each in archives.items() if each.lister}
        router = Router(registry, NoMaps(), Experience(registry), exploring=0)
        yield Means(archives, repositories, Asker(courier, clock), router), servers


async def watched(truth: Truth, file: Path, *, thorough: bool = True) -> list[Counter[str]]:
    """Visit the web on every day, and return how many files were in which state on each."""
    clock = VirtualClock(BEGIN)
    counts = []
    async with asked(truth.behaviours, clock) as (means, servers):
        for day in range(truth.days):
            clock.advance(BEGIN + day * DAY + EVENING - clock.now())
            for behaviour in truth.behaviours:
                servers[behaviour.id].stored = truth.stored(behaviour, BASE, day)
            with VisitsFile(file) as opened:
                history = History(opened, opened.site(BASE))
                checked = await visited(history, clock, means, truth, day, thorough=thorough)
                check_staleness(checked, truth, day)
                states = history.end(checked.visit, checked.archives)
                counts.append(Counter({str(state): count for state, count in states.items()}))
    return counts


async def visited(
    history: History, clock: VirtualClock, means: Means, truth: Truth, day: int, *, thorough: bool
) -> Checked:
    """Make one visit."""
    visit, _ = await begun(history, clock)
    site = SeenSite(list(seen_on(truth, day)))
    return await check_site(history, visit, site, means, Depth(sample=None, thorough=thorough))


def check_staleness(checked: Checked, truth: Truth, day: int) -> None:
    """Compare what is said of copies with what is so: how many, how old, in which format."""
    files = truth.web.files(day)
    for standing in checked.present.standings(checked.archives):
        path = standing.live.uri.removeprefix(BASE)
        shown = {each.id: each.captures(truth, path, day) for each in truth.behaviours}
        assert {held.archive: held.copies for held in standing.held} == {
            name: len(days) for name, days in shown.items() if days
        }
        last = max((days[-1] for days in shown.values() if days), default=None)
        if path in files and last is not None:
            changed = files[path][1]
            assert standing.stale_days == max(0.0, changed - last - 0.5), path
            changes = [type_of(path) in each.migrates for each in truth.behaviours if shown[each.id]]
            assert standing.is_migrated == all(changes)


@pytest.mark.parametrize("behaviours", [BEHAVIOURS, SLOW_ONLY], ids=["four", "slow"])
def test_every_figure_is_as_it_is(behaviours: Sequence[Behaviour], tmp_path: Path) -> None:
    """States on every day; t0, ta, tr, tp, TTL_c, P_r, both periods and late caching of every file in every archive."""
    truth = Truth(DecayingWeb(bins=4, last=12), behaviours, days=26)
    counts = asyncio.run(watched(truth, tmp_path / "visits.sqlite"))
    for day, found in enumerate(counts):
        assert found == Counter(truth.state(path, day) for path in truth.paths), day
    assert_lives(tmp_path / "visits.sqlite", truth)


def assert_lives(file: Path, truth: Truth) -> None:
    """Compare the lives of all files, in each archive and in all together, with the truth."""
    names = [each.id for each in truth.behaviours]
    late = 0
    with VisitsFile(file, is_read_only=True) as opened:
        history = History(opened, opened.sites()[0][0])
        assert history.archives() == sorted(names)
        for archive in (ANY, *names):
            lives = {address: life for address, _, life in lives_of(history, archive)}
            assert len(lives) == len(truth.paths)
            for path in truth.paths:
                life = lives[BASE + path]
                expected = truth.life(path, names if archive == ANY else [archive])
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


def test_the_archives_crawl_before_the_visits_come() -> None:
    """A capture of a day is older than the visit of the same day."""
    assert moment(0) == "20231115120000"
