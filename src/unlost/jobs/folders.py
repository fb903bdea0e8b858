"""The folders of jobs: one per generation of a lease, started from the last checkpoint before it; and their disk space.

    DIR/NUMBER/g1/            what the first worker recovered: warc/, state.sqlite, checkpoint.sqlite
    DIR/NUMBER/g2.part/       being created from g1 by the second
    DIR/NUMBER/g2/            complete; packages/ once there is something to download

A worker that lost its lease writes into a folder that is not read any more.
"""

import os
import re
import secrets
import shutil
import sqlite3
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from unlost.sqlite import STATE_FILE_NAME
from unlost.warc.writer import OPEN_SUFFIX

CHECKPOINT_FILE = "checkpoint.sqlite"
_WARC_FOLDER = "warc"
_NUMBER = re.compile(r"[0-9]{8,18}", re.ASCII)
_GENERATION = re.compile(r"g([0-9]+)", re.ASCII)
_COPY_TRIES = 5  # files of a worker that still lives may get other names while they are copied


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Of a disk, in bytes. used: by jobs."""

    used: int
    free: int
    total: int


class JobFolders:
    """The folders of all jobs, below one that all workers and the web process share."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder_of(self, number: int) -> Path:
        """Return the folder of a job."""
        return self._root / f"{number:08d}"

    def generation_folder(self, number: int, generation: int) -> Path:
        """Return the folder of a generation, whether or not it is there."""
        return self.folder_of(number) / f"g{generation}"

    def begin_generation(self, number: int, generation: int) -> Path:
        """Make the folder of a generation, of the last whole one before it, if any; return it.

        It has its name once it is whole, so that what a killed worker left of it is never begun from.
        """
        folder = self.generation_folder(number, generation)
        aside = folder.with_name(folder.name + ".part")
        if aside.exists():
            shutil.rmtree(aside)
        aside.mkdir(parents=True)
        if folder.exists():
            # The database is an older one than the folder knows, from a backup: what is here is the best there is.
            last = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}.old")
            folder.rename(last)
            _copy_snapshot(last, aside)
        elif before := [each for each in self._generations(number) if each < generation]:
            _copy_snapshot(self.generation_folder(number, before[-1]), aside)
        aside.rename(folder)
        return folder

    def _generations(self, number: int) -> list[int]:
        """Return the generations that have a whole folder, in order."""
        with suppress(FileNotFoundError):
            found = (_GENERATION.fullmatch(each.name) for each in self.folder_of(number).iterdir())
            return sorted(int(each[1]) for each in found if each)
        return []

    def remove_older_generations(self, number: int, generation: int) -> None:
        """Remove the folders of earlier generations."""
        for each in self._generations(number):
            if each < generation:
                shutil.rmtree(self.generation_folder(number, each), ignore_errors=True)

    def list_numbers(self) -> list[int]:
        """Return the numbers of all jobs that have a folder."""
        with suppress(FileNotFoundError):
            return sorted(int(each.name) for each in self._root.iterdir() if _NUMBER.fullmatch(each.name))
        return []

    def size(self, number: int) -> int:
        """Return how many bytes the files of a job take; what has two names counts once."""
        return _size(self.folder_of(number))

    def total_size(self) -> int:
        """Return how many bytes the files of all jobs take."""
        return _size(self._root)

    def usage(self, used: int) -> DiskUsage:
        """Return the usage of the disk now. used: bytes of all jobs, as counted last."""
        self._root.mkdir(parents=True, exist_ok=True)
        room = shutil.disk_usage(self._root)
        return DiskUsage(used, room.free, room.total)

    def remove(self, number: int) -> None:
        """Remove everything of a job."""
        shutil.rmtree(self.folder_of(number), ignore_errors=True)


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


def write_checkpoint(folder: Path) -> None:
    """Write down the state of a recovery as it is now, in one file that appears whole.

    It is a copy that SQLite makes, while the recovery may go on; nobody else ever opens the state of a living worker.
    """
    part = folder / f"{CHECKPOINT_FILE}.part"
    part.unlink(missing_ok=True)
    source = f"{(folder / STATE_FILE_NAME).absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(source, uri=True)) as state, closing(sqlite3.connect(part)) as copy:
        copy.execute("PRAGMA journal_mode = OFF")  # half of it is never read: one write to disk is enough, at the end
        copy.execute("PRAGMA synchronous = OFF")
        state.backup(copy)
    with part.open("rb") as written:
        os.fsync(written.fileno())
    part.replace(folder / CHECKPOINT_FILE)


