"""`unlost serve` in one process, with fourteen archives that nginx serves, relative to baselines.

The client and each baseline run in their own processes. CPU time is that of the serving process, or of the client for
the broadcast baseline.
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

from bench.holdings import UNLOST
from bench.measure import Report
from bench.simulated_archives import ARCHIVES, SimulatedArchives, cpu_seconds, memory_mib, serve_archives

CONCURRENCY = 6
NO_CACHE_HEADER = "Cache-Control: no-cache"
REQUESTS = 3_000
WARM_REQUESTS = 20_000
DEADLINE_SECONDS = 2.0
FEW, MANY = 20_000, 200_000
RUNS = 3
COMPLETE_STATUSES = {"200", "404"}
"""Statuses of responses for which all archives responded."""


@dataclass(frozen=True)
class LoadResult:
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
        at_once: int = CONCURRENCY,
        is_failing: bool = False,
    ) -> LoadResult:
        """Request pages. `is_failing`: an archive does not respond, so that a miss is 503."""
        before, cpu = self._upstream_counts(), cpu_seconds(self.process)
        command = [sys.executable, "-m", "bench.load", str(self.port), prefix, str(at_once), *fields]
        done = subprocess.run(command, input="\n".join(pages), capture_output=True, text=True, check=True)
        cpu = cpu_seconds(self.process) - cpu
        output = json.loads(done.stdout)
        after = self._upstream_counts()
        latencies = output["ms"]
        if set(output["statuses"]) - COMPLETE_STATUSES - ({"503"} if is_failing else set()):
            raise RuntimeError(f"statuses {output['statuses']}")
        return LoadResult(
            len(pages) / output["seconds"], latencies[len(latencies) // 2], latencies[int(0.99 * len(latencies))],
            1e3 * cpu / len(pages),
            (after[0] - before[0]) / len(pages), (after[1] - before[1]) / len(pages), memory_mib(self.process),
        )  # fmt: skip

    def _upstream_counts(self) -> tuple[float, float]:
        """Return the number of requests to archives so far, and the number of hits."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as response:
                text = response.read().decode()
        except OSError:
            return 0.0, 0.0  # a baseline has none
        counts = re.findall(r"^unlost_upstream_total\{(.*)\} (\S+)$", text, re.MULTILINE)
        return sum(float(n) for _, n in counts), sum(float(n) for labels, n in counts if 'outcome="hit"' in labels)


