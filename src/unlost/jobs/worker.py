"""Workers: claim jobs, renew their leases, recover and package the sites, and record the results."""

import asyncio
import logging
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from unlost.clock import Clock
from unlost.errors import DatabaseError, InputError, LeaseLostError, SpaceError, UnwrittenError, UsageError
from unlost.http.client import ArchiveHttpClient
from unlost.http.policy import MAX_WAITS
from unlost.jobs import states
from unlost.jobs.folders import DiskSpace, JobFolders, write_checkpoint, write_packages
from unlost.jobs.limits import OrderLimits
from unlost.jobs.models import Job, JobProgress, JobStage
from unlost.jobs.states import release
from unlost.jobs.store import JobStore, seconds_worked
from unlost.recovery.events import ProgressCounted, RecoveryEvent
from unlost.recovery.scheduler import RecoveryRunResult
from unlost.recovery.session import RecoverySession
from unlost.recovery.state.reader import StateReader
from unlost.recovery.state.resources import ResourceStatus
from unlost.registry.models import Archive
from unlost.report.recovery.serializers import recovery_summary_json
from unlost.report.recovery.stats import collect_stats
from unlost.sqlite import STATE_FILE_NAME

_log = logging.getLogger(__name__)
_RENEWALS_PER_LEASE = 4  # so that three in a row may fail
_FINAL_RENEWAL_SECONDS = 1.0  # maximum wait for the last renewal, which normally takes milliseconds
_QUOTA_CHECK_SECONDS = 1.0
_HOUR = 3_600.0
_MEGABYTE = 1_000_000
JobChange = Callable[[Job, float], Job]
"""A change for `JobStore.change`."""
_CHECKPOINT_SECONDS = 15.0
"""Interval of checkpoints. A crash loses only listings and requests since the last one; captures are in the WARCs."""
_MAX_REMAINING_SHARE = 0.1  # of all resources; with more left, the job is queued again instead of offered
_RETRY_REMARK = "missing resources are retried in the background"
_MAX_ROUNDS = 3  # rounds without anything new until a job is complete although some archives still fail
_POLL_SECONDS = 1.0  # interval of polls for a job
_HEARTBEAT_SECONDS = 20.0
_SPACE_CHECK_SECONDS = 1.0
_RETRY_SECONDS = 5.0  # pause after a database error


class LeaseKeeper:
    """Renews the lease of a job in a thread, independent of the worker's event loop. An asynchronous context manager.

    A second thread watches the expiry of the lease: if the network fails, a renewal may block until the system's
    timeout.

    Args:
        store: The job store.
        job: The claimed job.
        seconds: Length of the lease.
        on_lost: Called at most once, from a thread and never after the block, when the worker must stop because another
            worker has claimed the job, or may have done so while the database could not be reached.

    Attributes:
        progress: Progress to report with the next renewal; set by the worker.
    """

    def __init__(self, store: JobStore, job: Job, seconds: float, on_lost: Callable[[], object]) -> None:
        self._store = store
        self._job = job
        self._seconds = seconds
        self._on_lost = on_lost
        self._ended = threading.Event()
        self._is_lost = False
        self._deciding = threading.Lock()  # held while deciding between lost and ended: the first wins
        # Monotonic time before the last successful renewal. As it is taken before the renewal, the lease expires here
        # before it expires in the database.
        self._last_renewal = time.monotonic()
        name = f"lease-{job.number}"
        self._threads = [
            threading.Thread(target=each, name=name, daemon=True) for each in (self._renew, self._watch_expiry)
        ]  # fmt: skip
        self.progress: JobProgress = job.progress

    async def __aenter__(self) -> Self:
        """Start renewing the lease."""
        self._last_renewal = time.monotonic()
        for each in self._threads:
            each.start()
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        """Stop renewing the lease. A renewal that is blocked is abandoned; its result is ignored."""
        with self._deciding:
            self._ended.set()
        await asyncio.to_thread(self._wait)

    def _wait(self) -> None:
        deadline = time.monotonic() + _FINAL_RENEWAL_SECONDS
        for each in self._threads:
            each.join(max(0.0, deadline - time.monotonic()))

    def _renew(self) -> None:
        # After the lease was given up, it is not renewed, or no other worker could claim the job.
        while not self._ended.wait(self._seconds / _RENEWALS_PER_LEASE) and not self._is_lost:
            started_at = time.monotonic()
            try:
                self._store.renew_lease(self._job.number, self._job.generation, self._seconds, self.progress)
                self._last_renewal = started_at
            except LeaseLostError as error:
                self._stop_worker(str(error))
                return
            except DatabaseError as error:
                _log.warning("job %s: no beat: %s", self._job.number, error, extra={"job": self._job.number})

    def _watch_expiry(self) -> None:
        while not self._ended.wait(max(0.0, self._last_renewal + self._seconds - time.monotonic())):
            if time.monotonic() >= self._last_renewal + self._seconds:
                self._stop_worker(
                    f"job {self._job.number}: no beat for as long as its lease: it is left to another worker"
                )
                return

    def _stop_worker(self, reason: str) -> None:
        """Stop the worker, once, unless it has stopped already."""
        with self._deciding:
            if not self._is_lost and not self._ended.is_set():
                self._is_lost = True
                _log.warning("%s", reason, extra={"job": self._job.number})
                self._on_lost()


