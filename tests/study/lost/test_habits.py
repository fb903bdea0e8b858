"""Tests of simulated repositories: their holdings, and the cost of requests."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from study.lost.habits import ARCHIVE, BROAD, HABITS, Habit, Held, Keeping
from study.lost.items import Kind
from study.lost.profiles import Pace, Profile
from study.lost.repository import MadeRepository, digest_of
from study.lost.site import File, MadeSite, moment

from unlost.capture import Capture
from unlost.errors import ListCutError
from unlost.registry import RequestKind

SITE = Profile("lively", 60, 50, 20, 8, Pace.LIVELY, breadth=5)


def deterministic(habit: Habit, **changes: object) -> Habit:
    """Return a habit without chance: it stores everything at once and always has it."""
    whole = dict.fromkeys(Kind, 100.0)
    return replace(habit, keeps=whole, dynamic=1.0, hops=99, delay=0.0, there=1.0, misses=0.0, **changes)  # type: ignore[arg-type]


def site_and_holdings(habit: Habit) -> tuple[MadeSite, Keeping]:
    """Return a site and the holdings of a repository that knows it."""
    for seed in range(20):
        site = MadeSite(SITE, seed)
        found = Keeping(habit, site, seed)
        if found.held(0):
            return site, found
    raise AssertionError("no seed with a repository that knows the site")


def test_complete_engine_holds_the_current_site() -> None:
    """Pages are unchanged; documents and images are migrated and marked as such."""
    site, found = site_and_holdings(deterministic(BROAD, stays=0))
    held = {each.uri: each for each in found.held(5)}
    assert held.keys() == {site.uri(item) for item in site.at(5)}
    for item in site.at(5):
        capture = held[site.uri(item)]
        is_same = item.kind not in (Kind.IMAGE, Kind.DOCUMENT)
        assert capture.migrated is not is_same
        assert (capture.file == site.file(item, 5)) is is_same
        assert moment(5) <= capture.datetime <= moment(5, 6)


def test_engine_drops_removed_pages_after_some_weeks() -> None:
    """A capture stays for the configured weeks after a visit without the page, and is from before."""
    site, found = site_and_holdings(deterministic(BROAD, stays=3))
    gone = next(item for item in site.items if item.gone == 5)
    had = {week: [each for each in found.held(week) if each.uri == site.uri(gone)] for week in range(1, 12)}
    assert [week for week in had if had[week]] == [1, 2, 3, 4, 5, 6, 7]
    assert had[7][0].datetime < moment(5)


def test_archive_holds_versions_with_a_lag() -> None:
    """No capture is younger than the lag, removed pages stay, and every visit has a capture."""
    site, found = site_and_holdings(deterministic(ARCHIVE))
    held = found.held(0)
    assert max(each.datetime for each in held) <= moment(-ARCHIVE.lag, 6)
    first = [each for each in held if each.uri == site.url]
    assert len(first) >= (104 - ARCHIVE.lag) // ARCHIVE.every
    assert not any(each.migrated for each in held)
    assert {each.uri for each in held} - {site.uri(item) for item in site.at(0)}


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.id)
def test_held_shares_match_the_habit(habit: Habit) -> None:
    """On average, the share of held old pages follows from habit and rank of the site."""
    shares = []
    for seed in range(12):
        site = MadeSite(replace(SITE, pages=100, images=0, others=0, pace=Pace.STILL), seed)
        held = {each.uri for each in Keeping(habit, site, seed).held(0)}
        old = [item for item in site.at(0) if item.kind is Kind.PAGE and item.born < -80 and item.hops <= habit.hops]
        if held:
            shares.append(sum(site.uri(item) in held for item in old) / len(old))
    expected = habit.keeps[Kind.PAGE] * habit.there * (0.8 + 0.04 * SITE.rank)
    assert len(shares) >= 8
    assert sum(shares) / len(shares) == pytest.approx(min(1.0, expected), rel=0.2)


def test_holdings_are_reproducible() -> None:
    """Holdings do not depend on the order of queries."""
    site, found = site_and_holdings(BROAD)
    later = found.held(9)
    other = Keeping(BROAD, site, found._names[1])
    assert other.held(2) == found.held(2)
    assert other.held(9) == later


def planted_captures(count: int) -> list[Held]:
    """Return captures of which the first cannot be fetched."""
    file = File("text/html", b"<p>here")
    return [
        Held(f"http://a.example/{place}", "20060101000000", file, migrated=False, missed=place == 0)
        for place in range(count)
    ]


def test_listing_costs_one_request_per_result_page() -> None:
    """With ten rows per page, 25 rows are three requests; no rows are one; truncation is reported."""
    sent: Counter[tuple[str, RequestKind]] = Counter()
    repository = MadeRepository(BROAD, planted_captures(25), sent)

    async def listed(of: MadeRepository) -> list[Capture]:
        return [each async for each in of.list_prefix("http://a.example/")]

    assert len(asyncio.run(listed(repository))) == 25
    assert sent == {("broad", RequestKind.INDEX): 3}
    assert asyncio.run(listed(MadeRepository(ARCHIVE, [], sent))) == []
    assert sent["archive", RequestKind.INDEX] == 1
    with pytest.raises(ListCutError):
        asyncio.run(listed(MadeRepository(replace(BROAD, cap=20), planted_captures(25), sent)))
    assert sent["broad", RequestKind.INDEX] == 5


def test_captures_and_misses_cost_one_request_each() -> None:
    """A listed capture that cannot be fetched costs one request, too."""
    sent: Counter[tuple[str, RequestKind]] = Counter()
    repository = MadeRepository(ARCHIVE, planted_captures(2), sent)

    async def fetched(place: int) -> bytes | None:
        captures = [each async for each in repository.captures(f"http://a.example/{place}")]
        assert [each.digest for each in captures] == [digest_of(b"<p>here")]
        capture = await repository.fetch(captures[0])
        return None if capture is None else capture.body.read()

    assert [asyncio.run(fetched(place)) for place in range(2)] == [None, b"<p>here"]
    assert sent == {("archive", RequestKind.INDEX): 2, ("archive", RequestKind.REPLAY): 2}
