"""Jobs in the database: every change is one of `states`, made to the row of the job while nobody else can."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, insert, or_, select, update

from unlost._core import VERSION
from unlost.errors import BusyError, JobError, UsageError
from unlost.service.jobs import states, unsubscribed
from unlost.service.jobs.database import Database
from unlost.service.jobs.disk_space import SHORTAGES
from unlost.service.jobs.job import UNFINISHED, Job, Progress, State
from unlost.service.jobs.log import note_change
from unlost.service.jobs.order import Order
from unlost.service.jobs.pending import Origin, PendingOrders
from unlost.service.jobs.retention import Letter, Terms, letter_for
from unlost.service.jobs.rows import customer_of, job_of, values_of
from unlost.service.jobs.rules import Rules, host_of, is_below
from unlost.service.jobs.tables import JOBS, LETTERS, WORKERS

_GAP = 1 << 20
"""Between the turns of two jobs that follow each other: so many can be put in between before all get new ones."""
_MAX_UNFINISHED = 20  # orders of one mail address: more are no lost sites of one person
_WAIT_SECONDS = 3_600.0
_PART = 500  # rows that are read at once


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """A worker. begun, seen: when it began and was last heard of, seconds since 1970. jobs: the numbers of its own."""

    name: str
    begun: float
    seen: float
    version: str
    jobs: tuple[int, ...] = ()


class Jobs:
    """All jobs. Each method is one transaction; several processes may use the same database.

    terms: for how long jobs are kept. max_unfinished: orders of one mail address that have not ended.
    allows_private: whether sites of loopback and private hosts may be ordered.

    Raises UsageError for a job that does not exist, JobError for what cannot be done with it, and as `Database` does.
    """

    def __init__(
        self,
        database: Database,
        terms: Terms | None = None,
        max_unfinished: int = _MAX_UNFINISHED,
        *,
        allows_private: bool = False,
    ) -> None:
        self.database = database
        self.terms = terms or Terms()
        self.rules = Rules(database, allows_private=allows_private)
        self._pending = PendingOrders()
        self._max_unfinished = max_unfinished

    def now(self) -> float:
        """Return the time that counts, in seconds since 1970."""
        with self.database.reading() as connection:
            return self.database.now(connection)

    def check(self) -> None:
        """Raise DatabaseError if the database cannot be reached."""
        with self.database.reading() as connection:
            connection.execute(select(1))

    # Orders

    def submit(self, order: Order, *, is_confirmed: bool = False, origin: Origin | None = None) -> Job:
        """Take an order. is_confirmed: it goes into the queue at once. origin: where it comes from.

        Raises BusyError if its customer has too many, UsageError if its customer wants no email, and as `Rules.take`
        and `PendingOrders.admit` do.
        """
        origin = origin or Origin()
        with self.database.writing() as connection:
            now = self.database.now(connection)
            if is_confirmed:
                self.rules.check_host(connection, host_of(order.url))
            else:
                self.database.alone(connection, "pending")
                self._check_room(connection, order)
                self.rules.take(connection, order, origin.client, now)
                self._admit(connection, order, origin, now)
            job = Job(0, order, State.PENDING, now, now)
            if is_confirmed:
                job = states.confirm(job, now, self._last_turn(connection) + _GAP)
            number = connection.execute(insert(JOBS).values(values_of(job, self.terms))).inserted_primary_key
            taken = _numbered(job, number[0] if number else 0)
            if not is_confirmed:
                self._pending.add(connection, taken.number, order, origin)
            self._write_letter(connection, letter_for(None, taken), taken, now, fair_key=origin.network)
            note_change(connection, None, taken, now)
            return taken

    def _admit(self, connection: Connection, order: Order, origin: Origin, now: float) -> None:
        if unsubscribed.contains(connection, customer_of(order.mail)):
            raise UsageError("mail: this mail address wants no email from this service")
        crowded_out = self._pending.admit(connection, order, origin, self.rules.limits_in(connection))
        if crowded_out is not None:
            self._remove(connection, crowded_out, now)

    def remove_pending(self, *, mail_domain: str = "", like: int | None = None) -> int:
        """Remove unconfirmed orders; return how many.

        Args:
            mail_domain: Only those with mail addresses at this domain.
            like: Only those from the same network as this job.
        """
        with self.database.reading() as connection:
            numbers = self._pending.jobs(connection, mail_domain=mail_domain, like=like)
        count = 0
        for begin in range(0, len(numbers), _PART):  # a part at a time, so that orders do not wait for all of it
            with self.database.writing() as connection:
                count += self._remove_all(connection, numbers[begin : begin + _PART])
        return count

    def unsubscribe(self, customer: str) -> None:
        """Send no email to a mail address any more, and remove its unconfirmed orders. customer: its hash."""
        with self.database.writing() as connection:
            self.database.alone(connection, "pending")
            unsubscribed.add(connection, customer, self.database.now(connection))
            self._remove_all(connection, self._pending.jobs(connection, customer=customer))

    def resubscribe(self, customer: str) -> None:
        """Send email to a mail address again. customer: its hash."""
        with self.database.writing() as connection:
            unsubscribed.remove(connection, customer)

    def is_unsubscribed(self, customer: str) -> bool:
        """Return whether no email is sent to a mail address. customer: its hash."""
        with self.database.reading() as connection:
            return unsubscribed.contains(connection, customer)

    def _remove_all(self, connection: Connection, numbers: Sequence[int]) -> int:
        now = self.database.now(connection)
        return sum(self._remove(connection, number, now) for number in numbers)

    def _remove(self, connection: Connection, number: int, now: float) -> bool:
        """Remove an unconfirmed order; return False if it was confirmed or removed meanwhile."""
        job = _job(connection, number, is_locked=True)
        is_pending = job.state is State.PENDING
        if is_pending:
            self._keep(connection, job, states.remove(job, now), now)
        return is_pending

    def _check_room(self, connection: Connection, order: Order) -> None:
        of_customer = and_(JOBS.c.customer == customer_of(order.mail), JOBS.c.state.in_(UNFINISHED))
        if _count(connection, of_customer) >= self._max_unfinished:
            raise BusyError(f"{self._max_unfinished} orders for this mail address have not ended yet", _WAIT_SECONDS)

    def get(self, number: int) -> Job:
        """Return a job."""
        with self.database.reading() as connection:
            return _job(connection, number)

    def watched(self, numbers: Sequence[int]) -> dict[int, tuple[Job, int | None]]:
        """Return those of several jobs that there are, each with its place in the queue."""
        with self.database.reading() as connection:
            found = connection.execute(select(JOBS).where(JOBS.c.number.in_(numbers)))
            jobs = [job_of(row) for row in found]
            places: dict[int, int] = {}
            if any(job.state is State.QUEUED for job in jobs):
                waiting = select(JOBS.c.number).where(JOBS.c.state == State.QUEUED.value)
                in_order = connection.execute(waiting.order_by(JOBS.c.turn, JOBS.c.number)).scalars()
                places = {number: place for place, number in enumerate(in_order, 1)}
        return {job.number: (job, places.get(job.number)) for job in jobs}

    def change(self, number: int, change: Callable[[Job, float], Job]) -> Job:
        """Replace a job by what a function makes of it and of the time; nobody else changes it meanwhile.

        It may be called several times, of which one counts, and must do nothing else.
        """

        def changed(connection: Connection) -> Job:
            job = _job(connection, number, is_locked=True)
            now = self.database.now(connection)
            return self._keep(connection, job, change(job, now), now)

        return self.database.write(changed)

    def _keep(self, connection: Connection, before: Job, after: Job, now: float) -> Job:
        if after != before:
            values = values_of(after, self.terms)
            connection.execute(update(JOBS).where(JOBS.c.number == before.number).values(values))
            self._write_letter(connection, letter_for(before, after), after, now)
            note_change(connection, before, after, now)
            if before.state is State.PENDING and after.state is not State.PENDING:
                self._pending.remove(connection, before.number)
            if after.state is State.REMOVED:
                # What mail servers say of an address has it in it.
                connection.execute(update(LETTERS).where(LETTERS.c.job == after.number).values(due=None, message=""))
        return after

    def _write_letter(
        self, connection: Connection, letter: Letter | None, job: Job, now: float, fair_key: str = ""
    ) -> None:
        if letter is not None and job.order.mail:
            fair_key = fair_key or customer_of(job.order.mail)
            connection.execute(insert(LETTERS).values(job=job.number, kind=letter.value, due=now, fair_key=fair_key))

    # The queue

    def confirm(self, number: int) -> Job:
        """Put a job at the end of the queue."""
        return self._queue(number, states.confirm)

    def retry(self, number: int) -> Job:
        """Put a job that has ended at the end of the queue."""
        return self._queue(number, states.retry)

    def _queue(self, number: int, change: Callable[[Job, float, int], Job]) -> Job:
        with self.database.writing() as connection:
            job = _job(connection, number, is_locked=True)
            now = self.database.now(connection)
            return self._keep(connection, job, change(job, now, self._last_turn(connection) + _GAP), now)

    def _last_turn(self, connection: Connection) -> int:
        # Also of those that are worked on: they keep their turns if they are given back.
        waiting = JOBS.c.state.in_((State.QUEUED.value, State.PROCESSING.value, State.PAUSED.value))
        return connection.execute(select(func.max(JOBS.c.turn)).where(waiting)).scalar_one() or 0

    def remind(self, number: int) -> Job:
        """Remind the owner to pick up what is complete. Unconfirmed orders get no reminders."""
        with self.database.writing() as connection:
            job = _job(connection, number, is_locked=True)
            if job.state is not State.COMPLETE:
                raise JobError(f"it is {job.state}: there is nothing to remind its owner of")
            self._write_letter(connection, Letter.PICK_UP_REMINDER, job, self.database.now(connection))
            return job

    def place(self, job: Job) -> int | None:
        """Return how many jobs go before one, and one more; None if it does not wait."""
        if job.state is not State.QUEUED:
            return None
        with self.database.reading() as connection:
            return 1 + _count(connection, and_(JOBS.c.state == State.QUEUED.value, _is_before(job)))

    def move(self, number: int, place: int) -> Job:
        """Give a waiting job another place in the queue, from 1 on; beyond its end is its end."""
        with self.database.writing() as connection:
            job = _job(connection, number, is_locked=True)
            if job.state is not State.QUEUED:
                raise JobError(f"it is {job.state}: only what is queued has a place")
            turn = self._turn_at(connection, number, place)
            if turn is None:
                self._spread(connection)
                turn = self._turn_at(connection, number, place)
            connection.execute(update(JOBS).where(JOBS.c.number == number).values(turn=turn))
            return _job(connection, number)

    def _turn_at(self, connection: Connection, number: int, place: int) -> int | None:
        """Return a turn between those around a place; None if there is no room."""
        others = select(JOBS.c.turn).where(JOBS.c.state == State.QUEUED.value, JOBS.c.number != number)
        in_order = others.order_by(JOBS.c.turn, JOBS.c.number)
        before = max(0, place - 2)
        around = connection.execute(in_order.offset(before).limit(2)).scalars().all()
        if place <= 1:
            return around[0] - _GAP if around else 0
        if len(around) < 2:
            return self._last_turn(connection) + _GAP
        middle = (around[0] + around[1]) // 2
        return middle if around[0] < middle < around[1] else None

    def _spread(self, connection: Connection) -> None:
        """Give all that wait new turns, in the same order, with room between them."""
        waiting = select(JOBS.c.number).where(JOBS.c.state == State.QUEUED.value).with_for_update()
        numbers = connection.execute(waiting.order_by(JOBS.c.turn, JOBS.c.number)).scalars().all()
        for index, number in enumerate(numbers, 1):
            connection.execute(update(JOBS).where(JOBS.c.number == number).values(turn=index * _GAP))

    # Workers

    def claim(self, worker: str, seconds: float) -> Job | None:
        """Give a worker the next job for so many seconds; None if there is none that it may have now."""
        while True:
            with self.database.reading() as connection:
                # Most who look while there is nothing must not keep others from writing.
                free = _free(worker, self.database.now(connection))
                if all(connection.execute(select(JOBS.c.number).where(each).limit(1)).first() is None for each in free):
                    return None
            claimed = self.database.write(lambda connection: self._claimed(connection, worker, seconds))
            if claimed is None or claimed.state is State.PROCESSING:
                return claimed

    def _claimed(self, connection: Connection, worker: str, seconds: float) -> Job | None:
        now = self.database.now(connection)
        row = next((row for each in _free(worker, now) if (row := _next(connection, each)) is not None), None)
        if row is None:
            return None
        job = job_of(row)
        return self._keep(connection, job, states.claim(job, worker, now, seconds), now)

    def beat(self, number: int, generation: int, seconds: float, progress: Progress) -> Job:
        """Note that a worker lives. Raises LeaseLostError if the job is not its own any more."""
        return self.change(number, lambda job, now: states.beat(job, generation, now, seconds, progress))

    def greet(self, worker: str) -> None:
        """Note that a worker is there."""
        with self.database.writing() as connection:
            now = self.database.now(connection)
            if not connection.execute(update(WORKERS).where(WORKERS.c.name == worker).values(seen=now)).rowcount:
                connection.execute(insert(WORKERS).values(name=worker, begun=now, seen=now, version=VERSION))

    def leave(self, worker: str) -> None:
        """Note that a worker has ended."""
        with self.database.writing() as connection:
            connection.execute(WORKERS.delete().where(WORKERS.c.name == worker))

    def workers(self) -> list[WorkerSeen]:
        """Return all workers that have not said that they end, by name."""
        with self.database.reading() as connection:
            found = connection.execute(select(WORKERS).order_by(WORKERS.c.name)).all()
            busy = select(JOBS.c.worker, JOBS.c.number).where(JOBS.c.state == State.PROCESSING.value)
            jobs: dict[str, list[int]] = {}
            for worker, number in connection.execute(busy.order_by(JOBS.c.number)):
                jobs.setdefault(worker, []).append(number)
        return [WorkerSeen(row.name, row.begun, row.seen, row.version, tuple(jobs.get(row.name, ()))) for row in found]

    # Lists

    def listed(self, state: State | None = None, limit: int = 100, after: int = 0) -> list[Job]:
        """Return jobs in a state, or all: those that wait in their order, others by number, behind `after`."""
        chosen: Select[tuple[object, ...]] = select(JOBS)
        if state is not None:
            chosen = chosen.where(JOBS.c.state == state.value)
        with self.database.reading() as connection:
            if state is State.QUEUED:
                found = connection.execute(chosen.order_by(JOBS.c.turn, JOBS.c.number).offset(after).limit(limit))
            else:
                found = connection.execute(chosen.where(JOBS.c.number > after).order_by(JOBS.c.number).limit(limit))
            return [job_of(row) for row in found]

    def history(self) -> Iterator[Job]:
        """Yield all jobs there ever were, by number, some at a time."""
        after = 0
        while part := self.listed(None, _PART, after):
            yield from part
            after = part[-1].number

    def removed(self, numbers: Sequence[int]) -> list[int]:
        """Return those of several jobs that were removed."""
        chosen = select(JOBS.c.number).where(JOBS.c.number.in_(numbers), JOBS.c.state == State.REMOVED.value)
        with self.database.reading() as connection:
            return list(connection.execute(chosen).scalars())

    def below(self, domain: str) -> list[Job]:
        """Return all jobs of a domain and all below it that have not been removed, by number."""
        return [job for job in self.history() if job.state is not State.REMOVED and is_below(job.order.url, domain)]

    def durations(self, limit: int = 50) -> list[float]:
        """Return how many seconds the last jobs took that are complete, from their beginning to their end."""
        is_done = and_(JOBS.c.ended.is_not(None), JOBS.c.begun.is_not(None), JOBS.c.recovered > 0)
        chosen = select(JOBS.c.ended - JOBS.c.begun).where(is_done).order_by(JOBS.c.ended.desc()).limit(limit)
        with self.database.reading() as connection:
            return [float(each) for each in connection.execute(chosen).scalars()]

    def counts(self) -> dict[State, int]:
        """Return how many jobs are in which state."""
        with self.database.reading() as connection:
            found = connection.execute(select(JOBS.c.state, func.count()).group_by(JOBS.c.state)).all()
        return dict.fromkeys(State, 0) | {State(name): int(count) for name, count in found}

    def note_shortage(self, shortage: str) -> None:
        """Set the message of all queued jobs while there is too little disk space; remove it when there is enough."""
        messages = ("", *SHORTAGES) if shortage else SHORTAGES
        waiting = and_(JOBS.c.state == State.QUEUED.value, JOBS.c.message.in_(messages), JOBS.c.message != shortage)
        with self.database.reading() as connection:  # workers call it often, and must not delay writers
            if connection.execute(select(JOBS.c.number).where(waiting).limit(1)).first() is None:
                return
        with self.database.writing() as connection:
            connection.execute(update(JOBS).where(waiting).values(message=shortage))

    # What time does to jobs

    def look_after(self, limit: int = 100) -> list[Job]:
        """Remind owners, and remove jobs whose time is over; return those that were removed, some at a time."""
        removed = []
        with self.database.writing() as connection:
            now = self.database.now(connection)
            due = select(JOBS).where(JOBS.c.due <= now).order_by(JOBS.c.due).limit(limit)
            self.rules.forget(connection, now)
            for job in map(job_of, connection.execute(due.with_for_update(skip_locked=True)).all()):
                after, letter = self.terms.due(job, now)
                self._keep(connection, job, after, now)
                self._write_letter(connection, letter, after, now)
                if after.state is State.REMOVED:
                    removed.append(after)
        return removed


def _job(connection: Connection, number: int, *, is_locked: bool = False) -> Job:
    chosen = select(JOBS).where(JOBS.c.number == number)
    row = connection.execute(chosen.with_for_update() if is_locked else chosen).one_or_none()
    if row is None:
        raise UsageError(f"there is no job {number}")
    return job_of(row)


def _free(worker: str, now: float) -> tuple[ColumnElement[bool], ...]:
    """Return what may be claimed: first what was begun, since its owner waits longest; each has its index.

    What is retried in the background comes last: its owner has something already.
    """
    is_lost = and_(JOBS.c.state == State.PROCESSING.value, JOBS.c.lease_until <= now)
    is_mine = or_(JOBS.c.for_worker.is_(None), JOBS.c.for_worker == worker)
    is_queued = and_(JOBS.c.state == State.QUEUED.value, JOBS.c.not_before <= now, is_mine)
    is_retried = and_(JOBS.c.state == State.COMPLETE.value, JOBS.c.not_before > 0, JOBS.c.not_before <= now)
    return is_lost, is_queued, is_retried


def _next(connection: Connection, condition: ColumnElement[bool]) -> Row[Any] | None:
    chosen = select(JOBS).where(condition).order_by(JOBS.c.turn, JOBS.c.number).limit(1)
    return connection.execute(chosen.with_for_update(skip_locked=True)).one_or_none()


def _count(connection: Connection, condition: ColumnElement[bool]) -> int:
    return int(connection.execute(select(func.count()).select_from(JOBS).where(condition)).scalar_one())


def _is_before(job: Job) -> ColumnElement[bool]:
    return or_(JOBS.c.turn < job.turn, and_(JOBS.c.turn == job.turn, JOBS.c.number < job.number))


def _numbered(job: Job, number: int) -> Job:
    return replace(job, number=number)
