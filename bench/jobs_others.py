"""Other participants while orders are measured, each in its own process: archives, workers, watchers.

    python -m bench.jobs_others archives FOLDER            says where their registry is
    python -m bench.jobs_others crew FOLDER REGISTRY URL   kills workers with -9 at random, and hires others
    python -m bench.jobs_others watchers BASE              reads keys of jobs; says when all streams are open

Each goes on until its standard input ends; a crew then says how many it killed, watchers how many jobs they saw ending.
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
RECENT = 5  # jobs that were just ordered: none of them has ended yet
WORKERS = 2
AT_ONCE = 4  # jobs of one worker
LEASE = "5"
SEED = 1208


class Other:
    """A process that takes part."""

    def __init__(self, to: IO[str], of: IO[str]) -> None:
        self._to, self._of = to, of

    def tell(self, line: str) -> None:
        """Say something to it."""
        self._to.write(f"{line}\n")
        self._to.flush()

    def said(self) -> str:
        """Return its next output."""
        return self._of.readline().strip()

    def end(self) -> str:
        """Let it end; return its remaining output."""
        self._to.close()
        return self.said()


@contextmanager
def other(*arguments: str | Path) -> Iterator[Other]:
    """Run a participant: its work must not slow down the measuring process."""
    command = [sys.executable, "-m", "bench.jobs_others", *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("no pipes")
        try:
            yield Other(process.stdin, process.stdout)
        finally:
            process.stdin.close()


def tiny() -> Site:
    """Return a page with an image."""
    site, refs = Site(), (part("/i.gif"),)
    site.add(HOST, Held("a", "20100101000000", ROOT, html("One page", *refs), refs=refs))
    site.add(f"{HOST}/i.gif", Held("a", "20100101000001", f"{ROOT}i.gif", b"GIF89a" + bytes(500), "image/gif"))
    return site


def archives(folder: str) -> None:
    """Be the archives."""
    with serve_site(tiny()) as lost:
        print(lost.registry(Path(folder)), flush=True)
        sys.stdin.read()


def crew(folder: str, registry: str, url: str) -> None:
    """Have two workers, and kill one every 2 to 8 seconds."""
    environment = {**os.environ, "UNLOST_HOME": f"{folder}/home", "UNLOST_CONTACT": "me@example.org"}
    environment |= {"UNLOST_JOBS": f"{folder}/jobs", "UNLOST_DATABASE": url}
    names, chance, kills = count(), random.Random(SEED), 0  # noqa: S311

    def hired() -> "subprocess.Popen[bytes]":
        command: list[str | Path] = [UNLOST, "worker", "--name", f"w{next(names)}", "--lease", LEASE]
        command += ["--at-once", str(AT_ONCE), "--pause", "1", "--archives", registry]
        return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    workers = [hired() for _ in range(WORKERS)]
    while not select.select([sys.stdin], [], [], chance.uniform(2, 8))[0]:
        killed = workers.pop(chance.randrange(WORKERS))
        killed.kill()
        killed.wait()
        kills += 1
        workers.append(hired())
    for process in workers:
        process.send_signal(signal.SIGTERM)
    for process in workers:
        process.wait()
    print(kills, flush=True)


def watchers(base: str) -> None:
    """Keep this number of streams open: first one for each job, then one of a recent job for each that has ended."""
    print(asyncio.run(_watchers(base)), flush=True)


async def _watchers(base: str) -> int:
    keys: list[str] = []
    seen: list[str] = []
    chance = random.Random(SEED)  # noqa: S311
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
            for place, each in enumerate(watching):
                if each.done():
                    each.result()
                    watching[place] = asyncio.create_task(_watch(session, base, chance.choice(keys[-RECENT:]), seen))
        await asyncio.gather(*watching)
    return len(seen)


async def _watch(
    session: aiohttp.ClientSession, base: str, key: str, seen: list[str], opened: asyncio.Event | None = None
) -> None:
    """Follow a job to its end."""
    async with session.get(f"{base}/api/jobs/{key}/events", timeout=aiohttp.ClientTimeout(None)) as answer:
        if answer.status != 200:
            raise RuntimeError(f"{answer.status}: {await answer.text()}")
        last = b""
        async for line in answer.content:
            if opened is not None:
                opened.set()
            last = line if line.startswith(b"data:") else last
        if b'"state": "complete"' in last:
            seen.append(key)


if __name__ == "__main__":
    roles: dict[str, Callable[..., None]] = {"archives": archives, "crew": crew, "watchers": watchers}
    roles[sys.argv[1]](*sys.argv[2:])
