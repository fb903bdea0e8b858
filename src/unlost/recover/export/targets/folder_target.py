"""A folder as the target of an export."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from unlost import dates
from unlost.archives.bodies.body import iter_pieces
from unlost.recover.export.targets.entry_paths import path_conflict_error, split_path, duplicate_path_error
from unlost.recover.export.targets.new_place import AtomicPath
from unlost.recover.export.targets.whole_target import AtomicTarget

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderTarget(AtomicTarget):
    """A Target that is a folder. Nothing in it is followed to somewhere else, whoever may have put it there.

    An empty folder in the place is replaced, and its mode kept.
    """

    def __init__(self, path: Path) -> None:
        self._path = AtomicPath(path, allow_empty_folder=True)
        self._root = -1

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._path:
            self._root = self._path.make_folder()
            try:
                yield
                # One call for all: file by file it took four times as long on a fast disk, and more on others.
                os.sync()
                self._path.publish_folder(self._root)
            finally:
                os.close(self._root)

    def add(self, path: str, body: BinaryIO, modified: str) -> None:
        """Write a file, as Target has it. One that cannot be written whole is removed."""
        *folders, name = split_path(path)
        moment = int(dates.to_datetime(modified).timestamp())
        with self._path.explain_os_errors(path), ExitStack() as stack:
            folder = self._root
            for each in folders:
                folder = _open_subfolder(each, folder, path)
                stack.callback(os.close, folder)
            try:
                file = os.open(name, _NEW, 0o666, dir_fd=folder)
            except FileExistsError:
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                raise (path_conflict_error if stat.S_ISDIR(found.st_mode) else duplicate_path_error)(path) from None
            try:
                _write_body(file, body, moment)
            except BaseException:
                os.unlink(name, dir_fd=folder)
                raise
            finally:
                os.close(file)


def _open_subfolder(name: str, folder: int, path: str) -> int:
    """Return a folder in a folder, open; it is made if it is not there. A link in its place is not followed."""
    for _ in range(2):
        try:
            return os.open(name, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            os.mkdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise path_conflict_error(path) from None
            raise
    return os.open(name, _FOLDER, dir_fd=folder)


def _write_body(file: int, body: BinaryIO, moment: int) -> None:
    for piece in iter_pieces(body):
        view = memoryview(piece)
        while view:
            view = view[os.write(file, view) :]
    os.utime(file, (moment, moment))
