"""The store of jobs: the queue, leases, workers and the event log of each job.

Every change is a function of `states`, applied to the locked row of the job.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, insert, or_, select, update

from unlost._core import VERSION
from unlost.errors import BusyError, JobError, UsageError
from unlost.jobs import outbox, states
from unlost.jobs.database import Database
from unlost.jobs.folders import SHORTAGE_MESSAGES
from unlost.jobs.limits import OrderOrigin, OrderRules, PendingOrders, is_host_below, normalize_host
from unlost.jobs.models import UNFINISHED_STATES, Job, JobProgress, JobState, Order
from unlost.jobs.states import MailKind, RetentionPolicy, mail_for_change
from unlost.jobs.tables import EVENTS, JOBS, LETTERS, WORKERS, hash_customer, job_from_row, job_to_row

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


_TURN_GAP = 1 << 20
"""Between the turns of two jobs that follow each other: so many can be put in between before all get new ones."""
_MAX_UNFINISHED = 20  # orders of one mail address: more are no lost sites of one person
_WAIT_SECONDS = 3_600.0
_BATCH = 500  # rows that are read at once


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker. begun, seen: when it began and was last heard of, seconds since 1970. jobs: the numbers of its own."""

    name: str
    begun: float
    seen: float
    version: str
    jobs: tuple[int, ...] = ()


