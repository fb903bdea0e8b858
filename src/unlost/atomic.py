"""Atomic output: files appear under their final name whole or not at all.

A file is written under a temporary name next to its target, synced, and renamed when the block ends without an error.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from errno import EDQUOT, ENOSPC
from pathlib import Path
from typing import BinaryIO

from unlost.errors import InputError

DISK_FULL_ERRNOS = (ENOSPC, EDQUOT)
"""What a system says of a full disk."""


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of an empty file to write, which gets its name only when the block ends well.

    Otherwise nothing is left behind. What stood under the name before stays until then, and the new file gets its mode.
    A link is followed; a device or a pipe is written to as it is, since a file in its place would break it for
    everybody. Raises OSError as `open` does, also for a full disk, with the name of the file, or of the folder of
    temporary files if it is that which is full.
    """
    with atomic_paths([path]) as (aside,):
        yield aside


@contextmanager
def atomic_paths(paths: Sequence[str | os.PathLike[str]]) -> Iterator[list[Path]]:
    """Give paths as `whole_path` does, none of which gets its name before all of them are on the disk."""
    written: list[tuple[Path, Path]] = []
    try:
        with name_os_errors(paths[0]):
            yield [_create_temporary(Path(path), written) for path in paths]
            for aside, _ in written:
                with aside.open("rb+") as file:
                    os.fsync(file.fileno())
            for aside, target in written:
                aside.replace(target)
    finally:
        for aside, _ in written:
            aside.unlink(missing_ok=True)


@contextmanager
def name_os_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let an OSError that names no file name this one, or the folder of temporary files if it is that which is full."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = _find_full_disk(path) if error.errno in DISK_FULL_ERRNOS else os.fspath(path)
        raise


def _find_full_disk(output: str | os.PathLike[str]) -> str:
    """Return which is full: the file that was written, or the folder of temporary files, perhaps on another disk."""
    import tempfile  # noqa: PLC0415  start-up

    if not Path(output).is_file() and Path(output).exists():
        return os.fspath(output)

    def free(place: str | os.PathLike[str]) -> int:
        return os.statvfs(place).f_bavail * os.statvfs(place).f_frsize

    folder = tempfile.gettempdir()
    return folder if free(folder) < free(Path(output).resolve().parent) else os.fspath(output)


def _create_temporary(given: Path, written: list[tuple[Path, Path]]) -> Path:
    try:
        before = given.stat()
    except FileNotFoundError:
        before = None
    if before and not stat.S_ISREG(before.st_mode):
        return given
    target = given.resolve()
    # No longer than a name may be, whatever the target's is.
    aside = target.with_name(f".{target.name[:50]}.{os.urandom(8).hex()}.part")
    try:
        os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(given)) from error
    written.append((aside, target))
    if before:
        aside.chmod(stat.S_IMODE(before.st_mode))
    return aside


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to write that gets its name only when the block ends well, as `whole_path` has it."""
    with atomic_files([path]) as (file,):
        yield file


@contextmanager
def atomic_files(paths: Sequence[str | os.PathLike[str]]) -> Iterator[list[BinaryIO]]:
    """Open files as `whole_file` does, none of which gets its name before all of them are on the disk."""
    with atomic_paths(paths) as asides, ExitStack() as stack:
        yield [stack.enter_context(aside.open("wb", buffering=1 << 20)) for aside in asides]


@contextmanager
def ensure_directory(folder: Path) -> Iterator[None]:
    """Make a folder; where nothing came to be in it, take it away again. Raises InputError where a file is, OSError."""
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(
            f"{folder}: cannot be made a folder: a file is there, or above it: give another name"
        ) from None
    try:
        yield
    finally:
        if is_new and not any(folder.iterdir()):
            folder.rmdir()
