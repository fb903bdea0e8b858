"""What work on a cluster costs: measured here on all processors, extrapolated to what archives have.

The session is begun before, and not counted; reading from the disk is. Where results differ from those of one machine,
the run fails.
"""

import filecmp
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.measure import Report
from unlost.formats.problems import Problems
from unlost.holdings import FilterOptions, MapOptions, build_filter, build_map
from unlost.holdings.spark import filters, maps
from unlost.holdings.spark.engine import Engine
from unlost.holdings.spark.session import spark_session
from unlost.holdings.synth import Plan, write_index

LINES = int(os.environ.get("UNLOST_BENCH_LINES", "3000000"))
FILES = 4
DISK_BYTES = 8 << 30

PUBLIC_ARCHIVES = 20
ALL_CAPTURES = 10**12
CAPTURES_A_PAGE = 2.77  # of the second paper's archive
COMPACTED = 0.06  # lines of a map for each key, at weights of 1: the second paper's
REQUESTS_A_SECOND = 1000
ARCHIVES_THAT_HOLD = 1.5  # of those that are asked for a page, on average: an assumption


def seconds(work: Callable[[], object]) -> float:
    """Return how long it took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """Measure, extrapolate, report, judge."""
    report = Report("scale", "Work on a cluster, and what archives would need")
    with tempfile.TemporaryDirectory(prefix="unlost-bench-") as name:
        folder = Path(name)
        if os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize < DISK_BYTES:
            print(f"bench scale: skipped, {DISK_BYTES >> 30} GiB of disk are needed in {folder.parent}")
            return
        measure(folder, report)
    report.finish()


def measure(folder: Path, report: Report) -> None:
    """Measure making a map and a filter of made-up indexes here and on a cluster of this machine."""
    index = folder / "index"
    index.mkdir()
    for number in range(FILES):
        write_index(Plan(LINES // FILES, seed=number), index / f"{number}.cdxj", Problems())
    files = sorted(index.iterdir())
    size = sum(file.stat().st_size for file in files)
    cores = os.cpu_count() or 1
    report.line(f"{LINES:,} lines, {size / 1e6:,.0f} MB, {FILES} files; `local[{cores}]`, warm cache, one run each.")
    report.line("")
    report.line("| | one machine, s | cluster, s | core-hours a billion lines on a cluster |")
    report.line("|---|---|---|---|")
    compacted = MapOptions(host_weight=1, path_weight=1)
    here, there = folder / "here", folder / "there"
    with spark_session(f"local[{cores}]") as session:
        engine = Engine(session)
        work: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "map": (lambda: build_map(files, here), lambda: maps.build_map(engine, [index], there)),
            "map, compacted": (
                lambda: build_map(files, here, compacted),
                lambda: maps.build_map(engine, [index], there, compacted),
            ),
            "filter, 8 bits": (
                lambda: build_filter(files, here, FilterOptions()),
                lambda: filters.build_filter(engine, [index], there, FilterOptions()),
            ),
        }
        # Processes of Python start with the first work.
        maps.build_map(engine, files[:1], there)
        sizes, lines = {}, {}
        for name, (locally, far) in work.items():
            alone, many = seconds(locally), seconds(far)
            if not filecmp.cmp(here, there, shallow=False):
                raise SystemExit(f"bench scale: {name} is not the same")
            sizes[name] = there.stat().st_size
            lines[name] = there.read_bytes().count(b"\n")
            hours = many * cores / LINES * 1e9 / 3600
            report.line(f"| {name} | {alone:.1f} | {many:.1f} | {hours:.1f} |")
    report.line("")
    simulate(report, sizes["filter, 8 bits"] / lines["map"], sizes["map, compacted"] / lines["map, compacted"])


def simulate(report: Report, a_key: float, a_line: float) -> None:
    """Say what all public archives would need, by the bytes of a filter for a key and of a map for a line here."""
    pages = ALL_CAPTURES / CAPTURES_A_PAGE
    lines = pages * COMPACTED
    report.line(
        f"{PUBLIC_ARCHIVES} archives with {ALL_CAPTURES:.0e} captures, {CAPTURES_A_PAGE} of each page (as in the "
        f"second paper's archive): {pages:.1e} pages; maps of {COMPACTED:.0%} of that (the same). A page takes "
        f"{a_key:.2f} bytes of a filter here, and a line of a map {a_line:.0f}."
    )
    report.line("")
    where = "asked where they lie, by pages of the disk that memory keeps"
    report.line(f"- filters to publish: {pages * a_key / 1e9:,.0f} GB in all; {where}")
    report.line(f"- maps to publish: {lines * a_line / 1e9:,.0f} GB in all, before compression")
    wrong = 1 / 256
    asked = ARCHIVES_THAT_HOLD + (PUBLIC_ARCHIVES - ARCHIVES_THAT_HOLD) * wrong
    report.line(
        f"- {REQUESTS_A_SECOND:,} requests a second, each held by {ARCHIVES_THAT_HOLD} archives (assumed): "
        f"{REQUESTS_A_SECOND * PUBLIC_ARCHIVES:,} questions a second without routing, "
        f"{REQUESTS_A_SECOND * asked:,.0f} with filters of 8 bits: {1 - asked / PUBLIC_ARCHIVES:.0%} saved"
    )


if __name__ == "__main__":
    main()
