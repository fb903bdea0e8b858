"""Many small jobs in parallel: no job is lost or run twice while workers are killed, and submission stays fast.

The web process runs without workers of its own; two separate workers are killed with SIGKILL at random and replaced.
After a warm-up, an idle server without workers or event streams gets the same submissions at the same rate.
`JOBS_DATABASE=postgresql` runs the benchmark on PostgreSQL.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import aiohttp
from tests.external import postgresql
from tests.jobs.service_process import ServiceProcess, run_service
from tests.recovery.site import ROOT

from bench.jobs_processes import JOBS_PER_WORKER, STREAMS, WORKERS, Participant, run_participant
from bench.measure import Report
from unlost.jobs import MAILS, Database, Job, JobState, JobStore, MailKind, file_url

JOBS = int(os.environ.get("JOBS_COUNT", "2000"))
IDLE_JOBS = min(JOBS, 1000)  # so that ten samples exceed the 99th percentile
WARM_UP_JOBS = 100  # submissions that are not measured
RATE = 20.0  # orders a second


async def submit(session: aiohttp.ClientSession, service: ServiceProcess, keys: list[str]) -> float:
    """Submit a job for one page; return the duration in seconds."""
    order = {"url": ROOT, "mail": "me@example.org", "page": True}
    start = time.perf_counter()
    async with session.post(
        f"{service.base}/api/jobs", json=order, headers={"Authorization": f"Bearer {service.token}"}
    ) as response:
        found = await response.json()
        if response.status != 201:
            raise RuntimeError(f"{response.status}: {found}")
    keys.append(found["key"])
    return time.perf_counter() - start


async def submit_jobs(
    service: ServiceProcess, number: int, watchers: Participant | None, keys: list[str]
) -> list[float]:
    """Submit `number` jobs at a steady rate, independent of response times; return the duration of each.

    Args:
        service: The web process.
        number: Number of jobs.
        watchers: Participant that receives each key.
        keys: List to which the keys are appended.
    """
    sent = len(keys)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        start = time.perf_counter()
        tasks = []
        for index in range(number):
            await asyncio.sleep(max(0.0, start + index / RATE - time.perf_counter()))
            tasks.append(asyncio.create_task(submit(session, service, keys)))
            if watchers is not None:
                for key in keys[sent:]:
                    watchers.send(key)
                sent = len(keys)
        return list(await asyncio.gather(*tasks))


async def submit_watched_jobs(service: ServiceProcess, watchers: Participant) -> list[str]:
    """Submit one job for each stream; return the keys once all streams are open."""
    keys: list[str] = []
    async with aiohttp.ClientSession() as session:
        for _ in range(STREAMS):
            await submit(session, service, keys)
            watchers.send(keys[-1])
    watchers.receive()
    return keys


async def wait_until_finished(service: ServiceProcess, number: int) -> None:
    """Wait until this number of jobs has ended."""
    headers = {"Authorization": f"Bearer {service.token}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        while True:
            async with session.get(f"{service.base}/api/jobs?limit=1") as response:
                counts = (await response.json())["counts"]
            if counts["complete"] + counts["failed"] >= number:
                return
            await asyncio.sleep(0.5)


def percentile(times: list[float], share: float) -> float:
    """Return the time that this share of samples does not exceed."""
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


@contextmanager
def _run_service(folder: Path, registry: Path, url: str | None) -> Iterator[tuple[ServiceProcess, str]]:
    folder.mkdir()
    more = {"UNLOST_DATABASE": url} if url else {}
    with run_service(folder, registry, "--workers", "0", env=more) as service:
        yield service, url or file_url(folder / "jobs" / "jobs.sqlite")


def _check(url: str, folder: Path) -> tuple[list[Job], dict[int, int]]:
    """Return all jobs, and how often each was finished: the transaction that finishes a job also adds an email."""
    database = Database(url)
    with database.reading() as connection:
        mails = connection.execute(MAILS.select().where(MAILS.c.kind == MailKind.COMPLETE.value)).all()
    finish_counts: dict[int, int] = {}
    for mail in mails:
        finish_counts[mail.job] = finish_counts.get(mail.job, 0) + 1
    found = list(JobStore(database).history())
    database.close()
    for job in found:
        for each in job.packages:
            if not (folder / "jobs" / "work" / f"{job.number:08d}" / each.file).is_file():
                raise RuntimeError(f"job {job.number}: {each.file} is missing")
    return found, finish_counts


def main() -> None:
    """Measure."""
    kind = os.environ.get("JOBS_DATABASE", "sqlite")
    report = Report("jobs" if kind == "sqlite" else f"jobs-{kind}", f"Jobs ({kind})")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        registry = Path(stack.enter_context(run_participant("archives", folder)).receive())
        server = stack.enter_context(postgresql.run_cluster()) if kind == "postgresql" else None
        with _run_service(folder / "idle", registry, server.create_database() if server else None) as (service, _):
            asyncio.run(submit_jobs(service, WARM_UP_JOBS, None, []))
            idle = asyncio.run(submit_jobs(service, IDLE_JOBS, None, []))
        with (
            _run_service(folder / "busy", registry, server.create_database() if server else None) as (service, url),
            run_participant("watchers", service.base) as watchers,
        ):
            keys = asyncio.run(submit_watched_jobs(service, watchers))
            start = time.perf_counter()
            with run_participant("crew", folder / "busy", registry, url) as crew:
                busy = asyncio.run(submit_jobs(service, JOBS, watchers, keys))
                asyncio.run(wait_until_finished(service, len(keys)))
                seconds = time.perf_counter() - start
                kills = crew.finish()
            seen = int(watchers.finish())
        jobs, finishes = _check(url, folder / "busy")
    taken_over = sum(job.generation > 1 for job in jobs)
    report.line(
        f"{JOBS:,} jobs of one page, {RATE:g} orders a second, {STREAMS} streams open (of as many jobs that were"
    )
    report.line(f"ordered before, then of later ones), {WORKERS} workers with {JOBS_PER_WORKER} jobs at once each,")
    report.line(f"of which one was killed every 2 to 8 s ({kills} times); {taken_over} jobs were taken over;")
    report.line(f"{seen:,} streams ended with their job's end; all done after {seconds:.0f} s.")
    report.line("")
    report.line("| server | orders | p50 ms | p90 ms | p99 ms | max ms |")
    report.line("|---|---|---|---|---|---|")
    for name, times in (("idle", idle), ("busy", busy)):
        row = " | ".join(f"{1000 * percentile(times, share):.1f}" for share in (0.5, 0.9, 0.99, 1))
        report.line(f"| {name} | {len(times):,} | {row} |")
    report.line("")
    for job in jobs:
        if job.state is not JobState.COMPLETE:
            report.line(f"job {job.number} is {job.state}, generation {job.generation}: {job.message}")
    complete = [job for job in jobs if job.state is JobState.COMPLETE]
    report.gate("jobs that are complete, of those ordered", len(complete) / len(keys), at_least=1, at_most=1)
    report.gate("jobs ordered, of those in the database", len(keys) / len(jobs), at_least=1, at_most=1)
    report.gate("how often the most finished job was", max(finishes.values()), at_most=1)
    report.gate("jobs whose owner was told, of those ordered", len(finishes) / len(keys), at_least=1)
    ratio = percentile(busy, 0.99) / percentile(idle, 0.99)
    report.gate("p99 of orders, busy to idle", ratio, at_most=5)
    report.finish()


if __name__ == "__main__":
    main()
