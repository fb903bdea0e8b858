"""How long other requests wait while a TimeMap of a million mementos is received, rendered and sent."""

import http.client
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.web.server_process import run_process, wait_for_client
from tests.web.test_million import COUNT, PAGE, serve_command, serving_million

from bench.measure import Report

MAX_SECONDS = 0.1
FORMATS = ("link", "json", "cdxj")


def measure_waits(port: int, form: str) -> tuple[float, list[float]]:
    """Request the TimeMap; return its duration and that of each concurrent request for /health, in seconds."""
    found: list[float] = []
    health = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    start = time.perf_counter()
    # In another process: reading 130 MB in this one would delay the requests that are timed.
    with subprocess.Popen(["curl", "-sfo", os.devnull, f"http://127.0.0.1:{port}/timemap/{form}/{PAGE}"]) as client:
        while client.poll() is None:
            sent = time.perf_counter()
            health.request("GET", "/health")
            health.getresponse().read()
            found.append(time.perf_counter() - sent)
            time.sleep(0.005)
        if client.returncode:
            sys.exit(f"curl failed with {client.returncode}")
    seconds = time.perf_counter() - start
    health.close()
    return seconds, sorted(found)


def main() -> None:
    """Measure and write the report."""
    report = Report("large_timemap", "Other requests during a TimeMap of a million mementos")
    report.line(f"{COUNT:,} mementos of one archive. `/health` is requested every 5 ms meanwhile.")
    report.line("")
    longest = 0.0
    with tempfile.TemporaryDirectory() as name, serving_million() as archive:
        for form in FORMATS:
            folder = Path(name) / form
            folder.mkdir()
            with run_process(*serve_command(archive, folder)) as process:
                port = wait_for_client(process).port
                for what in ("received and sent", "sent from the cache"):
                    seconds, found = measure_waits(port, form)
                    report.line(
                        f"- {form}, {what}: {seconds:.1f} s; `/health`: median {1e3 * found[len(found) // 2]:.1f} ms, "
                        f"at most {1e3 * found[-1]:.0f} ms of {len(found)}"
                    )
                    longest = max(longest, found[-1])
    report.gate("longest response to /health, to 100 ms", longest / MAX_SECONDS, at_most=1.0)
    report.finish()


if __name__ == "__main__":
    main()
