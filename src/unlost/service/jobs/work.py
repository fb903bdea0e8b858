"""One job, done by one worker under one lease: recovers, packs, and says what came of it."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from unlost._core import VERSION
from unlost.archives.archive import Archive
from unlost.archives.asking.courier import ArchiveHttpClient
from unlost.archives.opening import create_client
from unlost.clock import Clock
from unlost.errors import InputError, LeaseLostError, SpaceError, UnwrittenError, UsageError
from unlost.recover.recovery import RecoverySession
from unlost.recover.report.figures import collect_stats
from unlost.recover.report.objects import summary_json
from unlost.recover.result import RecoveryRunResult
from unlost.recover.state.reading import StateReader
from unlost.recover.state.state import RecoveryState as RecoveryState
from unlost.recover.warcs import WarcStore
from unlost.service.jobs import states
from unlost.service.jobs.bound import JobQuota
from unlost.service.jobs.disk_space import DiskSpace
from unlost.service.jobs.folders import JobFolders, write_checkpoint
from unlost.service.jobs.job import Job, JobProgress, JobStage
from unlost.service.jobs.keeping import LeaseKeeper
from unlost.service.jobs.log import seconds_worked
from unlost.service.jobs.packages import write_packages
from unlost.service.jobs.store import JobStore
from unlost.state_file import STATE_FILE_NAME

JobChange = Callable[[Job, float], Job]
"""What is to become of a job, as `Jobs.change` takes it."""

_log = logging.getLogger(__name__)
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
                    order.recover_options(), state, warcs, repositories, tools.clock, tell, requests_sent=courier.request_counts,
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
