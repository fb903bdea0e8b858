"""`OverlapSurvey` of archives in memory with known holdings: exact numbers, also after kills and with quotas."""

import asyncio
import io
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tests.recovery.stub_archive import Held, Stub
from tests.research.overlap.holdings import ARCHIVES, archives_of, open_state, random_holdings
from unlost.archives import EarlyStop
from unlost.capture import Capture
from unlost.errors import ExcludedError, FailedError, ListCutError, NotNowError, UsageError
from unlost.http import POLICIES
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
    """Ends everything at once, like a signal."""


def survey(
    state: OverlapState,
    archives: Sequence[Stub],
    fetch: int = 0,
    live: LiveWebClient | None = None,
    concurrency: int = 3,
) -> dict[str, EarlyStop]:
    """Survey archives in memory."""
    return asyncio.run(
        OverlapSurvey(state, archives, max_fetches=fetch, live_client=live, concurrency=concurrency).run()
    )


def stats(state: OverlapState, fetch: int = 0) -> OverlapStats:
    """Return the statistics."""
    return compute_overlap_stats(state, ARCHIVES, fetch)


def test_overlap_equals_the_known_holdings(tmp_path: Path) -> None:
    """Sets, totals, mementos, years and best covers."""
    holdings = random_holdings(200, 1)
    with open_state(tmp_path / "s", holdings) as state:
        assert survey(state, archives_of(holdings)) == {}
        found = stats(state)
    assert dict(found.membership.pages) == dict(Counter(holdings.values()))
    assert [each.held for each in found.archives] == [
        sum(m >> place & 1 for m in holdings.values()) for place in range(4)
    ]
    assert [each.mementos for each in found.archives] == [
        (place + 1) * each.held for place, each in enumerate(found.archives)
    ]
    assert found.years["2011"] == {
        name: (found.archives[place].held, found.archives[place].held)
        for place, name in enumerate(ARCHIVES)
        if place >= 1
    }
    assert found.year_pages["2012"] == sum(bool(mask & 0b1100) for mask in holdings.values())
    assert found.memento_covers[0] == ("d", 4 * found.archives[3].held)
    assert found.tlds == (("example", 200, sum(bool(mask) for mask in holdings.values())),)


