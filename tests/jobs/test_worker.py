"""Workers that are killed, suspended, disconnected and stopped; the site is recovered nevertheless."""

import os
import random
import resource
import signal
import sqlite3
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select, update

from tests.external.postgresql import Postgresql
from tests.external.tcp_relay import run_relay
from tests.jobs.worker_processes import (
    ArchivePause,
    WorkerEnvironment,
    WorkerProcess,
    assert_complete,
    open_worker_environment,
)
from tests.recovery.sample_site import FILES, SiteArchives, sample_site, serve_site
from tests.waiting import wait_until
from unlost.errors import DatabaseError
from unlost.export import MANIFEST_NAME
from unlost.http import DEFAULT_SHARE
from unlost.jobs import EVENTS, JOBS, Database, Job, JobState, OrderLimits, file_url, states

IN_FLIGHT = 2 * 3  # requests of a killed worker: to two archives, on two connections, and prefetched ones

# Slow tests that do the same with either database: one in every run, the other in the long one.
ON_POSTGRESQL = [pytest.param("sqlite", marks=pytest.mark.long), "postgresql"]
ON_SQLITE = ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)]


@pytest.fixture(scope="module")
def site_archives() -> Iterator[SiteArchives]:
    """Run the archives of a small site."""
    with serve_site(sample_site()) as found:
        yield found


@pytest.fixture
def jobs(url: str, site_archives: SiteArchives, tmp_path: Path) -> Iterator[WorkerEnvironment]:
    """Open an environment for workers."""
    site_archives.watch = None
    site_archives.requests.clear()
    with open_worker_environment(tmp_path, url, site_archives.registry(tmp_path)) as found:
        yield found


def contents(file: Path) -> dict[str, bytes]:
    """Return the content of a zip file."""
    with zipfile.ZipFile(file) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


@pytest.mark.parametrize("url", ON_POSTGRESQL, indirect=True)
def test_job_of_a_killed_worker_is_resumed(jobs: WorkerEnvironment, site_archives: SiteArchives) -> None:
    """Another worker takes the job over and does not request recovered resources again."""
    with jobs.worker("first") as first, jobs.worker("second") as second:
        by_name = {"first": first, "second": second}
        killed = threading.Event()

        def kill() -> None:
            owner = next(iter(owners(jobs)))
            os.kill(by_name[owner].process.pid, signal.SIGKILL)
            killed.set()

        site_archives.call_after(FILES // 2, kill)
        job = jobs.order()
        wait_until(killed.is_set)
        done = jobs.wait_until_ended(job)
        assert_complete(jobs, done)
        assert done.generation == 2
        assert len(site_archives.replays()) <= FILES + IN_FLIGHT
        again = [each for each, count in Counter(site_archives.replays()).items() if count > 1]
        assert len(again) <= IN_FLIGHT
        # And the one that is left does the next one, with the same result.
        other = jobs.wait_until_ended(jobs.order())
        assert_complete(jobs, other)
        assert contents(jobs.file(other)) == contents(jobs.file(done))


@pytest.mark.parametrize("url", ON_SQLITE, indirect=True)
def test_unwritable_files_do_not_fail_the_job(jobs: WorkerEnvironment, site_archives: SiteArchives) -> None:
    """If a WARC cannot be written, the job is queued again and completes once there is space."""
    site_archives.watch = None
    jobs.jobs.database.checkpoint(truncates=True)  # its log must not be what reaches the limit
    with jobs.worker("cramped") as worker:
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE, (200_000, most))
        job = jobs.order()
        # The WARC or the state, whichever reaches the limit first.
        wait_until(lambda: worker.says("cannot be written") or worker.says("No space left on device"))
        resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE, (most, most))
        assert_complete(jobs, jobs.wait_until_ended(job))


def owners(jobs: WorkerEnvironment) -> list[str]:
    """Return the workers that hold leases."""
    return [each.worker for each in jobs.jobs.list_jobs(JobState.PROCESSING) if each.worker is not None]


