"""Sampling of a list of pages: limits are respected, and every result is stored."""

import asyncio
import io
import sqlite3
from collections.abc import AsyncIterator, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.external.fault_server import Exchange
from tests.http.harness import run_server
from tests.http.rate_limits.windows import most_within
from tests.virtual_clock import VirtualClock
from unlost.archives import ArchiveSampler, FetchedCapture, MementoClient, SampleState, SampleUrlList, write_sample_map
from unlost.capture import Capture
from unlost.errors import (
    ExcludedError,
    FailedError,
    InputError,
    ListCutError,
    NotNowError,
    UnlostError,
    UnsupportedError,
    UsageError,
)
from unlost.http import POLICIES
from unlost.problems import Problems
from unlost.registry import Archive, ArchiveKind, RateLimit, RequestKind

TIMEMAP = b'<http://m.example/20140101000000/x>; rel="memento"; datetime="Wed, 01 Jan 2014 00:00:00 GMT"'


def state_of(path: Path, pages: Iterable[str]) -> SampleState:
    """Return a state with pages to query."""
    state = SampleState(path / "s")
    listed = SampleUrlList(io.BytesIO("".join(f"{page}\n" for page in pages).encode()), Problems(), "x")
    state.begin(lambda: {"addresses": listed.digest}, listed)
    return state


def capture(uri: str, moment: str = "20140101000000", **more: object) -> Capture:
    """Return a capture of a page."""
    return replace(Capture(uri, None, moment, 200, "text/html"), **more)  # type: ignore[arg-type]


class ScriptedArchive:
    """An archive with prepared results per page: captures, then perhaps an error."""

    def __init__(
        self, captures: dict[str, list[Capture | UnlostError]], fetched_captures: dict[str, object] | None = None
    ) -> None:
        self.archive = Archive("a", "A", ArchiveKind.MEMENTO)
        self.fetched: list[Capture] = []
        self.requests: list[str] = []
        self._captures = captures
        self._copies = fetched_captures or {}

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the prepared captures, then raise the prepared error."""
        self.requests.append(uri)
        for each in self._captures.get(uri, []):
            if isinstance(each, UnlostError):
                raise each
            yield each

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return a page, None, or raise."""
        self.fetched.append(capture)
        results = self._copies.get(capture.uri)
        if isinstance(results, UnlostError):
            raise results
        return None if results is None else FetchedCapture(capture, (), io.BytesIO(results))  # type: ignore[arg-type]

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Not used by the sampler."""
        raise NotImplementedError(prefix, first, last)
        yield

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Not used by the sampler."""
        raise NotImplementedError

    async def last_capture_date(self, uri: str) -> str | None:
        """Not used by the sampler."""
        raise NotImplementedError


def test_every_kind_of_outcome_is_stored(tmp_path: Path) -> None:
    """Held, not held, excluded, cut and failed; only failed pages are queried again."""
    refused = FailedError("no", "a", "timeout")
    archive = ScriptedArchive(
        {
            "http://a.com/cut": [capture("http://a.com/cut"), ListCutError("cut", "a")],
            "http://a.com/cut-at-once": [ListCutError("cut", "a")],
            "http://a.com/half": [capture("http://a.com/half"), refused],
            "http://a.com/hidden": [ExcludedError("hidden", "a")],
            "http://a.com/held": [capture("http://a.com/held", mime=None), capture("x", "20150101000000")],
            "http://a.com/odd": [capture("x", mime="text/ html\x1b")],
        }
    )
    names = ("cut", "cut-at-once", "half", "hidden", "held", "odd", "missed")
    with state_of(tmp_path, (f"http://a.com/{name}" for name in names)) as state:
        stop = asyncio.run(ArchiveSampler(state, archive, VirtualClock()).run(concurrency=2))
        assert stop is None
        assert state.count_outcomes() == {"cut": 1, "excluded": 1, "hit": 3, "miss": 1, "timeout": 1}
        write_sample_map(state, tmp_path / "m", kind="uris", by=["mime", "year"])
        assert (tmp_path / "m").read_text().splitlines()[4:] == [
            "* 2014 - 2+",
            "* 2014 text/html 1+",
            "* 2015 text/html 1+",
            "com,a)/cut 2014 text/html 1+",
            "com,a)/held 2014 - 1+",
            "com,a)/held 2015 text/html 1+",
            "com,a)/odd 2014 - 1+",
        ]
        archive.requests.clear()
        asyncio.run(ArchiveSampler(state, archive, VirtualClock()).run())
        assert archive.requests == ["http://a.com/cut-at-once", "http://a.com/half"]


