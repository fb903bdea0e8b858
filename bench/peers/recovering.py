"""Inside: each tool recovers the made-up site from the made-up machine; prints what came of it as JSON.

usage: python -m bench.peers.recovering FOLDER EACH SECONDS calm|rough [TOOL]…
EACH: resources of each kind. SECONDS: that each answer takes. calm: without limits and bad transfers.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bench.peers.judge import judge, linked
from bench.peers.machine import NAME, Machine, serving
from bench.peers.sealed import begin, environment
from bench.peers.site import Site, lost_site
from bench.peers.tools import TOOLS, Tool


def outcome_of(tool: Tool, site: Site, folder: Path, seconds: float, *, is_calm: bool) -> dict[str, Any]:
    """Return what a tool brought back, what it asked, how long it took."""
    place = folder / tool.name.replace(" ", "-").replace(",", "")
    place.mkdir()
    machine = Machine(list(site.stored), troubles=site.troubles, seconds=seconds, is_limited=not is_calm)
    with serving(machine, (folder / f"{NAME}.pem", folder / f"{NAME}.key")):
        left = tool.run(site, place, environment(folder))
    links = linked(left.folder, left.pages)
    return {
        "tool": tool.name,
        "peer": tool.peer,
        "command": tool.shown,
        **judge(site, left.found).plain(),
        "links_working": links.working,
        "links_broken": links.broken,
        "requests": len(machine.requests),
        "refused": machine.refused,
        "too_soon": machine.too_soon,
        "seconds": left.seconds,
        "said": _gathered([line.replace(f"{folder}/", "")[:160] for line in left.said]),
    }


def _gathered(lines: list[str]) -> list[tuple[str, int]]:
    """Return the most frequent of them, those that differ in numbers alone once, with how often."""
    counts = Counter(_without_numbers(line) for line in lines)
    return [
        (next(line for line in lines if _without_numbers(line) == kind), count) for kind, count in counts.most_common(6)
    ]


def _without_numbers(line: str) -> str:
    return re.sub(r"\d+", "0", line)


def main() -> None:
    """Run the tools one after the other."""
    folder, each, seconds, weather, *names = sys.argv[1:]
    begin()
    site = lost_site(int(each), is_calm=weather == "calm")
    found = []
    for tool in TOOLS:
        if not names or tool.name in names:
            print(f"{tool.shown} …", file=sys.stderr)
            found.append(outcome_of(tool, site, Path(folder), float(seconds), is_calm=weather == "calm"))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
