"""Tests of what a recovery knows."""

import json
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unlost.capture import Capture
from unlost.errors import InputError, UsageError
from unlost.html import LinkKind
from unlost.recover import RecoverOptions, RecoverPolicy, RecoveryRecord
from unlost.recover.state import (
    UNASSIGNED,
    CaptureOutcome,
    ListingRow,
    ListingStatus,
    NewResource,
    RecoveryState,
    ResourceStatus,
)
from unlost.sqlite import STATE_FILE_NAME

SITE = "http://lost.example/"
HOST = "lost.example/"


def wanted(path: str, hops: int = 1, use: LinkKind = LinkKind.PAGE) -> NewResource:
    """Return a page that is wanted."""
    return NewResource(HOST + path, SITE + path, use, hops)


def capture(path: str, **more: object) -> Capture:
    """Return a capture with all that an index may say."""
    uri = SITE + path
    return Capture(
        uri, f"example,lost)/{path}", "20140101000000", 200, "text/html", "sha1:A", 12, f"{SITE}to", "a",
        f"http://a.example/{uri}", False, True, (f"{SITE}of", "20130101000000"), "x.warc.gz", 7, 3,
    ) if not more else Capture(uri, f"example,lost)/{path}", "20140101000000", archive="a", **more)  # type: ignore[arg-type]  # fmt: skip


def record(path: str, offset: int) -> RecoveryRecord:
    """Return a record of a page."""
    return RecoveryRecord(
        capture(path), "sha1:B", "http://s.example/", "length", "20260101000000", "w.warc.gz", offset, 100
    )


def test_what_is_kept_is_there_the_next_time(tmp_path: Path) -> None:
    """Plan, lists, captures, links and records come back as they were."""
    plan = RecoverOptions(
        SITE, ("http://x.example/",), policy=RecoverPolicy.EXHAUSTIVE, exclude=("a", "b"), first="20140101000000"
    )
    listing = ListingRow("a", SITE, ListingStatus.TRUNCATED, 3, "at its cap", 12.5)
    with RecoveryState(tmp_path) as state:
        state.store_options(plan)
        state.listings.store(listing)
        number = state.resources.add([wanted("p")])[f"{HOST}p"]
        assert state.captures.add([(number, capture("p"))]) == 1
        assert state.captures.add([(number, capture("p"))]) == 0
        kept = state.records.add(number, 1, record("p", 0))
        state.resources.set_best_record(number, kept)
    with RecoveryState(tmp_path) as state:
        assert state.options() == plan
        assert state.listings.all() == [listing]
        assert [each.capture for each in state.captures.of_resource(number)] == [capture("p")]
        assert state.records.get(kept).record == record("p", 0)
        assert state.resources.get(number).record == kept


def test_what_was_not_committed_is_gone_with_an_error(tmp_path: Path) -> None:
    """And what was before it is not."""
    with RecoveryState(tmp_path) as state:
        state.resources.enqueue([wanted("a")])
    state = RecoveryState(tmp_path)
    state.resources.enqueue([wanted("b")])
    state.__exit__(RuntimeError, None, None)
    with RecoveryState(tmp_path) as state:
        assert state.resources.counts()[ResourceStatus.QUEUED] == 1


def test_another_site_is_refused(tmp_path: Path) -> None:
    """The message says whose the folder is; other options may change."""
    with RecoveryState(tmp_path) as state:
        state.store_options(RecoverOptions(SITE))
        state.store_options(RecoverOptions(SITE, depth=2))
        with pytest.raises(UsageError, match=SITE):
            state.store_options(RecoverOptions("http://other.example/"))


@pytest.mark.parametrize("text", [b"my diary", b"SQLite format 3\x00" + bytes(100)])
def test_a_file_that_is_no_state_is_left_alone(tmp_path: Path, text: bytes) -> None:
    """It is named, and not changed."""
    file = tmp_path / "state.sqlite"
    file.write_bytes(text)
    with pytest.raises((InputError, OSError)) as error:
        RecoveryState(tmp_path)
    assert "state.sqlite" in str(error.value)
    assert file.read_bytes() == text


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """So is one of another version."""
    connection = sqlite3.connect(tmp_path / "state.sqlite")
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    with pytest.raises(InputError, match="version"):
        RecoveryState(tmp_path)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """The second one is told; afterwards it may."""
    with RecoveryState(tmp_path), pytest.raises(InputError, match="another process"):
        RecoveryState(tmp_path)
    RecoveryState(tmp_path).__exit__(None, None, None)


