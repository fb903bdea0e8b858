"""What happened to each job, in order: written in the transaction in which it happened."""

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from unlost.service.jobs.database import Database
from unlost.service.jobs.job import Job, JobState
from unlost.service.jobs.tables import EVENTS

WORKER_LOST = "lost"
"""What is noted of a worker that was not heard of until its lease was over."""

_MAX_EVENTS = 1_000  # of one job that are shown; a job that goes round has no more to say


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that happened. at: seconds since 1970. what: a state, or `lost`. detail: who, or why."""

    at: float
    what: str
    detail: str


def log_change(connection: Connection, before: Job | None, after: Job, now: float) -> None:
    """Note what has become of a job, if that is another state or another worker."""
    if before is not None and (before.state, before.generation) == (after.state, after.generation):
        return
    if before is not None and before.lease_until is not None and before.lease_until < now:
        # Nobody worked on it since: how long it was worked on is counted by what is noted here.
        lost = {"job": after.number, "at": before.lease_until, "what": WORKER_LOST, "detail": before.worker or ""}
        connection.execute(insert(EVENTS).values(lost))
    detail = after.message or ""
    if after.worker is not None:
        detail = f"{after.worker}, generation {after.generation}"
    values = {"job": after.number, "at": now, "what": after.state.value, "detail": detail[:2_000]}
    connection.execute(insert(EVENTS).values(values))


def seconds_worked(database: Database, job: int) -> float:
    """Return for how long workers have had a job so far, all together: also before it was given back, or tried again.

    Of a worker that was lost, its lease counts to the end.
    """
    total, begun = 0.0, None
    chosen = select(EVENTS.c.at, EVENTS.c.what).where(EVENTS.c.job == job).order_by(EVENTS.c.number)
    with database.reading() as connection:
        for row in connection.execute(chosen):
            total += 0.0 if begun is None else row.at - begun
            begun = row.at if row.what == JobState.PROCESSING.value else None
        return total + (0.0 if begun is None else database.now(connection) - begun)


def list_events(database: Database, job: int) -> list[JobEvent]:
    """Return what happened to a job: the last of it, if there is very much."""
    with database.reading() as connection:
        last = select(EVENTS).where(EVENTS.c.job == job).order_by(EVENTS.c.number.desc()).limit(_MAX_EVENTS)
        found = connection.execute(last).all()
    return [JobEvent(row.at, row.what, row.detail) for row in reversed(found)]
