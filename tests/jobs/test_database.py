"""Concurrency of SQLite, which has a single writer."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.jobs.in_memory_store import ORDER
from tests.waiting import wait_until
from unlost.errors import DatabaseError
from unlost.jobs import Database, Job, JobState, JobStore, file_url, states
from unlost.jobs import database as module


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of the database."""
    return tmp_path / "jobs.sqlite"


@pytest.fixture
def database(file: Path) -> Iterator[Database]:
    """Create an empty database."""
    found = Database(file_url(file))
    found.prepare()
    yield found
    found.close()


def submit(database: Database) -> threading.Thread:
    """Submit an order in a thread."""
    thread = threading.Thread(target=lambda: JobStore(database).submit(ORDER))
    thread.start()
    return thread


def test_concurrent_creation_of_a_database_never_fails(tmp_path: Path) -> None:
    """Several processes that start together create one file without errors."""
    processes, files = 6, 20
    barrier = threading.Barrier(processes)

    def start(_: int) -> None:
        for number in range(files):
            barrier.wait(timeout=60)
            found = Database(file_url(tmp_path / f"{number}.sqlite"))
            found.prepare()
            JobStore(found).submit(ORDER, is_confirmed=True)
            found.close()

    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(start, range(processes)))
    for number in range(files):
        found = Database(file_url(tmp_path / f"{number}.sqlite"))
        assert JobStore(found).count_by_state()[JobState.QUEUED] == processes
        found.close()


def test_waiting_writers_poll_at_short_intervals(
    file: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Orders wait while another process writes, poll at short intervals, and succeed afterwards."""
    paused: list[float] = []

    class Watched:
        monotonic = time.monotonic

        @staticmethod
        def sleep(seconds: float) -> None:
            paused.append(seconds)
            time.sleep(seconds)

    monkeypatch.setattr(module, "time", Watched)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        threads = [submit(database) for _ in range(4)]
        wait_until(lambda: len(paused) > 20)
        assert all(thread.is_alive() for thread in threads)
        other.execute("COMMIT")
        for thread in threads:
            thread.join()
    assert max(paused) < 0.005
    assert len(list(JobStore(database).history())) == 4


def test_optimistic_change_does_not_block_writers(file: Path, database: Database) -> None:
    """Another process may write during a change, which is then repeated."""
    jobs = JobStore(database)
    number = jobs.submit(ORDER).number
    thought: list[str] = []

    def change(job: Job, _: float) -> Job:
        if len(thought) < 2:
            with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as other:
                other.execute("UPDATE job SET message = message || 'x'")
        thought.append(job.message)
        return replace(job, message=job.message + "y")

    assert jobs.change(number, change).message == "xxy"
    assert thought == ["", "x", "xx"]
    assert jobs.get(number).message == "xxy"


def test_change_takes_the_lock_after_repeated_conflicts(file: Path, database: Database) -> None:
    """After several conflicts the change takes the write lock, so that it ends."""
    jobs = JobStore(database)
    number = jobs.submit(ORDER).number
    refused: list[str] = []

    def change(job: Job, _: float) -> Job:
        with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as other:
            try:
                other.execute("UPDATE job SET message = message || 'x'")
            except sqlite3.OperationalError as error:
                refused.append(str(error))
        return replace(job, message=job.message + "y")

    assert jobs.change(number, change).message.endswith("xy")
    assert refused == ["database is locked"]


def test_checkpoint_truncates_the_log(file: Path, database: Database) -> None:
    """Committed orders remain in the write-ahead log until a checkpoint, so that orders do not wait for it."""

    def in_file() -> int:
        with closing(sqlite3.connect(f"file:{file}?immutable=1", uri=True)) as alone:  # as if there were no log
            return int(alone.execute("SELECT count(*) FROM job").fetchone()[0])

    database.checkpoint()
    jobs = JobStore(database)
    for _ in range(200):  # of more pages than SQLite's own limit of a thousand
        jobs.submit(ORDER, is_confirmed=True)
    assert in_file() == 0
    database.checkpoint()
    assert in_file() == 200
    size = file.with_name("jobs.sqlite-wal").stat().st_size
    jobs.submit(ORDER, is_confirmed=True)
    assert file.with_name("jobs.sqlite-wal").stat().st_size == size


def test_stalled_writer_causes_a_timeout(file: Path, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suspended writer causes a timeout; readers are not affected."""
    monkeypatch.setattr(module, "_BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseError, match="locked"):
            JobStore(database).submit(ORDER)
        assert list(JobStore(database).history()) == []
    with database.writing():
        thread_saw: list[str] = []

        def other_thread() -> None:
            try:
                JobStore(database).submit(ORDER)
            except DatabaseError as error:
                thread_saw.append(str(error))

        thread = threading.Thread(target=other_thread)
        thread.start()
        thread.join()
    assert "locked" in thread_saw[0]
    assert JobStore(database).submit(ORDER).number == 1


def test_removed_data_is_overwritten_in_the_file(file: Path, database: Database) -> None:
    """Neither the database file nor its log contains the name or email address of a removed job."""
    jobs = JobStore(database)

    def found() -> list[bool]:
        data = b"".join(each.read_bytes() for each in file.parent.iterdir() if each.is_file())
        return [text in data for text in (b"forgotten@example.org", b"Forgotten")]

    number = jobs.submit(replace(ORDER, mail="forgotten@example.org", name="Forgotten")).number
    jobs.submit(replace(ORDER, mail="kept@example.org"))
    database.checkpoint()
    assert found() == [True, True]
    jobs.change(number, states.remove)
    database.checkpoint(truncates=True)
    assert found() == [False, False]