@contextmanager
def run_aggregator(folder: Path, registry: Path, *options: str) -> Iterator[Server]:
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
        str(DEADLINE_SECONDS),
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
def run_bare_server() -> Iterator[Server]:
    """Run the baseline of the warm cache."""
    command = [sys.executable, "-m", "bench.bare_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Server(process.pid, int((process.stdout.readline() if process.stdout else "") or 0))
        finally:
            process.terminate()


def run_bare_client(archives: SimulatedArchives, pages: list[str]) -> dict[str, float]:
    """Run the baseline of the broadcast."""
    command = [sys.executable, "-m", "bench.bare_client", str(CONCURRENCY), *map(str, archives.ports)]
    done = subprocess.run(command, input="\n".join(pages), capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure and write the report."""
    report = Report("aggregate", "The aggregator")
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as name, serve_archives(Path(name)) as archives:
        report.line(f"{ARCHIVES} archives, 5 % hits, 1 to 1000 copies; {CONCURRENCY} requests at once; best of {RUNS}.")
        report.line("")
        report.line("| what | requests/s | p50 ms | p99 ms | CPU ms | upstream | memory MiB |")
        report.line("|---|---|---|---|---|---|---|")
        measure_all(archives, report)
        report.line("")
        for what, ratio, limits in _gates:
            report.gate(what, ratio, **limits)
    report.finish()


_gates: list[tuple[str, float, dict[str, float]]] = []


def add_gate(what: str, ratio: float, **limits: float) -> None:
    """Add a ratio with a gate to the report."""
    _gates.append((what, ratio, limits))


def add_row(report: Report, what: str, loaded: LoadResult) -> LoadResult:
    """Add a line of the table."""
    report.line(
        f"| {what} | {loaded.rate:,.0f} | {loaded.p50:.2f} | {loaded.p99:.2f} | {loaded.cpu_ms:.3f} | "
        f"{loaded.upstream:.2f} | {loaded.memory:.0f} |"
    )
    return loaded


def least_disturbed(runs: list[LoadResult]) -> LoadResult:
    """Return the run with the least CPU time, which other processes disturbed least."""
    return min(runs, key=lambda loaded: loaded.cpu_ms)


def measure_all(archives: SimulatedArchives, report: Report) -> None:
    """Measure broadcast, routing, the cache, an unresponsive archive, and memory."""
    rng = random.Random(2)  # noqa: S311
    pages = rng.choices(archives.pages, k=REQUESTS)
    folder = archives.folder

    bare = min((run_bare_client(archives, pages) for _ in range(RUNS)), key=lambda found: found["cpu_ms"])
    report.line(f"| bare aiohttp, answers thrown away | {bare['rate']:,.0f} | | | {bare['cpu_ms']:.3f} | 14 | |")
    with run_aggregator(folder, archives.registry(), "--broadcast") as server:
        server.load(pages[:200], NO_CACHE_HEADER)
        broadcast = add_row(
            report, "broadcast", least_disturbed([server.load(pages, NO_CACHE_HEADER) for _ in range(RUNS)])
        )
    add_gate("broadcast, CPU to that of bare aiohttp", broadcast.cpu_ms / bare["cpu_ms"], at_most=1.4)

    with run_aggregator(folder, archives.registry()) as server:
        server.load(pages[:200], NO_CACHE_HEADER)
        routed = add_row(report, "routed", least_disturbed([server.load(pages, NO_CACHE_HEADER) for _ in range(RUNS)]))
        add_gate("routed, upstream requests to those that hit", routed.upstream / routed.hits, at_most=1.2)
        add_gate("routed, rate to that of the broadcast", routed.rate / broadcast.rate, at_least=4)
        measure_cache(archives, server, report)
    measure_unresponsive_archive(archives, pages, report)
    measure_memory(archives, report)


def measure_cache(archives: SimulatedArchives, server: Server, report: Report) -> None:
    """Measure cached results, relative to a bare route with equally large responses."""
    pages = archives.pages[:500]
    lengths = []
    for page in pages:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/timemap/link/{page}") as response:
                lengths.append(str(len(response.read())))
        except urllib.error.HTTPError as error:
            lengths.append(str(len(error.read())))
    cached = add_row(
        report, "kept", least_disturbed([server.load(pages * (WARM_REQUESTS // 500)) for _ in range(RUNS)])
    )
    with run_bare_server() as other:
        other.load(lengths)
        bare = add_row(
            report,
            "bare Starlette",
            least_disturbed([other.load(lengths * (WARM_REQUESTS // 500)) for _ in range(RUNS)]),
        )
    add_gate("kept, CPU to that of a bare Starlette route", cached.cpu_ms / bare.cpu_ms, at_most=2)


def measure_unresponsive_archive(archives: SimulatedArchives, pages: list[str], report: Report) -> None:
    """Measure with one archive that accepts connections and never responds."""
    with run_aggregator(archives.folder, archives.registry(without=1), "--broadcast") as server:
        server.load(pages[:200], NO_CACHE_HEADER)
        without = add_row(
            report, "broadcast to 13", min((server.load(pages, NO_CACHE_HEADER) for _ in range(RUNS)), key=_p99)
        )
    with (
        socket.create_server(("127.0.0.1", 0), backlog=1024) as silent,
        run_aggregator(archives.folder, archives.registry(hanging=silent.getsockname()[1]), "--broadcast") as server,
    ):
        first = add_row(report, "one hangs, at first", server.load(pages[:60], NO_CACHE_HEADER, is_failing=True))
        loads = (server.load(pages, NO_CACHE_HEADER, is_failing=True) for _ in range(RUNS))
        later = add_row(report, "one hangs, then", min(loads, key=_p99))
    add_gate("one hangs, p99 at first to the deadline", first.p99 / (1e3 * DEADLINE_SECONDS), at_most=1)
    add_gate("one hangs, p99 then to that without it", later.p99 / without.p99, at_most=1.2)


def _p99(loaded: LoadResult) -> float:
    return loaded.p99


def measure_memory(archives: SimulatedArchives, report: Report) -> None:
    """Measure the memory after many different pages."""
    with run_aggregator(archives.folder, archives.registry()) as server:
        archived = [page for page in archives.pages if archives.hits[page]]

        def some_pages(begin: int, end: int) -> list[str]:
            return [
                archived[number % len(archived)] if number % 20 == 0 else f"http://site{number % 900}.example/{number}"
                for number in range(begin, end)
            ]

        few = add_row(report, f"{FEW:,} different pages", server.load(some_pages(0, FEW), at_once=16))
        many = add_row(report, f"{MANY:,} different pages", server.load(some_pages(FEW, MANY), at_once=16))
    add_gate(f"memory after {MANY:,} pages to that after {FEW:,}", many.memory / few.memory, at_most=1.1)


if __name__ == "__main__":
    main()
