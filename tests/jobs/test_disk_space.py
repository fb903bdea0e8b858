"""No job starts or continues without free disk space; it waits and continues later."""

import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.export.sample_recoveries import ROOT, SampleCapture, make_recovery
from tests.jobs.service_process import ORDER, run_service
from tests.jobs.worker_processes import (
    ArchivePause,
    WorkerEnvironment,
    assert_complete,
    open_worker_environment,
)
from tests.recovery.sample_site import SiteArchives, sample_site, serve_site
from tests.waiting import wait_until
from tests.web.test_metrics import samples
from unlost.errors import SpaceError
from unlost.jobs import (
    LOW_SPACE,
    QUOTA_REACHED,
    DiskSpace,
    DiskSpaceLimits,
    JobFolders,
    JobQuota,
    JobState,
    OrderLimits,
    write_packages,
)

TOO_MUCH = 10**9  # megabytes that no disk has
BALLAST = b"\0" * 2_000_000


@pytest.fixture(scope="module")
def site_archives() -> Iterator[SiteArchives]:
    """Run the archives of a small site."""
    with serve_site(sample_site()) as found:
        yield found


@pytest.fixture
def jobs(url: str, site_archives: SiteArchives, tmp_path: Path) -> Iterator[WorkerEnvironment]:
    """Open an environment for workers."""
    site_archives.watch = None
    with open_worker_environment(tmp_path, url, site_archives.registry(tmp_path)) as found:
        yield found


def disk_space(folder: Path, min_free: int = 0, max_total: int = 0) -> DiskSpace:
    """Return the disk space of a folder, with limits in megabytes."""
    return DiskSpace(JobFolders(folder), DiskSpaceLimits.from_megabytes(min_free, max_total))


def test_shortage_depends_on_free_space_and_total_size(tmp_path: Path) -> None:
    """Free space below the minimum and a total above the maximum are shortages; 0 disables a limit."""
    (tmp_path / "00000001").mkdir()
    (tmp_path / "00000001" / "ballast").write_bytes(BALLAST)
    assert disk_space(tmp_path).measure() == ""
    assert disk_space(tmp_path, min_free=1, max_total=3).measure() == ""
    assert disk_space(tmp_path, min_free=TOO_MUCH).shortage() == LOW_SPACE
    full = disk_space(tmp_path, max_total=2)
    assert full.measure() == full.shortage() == QUOTA_REACHED
    assert full.usage().used == len(BALLAST)
    assert disk_space(tmp_path / "new", min_free=1).measure() == ""


def test_requests_do_not_wait_for_a_measurement(tmp_path: Path) -> None:
    """Health check and metrics do not start another measurement while one is running."""
    counting, end = threading.Event(), threading.Event()

    class ManyFiles(JobFolders):
        def total_size(self) -> int:
            assert not counting.is_set(), "counted twice at the same time"
            counting.set()
            assert end.wait(10)
            return len(BALLAST)

    space = DiskSpace(ManyFiles(tmp_path), DiskSpaceLimits.from_megabytes(0, 2))
    assert space.usage().used == 0
    with ThreadPoolExecutor(1) as pool:
        counted = pool.submit(space.measure)
        assert counting.wait(10)
        assert (space.measure(), space.shortage(), space.usage().used) == ("", "", 0)
        end.set()
        assert counted.result() == space.shortage() == QUOTA_REACHED
    assert space.usage().used == len(BALLAST)


def test_shortage_stops_a_recovery(tmp_path: Path) -> None:
    """A shortage stops the recovery like a limit, but the job does not end."""
    bound = JobQuota(tmp_path, OrderLimits(), space=disk_space(tmp_path, min_free=TOO_MUCH))
    assert (bound.is_exceeded(), bound.shortage, bound.reached) == (True, LOW_SPACE, "")
    assert not JobQuota(tmp_path, OrderLimits(), space=disk_space(tmp_path)).is_exceeded()


