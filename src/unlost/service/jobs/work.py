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
from unlost.archives.asking.courier import Courier
from unlost.archives.opening import open_repository
from unlost.clock import Clock
from unlost.errors import InputError, LeaseLostError, SpaceError, UnwrittenError, UsageError
from unlost.recover.recovery import Recovery
from unlost.recover.report.figures import figures_of
from unlost.recover.report.objects import summary_object
from unlost.recover.result import Result
from unlost.recover.state.reading import StateReading
from unlost.recover.state.state import State as RecoveryState
from unlost.recover.warcs import Warcs
from unlost.service.jobs import states
from unlost.service.jobs.bound import Bound
from unlost.service.jobs.disk_space import DiskSpace
from unlost.service.jobs.folders import JobFolders, checkpoint
from unlost.service.jobs.job import Job, Progress, Stage
from unlost.service.jobs.keeping import LeaseKeeper
from unlost.service.jobs.log import seconds_worked
from unlost.service.jobs.packages import pack
from unlost.service.jobs.store import Jobs
from unlost.state_file import NAME

Ending = Callable[[Job, float], Job]
"""What is to become of a job, as `Jobs.change` takes it."""

_log = logging.getLogger(__name__)
_CHECKPOINT_SECONDS = 15.0
"""Between two checkpoints: what is lost beyond one is lists and questions, since copies are found in the WARCs."""
_PATIENCE_SECONDS = 900.0  # for which a question is kept waiting by rates; quotas and blocks end a round at once
_MAX_LEFT = 0.1  # of all resources: with more to come, a job goes back into the queue
_RETRIED = "the rest is retried in the background"
_MAX_ROUNDS = 3  # without anything new, after which a job is complete although some archive still fails


@dataclass(frozen=True, slots=True)
class Tools:
    """What jobs are done with.

    archives: those that are on, or may be named, by id. courier: makes one that keeps the limits of all workers.
    lease: seconds. pause: seconds between two rounds of a recovery, where archives failed. space: of the disk that the
        folders are on; None if it is unlimited.
    """

    jobs: Jobs
    folders: JobFolders
    archives: Mapping[str, Archive]
    courier: Callable[[float], Courier]
    clock: Clock
    lease: float = 60.0
    pause: float = 600.0
    space: DiskSpace | None = None


class _UnknownArchiveError(UsageError):
    """An archive that was ordered is not in the registry."""


