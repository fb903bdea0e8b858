"""Workers: claim jobs, keep their leases, recover, pack, and report the result."""

import asyncio
import logging
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from unlost._core import VERSION
from unlost.archives.factory import create_client
from unlost.clock import Clock
from unlost.errors import DatabaseError, InputError, LeaseLostError, SpaceError, UnwrittenError, UsageError
from unlost.http.client import ArchiveHttpClient
from unlost.jobs import states
from unlost.jobs.folders import DiskSpace, JobFolders, write_checkpoint
from unlost.jobs.limits import OrderLimits
from unlost.jobs.models import Job, JobProgress, JobStage
from unlost.jobs.packages import write_packages
from unlost.jobs.states import release
from unlost.jobs.store import JobStore, seconds_worked
from unlost.recover.session import RecoveryRunResult, RecoverySession
from unlost.recover.state.reader import StateReader
from unlost.recover.state.store import RecoveryState
from unlost.recover.warc_store import WarcStore
from unlost.registry.models import Archive
from unlost.report.recovery.serializers import summary_json
from unlost.report.recovery.stats import collect_stats
from unlost.sqlite import STATE_FILE_NAME

_log = logging.getLogger(__name__)
_BEATS = 4  # within one lease: three may be lost before it is
_LAST_SECONDS = 1.0  # for which the end of a last beat is waited for: a good one takes milliseconds


class LeaseKeeper:
    """Beats for one job, in a thread of its own, whatever the worker's event loop is busy with.

    It is used as an async context manager. Another thread looks at the clock meanwhile: where a cable was pulled out,
    nobody is told, and a beat hangs for as long as the system goes on trying.

    seconds: of a lease. lost: called once at most, from a thread and never after the block, when the worker must stop:
        somebody else has the job, or the database was out of reach for so long that somebody else may have it.
    progress: the last that is known; to be set by whoever works.
    """

    def __init__(self, store: JobStore, job: Job, seconds: float, on_lost: Callable[[], object]) -> None:
        self._store = store
        self._job = job
        self._seconds = seconds
        self._on_lost = on_lost
        self._ended = threading.Event()
        self._is_lost = False
        self._deciding = threading.Lock()  # whether it is lost or has ended: whichever is first
        # The time of this machine alone: when the last good beat was. It is taken before the beat, so that the lease
        # ends here first, and only then in the database.
        self._last_renewal = time.monotonic()
        name = f"lease-{job.number}"
        self._threads = [
            threading.Thread(target=each, name=name, daemon=True) for each in (self._renew, self._watch_expiry)
        ]  # fmt: skip
        self.progress: JobProgress = job.progress

    async def __aenter__(self) -> Self:
        """Begin to beat."""
        self._last_renewal = time.monotonic()
        for each in self._threads:
            each.start()
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        """Beat no more. A beat that hangs is left alone: it holds nobody up, and what it comes to counts no more."""
        with self._deciding:
            self._ended.set()
        await asyncio.to_thread(self._wait)

    def _wait(self) -> None:
        deadline = time.monotonic() + _LAST_SECONDS
        for each in self._threads:
            each.join(max(0.0, deadline - time.monotonic()))

    def _renew(self) -> None:
        # Who has given a job up beats for it no more, or nobody else could have it while things are put away.
        while not self._ended.wait(self._seconds / _BEATS) and not self._is_lost:
            begun = time.monotonic()
            try:
                self._store.renew_lease(self._job.number, self._job.generation, self._seconds, self.progress)
                self._last_renewal = begun
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

    def _stop_worker(self, why: str) -> None:
        """Have the worker stop, once, unless it has stopped."""
        with self._deciding:
            if not self._is_lost and not self._ended.is_set():
                self._is_lost = True
                _log.warning("%s", why, extra={"job": self._job.number})
                self._on_lost()


_QUOTA_CHECK_SECONDS = 1.0
_HOUR = 3_600.0
_MEGABYTE = 1_000_000


