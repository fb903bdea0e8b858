"""Runs the tools that recover sites as their documentation says, and reads the recovered bodies by URL."""

import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers.environments import program
from bench.peers.lost_site import HOME, HOST, Site

UNLOST = Path(sys.executable).with_name("unlost")
CONNECTIONS = 6
"""Concurrent connections: the default of unlost, and the workers of peers that support several."""
WAYBACKPACK = ("--raw", "--follow-redirects", "--ignore-errors")
"""Options of waybackpack: original bytes, follow redirects, continue after failed transfers."""
TIMEOUT_SECONDS = 900.0
"""Seconds after which a tool is killed; no tool needs a tenth of it."""


@dataclass
class ToolResult:
    """Output of a tool.

    Attributes:
        bodies: Recovered bodies by URL.
        folder: Folder of the recovered site.
        pages: HTML files in `folder`.
        messages: Error messages of the tool.
        seconds: Duration.
    """

    bodies: dict[str, bytes] = field(default_factory=dict)
    folder: Path = Path()
    pages: list[Path] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Tool:
    """A tool with its options. display_command: the command as shown in the report."""

    name: str
    peer: str | None
    display_command: str
    run: Callable[[Site, Path, dict[str, str]], ToolResult]


def _run_command(command: list[str | Path], folder: Path, env: dict[str, str]) -> tuple[str, float]:
    """Run a command; return its output and its duration in seconds."""
    start = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    return done.stdout.decode(errors="replace"), time.perf_counter() - start


def _html_files(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.is_file() and _is_page(file)]


def _is_page(file: Path) -> bool:
    return file.read_bytes()[:9].lower() == b"<!doctype"


def run_unlost(_: Site, folder: Path, env: dict[str, str]) -> ToolResult:
    """Recover and export the site, and read the recovered bodies."""
    from unlost import Recovery  # noqa: PLC0415  only in the sandbox

    recovery, site_folder = folder / "recovery", folder / "site"
    command: list[str | Path] = [UNLOST, "recover", HOME, "-o", recovery, "--only", "web.archive.org", "--json"]
    own = {**env, "UNLOST_HOME": str(folder / "home"), "UNLOST_CONTACT": "bench@example.com"}
    output, seconds = _run_command(command, folder, own)
    exporting = _run_command([UNLOST, "export", recovery, "-o", site_folder], folder, own)[1]
    recovered = Recovery(recovery)
    result = ToolResult(
        {each.url: recovered.read(each.url) for each in recovered.resources()}, site_folder, _html_files(site_folder)
    )
    result.messages = _failure_messages(output)
    result.seconds = seconds + exporting
    return result


def _failure_messages(output: str) -> list[str]:
    """Return the messages of failures from JSON events."""
    events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [f"{event['event']}: {event['message']}" for event in events if event.get("event") == "failed"]


def pywaybackup_runner(*options: str) -> Callable[[Site, Path, dict[str, str]], ToolResult]:
    """Return a runner that downloads the last version of each URL."""

    def run(_: Site, folder: Path, env: dict[str, str]) -> ToolResult:
        output_folder = folder / "site"
        command: list[str | Path] = [
            program("pywaybackup", "waybackup"),
            "--url",
            f"http://{HOST}",
            "--last",
            "--output",
            output_folder,
            "--keep",
        ]
        output, seconds = _run_command([*command, *options], folder, env)
        result = ToolResult(
            {}, output_folder, _html_files(output_folder / HOST) if output_folder.is_dir() else [], seconds=seconds
        )
        for table in folder.rglob("*.csv"):
            with table.open(newline="") as rows:
                for row in csv.DictReader(rows):
                    if row["file"] and Path(row["file"]).is_file():
                        result.bodies[row["url_origin"]] = Path(row["file"]).read_bytes()
        result.messages = _error_lines(
            output, ("UNKNOWN", "FAILED", "EXCEPTION", "rror", "renewing", "requesting again")
        )
        return result

    return run


def run_waybackpack(site: Site, folder: Path, env: dict[str, str]) -> ToolResult:
    """Run it for each URL, since it downloads all captures of one URL, and use the newest file."""
    result = ToolResult(folder=folder)
    for number, uri in enumerate(site.originals):
        output_folder = folder / str(number)
        output, seconds = _run_command([program("waybackpack"), uri, "--dir", output_folder, *WAYBACKPACK], folder, env)
        result.seconds += seconds
        result.messages += _error_lines(output, ("ERROR", "Maximum retries", "Exception:"))
        files = sorted(file for file in output_folder.rglob("*") if file.is_file())
        if files:
            result.bodies[uri] = files[-1].read_bytes()
            result.pages += [files[-1]] if _is_page(files[-1]) else []
    return result


def _error_lines(output: str, words: Iterable[str]) -> list[str]:
    lines = (line.strip() for line in output.splitlines())
    return [line for line in lines if any(word in line for word in words) and not line.startswith("Exception log")]


TOOLS = (
    Tool("unlost", None, "unlost recover, then unlost export", run_unlost),
    Tool("pywaybackup", "pywaybackup", "waybackup --last", pywaybackup_runner()),
    Tool(
        "pywaybackup, at its best",
        "pywaybackup",
        f"waybackup --last --statuscode 200 --retry 3 --wait 5 --workers {CONNECTIONS}",
        pywaybackup_runner("--statuscode", "200", "--retry", "3", "--wait", "5", "--workers", str(CONNECTIONS)),
    ),
    Tool("waybackpack", "waybackpack", f"waybackpack URL {' '.join(WAYBACKPACK)}, for each address", run_waybackpack),
)
