"""Atomic output: a file appears under its final name completely or not at all.

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
"""Error numbers of a full disk or an exceeded quota."""


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path of an empty temporary file, which is renamed to `path` if the block succeeds.

    Otherwise the temporary file is removed, and an existing file is unchanged. The new file gets the mode of the
    existing one. Symbolic links are followed. Devices and pipes are written directly, since replacing them would break
    them for other processes.

    Raises:
        OSError: The file cannot be written. The error names the file, or the temporary directory if that disk is full.
    """
    with atomic_paths([path]) as (temporary,):
        yield temporary


@contextmanager
def atomic_paths(paths: Sequence[str | os.PathLike[str]]) -> Iterator[list[Path]]:
    """Yield paths as `atomic_path` does; no file is renamed before all are synced."""
    written: list[tuple[Path, Path]] = []
    try:
        with name_os_errors(paths[0]):
            yield [_create_temporary(Path(path), written) for path in paths]
            # Without the sync, a power failure could leave an empty file under the final name.
            for temporary, _ in written:
                with temporary.open("rb+") as file:
                    os.fsync(file.fileno())
            for temporary, target in written:
                temporary.replace(target)
    finally:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)


@contextmanager
def name_os_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add a file name to an OSError without one: `path`, or the temporary directory if that disk is full."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = _find_full_disk(path) if error.errno in DISK_FULL_ERRNOS else os.fspath(path)
        raise


def _find_full_disk(output: str | os.PathLike[str]) -> str:
    """Return the output or the temporary directory, whichever is on the fuller disk."""
    import tempfile  # noqa: PLC0415  start-up time

    if not Path(output).is_file() and Path(output).exists():
        return os.fspath(output)

    def free(path: str | os.PathLike[str]) -> int:
        return os.statvfs(path).f_bavail * os.statvfs(path).f_frsize

    folder = tempfile.gettempdir()
    return folder if free(folder) < free(Path(output).resolve().parent) else os.fspath(output)


def _create_temporary(path: Path, written: list[tuple[Path, Path]]) -> Path:
    try:
        status = path.stat()
    except FileNotFoundError:
        status = None
    if status and not stat.S_ISREG(status.st_mode):
        return path
    target = path.resolve()
    # Truncated, because NAME_MAX is 255 bytes: 50 characters take at most 200 in UTF-8.
    temporary = target.with_name(f".{target.name[:50]}.{os.urandom(8).hex()}.part")
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    written.append((temporary, target))
    if status:
        temporary.chmod(stat.S_IMODE(status.st_mode))
    return temporary


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that is renamed to `path` if the block succeeds, as by `atomic_path`."""
    with atomic_files([path]) as (file,):
        yield file


@contextmanager
def atomic_files(paths: Sequence[str | os.PathLike[str]]) -> Iterator[list[BinaryIO]]:
    """Open files as `atomic_file` does; no file is renamed before all are synced."""
    with atomic_paths(paths) as temporaries, ExitStack() as stack:
        yield [stack.enter_context(temporary.open("wb", buffering=1 << 20)) for temporary in temporaries]


@contextmanager
def ensure_directory(folder: Path) -> Iterator[None]:
    """Create a directory, and remove it if the block leaves it empty.

    Raises:
        InputError: The path, or a parent of it, is a file.
        OSError: The directory cannot be created.
    """
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
