"""The job store: queue, retention, emails; with SQLite and PostgreSQL."""

import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.jobs.in_memory_store import ORDER
from tests.virtual_clock import VirtualClock
from unlost.errors import BusyError, DatabaseError, JobError, LeaseLostError, UsageError
from unlost.http import RateLimitState, admit
from unlost.jobs import (
    AdminTokens,
    Database,
    DatabaseLimitStore,
    Job,
    JobPackage,
    JobProgress,
    JobState,
    JobStore,
    MailKind,
    MailOutbox,
    states,
)
from unlost.registry import Archive, ArchiveKind, RateLimit, RequestKind

DAY = 86_400.0


@pytest.fixture
def clock() -> VirtualClock:
    """Return a virtual clock."""
    return VirtualClock()


@pytest.fixture
def jobs(url: str, clock: VirtualClock) -> Iterator[JobStore]:
    """Create an empty store."""
    database = Database(url, clock)
    database.prepare()
    yield JobStore(database, max_unfinished=10_000)
    database.close()


def queue_jobs(jobs: JobStore, count: int) -> list[int]:
    """Queue some jobs and return their numbers."""
    return [jobs.submit(ORDER, is_confirmed=True).number for _ in range(count)]


def order(jobs: JobStore) -> list[int]:
    """Return the queued jobs in order."""
    return [job.number for job in jobs.list_jobs(JobState.QUEUED)]


def test_job_is_stored_unchanged(jobs: JobStore, clock: VirtualClock) -> None:
    """Every field is read as it was written, in all states."""
    order = replace(ORDER, name="Jürgen 😀", archives=("a", "b"), first="20100101000000", windows=True)
    job = jobs.submit(order)
    assert (job.state, job.order) == (JobState.PENDING, order)
    assert jobs.get(job.number) == job
    assert jobs.confirm(job.number).state is JobState.QUEUED
    claimed = jobs.claim("w", 60)
    assert claimed is not None
    beaten = jobs.renew_lease(job.number, claimed.generation, 60, JobProgress(1, 2, 3))
    assert jobs.get(job.number) == beaten
    package = JobPackage("zip", "g1/packages/site.zip", 5, "ab")
    done = jobs.change(job.number, lambda job, now: states.finish(job, 1, now, (package,), {"a": [1]}, "well"))
    assert jobs.get(job.number) == done
    assert (done.packages, done.figures, done.message, done.worker) == ((package,), {"a": [1]}, "well", None)
    with pytest.raises(UsageError, match="no job 99"):
        jobs.get(99)
    assert clock.slept == []


def test_queue_positions_and_moves(jobs: JobStore) -> None:
    """A job has the position that it was moved to, and is claimed in that order."""
    numbers = queue_jobs(jobs, 5)
    assert [jobs.place(jobs.get(number)) for number in numbers] == [1, 2, 3, 4, 5]
    requested = list(numbers)
    # So many between the same two jobs that their priorities have no room between them.
    for step in range(60):
        moved, place = requested[-1 - step % 2], 2 + step % 3
        jobs.move(moved, place)
        requested.remove(moved)
        requested.insert(place - 1, moved)
        assert order(jobs) == requested
    jobs.move(requested[2], 1)
    requested.insert(0, requested.pop(2))
    jobs.move(requested[1], 99)
    requested.append(requested.pop(1))
    assert order(jobs) == requested
    found = [job.number for _ in requested if (job := jobs.claim("w", 60)) is not None]
    assert found == requested
    with pytest.raises(JobError, match="only what is queued"):
        jobs.move(requested[0], 1)


def test_released_job_has_its_old_position(jobs: JobStore) -> None:
    """It precedes jobs that were queued while it was processed."""
    (first,) = queue_jobs(jobs, 1)
    claimed = jobs.claim("w", 60)
    assert claimed is not None
    later = queue_jobs(jobs, 2)
    jobs.change(first, lambda job, now: states.release(job, 1, now))
    assert order(jobs) == [first, *later]


def test_assigned_job_is_claimed_by_its_worker_only(jobs: JobStore, clock: VirtualClock) -> None:
    """The assigned worker claims it first, but not before its start time."""
    first, second = queue_jobs(jobs, 2)
    jobs.change(first, lambda job, _: states.assign(job, "mine"))
    other = jobs.claim("other", 60)
    assert other is not None
    assert other.number == second
    assert jobs.claim("other", 60) is None
    mine = jobs.claim("mine", 60)
    assert mine is not None
    assert mine.number == first
    jobs.change(first, lambda job, now: states.release(job, 1, now, now + 100))
    assert jobs.claim("mine", 60) is None
    clock.advance(101)
    assert jobs.claim("anybody", 6_000) is not None


def test_job_is_claimed_once(jobs: JobStore) -> None:
    """Concurrent claims return different jobs, and all of them."""
    numbers = queue_jobs(jobs, 40)
    barrier = threading.Barrier(4)

    def claims(worker: int) -> list[int]:
        barrier.wait()
        return [job.number for _ in range(12) if (job := jobs.claim(str(worker), 60)) is not None]

    with ThreadPoolExecutor(4) as pool:
        found = [number for each in pool.map(claims, range(4)) for number in each]
    assert sorted(found) == numbers


