"""The folders of jobs, one per generation of a lease, and their disk space.

    DIR/NUMBER/g1/            recovered by the first worker: warc/, state.sqlite, checkpoint.sqlite
    DIR/NUMBER/g2.part/       being created from g1 by the second worker
    DIR/NUMBER/g2/            complete; packages/ once there is something to download

A generation starts from the last checkpoint of the one before it. A worker that lost its lease writes into a folder
that is no longer read: a file system cannot reject writes by their fencing token, as the database does.
"""

import hashlib
import os
import re
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from unlost.errors import InputError, SpaceError
from unlost.export.formats import DOWNLOAD_FORMATS, ExportOptions, ExportProgress, export_format_of, export_recovery
from unlost.jobs.models import JobPackage
from unlost.sqlite import STATE_FILE_NAME
from unlost.warc.writer import OPEN_SUFFIX

CHECKPOINT_FILE = "checkpoint.sqlite"
_WARC_FOLDER = "warc"
_PACKAGES_FOLDER = "packages"
_NUMBER = re.compile(r"[0-9]{8,18}", re.ASCII)
_GENERATION = re.compile(r"g([0-9]+)", re.ASCII)
_COPY_TRIES = 5  # a worker that still runs may rename files while they are copied
LOW_SPACE = "too little disk space is free on this service: the job waits until there is more"
QUOTA_REACHED = "all jobs together have reached the size limit of this service: the job waits until others are removed"
SHORTAGE_MESSAGES = (LOW_SPACE, QUOTA_REACHED)
"""Messages of jobs that wait for disk space."""
_MEGABYTE = 1_000_000
_PAUSE_RATIO = 50  # pause between two measurements, as a multiple of the duration of one


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Usage of a disk, in bytes.

    Attributes:
        used: Size of the files of all jobs.
        free: Free space.
        total: Size of the disk.
    """

    used: int
    free: int
    total: int


class JobFolders:
    """The folders of all jobs, below a root that all workers and the web process share."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder_of(self, number: int) -> Path:
        """Return the folder of a job."""
        return self._root / f"{number:08d}"

    def generation_folder(self, number: int, generation: int) -> Path:
        """Return the path of a generation's folder, which need not exist."""
        return self.folder_of(number) / f"g{generation}"

    def begin_generation(self, number: int, generation: int) -> Path:
        """Create the folder of a generation from the last complete one before it, and return its path.

        The folder is renamed to its final name once it is complete, so that no generation starts from what a killed
        worker left.
        """
        folder = self.generation_folder(number, generation)
        temporary = folder.with_name(folder.name + ".part")
        if temporary.exists():
            shutil.rmtree(temporary)
        temporary.mkdir(parents=True)
        if folder.exists():
            # The database was restored from a backup that is older than the folder. The folder has the most recent
            # data.
            previous = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}.old")
            folder.rename(previous)
            _copy_snapshot(previous, temporary)
        elif earlier := [each for each in self._generations(number) if each < generation]:
            _copy_snapshot(self.generation_folder(number, earlier[-1]), temporary)
        temporary.rename(folder)
        return folder

    def _generations(self, number: int) -> list[int]:
        """Return the generations that have a complete folder, in ascending order."""
        with suppress(FileNotFoundError):
            matches = (_GENERATION.fullmatch(each.name) for each in self.folder_of(number).iterdir())
            return sorted(int(each[1]) for each in matches if each)
        return []

    def remove_older_generations(self, number: int, generation: int) -> None:
        """Remove the folders of earlier generations."""
        for each in self._generations(number):
            if each < generation:
                shutil.rmtree(self.generation_folder(number, each), ignore_errors=True)

    def list_numbers(self) -> list[int]:
        """Return the numbers of all jobs that have a folder, in ascending order."""
        with suppress(FileNotFoundError):
            return sorted(int(each.name) for each in self._root.iterdir() if _NUMBER.fullmatch(each.name))
        return []

    def size(self, number: int) -> int:
        """Return the size of a job's files in bytes. Hard links count once."""
        return _total_size(self.folder_of(number))

    def total_size(self) -> int:
        """Return the size of all jobs' files in bytes."""
        return _total_size(self._root)

    def usage(self, used: int) -> DiskUsage:
        """Return the current usage of the disk.

        Args:
            used: Size of all jobs in bytes, as last measured.
        """
        self._root.mkdir(parents=True, exist_ok=True)
        disk = shutil.disk_usage(self._root)
        return DiskUsage(used, disk.free, disk.total)

    def remove(self, number: int) -> None:
        """Remove all files of a job."""
        shutil.rmtree(self.folder_of(number), ignore_errors=True)


def _total_size(folder: Path) -> int:
    seen: set[int] = set()
    total = 0
    for directory, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # a file may be removed at any time
                status = os.stat(os.path.join(directory, name), follow_symlinks=False)  # noqa: PTH116, PTH118  many files
                if status.st_ino not in seen:
                    seen.add(status.st_ino)
                    total += status.st_size
    return total


def write_checkpoint(folder: Path) -> None:
    """Write a consistent snapshot of a recovery's state to `CHECKPOINT_FILE`, which is replaced atomically.

    Uses SQLite's backup API, so the recovery can continue. Other processes never open the state file of a running
    worker: SQLite's write-ahead log does not work across machines.
    """
    part = folder / f"{CHECKPOINT_FILE}.part"
    part.unlink(missing_ok=True)
    source = f"{(folder / STATE_FILE_NAME).absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(source, uri=True)) as state, closing(sqlite3.connect(part)) as backup:
        backup.execute("PRAGMA journal_mode = OFF")  # a partial file is never read, so one fsync at the end is enough
        backup.execute("PRAGMA synchronous = OFF")
        state.backup(backup)
    with part.open("rb") as stream:
        os.fsync(stream.fileno())
    part.replace(folder / CHECKPOINT_FILE)