def test_language_costs_one_capture_of_a_page(tmp_path: Path) -> None:
    """The last suitable capture is fetched; a missing one is unknown, a failed one is fetched again."""
    many = [
        capture("http://a.com/p", "20130101000000"),
        capture("http://a.com/p", "20150101000000"),
        capture("http://a.com/p", "20160101000000", status=404),
        capture("http://a.com/p", "20170101000000", mime="image/png"),
        capture("http://a.com/p", "20180101000000", revisit=True, mime=None),
    ]
    image = [capture("http://a.com/i", mime="image/png")]
    names = ("gone", "hidden", "fails")
    listed: dict[str, list[Capture | UnlostError]] = {"http://a.com/p": [*many], "http://a.com/i": [*image]}
    for name in names:
        listed[f"http://a.com/{name}"] = [capture(f"http://a.com/{name}")]
    archive = ScriptedArchive(
        listed,
        {
            "http://a.com/p": b"<html lang=pt>",
            "http://a.com/hidden": ExcludedError("hidden", "a"),
            "http://a.com/fails": FailedError("slow", "a", "timeout"),
        },
    )
    with state_of(tmp_path, ["http://a.com/p", "http://a.com/i", *(f"http://a.com/{n}" for n in names)]) as state:
        asyncio.run(ArchiveSampler(state, archive, VirtualClock(), language=True).run(concurrency=1))
        assert [(each.uri, each.datetime) for each in archive.fetched] == [
            ("http://a.com/p", "20150101000000"),
            ("http://a.com/gone", "20140101000000"),
            ("http://a.com/hidden", "20140101000000"),
            ("http://a.com/fails", "20140101000000"),
        ]
        assert state.count_outcomes() == {"hit": 4, "timeout": 1}
        held = {row[0]: row[1] for row in state.iter_map_rows(["language"])}
        assert held == {"*": "pt", "com,a)/gone": "-", "com,a)/hidden": "-", "com,a)/i": "-", "com,a)/p": "pt"}


def test_unsupported_archive_raises(tmp_path: Path) -> None:
    """The error is raised at the first page and not stored as its failure."""
    archive = ScriptedArchive({f"http://a.com/{number}": [UnsupportedError("no list", "a")] for number in range(9)})
    with state_of(tmp_path, archive._captures) as state:
        with pytest.raises(UnsupportedError):
            asyncio.run(ArchiveSampler(state, archive, VirtualClock()).run(concurrency=1))
        assert (len(archive.requests), state.count_outcomes()) == (1, {"": 9})


def test_limits_are_respected_and_a_wait_ends_the_run(tmp_path: Path) -> None:
    """The server never sees more than the limit, 429 is obeyed, quotas are respected, and later runs finish."""
    limit = RateLimit(30, 60, (RequestKind.INDEX,), "the test")
    quota = RateLimit(100, 86_400, (RequestKind.INDEX,), "the test")

    async def answering(scenario: Exchange) -> None:
        if scenario.number == 20:
            await scenario.respond(429, Retry_After="120")
        else:
            await scenario.respond(404 if scenario.path.endswith("7") else 200, TIMEMAP)

    async def run(state: SampleState) -> tuple[list[float], list[str], int]:
        async with run_server(answering, limits=(limit,), max_wait=200.0) as there:
            archive = replace(there.archive, quotas=(quota,))
            reasons: list[str] = []
            runs = 0
            while True:
                runs += 1
                stop = await ArchiveSampler(state, MementoClient(archive, there.http_client), there.clock).run(
                    concurrency=4
                )
                if stop is None:
                    return [at for at, _ in there.server.requests], reasons, runs
                assert isinstance(stop.error, NotNowError)
                reasons.append(stop.error.reason)
                there.clock.advance(stop.error.until - there.clock.now())

    with state_of(tmp_path, (f"http://a.com/{number}" for number in range(170))) as state:
        times, reasons, runs = asyncio.run(run(state))
        assert state.count_outcomes() == {"hit": 153, "miss": 17}
    assert (len(times), runs, set(reasons)) == (171, 3, {"quota"})
    assert most_within(times, 60) <= 30
    reported = times[20]
    # On this clock, the three other requests may be admitted before the response is read, but no more.
    assert len([at for at in times if reported + 1 < at < reported + 119]) <= 3


@pytest.mark.parametrize(
    ("text", "keys", "problems"),
    [
        ("http://a.com/\nhttps://www.A.com\n# no\n\n a.com/b \n", ["com,a)/", "com,a)/b"], {}),
        ("com,a)/b?c\n", ["com,a)/b?c"], {}),
        ("dns:a.com\nhttp://[\nhttp://a.com/\x01\n", [], {"foreign-scheme": 1, "bad-host": 1, "bad-uri": 1}),
    ],
)
def test_url_lists_are_read(tmp_path: Path, text: str, keys: list[str], problems: dict[str, int]) -> None:
    """Each page is sampled once, by its key; SURTs are accepted, and invalid URLs are counted."""
    results = Problems()
    listed = SampleUrlList(io.BytesIO(text.encode()), results, "x")
    with SampleState(tmp_path / "s") as state:
        state.begin(dict, listed)
        pages = list(state.iter_unanswered())
        assert [page.key for page in pages] == keys
        assert results.counts == problems
        assert all(page.uri.strip().startswith(("http", "a.com")) for page in pages)


