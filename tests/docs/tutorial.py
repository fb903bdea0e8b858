"""Runs tutorials: all console blocks in one folder, from top to bottom.

Output is normalised as documented in docs/tutorials/README.md: servers use free ports, and `…` matches any characters
in a line, or any number of lines if it is alone.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.external.process import free_port, is_open
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "tutorials"
PORTS = ("1208", "8000")  # ports of servers in tutorials
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SECONDS = 120  # for one command; each takes less than one
_TRIES = 3


@dataclass(frozen=True)
class Step:
    """A command and its output. A command that ends in ` &` is a server, which runs until the end."""

    command: str
    shown: str

    @property
    def is_server(self) -> bool:
        """Whether it runs in the background."""
        return self.command.endswith(" &")


def steps_of(text: str) -> list[Step]:
    r"""Return all steps of a page, in order; a line that begins with `> ` continues the command.

    >>> steps_of("```console\n$ cat <<E\n> a\n> E\na\n$ true\n```\n")
    [Step(command='cat <<E\na\nE', shown='a\n'), Step(command='true', shown='')]
    """
    steps = []
    for block in _CONSOLE.findall(text):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *rest = example.splitlines()
            more = 0
            while more < len(rest) and rest[more].startswith("> "):
                more += 1
            command = "\n".join([first, *(line.removeprefix("> ") for line in rest[:more])])
            steps.append(Step(command, "".join(f"{line}\n" for line in rest[more:])))
    return steps


def output_matches(shown: str, printed: str) -> bool:
    r"""Return whether output equals the shown one; `…` matches anything.

    >>> output_matches("a\n…\nd … f\n", "a\nb\nc\nd e f\n")
    True
    >>> output_matches("a\n", "a\nb\n"), output_matches("a … b\n", "a \n b\n")
    (False, False)
    """
    pattern = "".join(
        "(?:.*\n)*?" if line == "…\n" else ".*?".join(re.escape(part) for part in line.split("…"))
        for line in shown.splitlines(keepends=True)
    )
    return re.fullmatch(pattern, printed) is not None


@contextmanager
def shell(folder: Path) -> Iterator["Shell"]:
    """Yield a shell in a folder with the examples of the documentation; stop its servers at the end."""
    shutil.copytree(ROOT / "docs" / "examples", folder, dirs_exist_ok=True)
    opened = Shell(folder)
    try:
        yield opened
    finally:
        opened.close()


class Shell:
    """Runs steps one after the other, each in its own process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = {port: str(free_port()) for port in PORTS}
        self._servers: list[subprocess.Popen[bytes]] = []
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("UNLOST_", "XDG_"))}
        self._environment = inherited | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "UNLOST_HOME": str(folder / ".home"),
            "PYTHONUTF8": "1",
            "PYTHONUNBUFFERED": "1",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
        }

    def run(self, step: Step) -> str:
        """Return the output of a step with the tutorial's ports; empty for a server, once it listens."""
        if step.is_server:
            self._serve(step.command.removesuffix(" &"))
            return ""
        done = subprocess.run(
            ["bash", "-c", self._replaced(step.command, self._ports)],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=_SECONDS,
        )
        return self._replaced(done.stdout.decode(), {free: port for port, free in self._ports.items()})

    def close(self) -> None:
        """Stop the servers."""
        for server in self._servers:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()

    def _serve(self, command: str) -> None:
        """Start a server; if its port was taken in the meantime, try another one."""
        ports = [port for port in PORTS if port in command]
        for _ in range(_TRIES):
            server = self._started(self._replaced(command, self._ports))
            if _listens(server, [int(self._ports[port]) for port in ports]):
                self._servers.append(server)
                return
            self._ports |= {port: str(free_port()) for port in ports}
        raise RuntimeError(f"{command}: {self._log.read_text()}")

    @property
    def _log(self) -> Path:
        return self._folder / f".server-{len(self._servers)}.log"

    def _started(self, command: str) -> subprocess.Popen[bytes]:
        with self._log.open("wb") as output:
            return subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self._folder,
                env=self._environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @staticmethod
    def _replaced(text: str, ports: dict[str, str]) -> str:
        return re.sub(r"\b\d{4,5}\b", lambda number: ports.get(number[0], number[0]), text)


def _listens(server: subprocess.Popen[bytes], ports: list[int]) -> bool:
    """Wait until a server listens or has ended; return which."""
    wait_until(lambda: server.poll() is not None or all(is_open(port) for port in ports))
    return server.poll() is None