class Work:
    """What is done about one job that was claimed. `run` ends when its lease does, at the latest."""

    def __init__(self, tools: Tools, job: Job) -> None:
        self._tools = tools
        self._job = job
        self._progress = job.progress
        self._is_lost = False
        self._bound: Bound | None = None

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
            async with LeaseKeeper(self._tools.jobs, self._job, self._tools.lease, lost) as keeper:
                ending = await self._ending(keeper)
            # No more beats from here on: they would be told that the job has ended.
            await self._told(ending)
            await asyncio.to_thread(self._tools.folders.keep_only, self._job.number, self._job.generation)
        except asyncio.CancelledError:
            if not self._is_lost:
                await self._told(partial(self._given_back, 0.0, self._job.rounds))
                raise
            if task is not None:
                task.uncancel()
        except LeaseLostError as error:
            _log.warning("%s", error, extra=self._about())
        except (OSError, UnwrittenError) as error:
            # A full disk is not the job's fault: it waits for its turn again, and for room.
            _log.error("job %s: %s", self._job.number, error, extra=self._about())
            later = self._tools.clock.now() + self._tools.pause
            message = str(error) if isinstance(error, SpaceError) else ""
            await self._told(partial(self._given_back, later, self._job.rounds, message=message))
        except (InputError, UsageError) as error:
            # Only the log says what exactly: the message may have paths of files.
            _log.error("job %s: %s", self._job.number, error, extra=self._about())
            message = str(error) if isinstance(error, _UnknownArchiveError) else "it cannot be recovered as it is"
            await self._told(lambda job, now: states.fail(job, self._job.generation, now, message))

    async def _ending(self, keeper: LeaseKeeper) -> Ending:
        """Work; return what is to become of the job."""
        job = self._job
        generation = job.generation
        self._check_space()
        folder = await asyncio.to_thread(self._tools.folders.begin, job.number, generation)
        message, retry_at, rounds = "", 0.0, 0
        if job.progress.stage is Stage.RECOVERING or not (folder / NAME).exists():
            result = await self._recovered(folder, keeper)
            await asyncio.to_thread(checkpoint, folder)
            if self._bound is not None and self._bound.shortage:
                raise SpaceError(self._bound.shortage)
            again, rounds = self._when_again(result), self._rounds()
            if again is not None and not self._is_enough_to_offer(result):
                return partial(self._given_back, again, rounds)
            # What is there is offered; what failed is retried in the background.
            parts = (remark(result), self._stopped(), "" if again is None else _RETRIED)
            message = "; ".join(part for part in parts if part)
            retry_at, rounds = (0.0, 0) if again is None else (again, rounds)
            # It is told with the next beat: whoever takes over before that has little to do again.
            keeper.progress = replace(self._progress, stage=Stage.PACKING)
        packages = await asyncio.to_thread(
            pack, folder, windows=job.order.windows, language=job.order.language, check=self._check_space
        )
        figures = await asyncio.to_thread(_figures, folder)
        progress = self._progress
        return lambda found, now: states.finish(
            found, generation, now, packages, figures, message, progress, retry_at, rounds
        )

    def _given_back(self, again: float, rounds: int, job: Job, now: float, *, message: str = "") -> Job:
        return states.give_back(job, self._job.generation, now, again, rounds, self._progress, message)

    def _check_space(self) -> None:
        """Raise SpaceError if there is too little disk space to start or continue."""
        if self._tools.space is not None and (shortage := self._tools.space.shortage()):
            raise SpaceError(shortage)

    async def _recovered(self, folder: Path, keeper: LeaseKeeper) -> Result:
        tools, order = self._tools, self._job.order
        limits = await asyncio.to_thread(tools.jobs.rules.limits)
        worked = await asyncio.to_thread(seconds_worked, tools.jobs.database, self._job.number)
        self._bound = bound = Bound(folder / "warc", limits, worked, tools.space)
        with (
            RecoveryState(folder) as state,
            closing(Warcs(folder / "warc", tools.clock, f"unlost/{VERSION}")) as warcs,
        ):
            async with tools.courier(_PATIENCE_SECONDS) as courier:
                repositories = {name: open_repository(each, courier) for name, each in self._archives().items()}

                def tell(event: str, fields: Mapping[str, object]) -> None:
                    if event == "progress":
                        self._see(fields, keeper)

                recovery = Recovery(
                    order.plan(), state, warcs, repositories, tools.clock, tell, sent=courier.sent,
                    should_stop=bound.is_over,
                )  # fmt: skip
                writing = asyncio.create_task(_checkpoints(folder))
                try:
                    result = await recovery.run()
                finally:
                    writing.cancel()
                    with suppress(asyncio.CancelledError):
                        await writing
            self._see({standing.value: count for standing, count in result.counts.items()}, keeper)
            return result

    def _stopped(self) -> str:
        """Return which limit of this service ended it, in words; nothing if none did."""
        return "" if self._bound is None else self._bound.reached

    def _archives(self) -> dict[str, Archive]:
        known, wanted = self._tools.archives, self._job.order.archives
        if missing := [name for name in wanted if name not in known]:
            raise _UnknownArchiveError(f"no archive `{missing[0]}` in the registry of this worker")
        if wanted:
            return {name: replace(known[name], enabled=True) for name in wanted}
        return {name: each for name, each in known.items() if each.enabled}

    def _see(self, counts: Mapping[str, object], keeper: LeaseKeeper) -> None:
        recovered, missing, queued = (int(str(counts.get(name, 0))) for name in ("recovered", "missing", "queued"))
        self._progress = keeper.progress = Progress(recovered, missing, queued)

    def _rounds(self) -> int:
        """Return how many rounds brought nothing new, with this one."""
        return 0 if self._progress.recovered > self._job.progress.recovered else self._job.rounds + 1

    def _is_enough_to_offer(self, result: Result) -> bool:
        """Return whether something came back, and little is left that did not fail but could not be requested yet."""
        progress = self._progress
        left = max(0, progress.queued - result.failed)
        return progress.recovered > 0 and left <= _MAX_LEFT * (progress.recovered + progress.missing + progress.queued)

    def _when_again(self, result: Result) -> float | None:
        """Return when to go on; None if what there is, is all that there will be."""
        if result.is_done or result.is_enough or self._stopped() or self._rounds() >= _MAX_ROUNDS:
            return None
        pause = self._tools.clock.now() + self._tools.pause
        times = [each.until for each in result.closed.values() if math.isfinite(each.until)]
        # Whoever is closed says when; lists and copies that failed are asked for after a pause.
        return min(times) if times and not result.failed and not result.unlisted else pause

    async def _told(self, change: Ending) -> None:
        """Say how it ended; if it is not ours any more, nothing is changed."""
        try:
            await asyncio.shield(asyncio.to_thread(self._tools.jobs.change, self._job.number, change))
        except LeaseLostError as error:
            _log.warning("%s", error, extra=self._about())

    def _about(self) -> dict[str, object]:
        return {"job": self._job.number, "generation": self._job.generation}


async def _checkpoints(folder: Path) -> None:
    pause = _CHECKPOINT_SECONDS
    while True:
        await asyncio.sleep(pause)
        begun = time.monotonic()
        await asyncio.to_thread(checkpoint, folder)
        # The state of a million resources takes a while to copy.
        pause = max(_CHECKPOINT_SECONDS, 20 * (time.monotonic() - begun))


def _figures(folder: Path) -> Mapping[str, object]:
    with StateReading(folder) as state:
        return summary_object(figures_of(state))


def remark(result: Result) -> str:
    """Return what is left open, for the owner."""
    parts = [f"{name} gave no whole list" for name in result.unlisted]
    if result.failed:
        parts.append(f"{result.failed} resources may be had another time, since archives failed")
    parts += [f"{name} could not be asked for all" for name in result.closed]
    return "; ".join(parts)
