"""How fast a site comes back, what it costs, and how much memory a large frontier takes."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.neighbours.process import free_port

from bench.holdings import UNLOST
from bench.measure import Report
from bench.slow_archive import HOST

RESOURCES = 5_000
LATENCY_MS = 50
CONNECTIONS = 20
FRONTIER = 1_000_000
MEMORY = 300e6


@contextmanager
def slow_archive(resources: int, milliseconds: float) -> Iterator[int]:
    """Serve a made-up site, and give the port."""
    port = free_port()
    command = [sys.executable, "-m", "bench.slow_archive", str(port), str(resources), str(milliseconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        if process.stdout is not None:
            process.stdout.readline()
        try:
            yield port
        finally:
            process.communicate()


def registry(port: int, folder: Path) -> Path:
    """Write a registry with this archive alone."""
    base = f"http://127.0.0.1:{port}/t/"
    entry = {
        "id": '"slow"', "name": '"Slow"', "kind": '"pywb"', "cdx": f'"{base}cdx"',
        "replay": f'"{base}{{datetime}}id_/{{uri}}"', "limits": "[]", "quotas": "[]",
    }  # fmt: skip
    lines = ["[[archive]]", *(f"{name} = {value}" for name, value in entry.items())]
    lines += ["[archive.lister]", 'matches = ["exact", "prefix", "host", "domain"]']
    lines += ['rows_per_page = { value = 1000000, source = "this bench" }']
    file = folder / "archives.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def speed(report: Report) -> None:
    """Recover a site from an archive that takes its time."""
    ideal = RESOURCES * LATENCY_MS / 1e3 / CONNECTIONS
    fastest, asked = float("inf"), {}
    for _ in range(3):
        with tempfile.TemporaryDirectory() as name, slow_archive(RESOURCES, LATENCY_MS) as port:
            folder = Path(name)
            environment = {**os.environ, "UNLOST_HOME": str(folder / "home"), "UNLOST_CONTACT": "bench@example.com"}
            command: list[str | Path] = [
                UNLOST,
                "recover",
                f"{HOST}/",
                "--archives",
                registry(port, folder),
                "-o",
                folder / "out",
            ]
            command += ["--connections", str(CONNECTIONS), "--json"]
            begun = time.perf_counter()
            done = subprocess.run(command, env=environment, check=True, capture_output=True)
            fastest = min(fastest, time.perf_counter() - begun)
            result = json.loads(done.stdout.splitlines()[-1])
            if result["recovered"] != RESOURCES:
                sys.exit(f"expected {RESOURCES} resources, found {result}")
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/asked") as answer:
                asked = json.load(answer)
    report.line(
        f"- {RESOURCES:,} resources, {LATENCY_MS} ms each, {CONNECTIONS} at once: {fastest:.1f} s, start-up counted"
    )
    report.gate("time, to that of waiting alone", fastest / ideal, at_most=1.25)
    report.line(f"- requests: {asked}")
    report.gate("requests for copies, to resources recovered", asked["replay"] / RESOURCES, at_most=1.05)


def frontier() -> None:
    """Keep a million listed addresses, want them all, and print the most memory that it took."""
    from unlost.formats.capture import Capture  # noqa: PLC0415
    from unlost.recover.following import Following  # noqa: PLC0415
    from unlost.recover.listing import keep_captures  # noqa: PLC0415
    from unlost.recover.plan import Plan, Policy  # noqa: PLC0415
    from unlost.recover.scope import Scope  # noqa: PLC0415
    from unlost.recover.state.state import State  # noqa: PLC0415

    plan = Plan(f"{HOST}/", policy=Policy.EXHAUSTIVE)
    with tempfile.TemporaryDirectory() as name, State(Path(name)) as state:
        for begin in range(0, FRONTIER, 1000):
            uris = [f"{HOST}/folder/{number % 977}/page-{number:07}.html?a=b" for number in range(begin, begin + 1000)]
            keep_captures([Capture(uri, None, "20140210000001", 200, archive="a") for uri in uris], state, plan)
        state.commit()
        Following(plan, Scope.of(plan), state, 2026).want_listed()
        state.commit()
        counts = state.resources.counts()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"counts": counts, "peak": peak}))


def main() -> None:
    """Measure."""
    if sys.argv[1:] == ["frontier"]:
        frontier()
        return
    report = Report("recover", "Recovering a site")
    speed(report)
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "bench.recover", "frontier"], check=True, capture_output=True)
    result = json.loads(done.stdout)
    if result["counts"]["queued"] != FRONTIER:
        sys.exit(f"expected a million in the queue, found {result}")
    seconds = time.perf_counter() - begun
    report.line(f"- a frontier of {FRONTIER:,} addresses: {result['peak'] / 1e6:.0f} MB, made in {seconds:.0f} s")
    report.gate("memory, to 300 MB", result["peak"] / MEMORY, at_most=1.0)
    report.finish()


if __name__ == "__main__":
    main()
