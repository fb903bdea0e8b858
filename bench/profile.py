"""Profiles under all policies, against the map of the same index."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.formats import ROWS, write_index
from bench.measure import Report
from unlost import _core, uri
from unlost.atomic import atomic_file
from unlost.mementomap import ProfileHeader, build_profiles, merge_profiles
from unlost.problems import Problems
from unlost.text_lines import MAX_LINE_BYTES


def build_map(index: Path, output: Path) -> None:
    """Count the pages of an index, and write the map."""
    progress = _core.Progress()
    builder = _core.MapBuilder(rules=uri.DEFAULT_RULES, line_limit=MAX_LINE_BYTES)
    builder.add_file(index, progress)
    with atomic_file(output) as file:
        builder.write(f"/dev/fd/{file.fileno()}", b"", None, progress)


def build_all_profiles(index: Path, folder: Path) -> None:
    """Write the profiles of all policies."""
    outputs = {policy: folder / f"{policy}.cdxj" for policy in uri.POLICIES}
    build_profiles([index], outputs, ProfileHeader("HxPx"), Problems())


def measure(task: Callable[[], None]) -> tuple[float, float]:
    """Return the wall time and the CPU time of a task, in seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    task()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Measure and write the report."""
    report = Report("profile", "Profiles of an index")
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as name:
        folder = Path(name)
        index, merged = folder / "a.cdxj", folder / "merged"
        mean = write_index(index)
        report.line(
            f"{ROWS:,} rows of {mean:.0f} bytes on average, sorted, made up, seeded, each page on a host of its own, "
            "which is the most that a profile can have to write; warm cache, best of 3, without start-up."
        )
        report.line("")
        tasks: dict[str, Callable[[], None]] = {
            "map": lambda: build_map(index, folder / "map.ukvs"),
            "23 profiles": lambda: build_all_profiles(index, folder),
            "two profiles (HxPx) merged": lambda: merge_profiles([folder / "HxPx.cdxj"] * 2, merged),
        }
        best = dict.fromkeys(tasks, (float("inf"), float("inf")))
        # Interleaved, so that other load on the machine affects all tasks alike.
        for _ in range(3):
            for task, run in tasks.items():
                wall, cpu = measure(run)
                best[task] = min(best[task][0], wall), min(best[task][1], cpu)
        report.line("| | seconds | seconds of processors |")
        report.line("|---|---|---|")
        for task, (wall, cpu) in best.items():
            report.line(f"| {task} | {wall:.3f} | {cpu:.3f} |")
        report.line("")
        size = sum((folder / f"{policy}.cdxj").stat().st_size for policy in uri.POLICIES)
        report.line(
            f"The profiles have {size / 1e6:.0f} MB, the map {(folder / 'map.ukvs').stat().st_size / 1e6:.0f} MB."
        )
        report.line("")
        report.gate("23 profiles, to the map", best["23 profiles"][0] / best["map"][0], at_most=8)
    report.finish()


if __name__ == "__main__":
    main()
