"""Asking archives in memory whose holdings are known: the numbers are exactly these, also after kills and quotas."""

import asyncio
import io
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tests.recover.stub_archive import Held, Stub
from tests.research.overlap.holdings import ARCHIVES, begun, stubs, truth
from unlost.archives import MAX_CONSECUTIVE_FAILURES, EarlyStop
from unlost.capture import Capture
from unlost.errors import ExcludedError, FailedError, ListCutError, NotNowError, UsageError
from unlost.research import (
    LiveWebClient,
    OverlapState,
    OverlapStats,
    OverlapSurvey,
    PageObservation,
    compute_overlap_stats,
    snapshot_response,
)


class KilledError(BaseException):
    """Ends everything at once, as a signal does."""


def ask(
    state: OverlapState,
    archives: Sequence[Stub],
    fetch: int = 0,
    live: LiveWebClient | None = None,
    concurrency: int = 3,
) -> dict[str, EarlyStop]:
    """Ask archives in memory."""
    return asyncio.run(
        OverlapSurvey(state, archives, max_fetches=fetch, live_client=live, concurrency=concurrency).run()
    )


def figures(state: OverlapState, fetch: int = 0) -> OverlapStats:
    """Return the numbers."""
    return compute_overlap_stats(state, ARCHIVES, fetch)


def test_the_overlap_is_exactly_what_the_archives_hold(tmp_path: Path) -> None:
    """Sets, totals, mementos, years and best sets are those of archives whose holdings are known."""
    held = truth(200, 1)
    with begun(tmp_path / "s", held) as state:
        assert ask(state, stubs(held)) == {}
        found = figures(state)
    assert dict(found.membership.pages) == dict(Counter(held.values()))
    assert [each.held for each in found.archives] == [sum(m >> place & 1 for m in held.values()) for place in range(4)]
    assert [each.mementos for each in found.archives] == [
        (place + 1) * each.held for place, each in enumerate(found.archives)
    ]
    assert found.years["2011"] == {
        name: (found.archives[place].held, found.archives[place].held)
        for place, name in enumerate(ARCHIVES)
        if place >= 1
    }
    assert found.year_pages["2012"] == sum(bool(mask & 0b1100) for mask in held.values())
    assert found.memento_covers[0] == ("d", 4 * found.archives[3].held)
    assert found.tlds == (("example", 200, sum(bool(mask) for mask in held.values())),)


