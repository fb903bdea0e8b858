"""The job store: the queue, leases, workers, and the event log of each job.

Each change applies a function of `states` to the locked row of the job.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, insert, or_, select, update

from unlost._core import VERSION
from unlost.errors import BusyError, JobError, UsageError
from unlost.jobs import outbox, states
from unlost.jobs.client_network import OrderOrigin
from unlost.jobs.database import Database
from unlost.jobs.folders import SHORTAGE_MESSAGES
from unlost.jobs.limits import OrderRules, PendingOrders, is_host_below, normalize_host
from unlost.jobs.models import UNFINISHED_STATES, Job, JobProgress, JobState, Order
from unlost.jobs.states import MailKind, RetentionPolicy, mail_for_change
from unlost.jobs.tables import EVENTS, JOBS, MAILS, WORKERS, hash_customer, job_from_row, job_to_row

WORKER_LOST = "lost"
"""Event of a worker whose lease expired."""
_MAX_EVENTS = 1_000  # in the event list of one job
_TURN_GAP = 1 << 20
"""Gap between the queue keys of consecutive jobs. Jobs can be moved in between until the gap is used up."""
_MAX_UNFINISHED = 20  # unfinished jobs of one email address
_WAIT_SECONDS = 3_600.0  # `Retry-After` for an email address with too many unfinished jobs
_BATCH = 500  # rows per query


@dataclass(frozen=True, slots=True)
class JobEvent:
    """An entry of a job's event log.

    Attributes:
        at: Seconds since 1970.
        what: A job state, or `WORKER_LOST`.
        detail: Worker or message.
    """

    at: float
    what: str
    detail: str


def log_change(connection: Connection, before: Job | None, after: Job, now: float) -> None:
    """Log a change of a job's state or generation."""
    if before is not None and (before.state, before.generation) == (after.state, after.generation):
        return
    if before is not None and before.lease_until is not None and before.lease_until < now:
        # The lease had expired, so the job was not processed after that. `seconds_worked` relies on this event.
        lost = {"job": after.number, "at": before.lease_until, "what": WORKER_LOST, "detail": before.worker or ""}
        connection.execute(insert(EVENTS).values(lost))
    detail = after.message or ""
    if after.worker is not None:
        detail = f"{after.worker}, generation {after.generation}"
    values = {"job": after.number, "at": now, "what": after.state.value, "detail": detail[:2_000]}
    connection.execute(insert(EVENTS).values(values))


def seconds_worked(database: Database, job: int) -> float:
    """Return the total time that workers have spent on a job, including earlier leases and attempts.

    For a lost worker, the time until its lease expired counts. The sum is computed from the event log, so retries and
    lost leases do not evade the limit.
    """
    total, started_at = 0.0, None
    query = select(EVENTS.c.at, EVENTS.c.what).where(EVENTS.c.job == job).order_by(EVENTS.c.number)
    with database.reading() as connection:
        for row in connection.execute(query):
            total += 0.0 if started_at is None else row.at - started_at
            started_at = row.at if row.what == JobState.PROCESSING.value else None
        return total + (0.0 if started_at is None else database.now(connection) - started_at)


