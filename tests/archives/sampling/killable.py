"""Runs commands in forks of one prepared process, so that they start at once and can be killed often.

Run as a module it reads one command per line, as JSON, and for each writes the process id, then the exit status.
"""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]


class Commands:
    """Starts commands one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def start(self, home: Path, arguments: list[str]) -> int:
        """Start `unlost` with a given home; return its process id."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps([str(home), arguments]) + "\n")
        self._process.stdin.flush()
        return self._number()

    def ended(self) -> int:
        """Wait for its end; return its exit code, or the signal that ended it with a minus."""
        return self._number()

    def _number(self) -> int:
        assert self._process.stdout
        return int(self._process.stdout.readline())


SAMPLING = ("unlost.archives.memento", "unlost.cli.map_sample")


@contextmanager
def commands(*modules: str) -> Iterator[Commands]:
    """Prepare to start commands. modules: imported in advance; by default those of sampling."""
    command = [sys.executable, "-m", "tests.archives.sampling.killable", *(modules or SAMPLING)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Commands(process)
        assert process.stdin
        process.stdin.close()


def main() -> None:
    """Start the commands of standard input."""
    from unlost.cli import run

    for module in sys.argv[1:]:
        importlib.import_module(module)
    for line in sys.stdin:
        home, arguments = json.loads(line)
        process = os.fork()
        if process == 0:
            os.environ |= {"UNLOST_HOME": home, "UNLOST_CONTACT": "me@example.org"}
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nowhere, stream)
            os._exit(run(arguments))
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
