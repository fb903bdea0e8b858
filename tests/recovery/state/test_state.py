"""Tests of the state database of a recovery."""

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
from unlost.recovery import RecoverOptions, RecoverPolicy, RecoveryRecord
from unlost.recovery.state import (
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


def new_resource(path: str, hops: int = 1, use: LinkKind = LinkKind.PAGE) -> NewResource:
    """Return a resource to enqueue."""
    return NewResource(HOST + path, SITE + path, use, hops)


def capture(path: str, **more: object) -> Capture:
    """Return a capture with all fields that an index may have."""
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


def test_state_survives_reopening(tmp_path: Path) -> None:
    """Options, listings, captures, links and records are read back unchanged."""
    plan = RecoverOptions(
        SITE, ("http://x.example/",), policy=RecoverPolicy.EXHAUSTIVE, exclude=("a", "b"), first="20140101000000"
    )
    listing = ListingRow("a", SITE, ListingStatus.TRUNCATED, 3, "at its cap", 12.5)
    with RecoveryState(tmp_path) as state:
        state.store_options(plan)
        state.listings.store(listing)
        number = state.resources.add([new_resource("p")])[f"{HOST}p"]
        assert state.captures.add([(number, capture("p"))]) == 1
        assert state.captures.add([(number, capture("p"))]) == 0
        record_id = state.records.add(number, 1, record("p", 0))
        state.resources.set_best_record(number, record_id)
    with RecoveryState(tmp_path) as state:
        assert state.options() == plan
        assert state.listings.all() == [listing]
        assert [each.capture for each in state.captures.of_resource(number)] == [capture("p")]
        assert state.records.get(record_id).record == record("p", 0)
        assert state.resources.get(number).record == record_id


def test_uncommitted_changes_are_rolled_back_on_error(tmp_path: Path) -> None:
    """Changes before the transaction are still there."""
    with RecoveryState(tmp_path) as state:
        state.resources.enqueue([new_resource("a")])
    state = RecoveryState(tmp_path)
    state.resources.enqueue([new_resource("b")])
    state.__exit__(RuntimeError, None, None)
    with RecoveryState(tmp_path) as state:
        assert state.resources.counts()[ResourceStatus.QUEUED] == 1


def test_options_of_another_site_are_refused(tmp_path: Path) -> None:
    """The message names the site of the folder; other options may change."""
    with RecoveryState(tmp_path) as state:
        state.store_options(RecoverOptions(SITE))
        state.store_options(RecoverOptions(SITE, depth=2))
        with pytest.raises(UsageError, match=SITE):
            state.store_options(RecoverOptions("http://other.example/"))


@pytest.mark.parametrize("text", [b"my diary", b"SQLite format 3\x00" + bytes(100)])
def test_invalid_state_file_is_refused_and_unchanged(tmp_path: Path, text: bytes) -> None:
    """The message names the file."""
    file = tmp_path / "state.sqlite"
    file.write_bytes(text)
    with pytest.raises((InputError, OSError)) as error:
        RecoveryState(tmp_path)
    assert "state.sqlite" in str(error.value)
    assert file.read_bytes() == text


def test_foreign_database_is_refused(tmp_path: Path) -> None:
    """A SQLite database without the expected schema version is refused."""
    connection = sqlite3.connect(tmp_path / "state.sqlite")
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    with pytest.raises(InputError, match="version"):
        RecoveryState(tmp_path)


def test_second_process_is_refused(tmp_path: Path) -> None:
    """The state can be opened again once the first process has closed it."""
    with RecoveryState(tmp_path), pytest.raises(InputError, match="another process"):
        RecoveryState(tmp_path)
    RecoveryState(tmp_path).__exit__(None, None, None)


def test_priority_counts_each_linking_page_once(tmp_path: Path) -> None:
    """A resource that many pages link to comes first; repeated links of one page count once."""
    with RecoveryState(tmp_path) as state:
        pages = state.resources.enqueue([new_resource(f"p{number}") for number in range(4)])
        for page in pages:
            state.resources.enqueue([new_resource("many", 5), new_resource("many", 5)], page)
            state.resources.enqueue([new_resource("many", 5)], page)
        state.resources.enqueue([new_resource("few", 5), new_resource("few", 5)], pages[0])
        for page in pages:
            state.resources.finish(page, ResourceStatus.RECOVERED, "20260101000000")
        first = state.resources.next_queued(UNASSIGNED, ())
        assert first is not None
        assert first.name == f"{HOST}many"
        second = state.resources.next_queued(UNASSIGNED, {first.id})
        assert second is not None
        assert second.name == f"{HOST}few"


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(list(LinkKind))), min_size=1, max_size=12))
def test_queue_is_ordered_by_distance_and_kind(resources: list[tuple[int, LinkKind]]) -> None:
    """Resources are ordered by distance, pages before requisites, whatever the order of discovery."""
    with tempfile.TemporaryDirectory() as name, RecoveryState(Path(name)) as state:
        state.resources.enqueue([new_resource(str(number), hops, use) for number, (hops, use) in enumerate(resources)])
        taken: list[tuple[int, bool]] = []
        while (resource := state.resources.next_queued(UNASSIGNED, ())) is not None:
            taken.append((resource.hops, resource.link_kind is LinkKind.REQUISITE))
            state.resources.finish(resource.id, ResourceStatus.RECOVERED, "20260101000000")
        assert taken == sorted(taken)