def list_events(database: Database, job: int) -> list[JobEvent]:
    """Return the last events of a job, oldest first."""
    with database.reading() as connection:
        last = select(EVENTS).where(EVENTS.c.job == job).order_by(EVENTS.c.number.desc()).limit(_MAX_EVENTS)
        rows = connection.execute(last).all()
    return [JobEvent(row.at, row.what, row.detail) for row in reversed(rows)]


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A registered worker.

    Attributes:
        name: Unique name.
        begun: When the worker started, in seconds since 1970.
        seen: When its last heartbeat was received, in seconds since 1970.
        version: Its version of unlost.
        jobs: Numbers of the jobs that it is processing.
    """

    name: str
    begun: float
    seen: float
    version: str
    jobs: tuple[int, ...] = ()


class JobStore:
    """All jobs: queue and history. Each method is one transaction; several processes may use the same database.

    Args:
        database: The job database.
        retention: When jobs are removed and reminders sent.
        max_unfinished: Maximum number of unfinished jobs of one email address.
        allows_private: Whether sites on loopback and private hosts may be ordered.

    Raises:
        UsageError: A job does not exist.
        JobError: The job's state does not allow the operation.
        DatabaseError: See `Database`.
    """

    def __init__(
        self,
        database: Database,
        retention: RetentionPolicy | None = None,
        max_unfinished: int = _MAX_UNFINISHED,
        *,
        allows_private: bool = False,
    ) -> None:
        self.database = database
        self.retention = retention or RetentionPolicy()
        self.rules = OrderRules(database, allows_private=allows_private)
        self._pending = PendingOrders()
        self._max_unfinished = max_unfinished

    def now(self) -> float:
        """Return the time of the database's clock, in seconds since 1970."""
        with self.database.reading() as connection:
            return self.database.now(connection)

    def check_connection(self) -> None:
        """Check the connection to the database.

        Raises:
            DatabaseError: The database cannot be reached.
        """
        with self.database.reading() as connection:
            connection.execute(select(1))

    # Orders

    def submit(self, order: Order, *, is_confirmed: bool = False, origin: OrderOrigin | None = None) -> Job:
        """Store an order.

        Args:
            order: The order.
            is_confirmed: Queue it immediately, without a confirmation by email.
            origin: Client networks that it comes from.

        Raises:
            BusyError: The email address has too many unfinished jobs, or too many orders are unconfirmed.
            UsageError: The email address is unsubscribed.
            BlockedError: The site may not be ordered.
            LimitError: A limit of orders is reached.
        """
        origin = origin or OrderOrigin()
        with self.database.writing() as connection:
            now = self.database.now(connection)
            if is_confirmed:
                self.rules.check_host(connection, normalize_host(order.url))
            else:
                self.database.lock_names(connection, "pending")
                self._check_unfinished(connection, order)
                self.rules.count_order(connection, order, origin.client, now)
                self._admit(connection, order, origin, now)
            job = Job(0, order, JobState.PENDING, now, now)
            if is_confirmed:
                job = states.confirm(job, now, self._last_turn(connection) + _TURN_GAP)
            number = connection.execute(insert(JOBS).values(job_to_row(job, self.retention))).inserted_primary_key
            stored = _with_number(job, number[0] if number else 0)
            if not is_confirmed:
                self._pending.add(connection, stored.number, order, origin)
            self._write_mail(connection, mail_for_change(None, stored), stored, now, fair_key=origin.network)
            log_change(connection, None, stored, now)
            return stored

    def _admit(self, connection: Connection, order: Order, origin: OrderOrigin, now: float) -> None:
        if outbox.is_unsubscribed(connection, hash_customer(order.mail)):
            raise UsageError("mail: this mail address wants no email from this service")
        evicted = self._pending.admit(connection, order, origin, self.rules.read_limits(connection))
        if evicted is not None:
            self._remove(connection, evicted, now)

    def remove_pending(self, *, mail_domain: str = "", like: int | None = None) -> int:
        """Remove unconfirmed orders and return their number.

        Args:
            mail_domain: Only orders with email addresses at this domain.
            like: Only orders from the same network as this job.
        """
        with self.database.reading() as connection:
            numbers = self._pending.list_jobs(connection, mail_domain=mail_domain, like=like)
        count = 0
        for begin in range(0, len(numbers), _BATCH):  # in batches, so that new orders need not wait
            with self.database.writing() as connection:
                count += self._remove_all(connection, numbers[begin : begin + _BATCH])
        return count

    def unsubscribe(self, customer: str) -> None:
        """Unsubscribe the email address with this hash, and remove its unconfirmed orders."""
        with self.database.writing() as connection:
            self.database.lock_names(connection, "pending")
            outbox.add_unsubscribed(connection, customer, self.database.now(connection))
            self._remove_all(connection, self._pending.list_jobs(connection, customer=customer))

    def resubscribe(self, customer: str) -> None:
        """Allow email to the address with this hash again."""
        with self.database.writing() as connection:
            outbox.remove_unsubscribed(connection, customer)

    def is_unsubscribed(self, customer: str) -> bool:
        """Return whether no email may be sent to the address with this hash."""
        with self.database.reading() as connection:
            return outbox.is_unsubscribed(connection, customer)

    def _remove_all(self, connection: Connection, numbers: Sequence[int]) -> int:
        now = self.database.now(connection)
        return sum(self._remove(connection, number, now) for number in numbers)

    def _remove(self, connection: Connection, number: int, now: float) -> bool:
        """Remove an unconfirmed order. Returns False if it was confirmed or removed in the meantime."""
        job = _load_job(connection, number, is_locked=True)
        is_pending = job.state is JobState.PENDING
        if is_pending:
            self._save(connection, job, states.remove(job, now), now)
        return is_pending

    def _check_unfinished(self, connection: Connection, order: Order) -> None:
        of_customer = and_(JOBS.c.customer == hash_customer(order.mail), JOBS.c.state.in_(UNFINISHED_STATES))
        if _count_jobs(connection, of_customer) >= self._max_unfinished:
            raise BusyError(f"{self._max_unfinished} orders for this mail address have not ended yet", _WAIT_SECONDS)

    def get(self, number: int) -> Job:
        """Return a job."""
        with self.database.reading() as connection:
            return _load_job(connection, number)

    def get_with_places(self, numbers: Sequence[int]) -> dict[int, tuple[Job, int | None]]:
        """Return the existing jobs among `numbers`, each with its position in the queue."""
        with self.database.reading() as connection:
            rows = connection.execute(select(JOBS).where(JOBS.c.number.in_(numbers)))
            jobs = [job_from_row(row) for row in rows]
            positions: dict[int, int] = {}
            if any(job.state is JobState.QUEUED for job in jobs):
                queued = select(JOBS.c.number).where(JOBS.c.state == JobState.QUEUED.value)
                in_order = connection.execute(queued.order_by(JOBS.c.turn, JOBS.c.number)).scalars()
                positions = {number: position for position, number in enumerate(in_order, 1)}
        return {job.number: (job, positions.get(job.number)) for job in jobs}

    def change(self, number: int, change: Callable[[Job, float], Job]) -> Job:
        """Replace a job by the result of `change`, which gets the job and the current time.

        The job is locked meanwhile. `change` may be called several times and must not have side effects.
        """

        def apply_change(connection: Connection) -> Job:
            job = _load_job(connection, number, is_locked=True)
            now = self.database.now(connection)
            return self._save(connection, job, change(job, now), now)

        return self.database.write(apply_change)

    def _save(self, connection: Connection, before: Job, after: Job, now: float) -> Job:
        if after != before:
            values = job_to_row(after, self.retention)
            connection.execute(update(JOBS).where(JOBS.c.number == before.number).values(values))
            self._write_mail(connection, mail_for_change(before, after), after, now)
            log_change(connection, before, after, now)
            if before.state is JobState.PENDING and after.state is not JobState.PENDING:
                self._pending.remove(connection, before.number)
            if after.state is JobState.REMOVED:
                # Error messages of mail servers may contain the email address.
                connection.execute(update(MAILS).where(MAILS.c.job == after.number).values(due=None, message=""))
        return after

    def _write_mail(
        self, connection: Connection, kind: MailKind | None, job: Job, now: float, fair_key: str = ""
    ) -> None:
        if kind is not None and job.order.mail:
            fair_key = fair_key or hash_customer(job.order.mail)
            connection.execute(insert(MAILS).values(job=job.number, kind=kind.value, due=now, fair_key=fair_key))

    # The queue

    def confirm(self, number: int) -> Job:
        """Put a confirmed job at the end of the queue."""
        return self._queue(number, states.confirm)

    def retry(self, number: int) -> Job:
        """Put a job that has ended at the end of the queue."""
        return self._queue(number, states.retry)

    def _queue(self, number: int, change: Callable[[Job, float, int], Job]) -> Job:
        with self.database.writing() as connection:
            job = _load_job(connection, number, is_locked=True)
            now = self.database.now(connection)
            return self._save(connection, job, change(job, now, self._last_turn(connection) + _TURN_GAP), now)

    def _last_turn(self, connection: Connection) -> int:
        # Jobs that are processed or paused retain their position, so they count, too.
        has_position = JOBS.c.state.in_((JobState.QUEUED.value, JobState.PROCESSING.value, JobState.PAUSED.value))
        return connection.execute(select(func.max(JOBS.c.turn)).where(has_position)).scalar_one() or 0

    def remind(self, number: int) -> Job:
        """Send a reminder to download a complete job. Unconfirmed orders get no reminders."""
        with self.database.writing() as connection:
            job = _load_job(connection, number, is_locked=True)
            if job.state is not JobState.COMPLETE:
                raise JobError(f"it is {job.state}: there is nothing to remind its owner of")
            self._write_mail(connection, MailKind.PICK_UP_REMINDER, job, self.database.now(connection))
            return job

    def place(self, job: Job) -> int | None:
        """Return the position of a job in the queue, from 1, or None if it is not queued."""
        if job.state is not JobState.QUEUED:
            return None
        with self.database.reading() as connection:
            return 1 + _count_jobs(connection, and_(JOBS.c.state == JobState.QUEUED.value, _is_before(job)))

    def move(self, number: int, place: int) -> Job:
        """Move a queued job to a position in the queue, from 1. A position beyond the end means the end."""
        with self.database.writing() as connection:
            job = _load_job(connection, number, is_locked=True)
            if job.state is not JobState.QUEUED:
                raise JobError(f"it is {job.state}: only what is queued has a place")
            turn = self._turn_at(connection, number, place)
            if turn is None:
                self._renumber_turns(connection)
                turn = self._turn_at(connection, number, place)
            connection.execute(update(JOBS).where(JOBS.c.number == number).values(turn=turn))
            return _load_job(connection, number)

    def _turn_at(self, connection: Connection, number: int, place: int) -> int | None:
        """Return a queue key for a position, or None if there is no gap."""
        others = select(JOBS.c.turn).where(JOBS.c.state == JobState.QUEUED.value, JOBS.c.number != number)
        in_order = others.order_by(JOBS.c.turn, JOBS.c.number)
        offset = max(0, place - 2)
        neighbours = connection.execute(in_order.offset(offset).limit(2)).scalars().all()
        if place <= 1:
            return neighbours[0] - _TURN_GAP if neighbours else 0
        if len(neighbours) < 2:
            return self._last_turn(connection) + _TURN_GAP
        middle = (neighbours[0] + neighbours[1]) // 2
        return middle if neighbours[0] < middle < neighbours[1] else None

    def _renumber_turns(self, connection: Connection) -> None:
        """Assign new queue keys to all queued jobs, with gaps, in the same order."""
        queued = select(JOBS.c.number).where(JOBS.c.state == JobState.QUEUED.value).with_for_update()
        numbers = connection.execute(queued.order_by(JOBS.c.turn, JOBS.c.number)).scalars().all()
        for index, number in enumerate(numbers, 1):
            connection.execute(update(JOBS).where(JOBS.c.number == number).values(turn=index * _TURN_GAP))

    # Workers

    def claim(self, worker: str, seconds: float) -> Job | None:
        """Claim the next job for a worker for a number of seconds. Returns None if no job is available to it."""
        while True:
            with self.database.reading() as connection:
                # Workers that poll an empty queue must not block writers.
                conditions = _claimable_conditions(worker, self.database.now(connection))
                queries = (select(JOBS.c.number).where(each).limit(1) for each in conditions)
                if all(connection.execute(query).first() is None for query in queries):
                    return None
            claimed = self.database.write(lambda connection: self._claim_next(connection, worker, seconds))
            if claimed is None or claimed.state is JobState.PROCESSING:
                return claimed

    def _claim_next(self, connection: Connection, worker: str, seconds: float) -> Job | None:
        now = self.database.now(connection)
        row = next(
            (
                row
                for each in _claimable_conditions(worker, now)
                if (row := _first_in_queue(connection, each)) is not None
            ),
            None,
        )
        if row is None:
            return None
        job = job_from_row(row)
        return self._save(connection, job, states.claim(job, worker, now, seconds), now)

    def renew_lease(self, number: int, generation: int, seconds: float, progress: JobProgress) -> Job:
        """Extend the lease of a job and record its progress.

        Raises:
            LeaseLostError: The worker no longer holds the lease.
        """
        return self.change(number, lambda job, now: states.renew_lease(job, generation, now, seconds, progress))

    def record_worker(self, worker: str) -> None:
        """Register a worker, or record its heartbeat."""
        with self.database.writing() as connection:
            now = self.database.now(connection)
            if not connection.execute(update(WORKERS).where(WORKERS.c.name == worker).values(seen=now)).rowcount:
                connection.execute(insert(WORKERS).values(name=worker, begun=now, seen=now, version=VERSION))

    def remove_worker(self, worker: str) -> None:
        """Unregister a worker."""
        with self.database.writing() as connection:
            connection.execute(WORKERS.delete().where(WORKERS.c.name == worker))

    def workers(self) -> list[WorkerInfo]:
        """Return all registered workers, by name."""
        with self.database.reading() as connection:
            rows = connection.execute(select(WORKERS).order_by(WORKERS.c.name)).all()
            busy = select(JOBS.c.worker, JOBS.c.number).where(JOBS.c.state == JobState.PROCESSING.value)
            jobs: dict[str, list[int]] = {}
            for worker, number in connection.execute(busy.order_by(JOBS.c.number)):
                jobs.setdefault(worker, []).append(number)
        return [WorkerInfo(row.name, row.begun, row.seen, row.version, tuple(jobs.get(row.name, ()))) for row in rows]

    # Lists

    def list_jobs(self, state: JobState | None = None, limit: int = 100, after: int = 0) -> list[Job]:
        """Return jobs, optionally of one state.

        Args:
            state: Only jobs in this state.
            limit: Maximum number of jobs.
            after: For queued jobs, which are in the order of the queue, the number of jobs to skip. Other jobs are
                ordered by number; only those with a higher number are returned.
        """
        query: Select[tuple[object, ...]] = select(JOBS)
        if state is not None:
            query = query.where(JOBS.c.state == state.value)
        with self.database.reading() as connection:
            if state is JobState.QUEUED:
                rows = connection.execute(query.order_by(JOBS.c.turn, JOBS.c.number).offset(after).limit(limit))
            else:
                rows = connection.execute(query.where(JOBS.c.number > after).order_by(JOBS.c.number).limit(limit))
            return [job_from_row(row) for row in rows]

    def history(self) -> Iterator[Job]:
        """Yield all jobs, including removed ones, by number."""
        after = 0
        while batch := self.list_jobs(None, _BATCH, after):
            yield from batch
            after = batch[-1].number

    def filter_removed(self, numbers: Sequence[int]) -> list[int]:
        """Return the removed jobs among `numbers`."""
        query = select(JOBS.c.number).where(JOBS.c.number.in_(numbers), JOBS.c.state == JobState.REMOVED.value)
        with self.database.reading() as connection:
            return list(connection.execute(query).scalars())

    def list_below_domain(self, domain: str) -> list[Job]:
        """Return all jobs of a domain and its subdomains that are not removed, by number."""
        return [
            job for job in self.history() if job.state is not JobState.REMOVED and is_host_below(job.order.url, domain)
        ]

    def recent_durations(self, limit: int = 50) -> list[float]:
        """Return the durations of the last complete jobs in seconds."""
        is_complete = and_(JOBS.c.ended.is_not(None), JOBS.c.begun.is_not(None), JOBS.c.recovered > 0)
        query = select(JOBS.c.ended - JOBS.c.begun).where(is_complete).order_by(JOBS.c.ended.desc()).limit(limit)
        with self.database.reading() as connection:
            return [float(each) for each in connection.execute(query).scalars()]

    def count_by_state(self) -> dict[JobState, int]:
        """Return the number of jobs in each state."""
        with self.database.reading() as connection:
            rows = connection.execute(select(JOBS.c.state, func.count()).group_by(JOBS.c.state)).all()
        return dict.fromkeys(JobState, 0) | {JobState(name): int(count) for name, count in rows}

    def set_shortage_message(self, shortage: str) -> None:
        """Set the message of all queued jobs while there is too little disk space, and clear it afterwards."""
        messages = ("", *SHORTAGE_MESSAGES) if shortage else SHORTAGE_MESSAGES
        is_outdated = and_(
            JOBS.c.state == JobState.QUEUED.value, JOBS.c.message.in_(messages), JOBS.c.message != shortage
        )
        with self.database.reading() as connection:  # workers call this often, and it must not block writers
            if connection.execute(select(JOBS.c.number).where(is_outdated).limit(1)).first() is None:
                return
        with self.database.writing() as connection:
            connection.execute(update(JOBS).where(is_outdated).values(message=shortage))

    # Retention

    def apply_retention(self, limit: int = 100) -> list[Job]:
        """Send due reminders and remove expired jobs, up to `limit`. Returns the removed jobs."""
        removed = []
        with self.database.writing() as connection:
            now = self.database.now(connection)
            due = select(JOBS).where(JOBS.c.due <= now).order_by(JOBS.c.due).limit(limit)
            self.rules.remove_old_counts(connection, now)
            for job in map(job_from_row, connection.execute(due.with_for_update(skip_locked=True)).all()):
                after, mail = self.retention.apply(job, now)
                self._save(connection, job, after, now)
                self._write_mail(connection, mail, after, now)
                if after.state is JobState.REMOVED:
                    removed.append(after)
        return removed


