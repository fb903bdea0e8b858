"""Speed, size and false positives of filters, relative to maps of the same index.

Builds run as processes, including start-up and writing the output. Look-ups run in this process, from keys to a list
of results; keys are lines of one text, as in lists of millions. Python strings in random order cost 0.2 µs each for
memory access, independent of the data structure; that figure is reported without a gate.
"""

import os
import random
import tempfile
from pathlib import Path

from bench.holdings import UNLOST, Run, build_command
from bench.measure import Report, best_of
from unlost.mementomap import Filter, Map
from unlost.problems import Problems
from unlost.research import SynthIndexOptions, write_synthetic_index

LINES = 3_000_000
MANY_LINES = 10_000_000
QUERIES = 400_000
THREADS = 2
DISK_BYTES = 8 << 30


def filter_command(index: Path, output: Path, *options: str) -> list[str | Path]:
    """Return the command that builds a filter."""
    return [UNLOST, "filter", "build", index, "-o", output, "--threads", str(THREADS), *options]


def main() -> None:
    """Measure and write the report."""
    report = Report("filter", "Making and asking filters, beside maps")
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as name:
        folder = Path(name)
        free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
        if free < DISK_BYTES:
            print(f"bench filter: skipped, {DISK_BYTES >> 30} GiB of disk are needed in {folder.parent}")
            return
        measure_builds(folder, report)
        measure_lookups(folder, report)
    report.finish()


def measure_builds(folder: Path, report: Report) -> None:
    """Measure building filters of a synthetic index, and of a larger unsorted one."""
    index, other, shuffled = folder / "a.cdxj", folder / "b.filter", folder / "shuffled.cdxj"
    write_synthetic_index(SynthIndexOptions(LINES, seed=1), index, Problems())
    report.line(f"{LINES:,} lines; {THREADS} threads, warm cache, best of 3.")
    report.line("")
    runs = {
        "`map build`": Run(build_command(index, folder / "a.ukvs")),
        "`filter build --bits 8`": Run(filter_command(index, folder / "a.filter")),
        "`filter build --bits 16`": Run(filter_command(index, other, "--bits", "16")),
        "`filter build --key urir`": Run(filter_command(index, other, "--key", "urir")),
        "`filter build` of the map": Run(filter_command(folder / "a.ukvs", other)),
        "`filter add` of the same": Run([UNLOST, "filter", "add", folder / "a.filter", index, "-o", other]),
        "`filter check`": Run([UNLOST, "filter", "check", folder / "a.filter"]),
    }
    index.unlink()
    # In its own process: memory of this process would count as memory of the processes that it starts.
    Run([UNLOST, "synth", "index", "--lines", str(MANY_LINES), "--seed", "1", "--unsorted", "-o", shuffled], 1)
    many = f"`filter build`, {MANY_LINES:,} lines, unsorted"
    runs[many] = Run(filter_command(shuffled, other), 1)
    shuffled.unlink()
    report.line("| | seconds | of `map build` | of its processor time | MB of memory |")
    report.line("|---|---|---|---|---|")
    unit = runs["`map build`"]
    for what, run in runs.items():
        ratios = f"{run.seconds / unit.seconds:.2f} | {run.cpu_seconds / unit.cpu_seconds:.2f}"
        report.line(f"| {what} | {run.seconds:.2f} | {ratios} | {run.megabytes:.0f} |")
    report.line("")
    report.gate("filter build, to map build", runs["`filter build --bits 8`"].seconds / unit.seconds, at_most=2)
    report.gate("memory, unsorted, in units of 150 MB", runs[many].megabytes / 150, at_most=1)


def measure_lookups(folder: Path, report: Report) -> None:
    """Measure look-ups of keys in random order, half of which are in the filter."""
    rows = (folder / "a.ukvs").read_text().splitlines()
    keys = [row.partition(" ")[0] for row in rows if row[0] not in "!*"]
    rng = random.Random(1)  # noqa: S311  a bench, not a secret
    rng.shuffle(keys)
    held, others = keys[: QUERIES // 2], [f"{key}~" for key in keys[QUERIES // 2 : QUERIES]]
    queried = [*held, *others]
    rng.shuffle(queried)
    opened, loaded = Map.open(folder / "a.ukvs"), Map.load(folder / "a.ukvs")
    filtered = Filter.open(folder / "a.filter")
    assert all(filtered.lookup_keys_many(held))  # noqa: S101
    wrong = sum(filtered.lookup_keys_many(others)) / len(others)
    report.line("")
    report.line("| | µs a key | keys a second |")
    report.line("|---|---|---|")
    times: dict[tuple[str, int], float] = {}
    text = "\n".join(queried).encode()
    for name, holdings in (("map, in the file", opened), ("map, in memory", loaded), ("filter", filtered)):
        for threads in (1, THREADS):
            each = best_of(5, lambda: holdings.lookup_key_lines(text, threads)) / len(queried)  # noqa: B023
            times[name, threads] = each
            report.line(f"| {name}, {threads} threads | {each * 1e6:.2f} | {1 / each:,.0f} |")
            each = best_of(5, lambda: holdings.lookup_keys_many(queried, threads)) / len(queried)  # noqa: B023
            report.line(f"| {name}, {threads} threads, from strings | {each * 1e6:.2f} | {1 / each:,.0f} |")
    opening = best_of(5, lambda: Filter.open(folder / "a.filter"))
    size = (folder / "a.filter").stat().st_size
    report.line("")
    report.line(
        f"The filter has {filtered.keys:,} keys in {size:,} bytes: {size * 8 / filtered.keys:.2f} bits a key. Opening "
        f"takes {opening * 1e3:.2f} ms. Of {len(others):,} keys that are not held, {wrong:.2%} are said to be (0.39 % "
        "expected)."
    )
    report.line("")
    for threads in (1, THREADS):
        for name in ("map, in the file", "map, in memory"):
            ratio = times[name, threads] / times["filter", threads]
            report.gate(f"times as many keys a second as the {name}, {threads} threads", ratio, at_least=4)
    report.gate("bits a key, to those of a fingerprint", size / filtered.keys, at_most=1.2)
    report.gate("wrong answers, to those expected", wrong * 256, at_most=1.2)


if __name__ == "__main__":
    main()
