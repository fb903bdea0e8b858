"""Cost of work on a cluster: measured on all cores of this machine, extrapolated to the size of archives.

Starting the session is not counted; reading from the disk is. Two sizes separate the cost of each line from the fixed
cost of a run. The run fails if results differ from those of one machine.
"""

import filecmp
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bench.measure import Report
from bench.scale_public import simulate
from unlost.mementomap import FilterOptions, MapOptions, ProfileHeader, build_filter, build_map, build_profiles
from unlost.problems import Problems
from unlost.research import SynthIndexOptions, count_index, write_synthetic_index
from unlost.research.spark import (
    PartialRow,
    PartTask,
    SparkEngine,
    SparkStage,
    TaskReport,
    filters,
    maps,
    profiles,
    spark_session,
    statistics,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

LINES = int(os.environ.get("UNLOST_BENCH_LINES", "3000000"))
FILES = 4
DISK_BYTES = 8 << 30

DOMINANT = 0.6
"""Share of all lines that belong to one domain, in the test of a dominant domain."""

DOMINANT_LINES = 3_000_000
DOMINANT_PARTS = 64
CLUSTER_CORES = 100

COMPACTED_OPTIONS = MapOptions(host_weight=1, path_weight=1)


def measure_time(work: Callable[[T], object], what: T) -> tuple[object, float]:
    """Return the result of a function and its duration in seconds."""
    start = time.perf_counter()
    result = work(what)
    return result, time.perf_counter() - start


def main() -> None:
    """Measure and write the report."""
    report = Report("scale", "Work on a cluster, and what archives would need")
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as name:
        folder = Path(name)
        if os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize < DISK_BYTES:
            print(f"bench scale: skipped, {DISK_BYTES >> 30} GiB of disk are needed in {folder.parent}")
            return
        cores = os.cpu_count() or 1
        with spark_session(f"local[{cores}]") as session:
            measure(SparkEngine(session), folder, report)
            measure_dominant_domain(session, folder, report)
        simulate(folder, report)
    report.finish()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same work on one machine and on a cluster, and whether both results are equal."""

    run_locally: Callable[[Sequence[Path]], object]
    run_on_cluster: Callable[[Path], object]
    is_equal: Callable[[object, object], bool]


def list_comparisons(engine: SparkEngine, here: Path, there: Path) -> dict[str, Comparison]:
    """Return all comparisons by name."""

    def is_same_file(_: object, __: object) -> bool:
        return filecmp.cmp(here, there, shallow=False)

    header = ProfileHeader("H3P1")
    return {
        "map": Comparison(
            lambda files: build_map(files, here), lambda index: maps.build_map(engine, [index], there), is_same_file
        ),
        "map, compacted (1, 1)": Comparison(
            lambda files: build_map(files, here, COMPACTED_OPTIONS),
            lambda index: maps.build_map(engine, [index], there, COMPACTED_OPTIONS),
            is_same_file,
        ),
        "profile H3P1": Comparison(
            lambda files: build_profiles(files, {"H3P1": here}, header, Problems()),
            lambda index: profiles.build_profiles(engine, [index], {"H3P1": there}, header, Problems()),
            is_same_file,
        ),
        "filter of 8 bits": Comparison(
            lambda files: build_filter(files, here, FilterOptions()),
            lambda index: filters.build_filter(engine, [index], there, FilterOptions()),
            is_same_file,
        ),
        "statistics": Comparison(
            lambda files: count_index(files)[0].to_json(),
            lambda index: statistics.count_index(engine, [index])[0].to_json(),
            str.__eq__,  # type: ignore[arg-type]
        ),
    }


def write_indexes(folder: Path, lines: int) -> Path:
    """Write a sorted index in several files; return their folder."""
    whole, index = folder / "whole.cdxj", folder / f"index-{lines}"
    index.mkdir()
    write_synthetic_index(SynthIndexOptions(lines), whole, Problems())
    with whole.open("rb") as file:
        for number in range(FILES):
            with (index / f"{number}.cdxj").open("wb") as part:
                part.writelines(islice(file, -(-lines // FILES)))
    whole.unlink()
    return index


def measure(engine: SparkEngine, folder: Path, report: Report) -> None:
    """Measure all comparisons on this machine and on a local cluster."""
    sizes = (LINES // 3, LINES)
    indexes = [write_indexes(folder, lines) for lines in sizes]
    text = sum(file.stat().st_size for file in indexes[1].iterdir())
    cores = os.cpu_count() or 1
    report.line(
        f"{sizes[0]:,} and {sizes[1]:,} made-up lines, the latter {text / 1e6:,.0f} MB, {FILES} files; "
        f"`local[{cores}]`, warm cache, one run each. The last column is by what the lines "
        "beyond the smaller index took."
    )
    report.line("")
    report.line(
        f"| | one machine, {sizes[1]:,} lines, s | cluster, {sizes[0]:,} lines, s "
        f"| cluster, {sizes[1]:,} lines, s | core-hours a billion lines on a cluster |"
    )
    report.line("|---|---|---|---|---|")
    tried = list_comparisons(engine, folder / "here", folder / "there")
    # Warm-up: Python workers start, and the JVM compiles.
    for work in tried.values():
        work.run_on_cluster(indexes[0])
    for name, work in tried.items():
        took = []
        for index in indexes:
            files = sorted(index.iterdir())
            result, alone = measure_time(work.run_locally, files)
            there, many = measure_time(work.run_on_cluster, index)
            took.append(many)
            if not work.is_equal(result, there):
                raise SystemExit(f"bench scale: {name} is not the same")
        hours = (took[1] - took[0]) * cores / (sizes[1] - sizes[0]) * 1e9 / 3600
        report.line(f"| {name} | {alone:.2f} | {took[0]:.1f} | {took[1]:.1f} | {hours:.1f} |")
    report.line("")


@dataclass(frozen=True, slots=True)
class TimedTask:
    """Processes a partition, and records its CPU time."""

    work: PartTask

    def __call__(self, part: int, rows: Iterator[PartialRow]) -> Iterator[PartialRow]:
        """Yield the output of the task, and one further report."""
        start = time.process_time()
        yield from self.work(part, rows)
        yield TaskReport(counts={"microseconds": round((time.process_time() - start) * 1e6)}).to_row()


class TimedEngine(SparkEngine):
    """An engine that records durations. task_seconds: CPU seconds by stage and partition."""

    def __init__(self, session: "SparkSession", parts: int) -> None:
        super().__init__(session, parts)
        self.task_seconds: list[list[float]] = []

    def merge(
        self, stage: SparkStage, cut: Callable[[PartialRow], Iterator[PartialRow]], parts: int, work: PartTask
    ) -> SparkStage:
        """Merge as the base class, and record durations."""
        merged = super().merge(stage, cut, parts, TimedTask(work))
        every = [note.counts["microseconds"] / 1e6 for note in merged.reports if "microseconds" in note.counts]
        self.task_seconds.append(every)
        return merged


def measure_dominant_domain(session: "SparkSession", folder: Path, report: Report) -> None:
    """Measure the longest partition if one domain has most lines, with and without splitting the domain."""
    index = folder / "dominant"
    index.mkdir()
    write_synthetic_index(SynthIndexOptions(round(DOMINANT_LINES * (1 - DOMINANT))), index / "others.cdxj", Problems())
    with (index / "dominant.cdxj").open("w") as file:
        for number in range(round(DOMINANT_LINES * DOMINANT)):
            host, page = number % 6000, number // 6000
            file.write(
                f"uk,co,h{host})/{page % 10}/{page} 20200101000000 "
                f'{{"url": "http://h{host}.co.uk/{page % 10}/{page}", "mime": "text/html", "status": "200"}}\n'
            )
    report.line(
        f"One domain (`uk,co`) with {DOMINANT:.0%} of {DOMINANT_LINES:,} lines, in {DOMINANT_PARTS} parts; map, "
        f"compacted (1, 1), and profile. Processor seconds of adding up and compacting parts; on {CLUSTER_CORES} cores "
        "no stage ends before its longest part."
    )
    report.line("")
    report.line(f"| | longest part, s | all parts, s | at least, on {CLUSTER_CORES} cores, s |")
    report.line("|---|---|---|---|")
    strategies = {
        "paths first, cut at hosts; then hosts, cut at domains": None,
        "all at once, cut at domains": lambda how: (how, None),
    }
    original_steps = maps._compaction_steps  # noqa: SLF001  the benchmark replaces it
    outputs: list[Path] = []
    at_least = []
    for name, steps in strategies.items():
        engine = TimedEngine(session, DOMINANT_PARTS)
        maps._compaction_steps = steps or original_steps  # noqa: SLF001
        outputs.append(folder / f"dominant-{len(outputs)}.ukvs")
        maps.build_map(engine, [index], outputs[-1], COMPACTED_OPTIONS)
        longest = sum(max(every) for every in engine.task_seconds)
        at_least.append(sum(max(*every, sum(every) / CLUSTER_CORES) for every in engine.task_seconds))
        report.line(f"| {name} | {longest:.2f} | {sum(map(sum, engine.task_seconds)):.2f} | {at_least[-1]:.2f} |")
    maps._compaction_steps = original_steps  # noqa: SLF001
    if not filecmp.cmp(outputs[0], outputs[1], shallow=False):
        raise SystemExit("bench scale: the ways come to different maps")
    engine = TimedEngine(session, DOMINANT_PARTS)
    profiles.build_profiles(engine, [index], {"H3P1": folder / "dominant.cdxj"}, ProfileHeader("H3P1"), Problems())
    (every,) = engine.task_seconds
    longest, total = max(every), sum(every)
    report.line(
        f"| profile H3P1, cut between keys | {longest:.2f} | {total:.2f} | {max(longest, total / CLUSTER_CORES):.2f} |"
    )
    report.line("")
    report.gate(
        "time that one dominant domain leaves on 100 cores, in two steps, of that all at once",
        at_least[0] / at_least[1],
        at_most=0.5,
    )
    report.line("")


if __name__ == "__main__":
    main()