def _load_job(connection: Connection, number: int, *, is_locked: bool = False) -> Job:
    query = select(JOBS).where(JOBS.c.number == number)
    row = connection.execute(query.with_for_update() if is_locked else query).one_or_none()
    if row is None:
        raise UsageError(f"there is no job {number}")
    return job_from_row(row)


def _claimable_conditions(worker: str, now: float) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of claimable jobs in order of precedence; each is served by an index.

    Jobs with an expired lease come first, since their owners have waited longest. Background retries come last, since
    their owners already have a result.
    """
    is_lost = and_(JOBS.c.state == JobState.PROCESSING.value, JOBS.c.lease_until <= now)
    is_allowed = or_(JOBS.c.for_worker.is_(None), JOBS.c.for_worker == worker)
    is_queued = and_(JOBS.c.state == JobState.QUEUED.value, JOBS.c.not_before <= now, is_allowed)
    is_retried = and_(JOBS.c.state == JobState.COMPLETE.value, JOBS.c.not_before > 0, JOBS.c.not_before <= now)
    return is_lost, is_queued, is_retried


def _first_in_queue(connection: Connection, condition: ColumnElement[bool]) -> Row[Any] | None:
    query = select(JOBS).where(condition).order_by(JOBS.c.turn, JOBS.c.number).limit(1)
    return connection.execute(query.with_for_update(skip_locked=True)).one_or_none()


def _count_jobs(connection: Connection, condition: ColumnElement[bool]) -> int:
    return int(connection.execute(select(func.count()).select_from(JOBS).where(condition)).scalar_one())


def _is_before(job: Job) -> ColumnElement[bool]:
    return or_(JOBS.c.turn < job.turn, and_(JOBS.c.turn == job.turn, JOBS.c.number < job.number))


def _with_number(job: Job, number: int) -> Job:
    return replace(job, number=number)
