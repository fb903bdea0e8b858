"""For how long jobs are kept, and when their owners are reminded."""

from dataclasses import dataclass, replace
from enum import StrEnum

from unlost.service.jobs.job import ENDED_STATES, Job, JobState
from unlost.service.jobs.states import expire

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
    return {JobState.PENDING: MailKind.CONFIRM, JobState.COMPLETE: MailKind.COMPLETE, JobState.FAILED: MailKind.FAILED}.get(
        after.state
    )  # fmt: skip
