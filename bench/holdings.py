"""Speed and memory of building and compacting maps, relative to `cut | uniq -c` on the same index.

Each command runs as a process, including start-up and writing the output.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measure import RESULTS, Report
from unlost.problems import Problems
from unlost.research import SynthIndexOptions, write_synthetic_index

LINES = 3_000_000
RUNS = 3
GROWTH_SIZES = (300_000, 1_000_000, 3_000_000, 10_000_000)
UNLOST = Path(sys.executable).with_name("unlost")
DISK_BYTES = 8 << 30


class Run:
    """Least time, least CPU time and greatest memory of several runs of a process."""

    def __init__(self, command: Sequence[str | Path], runs: int = RUNS) -> None:
        self.seconds = float("inf")
        self.cpu_seconds = float("inf")
        self.megabytes = 0.0
        for _ in range(runs):
            start = time.perf_counter()
            process = subprocess.Popen(list(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = min(self.seconds, time.perf_counter() - start)
            self.cpu_seconds = min(self.cpu_seconds, usage.ru_utime + usage.ru_stime)
            self.megabytes = max(self.megabytes, usage.ru_maxrss / 1024)
            if process.returncode:
                raise subprocess.CalledProcessError(process.returncode, list(command))


def shell_command(command: str) -> list[str]:
    """Return a command line for the shell."""
    return ["/bin/sh", "-c", command]


def build_command(index: Path, output: Path, *options: str) -> list[str | Path]:
    """Return the command that builds a map."""
    return [UNLOST, "map", "build", index, "-o", output, "--threads", "2", *options]


def draw_plot(points: Sequence[tuple[int, float]]) -> str:
    """Return an SVG of seconds against lines, with a straight line through the last point."""
    width, height, margin = 640, 400, 60
    most_lines, most_seconds = points[-1][0], max(seconds for _, seconds in points)

    def at(lines: float, seconds: float) -> tuple[float, float]:
        x = margin + (width - 2 * margin) * lines / most_lines
        return round(x, 1), round(height - margin - (height - 2 * margin) * seconds / most_seconds, 1)

    dots = "".join(
        f'<circle cx="{x}" cy="{y}" r="4"/><text x="{x + 8}" y="{y + 4}">{lines / 1e6:g} M, {seconds:.2f} s</text>'
        for lines, seconds in points
        for x, y in [at(lines, seconds)]
    )
    (x0, y0), (x1, y1) = at(0, 0), at(most_lines, points[-1][1])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width + 80} {height}" font-family="sans-serif" '
        f'font-size="12"><line x1="{x0}" y1="{y0}" x2="{x1}" y2="{y1}" stroke="#bbb"/>{dots}'
        f'<text x="{margin}" y="{height - 20}">lines of the index against seconds to make its map</text></svg>\n'
    )


def main() -> None:
    """Measure and write the report."""
    report = Report("holdings", "Making and compacting maps")
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as name:
        folder = Path(name)
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        if free < DISK_BYTES:
            print(f"bench holdings: skipped, {DISK_BYTES >> 30} GiB of disk are needed in {folder.parent}")
            return
        measure(folder, report)
    report.finish()


def measure(folder: Path, report: Report) -> None:
    """Run everything on one synthetic index."""
    index, packed, output, compacted = (folder / name for name in ("a.cdxj", "a.cdxj.gz", "a.ukvs", "b.ukvs"))
    write_synthetic_index(SynthIndexOptions(LINES, seed=1), index, Problems())
    subprocess.run(shell_command(f"gzip -c '{index}' > '{packed}'"), check=True)
    report.line(f"{LINES:,} lines, {index.stat().st_size / LINES:.0f} bytes each; warm cache, best of {RUNS}.")
    report.line("")
    inflate = f"from unlost import _core; _core.inflated_length({str(packed)!r})"
    runs = {
        "`cut -d' ' -f1 | uniq -c`": Run(shell_command(f"cut -d' ' -f1 '{index}' | uniq -c > '{folder / 'counts'}'")),
        "`map build`": Run(build_command(index, output)),
        "`map build`, weights 1, 1": Run(build_command(index, compacted, "--host-weight", "1", "--path-weight", "1")),
        "`map compact` of the map": Run([UNLOST, "map", "compact", output, "-o", compacted]),
        "`map build` from gzip": Run(build_command(packed, compacted)),
        "inflating alone": Run([sys.executable, "-c", inflate]),
        "`map build --urir`": Run(build_command(index, compacted, "--urir"), 1),
        "`map build --by year`": Run(build_command(index, compacted, "--by", "year"), 1),
    }
    shuffled, giant = folder / "shuffled.cdxj", folder / "giant.cdxj"
    write_synthetic_index(SynthIndexOptions(LINES, seed=1, shuffled=True), shuffled, Problems())
    runs["`map build`, unsorted"] = Run(build_command(shuffled, compacted), 1)
    shuffled.unlink()
    write_synthetic_index(SynthIndexOptions(5_000_000, seed=1, largest_host=2_500_000), giant, Problems())
    runs["`map build`, 5 M lines, a host of 2.5 M keys"] = Run(build_command(giant, compacted), 1)
    weights = ("--host-weight", "1", "--path-weight", "1")
    runs["the same, weights 1, 1"] = Run(build_command(giant, compacted, *weights), 1)
    weights = ("--host-weight", "1e9", "--path-weight", "1e9")
    runs["the same, weights so large that nothing is rolled up"] = Run(build_command(giant, compacted, *weights), 1)
    giant.unlink()
    report.line("| | seconds | of `cut \\| uniq` | MB of memory |")
    report.line("|---|---|---|---|")
    unit = runs["`cut -d' ' -f1 | uniq -c`"].seconds
    for what, run in runs.items():
        shown = what.replace("|", "\\|")
        report.line(f"| {shown} | {run.seconds:.2f} | {run.seconds / unit:.2f} | {run.megabytes:.0f} |")
    report.line("")
    report.gate("map build", runs["`map build`"].seconds / unit, at_most=0.20)
    report.gate("map build with weights", runs["`map build`, weights 1, 1"].seconds / unit, at_most=0.25)
    report.gate("map compact", runs["`map compact` of the map"].seconds / unit, at_most=0.10)
    inflating = runs["inflating alone"].seconds
    report.gate("map build from gzip, to inflating", runs["`map build` from gzip"].seconds / inflating, at_most=1.15)
    report.gate("memory, sorted, in units of 150 MB", runs["`map build`"].megabytes / 150, at_most=1)
    giants = [run.megabytes for what, run in runs.items() if "2.5 M" in what or "the same" in what]
    report.gate("memory, a host of 2.5 M keys, in units of 400 MB", max(giants) / 400, at_most=1)
    report.gate("memory, unsorted, in units of 1 GB", runs["`map build`, unsorted"].megabytes / 1000, at_most=1)
    measure_growth(folder, index, report)


def measure_growth(folder: Path, index: Path, report: Report) -> None:
    """Measure how time grows with the index."""
    points = []
    for lines in GROWTH_SIZES:
        write_synthetic_index(SynthIndexOptions(lines, seed=1), index, Problems())
        points.append((lines, Run(build_command(index, folder / "grown.ukvs")).seconds))
    report.line("")
    report.line("| lines | seconds | microseconds a line |")
    report.line("|---|---|---|")
    for lines, seconds in points:
        report.line(f"| {lines:,} | {seconds:.2f} | {seconds / lines * 1e6:.3f} |")
    report.line("")
    report.line("![seconds against lines](holdings.svg)")
    report.line("")
    (RESULTS / "holdings.svg").write_text(draw_plot(points))
    # Between the two largest sizes, where start-up is negligible.
    (few, before), (many, after) = points[-2:]
    report.gate("time a line at 10 M, to that at 3 M", (after / many) / (before / few), at_most=1.25)


if __name__ == "__main__":
    main()
