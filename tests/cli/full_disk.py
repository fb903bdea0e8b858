"""A disk that runs full, and one that may only be read, under commands.

`python -m tests.cli.full_disk READ DISK NAME [MORE]` tries one of `tests.cli.chores` on a small disk that is mounted
for it alone.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.cli.chores import CHORES, NETWORKED, Chore
from tests.cli.run import unlost
from tests.small_disk import SUCCESS_OUTPUT

PAGE = 4096  # bytes that such a disk gives at a time
FULL, READ_ONLY = "No space left on device", "Read-only file system"


def leave_room(ballast: Path, pages: int) -> None:
    """Fill a disk with a file, but for so many pages."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(PAGE))
    os.truncate(ballast, max(0, ballast.stat().st_size - pages * PAGE))


class Trial:
    """One command, again and again. elsewhere: a folder on a disk with room, for what is not about the disk."""

    def __init__(self, chore: Chore, read: Path, disk: Path, more: str) -> None:
        self.chore, self.read, self.disk, self.more = chore, read, disk, more
        self.elsewhere = read / f"home-{disk.parent.name}"
        self.elsewhere.mkdir()

    def run(self) -> tuple[int, str]:
        """Run it; return how it ended, and what it said."""
        words = self.chore.arguments(self.read, self.disk, self.more)
        done = unlost(*words, env={"UNLOST_HOME": str(self.elsewhere), "UNLOST_CONTACT": "me@example.org"})
        return done.returncode, done.stderr.decode()

    def files(self) -> dict[str, bytes]:
        """Return everything on the disk."""
        found = (file for file in sorted(self.disk.rglob("*")) if file.is_file() and file.name != "ballast")
        return {str(file.relative_to(self.disk)): file.read_bytes() for file in found}

    def clear(self) -> None:
        """Leave nothing on the disk."""
        for path in sorted(self.disk.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()

    def refused(self, reason: str, whole: Mapping[str, bytes]) -> None:
        """Run it, and see that it fails as it should: says what and where, what to do, and leaves nothing half made.

        whole: what it makes where there is room.
        """
        code, said = self.run()
        assert code == 3, (code, said)
        assert reason in said, said
        assert str(self.disk) in said, said
        assert "Traceback" not in said, said
        assert ("make room" if reason == FULL else "another place") in said, said
        if not self.chore.goes_on:
            assert not (self.disk / self.chore.made).exists()
            assert self.files().items() <= whole.items(), self.files().keys()


def try_chore(trial: Trial) -> None:
    """Run a command where there is room, on a full disk, on one that becomes full, on one that may only be read."""
    code, said = trial.run()
    assert code == 0, said
    made = trial.files()
    assert (trial.disk / trial.chore.made).exists()
    pages = sum(-(-len(body) // PAGE) for body in made.values())
    trial.clear()
    for room in (0, pages // 2):
        leave_room(trial.disk / "ballast", room)
        trial.refused(FULL, made)
    (trial.disk / "ballast").unlink()
    code, said = trial.run()
    assert code == 0, said
    assert trial.chore.goes_on or trial.files() == made
    trial.clear()
    subprocess.run(["mount", "-o", "remount,ro", trial.disk], check=True)
    trial.refused(READ_ONLY, {})
    assert trial.files() == {}
    subprocess.run(["mount", "-o", "remount,rw", trial.disk], check=True)
    assert trial.run()[0] == 0


if __name__ == "__main__":
    reads, place, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    try_chore(Trial((CHORES | NETWORKED)[name], reads, place, " ".join(sys.argv[4:])))
    print(SUCCESS_OUTPUT, end="")
