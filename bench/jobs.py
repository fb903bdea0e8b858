"""Many small jobs at once: none is lost and none is done twice while workers are killed, and orders are taken quickly.

The web process runs alone, without workers of its own; two workers beside it are killed with -9 at random and replaced.
The idle server, which nobody watches and no worker uses, gets the same orders at the same rate, once it is warm.
`JOBS_DATABASE=postgresql` has the same in PostgreSQL.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import aiohttp
from tests.cli.run import UNLOST
from tests.neighbours import postgresql
from tests.recover.site import HOST, ROOT, Held, Site, html, part
from tests.recover.village import running
from tests.service.jobs.serving import Service, serving

from bench.measure import Report
from unlost.service.jobs.database import Database, file_url
from unlost.service.jobs.job import Job, State
from unlost.service.jobs.retention import Letter
from unlost.service.jobs.store import Jobs
from unlost.service.jobs.tables import LETTERS

JOBS = int(os.environ.get("JOBS_COUNT", "2000"))
IDLE = min(JOBS, 1000)  # of which ten are slower than the 99th percentile
WARM = 100  # orders that are not counted
RATE = 20.0  # orders a second
STREAMS = 200
RECENT = 5  # jobs that were just ordered: none of them has ended yet
WORKERS = 2
AT_ONCE = 4  # jobs of one worker
LEASE = "5"
SEED = 1208


def tiny() -> Site:
    """Return a page with an image."""
    site, refs = Site(), (part("/i.gif"),)
    site.add(HOST, Held("a", "20100101000000", ROOT, html("One page", *refs), refs=refs))
    site.add(f"{HOST}/i.gif", Held("a", "20100101000001", f"{ROOT}i.gif", b"GIF89a" + bytes(500), "image/gif"))
    return site


@dataclass
class Crew:
    """Two workers; somebody kills them."""

    folder: Path
    registry: Path
    url: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    kills: int = 0
    _names: Iterator[int] = field(default_factory=count)

    def hire(self) -> None:
        """Have as many as there should be."""
        environment = {**os.environ, "UNLOST_HOME": str(self.folder / "home"), "UNLOST_CONTACT": "me@example.org"}
        environment |= {"UNLOST_JOBS": str(self.folder / "jobs"), "UNLOST_DATABASE": self.url}
        while len(self.processes) < WORKERS:
            command: list[str | Path] = [UNLOST, "worker", "--name", f"w{next(self._names)}", "--lease", LEASE]
            command += ["--at-once", str(AT_ONCE), "--pause", "1", "--archives", self.registry]
            self.processes.append(subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL))

    def kill(self, number: int) -> None:
        """Kill one, and have another."""
        process = self.processes.pop(number)
        process.kill()
        process.wait()
        self.kills += 1
        self.hire()

    def end(self) -> None:
        """Let all go."""
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait()


async def submit(session: aiohttp.ClientSession, service: Service, keys: list[str]) -> float:
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


async def watch(session: aiohttp.ClientSession, service: Service, key: str, seen: list[str]) -> None:
    """Follow a job to its end."""
    async with session.get(f"{service.base}/api/jobs/{key}/events", timeout=aiohttp.ClientTimeout(None)) as answer:
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {await answer.text()}")
        last = b""
        async for line in answer.content:
            last = line if line.startswith(b"data:") else last
        if b'"state": "complete"' in last:
            seen.append(key)


async def orders(service: Service, number: int, crew: Crew | None) -> tuple[list[float], list[str], int]:
    """Order so many, at a steady rate, whatever the answers take; return the seconds of each, keys, streams that ended.

    With a crew, as many as there are streams were ordered before and are watched, and workers are killed until all is
    done. The times are those of the orders at that rate alone.
    """
    keys: list[str] = []
    seen: list[str] = []
    chance = random.Random(SEED)  # noqa: S311
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        watching = []
        if crew is not None:
            for _ in range(STREAMS):
                await submit(session, service, keys)
            watching = [asyncio.create_task(watch(session, service, key, seen)) for key in keys]
            await asyncio.sleep(2)  # that all are open
            crew.hire()
        begun = time.perf_counter()
        next_kill = begun + 5
        tasks = []
        for index in range(number):
            await asyncio.sleep(max(0.0, begun + index / RATE - time.perf_counter()))
            tasks.append(asyncio.create_task(submit(session, service, keys)))
            if crew is not None:
                # A stream that ended is replaced by one of a job that was just ordered: there are always so many.
                for place, each in enumerate(watching):
                    if each.done():
                        key = chance.choice(keys[-RECENT:])
                        watching[place] = asyncio.create_task(watch(session, service, key, seen))
                if time.perf_counter() > next_kill:
                    await asyncio.to_thread(crew.kill, chance.randrange(WORKERS))
                    next_kill = time.perf_counter() + chance.uniform(2, 8)
        times = await asyncio.gather(*tasks)
        if crew is not None:
            await _finished(session, service, len(keys), crew, chance)
        await asyncio.gather(*watching)
    return list(times), keys, len(seen)


async def _finished(
    session: aiohttp.ClientSession, service: Service, number: int, crew: Crew, chance: random.Random
) -> None:
    """Go on killing until all jobs are done."""
    next_kill = 0.0
    while True:
        headers = {"Authorization": f"Bearer {service.token}"}
        async with session.get(f"{service.base}/api/jobs?limit=1", headers=headers) as answer:
            counts = (await answer.json())["counts"]
        if counts["complete"] + counts["failed"] >= number:
            return
        if time.perf_counter() > next_kill:
            await asyncio.to_thread(crew.kill, chance.randrange(WORKERS))
            next_kill = time.perf_counter() + chance.uniform(2, 8)
        await asyncio.sleep(0.5)


def percentile(times: list[float], share: float) -> float:
    """Return the time that so many are not above."""
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


@contextmanager
def _archives(folder: Path) -> Iterator[Path]:
    """Run the archives in a process of their own: what they do must not slow down whoever measures."""
    command = [sys.executable, "-m", "bench.jobs", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes")
        yield Path(process.stdout.readline().strip())
        process.stdin.close()


@contextmanager
def _place(folder: Path, registry: Path, url: str | None) -> Iterator[tuple[Service, str]]:
    folder.mkdir()
    more = {"UNLOST_DATABASE": url} if url else {}
    with serving(folder, registry, "--workers", "0", env=more) as service:
        yield service, url or file_url(folder / "jobs" / "jobs.sqlite")


def _check(url: str, folder: Path) -> tuple[list[Job], dict[int, int]]:
    """Return all jobs, and how often each was finished: each time its owner was written, in the same transaction."""
    database = Database(url)
    with database.reading() as connection:
        written = connection.execute(LETTERS.select().where(LETTERS.c.kind == Letter.COMPLETE.value)).all()
    finished: dict[int, int] = {}
    for row in written:
        finished[row.job] = finished.get(row.job, 0) + 1
    found = list(Jobs(database).history())
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
        registry = stack.enter_context(_archives(folder))
        server = stack.enter_context(postgresql.serving()) if kind == "postgresql" else None
        with _place(folder / "idle", registry, server.new() if server else None) as (service, _):
            asyncio.run(orders(service, WARM, None))
            idle, _, _ = asyncio.run(orders(service, IDLE, None))
        with _place(folder / "busy", registry, server.new() if server else None) as (service, url):
            crew = Crew(folder / "busy", registry, url)
            begun = time.perf_counter()
            try:
                busy, keys, seen = asyncio.run(orders(service, JOBS, crew))
            finally:
                crew.end()
            seconds = time.perf_counter() - begun
        jobs, finished = _check(url, folder / "busy")
    taken_over = sum(job.generation > 1 for job in jobs)
    report.line(
        f"{JOBS:,} jobs of one page, {RATE:g} orders a second, {STREAMS} streams open (of as many jobs that were"
    )
    report.line(f"ordered before, then of later ones), {WORKERS} workers with {AT_ONCE} jobs at once each,")
    report.line(f"of which one was killed every 2 to 8 s ({crew.kills} times); {taken_over} jobs were taken over;")
    report.line(f"{seen:,} streams ended with their job's end; all done after {seconds:.0f} s.")
    report.line("")
    report.line("| server | orders | p50 ms | p90 ms | p99 ms | max ms |")
    report.line("|---|---|---|---|---|---|")
    for name, times in (("idle", idle), ("busy", busy)):
        row = " | ".join(f"{1000 * percentile(times, share):.1f}" for share in (0.5, 0.9, 0.99, 1))
        report.line(f"| {name} | {len(times):,} | {row} |")
    report.line("")
    for job in jobs:
        if job.state is not State.COMPLETE:
            report.line(f"job {job.number} is {job.state}, generation {job.generation}: {job.message}")
    complete = [job for job in jobs if job.state is State.COMPLETE]
    report.gate("jobs that are complete, of those ordered", len(complete) / len(keys), at_least=1, at_most=1)
    report.gate("jobs ordered, of those in the database", len(keys) / len(jobs), at_least=1, at_most=1)
    report.gate("how often the most finished job was", max(finished.values()), at_most=1)
    report.gate("jobs whose owner was told, of those ordered", len(finished) / len(keys), at_least=1)
    ratio = percentile(busy, 0.99) / percentile(idle, 0.99)
    report.gate("p99 of orders, busy to idle", ratio, at_most=5)
    report.finish()


def archives(folder: Path) -> None:
    """Be the archives, until standard input ends."""
    with running(tiny()) as lost:
        print(lost.registry(folder), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        archives(Path(sys.argv[1]))
    else:
        main()
