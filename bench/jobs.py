"""Many small jobs at once: none is lost and none is done twice while workers are killed, and orders are taken quickly.

The web process runs alone, without workers of its own; two workers beside it are killed with -9 at random and replaced.
The idle server, which nobody watches and no worker uses, gets the same orders at the same rate, once it is warm.
`JOBS_DATABASE=postgresql` has the same in PostgreSQL.
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

from bench.jobs_others import AT_ONCE, STREAMS, WORKERS, Other, other
from bench.measure import Report
from unlost.jobs import MAILS, Database, Job, JobState, JobStore, MailKind, file_url

JOBS = int(os.environ.get("JOBS_COUNT", "2000"))
IDLE = min(JOBS, 1000)  # of which ten are slower than the 99th percentile
WARM = 100  # orders that are not counted
RATE = 20.0  # orders a second


async def submit(session: aiohttp.ClientSession, service: ServiceProcess, keys: list[str]) -> float:
    """Order one page; return the seconds that it took."""
    order = {"url": ROOT, "mail": "me@example.org", "page": True}
    begun = time.perf_counter()
    async with session.post(
        f"{service.base}/api/jobs", json=order, headers={"Authorization": f"Bearer {service.token}"}
    ) as answer:
        found = await answer.json()
        if answer.status != 201:
            raise RuntimeError(f"{answer.status}: {found}")
    keys.append(found["key"])
    return time.perf_counter() - begun


async def orders(service: ServiceProcess, number: int, watchers: Other | None, keys: list[str]) -> list[float]:
    """Order so many, at a steady rate, whatever the answers take; return the seconds of each. keys: gets theirs.

    watchers: are told of each.
    """
    told = len(keys)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        begun = time.perf_counter()
        tasks = []
        for index in range(number):
            await asyncio.sleep(max(0.0, begun + index / RATE - time.perf_counter()))
            tasks.append(asyncio.create_task(submit(session, service, keys)))
            if watchers is not None:
                for key in keys[told:]:
                    watchers.tell(key)
                told = len(keys)
        return list(await asyncio.gather(*tasks))


async def watched(service: ServiceProcess, watchers: Other) -> list[str]:
    """Order as many as there are streams, one after the other; return their keys once all are watched."""
    keys: list[str] = []
    async with aiohttp.ClientSession() as session:
        for _ in range(STREAMS):
            await submit(session, service, keys)
            watchers.tell(keys[-1])
    watchers.said()
    return keys


async def finished(service: ServiceProcess, number: int) -> None:
    """Wait until this number of jobs has ended."""
    headers = {"Authorization": f"Bearer {service.token}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        while True:
            async with session.get(f"{service.base}/api/jobs?limit=1") as answer:
                counts = (await answer.json())["counts"]
            if counts["complete"] + counts["failed"] >= number:
                return
            await asyncio.sleep(0.5)


def percentile(times: list[float], share: float) -> float:
    """Return the time that this number of samples does not exceed."""
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


@contextmanager
def _place(folder: Path, registry: Path, url: str | None) -> Iterator[tuple[ServiceProcess, str]]:
    folder.mkdir()
    more = {"UNLOST_DATABASE": url} if url else {}
    with run_service(folder, registry, "--workers", "0", env=more) as service:
        yield service, url or file_url(folder / "jobs" / "jobs.sqlite")


def _check(url: str, folder: Path) -> tuple[list[Job], dict[int, int]]:
    """Return all jobs, and how often each was finished: each time its owner was written, in the same transaction."""
    database = Database(url)
    with database.reading() as connection:
        written = connection.execute(MAILS.select().where(MAILS.c.kind == MailKind.COMPLETE.value)).all()
    finished: dict[int, int] = {}
    for row in written:
        finished[row.job] = finished.get(row.job, 0) + 1
    found = list(JobStore(database).history())
    database.close()
    for job in found:
        for each in job.packages:
            if not (folder / "jobs" / "work" / f"{job.number:08d}" / each.file).is_file():
                raise RuntimeError(f"job {job.number}: {each.file} is missing")
    return found, finished


def main() -> None:
    """Measure."""
    kind = os.environ.get("JOBS_DATABASE", "sqlite")
    report = Report("jobs" if kind == "sqlite" else f"jobs-{kind}", f"Jobs ({kind})")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        registry = Path(stack.enter_context(other("archives", folder)).said())
        server = stack.enter_context(postgresql.run_cluster()) if kind == "postgresql" else None
        with _place(folder / "idle", registry, server.create_database() if server else None) as (service, _):
            asyncio.run(orders(service, WARM, None, []))
            idle = asyncio.run(orders(service, IDLE, None, []))
        with (
            _place(folder / "busy", registry, server.create_database() if server else None) as (service, url),
            other("watchers", service.base) as watchers,
        ):
            keys = asyncio.run(watched(service, watchers))
            begun = time.perf_counter()
            with other("crew", folder / "busy", registry, url) as crew:
                busy = asyncio.run(orders(service, JOBS, watchers, keys))
                asyncio.run(finished(service, len(keys)))
                seconds = time.perf_counter() - begun
                kills = crew.end()
            seen = int(watchers.end())
        jobs, finishes = _check(url, folder / "busy")
    taken_over = sum(job.generation > 1 for job in jobs)
    report.line(
        f"{JOBS:,} jobs of one page, {RATE:g} orders a second, {STREAMS} streams open (of as many jobs that were"
    )
    report.line(f"ordered before, then of later ones), {WORKERS} workers with {AT_ONCE} jobs at once each,")
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
