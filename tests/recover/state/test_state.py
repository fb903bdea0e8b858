"""Tests of what a recovery knows."""

import json
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.errors import InputError, UsageError
from unlost.formats.capture import Capture
from unlost.pages.link import Use
from unlost.recover.plan import Plan, Policy
from unlost.recover.record import Record
from unlost.recover.state.captures import Outcome
from unlost.recover.state.listings import Listed, Listing
from unlost.recover.state.resources import UNASSIGNED, Standing, Wanted
from unlost.recover.state.state import State
from unlost.state_file import NAME

SITE = "http://lost.example/"
HOST = "lost.example/"


def wanted(path: str, hops: int = 1, use: Use = Use.PAGE) -> Wanted:
    """Return a page that is wanted."""
    return Wanted(HOST + path, SITE + path, use, hops)


def capture(path: str, **more: object) -> Capture:
    """Return a capture with all that an index may say."""
    uri = SITE + path
    return Capture(
        uri, f"example,lost)/{path}", "20140101000000", 200, "text/html", "sha1:A", 12, f"{SITE}to", "a",
        f"http://a.example/{uri}", False, True, (f"{SITE}of", "20130101000000"), "x.warc.gz", 7, 3,
    ) if not more else Capture(uri, f"example,lost)/{path}", "20140101000000", archive="a", **more)  # type: ignore[arg-type]  # fmt: skip


def record(path: str, offset: int) -> Record:
    """Return a record of a page."""
    return Record(capture(path), "sha1:B", "http://s.example/", "length", "20260101000000", "w.warc.gz", offset, 100)


def test_what_is_kept_is_there_the_next_time(tmp_path: Path) -> None:
    """Plan, lists, captures, links and records come back as they were."""
    plan = Plan(SITE, ("http://x.example/",), policy=Policy.EXHAUSTIVE, exclude=("a", "b"), first="20140101000000")
    listing = Listing("a", SITE, Listed.CUT, 3, "at its cap", 12.5)
    with State(tmp_path) as state:
        state.keep_plan(plan)
        state.listings.note(listing)
        number = state.resources.add([wanted("p")])[f"{HOST}p"]
        assert state.captures.add([(number, capture("p"))]) == 1
        assert state.captures.add([(number, capture("p"))]) == 0
        kept = state.records.add(number, 1, record("p", 0))
        state.resources.choose(number, kept)
    with State(tmp_path) as state:
        assert state.plan() == plan
        assert state.listings.all() == [listing]
        assert [each.capture for each in state.captures.of(number)] == [capture("p")]
        assert state.records.get(kept).record == record("p", 0)
        assert state.resources.get(number).record == kept


def test_what_was_not_committed_is_gone_with_an_error(tmp_path: Path) -> None:
    """And what was before it is not."""
    with State(tmp_path) as state:
        state.resources.want([wanted("a")])
    state = State(tmp_path)
    state.resources.want([wanted("b")])
    state.__exit__(RuntimeError, None, None)
    with State(tmp_path) as state:
        assert state.resources.counts()[Standing.QUEUED] == 1


def test_another_site_is_refused(tmp_path: Path) -> None:
    """The message says whose the folder is; other options may change."""
    with State(tmp_path) as state:
        state.keep_plan(Plan(SITE))
        state.keep_plan(Plan(SITE, depth=2))
        with pytest.raises(UsageError, match=SITE):
            state.keep_plan(Plan("http://other.example/"))


@pytest.mark.parametrize("text", [b"my diary", b"SQLite format 3\x00" + bytes(100)])
def test_a_file_that_is_no_state_is_left_alone(tmp_path: Path, text: bytes) -> None:
    """It is named, and not changed."""
    file = tmp_path / "state.sqlite"
    file.write_bytes(text)
    with pytest.raises((InputError, OSError)) as error:
        State(tmp_path)
    assert "state.sqlite" in str(error.value)
    assert file.read_bytes() == text


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """So is one of another version."""
    connection = sqlite3.connect(tmp_path / "state.sqlite")
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    with pytest.raises(InputError, match="version"):
        State(tmp_path)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """The second one is told; afterwards it may."""
    with State(tmp_path), pytest.raises(InputError, match="another process"):
        State(tmp_path)
    State(tmp_path).__exit__(None, None, None)


