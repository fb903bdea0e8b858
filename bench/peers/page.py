"""Formats the results: the report, and docs/peers.md, which also gives a reason wherever a peer is ahead.

usage: python -m bench.peers.page > docs/peers.md
"""

import json
from pathlib import Path
from typing import Any

from bench.measure import RESULTS
from bench.peers.row import TABLE_HEADER, Row

WORDS = Path(__file__).with_name("words.md")
"""Text of docs/peers.md with the placeholder `{tables}`."""

_SMALL = (
    "unlost takes 18 MB before it reads a line, and then blocks of lines for two threads. The peer is one short script "
    "that keeps a line at a time; therefore it writes keys out of order, and does not find them again."
)
REASONS: dict[tuple[str, str], str] = {
    ("making a MementoMap", "MB of memory"): _SMALL,
    ("compacting a MementoMap", "MB of memory"): _SMALL,
    ("summary of an index", "MB of memory"): (
        "unlost reads with two threads, each with its own buffers, and counts much more ([stats.md](stats.md))."
    ),
    ("the copy closest to a date", "seconds"): (
        "most of it is starting: an aggregator that asks many archives at once, with limits that are kept on the "
        "disk, is more to load than one module. Asked for more pages it is faster, with a third of the requests."
    ),
    ("recovering a site", "requests"): (
        "telling that a capture is a soft 404 or a parked page takes fetching it: each that is rejected costs a "
        "request, and so does asking again for what broke off. What pages need from the CDN takes a look-up and a "
        "request for each file, or one listing. The peer keeps the wrong page, or none, and leaves out the CDN."
    ),
    ("recovering a site", "seconds"): (
        "unlost asks no faster than 80 % of the limit that is known of the archive, and waits as it is told to; the "
        "peer asks as fast as it can."
    ),
}
"""Reasons why a peer is ahead, by prefix of the work and unit."""


def all_rows(results: dict[str, Any]) -> list[Row]:
    """Return all figures of unlost and the peers."""
    plain = [*results["indexes"], *results["asking"]]
    rows = [Row(**{name: value for name, value in row.items() if name != "leads"}) for row in plain]
    return rows + _recovery_rows(results["recovering"])


def _recovery_rows(outcomes: list[dict[str, Any]]) -> list[Row]:
    """Return the figures of unlost and each tool for the recovery."""
    ours = next((each for each in outcomes if each["peer"] is None), {})
    rows: list[Row] = []
    for theirs in outcomes:
        if theirs["peer"] is None:
            continue
        wrong = (sum(ours["wrong"].values()), sum(theirs["wrong"].values()))
        opened = [
            each["links_working"] / (each["links_working"] + each["links_broken"] or 1) for each in (ours, theirs)
        ]
        for unit, figures, is_more in (
            (f"of {ours['resources']} resources, right", (ours["right"], theirs["right"]), True),
            ("files that are something else", wrong, False),
            ("resources missing", (ours["missing"], theirs["missing"]), False),
            ("% of links on pages that open from a disk", (100 * opened[0], 100 * opened[1]), True),
            ("requests", (ours["requests"], theirs["requests"]), False),
            ("requests refused", (ours["refused"], theirs["refused"]), False),
            ("requests before a refusal's time was over", (ours["too_soon"], theirs["too_soon"]), False),
            ("seconds", (ours["seconds"], theirs["seconds"]), False),
        ):
            rows.append(Row("recovering a site", theirs["tool"], unit, *figures, more_is_better=is_more))
    return rows


def _reason(row: Row) -> str | None:
    return next((why for (work, unit), why in REASONS.items() if row.work.startswith(work) and row.unit == unit), None)


def reasons_missing(results: dict[str, Any]) -> list[str]:
    """Return the rows in which a peer is ahead without a stated reason."""
    return [
        f"{row.work}, {row.unit}, {row.peer}" for row in all_rows(results) if not row.leads and _reason(row) is None
    ]


def format_tables(results: dict[str, Any]) -> str:
    """Return the figures as Markdown tables."""
    rows = all_rows(results)
    lead = sum(row.leads for row in rows)
    versions = ", ".join(f"{peer} {version}" for peer, version in results["versions"].items())
    lines = [
        f"On {results['machine']}: {versions}.",
        "",
        f"unlost is ahead or equal in {lead} of {len(rows)} rows.",
        "",
    ]
    lines += [*TABLE_HEADER, *(row.line() for row in rows), ""]
    notes = sorted({f"- {row.work}: {row.options}" for row in rows if row.options})
    lines += [*notes, "", "### Why not everywhere", ""]
    disadvantages = [row for row in rows if not row.leads]
    lines += [
        f"- **{row.work}, {row.unit}, beside {row.peer}**: {_reason(row) or 'nobody knows yet'}"
        for row in disadvantages
    ] or ["Nowhere behind."]
    if not results["recovering"]:
        return "\n".join(lines)
    lines += ["", "### The lost site, tool by tool", "", *_tool_table(results["recovering"]), ""]
    lines += ["### By what is difficult", "", *_kind_table(results["recovering"]), "", "### In their own words", ""]
    for tool in results["recovering"]:
        lines += [f"- {tool['tool']}, {count} time{'s' if count > 1 else ''}: `{line}`" for line, count in tool["said"]]
    return "\n".join(lines)


def _tool_table(tools: list[dict[str, Any]]) -> list[str]:
    names = ("", "right", "wrong", "missing", "links that open", "requests", "refused", "too soon", "seconds")
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for tool in tools:
        wrong = ", ".join(f"{count} {what}" for what, count in tool["wrong"].items()) or "0"
        links = f"{tool['links_working']} of {tool['links_working'] + tool['links_broken']}"
        right, seconds = f"{tool['right']} of {tool['resources']}", f"{tool['seconds']:.0f}"
        request_counts = (str(tool[name]) for name in ("requests", "refused", "too_soon"))
        lines.append(
            f"| {' | '.join((tool['tool'], right, wrong, str(tool['missing']), links, *request_counts, seconds))} |"
        )
    return [*lines, "", *(f"- {tool['tool']}: `{tool['command']}`" for tool in tools)]


def _kind_table(tools: list[dict[str, Any]]) -> list[str]:
    names = ("right, of the resources of each kind", *(tool["tool"] for tool in tools))
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    lines += [
        f"| {' | '.join((kind, *('{} of {}'.format(*tool['kinds'][kind]) for tool in tools)))} |"
        for kind in tools[0]["kinds"]
    ]
    return lines


def format_report(results: dict[str, Any]) -> str:
    """Return the report of the benchmark."""
    return f"# Beside the tools of others\n\n{format_tables(results)}\n"


def format_page(results: dict[str, Any]) -> str:
    """Return docs/peers.md."""
    return WORDS.read_text().replace("{tables}\n", format_tables(results).replace("\n### ", "\n## ") + "\n")


if __name__ == "__main__":
    print(format_page(json.loads((RESULTS / "peers.json").read_text())), end="")
