"""Duration and number of requests of a recovery, and memory of a large frontier."""

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

from tests.external.process import free_port

from bench.holdings import UNLOST
from bench.measure import Report
from bench.slow_archive import HOST

RESOURCES = 5_000
LATENCY_MS = 50
CONNECTIONS = 20
FRONTIER = 1_000_000
MAX_MEMORY = 300e6


@contextmanager
def run_slow_archive(resources: int, milliseconds: float, links: str) -> Iterator[int]:
    """Serve a synthetic site; yield the port. `links`: `linked` or `listed`, as in `bench.slow_archive`."""
    port = free_port()
    command = [sys.executable, "-m", "bench.slow_archive", str(port), str(resources), str(milliseconds), links]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        if process.stdout is not None:
            process.stdout.readline()
        try:
            yield port
        finally:
            process.communicate()


def write_registry(port: int, folder: Path) -> Path:
    """Write a registry that has only this archive."""
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


def recover_once(links: str, *options: str) -> tuple[float, dict[str, int]]:
    """Recover the site of the slow archive; return the duration in seconds and the number of requests by kind."""
    with tempfile.TemporaryDirectory() as name, run_slow_archive(RESOURCES, LATENCY_MS, links) as port:
        folder = Path(name)
        environment = {**os.environ, "UNLOST_HOME": str(folder / "home"), "UNLOST_CONTACT": "bench@example.com"}
        command: list[str | Path] = [UNLOST, "recover", f"{HOST}/", "--archives", write_registry(port, folder)]
        command += ["-o", folder / "out", "--connections", str(CONNECTIONS), "--json", *options]
        start = time.perf_counter()
        done = subprocess.run(command, env=environment, check=True, capture_output=True)
        seconds = time.perf_counter() - start
        result = json.loads(done.stdout.splitlines()[-1])
        if result["recovered"] != RESOURCES:
            sys.exit(f"expected {RESOURCES} resources, found {result}")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/asked") as response:
            return seconds, json.load(response)


def measure_speed(report: Report) -> None:
    """Recover a site from an archive with a fixed latency, by default and with the exhaustive policy."""
    ideal = RESOURCES * LATENCY_MS / 1e3 / CONNECTIONS
    report.line(f"{RESOURCES:,} resources, {LATENCY_MS} ms each, {CONNECTIONS} at once, start-up counted.")
    report.line("")
    for what, suffix, links, options in (
        ("by default", "", "linked", ()),
        ("by default, all but the start page listed and not linked", ", nothing linked", "listed", ()),
        ("`--policy exhaustive`", ", exhaustive policy", "linked", ("--policy", "exhaustive")),
    ):
        runs = [recover_once(links, *options) for _ in range(3)]
        fastest, request_counts = min(seconds for seconds, _ in runs), runs[-1][1]
        report.line(f"- {what}: {fastest:.1f} s; requests: {request_counts}")
        report.gate(f"time, to that of waiting alone{suffix}", fastest / ideal, at_most=1.25)
        requests = f"requests for captures, to resources recovered{suffix}"
        report.gate(requests, request_counts["replay"] / RESOURCES, at_most=1.05)


def measure_frontier(name: str) -> None:
    """List a million URLs, enqueue them by a policy, then again as after a change of options; print figures."""
    from unlost.capture import Capture  # noqa: PLC0415
    from unlost.recovery import RecoverOptions, RecoverPolicy, RecoveryFrontier, RecoveryScope, store_listed_captures  # noqa: PLC0415
    from unlost.recovery.state import RecoveryState, ResourceStatus  # noqa: PLC0415

    plan = RecoverOptions(f"{HOST}/", policy=RecoverPolicy(name))
    with tempfile.TemporaryDirectory() as folder, RecoveryState(Path(folder)) as state:
        start = time.perf_counter()
        for begin in range(0, FRONTIER, 1000):
            numbers = range(begin, begin + 1000)
            uris = [f"{HOST}/folder/{number % 977}/page-{number:07}.html{_query(number)}" for number in numbers]
            store_listed_captures([Capture(uri, None, "20140210000001", 200, archive="a") for uri in uris], state, plan)
        state.commit()
        listed = time.perf_counter() - start
        RecoveryFrontier(plan, RecoveryScope.of(plan), state, 2026).enqueue_listed()
        state.commit()
        queued = time.perf_counter() - start - listed
        count = state.resources.counts()[ResourceStatus.QUEUED]
        state.resources.reset_discovery()
        state.commit()
        RecoveryFrontier(plan, RecoveryScope.of(plan), state, 2026).enqueue_listed()
        state.commit()
        requeued = time.perf_counter() - start - listed - queued
        count = min(count, state.resources.counts()[ResourceStatus.QUEUED])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"count": count, "listed": listed, "queued": queued, "requeued": requeued, "peak": peak}))


def _query(number: int) -> str:
    """Return the query of a URL: one in a hundred has a tracking parameter, which the default policy inspects."""
    return "?a=b" if number % 100 else "?a=b&utm_source=mail"


def main() -> None:
    """Measure and write the report."""
    if sys.argv[1:2] == ["frontier"]:
        measure_frontier(sys.argv[2])
        return
    report = Report("recover", "Recovering a site")
    measure_speed(report)
    for policy, what, suffix in (
        ("complete", "by default", ""),
        ("exhaustive", "`--policy exhaustive`", ", exhaustive policy"),
    ):
        command = [sys.executable, "-m", "bench.recover", "frontier", policy]
        result = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        if result["count"] != FRONTIER:
            sys.exit(f"expected {FRONTIER} queued, found {result}")
        report.line(
            f"- a frontier of {FRONTIER:,} URLs, {what}: {result['peak'] / 1e6:.0f} MB, listed in "
            f"{result['listed']:.0f} s, queued in {result['queued']:.0f} s, queued again after a change of options "
            f"in {result['requeued']:.0f} s"
        )
        report.gate(f"memory, to 300 MB{suffix}", result["peak"] / MAX_MEMORY, at_most=1.0)
    report.finish()


if __name__ == "__main__":
    main()