class JobQuota:
    """Watches a folder of WARCs, and the time. reached: which limit was, in words; nothing if none.

    worked: seconds for which it has been worked on before. space: the disk space of all jobs.
    shortage: why there is too little disk space to continue; empty if there is enough.
    """

    def __init__(self, folder: Path, limits: OrderLimits, worked: float = 0.0, space: DiskSpace | None = None) -> None:
        self._folder = folder
        self._limits = limits
        self._begun = time.monotonic() - worked
        self._last_check = float("-inf")
        self._space = space
        self.reached = ""
        self.shortage = ""

    def is_exceeded(self) -> bool:
        """Return whether to stop. It looks once a second at most, for it is asked often."""
        now = time.monotonic()
        if not self.reached and not self.shortage and now - self._last_check >= _QUOTA_CHECK_SECONDS:
            self._last_check = now
            if self._limits.hours and now - self._begun >= self._limits.hours * _HOUR:
                self.reached = f"it ended after {self._limits.hours} hours, which is the limit here"
            elif self._limits.megabytes and self._size() >= self._limits.megabytes * _MEGABYTE:
                self.reached = f"it ended at {self._limits.megabytes} MB, which is the limit here"
            elif self._space is not None:
                self.shortage = self._space.shortage()
        return bool(self.reached or self.shortage)

    def _size(self) -> int:
        total = 0
        with suppress(OSError):  # files get other names when they are full
            total = sum(each.stat().st_size for each in self._folder.iterdir())
        return total