class JobStore:
    """All jobs. Each method is one transaction; several processes may use the same database.

    terms: for how long jobs are kept. max_unfinished: orders of one mail address that have not ended.
    allows_private: whether sites of loopback and private hosts may be ordered.

    Raises UsageError for a job that does not exist, JobError for what cannot be done with it, and as `Database` does.
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
        """Return the time that counts, in seconds since 1970."""
        with self.database.reading() as connection:
            return self.database.now(connection)

    def check_connection(self) -> None:
        """Raise DatabaseError if the database cannot be reached."""
        with self.database.reading() as connection:
            connection.execute(select(1))

    # Orders

    def submit(self, order: Order, *, is_confirmed: bool = False, origin: OrderOrigin | None = None) -> Job:
        """Take an order. is_confirmed: it goes into the queue at once. origin: where it comes from.

        Raises BusyError if its customer has too many, UsageError if its customer wants no email, and as `Rules.take`
        and `PendingOrders.admit` do.
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
            taken = _with_number(job, number[0] if number else 0)
            if not is_confirmed:
                self._pending.add(connection, taken.number, order, origin)
            self._write_mail(connection, mail_for_change(None, taken), taken, now, fair_key=origin.network)
            log_change(connection, None, taken, now)
            return taken

    def _admit(self, connection: Connection, order: Order, origin: OrderOrigin, now: float) -> None:
        if outbox.is_unsubscribed(connection, hash_customer(order.mail)):
            raise UsageError("mail: this mail address wants no email from this service")
        crowded_out = self._pending.admit(connection, order, origin, self.rules.read_limits(connection))
        if crowded_out is not None:
            self._remove(connection, crowded_out, now)

    def remove_pending(self, *, mail_domain: str = "", like: int | None = None) -> int:
        """Remove unconfirmed orders; return how many.

        Args:
            mail_domain: Only those with mail addresses at this domain.
            like: Only those from the same network as this job.
        """
        with self.database.reading() as connection:
            numbers = self._pending.list_jobs(connection, mail_domain=mail_domain, like=like)
        count = 0
        for begin in range(0, len(numbers), _BATCH):  # a part at a time, so that orders do not wait for all of it
            with self.database.writing() as connection:
                count += self._remove_all(connection, numbers[begin : begin + _BATCH])
        return count

    def unsubscribe(self, customer: str) -> None:
        """Send no email to a mail address any more, and remove its unconfirmed orders. customer: its hash."""
        with self.database.writing() as connection:
            self.database.lock_names(connection, "pending")
            outbox.add_unsubscribed(connection, customer, self.database.now(connection))
            self._remove_all(connection, self._pending.list_jobs(connection, customer=customer))

    def resubscribe(self, customer: str) -> None:
        """Send email to a mail address again. customer: its hash."""
        with self.database.writing() as connection:
            outbox.remove_unsubscribed(connection, customer)

    def is_unsubscribed(self, customer: str) -> bool:
        """Return whether no email is sent to a mail address. customer: its hash."""
        with self.database.reading() as connection:
            return outbox.is_unsubscribed(connection, customer)

    def _remove_all(self, connection: Connection, numbers: Sequence[int]) -> int:
        now = self.database.now(connection)
        return sum(self._remove(connection, number, now) for number in numbers)

    def _remove(self, connection: Connection, number: int, now: float) -> bool:
        """Remove an unconfirmed order; return False if it was confirmed or removed meanwhile."""
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
        """Return those of several jobs that there are, each with its place in the queue."""
        with self.database.reading() as connection:
            found = connection.execute(select(JOBS).where(JOBS.c.number.in_(numbers)))
            jobs = [job_from_row(row) for row in found]
            places: dict[int, int] = {}
            if any(job.state is JobState.QUEUED for job in jobs):
                waiting = select(JOBS.c.number).where(JOBS.c.state == JobState.QUEUED.value)
                in_order = connection.execute(waiting.order_by(JOBS.c.turn, JOBS.c.number)).scalars()
                places = {number: place for place, number in enumerate(in_order, 1)}
        return {job.number: (job, places.get(job.number)) for job in jobs}

    def change(self, number: int, change: Callable[[Job, float], Job]) -> Job:
        """Replace a job by what a function makes of it and of the time; nobody else changes it meanwhile.

        It may be called several times, of which one counts, and must do nothing else.
        """

        def changed(connection: Connection) -> Job:
            job = _load_job(connection, number, is_locked=True)
            now = self.database.now(connection)
            return self._save(connection, job, change(job, now), now)

        return self.database.write(changed)

    def _save(self, connection: Connection, before: Job, after: Job, now: float) -> Job:
        if after != before:
            values = job_to_row(after, self.retention)
            connection.execute(update(JOBS).where(JOBS.c.number == before.number).values(values))
            self._write_mail(connection, mail_for_change(before, after), after, now)
            log_change(connection, before, after, now)
            if before.state is JobState.PENDING and after.state is not JobState.PENDING:
                self._pending.remove(connection, before.number)
            if after.state is JobState.REMOVED:
                # What mail servers say of an address has it in it.
                connection.execute(update(LETTERS).where(LETTERS.c.job == after.number).values(due=None, message=""))
        return after

    def _write_mail(
        self, connection: Connection, kind: MailKind | None, job: Job, now: float, fair_key: str = ""
    ) -> None:
        if kind is not None and job.order.mail:
            fair_key = fair_key or hash_customer(job.order.mail)
            connection.execute(insert(LETTERS).values(job=job.number, kind=kind.value, due=now, fair_key=fair_key))

    # The queue

    def confirm(self, number: int) -> Job:
        """Put a job at the end of the queue."""
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
        # Also of those that are worked on: they keep their turns if they are given back.
        waiting = JOBS.c.state.in_((JobState.QUEUED.value, JobState.PROCESSING.value, JobState.PAUSED.value))
        return connection.execute(select(func.max(JOBS.c.turn)).where(waiting)).scalar_one() or 0

    def remind(self, number: int) -> Job:
        """Remind the owner to pick up what is complete. Unconfirmed orders get no reminders."""
        with self.database.writing() as connection:
            job = _load_job(connection, number, is_locked=True)
            if job.state is not JobState.COMPLETE:
                raise JobError(f"it is {job.state}: there is nothing to remind its owner of")
            self._write_mail(connection, MailKind.PICK_UP_REMINDER, job, self.database.now(connection))
            return job

    def place(self, job: Job) -> int | None:
        """Return how many jobs go before one, and one more; None if it does not wait."""
        if job.state is not JobState.QUEUED:
            return None
        with self.database.reading() as connection:
            return 1 + _count_jobs(connection, and_(JOBS.c.state == JobState.QUEUED.value, _is_before(job)))

    def move(self, number: int, place: int) -> Job:
        """Give a waiting job another place in the queue, from 1 on; beyond its end is its end."""
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
        """Return a turn between those around a place; None if there is no room."""
        others = select(JOBS.c.turn).where(JOBS.c.state == JobState.QUEUED.value, JOBS.c.number != number)
        in_order = others.order_by(JOBS.c.turn, JOBS.c.number)
        before = max(0, place - 2)
        around = connection.execute(in_order.offset(before).limit(2)).scalars().all()
        if place <= 1:
            return around[0] - _TURN_GAP if around else 0
        if len(around) < 2:
            return self._last_turn(connection) + _TURN_GAP
        middle = (around[0] + around[1]) // 2
        return middle if around[0] < middle < around[1] else None

    def _renumber_turns(self, connection: Connection) -> None:
        """Give all that wait new turns, in the same order, with room between them."""
        waiting = select(JOBS.c.number).where(JOBS.c.state == JobState.QUEUED.value).with_for_update()
        numbers = connection.execute(waiting.order_by(JOBS.c.turn, JOBS.c.number)).scalars().all()
        for index, number in enumerate(numbers, 1):
            connection.execute(update(JOBS).where(JOBS.c.number == number).values(turn=index * _TURN_GAP))

    # Workers

    def claim(self, worker: str, seconds: float) -> Job | None:
        """Give a worker the next job for so many seconds; None if there is none that it may have now."""
        while True:
            with self.database.reading() as connection:
                # Most who look while there is nothing must not keep others from writing.
                free = _claimable_conditions(worker, self.database.now(connection))
                if all(connection.execute(select(JOBS.c.number).where(each).limit(1)).first() is None for each in free):
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
        """Note that a worker lives. Raises LeaseLostError if the job is not its own any more."""
        return self.change(number, lambda job, now: states.renew_lease(job, generation, now, seconds, progress))

    def record_worker(self, worker: str) -> None:
        """Note that a worker is there."""
        with self.database.writing() as connection:
            now = self.database.now(connection)
            if not connection.execute(update(WORKERS).where(WORKERS.c.name == worker).values(seen=now)).rowcount:
                connection.execute(insert(WORKERS).values(name=worker, begun=now, seen=now, version=VERSION))

    def remove_worker(self, worker: str) -> None:
        """Note that a worker has ended."""
        with self.database.writing() as connection:
            connection.execute(WORKERS.delete().where(WORKERS.c.name == worker))

    def workers(self) -> list[WorkerInfo]:
        """Return all workers that have not said that they end, by name."""
        with self.database.reading() as connection:
            found = connection.execute(select(WORKERS).order_by(WORKERS.c.name)).all()
            busy = select(JOBS.c.worker, JOBS.c.number).where(JOBS.c.state == JobState.PROCESSING.value)
            jobs: dict[str, list[int]] = {}
            for worker, number in connection.execute(busy.order_by(JOBS.c.number)):
                jobs.setdefault(worker, []).append(number)
        return [WorkerInfo(row.name, row.begun, row.seen, row.version, tuple(jobs.get(row.name, ()))) for row in found]

    # Lists

    def list_jobs(self, state: JobState | None = None, limit: int = 100, after: int = 0) -> list[Job]:
        """Return jobs in a state, or all: those that wait in their order, others by number, behind `after`."""
        chosen: Select[tuple[object, ...]] = select(JOBS)
        if state is not None:
            chosen = chosen.where(JOBS.c.state == state.value)
        with self.database.reading() as connection:
            if state is JobState.QUEUED:
                found = connection.execute(chosen.order_by(JOBS.c.turn, JOBS.c.number).offset(after).limit(limit))
            else:
                found = connection.execute(chosen.where(JOBS.c.number > after).order_by(JOBS.c.number).limit(limit))
            return [job_from_row(row) for row in found]

    def history(self) -> Iterator[Job]:
        """Yield all jobs there ever were, by number, some at a time."""
        after = 0
        while part := self.list_jobs(None, _BATCH, after):
            yield from part
            after = part[-1].number

    def filter_removed(self, numbers: Sequence[int]) -> list[int]:
        """Return those of several jobs that were removed."""
        chosen = select(JOBS.c.number).where(JOBS.c.number.in_(numbers), JOBS.c.state == JobState.REMOVED.value)
        with self.database.reading() as connection:
            return list(connection.execute(chosen).scalars())

    def list_below_domain(self, domain: str) -> list[Job]:
        """Return all jobs of a domain and all below it that have not been removed, by number."""
        return [
            job for job in self.history() if job.state is not JobState.REMOVED and is_host_below(job.order.url, domain)
        ]

    def recent_durations(self, limit: int = 50) -> list[float]:
        """Return how many seconds the last jobs took that are complete, from their beginning to their end."""
        is_done = and_(JOBS.c.ended.is_not(None), JOBS.c.begun.is_not(None), JOBS.c.recovered > 0)
        chosen = select(JOBS.c.ended - JOBS.c.begun).where(is_done).order_by(JOBS.c.ended.desc()).limit(limit)
        with self.database.reading() as connection:
            return [float(each) for each in connection.execute(chosen).scalars()]

    def count_by_state(self) -> dict[JobState, int]:
        """Return how many jobs are in which state."""
        with self.database.reading() as connection:
            found = connection.execute(select(JOBS.c.state, func.count()).group_by(JOBS.c.state)).all()
        return dict.fromkeys(JobState, 0) | {JobState(name): int(count) for name, count in found}

    def set_shortage_message(self, shortage: str) -> None:
        """Set the message of all queued jobs while there is too little disk space; remove it when there is enough."""
        messages = ("", *SHORTAGE_MESSAGES) if shortage else SHORTAGE_MESSAGES
        waiting = and_(JOBS.c.state == JobState.QUEUED.value, JOBS.c.message.in_(messages), JOBS.c.message != shortage)
        with self.database.reading() as connection:  # workers call it often, and must not delay writers
            if connection.execute(select(JOBS.c.number).where(waiting).limit(1)).first() is None:
                return
        with self.database.writing() as connection:
            connection.execute(update(JOBS).where(waiting).values(message=shortage))

    # What time does to jobs

    def apply_retention(self, limit: int = 100) -> list[Job]:
        """Remind owners, and remove jobs whose time is over; return those that were removed, some at a time."""
        removed = []
        with self.database.writing() as connection:
            now = self.database.now(connection)
            due = select(JOBS).where(JOBS.c.due <= now).order_by(JOBS.c.due).limit(limit)
            self.rules.remove_old_counts(connection, now)
            for job in map(job_from_row, connection.execute(due.with_for_update(skip_locked=True)).all()):
                after, letter = self.retention.apply(job, now)
                self._save(connection, job, after, now)
                self._write_mail(connection, letter, after, now)
                if after.state is JobState.REMOVED:
                    removed.append(after)
        return removed