class JobQuota:
    """Limits of time and size of one job.

    Args:
        folder: Folder of the job's WARC files.
        limits: The limits.
        worked: Seconds that workers have already spent on the job.
        space: Disk space of all jobs.

    Attributes:
        reached: Which limit was reached, or an empty string.
        shortage: Why there is too little disk space to continue, or an empty string.
    """

    def __init__(self, folder: Path, limits: OrderLimits, worked: float = 0.0, space: DiskSpace | None = None) -> None:
        self._folder = folder
        self._limits = limits
        self._started_at = time.monotonic() - worked
        self._last_check = float("-inf")
        self._space = space
        self.reached = ""
        self.shortage = ""

    def is_exceeded(self) -> bool:
        """Return whether to stop. The limits are checked at most once a second."""
        now = time.monotonic()
        if not self.reached and not self.shortage and now - self._last_check >= _QUOTA_CHECK_SECONDS:
            self._last_check = now
            if self._limits.hours and now - self._started_at >= self._limits.hours * _HOUR:
                self.reached = f"it ended after {self._limits.hours} hours, which is the limit here"
            elif self._limits.megabytes and self._size() >= self._limits.megabytes * _MEGABYTE:
                self.reached = f"it ended at {self._limits.megabytes} MB, which is the limit here"
            elif self._space is not None:
                self.shortage = self._space.shortage()
        return bool(self.reached or self.shortage)

    def _size(self) -> int:
        total = 0
        with suppress(OSError):  # files are renamed when they are complete
            total = sum(each.stat().st_size for each in self._folder.iterdir())
        return total


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What a worker needs to process jobs.

    Attributes:
        store: The job store.
        folders: Folders of the jobs.
        archives: The registry, by archive ID.
        open_client: Opens an HTTP client with a maximum wait in seconds, which applies the shared rate limits.
        clock: Source of time.
        lease_seconds: Length of a lease.
        round_pause_seconds: Pause between two rounds of a recovery after archives failed.
        space: Space on the disk of the folders; None for no limits.
    """

    store: JobStore
    folders: JobFolders
    archives: Mapping[str, Archive]
    open_client: Callable[[float], ArchiveHttpClient]
    clock: Clock
    lease_seconds: float = 60.0
    round_pause_seconds: float = 600.0
    space: DiskSpace | None = None


class _UnknownArchiveError(UsageError):
    """An archive that was ordered is not in the registry."""


class JobRunner:
    """Processes one claimed job. `run` ends at the latest when the lease expires."""

    def __init__(self, context: WorkerContext, job: Job) -> None:
        self._context = context
        self._job = job
        self._progress = job.progress
        self._is_lost = False
        self._quota: JobQuota | None = None

    async def run(self) -> None:
        """Process the job until it is complete, has to wait, or its lease is lost.

        On cancellation, the job is released.

        Raises:
            DatabaseError: The result could not be stored. Another worker claims the job after its lease expired.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def on_lost() -> None:
            self._is_lost = True
            if task is not None:
                loop.call_soon_threadsafe(task.cancel)

        try:
            async with LeaseKeeper(self._context.store, self._job, self._context.lease_seconds, on_lost) as keeper:
                final_change = await self._execute(keeper)
            # The lease is not renewed from here on, since the job ends.
            await self._commit(final_change)
            await asyncio.to_thread(
                self._context.folders.remove_older_generations, self._job.number, self._job.generation
            )
        except asyncio.CancelledError:
            if not self._is_lost:
                await self._commit(partial(self._release, 0.0, self._job.rounds))
                raise
            if task is not None:
                task.uncancel()
        except LeaseLostError as error:
            _log.warning("%s", error, extra=self._log_fields())
        except (OSError, UnwrittenError) as error:
            # A full disk is not caused by the job: it is queued again until there is space.
            _log.error("job %s: %s", self._job.number, error, extra=self._log_fields())
            not_before = self._context.clock.now() + self._context.round_pause_seconds
            message = str(error) if isinstance(error, SpaceError) else ""
            await self._commit(partial(self._release, not_before, self._job.rounds, message=message))
        except (InputError, UsageError) as error:
            # The details are only logged, since the message may contain file paths.
            _log.error("job %s: %s", self._job.number, error, extra=self._log_fields())
            message = str(error) if isinstance(error, _UnknownArchiveError) else "it cannot be recovered as it is"
            await self._commit(lambda job, now: states.fail(job, self._job.generation, now, message))

    async def _execute(self, keeper: LeaseKeeper) -> JobChange:
        """Process the job and return its final change of state."""
        job = self._job
        generation = job.generation
        self._check_space()
        folder = await asyncio.to_thread(self._context.folders.begin_generation, job.number, generation)
        message, retry_at, rounds = "", 0.0, 0
        if job.progress.stage is JobStage.RECOVERING or not (folder / STATE_FILE_NAME).exists():
            result = await self._recover(folder, keeper)
            await asyncio.to_thread(write_checkpoint, folder)
            if self._quota is not None and self._quota.shortage:
                raise SpaceError(self._quota.shortage)
            next_round, rounds = self._next_round_time(result), self._count_rounds()
            if next_round is not None and not self._can_offer(result):
                return partial(self._release, next_round, rounds)
            # What was recovered is offered; what failed is retried in the background.
            remarks = (
                summarize_open_issues(result),
                self._limit_reached(),
                "" if next_round is None else _RETRY_REMARK,
            )
            message = "; ".join(filter(None, remarks))
            retry_at, rounds = (0.0, 0) if next_round is None else (next_round, rounds)
            # Reported with the next heartbeat, so that another worker would resume with packaging.
            keeper.progress = replace(self._progress, stage=JobStage.PACKING)
        packages = await asyncio.to_thread(
            write_packages, folder, windows=job.order.windows, language=job.order.language, check=self._check_space
        )
        figures = await asyncio.to_thread(_load_figures, folder)
        progress = self._progress
        return lambda current, now: states.finish(
            current, generation, now, packages, figures, message, progress, retry_at, rounds
        )

    def _release(self, not_before: float, rounds: int, job: Job, now: float, *, message: str = "") -> Job:
        return states.release(job, self._job.generation, now, not_before, rounds, self._progress, message)

    def _check_space(self) -> None:
        """Raise SpaceError if there is too little disk space to start or continue."""
        if self._context.space is not None and (shortage := self._context.space.shortage()):
            raise SpaceError(shortage)

    async def _recover(self, folder: Path, keeper: LeaseKeeper) -> RecoveryRunResult:
        context, order = self._context, self._job.order
        limits = await asyncio.to_thread(context.store.rules.limits)
        worked = await asyncio.to_thread(seconds_worked, context.store.database, self._job.number)
        self._quota = quota = JobQuota(folder / "warc", limits, worked, context.space)

        def on_event(event: RecoveryEvent) -> None:
            if isinstance(event, ProgressCounted):
                self._update_progress(event.counts, keeper)

        session = RecoverySession(
            folder, order.recover_options(), self._archives(), context.open_client(MAX_WAITS["recoveries"]),
            context.clock, on_event=on_event, should_stop=quota.is_exceeded,
        )  # fmt: skip
        checkpoints = asyncio.create_task(_write_checkpoints(folder))
        try:
            result = await session.run()
        finally:
            checkpoints.cancel()
            with suppress(asyncio.CancelledError):
                await checkpoints
        self._update_progress(result.counts, keeper)
        return result

    def _limit_reached(self) -> str:
        """Return which limit of this service was reached, or an empty string."""
        return "" if self._quota is None else self._quota.reached

    def _archives(self) -> dict[str, Archive]:
        known, requested = self._context.archives, self._job.order.archives
        if missing := [name for name in requested if name not in known]:
            raise _UnknownArchiveError(f"no archive `{missing[0]}` in the registry of this worker")
        if requested:
            return {name: replace(known[name], enabled=True) for name in requested}
        return {name: each for name, each in known.items() if each.enabled}

    def _update_progress(self, counts: Mapping[ResourceStatus, int], keeper: LeaseKeeper) -> None:
        self._progress = keeper.progress = JobProgress(
            counts.get(ResourceStatus.RECOVERED, 0),
            counts.get(ResourceStatus.MISSING, 0),
            counts.get(ResourceStatus.QUEUED, 0),
        )

    def _count_rounds(self) -> int:
        """Return the number of rounds without anything new, including this one."""
        return 0 if self._progress.recovered > self._job.progress.recovered else self._job.rounds + 1

    def _can_offer(self, result: RecoveryRunResult) -> bool:
        """Return whether something was recovered and few resources remain that were not yet requested."""
        progress = self._progress
        remaining = max(0, progress.queued - result.failed)
        return progress.recovered > 0 and remaining <= _MAX_REMAINING_SHARE * (
            progress.recovered + progress.missing + progress.queued
        )

    def _next_round_time(self, result: RecoveryRunResult) -> float | None:
        """Return when the next round starts, or None if the recovery is finished."""
        if result.is_done or result.has_reached_limit or self._limit_reached() or self._count_rounds() >= _MAX_ROUNDS:
            return None
        pause = self._context.clock.now() + self._context.round_pause_seconds
        times = [each.until for each in result.suspended.values() if math.isfinite(each.until)]
        # A suspended archive has a known end. Failed listings and captures are retried after a pause.
        return min(times) if times and not result.failed and not result.unlisted else pause

    async def _commit(self, change: JobChange) -> None:
        """Store the final change of state, unless the lease was lost."""
        try:
            await asyncio.shield(asyncio.to_thread(self._context.store.change, self._job.number, change))
        except LeaseLostError as error:
            _log.warning("%s", error, extra=self._log_fields())

    def _log_fields(self) -> dict[str, object]:
        return {"job": self._job.number, "generation": self._job.generation}