def test_whoever_is_killed_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    """At fifty points at random, a kill loses only what was under way, and the numbers are the same in the end."""
    held = truth(25, 2)
    points = random.Random(3).sample(range(1, 140), 50)  # noqa: S311  not for secrets
    with begun(tmp_path / "whole", held) as state:
        ask(state, stubs(held), fetch=5)
        expected = figures(state, 5)
    for point in points:
        archives = stubs(held)
        left = [point]

        def count(_: str, left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                raise KilledError

        for each in archives:
            each.before = count
        path = tmp_path / f"at{point}"
        try:
            with begun(path, held) as state:
                ask(state, archives, fetch=5)
        except (KilledError, BaseExceptionGroup):
            pass
        else:
            assert left[0] > 0, point
        with begun(path, held) as state:
            assert ask(state, archives, fetch=5) == {}
            assert figures(state, 5) == expected, point
        asked = Counter(question for each in archives for question in (f"{each.archive.id} {q}" for q in each.requests))
        assert sum(asked.values()) - len(asked) <= 3 * len(ARCHIVES), point


def test_an_archive_whose_quota_is_used_up_goes_on_another_day(tmp_path: Path) -> None:
    """The others are asked to the end; pages without its answer are not compared; the next run asks only these."""
    held = truth(40, 4)
    archives = stubs(held)
    with begun(tmp_path / "s", held) as state:

        def quota(_: str) -> None:
            if len(archives[1].requests) > 10:
                raise NotNowError("the quota of the day is used up", "b", 2e9, "quota")

        archives[1].before = quota
        stops = ask(state, archives, concurrency=1)
        found = figures(state)
        assert list(stops) == ["b"]
        assert isinstance(stops["b"].error, NotNowError)
        assert (found.unsettled, found.membership.total) == (30, 10)
        assert [each.answered for each in found.archives] == [40, 10, 40, 40]
        archives[1].before = lambda _: None
        assert ask(state, archives) == {}
        assert len(archives[1].requests) == 11 + 30
        assert dict(figures(state).membership.pages) == dict(Counter(held.values()))


def test_a_dead_archive_is_left_out_and_not_asked_for_ever(tmp_path: Path) -> None:
    """It ends after some failures in a row; what the others hold is compared without it."""
    held = truth(60, 5)
    archives = stubs(held)

    def fail(_: str) -> None:
        raise FailedError("status 500", "c", "status")

    archives[2].before = fail
    with begun(tmp_path / "s", held) as state:
        stops = ask(state, archives)
        found = figures(state)
    assert MAX_CONSECUTIVE_FAILURES <= len(archives[2].requests) <= MAX_CONSECUTIVE_FAILURES + 2
    assert stops["c"].failures == MAX_CONSECUTIVE_FAILURES
    assert (found.unresponsive, found.unsettled, found.membership.archives) == (("c",), 0, ("a", "b", "d"))
    assert found.archives[2].failed["http-5xx"] >= MAX_CONSECUTIVE_FAILURES


def test_lists_that_are_cut_and_pages_that_are_not_shown_are_answers(tmp_path: Path) -> None:
    """A cut list is a hit with a mark, an excluded page is no hit, errors and redirects alone hold nothing."""
    uris = ["http://x.example/1", "http://x.example/2", "http://x.example/3"]
    archive = Stub(
        "a",
        [
            Held(uris[0], "20100101000000"),
            Held(uris[2], "20100101000000", status=404),
            Held(uris[2], "20110101000000", status=301),
        ],
    )  # fmt: skip

    class Cut(Stub):
        """Lists a part of one page, and does not show another."""

        async def captures(self, uri: str) -> AsyncIterator[Capture]:
            """Yield what is held, with what goes wrong."""
            if uri == uris[1]:
                raise ExcludedError("not shown", "a")
            async for each in Stub.captures(self, uri):
                yield each
            if uri == uris[0]:
                raise ListCutError("more than is listed", "a")

    with begun(tmp_path / "s", uris) as state:
        assert ask(state, [Cut("a", archive.held)]) == {}
        found = compute_overlap_stats(state, ["a"], 0).archives[0]
    assert (found.answered, found.held, found.cut_lists, found.excluded, found.only_errors, found.mementos) == (
        3,
        1,
        1,
        1,
        1,
        3,
    )


def test_misses_are_copies_that_are_listed_and_not_there(tmp_path: Path) -> None:
    """Absent copies, errors of the archive and its own error pages are misses; a timeout is none, and tried again."""
    uris = [f"http://x.example/{number}" for number in range(8)]
    error_page = (
        b"<title>Not in Archive</title><h1>Wayback Machine</h1><p>The Wayback Machine has not archived that URL.</p>"
    )
    held = [Held(uri, "20100101000000", error_page if uri.endswith("3") else b"<p>page") for uri in uris]
    archive = Stub("a", held)

    def fail(question: str) -> None:
        if not question.startswith("fetch"):
            return
        if question.endswith("/0"):
            raise FailedError("status 502", "a", "status")
        if question.endswith("/1"):
            raise FailedError("not in time", "a", "timeout")

    archive.before = fail
    with begun(tmp_path / "s", uris) as state:
        ask(state, [archive], fetch=0)
        archive.held = [each for each in held if not each.uri.endswith("/2")]  # listed, and gone meanwhile
        ask(state, [archive], fetch=100)
        found = compute_overlap_stats(state, ["a"], 100).archives[0]
        assert (found.fetched, dict(found.misses)) == (7, {"http-5xx": 1, "absent": 1, "archive-error": 1})
        assert dict(found.failed_fetches) == {"timeout": 1}
        assert (found.miss_rate.count, found.miss_rate.total) == (3, 7)
        archive.requests.clear()
        archive.before = lambda _: None
        ask(state, [archive], fetch=100)
        assert archive.requests == [f"fetch 20100101000000 {uris[1]}"]


def test_samples_are_the_same_for_a_seed_and_nested(tmp_path: Path) -> None:
    """A sample of pages and of copies depends on the seed alone, and a larger one has the smaller one in it."""
    held = dict.fromkeys(truth(50, 6), 0b1111)

    def drawn(name: str, seed: int, sample: int, fetch: int) -> tuple[set[str], set[str]]:
        archives = stubs(held)
        with begun(tmp_path / name, held, seed, sample) as state:
            ask(state, archives, fetch=fetch)
            pages = {page.uri for page, _ in state.listings_by_page()}
        return pages, set(archives[0].fetched)

    small, large, other = drawn("1", 9, 10, 3), drawn("2", 9, 20, 6), drawn("3", 8, 10, 3)
    assert (len(small[0]), len(small[1])) == (10, 3)
    assert small[0] < large[0]
    assert small[1] < large[1]
    assert drawn("4", 9, 10, 3) == small != other


class Alive:
    """A live web that has what a test says."""

    def __init__(self, pages: dict[str, PageObservation | None]) -> None:
        self.pages = pages
        self.looked: list[str] = []

    async def fetch_snapshot(self, uri: str) -> tuple[str, PageObservation | None]:
        """Return it; what is unknown is forbidden."""
        self.looked.append(uri)
        return ("answered", self.pages[uri]) if uri in self.pages else ("forbidden", None)


def test_live_pages_are_compared_with_their_copies(tmp_path: Path) -> None:
    """Staleness, likeness, states and directives are those of pages that are known."""
    words = " ".join(f"word{number}" for number in range(40))
    bodies = {name: f"<p>{words} {name}".encode() for name in ("same", "changed", "gone", "robots")}
    uris = {name: f"http://x.example/{name}" for name in bodies}
    archive = Stub("a", [Held(uris[name], "20100101000000", body) for name, body in bodies.items()])

    def live(name: str, body: bytes, status: int, *headers: tuple[str, str]) -> PageObservation:
        return snapshot_response(uris[name], "20200101000000", status, "text/html", headers, io.BytesIO(body))

    web = Alive({
        uris["same"]: live("same", bodies["same"], 200, ("Last-Modified", "Thu, 31 Dec 2009 00:00:00 GMT")),
        uris["changed"]: live(
            "changed", bodies["changed"] + b" and more<meta name=robots content=noarchive>", 200,
            ("Last-Modified", "Mon, 11 Jan 2010 00:00:00 GMT"), ("Cache-Control", "no-store"),
        ),
        uris["gone"]: live("gone", b"gone", 404),
    })  # fmt: skip
    with begun(tmp_path / "s", uris.values()) as state:
        ask(state, [archive], fetch=10, live=web)
        found = compute_overlap_stats(state, ["a"], 10)
        looked = len(web.looked)
        ask(state, [archive], fetch=10, live=web)
        assert len(web.looked) == looked == 4, "what was seen is not looked at again"
    live_found = found.archives[0].live
    assert found.has_live
    assert (live_found.replicated, live_found.endangered) == (2, 1)
    assert (live_found.dated, live_found.staleness) == (2, [10.0])
    assert (live_found.identical, live_found.pairs) == (1, 2)
    assert sorted(days for days, _ in live_found.points) == [0.0, 10.0]
    assert dict(live_found.points)[0.0] == 1.0
    assert 0.5 < dict(live_found.points)[10.0] < 1.0
    assert (live_found.noarchive, live_found.no_cache, live_found.no_cache_held) == (1, 1, 1)


def test_another_archive_under_the_same_name_is_refused(tmp_path: Path) -> None:
    """Answers of two archives are never mixed."""
    with begun(tmp_path / "s", ["http://x.example/"]) as state:
        state.register_archive("a", "http://one.example/")
        state.register_archive("a", "http://one.example/")
        with pytest.raises(UsageError, match="another archive"):
            state.register_archive("a", "http://two.example/")
