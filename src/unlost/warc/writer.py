"""Writes numbered WARC segments (`unlost-00001.warc.gz`, …) into one folder; one segment is open at a time.

A record is in the file whole or not at all: a failed append is cut back, and a segment gets its final name only when
it is complete and on the disk. Links in the place of files or folders are refused.
"""

import errno
import os
import re
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unlost import dates
from unlost.atomic import DISK_FULL_ERRNOS
from unlost.clock import Clock
from unlost.errors import InputError, UnwrittenError
from unlost.warc.records import compress_member, format_warcinfo

OPEN_SUFFIX = ".open"
"""What stands behind the name of a file that is being written."""
_SEGMENT_NAME = re.compile(r"unlost-([0-9]{5,})\.warc\.gz", re.ASCII)
_SAFE_OPEN_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe of that name must not keep us waiting


def segment_name(number: int) -> str:
    """Return the final name of a file.

    >>> segment_name(1)
    'unlost-00001.warc.gz'
    """
    return f"unlost-{number:05d}.warc.gz"


def segment_number(name: str) -> int | None:
    """Return the number in a final name; None if it is none of ours."""
    found = _SEGMENT_NAME.fullmatch(name)
    return int(found[1]) if found and segment_name(int(found[1])) == name else None


class WarcFolder:
    """A folder, and the files in it that have names of ours.

    Everything raises InputError, which says what to do, for a folder or a file that is a link or cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def _open(self) -> Iterator[int]:
        """Give the folder itself: whatever its name comes to mean meanwhile."""
        try:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise self._refused_error(self.path, error, "a folder") from error
        try:
            yield folder
        finally:
            os.close(folder)

    @staticmethod
    def _refused_error(path: Path, error: OSError, expected: str) -> InputError:
        # A link is ELOOP, or ENOTDIR where a folder was asked for.
        if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and path.is_symlink()):
            return InputError(f"{path}: a link, which is not followed: put {expected} in its place")
        return InputError(f"{path}: expected {expected}: {error.strerror}")

    def create(self) -> None:
        """Make the folder if it is not there."""
        try:
            self.path.mkdir()
        except FileExistsError:
            pass  # whatever it is: it is looked at when it is opened
        except OSError as error:
            raise UnwrittenError(f"{self.path}: cannot be made: {error.strerror}") from error

    def list_segments(self) -> list[tuple[str, bool]]:
        """Return the final names of its files in their order, and of each whether it is still open."""
        with self._open() as folder:
            found = os.listdir(folder)  # noqa: PTH208  of the folder that was opened, whatever its name means now
        numbers: dict[int, bool] = {}
        for name in found:
            final = name.removesuffix(OPEN_SUFFIX)
            number = segment_number(final)
            if number is not None:
                if number in numbers:
                    raise InputError(
                        f"{self.path / final}: there is one called {final}{OPEN_SUFFIX}, too: move one away"
                    )
                numbers[number] = name != final
        return [(segment_name(number), is_open) for number, is_open in sorted(numbers.items())]

    @contextmanager
    def open_to_read(self, name: str) -> Iterator[int]:
        """Give a file to read, by its final name, whether or not it has it already."""
        if segment_number(name) is None:  # a state may say anything
            raise InputError(f"{self.path}: `{name[:80]}` is no file of these: delete state.sqlite to begin without")
        with self._open() as folder:
            for each in (name, name + OPEN_SUFFIX, name):  # it may be renamed between two looks
                try:
                    file = self._open_regular_file(each, os.O_RDONLY, folder)
                    break
                except FileNotFoundError:
                    pass
            else:
                raise InputError(f"{self.path / name}: not there: put it back, or delete state.sqlite to begin without")
        try:
            yield file
        finally:
            os.close(file)

    def open_to_append(self, name: str, *, new: bool) -> int:
        """Return a file that is not ended, open to append to it. `new`: it must not be there yet."""
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT | os.O_EXCL if new else 0)
        with self._open() as folder:
            if new and _exists(name, folder):
                raise InputError(f"{self.path / name}: there already: another process works here")
            try:
                file = self._open_regular_file(name + OPEN_SUFFIX, flags, folder)
            except FileNotFoundError as error:
                raise InputError(f"{self.path / name}{OPEN_SUFFIX}: no longer there: run the command again") from error
            if os.fstat(file).st_nlink != 1:
                os.close(file)
                raise InputError(
                    f"{self.path / name}{OPEN_SUFFIX}: it has other names, as well: put a copy in its place"
                )
            if new:
                _sync_folder(folder)
            return file

    def _open_regular_file(self, name: str, flags: int, folder: int) -> int:
        try:
            file = os.open(name, flags | _SAFE_OPEN_FLAGS, 0o666, dir_fd=folder)
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in DISK_FULL_ERRNOS:
                raise self.write_error(name, error) from error
            raise self._refused_error(self.path / name, error, "a file") from error
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise InputError(f"{self.path / name}: expected a file, found something else: move it away")
        return file

    def finalize(self, name: str) -> None:
        """Give a file that was open its final name, for good: also if the power goes."""
        with self._open() as folder:
            if _exists(name, folder):
                raise InputError(f"{self.path / name}: there already: another process works here")
            try:
                os.rename(name + OPEN_SUFFIX, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                raise self.write_error(name, error) from error
            _sync_folder(folder)

    def reopen(self, name: str) -> None:
        """Say that a file is not ended after all: something at its end was lost."""
        with self._open() as folder:
            try:
                os.rename(name, name + OPEN_SUFFIX, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                raise self.write_error(name, error) from error

    def remove(self, name: str) -> None:
        """Remove a file that is open and holds nothing."""
        with self._open() as folder, suppress(OSError):
            os.unlink(name + OPEN_SUFFIX, dir_fd=folder)

    def write_error(self, name: str, error: OSError) -> UnwrittenError:
        """Return what to raise for a file that could not be written."""
        if error.errno in DISK_FULL_ERRNOS:
            return UnwrittenError(f"{self.path / name}: no room on the disk: make some, and the same command goes on")
        return UnwrittenError(
            f"{self.path / name}: cannot be written: {error.strerror}; nothing that was kept is lost, and the same "
            "command goes on once it can be"
        )


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _sync_folder(folder: int) -> None:
    """Have names on the disk, where a file system can do that. If not, what a loss of power takes is only the name."""
    with suppress(OSError):
        os.fsync(folder)


_WRITE_BYTES = 1 << 20  # bytes: what is smaller is appended by one write


class WarcSegment:
    """A file that is not ended, open to append to it.

    Nothing is forced to the disk with each record: a kill loses nothing that was written, and what a loss of power
    takes, the last seconds, is missed when the work goes on, and asked for again.

    name: its final name.
    size: bytes that are whole; what lies behind them is cut off before anything is appended.
    has_copies: whether it has a copy already, and not only its first record.

    Raises InputError for whatever the system refuses.
    """

    def __init__(self, folder: WarcFolder, name: str, size: int | None = None, *, has_captures: bool = False) -> None:
        """Open a file that has so many whole bytes, or without a size make one that is not there yet."""
        self._folder = folder
        self.name = name
        self.size = size or 0
        self.has_captures = has_captures
        self._file = folder.open_to_append(name, new=size is None)
        # Whoever gives it up without ending it, as after a failure, leaves no file open.
        self._close = weakref.finalize(self, os.close, self._file)

    def append(self, pieces: Iterator[bytes]) -> None:
        """Append all pieces or none: if that fails, the file is cut back, and the next call finds it as it was."""
        self.truncate_torn()
        end = self.size
        try:
            for data in _batch_pieces(pieces):
                view = memoryview(data)
                while view:
                    count = os.write(self._file, view)
                    view, end = view[count:], end + count
        except OSError as error:
            self.truncate_torn()
            raise self._folder.write_error(self.name, error) from error
        except BaseException:
            self.truncate_torn()
            raise
        self.size = end

    def truncate_torn(self) -> int:
        """Cut off what lies behind the last whole record, and return how many bytes that was."""
        try:
            torn = os.fstat(self._file).st_size - self.size
            if torn > 0:
                os.ftruncate(self._file, self.size)
        except OSError as error:
            raise self._folder.write_error(self.name, error) from error
        return max(0, torn)

    def sync(self) -> None:
        """Return when everything in it is on the disk."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise self._folder.write_error(self.name, error) from error

    def finalize(self) -> None:
        """Give it its final name, once it is on the disk; one without a copy goes. It is closed in any case."""
        try:
            self.truncate_torn()
            if self.has_captures:
                self.sync()
                self._folder.finalize(self.name)
            else:
                self._folder.remove(self.name)
        finally:
            self._close()


