"""The state machine of jobs, as pure functions: no clock, no database, no disk.

    pending ──confirm──► queued ──claim──► processing ──finish──► complete ──┐
       │                   ▲  ▲               │  │ ▲                          ├──expire──► removed
       │                   │  └──release──────┘  │ └─claim, once the lease    │
       │                   └────────retry────────┼── has expired              │
       └──expire──► removed                      └──fail, cancel──► failed, cancelled

    queued, processing ──pause──► paused ──resume──► queued
    complete ──claim──► processing ──finish, release, fail, cancel──► complete, while what failed is retried

A worker's change is accepted only with the generation of its current lease. Each claim creates a new generation (a
fencing token), so at most one worker can change a job, even if earlier workers are still running.

The module also defines the retention policy, and which emails a change of state triggers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from unlost.errors import JobError, LeaseLostError
from unlost.jobs.models import ENDED_STATES, UNFINISHED_STATES, Job, JobPackage, JobProgress, JobStage, JobState

MAX_CRASHES = 5
"""A job fails after this many consecutive workers were lost without progress, so that a job that crashes its worker is
not claimed forever."""
_DAY = 86_400.0


def confirm(job: Job, now: float, turn: int) -> Job:
    """Put a job into the queue. A job that was confirmed already is returned unchanged.

    Raises:
        JobError: The job was removed.
    """
    if job.state is JobState.PENDING:
        return replace(_in_state(job, JobState.QUEUED, now), confirmed=now, turn=turn)
    if job.state is JobState.REMOVED:
        raise JobError("it was not confirmed in time, or has been removed: order it again")
    return job


def is_claimable(job: Job, worker: str, now: float) -> bool:
    """Return whether a worker may claim a job: it is queued for it, is due for a retry, or its lease has expired."""
    if job.state is JobState.PROCESSING:
        return job.lease_until is not None and job.lease_until <= now
    if job.state is JobState.COMPLETE:
        return 0 < job.not_before <= now
    return job.state is JobState.QUEUED and job.not_before <= now and job.for_worker in (None, worker)


def claim(job: Job, worker: str, now: float, seconds: float) -> Job:
    """Assign a claimable job to a worker for a number of seconds, or fail it after too many lost workers."""
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
    """Check that a worker holds the current lease of a job.

    Raises:
        LeaseLostError: It does not, or the job is not being processed.
    """
    if job.state is not JobState.PROCESSING:
        raise LeaseLostError(f"job {job.number} is {job.state}: nobody is to work on it")
    if job.generation != generation:
        raise LeaseLostError(f"job {job.number} was given to another worker: the lease had run out")


def renew_lease(job: Job, generation: int, now: float, seconds: float, progress: JobProgress) -> Job:
    """Extend a lease and record the progress. An expired lease is extended, too, unless the job was claimed again."""
    check_lease(job, generation)
    before = job.progress
    has_progressed = (progress.stage, progress.recovered + progress.missing) != (
        before.stage, before.recovered + before.missing
    )  # fmt: skip
    crashes = 0 if has_progressed else job.crashes
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
    """Return a job to its position in the queue, because its worker stops or archives are unavailable.

    Args:
        job: The job.
        generation: Generation of the worker's lease.
        now: Seconds since 1970.
        not_before: Earliest time of the next claim.
        rounds: Rounds without anything new.
        progress: The final progress, if it is newer than that of the last heartbeat.
        message: Why the job waits, for its owner.
    """
    check_lease(job, generation)
    if job.is_retried:
        return _complete_as_before(job, now, not_before or now, rounds)
    released = _without_lease(_in_state(job, JobState.QUEUED, now))
    progress = progress or job.progress
    return replace(released, not_before=not_before, rounds=rounds, crashes=0, progress=progress, message=message)


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
    """Complete a job.

    Args:
        job: The job.
        generation: Generation of the worker's lease.
        now: Seconds since 1970.
        packages: Files to download.
        figures: Statistics of the recovery.
        message: Remark about the result.
        progress: The final progress, if it is newer than that of the last heartbeat.
        retry_at: When failed resources are retried in the background; 0 for never.
        rounds: Rounds without anything new.
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
    """Fail a job that cannot be recovered."""
    check_lease(job, generation)
    if job.is_retried:
        return _complete_as_before(job, now)
    return replace(_without_lease(_in_state(job, JobState.FAILED, now)), ended=now, message=message)


def cancel(job: Job, now: float) -> Job:
    """Cancel a job that has not ended. Its worker is notified at the next heartbeat.

    Raises:
        JobError: The job has ended.
    """
    if job.state is JobState.CANCELLED:
        return job
    if job.state not in UNFINISHED_STATES:
        raise JobError(f"it is {job.state}: only what has not ended can be cancelled")
    if job.is_retried:
        return _complete_as_before(job, now)
    return replace(_without_lease(_in_state(job, JobState.CANCELLED, now)), ended=now, message="cancelled")


def pause(job: Job, now: float) -> Job:
    """Pause a queued or running job. Its worker is notified at the next heartbeat; recovered files are retained."""
    if job.state is JobState.PAUSED:
        return job
    if job.state not in (JobState.QUEUED, JobState.PROCESSING):
        raise JobError(f"it is {job.state}: only what waits or is worked on can be paused")
    return _without_lease(_in_state(job, JobState.PAUSED, now))


def resume(job: Job, now: float) -> Job:
    """Return a paused job to its position in the queue."""
    if job.state is not JobState.PAUSED:
        raise JobError(f"it is {job.state}: only what is paused can be resumed")
    return replace(_in_state(job, JobState.QUEUED, now), not_before=0.0, crashes=0)


