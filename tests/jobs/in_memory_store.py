"""An in-memory model of the job store, which uses the state machine only."""

from collections.abc import Callable
from dataclasses import replace

from tests.virtual_clock import VirtualClock
from unlost.jobs import Job, JobProgress, JobState, Order, states

ORDER = Order("http://lost.example/", "me@example.org", "Me")

_FIRST = (JobState.PROCESSING, JobState.QUEUED, JobState.COMPLETE)


class InMemoryJobStore:
    """Implements the interface of `JobStore` that the model-based tests use."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.jobs: dict[int, Job] = {}

    def submit(self, order: Order, *, is_confirmed: bool = False) -> Job:
        """Store an order."""
        now, number = self.clock.now(), len(self.jobs) + 1
        job = Job(number, order, JobState.PENDING, now, now)
        self.jobs[number] = states.confirm(job, now, number) if is_confirmed else job
        return self.jobs[number]

    def change(self, number: int, change: Callable[[Job, float], Job]) -> Job:
        """Change a job."""
        self.jobs[number] = change(self.jobs[number], self.clock.now())
        return self.jobs[number]

    def claim(self, worker: str, seconds: float) -> Job | None:
        """Claim the next job for a worker."""
        now = self.clock.now()
        free = [job for job in self.jobs.values() if states.is_claimable(job, worker, now)]
        for job in sorted(free, key=lambda job: (_FIRST.index(job.state), job.turn, job.number)):
            claimed = self.change(job.number, lambda job, now: states.claim(job, worker, now, seconds))
            if claimed.state is JobState.PROCESSING:
                return claimed
        return None

    def renew_lease(self, number: int, generation: int, seconds: float, progress: JobProgress) -> Job:
        """Extend a lease."""
        return self.change(number, lambda job, now: states.renew_lease(job, generation, now, seconds, progress))

    def get(self, number: int) -> Job:
        """Return a job."""
        return self.jobs[number]

    def retry(self, number: int) -> Job:
        """Queue a job again."""
        turn = 1 + max((job.turn for job in self.jobs.values()), default=0)
        return self.change(number, lambda job, now: replace(states.retry(job, now, turn)))