async def _write_checkpoints(folder: Path) -> None:
    pause = _CHECKPOINT_SECONDS
    while True:
        await asyncio.sleep(pause)
        started_at = time.monotonic()
        await asyncio.to_thread(write_checkpoint, folder)
        # Copying the state of a million resources takes long: spend at most a twentieth of the time on checkpoints.
        pause = max(_CHECKPOINT_SECONDS, 20 * (time.monotonic() - started_at))


def _load_figures(folder: Path) -> Mapping[str, object]:
    with StateReader(folder) as state:
        return recovery_summary_json(collect_stats(state))


def summarize_open_issues(result: RecoveryRunResult) -> str:
    """Return a remark for the owner about archives that failed or were not completely queried."""
    parts = [f"{name}: incomplete listing" for name in result.unlisted]
    if result.failed:
        parts.append(f"{result.failed} resources missing because archives failed")
    parts += [f"{name}: queries not completed" for name in result.suspended]
    return "; ".join(parts)


def generate_worker_name() -> str:
    """Return a unique name: host name, process id and a random suffix."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


class Worker:
    """Processes jobs, up to `concurrency` at a time. Waits while the database is unavailable.

    Args:
        context: What jobs are processed with.
        name: Unique name of the worker.
        concurrency: Number of jobs at a time.
        poll_seconds: Interval of polls for a job.
    """

    def __init__(
        self, context: WorkerContext, name: str, concurrency: int = 1, poll_seconds: float = _POLL_SECONDS
    ) -> None:
        self._context = context
        self._name = name
        self._concurrency = concurrency
        self._poll_seconds = poll_seconds
        self._stopping = asyncio.Event()
        self._shortage: str | None = None  # None until the first check

    def stop(self) -> None:
        """Claim no more jobs, and release the current ones. To be called in the event loop."""
        self._stopping.set()

    async def run(self) -> None:
        """Process jobs until `stop` is called. Other workers resume the released jobs."""
        job_tasks = [asyncio.create_task(self._run_jobs()) for _ in range(self._concurrency)]
        monitors = [asyncio.create_task(self._send_heartbeats()), asyncio.create_task(self._watch_space())]
        await self._stopping.wait()
        for task in (*monitors, *job_tasks):
            task.cancel()
        await asyncio.gather(*monitors, *job_tasks, return_exceptions=True)
        with suppress(DatabaseError):
            await asyncio.to_thread(self._context.store.remove_worker, self._name)

    async def _send_heartbeats(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self._context.store.record_worker, self._name)
            except DatabaseError as error:
                _log.warning("%s", error, extra={"worker": self._name})
            await asyncio.sleep(_HEARTBEAT_SECONDS)

    async def _watch_space(self) -> None:
        """Monitor the disk space, and set the message of queued jobs while there is too little."""
        space = self._context.space
        while space is not None:
            try:
                shortage = await asyncio.to_thread(space.measure)
                if shortage != (self._shortage or ""):
                    _log.warning("%s", shortage or "there is enough disk space again", extra={"worker": self._name})
                self._shortage = shortage
                await asyncio.to_thread(self._context.store.set_shortage_message, shortage)
            except DatabaseError as error:
                _log.warning("%s", error, extra={"worker": self._name})
            await asyncio.sleep(_SPACE_CHECK_SECONDS)

    async def _run_jobs(self) -> None:
        """Process one job after another."""
        while True:
            try:
                if not await self._run_next_job():
                    await asyncio.sleep(self._poll_seconds)
            except DatabaseError as error:
                _log.warning("%s", error, extra={"worker": self._name})
                await asyncio.sleep(_RETRY_SECONDS)
            except Exception:  # noqa: BLE001  any error: another worker takes the job over, and it counts as a crash
                _log.exception("a fault of ours; it goes on with the next job", extra={"worker": self._name})
                await asyncio.sleep(self._poll_seconds)

    async def _run_next_job(self) -> bool:
        """Process the next job if there is one and enough disk space. Returns whether there was one."""
        if self._context.space is not None and (self._shortage is None or self._context.space.shortage()):
            return False
        claiming = asyncio.ensure_future(
            asyncio.to_thread(self._context.store.claim, self._name, self._context.lease_seconds)
        )
        try:
            job = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # The claim completes in its thread in any case, so the job must be released.
            job = await claiming
            if job is not None:
                await self._release(job)
            raise
        if job is None:
            return False
        log_fields = {"job": job.number, "generation": job.generation, "worker": self._name}
        _log.info("job %s begun", job.number, extra=log_fields)
        await JobRunner(self._context, job).run()
        _log.info("job %s left", job.number, extra=log_fields)
        return True

    async def _release(self, job: Job) -> None:
        with suppress(DatabaseError, LeaseLostError):
            await asyncio.to_thread(
                self._context.store.change, job.number, lambda current, now: release(current, job.generation, now)
            )
