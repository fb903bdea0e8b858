"""Random workers that claim, renew, freeze and come back: no job has two workers, and none is lost."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.jobs.in_memory_store import ORDER, InMemoryJobStore
from tests.virtual_clock import VirtualClock
from unlost.errors import JobError, LeaseLostError
from unlost.jobs import JOBS, MAILS, Database, Job, JobProgress, JobState, JobStore, file_url, states

if TYPE_CHECKING:
    from tests.external.postgresql import Postgresql

LEASE = 60.0
WORKERS = ("a", "b", "c")


class Queue(Protocol):
    """The interface under test: the in-memory model or a database."""

    def submit(self, order: object, *, is_confirmed: bool = False) -> Job: ...  # noqa: D102
    def claim(self, worker: str, seconds: float) -> Job | None: ...  # noqa: D102
    def renew_lease(self, number: int, generation: int, seconds: float, progress: JobProgress) -> Job: ...  # noqa: D102
    def change(self, number: int, change: object) -> Job: ...  # noqa: D102
    def get(self, number: int) -> Job: ...  # noqa: D102
    def retry(self, number: int) -> Job: ...  # noqa: D102


@dataclass
class JobModel:
    """The expected history of a job.

    Entries are (event, generation, time, seconds).
    """

    history: list[tuple[str, int, float, float]] = field(default_factory=list)

    def holder(self) -> int | None:
        """Return the generation that holds the lease, or None."""
        holder = None
        for word, generation, _, _ in self.history:
            if word == "claim":
                holder = generation
            elif word != "beat":
                holder = None
        return holder

    def free_from(self) -> float | None:
        """Return since when the job may be claimed, or None if it may not."""
        word, _, time, seconds = self.history[-1]
        if word in ("claim", "beat"):
            return time + LEASE
        return time + seconds if word in ("queue", "give-back") else None


class Workers(RuleBasedStateMachine):
    """Random workers; each remembers all leases that it ever had."""

    queue: Queue
    clock: VirtualClock

    def __init__(self) -> None:
        super().__init__()
        self.models: dict[int, JobModel] = {}
        self.believed: list[tuple[int, int]] = []  # job and generation, of every claim ever made
        self.accepted: dict[int, list[int]] = {}  # generations of all writes that were accepted, in order

    @rule()
    def submit(self) -> None:
        """Submit an order."""
        job = self.queue.submit(ORDER, is_confirmed=True)
        self.models[job.number] = JobModel([("queue", 0, self.clock.now(), 0.0)])

    @rule(worker=st.sampled_from(WORKERS))
    def claim(self, worker: str) -> None:
        """Claim a job: succeeds if and only if one is claimable."""
        now = self.clock.now()
        free = {number for number, model in self.models.items() if (at := model.free_from()) is not None and at <= now}
        job = self.queue.claim(worker, LEASE)
        for number in free if job is None else ():
            assert self.queue.get(number).state is JobState.FAILED, "a free job was not given to anybody"
            self.models[number].history.append(("fail", 0, now, 0.0))
        if job is not None:
            assert job.number in free, "it was not free"
            assert job.generation not in self.generations(job.number)
            self.models[job.number].history.append(("claim", job.generation, now, 0.0))
            self.believed.append((job.number, job.generation))
            for number in free - {job.number}:
                if self.queue.get(number).state is JobState.FAILED:
                    self.models[number].history.append(("fail", 0, now, 0.0))

    def generations(self, number: int) -> list[int]:
        """Return all generations of a job."""
        return [generation for word, generation, _, _ in self.models[number].history if word == "claim"]

    @rule(
        data=st.data(), word=st.sampled_from(["beat", "beat", "finish", "fail", "give-back"]), number=st.integers(0, 5)
    )
    def write(self, data: st.DataObject, word: str, number: int) -> None:
        """Let a worker, possibly with a lost lease, change a job that it once claimed."""
        if not self.believed:
            return
        job, generation = data.draw(st.sampled_from(self.believed))
        counts = self.models[job].holder() == generation
        pause = 10.0 * number
        try:
            if word == "beat":
                self.queue.renew_lease(job, generation, LEASE, JobProgress(number))
            else:
                self.queue.change(job, self.ending(word, generation, pause))
        except LeaseLostError:
            assert not counts, "its word counts, and was refused"
        else:
            assert counts, "a write without the lease was accepted"
            self.models[job].history.append((word, generation, self.clock.now(), pause))
            self.accepted.setdefault(job, []).append(generation)

    def ending(self, word: str, generation: int, pause: float) -> object:
        """Return the change that a worker makes."""
        until = self.clock.now() + pause

        def change(job: Job, now: float) -> Job:
            if word == "finish":
                return states.finish(job, generation, now, (), {})
            if word == "fail":
                return states.fail(job, generation, now, "no")
            return states.release(job, generation, now, until)

        return change

    @rule(data=st.data(), word=st.sampled_from(["cancel", "retry"]))
    def cancel_or_retry(self, data: st.DataObject, word: str) -> None:
        """Let the owner cancel or retry a job."""
        if not self.models:
            return
        number = data.draw(st.sampled_from(sorted(self.models)))
        with suppress(JobError):
            if word == "retry":
                self.queue.retry(number)
                self.models[number].history.append(("queue", 0, self.clock.now(), 0.0))
            elif self.queue.get(number).state is not JobState.CANCELLED:
                self.queue.change(number, states.cancel)
                self.models[number].history.append(("cancel", 0, self.clock.now(), 0.0))

    @rule(seconds=st.sampled_from([1.0, 10.0, LEASE - 1, LEASE, 3 * LEASE]))
    def wait(self, seconds: float) -> None:
        """Time passes, and leases of frozen workers expire."""
        self.clock.advance(seconds)

    @invariant()
    def generations_never_go_back(self) -> None:
        """Check that accepted changes of a job have ascending generations."""
        assert all(heard == sorted(heard) for heard in self.accepted.values())

    def teardown(self) -> None:
        """Check that all jobs end, and none is lost."""
        for _ in range(4 * len(self.models) * states.MAX_CRASHES):
            self.clock.advance(3 * LEASE)
            job = self.queue.claim("last", LEASE)
            if job is not None:
                self.queue.change(job.number, self.ending("finish", job.generation, 0))
        ended = {JobState.COMPLETE, JobState.FAILED, JobState.CANCELLED}
        assert {self.queue.get(number).state for number in self.models} <= ended


def run(queue: Queue, clock: VirtualClock, examples: int, empty: object) -> None:
    """Run random workers on a queue, which is emptied before each run."""

    class OnQueue(Workers):
        def __init__(self) -> None:
            super().__init__()
            empty()  # type: ignore[operator]

    OnQueue.queue, OnQueue.clock = queue, clock
    chosen = settings(max_examples=examples, stateful_step_count=40, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(OnQueue, settings=chosen)


def test_state_machine_of_leases() -> None:
    """With the in-memory model."""
    clock = VirtualClock()
    memory_store = InMemoryJobStore(clock)
    run(memory_store, clock, settings().max_examples, memory_store.jobs.clear)  # type: ignore[arg-type]


@contextmanager
def _jobs(url: str, clock: VirtualClock) -> Iterator[JobStore]:
    database = Database(url, clock)
    try:
        database.prepare()
        yield JobStore(database)
    finally:
        database.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_databases_follow_the_state_machine(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """With SQLite and PostgreSQL."""
    server: Postgresql | None = request.getfixturevalue("server") if kind == "postgresql" else None
    clock = VirtualClock()
    with _jobs(server.create_database() if server else file_url(tmp_path / "jobs.sqlite"), clock) as jobs:

        def empty() -> None:
            with jobs.database.writing() as connection:
                connection.execute(JOBS.delete())
                connection.execute(MAILS.delete())

        run(jobs, clock, settings().max_examples // 8, empty)  # type: ignore[arg-type]
