"""Workers as processes, with archives of a small lost site."""

import hashlib
import os
import signal
import subprocess
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.run import UNLOST
from tests.recovery.sample_site import FILES, SiteArchives
from tests.recovery.site import ROOT
from tests.waiting import wait_until
from unlost.export import MANIFEST_NAME
from unlost.jobs import Database, Job, JobState, JobStore, parse_order

LEASE = 3.0
"""Lease in seconds; short, since tests wait for its expiry."""


@dataclass
class WorkerProcess:
    """A running worker and the lines that it has logged."""

    process: subprocess.Popen[bytes]
    lines: list[str] = field(default_factory=list)

    def read(self) -> None:
        """Collect the log."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.decode())

    def says(self, text: str) -> bool:
        """Return whether the worker has logged a text."""
        return any(text in line for line in self.lines)


@dataclass
class WorkerEnvironment:
    """A job store with folders, a registry, and workers."""

    folder: Path
    url: str
    registry: Path
    jobs: JobStore

    @contextmanager
    def worker(
        self, name: str, *more: str, url: str | None = None, on: Sequence[str] = (), ready: str = "waits for jobs"
    ) -> Iterator[WorkerProcess]:  # fmt: skip
        """Run a worker until the block ends.

        `on` is a command prefix for another host, `ready` the line to wait for.
        """
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("UNLOST_", "XDG_"))}
        environment |= {
            "UNLOST_HOME": str(self.folder / "home"), "UNLOST_CONTACT": "me@example.org",
            "UNLOST_JOBS": str(self.folder / "jobs"), "UNLOST_DATABASE": url or self.url,
        }  # fmt: skip
        command: list[str | Path] = [*on, UNLOST, "worker", "--name", name, "--lease", str(LEASE), "--pause", "0.5"]
        # A nice process would starve next to other tests.
        command += ["--archives", self.registry, "--connections", "2", "--nice", "0", *more]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, start_new_session=True
        )
        started = WorkerProcess(process)
        reading = threading.Thread(target=started.read)
        reading.start()
        try:
            wait_until(lambda: started.says(ready) or process.poll() is not None)
            yield started
        finally:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGCONT)
                process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            reading.join()
            assert process.stderr is not None
            process.stderr.close()

    def order(self, **more: object) -> Job:
        """Order the lost site."""
        return self.jobs.submit(
            parse_order({"url": ROOT, "mail": "me@example.org", **more}, ("a", "b")), is_confirmed=True
        )

    def wait_until_ended(self, job: Job) -> Job:
        """Wait until a job has ended."""
        ended = (JobState.COMPLETE, JobState.FAILED, JobState.CANCELLED)
        wait_until(lambda: self.jobs.get(job.number).state in ended)
        return self.jobs.get(job.number)

    def file(self, job: Job, form: str = "zip") -> Path:
        """Return the path of a package."""
        name = next(each.file for each in job.packages if each.form == form)
        return self.folder / "jobs" / "work" / f"{job.number:08d}" / name


class ArchivePause:
    """Blocks the archives after a number of requests, in the middle of a job."""

    def __init__(self, lost: SiteArchives, after: int) -> None:
        self._lost = lost
        self._held, self._go_on = threading.Event(), threading.Event()
        lost.call_after(after, self._hold)

    def _hold(self) -> None:
        self._held.set()
        self._go_on.wait(60)

    def wait(self) -> None:
        """Wait until the archives are blocked."""
        wait_until(self._held.is_set)

    def release(self) -> None:
        """Unblock the archives."""
        self._lost.watch = None
        self._go_on.set()


@contextmanager
def open_worker_environment(folder: Path, url: str, registry: Path) -> Iterator[WorkerEnvironment]:
    """Open an environment for workers."""
    (folder / "jobs").mkdir(exist_ok=True)
    database = Database(url)
    database.prepare()
    try:
        yield WorkerEnvironment(folder, url, registry, JobStore(database))
    finally:
        database.close()


def file_digest(file: Path) -> str:
    """Return the SHA-256 digest of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def assert_complete(jobs: WorkerEnvironment, job: Job) -> None:
    """Check that a job is complete and that its packages contain the whole site."""
    assert job.state is JobState.COMPLETE, job
    assert [each.form for each in job.packages] == ["zip", "tar.gz", "wacz"]
    for each in job.packages:
        assert file_digest(jobs.file(job, each.form)) == each.sha256
        assert jobs.file(job, each.form).stat().st_size == each.size
    with zipfile.ZipFile(jobs.file(job)) as packed:
        assert packed.testzip() is None
        assert len(set(packed.namelist()) - {MANIFEST_NAME}) == FILES
    assert (job.progress.recovered, job.progress.missing, job.progress.queued) == (FILES, 1, 0)
    assert job.figures["requests"]
    assert job.worker is None