def remove(job: Job, now: float) -> Job:
    """Remove a job in any state. An unfinished one is cancelled first."""
    is_active = job.state in (JobState.QUEUED, JobState.PROCESSING, JobState.PAUSED)
    return expire(cancel(job, now) if is_active else job, now)


def retry(job: Job, now: float, turn: int) -> Job:
    """Queue a job again that has ended. Recovered files are retained; failed and new resources are requested.

    Its figures are cleared until it is complete again, since only complete jobs have figures. A job that was cancelled
    before its confirmation cannot be retried: the client has the link, but need not control the email address.
    """
    if job.state not in ENDED_STATES:
        raise JobError(f"it is {job.state}: only what has ended, and is still kept, can be tried again")
    if job.confirmed is None:
        raise JobError("it was cancelled before it was confirmed: order it again")
    queued = replace(_in_state(job, JobState.QUEUED, now), ended=None, message="", turn=turn, crashes=0, rounds=0)
    progress = replace(job.progress, stage=JobStage.RECOVERING)
    return replace(queued, not_before=0.0, progress=progress, figures={})


def assign(job: Job, worker: str | None) -> Job:
    """Restrict a job to one worker, or allow any with None."""
    if job.state not in (JobState.PENDING, JobState.QUEUED):
        raise JobError(f"it is {job.state}: only what waits can be given to a worker")
    return replace(job, for_worker=worker, not_before=0.0)


def pick_up(job: Job, now: float) -> Job:
    """Record the first complete download."""
    return job if job.picked_up is not None or job.state is not JobState.COMPLETE else replace(job, picked_up=now)


def expire(job: Job, now: float) -> Job:
    """Delete the personal data and packages of a job. Figures and result are retained for the history."""
    if job.state in (JobState.QUEUED, JobState.PROCESSING, JobState.PAUSED):
        raise JobError(f"it is {job.state}: cancel it first")
    if job.state is JobState.REMOVED:
        return job
    message = job.message if job.state in ENDED_STATES else "not confirmed"
    anonymous = replace(job.order, mail="", name="")
    return replace(_in_state(job, JobState.REMOVED, now), order=anonymous, packages=(), message=message)


def _complete_as_before(job: Job, now: float, retry_at: float = 0.0, rounds: int = 0) -> Job:
    """Return a job in the state complete, with the packages of the previous round."""
    done = _without_lease(_in_state(job, JobState.COMPLETE, now))
    return replace(done, not_before=retry_at, rounds=rounds, crashes=0)


def _count_recovered(figures: Mapping[str, object]) -> int:
    resources = figures.get("resources")
    return int(resources["recovered"]) if isinstance(resources, Mapping) else 0


def _in_state(job: Job, state: JobState, now: float) -> Job:
    return replace(job, state=state, changed=now, reminders=0)


def _without_lease(job: Job) -> Job:
    return replace(job, worker=None, lease_until=None)


class MailKind(StrEnum):
    """Kinds of emails to owners."""

    CONFIRM = "confirm"
    CONFIRM_REMINDER = "confirm-reminder"
    """No longer sent, but present in logs of earlier versions."""
    COMPLETE = "complete"
    PICK_UP_REMINDER = "pick-up-reminder"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Retention and reminders. All times are in days.

    Attributes:
        pending: How long an unconfirmed job is retained.
        ended: How long a job is retained after it has ended.
        pick_up_reminders: Delay of each reminder after completion, ascending. Unconfirmed orders get none.
    """

    pending: float = 2.0
    ended: float = 28.0
    pick_up_reminders: tuple[float, ...] = (7.0, 21.0)

    def removal_time(self, job: Job) -> float | None:
        """Return when a job is removed unless its state changes, or None if it is not removed."""
        if job.state is JobState.PENDING:
            return job.changed + self.pending * _DAY
        return job.changed + self.ended * _DAY if job.state in ENDED_STATES else None

    def next_action_time(self, job: Job) -> float | None:
        """Return the time of the next reminder or removal, or None."""
        times = [time for time in (self.removal_time(job), self._reminder_time(job)) if time is not None]
        return min(times, default=None)

    def _reminder_time(self, job: Job) -> float | None:
        days = self.pick_up_reminders
        if job.state is not JobState.COMPLETE or job.picked_up is not None or job.reminders >= len(days):
            return None
        return job.changed + days[job.reminders] * _DAY

    def apply(self, job: Job, now: float) -> tuple[Job, MailKind | None]:
        """Apply the policy to a job.

        If several reminders are overdue, because the service was down, only one is sent.

        Returns:
            The job, changed if a reminder or the removal is due, and the email to send, if any.
        """
        removal_time = self.removal_time(job)
        if removal_time is not None and removal_time <= now:
            return expire(job, now), None
        mail = None
        while (reminder := self._reminder_time(job)) is not None and reminder <= now:
            mail = MailKind.PICK_UP_REMINDER
            job = replace(job, reminders=job.reminders + 1)
        return job, mail


def mail_for_change(before: Job | None, after: Job) -> MailKind | None:
    """Return the email that a change of state triggers, or None."""
    if before is not None and before.state is after.state:
        return None
    if before is not None and before.is_retried and after.state is JobState.COMPLETE:
        # An owner who has downloaded the packages gets an email only if there are more files now. Others got one
        # already.
        return MailKind.COMPLETE if before.picked_up is not None and after.picked_up is None else None
    mail_kinds = {
        JobState.PENDING: MailKind.CONFIRM,
        JobState.COMPLETE: MailKind.COMPLETE,
        JobState.FAILED: MailKind.FAILED,
    }
    return mail_kinds.get(after.state)
