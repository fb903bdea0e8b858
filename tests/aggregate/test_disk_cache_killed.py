"""The disk cache survives kills of its writer at any point."""

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from threading import Timer

from tests.aggregate.results import make_result
from tests.virtual_clock import VirtualClock
from tests.waiting import read_number
from unlost.aggregate import DiskCache, RoutingOptions

ROOT = Path(__file__).parents[2]
KILLS = 50
# Forks of one process, so that each is ready at once.
STARTER = """
import asyncio, os, sys
from pathlib import Path
from tests.aggregate.write_until_killed import write_results
for line in sys.stdin:
    file, seed, size = line.split()
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)
        try:
            asyncio.run(write_results(Path(file), int(seed), 0, int(size)))
        finally:
            os._exit(1)
    print("process", child, flush=True)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_kill_at_any_point_leaves_only_complete_entries(tmp_path: Path) -> None:
    """During creation, writing or eviction: the next process opens the file, and every result is right."""
    seed = 20_266
    random_ = random.Random(seed)  # noqa: S311
    file = tmp_path / "answers.sqlite"
    warnings: list[str] = []
    entries = []

    async def check(number: int) -> None:
        async with DiskCache(file, VirtualClock(), warn=warnings.append) as disk:
            disk.put(RoutingOptions(), make_result(f"http://example.com/check/{number}"))
            await disk.flush()
            assert (disk.unwritten, warnings) == (0, [])
            found = 0
            for page in range(0, 300, 7):
                for size in (0, 1, 5, 100):
                    uri = f"http://example.com/1/{page}/{size}"
                    cached = await disk.get(uri, RoutingOptions())
                    if cached is not None:
                        found += 1
                        assert cached.mementos == make_result(uri, size).mementos
            assert disk.unreadable == 0
            entries.append(found)
        database = sqlite3.connect(file)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (total,) = database.execute("SELECT bytes FROM total").fetchone()
        assert database.execute("SELECT sum(size) FROM answer").fetchone() == (total,)
        database.close()

    command = [sys.executable, "-c", STARTER]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdin
        for number in range(KILLS):
            # Some at once, while the file is made; some with so little room that it is made all the time.
            delay = random_.choice([random_.uniform(0, 0.02), random_.uniform(0, 0.2)])
            size = random_.choice([200_000, 1 << 28])
            is_new = random_.random() < 0.3
            print(f"seed {seed}, point {number}: after {delay:.4f} s, {size} bytes, anew: {is_new}")
            if is_new:
                for path in tmp_path.iterdir():
                    path.unlink()
            starter.stdin.write(f"{file} 1 {size}\n")
            starter.stdin.flush()
            child = read_number(starter, "process")
            Timer(delay, os.kill, (child, signal.SIGKILL)).start()
            assert read_number(starter, "ended") == -signal.SIGKILL
            asyncio.run(check(number))
        starter.stdin.close()
    assert max(entries) > 20
