"""Detection of lost sites: at the second visit, with few false alarms."""

import asyncio
from collections import Counter
from random import Random

import pytest

from tests.watch.watching.flaky_site import BEGIN, DAY, KINDS, FlakySite
from unlost.watch import (
    CONFIRM_SECONDS,
    MAX_WAIT_VISITS,
    DetectedLoss,
    KnownPage,
    SiteHealth,
    VisitHealth,
    check_health,
    detect_loss,
)

SITES = 40
DAYS = 365


def simulate_watch(site: FlakySite, every: float = DAY) -> list[tuple[VisitHealth, DetectedLoss | None]]:
    """Visit a site daily at about the same hour; return its health, and the reported losses."""
    hour = Random(site.seed).random() * DAY * 0.9  # noqa: S311

    async def run() -> list[tuple[VisitHealth, DetectedLoss | None]]:
        known: tuple[KnownPage, ...] = ()
        seen: list[VisitHealth] = []
        history = []
        for visit in range(int(site.days * DAY / every)):
            site.now = BEGIN + visit * every + hour
            found = await check_health(site.home, known, site)
            known = found.pages
            seen = [*seen[-40:], VisitHealth(visit, site.now, found.health, found.reason)]
            history.append((seen[-1], detect_loss(seen)))
        return history

    return asyncio.run(run())


def find_alarms(history: list[tuple[VisitHealth, DetectedLoss | None]]) -> list[tuple[int, DetectedLoss]]:
    """Return the visits at which a live site was reported as lost."""
    found = []
    before: DetectedLoss | None = None
    for seen, output in history:
        if output is not None and before is None:
            found.append((seen.visit, output))
        before = output
    return found


def false_alarms(sites: int, first: int) -> tuple[int, int, Counter[str]]:
    """Return the numbers of false alarms and site-days, and the observed health."""
    health_counts: Counter[str] = Counter()
    count = 0
    for seed in range(first, first + sites):
        history = simulate_watch(FlakySite(seed, DAYS))
        health_counts.update(seen.health.value for seen, _ in history)
        count += len(find_alarms(history))
    return count, sites * DAYS, health_counts


def test_at_most_one_false_alarm_in_a_thousand_site_days() -> None:
    """With outages, 503, maintenance, redesigns and events, for 40 site-years."""
    count, days, health_counts = false_alarms(SITES, first=1)
    assert count <= days / 1000, (count, days, health_counts)
    away = sum(health_counts.values()) - health_counts["fine"]
    assert away > days / 500, "the sites are away often enough for this to mean something"
    assert {"fine", "wait", "unresponsive"} <= health_counts.keys()


@pytest.mark.long
def test_false_alarms_over_300_site_years() -> None:
    """Of other sites."""
    count, days, health_counts = false_alarms(300, first=10_000)
    assert count <= days / 1000, (count, days, health_counts)


@pytest.mark.parametrize("kind", KINDS)
def test_loss_is_detected_at_the_second_visit(kind: str) -> None:
    """With its kind."""
    expected = {"notice": "missing-content", "error": "unresponsive"}.get(kind, kind)
    for seed in range(20):
        site = FlakySite(seed, 30, lost=kind, lost_day=12)
        history = simulate_watch(site)
        gone = [seen.visit for seen, _ in history if seen.time is not None and seen.time >= BEGIN + 12 * DAY]
        late = [(visit, output) for visit, output in find_alarms(history) if visit >= gone[0]]
        assert late, (seed, [seen.health for seen, _ in history])
        assert late[0][0] <= gone[1], (seed, history[gone[0]], history[gone[1]])
        assert history[gone[1]][1] is not None
        assert history[gone[4]][0].health == expected


def test_frequent_visits_do_not_report_short_outages() -> None:
    """An outage of ten hours is no loss with hourly visits; a day is."""
    site = FlakySite(3, 10, lost="unresponsive", lost_day=5)
    site.windows.clear()
    history = simulate_watch(site, every=3600)
    ((visit, _),) = find_alarms(history)
    first = next(seen for seen, _ in history if seen.health is SiteHealth.UNRESPONSIVE)
    assert (visit - first.visit) * 3600 == CONFIRM_SECONDS


def daily_visits(codes: str) -> list[VisitHealth]:
    """Return daily visits, one character each: fine, wait, unresponsive, parked."""
    words = {"f": SiteHealth.FINE, "w": SiteHealth.WAIT, "u": SiteHealth.UNRESPONSIVE, "p": SiteHealth.PARKED}
    return [VisitHealth(day, day * DAY, words[letter]) for day, letter in enumerate(codes)]


@pytest.mark.parametrize(
    ("codes", "kind", "since"),
    [
        ("", None, None),
        ("ffu", None, None),
        ("ffuu", "unresponsive", 2),
        ("ffup", "parked", 2),
        ("ffuwp", "parked", 2),
        ("ffufu", None, None),
        ("uuf", None, None),
        ("f" + "w" * (MAX_WAIT_VISITS - 1), None, None),
        ("f" + "w" * MAX_WAIT_VISITS, "unresponsive", 1),
    ],
)
def test_detect_loss_by_sequence_of_visits(codes: str, kind: str | None, since: int | None) -> None:
    """Two failed visits, also with a throttled one in between; or a week of throttling."""
    found = detect_loss(daily_visits(codes))
    assert (found and found.kind, found and found.since) == (kind, since)


def test_undated_visits_count_by_their_order() -> None:
    """A clock that jumps neither hides nor creates a loss."""
    undated = [
        VisitHealth(1, None, SiteHealth.FINE),
        VisitHealth(2, None, SiteHealth.PARKED),
        VisitHealth(3, None, SiteHealth.PARKED),
    ]
    assert detect_loss(undated[:2]) is None
    assert detect_loss(undated) is not None