def _copy_snapshot(source: Path, target: Path) -> None:
    """Begin a folder from the last checkpoint of another, whose worker may still live."""
    # First the state, then the WARCs: they only grow, so they have all that the state knows, and maybe more, which the
    # recovery then finds in them.
    with suppress(FileNotFoundError):
        # It is a checkpoint of the new folder, too, until that has a later one.
        _link_or_copy(source / CHECKPOINT_FILE, target / CHECKPOINT_FILE)
        shutil.copyfile(target / CHECKPOINT_FILE, target / STATE_FILE_NAME)
    for left in reversed(range(_COPY_TRIES)):
        try:
            _copy_warcs(source / _WARC_FOLDER, target / _WARC_FOLDER)
        except FileNotFoundError:
            shutil.rmtree(target / _WARC_FOLDER, ignore_errors=True)
            if not left:
                raise
        else:
            return


def _copy_warcs(source: Path, target: Path) -> None:
    if not source.is_dir():
        return
    target.mkdir()
    for file in sorted(source.iterdir()):
        if file.name.endswith(OPEN_SUFFIX):
            # It is still written, or was: nobody may append to the same file as we do.
            shutil.copyfile(file, target / file.name)
        else:
            _link_or_copy(file, target / file.name)


def _link_or_copy(file: Path, link: Path) -> None:
    """Give a file that nobody changes any more a second name; a copy where there are no such links."""
    try:
        os.link(file, link)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(file, link)


LOW_SPACE = "too little disk space is free on this service: the job waits until there is more"
QUOTA_REACHED = "all jobs together have reached the size limit of this service: the job waits until others are removed"
SHORTAGE_MESSAGES = (LOW_SPACE, QUOTA_REACHED)
"""Messages of jobs that wait for disk space."""
_MEGABYTE = 1_000_000
_PAUSE_RATIO = 50  # pause between two counts, as a multiple of the time that a count took


@dataclass(frozen=True, slots=True)
class DiskSpaceLimits:
    """Limits in bytes; 0 disables a limit.

    min_free: below this much free space, no job starts or continues. max_total: size of all jobs together.
    """

    min_free: int = 1_000 * _MEGABYTE
    max_total: int = 200_000 * _MEGABYTE

    @classmethod
    def from_megabytes(cls, min_free: int, max_total: int) -> "DiskSpaceLimits":
        """Return limits that are given in megabytes."""
        return cls(min_free * _MEGABYTE, max_total * _MEGABYTE)


class DiskSpace:
    """Compares the disk of the job folders with the limits. Threads may share it."""

    def __init__(self, folders: JobFolders, limits: DiskSpaceLimits | None = None) -> None:
        self._folders = folders
        self.limits = limits or DiskSpaceLimits()
        self._used = 0
        self._next_measurement = float("-inf")
        self._measuring = threading.Lock()

    def usage(self) -> DiskUsage:
        """Return how much is free, and the size of all jobs as it was counted last."""
        return self._folders.usage(self._used)

    def measure(self) -> str:
        """Read the size of all jobs, then return as `shortage` does.

        Reads nothing if another thread does so now, or did a short time ago: with many files it takes minutes.
        """
        if self._measuring.acquire(blocking=False):
            try:
                self._measure()
            finally:
                self._measuring.release()
        return self.shortage()

    def _measure(self) -> None:
        begun = time.monotonic()
        if begun >= self._next_measurement:
            with suppress(OSError):
                self._used = self._folders.total_size()
            ended = time.monotonic()
            self._next_measurement = ended + _PAUSE_RATIO * (ended - begun)

    def shortage(self) -> str:
        """Return why no job may start or continue, one of `SHORTAGES`; empty if jobs may.

        Fast: takes the size of all jobs as it was counted last. A disk that cannot be read counts as large enough,
        since an attempt to write to it reports the cause.
        """
        if self.limits.max_total and self._used >= self.limits.max_total:
            return QUOTA_REACHED
        with suppress(OSError):
            if self.limits.min_free and self._folders.usage(self._used).free < self.limits.min_free:
                return LOW_SPACE
        return ""
