"""For how long jobs are kept, and when their owners are reminded."""

from dataclasses import dataclass, replace
from enum import StrEnum

from unlost.service.jobs.job import ENDED, Job, State
from unlost.service.jobs.states import expire

_DAY = 86_400.0


class Letter(StrEnum):
    """What owners are written about."""

    CONFIRM = "confirm"
    CONFIRM_REMINDER = "confirm-reminder"
    """No longer sent; logs of earlier versions have it."""
    COMPLETE = "complete"
    PICK_UP_REMINDER = "pick-up-reminder"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Terms:
    """In days. pending, ended: for how long a job is kept that is not confirmed, or that has ended.

    pick_up_reminders: after how many days each reminder goes out, in order. Unconfirmed orders get none.
    """

    pending: float = 2.0
    ended: float = 28.0
    pick_up_reminders: tuple[float, ...] = (7.0, 21.0)

    def until(self, job: Job) -> float | None:
        """Return when a job is removed; None if it is not, as it is."""
        if job.state is State.PENDING:
            return job.changed + self.pending * _DAY
        return job.changed + self.ended * _DAY if job.state in ENDED else None

    def next(self, job: Job) -> float | None:
        """Return when there is something to do next about a job that stays as it is."""
        times = [time for time in (self.until(job), self._reminder(job)) if time is not None]
        return min(times, default=None)

    def _reminder(self, job: Job) -> float | None:
        days = self.pick_up_reminders
        if job.state is not State.COMPLETE or job.picked_up is not None or job.reminders >= len(days):
            return None
        return job.changed + days[job.reminders] * _DAY

    def due(self, job: Job, now: float) -> tuple[Job, Letter | None]:
        """Return what becomes of a job by now, and what its owner is written; the job itself if nothing does.

        Of reminders that were missed, because nothing ran for a week, one goes out.
        """
        until = self.until(job)
        if until is not None and until <= now:
            return expire(job, now), None
        letter = None
        while (reminder := self._reminder(job)) is not None and reminder <= now:
            letter = Letter.PICK_UP_REMINDER
            job = replace(job, reminders=job.reminders + 1)
        return job, letter


def letter_for(before: Job | None, after: Job) -> Letter | None:
    """Return what the owner is written when a job changes so."""
    if before is not None and before.state is after.state:
        return None
    if before is not None and before.is_retried and after.state is State.COMPLETE:
        # An owner who has picked it up gets an email if there is more now; others get that anyway.
        return Letter.COMPLETE if before.picked_up is not None and after.picked_up is None else None
    return {State.PENDING: Letter.CONFIRM, State.COMPLETE: Letter.COMPLETE, State.FAILED: Letter.FAILED}.get(
        after.state
    )  # fmt: skip