def test_killed_survey_resumes(tmp_path: Path) -> None:
    """At 50 random points; only queries in flight are repeated, and the result is the same."""
    holdings = random_holdings(25, 2)
    points = random.Random(3).sample(range(1, 140), 50)  # noqa: S311  not for secrets
    with open_state(tmp_path / "whole", holdings) as state:
        survey(state, archives_of(holdings), fetch=5)
        expected = stats(state, 5)
    for point in points:
        archives = archives_of(holdings)
        left = [point]

        def count(_: str, left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                raise KilledError

        for each in archives:
            each.before = count
        path = tmp_path / f"at{point}"
        try:
            with open_state(path, holdings) as state:
                survey(state, archives, fetch=5)
        except (KilledError, BaseExceptionGroup):
            pass
        else:
            assert left[0] > 0, point
        with open_state(path, holdings) as state:
            assert survey(state, archives, fetch=5) == {}
            assert stats(state, 5) == expected, point
        queries = Counter(request for each in archives for request in (f"{each.archive.id} {q}" for q in each.requests))
        assert sum(queries.values()) - len(queries) <= 3 * len(ARCHIVES), point


def test_exhausted_quota_defers_the_archive(tmp_path: Path) -> None:
    """Other archives are finished; pages without its answer are not compared; the next run sends only these."""
    holdings = random_holdings(40, 4)
    archives = archives_of(holdings)
    with open_state(tmp_path / "s", holdings) as state:

        def quota(_: str) -> None:
            if len(archives[1].requests) > 10:
                raise NotNowError("the quota of the day is used up", "b", 2e9, "quota")

        archives[1].before = quota
        stops = survey(state, archives, concurrency=1)
        found = stats(state)
        assert list(stops) == ["b"]
        assert isinstance(stops["b"].error, NotNowError)
        assert (found.unsettled, found.membership.total) == (30, 10)
        assert [each.answered for each in found.archives] == [40, 10, 40, 40]
        archives[1].before = lambda _: None
        assert survey(state, archives) == {}
        assert len(archives[1].requests) == 11 + 30
        assert dict(stats(state).membership.pages) == dict(Counter(holdings.values()))


def test_failing_archive_is_left_out(tmp_path: Path) -> None:
    """After some consecutive failures; the others are compared without it."""
    holdings = random_holdings(60, 5)
    archives = archives_of(holdings)

    def fail(_: str) -> None:
        raise FailedError("status 500", "c", "status")

    archives[2].before = fail
    with open_state(tmp_path / "s", holdings) as state:
        stops = survey(state, archives)
        found = stats(state)
    most = POLICIES["sample"].failures
    assert most <= len(archives[2].requests) <= most + 2
    assert stops["c"].failures == most
    assert (found.unresponsive, found.unsettled, found.membership.archives) == (("c",), 0, ("a", "b", "d"))
    assert found.archives[2].failed["http-5xx"] >= most


def test_truncated_listings_and_exclusions_are_results(tmp_path: Path) -> None:
    """A truncated listing is a marked hit; exclusions, errors and redirects are no hits."""
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

    with open_state(tmp_path / "s", uris) as state:
        assert survey(state, [Cut("a", archive.held)]) == {}
        found = compute_overlap_stats(state, ["a"], 0).archives[0]
    assert (found.answered, found.held, found.cut_lists, found.excluded, found.only_errors, found.mementos) == (
        3,
        1,
        1,
        1,
        1,
        3,
    )


def test_misses_are_listed_but_absent_mementos(tmp_path: Path) -> None:
    """Absent mementos, server errors and error pages are misses; a timeout is not, and is retried."""
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
    with open_state(tmp_path / "s", uris) as state:
        survey(state, [archive], fetch=0)
        archive.held = [each for each in held if not each.uri.endswith("/2")]  # listed, and gone meanwhile
        survey(state, [archive], fetch=100)
        found = compute_overlap_stats(state, ["a"], 100).archives[0]
        assert (found.fetched, dict(found.misses)) == (7, {"http-5xx": 1, "absent": 1, "archive-error": 1})
        assert dict(found.failed_fetches) == {"timeout": 1}
        assert (found.miss_rate.count, found.miss_rate.total) == (3, 7)
        archive.requests.clear()
        archive.before = lambda _: None
        survey(state, [archive], fetch=100)
        assert archive.requests == [f"fetch 20100101000000 {uris[1]}"]


def test_samples_depend_on_the_seed_and_are_nested(tmp_path: Path) -> None:
    """A larger sample contains the smaller one, of pages and of mementos."""
    holdings = dict.fromkeys(random_holdings(50, 6), 0b1111)

    def drawn(name: str, seed: int, sample: int, fetch: int) -> tuple[set[str], set[str]]:
        archives = archives_of(holdings)
        with open_state(tmp_path / name, holdings, seed, sample) as state:
            survey(state, archives, fetch=fetch)
            pages = {page.uri for page, _ in state.listings_by_page()}
        return pages, set(archives[0].fetched)

    small, large, other = drawn("1", 9, 10, 3), drawn("2", 9, 20, 6), drawn("3", 8, 10, 3)
    assert (len(small[0]), len(small[1])) == (10, 3)
    assert small[0] < large[0]
    assert small[1] < large[1]
    assert drawn("4", 9, 10, 3) == small != other


class MemoryLiveWeb:
    """A live web in memory."""

    def __init__(self, pages: dict[str, PageObservation | None]) -> None:
        self.pages = pages
        self.fetched_urls: list[str] = []

    async def fetch_snapshot(self, uri: str) -> tuple[str, PageObservation | None]:
        """Return a page; unknown ones are forbidden."""
        self.fetched_urls.append(uri)
        return ("answered", self.pages[uri]) if uri in self.pages else ("forbidden", None)


def test_live_pages_are_compared_with_mementos(tmp_path: Path) -> None:
    """Staleness, similarity, states and directives are the known ones."""
    words = " ".join(f"word{number}" for number in range(40))
    bodies = {name: f"<p>{words} {name}".encode() for name in ("same", "changed", "gone", "robots")}
    uris = {name: f"http://x.example/{name}" for name in bodies}
    archive = Stub("a", [Held(uris[name], "20100101000000", body) for name, body in bodies.items()])

    def live(name: str, body: bytes, status: int, *headers: tuple[str, str]) -> PageObservation:
        return snapshot_response(uris[name], "20200101000000", status, "text/html", headers, io.BytesIO(body))

    web = MemoryLiveWeb({
        uris["same"]: live("same", bodies["same"], 200, ("Last-Modified", "Thu, 31 Dec 2009 00:00:00 GMT")),
        uris["changed"]: live(
            "changed", bodies["changed"] + b" and more<meta name=robots content=noarchive>", 200,
            ("Last-Modified", "Mon, 11 Jan 2010 00:00:00 GMT"), ("Cache-Control", "no-store"),
        ),
        uris["gone"]: live("gone", b"gone", 404),
    })  # fmt: skip
    with open_state(tmp_path / "s", uris.values()) as state:
        survey(state, [archive], fetch=10, live=web)
        found = compute_overlap_stats(state, ["a"], 10)
        fetched = len(web.fetched_urls)
        survey(state, [archive], fetch=10, live=web)
        assert len(web.fetched_urls) == fetched == 4, "no page is fetched twice"
    live_found = found.archives[0].live
    assert found.has_live
    assert (live_found.replicated, live_found.endangered) == (2, 1)
    assert (live_found.dated, live_found.staleness) == (2, [10.0])
    assert (live_found.identical, live_found.pairs) == (1, 2)
    assert sorted(days for days, _ in live_found.points) == [0.0, 10.0]
    assert dict(live_found.points)[0.0] == 1.0
    assert 0.5 < dict(live_found.points)[10.0] < 1.0
    assert (live_found.noarchive, live_found.no_cache, live_found.no_cache_held) == (1, 1, 1)


def test_other_archive_with_the_same_id_is_rejected(tmp_path: Path) -> None:
    """Results of two archives are never mixed."""
    with open_state(tmp_path / "s", ["http://x.example/"]) as state:
        state.register_archive("a", "http://one.example/")
        state.register_archive("a", "http://one.example/")
        with pytest.raises(UsageError, match="another archive"):
            state.register_archive("a", "http://two.example/")
