"""The folder of the WARCs of one piece of work: nothing in it is followed to somewhere else."""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unlost.errors import InputError, UnwrittenError
from unlost.formats.output import NO_ROOM

OPEN = ".open"
"""What stands behind the name of a file that is being written."""

_NAME = re.compile(r"unlost-([0-9]{5,})\.warc\.gz", re.ASCII)
_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe of that name must not keep us waiting


def name_of(number: int) -> str:
    """Return the final name of a file.

    >>> name_of(1)
    'unlost-00001.warc.gz'
    """
    return f"unlost-{number:05d}.warc.gz"


def number_of(name: str) -> int | None:
    """Return the number in a final name; None if it is none of ours."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found and name_of(int(found[1])) == name else None


class WarcFolder:
    """A folder, and the files in it that have names of ours.

    Everything raises InputError, which says what to do, for a folder or a file that is a link or cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Give the folder itself: whatever its name comes to mean meanwhile."""
        try:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise self._refused(self.path, error, "a folder") from error
        try:
            yield folder
        finally:
            os.close(folder)

    @staticmethod
    def _refused(path: Path, error: OSError, expected: str) -> InputError:
        # A link is ELOOP, or ENOTDIR where a folder was asked for.
        if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and path.is_symlink()):
            return InputError(f"{path}: a link, which is not followed: put {expected} in its place")
        return InputError(f"{path}: expected {expected}: {error.strerror}")

    def make(self) -> None:
        """Make the folder if it is not there."""
        try:
            self.path.mkdir()
        except FileExistsError:
            pass  # whatever it is: it is looked at when it is opened
        except OSError as error:
            raise UnwrittenError(f"{self.path}: cannot be made: {error.strerror}") from error

    def files(self) -> list[tuple[str, bool]]:
        """Return the final names of its files in their order, and of each whether it is still open."""
        with self._opened() as folder:
            found = os.listdir(folder)  # noqa: PTH208  of the folder that was opened, whatever its name means now
        numbers: dict[int, bool] = {}
        for name in found:
            final = name.removesuffix(OPEN)
            number = number_of(final)
            if number is not None:
                if number in numbers:
                    raise InputError(f"{self.path / final}: there is one called {final}{OPEN}, too: move one away")
                numbers[number] = name != final
        return [(name_of(number), is_open) for number, is_open in sorted(numbers.items())]

    @contextmanager
    def reading(self, name: str) -> Iterator[int]:
        """Give a file to read, by its final name, whether or not it has it already."""
        if number_of(name) is None:  # a state may say anything
            raise InputError(f"{self.path}: `{name[:80]}` is no file of these: delete state.sqlite to begin without")
        with self._opened() as folder:
            for each in (name, name + OPEN, name):  # it may be renamed between two looks
                try:
                    file = self._regular(each, os.O_RDONLY, folder)
                    break
                except FileNotFoundError:
                    pass
            else:
                raise InputError(f"{self.path / name}: not there: put it back, or delete state.sqlite to begin without")
        try:
            yield file
        finally:
            os.close(file)

    def appending(self, name: str, *, new: bool) -> int:
        """Return a file that is not ended, open to append to it. `new`: it must not be there yet."""
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT | os.O_EXCL if new else 0)
        with self._opened() as folder:
            if new and _is_there(name, folder):
                raise InputError(f"{self.path / name}: there already: another process works here")
            try:
                file = self._regular(name + OPEN, flags, folder)
            except FileNotFoundError as error:
                raise InputError(f"{self.path / name}{OPEN}: no longer there: run the command again") from error
            if os.fstat(file).st_nlink != 1:
                os.close(file)
                raise InputError(f"{self.path / name}{OPEN}: it has other names, as well: put a copy in its place")
            if new:
                _sync(folder)
            return file

    def _regular(self, name: str, flags: int, folder: int) -> int:
        try:
            file = os.open(name, flags | _SAFE, 0o666, dir_fd=folder)
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in NO_ROOM:
                raise self.unwritten(name, error) from error
            raise self._refused(self.path / name, error, "a file") from error
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise InputError(f"{self.path / name}: expected a file, found something else: move it away")
        return file

    def end(self, name: str) -> None:
        """Give a file that was open its final name, for good: also if the power goes."""
        with self._opened() as folder:
            if _is_there(name, folder):
                raise InputError(f"{self.path / name}: there already: another process works here")
            try:
                os.rename(name + OPEN, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                raise self.unwritten(name, error) from error
            _sync(folder)

    def reopen(self, name: str) -> None:
        """Say that a file is not ended after all: something at its end was lost."""
        with self._opened() as folder:
            try:
                os.rename(name, name + OPEN, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                raise self.unwritten(name, error) from error

    def remove(self, name: str) -> None:
        """Remove a file that is open and holds nothing."""
        with self._opened() as folder, suppress(OSError):
            os.unlink(name + OPEN, dir_fd=folder)

    def unwritten(self, name: str, error: OSError) -> UnwrittenError:
        """Return what to raise for a file that could not be written."""
        if error.errno in NO_ROOM:
            return UnwrittenError(f"{self.path / name}: no room on the disk: make some, and the same command goes on")
        return UnwrittenError(
            f"{self.path / name}: cannot be written: {error.strerror}; nothing that was kept is lost, and the same "
            "command goes on once it can be"
        )


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _sync(folder: int) -> None:
    """Have names on the disk, where a file system can do that. If not, what a loss of power takes is only the name."""
    with suppress(OSError):
        os.fsync(folder)