def test_unfinished_orders_are_limited(url: str) -> None:
    """Unfinished orders of an email address are limited, regardless of letter case; finished ones do not count."""
    database = Database(url)
    database.prepare()
    jobs = JobStore(database, max_unfinished=2)
    first = jobs.submit(ORDER)
    jobs.submit(replace(ORDER, mail=ORDER.mail.upper()))
    with pytest.raises(BusyError, match="2 orders"):
        jobs.submit(ORDER)
    jobs.submit(replace(ORDER, mail="else@example.org"))
    jobs.change(first.number, states.cancel)
    jobs.submit(ORDER)
    database.close()


def test_failed_resources_are_retried_while_packages_are_offered(jobs: JobStore, clock: VirtualClock) -> None:
    """After new orders. The job is then complete again, and the owner is notified if there are new files."""
    outbox = MailOutbox(jobs.database)
    packages = (JobPackage("zip", "g1/packages/site.zip", 1, "x"),)

    def finish(job: Job, recovered: int, retry_at: float) -> Job:
        figures = {"resources": {"recovered": recovered}}
        return jobs.change(
            job.number,
            lambda found, now: states.finish(found, job.generation, now, packages, figures, retry_at=retry_at),
        )

    def claimed() -> Job:
        found = jobs.claim("w", 60)
        assert found is not None
        return found

    number = queue_jobs(jobs, 1)[0]
    assert finish(claimed(), 5, clock.now() + 600).is_offered
    outbox.mark_sent(outbox.claim())
    assert jobs.claim("w", 60) is None, "it is not time yet"
    clock.advance(600)
    other = queue_jobs(jobs, 1)[0]
    assert claimed().number == other, "new orders go first"
    retried = claimed()
    assert (retried.number, retried.is_retried, retried.is_offered) == (number, True, True)
    for end in (
        lambda job, now: states.fail(job, job.generation, now, "no"),
        states.cancel,
        lambda job, now: states.release(job, job.generation, now),
    ):
        ended = jobs.change(number, end)
        assert (ended.state, ended.is_offered, ended.worker) == (JobState.COMPLETE, True, None)
        jobs.change(number, lambda job, now: replace(job, not_before=now))
        retried = claimed()
    assert outbox.claim() == []
    jobs.change(number, lambda job, now: replace(job, picked_up=now))
    same = finish(retried, 5, clock.now())
    assert same.picked_up is not None
    assert outbox.claim() == [], "nothing new"
    more = finish(claimed(), 6, 0.0)
    assert (more.picked_up, more.not_before) == (None, 0.0)
    assert [mail.kind for mail in outbox.claim()] == [MailKind.COMPLETE]
    assert jobs.claim("w", 60) is None


def test_retention_and_reminders(jobs: JobStore, clock: VirtualClock) -> None:
    """Unconfirmed orders are removed after 48 hours without a reminder, complete jobs after four weeks."""
    outbox = MailOutbox(jobs.database)

    def sent() -> list[tuple[int, MailKind]]:
        found: list[tuple[int, MailKind]] = []
        while some := outbox.claim():
            outbox.mark_sent(some)
            found += [(mail.job.number, mail.kind) for mail in some]
        return found

    def pass_days(days: float) -> list[Job]:
        clock.advance(days * DAY)
        return jobs.apply_retention()

    pending, done = jobs.submit(ORDER).number, queue_jobs(jobs, 1)[0]
    claimed = jobs.claim("w", 60)
    assert claimed is not None
    jobs.change(done, lambda job, now: states.finish(job, 1, now, (JobPackage("zip", "f", 1, "x"),), {}))
    assert sent() == [(pending, MailKind.CONFIRM), (done, MailKind.COMPLETE)]
    assert pass_days(1.9) == []
    assert [job.number for job in pass_days(0.1)] == [pending]
    assert sent() == []
    assert pass_days(5.1) == []
    assert sent() == [(done, MailKind.PICK_UP_REMINDER)]
    assert pass_days(3) == []
    assert sent() == []
    removed = jobs.get(pending)
    assert (removed.state, removed.order.mail, removed.order.name, removed.message) == (
        JobState.REMOVED, "", "", "not confirmed"
    )  # fmt: skip
    jobs.change(done, states.pick_up)
    assert pass_days(12) == []
    assert sent() == []
    assert [job.number for job in pass_days(6)] == [done]
    assert jobs.get(done).packages == ()
    with pytest.raises(JobError):
        jobs.confirm(pending)
    assert pass_days(400) == []


