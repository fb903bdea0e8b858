"""`unlost worker`: runs the jobs of a service, on the same machine or another one."""

import asyncio
import os
import select
import signal
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import uvloop

from unlost.cli.archive_options import archives_option, contact_option, only_option, read_registry
from unlost.cli.job_options import (
    database_option,
    jobs_option,
    log_to_stderr,
    max_jobs_size_option,
    min_free_space_option,
    open_database,
    open_job_limit_store,
)
from unlost.cli.messages import say
from unlost.clock import SystemClock
from unlost.errors import DatabaseError, UsageError
from unlost.http.client import ArchiveHttpClient
from unlost.jobs.folders import DiskSpace, DiskSpaceLimits, JobFolders
from unlost.jobs.store import JobStore
from unlost.jobs.worker import Worker, WorkerContext, generate_worker_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from unlost.jobs.database import Database
    from unlost.registry.models import Archive

_WAIT_SECONDS = 5.0  # between two attempts to reach the database at the start
_NICENESS = 10  # requests to the service on the same machine have priority


@click.command(name="worker")
@jobs_option
@database_option
@click.option(
    "--name",
    metavar="NAME",
    help="Name of this worker in listings.  [default: host name, process id and a random word]",
)
@click.option(
    "--at-once",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    metavar="N",
    help="Run at most N jobs at the same time.",
)
@click.option(
    "--lease",
    type=click.FloatRange(1, 86_400),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="Let another worker take over a job if this worker has not renewed its lease for SECONDS.",
)
@click.option(
    "--pause",
    type=click.FloatRange(0, 86_400),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="Let a job wait SECONDS before it queries failed archives again.",
)
@click.option(
    "--connections",
    type=click.IntRange(1, 20),
    default=6,
    show_default=True,
    metavar="N",
    help="Send at most N concurrent requests to each archive.",
)
@click.option(
    "--nice",
    type=click.IntRange(0, 19),
    default=_NICENESS,
    show_default=True,
    metavar="N",
    help="Add N to the nice value of the process, which lowers its CPU priority. 0 leaves it unchanged.",
)
@min_free_space_option
@max_jobs_size_option
@click.option("--with-parent", is_flag=True, hidden=True, help="Exit when standard input is closed.")
@archives_option
@only_option
@contact_option
def command(
    jobs: Path | None,
    database: str | None,
    name: str | None,
    at_once: int,
    lease: float,
    pause: float,
    connections: int,
    nice: int,
    min_free_space: int,
    max_jobs_size: int,
    with_parent: bool,
    archives: Path | None,
    only: tuple[str, ...],
    contact: str | None,
) -> None:
    """Run recovery jobs of a service (`unlost serve --jobs`) until interrupted.

    Several workers can run in parallel, with --database also on other machines. If a worker stops or crashes, another
    one resumes its jobs.

    \b
    Example:
      unlost worker --jobs /srv/unlost --at-once 4 --contact you@example.org
    """
    os.nice(nice)  # before imports, which take longer than a small job

    if jobs is None:
        raise UsageError("--jobs is missing: the folder that `unlost serve --jobs` has")
    log_to_stderr()
    job_database = _wait_for_database(partial(open_database, jobs, database, is_durable=False), with_parent=with_parent)
    if job_database is None:
        return
    try:
        known_archives = _select_archives(archives, only)
        context = _create_context(jobs, job_database, known_archives, contact, connections)
        space = DiskSpace(context.folders, DiskSpaceLimits.from_megabytes(min_free_space, max_jobs_size))
        context = replace(context, lease_seconds=lease, round_pause_seconds=pause, space=space)
        ended_by = uvloop.run(_run_worker(context, name or generate_worker_name(), at_once, with_parent=with_parent))
    finally:
        job_database.close()
    if ended_by == signal.SIGINT:
        raise KeyboardInterrupt


def _wait_for_database(open_: "Callable[[], Database]", *, with_parent: bool) -> "Database | None":
    """Return the database once it can be reached; None if the parent process ended before that."""
    while True:
        try:
            return open_()
        except DatabaseError as error:
            say(f"waiting for the database: {error}", level="warning")
        if not with_parent:
            time.sleep(_WAIT_SECONDS)
        elif select.select([sys.stdin], [], [], _WAIT_SECONDS)[0]:  # the parent sends nothing: it was closed
            return None


def _select_archives(file: Path | None, only: tuple[str, ...]) -> "dict[str, Archive]":
    registry = read_registry(file)
    if only:
        return {each.id: replace(each, enabled=True) for each in registry.only(only)}
    return {each.id: each for each in registry.archives}


def _create_context(
    folder: Path, database: "Database", archives: "dict[str, Archive]", contact: str | None, connections: int
) -> "WorkerContext":
    clock = SystemClock()
    store = open_job_limit_store(database)

    def open_client(max_wait: float) -> ArchiveHttpClient:
        on_message = partial(say, level="note")
        return ArchiveHttpClient(
            store, clock, contact, max_wait=max_wait, connections_per_host=connections, warn=on_message
        )  # fmt: skip

    return WorkerContext(JobStore(database), JobFolders(folder / "work"), archives, open_client, clock)


async def _run_worker(context: "WorkerContext", name: str, at_once: int, *, with_parent: bool) -> int:
    """Process jobs until a signal arrives; return its number."""
    worker = Worker(context, name, at_once)
    loop = asyncio.get_running_loop()
    ended_by: list[int] = []

    def stop(number: int) -> None:
        ended_by.append(number)
        worker.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    if with_parent:
        # The parent never writes to this pipe; it is closed when the parent ends, even if it crashes.
        loop.add_reader(sys.stdin.fileno(), stop, signal.SIGTERM)
    say(f"worker {name} waits for jobs", level="note")
    await worker.run()
    return ended_by[0]
