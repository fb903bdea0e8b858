"""Other participants of the job benchmark, each in its own process: archives, workers, watchers.

    python -m bench.jobs_processes archives FOLDER            prints the path of their registry
    python -m bench.jobs_processes crew FOLDER REGISTRY URL   kills workers with SIGKILL at random and replaces them
    python -m bench.jobs_processes watchers BASE              reads keys of jobs; prints `open` when all streams are

Each runs until its standard input ends. Then `crew` prints the number of killed workers, and `watchers` the number of
jobs whose end they received.
"""

import asyncio
import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO

import aiohttp
from tests.cli.run import UNLOST
from tests.recovery.sample_site import serve_site
from tests.recovery.site import HOST, ROOT, Held, Site, html, part

STREAMS = 200
RECENT_JOBS = 5  # the latest jobs, none of which has ended yet
WORKERS = 2
JOBS_PER_WORKER = 4  # jobs of one worker
LEASE = "5"
SEED = 1208


class Participant:
    """A process of the benchmark."""

    def __init__(self, to: IO[str], of: IO[str]) -> None:
        self._input, self._output = to, of

    def send(self, line: str) -> None:
        """Write a line to its standard input."""
        self._input.write(f"{line}\n")
        self._input.flush()

    def receive(self) -> str:
        """Return its next output."""
        return self._output.readline().strip()

    def finish(self) -> str:
        """Close its standard input and return its last output."""
        self._input.close()
        return self.receive()


@contextmanager
def run_participant(*arguments: str | Path) -> Iterator[Participant]:
    """Run a participant in its own process, so that it does not slow down the measuring process."""
    command = [sys.executable, "-m", "bench.jobs_processes", *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes")
        try:
            yield Participant(process.stdin, process.stdout)
        finally:
            process.stdin.close()


def make_site() -> Site:
    """Return a page with an image."""
    site, refs = Site(), (part("/i.gif"),)
    site.add(HOST, Held("a", "20100101000000", ROOT, html("One page", *refs), refs=refs))
    site.add(f"{HOST}/i.gif", Held("a", "20100101000001", f"{ROOT}i.gif", b"GIF89a" + bytes(500), "image/gif"))
    return site


def serve_archives(folder: str) -> None:
    """Serve the archives."""
    with serve_site(make_site()) as lost:
        print(lost.registry(Path(folder)), flush=True)
        sys.stdin.read()


def run_workers(folder: str, registry: str, url: str) -> None:
    """Run two workers; kill and replace one every 2 to 8 seconds."""
    environment = {**os.environ, "UNLOST_HOME": f"{folder}/home", "UNLOST_CONTACT": "me@example.org"}
    environment |= {"UNLOST_JOBS": f"{folder}/jobs", "UNLOST_DATABASE": url}
    names, rng, kills = count(), random.Random(SEED), 0  # noqa: S311

    def start_worker() -> "subprocess.Popen[bytes]":
        command: list[str | Path] = [UNLOST, "worker", "--name", f"w{next(names)}", "--lease", LEASE]
        command += ["--at-once", str(JOBS_PER_WORKER), "--pause", "1", "--archives", registry]
        return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    workers = [start_worker() for _ in range(WORKERS)]
    while not select.select([sys.stdin], [], [], rng.uniform(2, 8))[0]:
        killed = workers.pop(rng.randrange(WORKERS))
        killed.kill()
        killed.wait()
        kills += 1
        workers.append(start_worker())
    for process in workers:
        process.send_signal(signal.SIGTERM)
    for process in workers:
        process.wait()
    print(kills, flush=True)


def run_watchers(base: str) -> None:
    """Keep `STREAMS` streams open: first one for each job, then one of a recent job for each that has ended."""
    print(asyncio.run(_count_finished(base)), flush=True)


async def _count_finished(base: str) -> int:
    keys: list[str] = []
    seen: list[str] = []
    rng = random.Random(SEED)  # noqa: S311
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        keys += [(await lines.readline()).decode().strip() for _ in range(STREAMS)]
        is_open = [asyncio.Event() for _ in keys]
        watching = [
            asyncio.create_task(_watch(session, base, key, seen, opened))
            for key, opened in zip(keys, is_open, strict=True)
        ]
        await asyncio.gather(*(each.wait() for each in is_open))
        print("open", flush=True)
        while line := await lines.readline():
            keys.append(line.decode().strip())
            for index, each in enumerate(watching):
                if each.done():
                    each.result()
                    watching[index] = asyncio.create_task(_watch(session, base, rng.choice(keys[-RECENT_JOBS:]), seen))
        await asyncio.gather(*watching)
    return len(seen)


async def _watch(
    session: aiohttp.ClientSession, base: str, key: str, seen: list[str], opened: asyncio.Event | None = None
) -> None:
    """Follow the event stream of a job to its end."""
    async with session.get(f"{base}/api/jobs/{key}/events", timeout=aiohttp.ClientTimeout(None)) as response:
        if response.status != 200:
            raise RuntimeError(f"{response.status}: {await response.text()}")
        last = b""
        async for line in response.content:
            if opened is not None:
                opened.set()
            last = line if line.startswith(b"data:") else last
        if b'"state": "complete"' in last:
            seen.append(key)


if __name__ == "__main__":
    roles: dict[str, Callable[..., None]] = {"archives": serve_archives, "crew": run_workers, "watchers": run_watchers}
    roles[sys.argv[1]](*sys.argv[2:])
