"""The index of archive files: shared by processes, stored where possible, rebuilt after damage."""

import asyncio
import multiprocessing
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.archives.archive_files import collect_all, files, run
from tests.warc.warcs import record
from unlost.archives import IndexingStoppedError, WarcFileIndex, warc_file_index
from unlost.capture import Capture
from unlost.errors import FailedError

PAGES = 40


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the user's files."""
    monkeypatch.setenv("UNLOST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with four WARCs of ten pages each."""
    top = tmp_path / "warcs"
    top.mkdir()
    for number in range(4):
        text = b"".join(record(number=number * 10 + each) for each in range(10))
        (top / f"{number}.warc").write_bytes(text)
    return top


def database(home: Path) -> Path:
    """Return the path of the cache's database."""
    (actual,) = (home / "cache" / "files").glob("*.sqlite")
    return actual


def _count(folder: Path, results: "multiprocessing.SimpleQueue[int]") -> None:
    results.put(len(collect_all(files(folder).list_prefix("http://example.com"))))


def test_processes_starting_together_share_the_index(home: Path, folder: Path) -> None:
    """All processes see all captures, and every file is indexed once."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    processes = [context.Process(target=_count, args=(folder, results)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [results.get() for _ in processes] == [PAGES] * 4
    with sqlite3.connect(database(home)) as connection:
        assert connection.execute("SELECT count(*) FROM capture").fetchone() == (PAGES,)
    connection.close()


def test_unwritable_cache_uses_a_temporary_index(home: Path, folder: Path) -> None:
    """The listener is notified with advice."""
    home.mkdir()
    (home / "cache").write_text("a file in the place of the folder")
    declared: list[str] = []
    here = files(folder, on_message=declared.append)
    assert len(collect_all(here.list_prefix("http://example.com"))) == PAGES
    assert len(declared) == 1
    assert "UNLOST_HOME" in declared[0]


def test_index_on_full_disk_is_created_elsewhere(home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the temporary folder is full, too, an error is raised."""
    places = [home]
    real = WarcFileIndex.update

    def full(self: WarcFileIndex, *arguments: Any) -> None:  # noqa: ANN401  those of the method
        if any(position in self._database.parents for position in places):
            raise sqlite3.OperationalError("database or disk is full")
        real(self, *arguments)

    monkeypatch.setattr(WarcFileIndex, "update", full)
    assert len(collect_all(files(folder).list_prefix("http://example.com"))) == PAGES
    places.append(Path("/"))
    with pytest.raises(FailedError, match="full"):
        collect_all(files(folder).list_prefix("http://example.com"))


@pytest.mark.parametrize("damage", [b"this is no database at all" * 100, b""])
def test_damaged_database_is_created_again(home: Path, folder: Path, damage: bytes) -> None:
    """Users need not clear the cache."""
    collect_all(files(folder).list_prefix("http://example.com"))
    database(home).write_bytes(damage)
    assert len(collect_all(files(folder).list_prefix("http://example.com"))) == PAGES


def test_index_damaged_during_use_is_created_again(home: Path, folder: Path) -> None:
    """A running client continues after the cache is cleared or damaged."""
    here = files(folder)
    collect_all(here.list_prefix("http://example.com"))
    database(home).unlink()
    assert len(collect_all(here.list_prefix("http://example.com"))) == PAGES
    database(home).write_bytes(b"x" * 5000)
    assert len(collect_all(here.list_prefix("http://example.com"))) == PAGES


def test_index_of_another_version_is_created_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes of older versions are not used."""
    collect_all(files(folder).list_prefix("http://example.com"))
    monkeypatch.setattr(warc_file_index, "INDEX_VERSION", 999)
    read: list[str] = []
    assert len(collect_all(files(folder, on_file=read.append).list_prefix("http://example.com"))) == PAGES
    assert len(read) == 4


def test_interrupted_indexing_is_resumed(folder: Path, tmp_path: Path) -> None:
    """The files of a killed process are indexed again, and not visible before."""
    index = WarcFileIndex(folder, tmp_path / "i" / "x.sqlite")
    stop = Event()
    seen: list[str] = []

    def stop_at_third(name: str) -> None:
        seen.append(name)
        if len(seen) == 3:
            stop.set()

    with pytest.raises(IndexingStoppedError):
        index.update(stop, stop_at_third)
    ever = ("0", "9" * 14)
    assert len(index.captures_between("com,example)", "com,example*", ever, None, 999)) == 20
    assert not index.is_current()
    index.update(Event())
    assert len(index.captures_between("com,example)", "com,example*", ever, None, 999)) == PAGES
    assert index.is_current()


def test_unfinished_file_is_not_visible(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of an incompletely indexed file are hidden, and deleted when it is indexed again."""
    from unlost.index import read_archive_captures

    def dying(*arguments: Any, **options: Any) -> Iterator[Capture]:  # noqa: ANN401  those of the function
        yield from islice(read_archive_captures(*arguments, **options), 7)
        raise IndexingStoppedError

    index = WarcFileIndex(folder, tmp_path / "x.sqlite")
    monkeypatch.setattr("unlost.archives.warc_file_index._BATCH_ROWS", 3)
    monkeypatch.setattr("unlost.archives.warc_file_index.read_archive_captures", dying)
    with pytest.raises(IndexingStoppedError):
        index.update(Event())
    everything = ("com,example)", "com,example*", ("0", "9" * 14), None, 999)
    connection = sqlite3.connect(tmp_path / "x.sqlite")
    assert connection.execute("SELECT count(*) FROM capture").fetchone() == (6,)
    connection.close()
    assert index.captures_between(*everything) == []
    assert not index.is_current()
    monkeypatch.setattr("unlost.archives.warc_file_index.read_archive_captures", read_archive_captures)
    index.update(Event())
    assert len(index.captures_between(*everything)) == PAGES


def test_cancellation_stops_indexing(folder: Path) -> None:
    """A cancelled task ends soon, although its thread cannot be killed."""
    seen: list[str] = []

    async def cancelled() -> None:
        start = asyncio.Event()
        loop = asyncio.get_running_loop()

        def on_file(name: str) -> None:
            seen.append(name)
            loop.call_soon_threadsafe(start.set)
            go_on.wait(10)

        go_on = Event()
        here = files(folder, on_file=on_file)
        task = asyncio.create_task(here.last_capture_date("http://example.com/1"))
        await start.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()

    run(cancelled())
    assert seen == ["0.warc"]


def test_queries_do_not_block_each_other(folder: Path) -> None:
    """Concurrent queries share one folder scan."""
    read: list[str] = []

    async def many() -> list[str | None]:
        here = files(folder, on_file=read.append)
        return await asyncio.gather(
            *(here.last_capture_date(f"http://example.com/{number}") for number in range(PAGES))
        )

    assert run(many()) == ["20140210000001"] * PAGES
    assert len(read) == 4


def test_page_of_long_rows_is_short(tmp_path: Path) -> None:
    """Pages are limited by bytes, since URLs may have a megabyte."""
    (tmp_path / "w").mkdir()
    long = "http://example.com/{}" + "x" * (1 << 20)
    text = b"".join(record(number=number, uri=long) for number in range(12))
    (tmp_path / "w" / "a.warc").write_bytes(text)
    index = WarcFileIndex(tmp_path / "w", tmp_path / "x.sqlite")
    index.update(Event())
    assert 0 < len(index.captures_between("com,example)", "com,example*", ("0", "9" * 14), None, 500)) < 12
    assert len(collect_all(files(tmp_path / "w").list_prefix("http://example.com"))) == 12


def test_every_query_uses_an_index(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No query scans all rows or sorts a page."""
    index = WarcFileIndex(folder, tmp_path / "x.sqlite")
    index.update(Event())
    (actual, *_) = index.captures_between("com,example)", "com,example*", ("0", "9" * 14), None, 5)
    requested: list[str] = []
    connect = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:  # noqa: ANN401  those of the function
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(requested.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    index.captures_between("com,example)", "com,example*", ("0", "9" * 14), actual.position, 5)
    index.captures_near("com,example)/1", "2014", 5)
    index.find_record(actual.capture)
    index.last_date("com,example)/1")
    index.find_originals(replace(actual.capture, revisit_of=("http://example.com/1", "2014")), 5)
    monkeypatch.undo()
    assert len(requested) == 7
    connection = sqlite3.connect(tmp_path / "x.sqlite")
    plans = [row[3] for each in requested for row in connection.execute(f"EXPLAIN QUERY PLAN {each}")]
    connection.close()
    assert len(plans) >= 14
    assert [plan for plan in plans if plan.startswith("SCAN")] == []
    assert sum("TEMP B-TREE" in plan for plan in plans) <= 2, "only originals are sorted: there are few"
