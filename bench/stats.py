"""Speed of index statistics, relative to `map build` and `cdxsummary` on the same index.

Each command runs as a process, including start-up and writing the output.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from tests.external.cdxsummary import PROGRAM

from bench.holdings import UNLOST, Run, build_command, shell_command
from bench.measure import Report

LINES = 3_000_000
DISK_BYTES = 4 << 30


def main() -> None:
    """Measure and write the report."""
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
    # In its own process: memory of this process would count as memory of the processes that it starts.
    synth: list[str | Path] = [UNLOST, "synth", "index", "--lines", str(LINES), "--seed", "1"]
    subprocess.run([*synth, "-o", index], check=True, capture_output=True)
    subprocess.run([*synth, "--unsorted", "-o", shuffled], check=True, capture_output=True)
    subprocess.run(shell_command(f"gzip -1 -c '{index}' > '{packed}'"), check=True)
    subprocess.run([UNLOST, "index", "convert", index, "-o", cdx], check=True, capture_output=True)
    report.line(f"{LINES:,} lines, {index.stat().st_size / LINES:.0f} bytes each; warm cache, best of 3.")
    report.line("")
    runs = {
        "`map build`": Run(build_command(index, folder / "a.ukvs")),
        "`stats`, with its report": Run(stats_command(index, folder / "report")),
        "`map build` from gzip": Run(build_command(packed, folder / "a.ukvs"), 1),
        "`stats` from gzip": Run(stats_command(packed, folder / "report"), 1),
        "`map build`, unsorted": Run(build_command(shuffled, folder / "a.ukvs"), 1),
        "`stats --estimate`, unsorted": Run(stats_command(shuffled, folder / "report", "--estimate"), 1),
        "`cdxsummary`, of CDX": Run([PROGRAM, "--json", cdx], 1),
        "`stats`, of CDX": Run(stats_command(cdx, folder / "report")),
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


def stats_command(index: Path, output: Path, *options: str) -> list[str | Path]:
    """Return the command that writes statistics."""
    return [UNLOST, "stats", "index", index, "-o", output, "--threads", "2", *options]


if __name__ == "__main__":
    main()
