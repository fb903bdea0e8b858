"""The outbox.

Emails to owners, written in the transaction of the change that they are about, and unsubscribed addresses.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Select, and_, delete, func, insert, or_, select, update

from unlost.jobs.database import Database
from unlost.jobs.models import Job, JobState
from unlost.jobs.states import MailKind
from unlost.jobs.tables import JOBS, LETTERS, UNSUBSCRIBED, hash_customer, job_from_row


def add_unsubscribed(connection: Connection, customer: str, now: float) -> None:
    """Send no email to a mail address from now on. customer: its hash."""
    if not is_unsubscribed(connection, customer):
        connection.execute(insert(UNSUBSCRIBED).values(customer=customer, since=now))


def remove_unsubscribed(connection: Connection, customer: str) -> None:
    """Send email to a mail address again. customer: its hash."""
    connection.execute(delete(UNSUBSCRIBED).where(UNSUBSCRIBED.c.customer == customer))


def is_unsubscribed(connection: Connection, customer: str) -> bool:
    """Return whether nothing is sent to a mail address. customer: its hash."""
    chosen = select(UNSUBSCRIBED.c.customer).where(UNSUBSCRIBED.c.customer == customer)
    return connection.execute(chosen).first() is not None


_BATCH = 8  # letters that are taken together
_LEASE_SECONDS = 60.0  # for which a claim holds; the process that claimed it renews it
RENEW_SECONDS = 20.0
"""Between two renewals of claims."""
_FAIR_SECONDS = 3_600.0  # for which an email that was sent counts against the share of its key
_FIRST_PAUSE, _LAST_PAUSE = 60.0, 14_400.0  # before it is tried again: doubled each time
_MAX_TRIES = 20  # about two days
# Letters about what is no longer so are not sent: the state that each is about.
_EXPECTED_STATES = {
    MailKind.CONFIRM: JobState.PENDING,
    MailKind.COMPLETE: JobState.COMPLETE,
    MailKind.PICK_UP_REMINDER: JobState.COMPLETE,
    MailKind.FAILED: JobState.FAILED,
}


@dataclass(frozen=True, slots=True)
class PendingMail:
    """A letter to be sent. tries: which attempt this is, from 1 on."""

    number: int
    kind: MailKind
    job: Job
    tries: int


@dataclass(frozen=True, slots=True)
class MailLogEntry:
    """A letter, and what became of it. due: when it is tried next, None if it is not; sent: when it was.

    mail: whom it was for; nothing once the job was removed. message: what went wrong last.
    """

    job: int
    kind: str
    mail: str
    due: float | None
    tries: int
    sent: float | None
    message: str


class MailOutbox:
    """The letters in a database. Several may send: each letter is taken by one, who says what came of it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, limit: int = _BATCH) -> list[PendingMail]:
        """Claim the next emails to send, if any, and return them.

        Every key of the fair queue gets an equal share: the first email of each key goes before the second of any.
        Claims of a process that was killed end after a minute, unless `renew` is called.
        """
        with self._database.reading() as connection:
            now = self._database.now(connection)
            if connection.execute(select(LETTERS.c.number).where(LETTERS.c.due <= now).limit(1)).first() is None:
                return []
        found = []
        with self._database.writing() as connection:
            self._database.lock_names(connection, "letters")
            now = self._database.now(connection)
            numbers = connection.execute(_select_due(now).limit(limit)).scalars().all()
            due = select(LETTERS).where(LETTERS.c.number.in_(numbers), LETTERS.c.due <= now)
            rows = connection.execute(due.with_for_update(skip_locked=True)).all()
            rows = sorted(rows, key=lambda row: numbers.index(row.number))
            about = connection.execute(select(JOBS).where(JOBS.c.number.in_({row.job for row in rows}))).all()
            jobs = {job.number: job for job in map(job_from_row, about)}
            for row in rows:
                job, kind = jobs.get(row.job), MailKind(row.kind)
                if job is None or not job.order.mail or job.state is not _EXPECTED_STATES.get(kind):
                    continue
                if not is_unsubscribed(connection, hash_customer(job.order.mail)):
                    found.append(PendingMail(row.number, kind, job, row.tries + 1))
            taken = {letter.number for letter in found}
            mine = update(LETTERS).where(LETTERS.c.number.in_(taken))
            connection.execute(mine.values(due=now + _LEASE_SECONDS, tries=LETTERS.c.tries + 1))
            others = update(LETTERS).where(LETTERS.c.number.in_({row.number for row in rows} - taken))
            connection.execute(others.values(due=None, message="no longer so, or not wanted"))
        return found

    def renew(self, numbers: Collection[int]) -> None:
        """Renew claims. numbers: of emails that are being sent."""
        if numbers:
            with self._database.writing() as connection:
                until = self._database.now(connection) + _LEASE_SECONDS
                is_mine = and_(LETTERS.c.number.in_(numbers), LETTERS.c.due.is_not(None))
                connection.execute(update(LETTERS).where(is_mine).values(due=until))

    def mark_sent(self, mails: Sequence[PendingMail]) -> None:
        """Note that letters were sent."""
        numbers = [letter.number for letter in mails]
        with self._database.writing() as connection:
            now = self._database.now(connection)
            connection.execute(update(LETTERS).where(LETTERS.c.number.in_(numbers)).values(due=None, sent=now))

    def record_failure(self, mail: PendingMail, message: str, *, is_final: bool) -> bool:
        """Note that a letter could not be sent; return whether it is tried again."""
        is_over = is_final or mail.tries >= _MAX_TRIES
        with self._database.writing() as connection:
            now = self._database.now(connection)
            later = now + min(_LAST_PAUSE, _FIRST_PAUSE * 2 ** (mail.tries - 1))
            values = {"due": None if is_over else later, "message": message}
            # One that is not due at all any more is of a job that was removed meanwhile.
            is_it = and_(LETTERS.c.number == mail.number, LETTERS.c.due.is_not(None))
            connection.execute(update(LETTERS).where(is_it).values(values))
        return not is_over

    def log(self, job: int | None = None, limit: int = 200) -> list[MailLogEntry]:
        """Return the last letters, of one job or of all, newest first."""
        chosen = select(LETTERS, JOBS.c.customer_order).join(JOBS, JOBS.c.number == LETTERS.c.job, isouter=True)
        if job is not None:
            chosen = chosen.where(LETTERS.c.job == job)
        with self._database.reading() as connection:
            found = connection.execute(chosen.order_by(LETTERS.c.number.desc()).limit(limit)).all()
        return [
            MailLogEntry(
                row.job, row.kind, (row.customer_order or {}).get("mail", ""), row.due, row.tries, row.sent, row.message
            )
            for row in found
        ]

    def count_waiting(self) -> int:
        """Return how many are still to be sent."""
        with self._database.reading() as connection:
            chosen = select(func.count()).select_from(LETTERS).where(LETTERS.c.due.is_not(None))
            return int(connection.execute(chosen).scalar_one())


def _select_due(now: float) -> Select[tuple[int]]:
    """Return the numbers of emails that are due, in the order of the fair queue.

    Emails that were sent lately, are claimed or wait for another attempt count against the share of their key.
    """
    counts = or_(LETTERS.c.due.is_not(None), LETTERS.c.sent >= now - _FAIR_SECONDS)
    place = func.row_number().over(partition_by=LETTERS.c.fair_key, order_by=LETTERS.c.number).label("place")
    ranked = select(LETTERS.c.number, LETTERS.c.due, place).where(counts).subquery()
    chosen = select(ranked.c.number).where(ranked.c.due <= now)
    return chosen.order_by(ranked.c.place, ranked.c.due, ranked.c.number)
