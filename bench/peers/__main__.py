"""Runs all tools and writes `bench/results/peers.md` and `peers.json`.

usage: python -m bench.peers [--tiny] [--to FOLDER] [PART]…
--tiny: a small smoke run that takes a minute. --to: output folder. PART: `indexes`, `asking` or `recovering`, the parts
to measure; the other parts retain their last results.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from bench.measure import RESULTS
from bench.peers import environments, indexes
from bench.peers.page import format_report, reasons_missing
from bench.peers.sandbox import is_available, run_isolated


class BenchmarkSize(NamedTuple):
    """Size of the inputs. The field names are keys of `peers.json`.

    Attributes:
        lines: Lines of the index.
        questions: Queries to maps.
        captures: Listed captures.
        pages: Pages whose closest memento is requested.
        each: Resources of each kind of the lost site.
        milliseconds: Response time of the archive.
        weather: `rough`, or `calm` without rate limits and transfer faults.
    """

    lines: int = 1_000_000
    questions: int = 3_000
    captures: int = 7_000
    pages: int = 20
    each: int = 6
    milliseconds: int = 50
    weather: str = "rough"


TINY = BenchmarkSize(20_000, 50, 100, 2, 1, 1, "calm")


PARTS = ("indexes", "asking", "recovering")


def measure(size: BenchmarkSize, parts: Collection[str]) -> dict[str, Any]:
    """Measure the parts and return their results."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="unlost-peers-") as name:
        folder = Path(name)
        if "indexes" in parts:
            found["indexes"] = [row.to_json() for row in indexes.measure_indexes(folder, size.lines, size.questions)]
        if "asking" in parts:
            arguments = [name, str(size.captures), str(size.pages)]
            found["asking"] = run_isolated("bench.peers.archive_queries", arguments, folder)
        if "recovering" in parts:
            arguments = [name, str(size.each), str(size.milliseconds / 1e3), size.weather]
            found["recovering"] = run_isolated("bench.peers.site_recovery", arguments, folder)
    return {
        "machine": f"{platform.machine()}, Python {platform.python_version()}, {_cores()} cores",
        "size": size._asdict(),
        "versions": {peer: environments.pinned_version(peer) for peer in environments.PEERS},
        **found,
    }


def _cores() -> int:
    return int(subprocess.run(["nproc"], capture_output=True, check=True).stdout)


def main() -> None:
    """Measure, store the results, and check that each disadvantage is explained."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--to", type=Path, default=RESULTS)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    options = parser.parse_args()
    if absent := environments.missing_peers():
        sys.exit(f"bench peers: {', '.join(absent)} not installed: `make bench-peers` installs them")
    if not is_available():
        sys.exit("bench peers: namespaces cannot be had here, and nothing is run that could reach the true archive")
    results_file = options.to / "peers.json"
    found = measure(TINY if options.tiny else BenchmarkSize(), options.parts or PARTS)
    before = json.loads(results_file.read_text()) if results_file.exists() else {}
    results = {part: [] for part in PARTS} | before | found
    results_file.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    text = format_report(results)
    (options.to / "peers.md").write_text(text)
    print(text)
    if unexplained := reasons_missing(results):
        sys.exit(f"bench peers: not ahead, and docs/peers.md does not say why: {'; '.join(unexplained)}")


if __name__ == "__main__":
    main()
