"""A worker: takes one job after the other, until it is told to end."""

import asyncio
import logging
import os
import secrets
import socket
from contextlib import suppress

from unlost.errors import DatabaseError, LeaseLostError
from unlost.service.jobs.job import Job
from unlost.service.jobs.states import release
from unlost.service.jobs.work import WorkerContext, JobRunner

_log = logging.getLogger(__name__)
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
