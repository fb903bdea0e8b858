"""Commands on a disk that runs full and on a read-only disk.

`python -m tests.cli.full_disk INPUTS DISK NAME [SITE]` tries a command of `tests.cli.writing_commands` on a small disk
that is mounted for it.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.cli.run import unlost
from tests.cli.writing_commands import LOCAL_COMMANDS, NETWORK_COMMANDS, WritingCommand
from tests.small_disk import SUCCESS_OUTPUT

PAGE = 4096  # bytes that a tmpfs allocates at a time
FULL, READ_ONLY = "No space left on device", "Read-only file system"


def leave_room(ballast: Path, pages: int) -> None:
    """Fill a disk with a file, except for some pages."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(PAGE))
    os.truncate(ballast, max(0, ballast.stat().st_size - pages * PAGE))


class DiskTrial:
    """Runs one command repeatedly. Its home is on another disk with space."""

    def __init__(self, command: WritingCommand, read: Path, disk: Path, site: str) -> None:
        self.command, self.read, self.disk, self.site = command, read, disk, site
        self.home = read / f"home-{disk.parent.name}"
        self.home.mkdir()

    def run(self) -> tuple[int, str]:
        """Run it; return exit code and stderr."""
        words = self.command.arguments(self.read, self.disk, self.site)
        done = unlost(*words, env={"UNLOST_HOME": str(self.home), "UNLOST_CONTACT": "me@example.org"})
        return done.returncode, done.stderr.decode()

    def files(self) -> dict[str, bytes]:
        """Return all files on the disk."""
        found = (file for file in sorted(self.disk.rglob("*")) if file.is_file() and file.name != "ballast")
        return {str(file.relative_to(self.disk)): file.read_bytes() for file in found}

    def clear(self) -> None:
        """Remove everything from the disk."""
        for path in sorted(self.disk.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()

    def assert_fails(self, reason: str, whole: Mapping[str, bytes]) -> None:
        """Run it, and assert that it fails with a helpful message and leaves no partial output.

        Args:
            whole: What it writes with enough space.
        """
        exit_code, stderr = self.run()
        assert exit_code == 3, (exit_code, stderr)
        assert reason in stderr, stderr
        assert str(self.disk) in stderr, stderr
        assert "Traceback" not in stderr, stderr
        assert ("make room" if reason == FULL else "another place") in stderr, stderr
        if not self.command.resumes:
            assert not (self.disk / self.command.output).exists()
            assert self.files().items() <= whole.items(), self.files().keys()


def run_trial(trial: DiskTrial) -> None:
    """Run a command with space, on a full disk, on a disk that runs full, and on a read-only disk."""
    exit_code, stderr = trial.run()
    assert exit_code == 0, stderr
    output = trial.files()
    assert (trial.disk / trial.command.output).exists()
    pages = sum(-(-len(body) // PAGE) for body in output.values())
    trial.clear()
    for room in (0, pages // 2):
        leave_room(trial.disk / "ballast", room)
        trial.assert_fails(FULL, output)
    (trial.disk / "ballast").unlink()
    exit_code, stderr = trial.run()
    assert exit_code == 0, stderr
    assert trial.command.resumes or trial.files() == output
    trial.clear()
    subprocess.run(["mount", "-o", "remount,ro", trial.disk], check=True)
    trial.assert_fails(READ_ONLY, {})
    assert trial.files() == {}
    subprocess.run(["mount", "-o", "remount,rw", trial.disk], check=True)
    assert trial.run()[0] == 0


if __name__ == "__main__":
    inputs, disk_folder, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    run_trial(DiskTrial((LOCAL_COMMANDS | NETWORK_COMMANDS)[name], inputs, disk_folder, " ".join(sys.argv[4:])))
    print(SUCCESS_OUTPUT, end="")
