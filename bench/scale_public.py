"""What all public archives would need: a simulation, from what keys take here and assumptions that are named.

Memory is that of a real aggregator, `unlost serve` with as many archives, at two sizes: their difference is what a page
of a filter and a line of a map take in it.
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
CAPTURES_A_PAGE = 2.77  # of the second paper's archive
COMPACTED = 0.06  # lines of a map for each key, at weights of 1: the second paper's
REQUESTS_A_SECOND = 1000
ARCHIVES_THAT_HOLD = 1.5  # of those that are asked for a page, on average: an assumption
BUDGET_LINES = 1_000_000  # of each archive's map, where it is made to a budget: an assumption
FILTER_BITS = 8

SIZES = (1_000_000, 4_000_000)  # lines of the index of one archive, of which all have a copy


@dataclass(frozen=True, slots=True)
class Costs:
    """What is measured: pages and lines of one archive, bytes of its files, resident memory of the aggregator."""

    pages: int
    lines: int
    filter_bytes: int
    map_bytes: int
    with_maps: int
    with_both: int


def measured(folder: Path, size: int) -> Costs:
    """Measure an aggregator of archives of one size, with maps alone and with filters."""
    index, everything, rows, pages = (folder / name for name in ("index.cdxj", "all.map", "a.map", "a.filter"))
    write_synthetic_index(SynthIndexOptions(size), index, Problems())
    build_map([index], everything)
    build_map([index], rows, MapOptions(host_weight=1, path_weight=1))
    build_filter([index], pages, FilterOptions(bits=FILTER_BITS))
    maps_only, both = (resident(folder, has_filters=has_filters) for has_filters in (False, True))
    return Costs(count_rows(everything), count_rows(rows), pages.stat().st_size, rows.stat().st_size, maps_only, both)


def resident(folder: Path, *, has_filters: bool) -> int:
    """Return the resident memory of a server that has read what is known of all archives, in bytes."""
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
    """Measure an aggregator at two sizes, and say what all public archives would need."""
    small, large = (measured(folder, size) for size in SIZES)
    a_page = large.filter_bytes / large.pages
    a_line = large.map_bytes / large.lines
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
        f"So a line of a map takes {line_memory:.0f} bytes of memory ({a_line:.0f} of the file), a page of a filter of "
        f"{FILTER_BITS} bits {page_memory:.2f} ({a_page:.2f}), and everything else {base / 1e6:,.0f} MB."
    )
    report.line("")
    pages = ALL_CAPTURES / CAPTURES_A_PAGE
    lines = pages * COMPACTED
    report.line(
        f"**Simulated from that**: {PUBLIC_ARCHIVES} archives with {ALL_CAPTURES:.0e} captures, {CAPTURES_A_PAGE} of "
        f"each page (as in the second paper's archive): {pages:.1e} pages; maps of {COMPACTED:.0%} of that (the same), "
        f"or of {BUDGET_LINES:,} lines each."
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
        published = count * a_line + key * a_page
        memory = base + count * line_memory + key * page_memory
        report.line(f"| {name} | {published / 1e9:,.1f} | {memory / 1e9:,.1f} |")
    report.line("")
    asked = ARCHIVES_THAT_HOLD + (PUBLIC_ARCHIVES - ARCHIVES_THAT_HOLD) / 2**FILTER_BITS
    report.line(
        f"{REQUESTS_A_SECOND:,} requests a second, each held by {ARCHIVES_THAT_HOLD} archives (assumed): "
        f"{REQUESTS_A_SECOND * PUBLIC_ARCHIVES:,} questions a second without routing, "
        f"{REQUESTS_A_SECOND * asked:,.0f} with filters of {FILTER_BITS} bits: {1 - asked / PUBLIC_ARCHIVES:.0%} saved."
    )
