"""The job service: what the web application and its pages use to take orders, look up jobs and run maintenance.

With the identification of clients, and the guard that stops removal after the clock jumped.
"""

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import Connection, delete, insert, select
from starlette.requests import HTTPConnection

from unlost.clock import Clock
from unlost.errors import DatabaseError, UsageError
from unlost.jobs import states
from unlost.jobs.auth import AdminTokens, LinkSigner
from unlost.jobs.client_network import client_network, wider_networks
from unlost.jobs.database import Database
from unlost.jobs.folders import DiskSpace, DiskSpaceLimits, JobFolders
from unlost.jobs.limits import OrderOrigin
from unlost.jobs.models import Job
from unlost.jobs.outbox import MailOutbox
from unlost.jobs.store import JobStore
from unlost.jobs.tables import SETTINGS
from unlost.jobs.tasks import BoundedThreadPool
from unlost.jobs.watcher import JobWatcher

_CLOCK_SETTING = "clock"
_DAY = 86_400.0
_MAX_GAP_SECONDS = 7 * _DAY  # since the last check
_TOLERANCE_SECONDS = 300.0  # by which clocks of several machines, and two clocks of one, may differ


def _seconds_since_boot() -> float:
    """Return the seconds since the system started, also those in which it was suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class ClockGuard:
    """Compares the time of the database with the last check, and with the monotonic clock.

    The last check and a jump are stored in the database: they outlive the process, and hold for all processes.
    """

    def __init__(self, database: Database, monotonic: Callable[[], float] = _seconds_since_boot) -> None:
        self._database = database
        self._monotonic = monotonic
        self._last: tuple[float, float] | None = None  # the time, and the monotonic clock
        self._confirmed: object = 0  # how often the time had been confirmed at the last check
        self._lock = threading.Lock()

    def check(self) -> str:
        """Return why nothing may be removed, or an empty string. Raises as `Database` does."""
        with self._lock, self._database.writing() as connection:
            self._database.lock_names(connection, _CLOCK_SETTING)
            now, monotonic = self._database.now(connection), self._monotonic()
            stored = _load_setting(connection)
            confirmed = stored.get("confirmed", 0)
            if confirmed != self._confirmed:
                self._last = None  # a jump since the last check of this process is what was confirmed
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
        """Note that an operator has seen that the time is right. Raises as `Database` does."""
        with self._database.writing() as connection:
            self._database.lock_names(connection, _CLOCK_SETTING)
            confirmed = _load_setting(connection).get("confirmed")
            count = confirmed + 1 if isinstance(confirmed, int) else 1
            _save_setting(connection, {"checked": self._database.now(connection), "confirmed": count})


def _load_setting(connection: Connection) -> Mapping[str, Any]:
    found = connection.execute(select(SETTINGS.c.value).where(SETTINGS.c.name == _CLOCK_SETTING)).scalar_one_or_none()
    return found if isinstance(found, Mapping) else {}


def _save_setting(connection: Connection, value: Mapping[str, Any]) -> None:
    connection.execute(delete(SETTINGS).where(SETTINGS.c.name == _CLOCK_SETTING))
    connection.execute(insert(SETTINGS).values(name=_CLOCK_SETTING, value=dict(value)))


_WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+")
TrustedProxies = Sequence[IPv4Network | IPv6Network]
"""The networks in which our own proxies are."""


class ClientIdentifier:
    """Knows whence requests come. proxies: whose word is taken for whom they ask for."""

    def __init__(self, signer: LinkSigner, *, proxies: TrustedProxies) -> None:
        self._signer = signer
        self._proxies = proxies

    def client_hash(self, request: HTTPConnection) -> str:
        """Return 64 characters at most that are the same for requests from the same network address."""
        return self._signer.digest("client", client_network(self._host(request)))

    def order_origin(self, request: HTTPConnection) -> OrderOrigin:
        """Return where a request comes from, as hashes."""
        network, wide = wider_networks(self._host(request))
        hashed = self._signer.digest("network", network), self._signer.digest("network", wide) if wide else ""
        return OrderOrigin(self.client_hash(request), *hashed)

    def _host(self, request: HTTPConnection) -> str:
        found = "" if request.client is None else request.client.host
        # Each proxy says whom it has seen, behind what there is or in a line of its own. So the last that is none of
        # ours was seen by one of ours; whatever stands before it is what strangers say.
        said = [each for line in request.headers.getlist("x-forwarded-for") for each in line.split(",")]
        while said and self._is_proxy(found):
            found = strip_port(said.pop().strip()) or found
        return found

    def _is_proxy(self, host: str) -> bool:
        """Return whether somebody is a proxy of ours: everybody else can write whatever they like."""
        try:
            address = ip_address(host)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._proxies)


def strip_port(host: str) -> str:
    """Return an IP address as proxies write it without the port that some add; anything else unchanged.

    >>> strip_port("192.0.2.1:4711"), strip_port("[2001:db8::1]:80"), strip_port("2001:db8::1")
    ('192.0.2.1', '2001:db8::1', '2001:db8::1')
    """
    found = _WITH_PORT.fullmatch(host)
    return (found[1] or found[2]) if found else host


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