@pytest.mark.parametrize("allowed", range(3))
def test_shortage_stops_packaging(tmp_path: Path, allowed: int) -> None:
    """No package is left; the next attempt writes all of them."""
    folder = make_recovery(tmp_path / "g1", [SampleCapture(ROOT, b"home"), SampleCapture(f"{ROOT}a", b"a")])

    def check_at(count: int) -> Callable[[], None]:
        left = iter(range(count))

        def check() -> None:
            if next(left, None) is None:
                raise SpaceError(LOW_SPACE)

        return check

    with pytest.raises(SpaceError):
        write_packages(folder, windows=True, language="en", check=check_at(2 * allowed + 1))
    assert not (folder / "packages").exists()
    made = write_packages(folder, windows=True, language="en", check=check_at(1_000))
    assert [each.form for each in made] == ["zip", "tar.gz", "wacz"]


@pytest.mark.parametrize("url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True)
def test_no_job_starts_without_free_space(jobs: WorkerEnvironment) -> None:
    """Queued jobs, including new ones, report the reason until there is space again."""
    first = jobs.order()
    with jobs.worker("cramped", "--min-free-space", str(TOO_MUCH)) as worker:
        wait_until(lambda: jobs.jobs.get(first.number).message == LOW_SPACE)
        second = jobs.order()
        wait_until(lambda: jobs.jobs.get(second.number).message == LOW_SPACE)
        assert {each.state for each in jobs.jobs.list_jobs()} == {JobState.QUEUED}
        assert sum(LOW_SPACE in line for line in worker.lines) == 1, "it is logged once"
    with jobs.worker("spacious"):
        for job in (first, second):
            done = jobs.wait_until_ended(job)
            assert_complete(jobs, done)
            assert (done.generation, done.message) == (1, "")


@pytest.mark.parametrize("url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True)
def test_running_job_is_released_when_the_quota_is_reached(
    jobs: WorkerEnvironment, site_archives: SiteArchives
) -> None:
    """The running job is released when the maximum size is reached, and nothing is lost."""
    hold = ArchivePause(site_archives, 6)
    ballast = jobs.folder / "jobs" / "work" / "99999999"
    with jobs.worker("worker", "--max-jobs-size", "2") as worker:
        job = jobs.order()
        hold.wait()
        ballast.mkdir()
        (ballast / "file").write_bytes(BALLAST)
        wait_until(lambda: worker.says(QUOTA_REACHED))
        hold.release()
        wait_until(lambda: jobs.jobs.get(job.number).state is JobState.QUEUED)
        waiting = jobs.jobs.get(job.number)
        assert (waiting.message, waiting.generation) == (QUOTA_REACHED, 1)
        (ballast / "file").unlink()
        done = jobs.wait_until_ended(job)
        assert_complete(jobs, done)
        assert (done.generation, done.message) == (2, "")


def test_shortage_is_reported_by_health_metrics_and_pages(site_archives: SiteArchives, tmp_path: Path) -> None:
    """The status page is in the visitor's language."""
    with run_service(tmp_path, site_archives.registry(tmp_path), "--min-free-space", str(TOO_MUCH)) as service:
        key = service.request("POST", "/api/jobs", ORDER, is_admin=True).json["key"]
        wait_until(lambda: service.status(key)["message"] == LOW_SPACE)
        health = service.request("GET", "/health")
        assert (health.status, health.json) == (200, {"status": LOW_SPACE})
        found = samples(service.request("GET", "/metrics").body.decode())
        assert found["unlost_disk_shortage"] == 1
        assert found["unlost_disk_min_free_bytes"] == TOO_MUCH * 1_000_000
        assert 0 < found["unlost_disk_free_bytes"] < TOO_MUCH * 1_000_000
        assert found["unlost_job_files_max_bytes"] == 200_000_000_000
        assert "The service is low on disk space." in service.request("GET", f"/jobs/{key}").body.decode()
        assert "zu wenig Speicherplatz" in service.request("GET", f"/jobs/{key}?lang=de").body.decode()
    with run_service(tmp_path, site_archives.registry(tmp_path)) as service:
        assert service.wait_until_ended(key)["state"] == "complete"
        assert service.request("GET", "/health").json == {"status": "ok"}
        packed = tmp_path / "site.zip"
        packed.write_bytes(service.request("GET", f"/api/jobs/{key}/package/zip").body)
        assert zipfile.is_zipfile(packed)
