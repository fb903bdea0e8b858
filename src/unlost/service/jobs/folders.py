"""The folders of jobs: each generation of a lease has one of its own, begun from the last checkpoint before it.

    DIR/NUMBER/g1/            what the first worker recovered: warc/, state.sqlite, checkpoint.sqlite
    DIR/NUMBER/g2.part/       being made of g1 by the second
    DIR/NUMBER/g2/            whole; packages/ once there is something to pick up

So whoever comes back from the dead writes into a folder that nobody reads any more.
"""

import os
import re
import secrets
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from unlost.formats.warc_writing.folder import OPEN
from unlost.state_file import NAME

CHECKPOINT = "checkpoint.sqlite"
_WARCS = "warc"
_NUMBER = re.compile(r"[0-9]{8,18}", re.ASCII)
_GENERATION = re.compile(r"g([0-9]+)", re.ASCII)
_TRIES = 5  # files of a worker that still lives may get other names while they are copied


@dataclass(frozen=True, slots=True)
class Usage:
    """Of a disk, in bytes. used: by jobs."""

    used: int
    free: int
    total: int


class JobFolders:
    """The folders of all jobs, below one that all workers and the web process share."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def of(self, number: int) -> Path:
        """Return the folder of a job."""
        return self._root / f"{number:08d}"

    def generation(self, number: int, generation: int) -> Path:
        """Return the folder of a generation, whether or not it is there."""
        return self.of(number) / f"g{generation}"

    def begin(self, number: int, generation: int) -> Path:
        """Make the folder of a generation, of the last whole one before it, if any; return it.

        It has its name once it is whole, so that what a killed worker left of it is never begun from.
        """
        folder = self.generation(number, generation)
        aside = folder.with_name(folder.name + ".part")
        if aside.exists():
            shutil.rmtree(aside)
        aside.mkdir(parents=True)
        if folder.exists():
            # The database is an older one than the folder knows, from a backup: what is here is the best there is.
            last = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}.old")
            folder.rename(last)
            _snapshot(last, aside)
        elif before := [each for each in self._generations(number) if each < generation]:
            _snapshot(self.generation(number, before[-1]), aside)
        aside.rename(folder)
        return folder

    def _generations(self, number: int) -> list[int]:
        """Return the generations that have a whole folder, in order."""
        with suppress(FileNotFoundError):
            found = (_GENERATION.fullmatch(each.name) for each in self.of(number).iterdir())
            return sorted(int(each[1]) for each in found if each)
        return []

    def keep_only(self, number: int, generation: int) -> None:
        """Remove the folders of earlier generations."""
        for each in self._generations(number):
            if each < generation:
                shutil.rmtree(self.generation(number, each), ignore_errors=True)

    def numbers(self) -> list[int]:
        """Return the numbers of all jobs that have a folder."""
        with suppress(FileNotFoundError):
            return sorted(int(each.name) for each in self._root.iterdir() if _NUMBER.fullmatch(each.name))
        return []

    def size(self, number: int) -> int:
        """Return how many bytes the files of a job take; what has two names counts once."""
        return _size(self.of(number))

    def total_size(self) -> int:
        """Return how many bytes the files of all jobs take."""
        return _size(self._root)

    def usage(self, used: int) -> Usage:
        """Return the usage of the disk now. used: bytes of all jobs, as counted last."""
        self._root.mkdir(parents=True, exist_ok=True)
        room = shutil.disk_usage(self._root)
        return Usage(used, room.free, room.total)

    def remove(self, number: int) -> None:
        """Remove everything of a job."""
        shutil.rmtree(self.of(number), ignore_errors=True)


def _size(folder: Path) -> int:
    seen: set[int] = set()
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # it may go at any time
                found = os.stat(os.path.join(place, name), follow_symlinks=False)  # noqa: PTH116, PTH118  many files
                if found.st_ino not in seen:
                    seen.add(found.st_ino)
                    total += found.st_size
    return total


def checkpoint(folder: Path) -> None:
    """Write down the state of a recovery as it is now, in one file that appears whole.

    It is a copy that SQLite makes, while the recovery may go on; nobody else ever opens the state of a living worker.
    """
    part = folder / f"{CHECKPOINT}.part"
    part.unlink(missing_ok=True)
    source = f"{(folder / NAME).absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(source, uri=True)) as state, closing(sqlite3.connect(part)) as copy:
        copy.execute("PRAGMA journal_mode = OFF")  # half of it is never read: one write to disk is enough, at the end
        copy.execute("PRAGMA synchronous = OFF")
        state.backup(copy)
    with part.open("rb") as written:
        os.fsync(written.fileno())
    part.replace(folder / CHECKPOINT)


def _snapshot(source: Path, target: Path) -> None:
    """Begin a folder from the last checkpoint of another, whose worker may still live."""
    # First the state, then the WARCs: they only grow, so they have all that the state knows, and maybe more, which the
    # recovery then finds in them.
    with suppress(FileNotFoundError):
        # It is a checkpoint of the new folder, too, until that has a later one.
        _linked(source / CHECKPOINT, target / CHECKPOINT)
        shutil.copyfile(target / CHECKPOINT, target / NAME)
    for left in reversed(range(_TRIES)):
        try:
            _copy_warcs(source / _WARCS, target / _WARCS)
        except FileNotFoundError:
            shutil.rmtree(target / _WARCS, ignore_errors=True)
            if not left:
                raise
        else:
            return


def _copy_warcs(source: Path, target: Path) -> None:
    if not source.is_dir():
        return
    target.mkdir()
    for file in sorted(source.iterdir()):
        if file.name.endswith(OPEN):
            # It is still written, or was: nobody may append to the same file as we do.
            shutil.copyfile(file, target / file.name)
        else:
            _linked(file, target / file.name)


def _linked(file: Path, link: Path) -> None:
    """Give a file that nobody changes any more a second name; a copy where there are no such links."""
    try:
        os.link(file, link)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(file, link)
