"""Recovers the lost site from the fake archive with each tool; prints the results as JSON. It runs in the sandbox.

usage: python -m bench.peers.site_recovery FOLDER EACH SECONDS calm|rough [TOOL]…
EACH: resources of each kind. SECONDS: duration of each response. calm: without rate limits and transfer faults.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bench.peers.fake_wayback import NAME, RateLimitedWayback, serve_archive
from bench.peers.lost_site import Site, make_lost_site
from bench.peers.sandbox import set_up_network, tool_environment
from bench.peers.scoring import check_links, score_recovery
from bench.peers.tools import TOOLS, Tool


def run_tool(tool: Tool, site: Site, folder: Path, seconds: float, *, is_calm: bool) -> dict[str, Any]:
    """Run a tool; return the score of its recovery, its requests and its duration."""
    work_folder = folder / tool.name.replace(" ", "-").replace(",", "")
    work_folder.mkdir()
    archive = RateLimitedWayback(
        list(site.captures), faults=site.faults, response_seconds=seconds, is_limited=not is_calm
    )
    with serve_archive(archive, (folder / f"{NAME}.pem", folder / f"{NAME}.key")):
        result = tool.run(site, work_folder, tool_environment(folder))
    links = check_links(result.folder, result.pages)
    return {
        "tool": tool.name,
        "peer": tool.peer,
        "command": tool.display_command,
        **score_recovery(site, result.bodies).to_json(),
        "links_working": links.working,
        "links_broken": links.broken,
        "requests": len(archive.requests),
        "refused": archive.refused,
        "too_soon": archive.too_soon,
        "seconds": result.seconds,
        "said": _most_frequent([line.replace(f"{folder}/", "")[:160] for line in result.messages]),
    }


def _most_frequent(lines: list[str]) -> list[tuple[str, int]]:
    """Return the most frequent lines with their counts; lines that differ only in numbers are counted together."""
    counts = Counter(_mask_numbers(line) for line in lines)
    return [
        (next(line for line in lines if _mask_numbers(line) == kind), count) for kind, count in counts.most_common(6)
    ]


def _mask_numbers(line: str) -> str:
    return re.sub(r"\d+", "0", line)


def main() -> None:
    """Run the tools one after another."""
    folder, each, seconds, weather, *names = sys.argv[1:]
    set_up_network()
    site = make_lost_site(int(each), is_calm=weather == "calm")
    found = []
    for tool in TOOLS:
        if not names or tool.name in names:
            print(f"{tool.display_command} …", file=sys.stderr)
            found.append(run_tool(tool, site, Path(folder), float(seconds), is_calm=weather == "calm"))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