JobChange = Callable[[Job, float], Job]
"""What is to become of a job, as `Jobs.change` takes it."""
_CHECKPOINT_SECONDS = 15.0
"""Between two checkpoints: what is lost beyond one is lists and questions, since copies are found in the WARCs."""
_MAX_RATE_LIMIT_WAIT_SECONDS = (
    900.0  # for which a question is kept waiting by rates; quotas and blocks end a round at once
)
_MAX_REMAINING_SHARE = 0.1  # of all resources: with more to come, a job goes back into the queue
_RETRY_REMARK = "the rest is retried in the background"
_MAX_ROUNDS = 3  # without anything new, after which a job is complete although some archive still fails


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What jobs are done with.

    archives: those that are on, or may be named, by id. courier: makes one that keeps the limits of all workers.
    lease: seconds. pause: seconds between two rounds of a recovery, where archives failed. space: of the disk that the
        folders are on; None if it is unlimited.
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
    """What is done about one job that was claimed. `run` ends when its lease does, at the latest."""

    def __init__(self, context: WorkerContext, job: Job) -> None:
        self._context = context
        self._job = job
        self._progress = job.progress
        self._is_lost = False
        self._quota: JobQuota | None = None

    async def run(self) -> None:
        """Do it, until it is done, cannot be done now, or is not ours any more; cancelled, it is given back.

        Raises DatabaseError if nobody could be told how it ended: the job is then taken over once its lease is over.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def lost() -> None:
            self._is_lost = True
            if task is not None:
                loop.call_soon_threadsafe(task.cancel)

        try:
            async with LeaseKeeper(self._context.store, self._job, self._context.lease_seconds, lost) as keeper:
                ending = await self._execute(keeper)
            # No more beats from here on: they would be told that the job has ended.
            await self._commit(ending)
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
            # A full disk is not the job's fault: it waits for its turn again, and for room.
            _log.error("job %s: %s", self._job.number, error, extra=self._log_fields())
            later = self._context.clock.now() + self._context.round_pause_seconds
            message = str(error) if isinstance(error, SpaceError) else ""
            await self._commit(partial(self._release, later, self._job.rounds, message=message))
        except (InputError, UsageError) as error:
            # Only the log says what exactly: the message may have paths of files.
            _log.error("job %s: %s", self._job.number, error, extra=self._log_fields())
            message = str(error) if isinstance(error, _UnknownArchiveError) else "it cannot be recovered as it is"
            await self._commit(lambda job, now: states.fail(job, self._job.generation, now, message))

    async def _execute(self, keeper: LeaseKeeper) -> JobChange:
        """Work; return what is to become of the job."""
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
            again, rounds = self._next_round_time(result), self._count_rounds()
            if again is not None and not self._can_offer(result):
                return partial(self._release, again, rounds)
            # What is there is offered; what failed is retried in the background.
            parts = (summarize_open_issues(result), self._limit_reached(), "" if again is None else _RETRY_REMARK)
            message = "; ".join(part for part in parts if part)
            retry_at, rounds = (0.0, 0) if again is None else (again, rounds)
            # It is told with the next beat: whoever takes over before that has little to do again.
            keeper.progress = replace(self._progress, stage=JobStage.PACKING)
        packages = await asyncio.to_thread(
            write_packages, folder, windows=job.order.windows, language=job.order.language, check=self._check_space
        )
        figures = await asyncio.to_thread(_load_figures, folder)
        progress = self._progress
        return lambda found, now: states.finish(
            found, generation, now, packages, figures, message, progress, retry_at, rounds
        )

    def _release(self, not_before: float, rounds: int, job: Job, now: float, *, message: str = "") -> Job:
        return states.release(job, self._job.generation, now, not_before, rounds, self._progress, message)

    def _check_space(self) -> None:
        """Raise SpaceError if there is too little disk space to start or continue."""
        if self._context.space is not None and (shortage := self._context.space.shortage()):
            raise SpaceError(shortage)

    async def _recover(self, folder: Path, keeper: LeaseKeeper) -> RecoveryRunResult:
        tools, order = self._context, self._job.order
        limits = await asyncio.to_thread(tools.store.rules.limits)
        worked = await asyncio.to_thread(seconds_worked, tools.store.database, self._job.number)
        self._quota = bound = JobQuota(folder / "warc", limits, worked, tools.space)
        with (
            RecoveryState(folder) as state,
            closing(WarcStore(folder / "warc", tools.clock, f"unlost/{VERSION}")) as warcs,
        ):
            async with tools.open_client(_MAX_RATE_LIMIT_WAIT_SECONDS) as courier:
                repositories = {name: create_client(each, courier) for name, each in self._archives().items()}

                def tell(event: str, fields: Mapping[str, object]) -> None:
                    if event == "progress":
                        self._update_progress(fields, keeper)

                recovery = RecoverySession(
                    order.recover_options(), state, warcs, repositories, tools.clock, tell,
                    requests_sent=courier.request_counts,
                    should_stop=bound.is_exceeded,
                )  # fmt: skip
                writing = asyncio.create_task(_write_checkpoints(folder))
                try:
                    result = await recovery.run()
                finally:
                    writing.cancel()
                    with suppress(asyncio.CancelledError):
                        await writing
            self._update_progress({standing.value: count for standing, count in result.counts.items()}, keeper)
            return result

    def _limit_reached(self) -> str:
        """Return which limit of this service ended it, in words; nothing if none did."""
        return "" if self._quota is None else self._quota.reached

    def _archives(self) -> dict[str, Archive]:
        known, wanted = self._context.archives, self._job.order.archives
        if missing := [name for name in wanted if name not in known]:
            raise _UnknownArchiveError(f"no archive `{missing[0]}` in the registry of this worker")
        if wanted:
            return {name: replace(known[name], enabled=True) for name in wanted}
        return {name: each for name, each in known.items() if each.enabled}

    def _update_progress(self, counts: Mapping[str, object], keeper: LeaseKeeper) -> None:
        recovered, missing, queued = (int(str(counts.get(name, 0))) for name in ("recovered", "missing", "queued"))
        self._progress = keeper.progress = JobProgress(recovered, missing, queued)

    def _count_rounds(self) -> int:
        """Return how many rounds brought nothing new, with this one."""
        return 0 if self._progress.recovered > self._job.progress.recovered else self._job.rounds + 1

    def _can_offer(self, result: RecoveryRunResult) -> bool:
        """Return whether something came back, and little is left that did not fail but could not be requested yet."""
        progress = self._progress
        left = max(0, progress.queued - result.failed)
        return progress.recovered > 0 and left <= _MAX_REMAINING_SHARE * (
            progress.recovered + progress.missing + progress.queued
        )

    def _next_round_time(self, result: RecoveryRunResult) -> float | None:
        """Return when to go on; None if what there is, is all that there will be."""
        if result.is_done or result.has_reached_limit or self._limit_reached() or self._count_rounds() >= _MAX_ROUNDS:
            return None
        pause = self._context.clock.now() + self._context.round_pause_seconds
        times = [each.until for each in result.suspended.values() if math.isfinite(each.until)]
        # Whoever is closed says when; lists and copies that failed are asked for after a pause.
        return min(times) if times and not result.failed and not result.unlisted else pause

    async def _commit(self, change: JobChange) -> None:
        """Say how it ended; if it is not ours any more, nothing is changed."""
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
        begun = time.monotonic()
        await asyncio.to_thread(write_checkpoint, folder)
        # The state of a million resources takes a while to copy.
        pause = max(_CHECKPOINT_SECONDS, 20 * (time.monotonic() - begun))


def _load_figures(folder: Path) -> Mapping[str, object]:
    with StateReader(folder) as state:
        return summary_json(collect_stats(state))


def summarize_open_issues(result: RecoveryRunResult) -> str:
    """Return what is left open, for the owner."""
    parts = [f"{name} gave no whole list" for name in result.unlisted]
    if result.failed:
        parts.append(f"{result.failed} resources may be had another time, since archives failed")
    parts += [f"{name} could not be asked for all" for name in result.suspended]
    return "; ".join(parts)


_POLL_SECONDS = 1.0  # between two looks for a job, while there is none
_HEARTBEAT_SECONDS = 20.0
_SPACE_CHECK_SECONDS = 1.0  # between two checks of the disk space
_RETRY_SECONDS = 5.0  # after the database was out of reach


def generate_worker_name() -> str:
    """Return a name that no other worker has: that of the machine, the number of the process, and a word at random."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


