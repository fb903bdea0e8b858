"""The visit database: growth, resuming, clock changes, kills and foreign files."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.check.availability.resources import archive_captures, live_resource
from unlost.check import (
    ANY_ARCHIVE,
    ArchiveHolding,
    ListingResult,
    VisitDatabase,
    VisitHistory,
    VisitStage,
    translate_visit_errors,
)
from unlost.crawl import CrawlOutcome, LiveResource
from unlost.errors import InputError
from unlost.watch import resource_lifetimes, survey_site

URL = "http://site.example/"
DAY = 86_400.0


def visit(
    history: VisitHistory,
    time: float,
    seen: Sequence[LiveResource],
    stored: dict[str, ArchiveHolding] | None = None,
    *,
    answers: bool = True,
) -> int:
    """Make a visit with these listed captures; return the number of visits that lost their dates."""
    start, struck = history.begin_visit(time)
    present = history.current_visit(start)
    present.record_live(seen)
    present.mark_crawled()
    if answers:
        present.record_listing(
            ListingResult("a", URL, True), {live_resource(path).key: each for path, each in (stored or {}).items()}
        )
    history.finish_visit(start, ["a"])
    return struck


@pytest.fixture
def history(tmp_path: Path) -> VisitHistory:
    """Open a new database."""
    file = VisitDatabase(tmp_path / "visits.sqlite")
    return VisitHistory(file, file.get_or_add_site(URL))


def rows(history: VisitHistory, table: str) -> int:
    """Return the number of rows of a table."""
    return int(history._data.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608


def test_database_grows_with_changes_only(history: VisitHistory) -> None:
    """A hundred equal visits have the rows of one."""
    seen = [live_resource("a"), live_resource("b")]
    visit(history, 0, seen, {"a": archive_captures()})
    before = [rows(history, table) for table in ("live_span", "held_span", "resource")]
    for day in range(1, 100):
        visit(history, day * DAY, seen, {"a": archive_captures()})
    assert [rows(history, table) for table in ("live_span", "held_span", "resource")] == before
    visit(history, 100 * DAY, [live_resource("a", 404), live_resource("b")], {"a": archive_captures()})
    assert rows(history, "live_span") == before[0] + 1


def test_visits_without_responses_leave_a_gap(history: VisitHistory) -> None:
    """The spans of an archive that failed are not extended."""
    visit(history, 0, [live_resource("a")], {"a": archive_captures()})
    visit(history, DAY, [live_resource("a")], answers=False)
    visit(history, 2 * DAY, [live_resource("a")], {})
    ((_, _, sights),) = history.observations("a")
    assert [(sight.is_live, sight.is_held) for sight in sights] == [(True, True), (True, None), (True, False)]


def test_clock_jump_makes_visits_undated(history: VisitHistory) -> None:
    """A visit in the far future loses its date when the clock is right again."""
    visit(history, 0, [live_resource("a")], {})
    visit(history, DAY, [live_resource("a")], {"a": archive_captures()})
    assert visit(history, 1_000 * DAY, [live_resource("a")], {"a": archive_captures()}) == 0
    assert visit(history, 2 * DAY, [live_resource("a")], {"a": archive_captures()}) == 1
    visit(history, 3 * DAY, [live_resource("a")], {})
    ((_, _, life),) = resource_lifetimes(history)
    assert (life.ta, life.tp, life.p_r) == (DAY, 3 * DAY, 1.0)
    assert [each.is_dated for each in history.finished_visits()] == [True, True, False, True, True]


def test_interrupted_visit_is_resumed_or_discarded(history: VisitHistory) -> None:
    """It is discarded when another one begins."""
    start, _ = history.begin_visit(0)
    history.current_visit(start).record_live([live_resource("a")])
    found = history.unfinished_visit()
    assert found is not None
    assert (found.id, found.stage) == (start.id, VisitStage.BEGUN)
    history.begin_visit(DAY)
    assert rows(history, "live") == 0
    assert rows(history, "visit") == 1


def test_urls_with_the_same_key_are_one_resource(history: VisitHistory) -> None:
    """A redirect from http to https, or from www, does not hide the page."""
    page = live_resource("a")
    redirect = LiveResource("https://www.site.example/a", page.key, CrawlOutcome.FETCHED, 301)
    for order in ([page, redirect], [redirect, page]):
        start, _ = history.begin_visit(0)
        present = history.current_visit(start)
        present.record_live(order)
        (availability,) = present.availabilities([])
        assert availability.live.uri == page.uri


def test_resource_that_becomes_a_redirect_is_missing(history: VisitHistory) -> None:
    """One that always redirected is no resource."""
    visit(history, 0, [live_resource("a"), live_resource("b", 301)], {})
    visit(history, DAY, [live_resource("a", 301), live_resource("b", 301)], {})
    found = {uri: life.tr for uri, _, life in resource_lifetimes(history)}
    assert found == {"http://site.example/a": DAY}


def test_change_and_birth_rates(history: VisitHistory) -> None:
    """Change rate: changes per download after the first. Birth rate: share of new resources."""
    visit(history, 0, [live_resource("a", digest="1"), live_resource("b", digest="1")], {})
    visit(history, DAY, [live_resource("a", digest="2"), live_resource("b", digest="1")], {})
    visit(
        history,
        2 * DAY,
        [live_resource("a", digest="2"), live_resource("b", digest="1"), live_resource("c"), live_resource("d")],
        {},
    )
    found = survey_site(history)
    assert found.change_rate == (1 / 2 + 0) / 2
    assert found.birth_rate == (0 + 2 / 4) / 2
    assert history.archives() == ["a"]
    assert found.rows[0].archive == ANY_ARCHIVE


def test_second_process_cannot_open_the_database(history: VisitHistory, tmp_path: Path) -> None:
    """It fails at once."""
    history.begin_visit(0)
    with pytest.raises(InputError, match="another process is at work on it"):
        VisitDatabase(tmp_path / "visits.sqlite")


def test_visits_of_a_killed_process_are_readable(tmp_path: Path) -> None:
    """Although the database was never closed."""
    path = tmp_path / "visits.sqlite"
    code = (
        "import os, sys; sys.path.insert(0, '.')\n"
        "from pathlib import Path\n"
        "from tests.check.visits.test_history import *\n"
        f"file = VisitDatabase(Path({str(path)!r}))\n"
        "visit(VisitHistory(file, file.get_or_add_site(URL)), 0, [live_resource('a')], {})\n"
        "os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3], check=False)
    assert done.returncode == 9
    with VisitDatabase(path, is_read_only=True) as file:
        assert len(VisitHistory(file, 1).finished_visits()) == 1
    with VisitDatabase(path) as file:
        assert len(VisitHistory(file, 1).finished_visits()) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [(b"not a database, but long enough to look like one" * 20, "not a file of visits"), (b"", None)],
)
def test_files_of_other_kinds_are_rejected(tmp_path: Path, body: bytes, message: str | None) -> None:
    """And not modified; an empty file is a new database."""
    file = tmp_path / "file"
    file.write_bytes(body)
    if message is None:
        VisitDatabase(file).close()
        return
    with pytest.raises(InputError, match=message):
        VisitDatabase(file)
    assert file.read_bytes() == body


def test_other_databases_and_symbolic_links_are_rejected(tmp_path: Path) -> None:
    """Of another program or version."""
    other = tmp_path / "other"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE a (b)")
    with pytest.raises(InputError, match="not of visits"):
        VisitDatabase(other)
    newer = tmp_path / "newer"
    VisitDatabase(newer).close()
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(InputError, match="found 99"):
        VisitDatabase(newer)
    link = tmp_path / "link"
    link.symlink_to(newer)
    with pytest.raises(InputError, match="a link"):
        VisitDatabase(link)
    with pytest.raises(InputError, match="nothing was watched"):
        VisitDatabase(tmp_path / "missing", is_read_only=True)
    assert not (tmp_path / "missing").exists()


def test_damaged_database_is_reported(tmp_path: Path) -> None:
    """Instead of an SQLite error."""
    path = tmp_path / "visits.sqlite"
    with VisitDatabase(path) as file:
        own = VisitHistory(file, file.get_or_add_site(URL))
        for day in range(5):
            visit(own, day * DAY, [live_resource(f"{number}") for number in range(200)], {})
    with path.open("r+b") as opened:
        size = os.fstat(opened.fileno()).st_size
        for at in range(4096 * 3, size, 4096):
            opened.seek(at)
            opened.write(b"\xff" * 512)
    with pytest.raises((InputError, OSError)), translate_visit_errors(path), VisitDatabase(path) as file:
        survey_site(VisitHistory(file, file.get_or_add_site(URL)))
