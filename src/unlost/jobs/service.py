"""The job service: orders, job look-ups, authentication and maintenance for the web application.

It also stops deletions after the system clock jumped.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import Connection, delete, insert, select

from unlost.clock import Clock
from unlost.errors import DatabaseError, UsageError
from unlost.jobs import states
from unlost.jobs.auth import AdminTokens, LinkSigner
from unlost.jobs.client_network import ClientIdentifier, TrustedProxies
from unlost.jobs.database import Database
from unlost.jobs.folders import DiskSpace, DiskSpaceLimits, JobFolders
from unlost.jobs.models import Job
from unlost.jobs.outbox import MailOutbox
from unlost.jobs.store import JobStore
from unlost.jobs.tables import SETTINGS
from unlost.jobs.tasks import BoundedThreadPool
from unlost.jobs.watcher import JobWatcher

_CLOCK_SETTING = "clock"
_DAY = 86_400.0
_MAX_GAP_SECONDS = 7 * _DAY  # maximum time since the last check; a longer one may be a clock that was set forward
_TOLERANCE_SECONDS = 300.0  # allowed difference between the clocks of machines, and between the two clocks of one
P = ParamSpec("P")
T = TypeVar("T")
_RETENTION_SECONDS = 60.0  # interval of retention runs
_CHECKPOINT_SECONDS = 2.0  # interval of checkpoints of the database's write-ahead log
_MAX_QUERIES = 8  # concurrent database queries; more wait, so that many requests cannot occupy all threads
_LOGIN_THREADS, _LOGIN_QUEUE = 1, 8  # each takes 128 MB and 0.3 s
_REPORT_THREADS, _REPORT_QUEUE = 2, 8  # a report of a million files takes a minute
_ORDER_THREADS = 2  # the database has a single writer, so more threads would only wait
_FOLDER_BATCH = 500  # folders per query
_log = logging.getLogger(__name__)


def _seconds_since_boot() -> float:
    """Return the seconds since the system started, including time in suspension."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class ClockGuard:
    """Detects jumps of the clock, by comparing it with the last check and with the monotonic clock.

    The time of the last check and any jump are stored in the database, for later runs and for all processes. Only an
    operator can say which of two times is right, so a jump stays recorded until `confirm` is called.
    """

    def __init__(self, database: Database, monotonic: Callable[[], float] = _seconds_since_boot) -> None:
        self._database = database
        self._monotonic = monotonic
        self._last: tuple[float, float] | None = None  # wall-clock time and monotonic time
        self._confirmed: object = 0  # number of confirmations at the last check
        self._lock = threading.Lock()

    def check(self) -> str:
        """Check the clock. Returns why nothing may be removed, or an empty string. Raises as `Database` does."""
        with self._lock, self._database.writing() as connection:
            self._database.lock_names(connection, _CLOCK_SETTING)
            now, monotonic = self._database.now(connection), self._monotonic()
            stored = _load_setting(connection)
            confirmed = stored.get("confirmed", 0)
            if confirmed != self._confirmed:
                self._last = None  # the confirmation covers any jump since the last check of this process
            reason = str(stored.get("jumped") or "") or self._jump(now, monotonic, stored.get("checked"))
            self._last, self._confirmed = (now, monotonic), confirmed
            if reason:
                _save_setting(connection, {**stored, "jumped": reason})
            else:
                _save_setting(connection, {"checked": now, "confirmed": confirmed})
            return reason

    def _jump(self, now: float, monotonic: float, checked: object) -> str:
        if self._last is not None:
            drift = (now - self._last[0]) - (monotonic - self._last[1])
            if abs(drift) > _TOLERANCE_SECONDS:
                return f"the clock jumped by {drift:+.0f} s while the service ran"
        if isinstance(checked, int | float):
            if checked > now + _TOLERANCE_SECONDS:
                return f"the last check lies {checked - now:.0f} s in the future"
            if now - checked > _MAX_GAP_SECONDS:
                return f"the last check was {(now - checked) / _DAY:.0f} days ago"
        return ""

    def reason(self) -> str:
        """Return why nothing is removed, or an empty string. Raises as `Database` does."""
        with self._database.reading() as connection:
            return str(_load_setting(connection).get("jumped") or "")

    def confirm(self) -> None:
        """Record that an operator has confirmed the time. Raises as `Database` does."""
        with self._database.writing() as connection:
            self._database.lock_names(connection, _CLOCK_SETTING)
            confirmed = _load_setting(connection).get("confirmed")
            count = confirmed + 1 if isinstance(confirmed, int) else 1
            _save_setting(connection, {"checked": self._database.now(connection), "confirmed": count})