def test_enqueued_name_resolves_to_listed_name(tmp_path: Path) -> None:
    """A name in another letter case, or a folder, resolves to a listed resource; a listed name is itself."""
    with RecoveryState(tmp_path) as state:
        listed = state.resources.add(
            [new_resource("About.html"), new_resource("shop/index.php"), new_resource("twin"), new_resource("Twin")]
        )
        numbers = state.resources.enqueue(
            [new_resource("about.HTML"), new_resource("shop"), new_resource("twin"), new_resource("Twin")]
        )
        assert numbers == [listed[HOST + path] for path in ("About.html", "shop/index.php", "twin", "Twin")]
        assert state.resources.enqueue([new_resource("about.HTML")]) == [listed[f"{HOST}About.html"]]


def test_failed_captures_are_reset_for_retry(tmp_path: Path) -> None:
    """Only failed captures are reset, and their resources are returned."""
    with RecoveryState(tmp_path) as state:
        one, two = state.resources.enqueue([new_resource("1"), new_resource("2")])
        state.captures.add([(one, capture("1", status=200)), (two, capture("2", status=200))])
        (first,), (second,) = state.captures.of_resource(one), state.captures.of_resource(two)
        state.captures.set_outcome(first.id, CaptureOutcome.FAILED)
        state.captures.set_outcome(second.id, CaptureOutcome.ABSENT)
        assert state.captures.reset_failed() == [one]
        assert state.captures.of_resource(one)[0].outcome is CaptureOutcome.RETRY
        assert state.captures.of_resource(two)[0].outcome is CaptureOutcome.ABSENT


def test_records_after_truncation_are_deleted(tmp_path: Path) -> None:
    """Records after the end of a file are deleted, and their resources are returned."""
    with RecoveryState(tmp_path) as state:
        one, two = state.resources.enqueue([new_resource("1"), new_resource("2")])
        state.records.add(one, 0, record("1", 0))
        state.records.add(two, 0, record("2", 100))
        assert state.records.known_ends() == {"w.warc.gz": 200}
        assert state.records.delete_after("w.warc.gz", 150) == [two]
        assert state.records.known_ends() == {"w.warc.gz": 100}


def test_unqueued_resource_leaves_no_query_outcomes(tmp_path: Path) -> None:
    """A later resource with the same id does not inherit the query outcomes."""
    with RecoveryState(tmp_path) as state:
        (number,) = state.resources.enqueue([new_resource("sitemap.xml", 0, LinkKind.LIST)])
        state.captures.set_query_outcome(number, "a", "done")
        state.resources.unqueue(number)
        (next_one,) = state.resources.enqueue([new_resource("page")])
        assert state.captures.query_outcomes(next_one) == {}
        assert sum(state.resources.counts().values()) == 1


def test_version_2_quality_values_are_migrated(tmp_path: Path) -> None:
    """Every quality value of schema version 2 is mapped; empty captures that may have content become successful."""
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
