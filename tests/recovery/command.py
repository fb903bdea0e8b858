"""`unlost recover` as a process with its own home directory."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.run import UNLOST
from tests.recovery.expected import Run


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a process. events: the objects of `--json` in order; stderr: its standard error."""

    code: int
    events: list[dict[str, Any]]
    stderr: str

    def events_of(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of a kind."""
        return [event for event in self.events if event["event"] == kind]

    @property
    def requests(self) -> int:
        """Number of captures that it reports as requested."""
        return sum(int(each["replay"]) for each in self.events_of("done")[-1]["requests"].values())


@dataclass(frozen=True, slots=True)
class Command:
    """A recovery that can be run repeatedly.

    Attributes:
        registry: The registry of archives.
        folder: The folder of the recovery; its parent belongs to the test.
        home: The home directory, in which rate limits are stored.
        is_linked_only: Whether to follow only links on the site's own hosts and drop rejected pages, as the reference
            model expects. The defaults are tested elsewhere.
    """

    registry: Path
    folder: Path
    home: Path
    is_linked_only: bool = True

    @property
    def summary(self) -> Path:
        """The summary file, with a line for each resource."""
        return self.folder.parent / f"{self.folder.name}.tsv"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the process."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("UNLOST_", "XDG_"))}
        return plain | {"UNLOST_HOME": str(self.home), "UNLOST_CONTACT": "me@example.org", "PYTHONUTF8": "1"}

    def arguments(self, start: str, *more: str) -> list[str]:
        """Return the command-line arguments."""
        paths = ["--archives", str(self.registry), "-o", str(self.folder), "--summary", str(self.summary)]
        linked = ["--no-page-requisites", "--drop-rejected", *([] if "--policy" in more else ["--linked-only"])]
        return ["recover", start, *paths, "--json", *(linked if self.is_linked_only else []), *more]

    def run(self, start: str, *more: str, before: tuple[str, ...] = (), timeout: float = 120) -> CommandResult:
        """Run the process to its end. before: a command that runs it, such as `prlimit`."""
        done = subprocess.run(
            [*before, UNLOST, *self.arguments(start, *more)],
            capture_output=True,
            check=False,
            env=self.environment,
            timeout=timeout,
            cwd=self.folder.parent,
        )
        return parse_result(done.returncode, done.stdout, done.stderr)

    def start(self, start: str, *more: str) -> subprocess.Popen[bytes]:
        """Start the process."""
        return subprocess.Popen(
            [UNLOST, *self.arguments(start, *more)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
            cwd=self.folder.parent,
        )


def parse_result(code: int, out: bytes, stderr: bytes) -> CommandResult:
    """Return the result of a process. An event truncated by a signal is left out."""
    lines = out.decode().splitlines(keepends=True)
    return CommandResult(code, [json.loads(line) for line in lines if line.endswith("\n")], stderr.decode())


def options(run: Run, urls: Path | None = None) -> list[str]:
    """Return the options of a run as command-line arguments."""
    named = {
        "--policy": run.policy if run.policy != "knowledgeable" else None,
        "--at": run.at,
        "--from": run.first if run.first != "0" else None,
        "--to": run.last if run.last != "9" else None,
        "--include": run.include,
        "--exclude": run.exclude,
        "--depth": None if run.depth is None else str(run.depth),
        "--only": ",".join(run.only) if len(run.only) < 3 else None,
        "--urls": str(urls) if urls else None,
        "--requisite-lookups": "3" if run.requisites else None,
    }
    flags = {
        "--page": run.page,
        "--ignore-case": run.ignore_case,
        "--page-requisites": run.requisites,
        "--subdomains": run.subdomains,
        "--most-recent": run.most_recent,
    }
    texts = [text for name, value in named.items() if value is not None for text in (name, value)]
    return [*texts, *(name for name, is_on in flags.items() if is_on)]