def _load_job(connection: Connection, number: int, *, is_locked: bool = False) -> Job:
    chosen = select(JOBS).where(JOBS.c.number == number)
    row = connection.execute(chosen.with_for_update() if is_locked else chosen).one_or_none()
    if row is None:
        raise UsageError(f"there is no job {number}")
    return job_from_row(row)


def _claimable_conditions(worker: str, now: float) -> tuple[ColumnElement[bool], ...]:
    """Return what may be claimed: first what was begun, since its owner waits longest; each has its index.

    What is retried in the background comes last: its owner has something already.
    """
    is_lost = and_(JOBS.c.state == JobState.PROCESSING.value, JOBS.c.lease_until <= now)
    is_mine = or_(JOBS.c.for_worker.is_(None), JOBS.c.for_worker == worker)
    is_queued = and_(JOBS.c.state == JobState.QUEUED.value, JOBS.c.not_before <= now, is_mine)
    is_retried = and_(JOBS.c.state == JobState.COMPLETE.value, JOBS.c.not_before > 0, JOBS.c.not_before <= now)
    return is_lost, is_queued, is_retried


def _first_in_queue(connection: Connection, condition: ColumnElement[bool]) -> Row[Any] | None:
    chosen = select(JOBS).where(condition).order_by(JOBS.c.turn, JOBS.c.number).limit(1)
    return connection.execute(chosen.with_for_update(skip_locked=True)).one_or_none()


def _count_jobs(connection: Connection, condition: ColumnElement[bool]) -> int:
    return int(connection.execute(select(func.count()).select_from(JOBS).where(condition)).scalar_one())


def _is_before(job: Job) -> ColumnElement[bool]:
    return or_(JOBS.c.turn < job.turn, and_(JOBS.c.turn == job.turn, JOBS.c.number < job.number))


def _with_number(job: Job, number: int) -> Job:
    return replace(job, number=number)
