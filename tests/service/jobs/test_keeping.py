"""The lease of a job is kept by beats, until the worker is done, or has to give the job up."""

import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from unlost.service.jobs.job import Job, Progress
from unlost.service.jobs.keeping import LeaseKeeper

if TYPE_CHECKING:
    from unlost.service.jobs.store import Jobs

LEASE = 0.4  # seconds


class SilentFirst:
    """Takes beats; the first hangs until somebody says so, as where a cable was pulled out."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.answered = threading.Event()
        self.beats = 0

    def beat(self, *_: object) -> None:
        """Take one."""
        self.beats += 1
        if self.beats == 1:
            assert self.answers.wait(30)
            self.answered.set()


def test_who_has_given_a_job_up_keeps_it_no_more() -> None:
    """The network comes back while the worker still puts its things away: there are no more beats for the job."""
    jobs, lost = SilentFirst(), threading.Event()
    job = SimpleNamespace(number=1, generation=1, progress=Progress())
    with LeaseKeeper(cast("Jobs", jobs), cast("Job", job), LEASE, lost.set):
        assert lost.wait(30)
        jobs.answers.set()
        assert jobs.answered.wait(30)
        time.sleep(2 * LEASE)  # in which there would be eight
        assert jobs.beats == 1
