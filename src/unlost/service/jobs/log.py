"""What happened to each job, in order: written in the transaction in which it happened."""

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from unlost.service.jobs.database import Database
from unlost.service.jobs.job import Job
from unlost.service.jobs.tables import EVENTS

_MOST = 1_000  # of one job that are shown; a job that goes round has no more to say


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. at: seconds since 1970. what: a state, or `claimed`. detail: who, or why."""

    at: float
    what: str
    detail: str


def note_change(connection: Connection, before: Job | None, after: Job, now: float) -> None:
    """Note what has become of a job, if that is another state or another worker."""
    if before is not None and (before.state, before.generation) == (after.state, after.generation):
        return
    detail = after.message or ""
    if after.worker is not None:
        detail = f"{after.worker}, generation {after.generation}"
    values = {"job": after.number, "at": now, "what": after.state.value, "detail": detail[:2_000]}
    connection.execute(insert(EVENTS).values(values))


def events_of(database: Database, job: int) -> list[Event]:
    """Return what happened to a job: the last of it, if there is very much."""
    with database.reading() as connection:
        last = select(EVENTS).where(EVENTS.c.job == job).order_by(EVENTS.c.number.desc()).limit(_MOST)
        found = connection.execute(last).all()
    return [Event(row.at, row.what, row.detail) for row in reversed(found)]
