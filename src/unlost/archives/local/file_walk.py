"""The files of a folder and of all folders in it, as an index of them needs to know them."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class FileStat(NamedTuple):
    """A regular file.

    path: relative to the folder, as the system has it; a file that was given itself has its name.
    size: in bytes. modified, changed: nanoseconds since 1970, of what is in it and of what is said about it.
    """

    path: bytes
    size: int
    modified: int
    changed: int


def walk_files(root: Path) -> Iterator[FileStat]:
    """Yield the regular files below a folder, or the one file that was given, in an order that stays the same.

    Links are followed, each folder is entered once. Pipes and devices, which could hang, are left out, and so is what
    vanishes meanwhile or may not be looked at. Raises OSError if the root itself cannot be.
    """
    top = root.stat()
    if stat.S_ISREG(top.st_mode):
        yield FileStat(os.fsencode(root.name), top.st_size, top.st_mtime_ns, top.st_ctime_ns)
        return
    with os.scandir(root):
        pass  # a root that may not be listed is an error; a folder in it is not
    entered = {(top.st_dev, top.st_ino)}
    waiting = [os.fsencode(root)]
    while waiting:
        folder = waiting.pop()
        folders = []
        for path in _list_folder(folder):
            try:
                found = os.stat(path)  # noqa: PTH116  bytes, which Path does not take
            except OSError:
                continue
            if stat.S_ISDIR(found.st_mode) and (found.st_dev, found.st_ino) not in entered:
                entered.add((found.st_dev, found.st_ino))
                folders.append(path)
            elif stat.S_ISREG(found.st_mode):
                relative = os.path.relpath(path, os.fsencode(root))
                yield FileStat(relative, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        waiting += reversed(folders)


def _list_folder(folder: bytes) -> list[bytes]:
    try:
        return sorted(os.path.join(folder, name) for name in os.listdir(folder))  # noqa: PTH118, PTH208  bytes
    except OSError:
        return []
