"""The state machine of jobs, as pure functions: no clock, no database, no disk.

    pending ──confirm──► queued ──claim──► processing ──finish──► complete ──┐
       │                   ▲  ▲               │  │ ▲                          ├──expire──► removed
       │                   │  └──release──────┘  │ └─claim, once the lease    │
       │                   └────────retry────────┼── has expired              │
       └──expire──► removed                      └──fail, cancel──► failed, cancelled

    queued, processing ──pause──► paused ──resume──► queued
    complete ──claim──► processing ──finish, release, fail, cancel──► complete, while what failed is retried

A worker's change counts only with the generation of its lease. Each claim creates a new generation, so at most one is
valid at a time, whatever earlier workers still do. Also: retention (when jobs are removed) and the emails that changes
trigger.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from unlost.errors import JobError, LeaseLostError
from unlost.jobs.models import ENDED_STATES, UNFINISHED_STATES, Job, JobPackage, JobProgress, JobStage, JobState

MAX_CRASHES = 5
"""Workers that may be lost with a job, one after the other and without getting on, before it is called failed: what
ends every process that touches it must not go round for ever."""


def confirm(job: Job, now: float, turn: int) -> Job:
    """Put a job into the queue; one that was confirmed already stays as it is. Raises JobError if it is over."""
    if job.state is JobState.PENDING:
        return replace(_in_state(job, JobState.QUEUED, now), confirmed=now, turn=turn)
    if job.state is JobState.REMOVED:
        raise JobError("it was not confirmed in time, or has been removed: order it again")
    return job


def is_claimable(job: Job, worker: str, now: float) -> bool:
    """Return whether a worker may claim a job: it waits, or the lease of whoever had it is over."""
    if job.state is JobState.PROCESSING:
        return job.lease_until is not None and job.lease_until <= now
    if job.state is JobState.COMPLETE:
        return 0 < job.not_before <= now
    return job.state is JobState.QUEUED and job.not_before <= now and job.for_worker in (None, worker)


def claim(job: Job, worker: str, now: float, seconds: float) -> Job:
    """Give a free job to a worker for so many seconds; or call it failed, if too many were lost with it."""
    if not is_claimable(job, worker, now):
        raise JobError("it is not free")
    if job.state is JobState.PROCESSING and job.crashes + 1 >= MAX_CRASHES:
        if job.is_retried:
            return _complete_as_before(job, now)
        message = f"{MAX_CRASHES} workers were lost with it, one after the other"
        return replace(_without_lease(_in_state(job, JobState.FAILED, now)), message=message, ended=now)
    return replace(
        job,
        state=JobState.PROCESSING,
        changed=job.changed if job.state is JobState.PROCESSING else now,
        begun=now if job.begun is None else job.begun,
        crashes=job.crashes + (job.state is JobState.PROCESSING),
        generation=job.generation + 1,
        worker=worker,
        lease_until=now + seconds,
        for_worker=None,
        message="" if job.state is JobState.QUEUED else job.message,
    )


def check_lease(job: Job, generation: int) -> None:
    """Raise LeaseLostError unless a worker's word counts: it has the last lease, and the job is still to be done."""
    if job.state is not JobState.PROCESSING:
        raise LeaseLostError(f"job {job.number} is {job.state}: nobody is to work on it")
    if job.generation != generation:
        raise LeaseLostError(f"job {job.number} was given to another worker: the lease had run out")


def renew_lease(job: Job, generation: int, now: float, seconds: float, progress: JobProgress) -> Job:
    """Note that a worker lives and how far it is; its lease begins anew, also if it had run out and nobody came."""
    check_lease(job, generation)
    before = job.progress
    has_got_on = (progress.stage, progress.recovered + progress.missing) != (
        before.stage, before.recovered + before.missing
    )  # fmt: skip
    crashes = 0 if has_got_on else job.crashes
    return replace(job, lease_until=now + seconds, progress=progress, crashes=crashes)


