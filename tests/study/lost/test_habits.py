"""Made-up repositories: what they keep of a site, and what asking them costs."""

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


def sure(habit: Habit, **changes: object) -> Habit:
    """Return a habit that leaves nothing to chance: it keeps all, at once, and has it whenever it is asked."""
    whole = dict.fromkeys(Kind, 100.0)
    return replace(habit, keeps=whole, dynamic=1.0, hops=99, delay=0.0, there=1.0, misses=0.0, **changes)  # type: ignore[arg-type]


def keeping(habit: Habit) -> tuple[MadeSite, Keeping]:
    """Return a site and what a repository that knows it keeps of it."""
    for seed in range(20):
        site = MadeSite(SITE, seed)
        found = Keeping(habit, site, seed)
        if found.held(0):
            return site, found
    raise AssertionError("no seed with a repository that knows the site")


def test_an_engine_that_misses_nothing_has_the_site_as_it_is() -> None:
    """Pages come back as they are; documents and pictures in another format, which it says."""
    site, found = keeping(sure(BROAD, stays=0))
    held = {each.uri: each for each in found.held(5)}
    assert held.keys() == {site.uri(item) for item in site.at(5)}
    for item in site.at(5):
        copy = held[site.uri(item)]
        is_same = item.kind not in (Kind.IMAGE, Kind.DOCUMENT)
        assert copy.migrated is not is_same
        assert (copy.file == site.file(item, 5)) is is_same
        assert moment(5) <= copy.datetime <= moment(5, 6)


def test_an_engine_forgets_what_is_gone() -> None:
    """A copy stays as many weeks as it is said to after the visit that missed the page, and is from before that."""
    site, found = keeping(sure(BROAD, stays=3))
    gone = next(item for item in site.items if item.gone == 5)
    had = {week: [each for each in found.held(week) if each.uri == site.uri(gone)] for week in range(1, 12)}
    assert [week for week in had if had[week]] == [1, 2, 3, 4, 5, 6, 7]
    assert had[7][0].datetime < moment(5)


def test_the_archive_keeps_versions_and_shows_them_late() -> None:
    """Nothing younger than its lag is there, what is gone stays, and every visit has left a copy."""
    site, found = keeping(sure(ARCHIVE))
    held = found.held(0)
    assert max(each.datetime for each in held) <= moment(-ARCHIVE.lag, 6)
    first = [each for each in held if each.uri == site.url]
    assert len(first) >= (104 - ARCHIVE.lag) // ARCHIVE.every
    assert not any(each.migrated for each in held)
    assert {each.uri for each in held} - {site.uri(item) for item in site.at(0)}


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.id)
def test_shares_are_about_what_was_said(habit: Habit) -> None:
    """Of many old pages, a repository keeps as many as its habit, the site's rank and luck say."""
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


def test_the_same_seed_keeps_the_same() -> None:
    """What is kept does not depend on the order of questions."""
    site, found = keeping(BROAD)
    later = found.held(9)
    other = Keeping(BROAD, site, found._names[1])
    assert other.held(2) == found.held(2)
    assert other.held(9) == later


def planted(count: int) -> list[Held]:
    """Return so many copies, of which the first cannot be had."""
    file = File("text/html", b"<p>here")
    return [
        Held(f"http://a.example/{place}", "20060101000000", file, migrated=False, missed=place == 0)
        for place in range(count)
    ]


def test_lists_cost_a_request_for_each_page_of_them() -> None:
    """With ten rows a page, 25 rows are three requests; no rows are one; a list that is cut says so."""
    sent: Counter[tuple[str, RequestKind]] = Counter()
    repository = MadeRepository(BROAD, planted(25), sent)

    async def listed(of: MadeRepository) -> list[Capture]:
        return [each async for each in of.list_prefix("http://a.example/")]

    assert len(asyncio.run(listed(repository))) == 25
    assert sent == {("broad", RequestKind.INDEX): 3}
    assert asyncio.run(listed(MadeRepository(ARCHIVE, [], sent))) == []
    assert sent["archive", RequestKind.INDEX] == 1
    with pytest.raises(ListCutError):
        asyncio.run(listed(MadeRepository(replace(BROAD, cap=20), planted(25), sent)))
    assert sent["broad", RequestKind.INDEX] == 5


def test_copies_and_misses_cost_a_request_each() -> None:
    """What is listed and cannot be had costs as much as what can."""
    sent: Counter[tuple[str, RequestKind]] = Counter()
    repository = MadeRepository(ARCHIVE, planted(2), sent)

    async def fetched(place: int) -> bytes | None:
        captures = [each async for each in repository.captures(f"http://a.example/{place}")]
        assert [each.digest for each in captures] == [digest_of(b"<p>here")]
        copy = await repository.fetch(captures[0])
        return None if copy is None else copy.body.read()

    assert [asyncio.run(fetched(place)) for place in range(2)] == [None, b"<p>here"]
    assert sent == {("archive", RequestKind.INDEX): 2, ("archive", RequestKind.REPLAY): 2}