def test_list_with_a_read_error_was_not_started(tmp_path: Path) -> None:
    """A failed start leaves no state and can be repeated."""

    def broken() -> Iterable[tuple[str, bytes]]:
        yield "com,a)/", b"http://a.com/"
        raise InputError("cut")

    with SampleState(tmp_path / "s") as state:
        with pytest.raises(InputError):
            state.begin(dict, broken())
        assert state.plan() is None
        state.begin(lambda: {"a": 1}, [("com,a)/", b"http://a.com/")])
        assert (state.plan(), state.count_pages()) == ({"a": 1}, 1)
        with pytest.raises(UsageError, match="a was 1 and is 2"):
            state.check_plan({"a": 2})
        state.clear()
        assert state.plan() is None
    assert not (tmp_path / "s").exists()


def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    """Text files, other databases and missing folders are rejected."""
    (tmp_path / "text").write_text("hello" * 1000)
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE precious (x)")
    other.close()
    for name in ("text", "other", "none/s"):
        with pytest.raises(InputError):
            SampleState(tmp_path / name)
    assert (tmp_path / "text").read_text().startswith("hello")


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE fact",
        "DROP TABLE page; CREATE VIEW page AS WITH c(n) AS (SELECT 1 UNION ALL SELECT 2 FROM c) SELECT n FROM c",
        "CREATE TRIGGER t AFTER UPDATE ON page BEGIN DELETE FROM page; END",
        "UPDATE fact SET value = 'no JSON' WHERE name = 'plan'",
        "UPDATE fact SET value = '[1]' WHERE name = 'plan'",
        "UPDATE fact SET value = printf('%.*c', 100000, '[') WHERE name = 'plan'",
    ],
    ids=["fewer tables", "endless view", "trigger", "no plan", "other plan", "deep plan"],
)
def test_changed_plan_is_rejected(tmp_path: Path, change: str) -> None:
    """The error is raised before anything runs."""
    with SampleState(tmp_path / "s") as state:
        state.begin(lambda: {"a": 1}, [("com,a)/", b"http://a.com/")])
    with closing(sqlite3.connect(tmp_path / "s")) as other:
        other.executescript(change)
    with pytest.raises(InputError, match="not the state of a sample"), SampleState(tmp_path / "s") as state:
        state.plan()


def test_other_file_need_not_be_deleted(tmp_path: Path) -> None:
    """For a wrong `--state` file the message suggests another name."""
    (tmp_path / "precious").write_text("hello" * 1000)
    with pytest.raises(InputError, match="give another name"):
        SampleState(tmp_path / "precious")


def test_large_list_uses_bounded_memory(tmp_path: Path) -> None:
    """Forty thousand URLs are stored, queried and written within a few megabytes of Python memory."""
    import tracemalloc

    def lines() -> Iterable[str]:
        return (f"http://h{number % 997}.example/{number}" for number in range(40_000))

    path = tmp_path / "list"
    with path.open("w") as file:
        file.writelines(f"{line}\n" for line in lines())
    tracemalloc.start()
    try:
        with SampleState(tmp_path / "s") as state:
            listed = SampleUrlList(path, Problems())
            state.begin(dict, listed)
            pages = state.iter_unanswered()
            assert sum(1 for _ in pages) == 40_000
            write_sample_map(state, tmp_path / "m", kind="uris")
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_failing_archive_is_left_for_the_next_run(tmp_path: Path) -> None:
    """As `POLICIES["sample"]` says: after consecutive failures; a response in between resets the count."""
    policy = POLICIES["sample"]
    pages = [f"http://a.com/{number:03}" for number in range(3 * policy.failures)]
    captures: dict[str, list[Capture | UnlostError]] = {page: [FailedError("no", "a", "timeout")] for page in pages}
    with state_of(tmp_path, pages) as state:
        order = [page.uri for page in state.iter_unanswered(None)]
        captures[order[policy.failures - 1]] = []
        archive = ScriptedArchive(captures)
        stop = asyncio.run(ArchiveSampler(state, archive, VirtualClock()).run(concurrency=1))
        assert stop is not None
        assert stop.failures == policy.failures
        assert archive.requests == order[: 2 * policy.failures]
        captures.clear()
        assert asyncio.run(ArchiveSampler(state, archive, VirtualClock()).run(concurrency=1)) is None
        assert state.count_outcomes() == {"miss": len(pages)}
