"""Transactional outbox for emails to owners, and the list of unsubscribed email addresses.

An email is stored in the transaction of the change that it reports, so none is forgotten. After a crash, one may be
sent twice.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Select, and_, delete, func, insert, or_, select, update

from unlost.jobs.database import Database
from unlost.jobs.models import Job, JobState
from unlost.jobs.states import MailKind
from unlost.jobs.tables import JOBS, MAILS, UNSUBSCRIBED, hash_customer, job_from_row

_BATCH = 8  # emails claimed at once
_LEASE_SECONDS = 60.0  # lifetime of a claim; the process that holds it renews it
RENEW_SECONDS = 20.0
"""Interval at which claims are renewed."""
_FAIR_SECONDS = 3_600.0  # an email that was sent counts against the share of its key for this long
_MIN_PAUSE, _MAX_PAUSE = 60.0, 14_400.0  # seconds before a retry, doubled each time
_MAX_TRIES = 20  # over about two days
# The job state that each kind reports. An email is dropped if the job has left that state.
_EXPECTED_STATES = {
    MailKind.CONFIRM: JobState.PENDING,
    MailKind.COMPLETE: JobState.COMPLETE,
    MailKind.PICK_UP_REMINDER: JobState.COMPLETE,
    MailKind.FAILED: JobState.FAILED,
}


def add_unsubscribed(connection: Connection, customer: str, now: float) -> None:
    """Stop sending email to the address with this hash."""
    if not is_unsubscribed(connection, customer):
        connection.execute(insert(UNSUBSCRIBED).values(customer=customer, since=now))


def remove_unsubscribed(connection: Connection, customer: str) -> None:
    """Allow email to the address with this hash again."""
    connection.execute(delete(UNSUBSCRIBED).where(UNSUBSCRIBED.c.customer == customer))


def is_unsubscribed(connection: Connection, customer: str) -> bool:
    """Return whether no email may be sent to the address with this hash."""
    query = select(UNSUBSCRIBED.c.customer).where(UNSUBSCRIBED.c.customer == customer)
    return connection.execute(query).first() is not None


@dataclass(frozen=True, slots=True)
class PendingMail:
    """An email to send. `tries` is the number of this attempt, from 1."""

    number: int
    kind: MailKind
    job: Job
    tries: int


@dataclass(frozen=True, slots=True)
class MailLogEntry:
    """An email and its delivery status.

    Attributes:
        job: Number of the job.
        kind: Value of `MailKind`.
        mail: Recipient; empty once the job was removed.
        due: Time of the next attempt, or None.
        tries: Number of attempts so far.
        sent: When it was sent, or None.
        message: The last error.
    """

    job: int
    kind: str
    mail: str
    due: float | None
    tries: int
    sent: float | None
    message: str


class MailOutbox:
    """The outbox in a database. Several processes may send: each email is claimed by one of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, limit: int = _BATCH) -> list[PendingMail]:
        """Claim and return the next emails that are due.

        Every key of the fair queue gets an equal share: the first email of each key precedes the second of any key. A
        claim expires after a minute unless it is renewed, so emails of a killed process are sent by another.
        """
        with self._database.reading() as connection:
            now = self._database.now(connection)
            if connection.execute(select(MAILS.c.number).where(MAILS.c.due <= now).limit(1)).first() is None:
                return []
        claimed = []
        with self._database.writing() as connection:
            self._database.lock_names(connection, "letters")
            now = self._database.now(connection)
            numbers = connection.execute(_select_due(now).limit(limit)).scalars().all()
            due = select(MAILS).where(MAILS.c.number.in_(numbers), MAILS.c.due <= now)
            rows = connection.execute(due.with_for_update(skip_locked=True)).all()
            rows = sorted(rows, key=lambda row: numbers.index(row.number))
            job_rows = connection.execute(select(JOBS).where(JOBS.c.number.in_({row.job for row in rows}))).all()
            jobs = {job.number: job for job in map(job_from_row, job_rows)}
            for row in rows:
                job, kind = jobs.get(row.job), MailKind(row.kind)
                if job is None or not job.order.mail or job.state is not _EXPECTED_STATES.get(kind):
                    continue
                if not is_unsubscribed(connection, hash_customer(job.order.mail)):
                    claimed.append(PendingMail(row.number, kind, job, row.tries + 1))
            claimed_numbers = {mail.number for mail in claimed}
            claim = update(MAILS).where(MAILS.c.number.in_(claimed_numbers))
            connection.execute(claim.values(due=now + _LEASE_SECONDS, tries=MAILS.c.tries + 1))
            dropped = update(MAILS).where(MAILS.c.number.in_({row.number for row in rows} - claimed_numbers))
            connection.execute(dropped.values(due=None, message="no longer so, or not wanted"))
        return claimed

    def renew(self, numbers: Collection[int]) -> None:
        """Renew the claims of the emails with these numbers."""
        if numbers:
            with self._database.writing() as connection:
                until = self._database.now(connection) + _LEASE_SECONDS
                is_claimed = and_(MAILS.c.number.in_(numbers), MAILS.c.due.is_not(None))
                connection.execute(update(MAILS).where(is_claimed).values(due=until))

    def mark_sent(self, mails: Sequence[PendingMail]) -> None:
        """Mark emails as sent."""
        numbers = [mail.number for mail in mails]
        with self._database.writing() as connection:
            now = self._database.now(connection)
            connection.execute(update(MAILS).where(MAILS.c.number.in_(numbers)).values(due=None, sent=now))

    def record_failure(self, mail: PendingMail, message: str, *, is_final: bool) -> bool:
        """Record a failed attempt. Returns whether the email will be retried."""
        is_dropped = is_final or mail.tries >= _MAX_TRIES
        with self._database.writing() as connection:
            now = self._database.now(connection)
            next_attempt = now + min(_MAX_PAUSE, _MIN_PAUSE * 2 ** (mail.tries - 1))
            values = {"due": None if is_dropped else next_attempt, "message": message}
            # An email without a due time belongs to a job that was removed in the meantime.
            is_pending = and_(MAILS.c.number == mail.number, MAILS.c.due.is_not(None))
            connection.execute(update(MAILS).where(is_pending).values(values))
        return not is_dropped

    def log(self, job: int | None = None, limit: int = 200) -> list[MailLogEntry]:
        """Return the last emails, of one job or of all, newest first."""
        query = select(MAILS, JOBS.c.customer_order).join(JOBS, JOBS.c.number == MAILS.c.job, isouter=True)
        if job is not None:
            query = query.where(MAILS.c.job == job)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(MAILS.c.number.desc()).limit(limit)).all()
        return [
            MailLogEntry(
                row.job, row.kind, (row.customer_order or {}).get("mail", ""), row.due, row.tries, row.sent, row.message
            )
            for row in rows
        ]

    def count_waiting(self) -> int:
        """Return the number of emails that are still to be sent."""
        with self._database.reading() as connection:
            query = select(func.count()).select_from(MAILS).where(MAILS.c.due.is_not(None))
            return int(connection.execute(query).scalar_one())


def _select_due(now: float) -> Select[tuple[int]]:
    """Select the numbers of due emails in the order of the fair queue.

    Emails that were recently sent, are claimed, or wait for a retry count against the share of their key.
    """
    is_counted = or_(MAILS.c.due.is_not(None), MAILS.c.sent >= now - _FAIR_SECONDS)
    fair_rank = func.row_number().over(partition_by=MAILS.c.fair_key, order_by=MAILS.c.number).label("fair_rank")
    ranked = select(MAILS.c.number, MAILS.c.due, fair_rank).where(is_counted).subquery()
    query = select(ranked.c.number).where(ranked.c.due <= now)
    return query.order_by(ranked.c.fair_rank, ranked.c.due, ranked.c.number)