def frozen(jobs: WorkerEnvironment, worker: WorkerProcess) -> None:
    """Suspend a worker outside of a transaction, which would lock its job."""
    process = worker.process.pid
    while True:
        os.kill(process, signal.SIGSTOP)
        wait_until(lambda: Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T")
        if disk_is_read_only(jobs):
            return
        os.kill(process, signal.SIGCONT)


def disk_is_read_only(jobs: WorkerEnvironment) -> bool:
    """Return whether no transaction is open."""
    other_database = Database(jobs.url)
    try:
        if not other_database.is_shared:
            with closing(sqlite3.connect(jobs.url.removeprefix("sqlite:///"), timeout=0)) as connection:
                connection.execute("BEGIN IMMEDIATE")
            return True
        with other_database.writing() as locking:
            locking.execute(select(JOBS.c.number).with_for_update(nowait=True)).all()
    except (DatabaseError, sqlite3.OperationalError):
        return False
    else:
        return True
    finally:
        other_database.close()


@pytest.mark.parametrize("url", ON_POSTGRESQL, indirect=True)
def test_suspended_worker_changes_nothing_after_its_lease(jobs: WorkerEnvironment, site_archives: SiteArchives) -> None:
    """A worker that is suspended beyond its lease stops when it continues; the other's result is unchanged."""
    with jobs.worker("first") as first:
        hold = ArchivePause(site_archives, FILES // 2)
        job = jobs.order()
        hold.wait()
        frozen(jobs, first)
        hold.release()
        with jobs.worker("second"):
            done = jobs.wait_until_ended(job)
            assert_complete(jobs, done)
            os.kill(first.process.pid, signal.SIGCONT)
            wait_until(lambda: first.says(f"job {job.number} is complete") or first.says("another worker"))
        assert jobs.jobs.get(job.number) == done
        assert_complete(jobs, done)
        # It lives, and is of use again.
        assert_complete(jobs, jobs.wait_until_ended(jobs.order()))
        assert first.process.poll() is None


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_stopped_worker_releases_its_job(jobs: WorkerEnvironment, site_archives: SiteArchives) -> None:
    """SIGTERM stops a worker at once; its job is queued, and the next worker resumes it."""
    with jobs.worker("first") as first:
        hold = ArchivePause(site_archives, FILES // 2)
        job = jobs.order()
        hold.wait()
        first.process.terminate()
        assert first.process.wait(20) == 0
        hold.release()
        waiting = jobs.jobs.get(job.number)
        assert (waiting.state, waiting.worker, waiting.crashes) == (JobState.QUEUED, None, 0)
        assert jobs.jobs.workers() == []
    with jobs.worker("second"):
        assert_complete(jobs, jobs.wait_until_ended(job))
    assert len(site_archives.replays()) <= FILES + IN_FLIGHT


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_recovery_stops_at_the_configured_size(url: str, tmp_path: Path) -> None:
    """The recovered part is complete and reports the limit; a retry with a higher limit recovers the rest."""
    with (
        serve_site(sample_site(image_bytes=1_100_000)) as large,
        open_worker_environment(tmp_path, url, large.registry(tmp_path)) as jobs,
    ):
        with jobs.worker("first") as first:
            hold = ArchivePause(large, FILES - 3)  # pages come first: of the images some are there, and some are not
            job = jobs.order()
            hold.wait()
            wait_until(lambda: sum(each.stat().st_size for each in tmp_path.glob("jobs/work/*/g1/warc/*")) > 1_000_000)
            first.process.terminate()
            first.process.wait(20)
            hold.release()
        jobs.jobs.rules.set_limits(OrderLimits(megabytes=1))
        with jobs.worker("second"):
            ended = jobs.wait_until_ended(job)
            assert (ended.state, ended.message) == (JobState.COMPLETE, "it ended at 1 MB, which is the limit here")
            with zipfile.ZipFile(jobs.file(ended)) as packed:
                assert 0 < len(set(packed.namelist()) - {MANIFEST_NAME}) == ended.progress.recovered < FILES
            jobs.jobs.rules.set_limits(OrderLimits(megabytes=100))
            jobs.jobs.retry(job.number)
            assert_complete(jobs, jobs.wait_until_ended(job))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_failing_page_does_not_delay_the_job(jobs: WorkerEnvironment, site_archives: SiteArchives) -> None:
    """Recovered resources are offered after the first round, while the rest is retried in the background."""
    for archive in site_archives.archives.values():
        archive.fails = "/13.gif"
    try:
        with jobs.worker("first", "--pause", "3600"):
            offered = jobs.wait_until_ended(jobs.order())
            assert (offered.state, offered.progress.recovered) == (JobState.COMPLETE, FILES - 1)
            assert offered.message.endswith("; missing resources are retried in the background")
            assert offered.not_before > jobs.jobs.now() + 3_000
            with zipfile.ZipFile(jobs.file(offered)) as packed:
                assert len(set(packed.namelist()) - {MANIFEST_NAME}) == FILES - 1
    finally:
        for archive in site_archives.archives.values():
            archive.fails = ""
    with jobs.jobs.database.writing() as connection:
        connection.execute(update(JOBS).values(not_before=1.0))
    hold = ArchivePause(site_archives, 1)
    with jobs.worker("second"):
        hold.wait()
        retried = jobs.jobs.get(offered.number)
        assert (retried.state, retried.is_offered) == (JobState.PROCESSING, True)
        assert jobs.file(retried).exists()
        hold.release()
        assert_complete(jobs, jobs.wait_until_ended(offered))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_recovery_stops_after_the_configured_time(jobs: WorkerEnvironment, site_archives: SiteArchives) -> None:
    """The time of all workers counts: the second one does not start if no time is left."""
    jobs.jobs.rules.set_limits(OrderLimits(hours=1))
    with jobs.worker("first") as first:
        hold = ArchivePause(site_archives, FILES // 2)
        job = jobs.order()
        hold.wait()
        first.process.terminate()
        first.process.wait(20)
        hold.release()
    requested = len(site_archives.replays())
    with jobs.jobs.database.writing() as connection:  # as if that had been two hours
        connection.execute(update(EVENTS).where(EVENTS.c.what == "processing").values(at=EVENTS.c.at - 7_200))
    with jobs.worker("second"):
        ended = jobs.wait_until_ended(job)
    assert (ended.state, ended.message) == (JobState.COMPLETE, "it ended after 1 hours, which is the limit here")
    assert 0 < ended.progress.recovered < FILES
    assert len(site_archives.replays()) <= requested + IN_FLIGHT


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_worker_abandons_a_cancelled_job(jobs: WorkerEnvironment, site_archives: SiteArchives) -> None:
    """The worker stops requesting and the job remains cancelled; a retry resumes it."""
    with jobs.worker("first") as first:
        hold = ArchivePause(site_archives, FILES // 2)
        job = jobs.order()
        hold.wait()
        jobs.jobs.change(job.number, states.cancel)
        wait_until(lambda: first.says(f"job {job.number} is cancelled"))
        hold.release()
        assert jobs.jobs.get(job.number).state is JobState.CANCELLED
        jobs.jobs.retry(job.number)
        assert_complete(jobs, jobs.wait_until_ended(job))
    assert len(site_archives.replays()) <= FILES + IN_FLIGHT


def test_worker_without_database_connection_loses_its_lease(
    server: Postgresql, site_archives: SiteArchives, tmp_path: Path
) -> None:
    """A worker that cannot renew its lease stops when it expires; another one processes the job."""
    site_archives.watch = None
    site_archives.requests.clear()
    url = server.create_database()
    with ExitStack() as stack:
        jobs = stack.enter_context(open_worker_environment(tmp_path, url, site_archives.registry(tmp_path)))
        relay = stack.enter_context(run_relay(server.port))
        with jobs.worker("first", url=url.replace(str(server.port), str(relay.port))) as first:
            hold = ArchivePause(site_archives, FILES // 2)
            job = jobs.order()
            hold.wait()
            relay.cut()
            hold.release()
            with jobs.worker("second"):
                done = jobs.wait_until_ended(job)
                assert_complete(jobs, done)
                relay.restore()
            wait_until(lambda: first.says("another worker") or first.says("is complete") or first.says("no beat"))
            assert jobs.jobs.get(job.number) == done
            assert_complete(jobs, jobs.wait_until_ended(jobs.order()))
            assert_complete(jobs, done)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_worker_waits_for_the_database(jobs: WorkerEnvironment, tmp_path: Path) -> None:
    """A worker that starts before its database reports it, and processes jobs once it is available."""
    folder = tmp_path / "later"
    url = file_url(folder / "jobs.sqlite")
    with jobs.worker("early", url=url, ready="waiting for the database") as worker:
        assert worker.process.poll() is None, worker.lines
        folder.mkdir()
        with open_worker_environment(tmp_path, url, jobs.registry) as later:
            assert_complete(later, later.wait_until_ended(later.order()))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_idle_worker_ends_with_its_parent(jobs: WorkerEnvironment, tmp_path: Path) -> None:
    """It ends even without a database connection once its parent process is gone."""
    nowhere = file_url(tmp_path / "nowhere" / "jobs.sqlite")
    with jobs.worker("orphan", "--with-parent", url=nowhere, ready="waiting for the database") as worker:
        assert worker.process.wait(20) == 0


@pytest.mark.parametrize("url", ON_POSTGRESQL, indirect=True)
@pytest.mark.usefixtures("far_from_midnight")
def test_rate_limits_hold_for_all_workers(jobs: WorkerEnvironment, site_archives: SiteArchives, tmp_path: Path) -> None:
    """Two workers together send no more requests a day than allowed; the jobs wait for the next day."""
    quota = 10
    jobs.registry = site_archives.registry(tmp_path, quota)
    with jobs.worker("first"), jobs.worker("second"):
        ordered = [jobs.order(), jobs.order()]
        wait_until(lambda: all(jobs.jobs.get(job.number).not_before > 0 for job in ordered))
        found = [jobs.jobs.get(job.number) for job in ordered]
    requested = [path for name, path in site_archives.replays() if name == "a"]
    assert len(requested) == int(quota * DEFAULT_SHARE)
    assert {job.state for job in found} == {JobState.QUEUED}
    start = max(job.begun or 0 for job in found)
    assert all(start < job.not_before <= start + 86_400 for job in found)
    assert sum(job.progress.recovered for job in found) >= FILES - 1
    assert [jobs.jobs.place(job) for job in found] == [1, 2]


@pytest.mark.long
@pytest.mark.parametrize("round_", range(13))
@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_repeatedly_killed_workers_complete_the_job(
    round_: int, jobs: WorkerEnvironment, site_archives: SiteArchives
) -> None:
    """A worker is killed at 52 points; the site is recovered and few requests are repeated."""
    random_ = random.Random(round_)  # noqa: S311
    job = jobs.order()
    for point in range(states.MAX_CRASHES - 1):
        after, delay = random_.choice([1, 2, 3, 5, 8]), random_.choice([0.0, random_.uniform(0, 0.3)])
        print(f"round {round_}, point {point}: request {after}, {delay} s later")
        with jobs.worker(f"worker-{point}") as worker:
            _kill_after(site_archives, worker, after, delay)
            wait_until(partial(_has_ended, jobs, job, worker))
    site_archives.watch = None
    with jobs.worker("last"):
        assert_complete(jobs, jobs.wait_until_ended(job))
    assert len(site_archives.replays()) <= FILES + states.MAX_CRASHES * IN_FLIGHT


def _kill_after(site_archives: SiteArchives, worker: WorkerProcess, requests: int, delay: float) -> None:
    """Kill a worker some time after a number of requests."""

    def kill() -> None:
        time.sleep(delay)
        with suppress(ProcessLookupError):
            os.kill(worker.process.pid, signal.SIGKILL)

    site_archives.call_after(requests, kill)


def _has_ended(jobs: WorkerEnvironment, job: Job, worker: WorkerProcess) -> bool:
    return worker.process.poll() is not None or jobs.jobs.get(job.number).state is JobState.COMPLETE
