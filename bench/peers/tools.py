"""The tools that recover sites, each run as its documentation has it; what each leaves behind, by address."""

import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers.environments import program
from bench.peers.site import HOME, HOST, Site

UNLOST = Path(sys.executable).with_name("unlost")
AT_ONCE = 6
"""Connections at once: unlost's default, and what peers that have several workers are given."""
WAYBACKPACK = ("--raw", "--follow-redirects", "--ignore-errors")
"""Its options: bytes as they were, redirects followed, and no end at the first transfer that breaks off."""
PATIENCE = 900.0
"""Seconds after which a tool is ended: nobody needs a tenth of it."""


@dataclass
class Left:
    """What a tool left.

    found: bodies by address. pages: files of HTML in `folder`, to be opened. said: its own words on failures.
    """

    found: dict[str, bytes] = field(default_factory=dict)
    folder: Path = Path()
    pages: list[Path] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Tool:
    """A tool with its options. shown: the command as the report has it."""

    name: str
    peer: str | None
    shown: str
    run: Callable[[Site, Path, dict[str, str]], Left]


def _did(command: list[str | Path], folder: Path, env: dict[str, str]) -> tuple[str, float]:
    """Run a command; return what it said and the seconds that it took."""
    start = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=PATIENCE
    )
    return done.stdout.decode(errors="replace"), time.perf_counter() - start


def _html(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.is_file() and _is_page(file)]


def _is_page(file: Path) -> bool:
    return file.read_bytes()[:9].lower() == b"<!doctype"


def unlost(_: Site, folder: Path, env: dict[str, str]) -> Left:
    """Recover and export, and read what is kept."""
    from unlost import Recovery  # noqa: PLC0415  in the process inside alone

    kept, made = folder / "kept", folder / "site"
    command: list[str | Path] = [UNLOST, "recover", HOME, "-o", kept, "--only", "web.archive.org", "--json"]
    own = {**env, "UNLOST_HOME": str(folder / "home"), "UNLOST_CONTACT": "bench@example.com"}
    said, seconds = _did(command, folder, own)
    exporting = _did([UNLOST, "export", kept, "-o", made], folder, own)[1]
    recovered = Recovery(kept)
    left = Left({each.url: recovered.read(each.url) for each in recovered.resources()}, made, _html(made))
    left.said = _told(said)
    left.seconds = seconds + exporting
    return left


def _told(said: str) -> list[str]:
    """Return what went wrong, from what happened as JSON."""
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return [f"{event['event']}: {event['message']}" for event in events if event.get("event") == "failed"]


def pywaybackup(*options: str) -> Callable[[Site, Path, dict[str, str]], Left]:
    """Return how it is run: the last version of everything."""

    def run(_: Site, folder: Path, env: dict[str, str]) -> Left:
        made = folder / "site"
        command: list[str | Path] = [
            program("pywaybackup", "waybackup"),
            "--url",
            f"http://{HOST}",
            "--last",
            "--output",
            made,
            "--keep",
        ]
        said, seconds = _did([*command, *options], folder, env)
        left = Left({}, made, _html(made / HOST) if made.is_dir() else [], seconds=seconds)
        for table in folder.rglob("*.csv"):
            with table.open(newline="") as rows:
                for row in csv.DictReader(rows):
                    if row["file"] and Path(row["file"]).is_file():
                        left.found[row["url_origin"]] = Path(row["file"]).read_bytes()
        left.said = _complaints(said, ("UNKNOWN", "FAILED", "EXCEPTION", "rror", "renewing", "requesting again"))
        return left

    return run


def waybackpack(site: Site, folder: Path, env: dict[str, str]) -> Left:
    """Run it for each address, and take the newest file of each: it fetches all captures of one address, not sites."""
    left = Left(folder=folder)
    for number, uri in enumerate(site.originals):
        made = folder / str(number)
        said, seconds = _did([program("waybackpack"), uri, "--dir", made, *WAYBACKPACK], folder, env)
        left.seconds += seconds
        left.said += _complaints(said, ("ERROR", "Maximum retries", "Exception:"))
        files = sorted(file for file in made.rglob("*") if file.is_file())
        if files:
            left.found[uri] = files[-1].read_bytes()
            left.pages += [files[-1]] if _is_page(files[-1]) else []
    return left


def _complaints(said: str, words: Iterable[str]) -> list[str]:
    lines = (line.strip() for line in said.splitlines())
    return [line for line in lines if any(word in line for word in words) and not line.startswith("Exception log")]


TOOLS = (
    Tool("unlost", None, "unlost recover, then unlost export", unlost),
    Tool("pywaybackup", "pywaybackup", "waybackup --last", pywaybackup()),
    Tool(
        "pywaybackup, at its best",
        "pywaybackup",
        f"waybackup --last --statuscode 200 --retry 3 --wait 5 --workers {AT_ONCE}",
        pywaybackup("--statuscode", "200", "--retry", "3", "--wait", "5", "--workers", str(AT_ONCE)),
    ),
    Tool("waybackpack", "waybackpack", f"waybackpack URL {' '.join(WAYBACKPACK)}, for each address", waybackpack),
)
