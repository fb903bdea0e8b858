"""What the web application knows of jobs: where they are kept, who may see them, what becomes of them by time."""

import asyncio
import logging
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from unlost.clock import Clock
from unlost.errors import DatabaseError, UsageError
from unlost.service.bounded_pool import BoundedThreadPool
from unlost.service.clients import ClientIdentifier, TrustedProxies
from unlost.service.jobs import states
from unlost.service.jobs.clock_guard import ClockGuard
from unlost.service.jobs.disk_space import DiskSpace, DiskSpaceLimits
from unlost.service.jobs.folders import JobFolders
from unlost.service.jobs.following import JobWatcher
from unlost.service.jobs.job import Job
from unlost.service.jobs.keys import LinkSigner
from unlost.service.jobs.letters import MailOutbox
from unlost.service.jobs.store import JobStore
from unlost.service.jobs.tokens import AdminTokens

P = ParamSpec("P")
T = TypeVar("T")

_RETENTION_SECONDS = 60.0  # between two looks at whose time is over
_CHECKPOINT_SECONDS = 2.0
_MAX_QUERIES = 8  # questions to the database; more wait, so that a crowd cannot take all threads
_LOGIN_THREADS, _LOGIN_QUEUE = 1, 8  # each takes 128 MB and 0.3 s
_REPORT_THREADS, _REPORT_QUEUE = 2, 8  # that of a million files takes a minute
_ORDER_THREADS = 2  # taken; there is one writer at a time, so more would only wait in other places
_FOLDER_BATCH = 500  # folders that are looked up together
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JobService:
    """Where orders are taken.

    archives: ids of those that may be ordered from. clients: knows whence requests come. sends_mail: whether letters
    go out. contact: whom visitors can ask.
    logins: hashes passwords. reports: renders reports. space: of the disk that the folders are on.
    room: for those who ask for something.
    orders: threads for those who order: they do not wait behind the others.
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
        """Return one, in the event loop that it is used in."""
        tokens, room = AdminTokens(store.database), asyncio.Semaphore(_MAX_QUERIES)
        orders = ThreadPoolExecutor(_ORDER_THREADS, "orders")
        logins = BoundedThreadPool(_LOGIN_THREADS, _LOGIN_QUEUE, "logins")
        reports = BoundedThreadPool(_REPORT_THREADS, _REPORT_QUEUE, "reports")
        clients = ClientIdentifier(signer, proxies=proxies)
        following, clock_guard = JobWatcher(store), ClockGuard(store.database)
        return cls(
            store, folders, signer, tokens, outbox, following, clock_guard, archives, room, orders, logins, reports,
            clients, sends_mail, contact, DiskSpace(folders, space),
        )  # fmt: skip

    async def authenticate_admin(self, authorization: str) -> str | None:
        """Return the name of the administrator whose token an `Authorization` header has; None without a valid one."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        return self.tokens.cached_name(token.strip()) or await self.run_query(self.tokens.find_name, token.strip())

    async def find_owned(self, key: str) -> Job | None:
        """Return the job that an owner's key opens; None if it opens none."""
        return await self.find_job(self.signer.verify_owner_key(key))

    async def find_job(self, number: int | None) -> Job | None:
        """Return a job; None if there is none with that number."""
        if number is None:
            return None
        try:
            return await self.run_query(self.store.get, number)
        except UsageError:
            return None

    def offered_folder(self, job: Job) -> Path:
        """Return the folder of the recovery that is offered: while it is retried, there is a newer one."""
        if job.packages:
            return self.folders.folder_of(job.number) / Path(job.packages[0].file).parts[0]
        return self.folders.generation_folder(job.number, job.generation)

    async def remove(self, number: int) -> Job:
        """Forget a job and remove its files, whatever its state; return what is left of it."""
        removed = await self.run_query(self.store.change, number, states.remove)
        await self.run_query(self.folders.remove, number)
        return removed

    async def run_query(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Do something with the database, beside the event loop."""
        async with self.query_slots:
            return await asyncio.to_thread(work, *arguments, **named)

    async def run_order(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Take an order, beside the event loop and beside all who only look."""
        return await asyncio.get_running_loop().run_in_executor(self.order_threads, partial(work, *arguments, **named))

    async def queue_place(self, job: Job) -> int | None:
        """Return a job's place in the queue."""
        return await self.run_query(self.store.place, job)

    async def gauges(self) -> dict[str, tuple[str, float]]:
        """Return numbers for Prometheus, by name, each with what it means. Raises DatabaseError."""
        counts = await self.run_query(self.store.count_by_state)
        workers = await self.run_query(self.store.workers)
        letters = await self.run_query(self.outbox.count_waiting)
        jumped = await self.run_query(self.clock_guard.reason)
        shortage, usage = await self.run_query(self.space.shortage), await self.run_query(self.space.usage)
        limits = self.space.limits
        return {
            **{f"unlost_jobs_{state.value}": (f"Jobs that are {state.value}.", n) for state, n in counts.items()},
            "unlost_workers": ("Workers that have not said that they end.", len(workers)),
            "unlost_letters_waiting": ("Letters to owners that are still to be sent.", letters),
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
        """Remind and remove, now and then, for ever; not after the clock jumped."""
        while True:
            try:
                await asyncio.to_thread(self.space.measure)  # requests do not: it may take minutes
                if jumped := await self.run_query(self.clock_guard.check):
                    _log.error("nothing is removed until the time is confirmed at /admin/clock: %s", jumped)
                else:
                    await self._remove_due()
                await self.run_query(self.remove_leftover_folders)
                await self.run_query(partial(self.store.database.checkpoint, truncates=True))
            except DatabaseError as error:
                _log.warning("%s", error)
            except Exception:  # noqa: BLE001  whatever it is, others are still to be reminded
                _log.exception("a fault of ours; it goes on later")
            await clock.sleep(_RETENTION_SECONDS)

    async def _remove_due(self) -> None:
        while removed := await self.run_query(self.store.apply_retention):
            for job in removed:
                _log.info("job %s removed", job.number, extra={"job": job.number})

    async def run_checkpoints(self, clock: Clock) -> None:
        """Keep the database's log short, for ever."""
        while True:
            try:
                await asyncio.to_thread(self.store.database.checkpoint)
            except Exception as error:  # noqa: BLE001  whatever it is, the next time it may be well
                _log.warning("%s", error)
            await clock.sleep(_CHECKPOINT_SECONDS)

    def remove_leftover_folders(self) -> None:
        """Remove the folders of jobs that were removed.

        All that are there, again and again: of what a worker still wrote meanwhile, or a full disk of another machine
        kept, something may be left the first time.
        """
        numbers = self.folders.list_numbers()
        for begin in range(0, len(numbers), _FOLDER_BATCH):
            for number in self.store.filter_removed(numbers[begin : begin + _FOLDER_BATCH]):
                self.folders.remove(number)