def test_outdated_emails_are_dropped(jobs: JobStore, clock: VirtualClock) -> None:
    """An email about a state that the job has left is dropped; a failed one is retried at growing intervals."""
    outbox = MailOutbox(jobs.database)
    gone = jobs.submit(ORDER)
    jobs.change(gone.number, states.cancel)
    assert outbox.claim() == []
    jobs.submit(ORDER)
    pauses = []
    while True:
        some = outbox.claim()
        if not some:
            clock.advance(30)
            continue
        (mail,) = some
        assert outbox.claim() == [], "a claim is exclusive"
        pauses.append(clock.now())
        if not outbox.record_failure(mail, "no", is_final=mail.tries >= 5):
            break
    gaps = [later - sooner for sooner, later in itertools.pairwise(pauses)]
    assert gaps == [60, 120, 240, 480]
    clock.advance(10 * DAY)
    assert outbox.claim() == []
    assert outbox.count_waiting() == 0


def test_claim_of_a_dead_sender_expires(jobs: JobStore, clock: VirtualClock) -> None:
    """An email that was claimed but not sent is claimed again after some minutes."""
    outbox = MailOutbox(jobs.database)
    jobs.submit(ORDER)
    assert len(outbox.claim()) == 1
    assert outbox.claim() == []
    clock.advance(901)
    (again,) = outbox.claim()
    assert again.tries == 2


def test_rate_limits_hold_for_all_processes(jobs: JobStore) -> None:
    """Concurrent processes share one limit and lose no update."""
    archive = Archive(
        "a", "A", ArchiveKind.MEMENTO, timemap="http://a/", quotas=(RateLimit(100, DAY, (RequestKind.INDEX,), "test"),)
    )
    stores = [DatabaseLimitStore(jobs.database) for _ in range(4)]

    def ask(number: int) -> bool:
        def counted(ledger: RateLimitState) -> tuple[RateLimitState, bool]:
            after, admission = admit(ledger, archive, RequestKind.INDEX, 1_700_000_000.0, 1.0)
            return after, admission.reason is None

        return stores[number % 4].update("a", counted)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(ask, range(150))) == 100
    assert not stores[0].is_known_empty("a")
    assert stores[1].update("b", lambda ledger: (ledger, ledger)) == RateLimitState()
    assert stores[1].is_known_empty("b")


def test_request_rates_hold_for_all_processes(jobs: JobStore) -> None:
    """Four clients together send no more requests in any ten seconds than one may, and hardly fewer."""
    most, seconds = 12, 10.0
    archive = Archive(
        "a",
        "A",
        ArchiveKind.MEMENTO,
        timemap="http://a/",
        limits=(RateLimit(most, seconds, (RequestKind.REPLAY,), "test"),),
    )
    stores = [DatabaseLimitStore(jobs.database) for _ in range(4)]
    sent: list[float] = []
    for tick in range(240):
        now = 1_700_000_000.0 + tick / 4

        def counted(ledger: RateLimitState, now: float = now) -> tuple[RateLimitState, bool]:
            after, admission = admit(ledger, archive, RequestKind.REPLAY, now, 1.0)
            return after, admission.reason is None

        sent += [now for store in stores if store.update("a", counted)]
    assert max(sum(begin <= time < begin + seconds for time in sent) for begin in sent) <= most
    assert len(sent) >= 0.8 * most * 60 / seconds


def test_admin_tokens(jobs: JobStore) -> None:
    """A token is valid until it is revoked; its stored hash is not."""
    tokens = AdminTokens(jobs.database)
    mine, yours = tokens.create("me"), tokens.create("you")
    assert (tokens.find_name(mine), tokens.find_name(yours), tokens.find_name("x")) == ("me", "you", None)
    assert tokens.revoke("me") == 1
    assert (tokens.find_name(mine), tokens.find_name(yours)) == (None, "you")
    assert tokens.list_names() == ["you"]


def test_lease_of_an_earlier_generation_is_rejected(jobs: JobStore, clock: VirtualClock) -> None:
    """Changes by a worker that lost its lease are rejected."""
    (number,) = queue_jobs(jobs, 1)
    jobs.claim("a", 60)
    clock.advance(61)
    assert jobs.claim("b", 60) is not None
    before = jobs.get(number)
    with pytest.raises(LeaseLostError):
        jobs.change(number, lambda job, now: states.finish(job, 1, now, (), {}))
    with pytest.raises(LeaseLostError):
        jobs.change(number, lambda job, now: states.fail(job, 1, now, "no"))
    with pytest.raises(LeaseLostError):
        jobs.change(number, lambda job, now: states.release(job, 1, now))
    with pytest.raises(LeaseLostError):
        jobs.renew_lease(number, 1, 60, JobProgress(1))
    assert jobs.get(number) == before


def test_unreachable_database_raises_database_error() -> None:
    """The error does not contain the password."""
    database = Database("postgresql://me:secret-word@127.0.0.1:1/none")
    with pytest.raises(DatabaseError) as raised:
        database.prepare()
    assert "secret-word" not in f"{raised.value} {database!r}"
    for url in ("mysql://a/b", "nonsense", "postgresql://host"):
        with pytest.raises(UsageError):
            Database(url)
