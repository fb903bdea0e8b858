"""Storage and memory for all public archives: extrapolated from measurements with explicit assumptions.

Memory is that of `unlost serve` with as many archives at two sizes; the difference yields the memory of a page of a
filter and of a line of a map.
"""

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path

from tests.cli.run import UNLOST
from tests.web.server_process import run_process, wait_for_client

from bench.measure import Report
from unlost.mementomap import FilterOptions, MapOptions, build_filter, build_map
from unlost.problems import Problems
from unlost.research import SynthIndexOptions, count_rows, write_synthetic_index

PUBLIC_ARCHIVES = 20
ALL_CAPTURES = 10**12
CAPTURES_A_PAGE = 2.77  # as in the archive of the second paper
ROWS_PER_KEY = 0.06  # lines of a map for each key with weights of 1, from the second paper
REQUESTS_A_SECOND = 1000
ARCHIVES_THAT_HOLD = 1.5  # average number of archives that hold a requested page: an assumption
BUDGET_LINES = 1_000_000  # lines of each archive's map with a budget: an assumption
FILTER_BITS = 8

SIZES = (1_000_000, 4_000_000)  # lines of the index of one archive; all archives share it


@dataclass(frozen=True, slots=True)
class Costs:
    """Measurements: pages and lines of one archive, bytes of its files, resident memory of the aggregator."""

    pages: int
    lines: int
    filter_bytes: int
    map_bytes: int
    with_maps: int
    with_both: int


def measure_costs(folder: Path, size: int) -> Costs:
    """Measure an aggregator of archives of one size, with maps alone and with filters."""
    index, everything, rows, pages = (folder / name for name in ("index.cdxj", "all.map", "a.map", "a.filter"))
    write_synthetic_index(SynthIndexOptions(size), index, Problems())
    build_map([index], everything)
    build_map([index], rows, MapOptions(host_weight=1, path_weight=1))
    build_filter([index], pages, FilterOptions(bits=FILTER_BITS))
    maps_only, both = (resident_memory(folder, has_filters=has_filters) for has_filters in (False, True))
    return Costs(count_rows(everything), count_rows(rows), pages.stat().st_size, rows.stat().st_size, maps_only, both)


def resident_memory(folder: Path, *, has_filters: bool) -> int:
    """Return the resident memory in bytes of a server that has loaded the maps and filters of all archives."""
    filters = 'filters = ["a.filter"]\n' if has_filters else ""
    entries = [
        f'[[archive]]\nid = "a{number}"\nname = "a{number}"\nkind = "memento"\nlimits = []\n'
        f'timemap = "http://127.0.0.1:1/{number}/"\nmementomap = "a.map"\n{filters}'
        for number in range(PUBLIC_ARCHIVES)
    ]
    registry = folder / "archives.toml"
    registry.write_text("\n".join(entries))
    command: list[str | Path] = [UNLOST, "serve", "--port", "0", "--archives", str(registry)]
    with run_process(command, {"UNLOST_HOME": str(folder / "home"), "UNLOST_CONTACT": "me@example.org"}) as process:
        client = wait_for_client(process)
        while not all(each["map"] for each in json.loads(client.request("/about").text)["archives"]):
            time.sleep(0.1)
        status = Path(f"/proc/{process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) * 1024 if found else 0


def simulate(folder: Path, report: Report) -> None:
    """Measure an aggregator at two sizes and extrapolate to all public archives."""
    small, large = (measure_costs(folder, size) for size in SIZES)
    page_bytes = large.filter_bytes / large.pages
    line_bytes = large.map_bytes / large.lines
    more_lines = (large.lines - small.lines) * PUBLIC_ARCHIVES
    more_pages = (large.pages - small.pages) * PUBLIC_ARCHIVES
    line_memory = (large.with_maps - small.with_maps) / more_lines
    page_memory = ((large.with_both - large.with_maps) - (small.with_both - small.with_maps)) / more_pages
    base = large.with_maps - line_memory * large.lines * PUBLIC_ARCHIVES
    report.line(f"An aggregator (`unlost serve`) with {PUBLIC_ARCHIVES} archives, resident memory:")
    report.line("")
    report.line("| pages of each archive | lines of its map | with maps, MB | with maps and filters, MB |")
    report.line("|---|---|---|---|")
    for each in (small, large):
        report.line(f"| {each.pages:,} | {each.lines:,} | {each.with_maps / 1e6:,.0f} | {each.with_both / 1e6:,.0f} |")
    report.line("")
    report.line(
        f"So a line of a map takes {line_memory:.0f} bytes of memory ({line_bytes:.0f} of the file), a page of a "
        f"filter of {FILTER_BITS} bits {page_memory:.2f} ({page_bytes:.2f}), and everything else {base / 1e6:,.0f} MB."
    )
    report.line("")
    pages = ALL_CAPTURES / CAPTURES_A_PAGE
    lines = pages * ROWS_PER_KEY
    report.line(
        f"**Simulated from that**: {PUBLIC_ARCHIVES} archives with {ALL_CAPTURES:.0e} captures, {CAPTURES_A_PAGE} of "
        f"each page (as in the second paper's archive): {pages:.1e} pages; maps of {ROWS_PER_KEY:.0%} of that (the "
        f"same), or of {BUDGET_LINES:,} lines each."
    )
    report.line("")
    report.line("| | to publish, GB | memory of the aggregator, GB |")
    report.line("|---|---|---|")
    few = BUDGET_LINES * PUBLIC_ARCHIVES
    for name, count, key in (
        ("maps", lines, 0.0),
        ("maps and filters", lines, pages),
        (f"maps of {BUDGET_LINES:,} lines", few, 0.0),
        (f"maps of {BUDGET_LINES:,} lines, and filters", few, pages),
    ):
        published = count * line_bytes + key * page_bytes
        memory = base + count * line_memory + key * page_memory
        report.line(f"| {name} | {published / 1e9:,.1f} | {memory / 1e9:,.1f} |")
    report.line("")
    queried = ARCHIVES_THAT_HOLD + (PUBLIC_ARCHIVES - ARCHIVES_THAT_HOLD) / 2**FILTER_BITS
    report.line(
        f"{REQUESTS_A_SECOND:,} requests a second, each held by {ARCHIVES_THAT_HOLD} archives (assumed): "
        f"{REQUESTS_A_SECOND * PUBLIC_ARCHIVES:,} questions a second without routing, "
        f"{REQUESTS_A_SECOND * queried:,.0f} with filters of {FILTER_BITS} bits: "
        f"{1 - queried / PUBLIC_ARCHIVES:.0%} saved."
    )
