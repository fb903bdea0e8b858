"""Utilization of slow archives by the aggregator: fourteen with a latency of a second, and sixty clients.

The baseline is a client of one of these archives without an aggregator, with the same concurrency.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.aggregate import run_aggregator
from bench.measure import Report

ARCHIVES = 14
CLIENTS = 60
MILLISECONDS = 1_000
MEMENTOS = 3
REQUESTS = 1_200
RUNS = 3


@contextmanager
def run_slow_archives() -> Iterator[list[int]]:
    """Run the archives; yield their ports."""
    command = [sys.executable, "-m", "bench.slow_timemaps", str(ARCHIVES), str(MILLISECONDS), str(MEMENTOS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield [int(port) for port in (process.stdout.readline() if process.stdout else "").split()]
        finally:
            if process.stdin:
                process.stdin.close()


def write_registry(folder: Path, ports: list[int]) -> Path:
    """Write a registry of archives without limits."""
    path = folder / "archives.toml"
    path.write_text(
        "".join(
            f'[[archive]]\nid = "a{number}"\nname = "A{number}"\nkind = "memento"\nlimits = []\n'
            f'timemap = "http://127.0.0.1:{port}/timemap/link/"\n'
            for number, port in enumerate(ports)
        )
    )
    return path


def measure_load(port: int, run: str) -> tuple[float, float, dict[str, int], int]:
    """Request pages; return pages a second, the 99th percentile of seconds, statuses, and mementos in all."""
    pages = "\n".join(f"http://site{number % 97}.example/{run}/{number}" for number in range(REQUESTS))
    command = [sys.executable, "-m", "bench.load", str(port), "/timemap/link/", str(CLIENTS)]
    done = subprocess.run(command, input=pages, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    latencies = found["ms"]
    return (
        len(latencies) / found["seconds"],
        latencies[int(0.99 * len(latencies))] / 1e3,
        found["statuses"],
        found["mementos"],
    )


def main() -> None:
    """Measure and write the report."""
    report = Report("upstream", "Slow archives")
    report.line(
        f"{ARCHIVES} archives that take {MILLISECONDS / 1e3:g} s for each TimeMap and have no limits; {CLIENTS} "
        f"clients, {REQUESTS:,} different pages, of which each archive has {MEMENTOS} mementos. The first run "
        f"begins with the initial concurrency; the gate is the best of {RUNS}."
    )
    report.line("")
    report.line("| what | pages/s | p99 s | statuses | mementos lost |")
    report.line("|---|---|---|---|---|")
    expected = ARCHIVES * MEMENTOS * REQUESTS
    best, lost = 0.0, 0
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as name, run_slow_archives() as ports:
        waiting, p99, _, _ = measure_load(ports[0], "waiting")
        report.line(f"| waiting for one archive alone | {waiting:.1f} | {p99:.2f} | | |")
        with run_aggregator(Path(name), write_registry(Path(name), ports), "--broadcast", "--deadline", "10") as server:
            for run in range(RUNS):
                rate, p99, statuses, mementos = measure_load(server.port, str(run))
                counts = ", ".join(f"{count:,} of status {status}" for status, count in statuses.items())
                report.line(
                    f"| aggregator, run {run + 1} | {rate:.1f} | {p99:.2f} | {counts} | {expected - mementos:,} |"
                )
                best, lost = max(best, rate), max(lost, expected - mementos)
    report.line("")
    report.gate("slow archives, rate to that of waiting alone", best / waiting, at_least=0.9)
    report.gate("slow archives, share of mementos found", 1 - lost / expected, at_least=1)
    report.finish()


if __name__ == "__main__":
    main()