def _batch_pieces(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces together, as much as is written at once."""
    gathered: list[bytes] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= _WRITE_BYTES:
            yield b"".join(gathered)
            gathered, size = [], 0
    yield b"".join(gathered)


_GZIP_OVERHEAD_BYTES = 1 << 13  # bytes: more than gzip adds to what it cannot make smaller, beside one in a thousand


class WarcSegments:
    """Files `unlost-00001.warc.gz`, … to append to; each begins with a record that says who wrote it.

    software: who writes. max_bytes: how large a file may grow; one that has a single copy may be larger.

    Everything it raises is an InputError; a call that raises has kept nothing.
    """

    def __init__(self, folder: WarcFolder, clock: Clock, software: str, max_bytes: int) -> None:
        self._folder = folder
        self._clock = clock
        self._software = software
        self._max_bytes = max_bytes
        self._open_segment: WarcSegment | None = None
        self._last_number = 0

    def skip_to(self, name: str) -> None:
        """Say that a file is there: what is written from now on comes behind it."""
        self._last_number = segment_number(name) or 0

    def resume(self, name: str, size: int, *, has_captures: bool) -> int:
        """Write a file further that is not ended, behind so many whole bytes; return how many were cut off.

        has_copies: whether it has a copy already, and not only its first record.
        """
        self.close()  # only the last one is written further
        self.skip_to(name)
        self._open_segment = WarcSegment(self._folder, name, size, has_captures=has_captures)
        return self._open_segment.truncate_torn()

    def append(self, pieces: Iterator[bytes], size: int) -> tuple[str, int, int]:
        """Append members as one; return the name of the file, where in it they begin, and their size, in bytes.

        size: of their texts, about.
        """
        file = self._segment_for(size + (size >> 10) + _GZIP_OVERHEAD_BYTES)
        offset = file.size
        file.append(pieces)
        file.has_captures = True
        return file.name, offset, file.size - offset

    def now(self) -> str:
        """Return the time, 14 digits."""
        return dates.from_epoch(str(int(self._clock.now())))

    def _segment_for(self, size: int) -> WarcSegment:
        """Return the file that so many bytes go to, with its first record in it."""
        file = self._open_segment
        if file is not None and file.has_captures and file.size + size > self._max_bytes:
            self.close()
            file = None
        if file is None:
            file = self._open_segment = WarcSegment(self._folder, segment_name(self._last_number + 1))
            self._last_number += 1
        if file.size == 0:
            info = format_warcinfo(file.name, self._software, self.now())
            file.append(compress_member([info], len(info)))
        return file

    def sync(self) -> None:
        """Return when everything that was appended is on the disk."""
        if self._open_segment is not None:
            self._open_segment.sync()

    def close(self) -> None:
        """End the open file: it gets its final name. What is appended next would begin another one."""
        file, self._open_segment = self._open_segment, None
        if file is not None:
            file.finalize()
