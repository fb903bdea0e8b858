"""Speed of index statistics, relative to `map build` and `cdxsummary` on the same index.

Everything runs as its users run it: a process, its start-up counted, its output on the disk.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from tests.external.cdxsummary import PROGRAM

from bench.holdings import UNLOST, Run, build, shell
from bench.measure import Report

LINES = 3_000_000
DISK_BYTES = 4 << 30


def main() -> None:
    """Measure, report, judge."""
    report = Report("stats", "Statistics of indexes")
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as name:
        folder = Path(name)
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        if free < DISK_BYTES:
            print(f"bench stats: skipped, {DISK_BYTES >> 30} GiB of disk are needed in {folder.parent}")
            return
        measure(folder, report)
    report.finish()


def measure(folder: Path, report: Report) -> None:
    """Run everything on one synthetic index."""
    index, packed, shuffled, cdx = (folder / name for name in ("a.cdxj", "a.cdxj.gz", "b.cdxj", "a.cdx"))
    # Not in this process: what it ever took, the system counts as memory of those that it starts.
    synth: list[str | Path] = [UNLOST, "synth", "index", "--lines", str(LINES), "--seed", "1"]
    subprocess.run([*synth, "-o", index], check=True, capture_output=True)
    subprocess.run([*synth, "--unsorted", "-o", shuffled], check=True, capture_output=True)
    subprocess.run(shell(f"gzip -1 -c '{index}' > '{packed}'"), check=True)
    subprocess.run([UNLOST, "index", "convert", index, "-o", cdx], check=True, capture_output=True)
    report.line(f"{LINES:,} lines, {index.stat().st_size / LINES:.0f} bytes each; warm cache, best of 3.")
    report.line("")
    runs = {
        "`map build`": Run(build(index, folder / "a.ukvs")),
        "`stats`, with its report": Run(stats(index, folder / "report")),
        "`map build` from gzip": Run(build(packed, folder / "a.ukvs"), 1),
        "`stats` from gzip": Run(stats(packed, folder / "report"), 1),
        "`map build`, unsorted": Run(build(shuffled, folder / "a.ukvs"), 1),
        "`stats --estimate`, unsorted": Run(stats(shuffled, folder / "report", "--estimate"), 1),
        "`cdxsummary`, of CDX": Run([PROGRAM, "--json", cdx], 1),
        "`stats`, of CDX": Run(stats(cdx, folder / "report")),
    }
    report.line("| | seconds | processor seconds | MB of memory |")
    report.line("|---|---|---|---|")
    for name, run in runs.items():
        report.line(f"| {name} | {run.seconds:.2f} | {run.cpu_seconds:.2f} | {run.megabytes:.0f} |")
    report.line("")
    seconds = [run.seconds for run in runs.values()]
    report.gate("speed of stats, to that of map build", seconds[0] / seconds[1], at_least=1 / 3)
    report.gate("speed of stats, to that of cdxsummary", seconds[6] / seconds[7], at_least=15)
    report.gate("memory, in units of 150 MB", list(runs.values())[1].megabytes / 150, at_most=1)


def stats(index: Path, output: Path, *options: str) -> list[str | Path]:
    """Return the command that gathers statistics."""
    return [UNLOST, "stats", "index", index, "-o", output, "--threads", "2", *options]


if __name__ == "__main__":
    main()