def _copy_snapshot(source: Path, target: Path) -> None:
    """Initialize a folder from the last checkpoint of another, whose worker may still be running."""
    # The state is copied before the WARCs. WARCs only grow, so they contain all captures that the state refers to; the
    # recovery finds any additional ones in them.
    with suppress(FileNotFoundError):
        # It also serves as the checkpoint of the new folder until a newer one is written.
        _link_or_copy(source / CHECKPOINT_FILE, target / CHECKPOINT_FILE)
        shutil.copyfile(target / CHECKPOINT_FILE, target / STATE_FILE_NAME)
    for remaining_tries in reversed(range(_COPY_TRIES)):
        try:
            _copy_warcs(source / _WARC_FOLDER, target / _WARC_FOLDER)
        except FileNotFoundError:
            shutil.rmtree(target / _WARC_FOLDER, ignore_errors=True)
            if not remaining_tries:
                raise
        else:
            return


def _copy_warcs(source: Path, target: Path) -> None:
    if not source.is_dir():
        return
    target.mkdir()
    for file in sorted(source.iterdir()):
        if file.name.endswith(OPEN_SUFFIX):
            # The file may still be written: it must not be shared with another writer.
            shutil.copyfile(file, target / file.name)
        else:
            _link_or_copy(file, target / file.name)


def _link_or_copy(file: Path, link: Path) -> None:
    """Hard-link a file that no longer changes, or copy it if the file system has no hard links."""
    try:
        os.link(file, link)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(file, link)


@dataclass(frozen=True, slots=True)
class DiskSpaceLimits:
    """Limits in bytes; 0 disables a limit.

    Attributes:
        min_free: Free space below which no job starts or continues.
        max_total: Maximum size of the files of all jobs.
    """

    min_free: int = 1_000 * _MEGABYTE
    max_total: int = 200_000 * _MEGABYTE

    @classmethod
    def from_megabytes(cls, min_free: int, max_total: int) -> "DiskSpaceLimits":
        """Create limits from values in megabytes."""
        return cls(min_free * _MEGABYTE, max_total * _MEGABYTE)


class DiskSpace:
    """Compares the disk usage of the job folders with the limits. Thread-safe."""

    def __init__(self, folders: JobFolders, limits: DiskSpaceLimits | None = None) -> None:
        self._folders = folders
        self.limits = limits or DiskSpaceLimits()
        self._used = 0
        self._next_measurement = float("-inf")
        self._measuring = threading.Lock()

    def usage(self) -> DiskUsage:
        """Return the current free space, and the size of all jobs as last measured."""
        return self._folders.usage(self._used)

    def measure(self) -> str:
        """Measure the size of all jobs, then return the result of `shortage`.

        Skips the measurement if another thread is measuring or has recently done so, since it can take minutes with
        many files.
        """
        if self._measuring.acquire(blocking=False):
            try:
                self._measure()
            finally:
                self._measuring.release()
        return self.shortage()

    def _measure(self) -> None:
        started_at = time.monotonic()
        if started_at >= self._next_measurement:
            with suppress(OSError):
                self._used = self._folders.total_size()
            ended_at = time.monotonic()
            self._next_measurement = ended_at + _PAUSE_RATIO * (ended_at - started_at)

    def shortage(self) -> str:
        """Return why no job may start or continue (one of `SHORTAGE_MESSAGES`), or an empty string.

        Fast: uses the size of all jobs as last measured. A disk that cannot be read counts as large enough: writing to
        it will report the cause.
        """
        if self.limits.max_total and self._used >= self.limits.max_total:
            return QUOTA_REACHED
        with suppress(OSError):
            if self.limits.min_free and self._folders.usage(self._used).free < self.limits.min_free:
                return LOW_SPACE
        return ""


def write_packages(
    recovery: Path, *, windows: bool, language: str, check: Callable[[], None]
) -> tuple[JobPackage, ...]:
    """Write all packages of a recovery into its folder `packages`, replacing earlier ones.

    Args:
        recovery: Folder of the recovery.
        windows: Use file names that are valid on Windows.
        language: Language of the start page, if one is added.
        check: Called for each file; may raise SpaceError to abort.

    Returns:
        The packages; empty if nothing was recovered.

    Raises:
        OSError: The disk is full.
        SpaceError: Raised by `check`. No package is left then.
    """
    folder = recovery / _PACKAGES_FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    packages = []
    for form in DOWNLOAD_FORMATS:
        file = folder / f"site.{form}"
        try:
            start = _write_package(recovery, file, check, windows=windows, language=language)
        except SpaceError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        except InputError:  # nothing was recovered
            continue
        size = file.stat().st_size
        packages.append(JobPackage(form, f"{recovery.name}/{_PACKAGES_FOLDER}/{file.name}", size, _sha256(file), start))
    return tuple(packages)


class _CheckingProgress(ExportProgress):
    """Calls `check` for each file."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check

    def on_file(self) -> None:
        self._check()


def _write_package(recovery: Path, file: Path, check: Callable[[], None], *, windows: bool, language: str) -> str:
    """Write one package. Returns the path of its start page; an empty string without one."""
    options = ExportOptions(windows=windows, start_page=language) if export_format_of(file).is_site else ExportOptions()
    return export_recovery(recovery, file, options, _CheckingProgress(check)).start or ""


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
