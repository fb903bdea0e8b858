"""Does all the work with all the tools, and writes `bench/results/peers.md` and `peers.json`.

usage: python -m bench.peers [--tiny] [--to FOLDER] [PART]…
--tiny: so little of everything that it takes a minute, to see that it works. --to: where the results go. PART: of
`indexes`, `asking` and `recovering`, what is measured; of the others, what was measured last is kept.
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
from bench.peers.page import reasons_missing, report
from bench.peers.sealed import can_be_sealed, run_sealed


class Size(NamedTuple):
    """How much is done.

    lines: of an index. questions: to maps. captures: that are listed. pages: whose closest copies are asked for.
    each: resources of each kind of the lost site. milliseconds: that an answer of the archive takes.
    weather: `rough`, or `calm` without limits and bad transfers.
    """

    lines: int = 1_000_000
    questions: int = 3_000
    captures: int = 7_000
    pages: int = 20
    each: int = 6
    milliseconds: int = 50
    weather: str = "rough"


TINY = Size(20_000, 50, 100, 2, 1, 1, "calm")


PARTS = ("indexes", "asking", "recovering")


def measured(size: Size, parts: Collection[str]) -> dict[str, Any]:
    """Return the results of some parts."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="unlost-peers-") as name:
        folder = Path(name)
        if "indexes" in parts:
            found["indexes"] = [row.plain() for row in indexes.rows(folder, size.lines, size.questions)]
        if "asking" in parts:
            arguments = [name, str(size.captures), str(size.pages)]
            found["asking"] = run_sealed("bench.peers.asking", arguments, folder)
        if "recovering" in parts:
            arguments = [name, str(size.each), str(size.milliseconds / 1e3), size.weather]
            found["recovering"] = run_sealed("bench.peers.recovering", arguments, folder)
    return {
        "machine": f"{platform.machine()}, Python {platform.python_version()}, {_cores()} cores",
        "size": size._asdict(),
        "versions": {peer: environments.version(peer) for peer in environments.PEERS},
        **found,
    }


def _cores() -> int:
    return int(subprocess.run(["nproc"], capture_output=True, check=True).stdout)


def main() -> None:
    """Measure, keep, judge."""
    reader = argparse.ArgumentParser(prog="python -m bench.peers")
    reader.add_argument("--tiny", action="store_true")
    reader.add_argument("--to", type=Path, default=RESULTS)
    reader.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    told = reader.parse_args()
    if absent := environments.missing():
        sys.exit(f"bench peers: {', '.join(absent)} not installed: `make bench-peers` installs them")
    if not can_be_sealed():
        sys.exit("bench peers: namespaces cannot be had here, and nothing is run that could reach the true archive")
    kept = told.to / "peers.json"
    found = measured(TINY if told.tiny else Size(), told.parts or PARTS)
    before = json.loads(kept.read_text()) if kept.exists() else {}
    results = {part: [] for part in PARTS} | before | found
    kept.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    text = report(results)
    (told.to / "peers.md").write_text(text)
    print(text)
    if without := reasons_missing(results):
        sys.exit(f"bench peers: not ahead, and docs/peers.md does not say why: {'; '.join(without)}")


if __name__ == "__main__":
    main()