def release(
    job: Job,
    generation: int,
    now: float,
    not_before: float = 0.0,
    rounds: int = 0,
    progress: JobProgress | None = None,
    message: str = "",
) -> Job:
    """Put a job back into the queue, at its old place: its worker ends, or archives want to be left alone.

    message: why the job waits, for its owner.
    """
    check_lease(job, generation)
    if job.is_retried:
        return _complete_as_before(job, now, not_before or now, rounds)
    back = _without_lease(_in_state(job, JobState.QUEUED, now))
    progress = progress or job.progress
    return replace(back, not_before=not_before, rounds=rounds, crashes=0, progress=progress, message=message)


def finish(
    job: Job,
    generation: int,
    now: float,
    packages: tuple[JobPackage, ...],
    figures: Mapping[str, object],
    message: str = "",
    progress: JobProgress | None = None,
    retry_at: float = 0.0,
    rounds: int = 0,
) -> Job:
    """End a job well. progress: how far it is, where that is known better than at the last beat.

    retry_at: when what failed is retried in the background; 0 if it is not. rounds: that brought nothing new.
    """
    check_lease(job, generation)
    done = _without_lease(_in_state(job, JobState.COMPLETE, now))
    ended = replace(
        done, packages=packages, figures=figures, message=message, progress=progress or job.progress,
        ended=job.ended if job.is_retried else now,
    )  # fmt: skip
    has_more = not job.is_retried or _count_recovered(figures) > _count_recovered(job.figures)
    picked_up = None if has_more else job.picked_up
    return replace(ended, crashes=0, rounds=rounds, not_before=retry_at, picked_up=picked_up)


def fail(job: Job, generation: int, now: float, message: str) -> Job:
    """End a job that cannot be done."""
    check_lease(job, generation)
    if job.is_retried:
        return _complete_as_before(job, now)
    return replace(_without_lease(_in_state(job, JobState.FAILED, now)), ended=now, message=message)


def cancel(job: Job, now: float) -> Job:
    """End a job that nobody wants any more; its worker is told at its next beat. Raises JobError if it has ended."""
    if job.state is JobState.CANCELLED:
        return job
    if job.state not in UNFINISHED_STATES:
        raise JobError(f"it is {job.state}: only what has not ended can be cancelled")
    if job.is_retried:
        return _complete_as_before(job, now)
    return replace(_without_lease(_in_state(job, JobState.CANCELLED, now)), ended=now, message="cancelled")


def pause(job: Job, now: float) -> Job:
    """Hold a job that waits or is worked on; its worker is told at its next beat, and what it recovered is kept."""
    if job.state is JobState.PAUSED:
        return job
    if job.state not in (JobState.QUEUED, JobState.PROCESSING):
        raise JobError(f"it is {job.state}: only what waits or is worked on can be paused")
    return _without_lease(_in_state(job, JobState.PAUSED, now))


def resume(job: Job, now: float) -> Job:
    """Put a job that was paused back into the queue, at its old place."""
    if job.state is not JobState.PAUSED:
        raise JobError(f"it is {job.state}: only what is paused can be resumed")
    return replace(_in_state(job, JobState.QUEUED, now), not_before=0.0, crashes=0)


def remove(job: Job, now: float) -> Job:
    """Forget a job whatever its state: what is not over is cancelled first."""
    is_going = job.state in (JobState.QUEUED, JobState.PROCESSING, JobState.PAUSED)
    return expire(cancel(job, now) if is_going else job, now)


def retry(job: Job, now: float, turn: int) -> Job:
    """Queue a job again that has ended: what came back is kept, what failed or is new is asked for.

    Its figures are gone until it is complete again: whoever has some came to a good end. What was cancelled before it
    was confirmed is not queued: whoever has the link may not have the mail address.
    """
    if job.state not in ENDED_STATES:
        raise JobError(f"it is {job.state}: only what has ended, and is still kept, can be tried again")
    if job.confirmed is None:
        raise JobError("it was cancelled before it was confirmed: order it again")
    again = replace(_in_state(job, JobState.QUEUED, now), ended=None, message="", turn=turn, crashes=0, rounds=0)
    progress = replace(job.progress, stage=JobStage.RECOVERING)
    return replace(again, not_before=0.0, progress=progress, figures={})


def assign(job: Job, worker: str | None) -> Job:
    """Say that only this worker may begin it, or anybody."""
    if job.state not in (JobState.PENDING, JobState.QUEUED):
        raise JobError(f"it is {job.state}: only what waits can be given to a worker")
    return replace(job, for_worker=worker, not_before=0.0)