def test_links_of_a_page_count_once(tmp_path: Path) -> None:
    """What many pages use comes before what few do; what one page uses twice is used once."""
    with RecoveryState(tmp_path) as state:
        pages = state.resources.enqueue([wanted(f"p{number}") for number in range(4)])
        for page in pages:
            state.resources.enqueue([wanted("many", 5), wanted("many", 5)], page)
            state.resources.enqueue([wanted("many", 5)], page)
        state.resources.enqueue([wanted("few", 5), wanted("few", 5)], pages[0])
        for page in pages:
            state.resources.finish(page, ResourceStatus.RECOVERED, "20260101000000")
        first = state.resources.next_queued(UNASSIGNED, ())
        assert first is not None
        assert first.name == f"{HOST}many"
        second = state.resources.next_queued(UNASSIGNED, {first.id})
        assert second is not None
        assert second.name == f"{HOST}few"


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(list(LinkKind))), min_size=1, max_size=12))
def test_what_is_near_comes_first(places: list[tuple[int, LinkKind]]) -> None:
    """Whatever the order in which they were found: by distance, a page before its parts."""
    with tempfile.TemporaryDirectory() as name, RecoveryState(Path(name)) as state:
        state.resources.enqueue([wanted(str(number), hops, use) for number, (hops, use) in enumerate(places)])
        taken: list[tuple[int, bool]] = []
        while (resource := state.resources.next_queued(UNASSIGNED, ())) is not None:
            taken.append((resource.hops, resource.link_kind is LinkKind.REQUISITE))
            state.resources.finish(resource.id, ResourceStatus.RECOVERED, "20260101000000")
        assert taken == sorted(taken)


def test_a_name_that_is_not_listed_is_the_one_that_is(tmp_path: Path) -> None:
    """In another letter case, and a folder by its default page; what is listed itself is itself."""
    with RecoveryState(tmp_path) as state:
        listed = state.resources.add([wanted("About.html"), wanted("shop/index.php"), wanted("twin"), wanted("Twin")])
        numbers = state.resources.enqueue([wanted("about.HTML"), wanted("shop"), wanted("twin"), wanted("Twin")])
        assert numbers == [listed[HOST + path] for path in ("About.html", "shop/index.php", "twin", "Twin")]
        assert state.resources.enqueue([wanted("about.HTML")]) == [listed[f"{HOST}About.html"]]


def test_captures_that_failed_are_asked_for_again(tmp_path: Path) -> None:
    """Those alone, and their resources are told."""
    with RecoveryState(tmp_path) as state:
        one, two = state.resources.enqueue([wanted("1"), wanted("2")])
        state.captures.add([(one, capture("1", status=200)), (two, capture("2", status=200))])
        (first,), (second,) = state.captures.of_resource(one), state.captures.of_resource(two)
        state.captures.set_outcome(first.id, CaptureOutcome.FAILED)
        state.captures.set_outcome(second.id, CaptureOutcome.ABSENT)
        assert state.captures.reset_failed() == [one]
        assert state.captures.of_resource(one)[0].outcome is CaptureOutcome.RETRY
        assert state.captures.of_resource(two)[0].outcome is CaptureOutcome.ABSENT


def test_records_that_a_file_has_lost_are_forgotten(tmp_path: Path) -> None:
    """Those behind its end, and whose they were is told."""
    with RecoveryState(tmp_path) as state:
        one, two = state.resources.enqueue([wanted("1"), wanted("2")])
        state.records.add(one, 0, record("1", 0))
        state.records.add(two, 0, record("2", 100))
        assert state.records.known_ends() == {"w.warc.gz": 200}
        assert state.records.delete_after("w.warc.gz", 150) == [two]
        assert state.records.known_ends() == {"w.warc.gz": 100}


def test_what_was_only_looked_for_leaves_nothing(tmp_path: Path) -> None:
    """Not even what archives said of it, which would be taken for another's."""
    with RecoveryState(tmp_path) as state:
        (number,) = state.resources.enqueue([wanted("sitemap.xml", 0, LinkKind.LIST)])
        state.captures.set_query_outcome(number, "a", "done")
        state.resources.unqueue(number)
        (next_one,) = state.resources.enqueue([wanted("page")])
        assert state.captures.query_outcomes(next_one) == {}
        assert sum(state.resources.counts().values()) == 1


def test_numbers_of_version_2_become_those_of_today(tmp_path: Path) -> None:
    """Every worth of that version has its place; of empty captures, those with a body by definition are successful."""
    with RecoveryState(tmp_path) as state:
        number = state.resources.add([NewResource("lost.example/", SITE, LinkKind.PAGE, 0)])["lost.example/"]
        state.resources.finish(number, ResourceStatus.MISSING, "20200101000000", "no-good-copy")
    rows = [*((worth, 200, None) for worth in range(10)), (7, 204, None), (7, 200, "length")]
    connection = sqlite3.connect(tmp_path / STATE_FILE_NAME)
    for i, (worth, status, truncated) in enumerate(rows):
        data = json.dumps({"truncated": truncated, "capture": {"status": status}})
        connection.execute("INSERT INTO record VALUES (?, ?, ?, NULL, 'w', ?, 1, ?)", (i + 1, number, worth, i, data))
    connection.execute("UPDATE resource SET record = 9")
    connection.execute("DROP TABLE substitute")
    connection.execute("PRAGMA user_version = 2")
    connection.commit()
    connection.close()
    with RecoveryState(tmp_path):
        pass
    connection = sqlite3.connect(tmp_path / STATE_FILE_NAME)
    found = [worth for (worth,) in connection.execute("SELECT worth FROM record ORDER BY id")]
    assert found == [0, 1, 2, 3, 4, 7, 8, 6, 10, 11, 9, 9]
    assert connection.execute("SELECT record FROM resource").fetchone() == (1,)
    connection.close()