class Worker:
    """Does jobs, several at once if it is told to. The database may go away and come back: it waits for it.

    name: as lists of workers show it; no two that live may have the same. at_once: how many jobs.
    look: seconds between two looks for a job.
    """

    def __init__(
        self, context: WorkerContext, name: str, concurrency: int = 1, poll_seconds: float = _POLL_SECONDS
    ) -> None:
        self._context = context
        self._name = name
        self._concurrency = concurrency
        self._poll_seconds = poll_seconds
        self._stopping = asyncio.Event()
        self._shortage: str | None = None  # not known yet

    def stop(self) -> None:
        """Take no more jobs, and give back those that are being done; to be called in the event loop."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until `stop`. Jobs that are given back then go on elsewhere from where they are."""
        tasks = [asyncio.create_task(self._run_jobs()) for _ in range(self._concurrency)]
        others = [asyncio.create_task(self._send_heartbeats()), asyncio.create_task(self._watch_space())]
        await self._stopping.wait()
        for task in (*others, *tasks):
            task.cancel()
        await asyncio.gather(*others, *tasks, return_exceptions=True)
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
        """Check the disk space, and have all queued jobs say so while there is too little."""
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
        """Do one job after the other."""
        while True:
            try:
                if not await self._run_next_job():
                    await asyncio.sleep(self._poll_seconds)
            except DatabaseError as error:
                _log.warning("%s", error, extra={"worker": self._name})
                await asyncio.sleep(_RETRY_SECONDS)
            except Exception:  # noqa: BLE001  whatever it is, the job is taken over, and counted as a crash
                _log.exception("a fault of ours; it goes on with the next job", extra={"worker": self._name})
                await asyncio.sleep(self._poll_seconds)

    async def _run_next_job(self) -> bool:
        """Do the next job, if there is one and disk space for it; return whether there was."""
        if self._context.space is not None and (self._shortage is None or self._context.space.shortage()):
            return False
        claiming = asyncio.ensure_future(
            asyncio.to_thread(self._context.store.claim, self._name, self._context.lease_seconds)
        )
        try:
            job = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # The claim goes through all the same: what it gives us must be given back.
            job = await claiming
            if job is not None:
                await self._release(job)
            raise
        if job is None:
            return False
        about = {"job": job.number, "generation": job.generation, "worker": self._name}
        _log.info("job %s begun", job.number, extra=about)
        await JobRunner(self._context, job).run()
        _log.info("job %s left", job.number, extra=about)
        return True

    async def _release(self, job: Job) -> None:
        with suppress(DatabaseError, LeaseLostError):
            await asyncio.to_thread(
                self._context.store.change, job.number, lambda found, now: release(found, job.generation, now)
            )