def pick_up(job: Job, now: float) -> Job:
    """Note that it was downloaded."""
    return job if job.picked_up is not None or job.state is not JobState.COMPLETE else replace(job, picked_up=now)


def expire(job: Job, now: float) -> Job:
    """Forget whose it was, and everything that can be picked up; what came of it stays, for history."""
    if job.state in (JobState.QUEUED, JobState.PROCESSING, JobState.PAUSED):
        raise JobError(f"it is {job.state}: cancel it first")
    if job.state is JobState.REMOVED:
        return job
    message = job.message if job.state in ENDED_STATES else "not confirmed"
    forgotten = replace(job.order, mail="", name="")
    return replace(_in_state(job, JobState.REMOVED, now), order=forgotten, packages=(), message=message)


def _complete_as_before(job: Job, now: float, retry_at: float = 0.0, rounds: int = 0) -> Job:
    """Return a job that is complete as it was before the last round in the background."""
    done = _without_lease(_in_state(job, JobState.COMPLETE, now))
    return replace(done, not_before=retry_at, rounds=rounds, crashes=0)


def _count_recovered(figures: Mapping[str, object]) -> int:
    resources = figures.get("resources")
    return int(resources["recovered"]) if isinstance(resources, Mapping) else 0


def _in_state(job: Job, state: JobState, now: float) -> Job:
    return replace(job, state=state, changed=now, reminders=0)


def _without_lease(job: Job) -> Job:
    return replace(job, worker=None, lease_until=None)


_DAY = 86_400.0


class MailKind(StrEnum):
    """What owners are written about."""

    CONFIRM = "confirm"
    CONFIRM_REMINDER = "confirm-reminder"
    """No longer sent; logs of earlier versions have it."""
    COMPLETE = "complete"
    PICK_UP_REMINDER = "pick-up-reminder"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """In days. pending, ended: for how long a job is kept that is not confirmed, or that has ended.

    pick_up_reminders: after how many days each reminder goes out, in order. Unconfirmed orders get none.
    """

    pending: float = 2.0
    ended: float = 28.0
    pick_up_reminders: tuple[float, ...] = (7.0, 21.0)

    def removal_time(self, job: Job) -> float | None:
        """Return when a job is removed; None if it is not, as it is."""
        if job.state is JobState.PENDING:
            return job.changed + self.pending * _DAY
        return job.changed + self.ended * _DAY if job.state in ENDED_STATES else None

    def next_action_time(self, job: Job) -> float | None:
        """Return when there is something to do next about a job that stays as it is."""
        times = [time for time in (self.removal_time(job), self._reminder_time(job)) if time is not None]
        return min(times, default=None)

    def _reminder_time(self, job: Job) -> float | None:
        days = self.pick_up_reminders
        if job.state is not JobState.COMPLETE or job.picked_up is not None or job.reminders >= len(days):
            return None
        return job.changed + days[job.reminders] * _DAY

    def apply(self, job: Job, now: float) -> tuple[Job, MailKind | None]:
        """Return what becomes of a job by now, and what its owner is written; the job itself if nothing does.

        Of reminders that were missed, because nothing ran for a week, one goes out.
        """
        until = self.removal_time(job)
        if until is not None and until <= now:
            return expire(job, now), None
        letter = None
        while (reminder := self._reminder_time(job)) is not None and reminder <= now:
            letter = MailKind.PICK_UP_REMINDER
            job = replace(job, reminders=job.reminders + 1)
        return job, letter


def mail_for_change(before: Job | None, after: Job) -> MailKind | None:
    """Return what the owner is written when a job changes so."""
    if before is not None and before.state is after.state:
        return None
    if before is not None and before.is_retried and after.state is JobState.COMPLETE:
        # An owner who has picked it up gets an email if there is more now; others get that anyway.
        return MailKind.COMPLETE if before.picked_up is not None and after.picked_up is None else None
    return {JobState.PENDING: MailKind.CONFIRM, JobState.COMPLETE: MailKind.COMPLETE,
    JobState.FAILED: MailKind.FAILED}.get(
        after.state
    )  # fmt: skip