def test_links_of_a_page_count_once(tmp_path: Path) -> None:
    """What many pages use comes before what few do; what one page uses twice is used once."""
    with State(tmp_path) as state:
        pages = state.resources.want([wanted(f"p{number}") for number in range(4)])
        for page in pages:
            state.resources.want([wanted("many", 5), wanted("many", 5)], page)
            state.resources.want([wanted("many", 5)], page)
        state.resources.want([wanted("few", 5), wanted("few", 5)], pages[0])
        for page in pages:
            state.resources.finish(page, Standing.RECOVERED, "20260101000000")
        first = state.resources.take(UNASSIGNED, ())
        assert first is not None
        assert first.name == f"{HOST}many"
        second = state.resources.take(UNASSIGNED, {first.id})
        assert second is not None
        assert second.name == f"{HOST}few"


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(list(Use))), min_size=1, max_size=12))
def test_what_is_near_comes_first(places: list[tuple[int, Use]]) -> None:
    """Whatever the order in which they were found: by distance, a page before its parts."""
    with tempfile.TemporaryDirectory() as name, State(Path(name)) as state:
        state.resources.want([wanted(str(number), hops, use) for number, (hops, use) in enumerate(places)])
        taken: list[tuple[int, bool]] = []
        while (resource := state.resources.take(UNASSIGNED, ())) is not None:
            taken.append((resource.hops, resource.use is Use.REQUISITE))
            state.resources.finish(resource.id, Standing.RECOVERED, "20260101000000")
        assert taken == sorted(taken)


def test_a_name_that_is_not_listed_is_the_one_that_is(tmp_path: Path) -> None:
    """In another letter case, and a folder by its default page; what is listed itself is itself."""
    with State(tmp_path) as state:
        listed = state.resources.add([wanted("About.html"), wanted("shop/index.php"), wanted("twin"), wanted("Twin")])
        numbers = state.resources.want([wanted("about.HTML"), wanted("shop"), wanted("twin"), wanted("Twin")])
        assert numbers == [listed[HOST + path] for path in ("About.html", "shop/index.php", "twin", "Twin")]
        assert state.resources.want([wanted("about.HTML")]) == [listed[f"{HOST}About.html"]]


def test_captures_that_failed_are_asked_for_again(tmp_path: Path) -> None:
    """Those alone, and their resources are told."""
    with State(tmp_path) as state:
        one, two = state.resources.want([wanted("1"), wanted("2")])
        state.captures.add([(one, capture("1", status=200)), (two, capture("2", status=200))])
        (first,), (second,) = state.captures.of(one), state.captures.of(two)
        state.captures.tried(first.id, Outcome.FAILED)
        state.captures.tried(second.id, Outcome.ABSENT)
        assert state.captures.ask_again() == [one]
        assert state.captures.of(one)[0].outcome is Outcome.AGAIN
        assert state.captures.of(two)[0].outcome is Outcome.ABSENT


def test_records_that_a_file_has_lost_are_forgotten(tmp_path: Path) -> None:
    """Those behind its end, and whose they were is told."""
    with State(tmp_path) as state:
        one, two = state.resources.want([wanted("1"), wanted("2")])
        state.records.add(one, 0, record("1", 0))
        state.records.add(two, 0, record("2", 100))
        assert state.records.ends() == {"w.warc.gz": 200}
        assert state.records.forget_behind("w.warc.gz", 150) == [two]
        assert state.records.ends() == {"w.warc.gz": 100}


def test_what_was_only_looked_for_leaves_nothing(tmp_path: Path) -> None:
    """Not even what archives said of it, which would be taken for another's."""
    with State(tmp_path) as state:
        (number,) = state.resources.want([wanted("sitemap.xml", 0, Use.LIST)])
        state.captures.note_asked(number, "a", "done")
        state.resources.drop(number)
        (next_one,) = state.resources.want([wanted("page")])
        assert state.captures.asked(next_one) == {}
        assert sum(state.resources.counts().values()) == 1


def test_numbers_of_version_2_become_those_of_today(tmp_path: Path) -> None:
    """Every worth of that version has its place; of empty captures, those with a body by definition are successful."""
    with State(tmp_path) as state:
        number = state.resources.add([Wanted("lost.example/", SITE, Use.PAGE, 0)])["lost.example/"]
        state.resources.finish(number, Standing.MISSING, "20200101000000", "no-good-copy")
    rows = [*((worth, 200, None) for worth in range(10)), (7, 204, None), (7, 200, "length")]
    connection = sqlite3.connect(tmp_path / NAME)
    for i, (worth, status, truncated) in enumerate(rows):
        data = json.dumps({"truncated": truncated, "capture": {"status": status}})
        connection.execute("INSERT INTO record VALUES (?, ?, ?, NULL, 'w', ?, 1, ?)", (i + 1, number, worth, i, data))
    connection.execute("UPDATE resource SET record = 9")
    connection.execute("DROP TABLE substitute")
    connection.execute("PRAGMA user_version = 2")
    connection.commit()
    connection.close()
    with State(tmp_path):
        pass
    connection = sqlite3.connect(tmp_path / NAME)
    found = [worth for (worth,) in connection.execute("SELECT worth FROM record ORDER BY id")]
    assert found == [0, 1, 2, 3, 4, 7, 8, 6, 10, 11, 9, 9]
    assert connection.execute("SELECT record FROM resource").fetchone() == (1,)
    connection.close()
