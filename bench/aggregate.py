"""The aggregator as its users run it: `unlost serve`, one process, before fourteen archives that nginx serves.

Whoever asks is a process of its own, and so is each baseline. CPU is that of the process that serves, or asks.
"""

import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.fourteen import ARCHIVES, Fourteen, cpu_seconds, memory_mib, serving
from bench.holdings import UNLOST
from bench.measure import Report

AT_ONCE = 6
ANEW = "Cache-Control: no-cache"
REQUESTS = 3_000
WARM_REQUESTS = 20_000
DEADLINE = 2.0
FEW, MANY = 20_000, 200_000
RUNS = 3
ANSWERED = {"200", "404"}
"""The statuses of pages for which all archives answered."""


@dataclass(frozen=True)
class Loaded:
    """Result of a load.

    Attributes:
        rate: Requests a second.
        p50: Milliseconds.
        p99: Milliseconds.
        cpu_ms: CPU time of the server for one request.
        upstream: Requests to archives for one request.
        hits: Those that returned mementos.
    """

    rate: float
    p50: float
    p99: float
    cpu_ms: float
    upstream: float = 0.0
    hits: float = 0.0
    memory: float = 0.0


@dataclass(frozen=True)
class Server:
    """A server that is running."""

    process: int
    port: int

    def load(
        self,
        pages: list[str],
        *fields: str,
        prefix: str = "/timemap/link/",
        at_once: int = AT_ONCE,
        is_failing: bool = False,
    ) -> Loaded:
        """Request pages. `is_failing`: an archive does not respond, so that a miss is 503."""
        asked, cpu = self._asked(), cpu_seconds(self.process)
        command = [sys.executable, "-m", "bench.load", str(self.port), prefix, str(at_once), *fields]
        done = subprocess.run(command, input="\n".join(pages), capture_output=True, text=True, check=True)
        cpu = cpu_seconds(self.process) - cpu
        said = json.loads(done.stdout)
        now = self._asked()
        took = said["ms"]
        if set(said["statuses"]) - ANSWERED - ({"503"} if is_failing else set()):
            raise RuntimeError(f"statuses {said['statuses']}")
        return Loaded(
            len(pages) / said["seconds"], took[len(took) // 2], took[int(0.99 * len(took))], 1e3 * cpu / len(pages),
            (now[0] - asked[0]) / len(pages), (now[1] - asked[1]) / len(pages), memory_mib(self.process),
        )  # fmt: skip

    def _asked(self) -> tuple[float, float]:
        """Return how many questions went to archives so far, and how many of them hit."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as response:
                text = response.read().decode()
        except OSError:
            return 0.0, 0.0  # a baseline has none
        counts = re.findall(r"^unlost_upstream_total\{(.*)\} (\S+)$", text, re.MULTILINE)
        return sum(float(n) for _, n in counts), sum(float(n) for labels, n in counts if 'outcome="hit"' in labels)


@contextmanager
def aggregator(folder: Path, registry: Path, *options: str) -> Iterator[Server]:
    """Run `unlost serve`."""
    home = tempfile.mkdtemp(dir=folder)
    environment = {**os.environ, "UNLOST_HOME": home, "UNLOST_CONTACT": "bench@example.org"}
    command: list[str | Path] = [
        UNLOST,
        "serve",
        "--port",
        "0",
        "--archives",
        registry,
        "--deadline",
        str(DEADLINE),
        *options,
    ]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            port = 0
            for line in process.stderr or ():
                if found := re.search(r"listening at http://127\.0\.0\.1:(\d+)/", line):
                    port = int(found[1])
                    break
            yield Server(process.pid, port)
        finally:
            process.terminate()
            process.communicate()


@contextmanager
def bare_server() -> Iterator[Server]:
    """Run the baseline of the warm cache."""
    command = [sys.executable, "-m", "bench.bare_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Server(process.pid, int((process.stdout.readline() if process.stdout else "") or 0))
        finally:
            process.terminate()


def bare_client(archives: Fourteen, pages: list[str]) -> dict[str, float]:
    """Run the baseline of the broadcast."""
    command = [sys.executable, "-m", "bench.bare_client", str(AT_ONCE), *map(str, archives.ports)]
    done = subprocess.run(command, input="\n".join(pages), capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure, report, judge."""
    report = Report("aggregate", "The aggregator")
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as name, serving(Path(name)) as archives:
        report.line(f"{ARCHIVES} archives, 5 % hits, 1 to 1000 copies; {AT_ONCE} requests at once; best of {RUNS}.")
        report.line("")
        report.line("| what | requests/s | p50 ms | p99 ms | CPU ms | upstream | memory MiB |")
        report.line("|---|---|---|---|---|---|---|")
        ask(archives, report)
        report.line("")
        for what, ratio, limits in _gates:
            report.gate(what, ratio, **limits)
    report.finish()


_gates: list[tuple[str, float, dict[str, float]]] = []


def gate(what: str, ratio: float, **limits: float) -> None:
    """Add a ratio with a gate to the report."""
    _gates.append((what, ratio, limits))


def row(report: Report, what: str, loaded: Loaded) -> Loaded:
    """Add a line of the table."""
    report.line(
        f"| {what} | {loaded.rate:,.0f} | {loaded.p50:.2f} | {loaded.p99:.2f} | {loaded.cpu_ms:.3f} | "
        f"{loaded.upstream:.2f} | {loaded.memory:.0f} |"
    )
    return loaded


def least(runs: list[Loaded]) -> Loaded:
    """Return the run that the machine disturbed least."""
    return min(runs, key=lambda loaded: loaded.cpu_ms)


def ask(archives: Fourteen, report: Report) -> None:
    """Measure one way after the other."""
    chance = random.Random(2)  # noqa: S311
    pages = chance.choices(archives.pages, k=REQUESTS)
    folder = archives.folder

    bare = min((bare_client(archives, pages) for _ in range(RUNS)), key=lambda found: found["cpu_ms"])
    report.line(f"| bare aiohttp, answers thrown away | {bare['rate']:,.0f} | | | {bare['cpu_ms']:.3f} | 14 | |")
    with aggregator(folder, archives.registry(), "--broadcast") as server:
        server.load(pages[:200], ANEW)
        broadcast = row(report, "broadcast", least([server.load(pages, ANEW) for _ in range(RUNS)]))
    gate("broadcast, CPU to that of bare aiohttp", broadcast.cpu_ms / bare["cpu_ms"], at_most=1.4)

    with aggregator(folder, archives.registry()) as server:
        server.load(pages[:200], ANEW)
        routed = row(report, "routed", least([server.load(pages, ANEW) for _ in range(RUNS)]))
        gate("routed, upstream requests to those that hit", routed.upstream / routed.hits, at_most=1.2)
        gate("routed, rate to that of the broadcast", routed.rate / broadcast.rate, at_least=4)
        warm(archives, server, report)
    hang(archives, pages, report)
    fill(archives, report)


def warm(archives: Fourteen, server: Server, report: Report) -> None:
    """Measure cached results, relative to a bare route with equally large responses."""
    pages = archives.pages[:500]
    lengths = []
    for page in pages:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/timemap/link/{page}") as response:
                lengths.append(str(len(response.read())))
        except urllib.error.HTTPError as error:
            lengths.append(str(len(error.read())))
    kept = row(report, "kept", least([server.load(pages * (WARM_REQUESTS // 500)) for _ in range(RUNS)]))
    with bare_server() as other:
        other.load(lengths)
        bare = row(report, "bare Starlette", least([other.load(lengths * (WARM_REQUESTS // 500)) for _ in range(RUNS)]))
    gate("kept, CPU to that of a bare Starlette route", kept.cpu_ms / bare.cpu_ms, at_most=2)


def hang(archives: Fourteen, pages: list[str], report: Report) -> None:
    """Measure with one archive that accepts connections and never responds."""
    with aggregator(archives.folder, archives.registry(without=1), "--broadcast") as server:
        server.load(pages[:200], ANEW)
        without = row(report, "broadcast to 13", min((server.load(pages, ANEW) for _ in range(RUNS)), key=_p99))
    with (
        socket.create_server(("127.0.0.1", 0), backlog=1024) as silent,
        aggregator(archives.folder, archives.registry(hanging=silent.getsockname()[1]), "--broadcast") as server,
    ):
        first = row(report, "one hangs, at first", server.load(pages[:60], ANEW, is_failing=True))
        loads = (server.load(pages, ANEW, is_failing=True) for _ in range(RUNS))
        later = row(report, "one hangs, then", min(loads, key=_p99))
    gate("one hangs, p99 at first to the deadline", first.p99 / (1e3 * DEADLINE), at_most=1)
    gate("one hangs, p99 then to that without it", later.p99 / without.p99, at_most=1.2)


def _p99(loaded: Loaded) -> float:
    return loaded.p99


def fill(archives: Fourteen, report: Report) -> None:
    """Measure the memory after many different pages."""
    with aggregator(archives.folder, archives.registry()) as server:
        held = [page for page in archives.pages if archives.hits[page]]

        def some(begin: int, end: int) -> list[str]:
            return [
                held[number % len(held)] if number % 20 == 0 else f"http://site{number % 900}.example/{number}"
                for number in range(begin, end)
            ]

        few = row(report, f"{FEW:,} different pages", server.load(some(0, FEW), at_once=16))
        many = row(report, f"{MANY:,} different pages", server.load(some(FEW, MANY), at_once=16))
    gate(f"memory after {MANY:,} pages to that after {FEW:,}", many.memory / few.memory, at_most=1.1)


if __name__ == "__main__":
    main()