def _load_setting(connection: Connection) -> Mapping[str, Any]:
    value = connection.execute(select(SETTINGS.c.value).where(SETTINGS.c.name == _CLOCK_SETTING)).scalar_one_or_none()
    return value if isinstance(value, Mapping) else {}


def _save_setting(connection: Connection, value: Mapping[str, Any]) -> None:
    connection.execute(delete(SETTINGS).where(SETTINGS.c.name == _CLOCK_SETTING))
    connection.execute(insert(SETTINGS).values(name=_CLOCK_SETTING, value=dict(value)))


@dataclass(frozen=True, slots=True)
class JobService:
    """Shared services of the job endpoints and pages.

    Attributes:
        store: The job store.
        folders: Folders of the jobs.
        signer: Signs private links.
        tokens: API tokens of administrators.
        outbox: Emails to owners.
        watcher: Live progress of jobs.
        clock_guard: Detects jumps of the clock.
        archives: IDs of the archives that an order may name.
        query_slots: Limits concurrent database queries.
        order_threads: Threads for new orders, which do not wait for other queries.
        login_pool: Hashes passwords.
        report_pool: Renders reports.
        clients: Determines the client of a request.
        sends_mail: Whether emails are sent.
        contact: Contact of the operator.
        space: Space on the disk of the job folders.
    """

    store: JobStore
    folders: JobFolders
    signer: LinkSigner
    tokens: AdminTokens
    outbox: MailOutbox
    watcher: JobWatcher
    clock_guard: ClockGuard
    archives: Collection[str]
    query_slots: asyncio.Semaphore
    order_threads: ThreadPoolExecutor
    login_pool: BoundedThreadPool
    report_pool: BoundedThreadPool
    clients: ClientIdentifier
    sends_mail: bool
    contact: str
    space: DiskSpace

    @classmethod
    def create(
        cls,
        store: JobStore,
        folders: JobFolders,
        signer: LinkSigner,
        outbox: MailOutbox,
        archives: Collection[str],
        *,
        proxies: TrustedProxies = (),
        sends_mail: bool = False,
        contact: str = "",
        space: DiskSpaceLimits | None = None,
    ) -> "JobService":
        """Create the service in the event loop in which it is used."""
        tokens, query_slots = AdminTokens(store.database), asyncio.Semaphore(_MAX_QUERIES)
        threads = ThreadPoolExecutor(_ORDER_THREADS, "orders")
        logins = BoundedThreadPool(_LOGIN_THREADS, _LOGIN_QUEUE, "logins")
        reports = BoundedThreadPool(_REPORT_THREADS, _REPORT_QUEUE, "reports")
        clients = ClientIdentifier(signer, proxies=proxies)
        watcher, clock_guard = JobWatcher(store), ClockGuard(store.database)
        return cls(
            store, folders, signer, tokens, outbox, watcher, clock_guard, archives, query_slots, threads,
            logins, reports, clients, sends_mail, contact, DiskSpace(folders, space),
        )  # fmt: skip

    async def authenticate_admin(self, authorization: str) -> str | None:
        """Authenticate an administrator by the bearer token in an `Authorization` header.

        Returns:
            The name of the administrator, or None without a valid token.
        """
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        return self.tokens.cached_name(token.strip()) or await self.run_query(self.tokens.find_name, token.strip())

    async def find_owned(self, key: str) -> Job | None:
        """Return the job that an owner's key grants access to, or None if the key is invalid."""
        return await self.find_job(self.signer.verify_owner_key(key))

    async def find_job(self, number: int | None) -> Job | None:
        """Return a job, or None if it does not exist."""
        if number is None:
            return None
        try:
            return await self.run_query(self.store.get, number)
        except UsageError:
            return None

    def offered_folder(self, job: Job) -> Path:
        """Return the folder of the recovery that is offered. During a retry, there is also a newer one."""
        if job.packages:
            return self.folders.folder_of(job.number) / Path(job.packages[0].file).parts[0]
        return self.folders.generation_folder(job.number, job.generation)

    async def remove(self, number: int) -> Job:
        """Remove a job in any state and delete its files. Returns the removed job."""
        removed = await self.run_query(self.store.change, number, states.remove)
        await self.run_query(self.folders.remove, number)
        return removed

    async def run_query(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a database query in a thread, with a limited number at a time."""
        async with self.query_slots:
            return await asyncio.to_thread(work, *arguments, **named)

    async def run_order(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Run a function in the threads for orders, independent of other queries."""
        return await asyncio.get_running_loop().run_in_executor(self.order_threads, partial(work, *arguments, **named))

    async def queue_place(self, job: Job) -> int | None:
        """Return the position of a job in the queue, from 1, or None if it is not queued."""
        return await self.run_query(self.store.place, job)

    async def gauges(self) -> dict[str, tuple[str, float]]:
        """Return the gauges for Prometheus by name, each with its help text and value.

        Raises:
            DatabaseError: The database cannot be reached.
        """
        counts = await self.run_query(self.store.count_by_state)
        workers = await self.run_query(self.store.workers)
        waiting_mails = await self.run_query(self.outbox.count_waiting)
        jumped = await self.run_query(self.clock_guard.reason)
        shortage, usage = await self.run_query(self.space.shortage), await self.run_query(self.space.usage)
        limits = self.space.limits
        return {
            **{f"unlost_jobs_{state.value}": (f"Jobs that are {state.value}.", n) for state, n in counts.items()},
            "unlost_workers": ("Workers that have not said that they end.", len(workers)),
            "unlost_letters_waiting": ("Letters to owners that are still to be sent.", waiting_mails),
            "unlost_clock_jumped": ("1 while nothing is removed, since the clock jumped.", 1.0 if jumped else 0.0),
            "unlost_job_watchers": ("How many watch how a job gets on.", self.watcher.watchers),
            "unlost_job_files_bytes": ("Size of the files of all jobs.", usage.used),
            "unlost_job_files_max_bytes": (
                "Size at which no job starts or continues; 0 for no limit.",
                limits.max_total,
            ),
            "unlost_disk_free_bytes": ("Free space on the disk of the jobs.", usage.free),
            "unlost_disk_min_free_bytes": ("Free space below which no job starts or continues.", limits.min_free),
            "unlost_disk_shortage": ("Whether jobs wait for disk space: 1 if they do.", int(bool(shortage))),
        }

    async def run_retention(self, clock: Clock) -> None:
        """Send reminders and remove expired jobs periodically. Pauses while a clock jump is unconfirmed."""
        while True:
            try:
                await asyncio.to_thread(self.space.measure)  # not done in requests, since it may take minutes
                if jumped := await self.run_query(self.clock_guard.check):
                    _log.error("nothing is removed until the time is confirmed at /admin/clock: %s", jumped)
                else:
                    await self._remove_due()
                await self.run_query(self.remove_leftover_folders)
                await self.run_query(partial(self.store.database.checkpoint, truncates=True))
            except DatabaseError as error:
                _log.warning("%s", error)
            except Exception:  # noqa: BLE001  any error: retention must continue
                _log.exception("a fault of ours; it goes on later")
            await clock.sleep(_RETENTION_SECONDS)

    async def _remove_due(self) -> None:
        while removed := await self.run_query(self.store.apply_retention):
            for job in removed:
                _log.info("job %s removed", job.number, extra={"job": job.number})

    async def run_checkpoints(self, clock: Clock) -> None:
        """Checkpoint the database's write-ahead log periodically."""
        while True:
            try:
                await asyncio.to_thread(self.store.database.checkpoint)
            except Exception as error:  # noqa: BLE001  any error: it may succeed the next time
                _log.warning("%s", error)
            await clock.sleep(_CHECKPOINT_SECONDS)

    def remove_leftover_folders(self) -> None:
        """Delete the folders of removed jobs.

        Runs over all folders each time: a worker may have written to a folder during its removal, or a file could not
        be deleted.
        """
        numbers = self.folders.list_numbers()
        for begin in range(0, len(numbers), _FOLDER_BATCH):
            for number in self.store.filter_removed(numbers[begin : begin + _FOLDER_BATCH]):
                self.folders.remove(number)
