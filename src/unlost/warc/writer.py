"""Writes numbered WARC segments (`unlost-00001.warc.gz`, …) into a folder. One segment is open at a time.

A record is written completely or not at all: a failed append is undone by truncation, and a segment gets its final name
only when it is complete and synced. Symbolic links in place of files or folders are rejected.
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
"""Suffix of a segment that is being written."""
_SEGMENT_NAME = re.compile(r"unlost-([0-9]{5,})\.warc\.gz", re.ASCII)
_SAFE_OPEN_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # O_NONBLOCK: do not wait on a pipe of that name

_WRITE_BYTES = 1 << 20  # records up to this size are appended by one write

_GZIP_OVERHEAD_BYTES = 1 << 13  # with 1 in 1024 bytes, more than gzip adds to incompressible data


def segment_name(number: int) -> str:
    """Return the final name of a segment.

    >>> segment_name(1)
    'unlost-00001.warc.gz'
    """
    return f"unlost-{number:05d}.warc.gz"


def segment_number(name: str) -> int | None:
    """Return the number in a final name; None if it is not a segment's name."""
    match = _SEGMENT_NAME.fullmatch(name)
    return int(match[1]) if match and segment_name(int(match[1])) == name else None


class WarcFolder:
    """A folder and the segments in it.

    All methods raise InputError for a folder or a file that is a symbolic link or cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def _open(self) -> Iterator[int]:
        """Yield a descriptor of the folder, so that a later rename has no effect."""
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
        # With O_NOFOLLOW, a symbolic link yields ELOOP, or ENOTDIR if O_DIRECTORY is set as well.
        if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and path.is_symlink()):
            return InputError(f"{path}: a link, which is not followed: put {expected} in its place")
        return InputError(f"{path}: expected {expected}: {error.strerror}")

    def create(self) -> None:
        """Create the folder unless it exists."""
        try:
            self.path.mkdir()
        except FileExistsError:
            pass  # checked when it is opened
        except OSError as error:
            raise UnwrittenError(f"{self.path}: cannot be made: {error.strerror}") from error

    def list_segments(self) -> list[tuple[str, bool]]:
        """Return the final names of the segments in order, each with whether the segment is unfinished."""
        with self._open() as folder:
            entries = os.listdir(folder)  # noqa: PTH208  of the opened descriptor
        numbers: dict[int, bool] = {}
        for name in entries:
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
        """Open a segment for reading, by its final name, whether or not it is finished."""
        if segment_number(name) is None:  # the state file is untrusted
            raise InputError(f"{self.path}: `{name[:80]}` is no file of these: delete state.sqlite to begin without")
        with self._open() as folder:
            for candidate in (name, name + OPEN_SUFFIX, name):  # it may be renamed between two attempts
                try:
                    file = self._open_regular_file(candidate, os.O_RDONLY, folder)
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
        """Open an unfinished segment for appending. With `new`, it must not exist yet."""
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT | os.O_EXCL if new else 0)
        with self._open() as folder:
            if new and _exists(name, folder):
                raise InputError(f"{self.path / name}: there already: another process works here")
            try:
                file = self._open_regular_file(name + OPEN_SUFFIX, flags, folder)
            except FileNotFoundError as error:
                raise InputError(f"{self.path / name}{OPEN_SUFFIX}: no longer there: run the command again") from error
            # Appending would change a file elsewhere that is a hard link to this one.
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
        """Give an unfinished segment its final name, durably."""
        with self._open() as folder:
            if _exists(name, folder):
                raise InputError(f"{self.path / name}: there already: another process works here")
            try:
                os.rename(name + OPEN_SUFFIX, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                raise self.write_error(name, error) from error
            _sync_folder(folder)

    def reopen(self, name: str) -> None:
        """Mark a finished segment as unfinished, because records at its end were lost."""
        with self._open() as folder:
            try:
                os.rename(name, name + OPEN_SUFFIX, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                raise self.write_error(name, error) from error

    def remove(self, name: str) -> None:
        """Remove an unfinished segment that has no captures."""
        with self._open() as folder, suppress(OSError):
            os.unlink(name + OPEN_SUFFIX, dir_fd=folder)

    def write_error(self, name: str, error: OSError) -> UnwrittenError:
        """Return the exception for a file that could not be written."""
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
    """Sync a folder, if the file system supports it. Without the sync, a power failure may lose a new name."""
    with suppress(OSError):
        os.fsync(folder)


class WarcSegment:
    """An unfinished segment, open for appending.

    Records are not synced one by one: a kill loses nothing that was written, and what a power failure loses, the last
    seconds, is detected on resume and requested again.

    Attributes:
        name: Final name.
        size: Size of the complete records; anything after them is truncated before the next append.
        has_captures: Whether it contains a capture, not only the warcinfo record.

    Raises:
        InputError: Any operation failed.
    """

    def __init__(self, folder: WarcFolder, name: str, size: int | None = None, *, has_captures: bool = False) -> None:
        """Open a segment with `size` valid bytes, or create it if `size` is None."""
        self._folder = folder
        self.name = name
        self.size = size or 0
        self.has_captures = has_captures
        self._file = folder.open_to_append(name, new=size is None)
        # Closes the file even if the segment is abandoned after a failure.
        self._close = weakref.finalize(self, os.close, self._file)

    def append(self, pieces: Iterator[bytes]) -> None:
        """Append all pieces or none: after a failure the file is truncated to its previous size."""
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
        """Truncate the file after its last complete record; return the number of bytes removed."""
        try:
            torn = os.fstat(self._file).st_size - self.size
            if torn > 0:
                os.ftruncate(self._file, self.size)
        except OSError as error:
            raise self._folder.write_error(self.name, error) from error
        return max(0, torn)

    def sync(self) -> None:
        """Sync the file to disk."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise self._folder.write_error(self.name, error) from error

    def finalize(self) -> None:
        """Sync and rename the segment, or remove it if it has no captures. Closes it in any case."""
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
    """Yield pieces joined to about `_WRITE_BYTES`."""
    batch: list[bytes] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece)
        if size >= _WRITE_BYTES:
            yield b"".join(batch)
            batch, size = [], 0
    yield b"".join(batch)


class WarcSegments:
    """Writes segments `unlost-00001.warc.gz`, …, each of which begins with a warcinfo record.

    Args:
        folder: The folder.
        clock: Source of time.
        software: Name of the software, for the warcinfo record.
        max_bytes: Maximum size of a segment; one with a single capture may be larger.

    Raises:
        InputError: Any operation failed; it has then stored nothing.
    """

    def __init__(self, folder: WarcFolder, clock: Clock, software: str, max_bytes: int) -> None:
        self._folder = folder
        self._clock = clock
        self._software = software
        self._max_bytes = max_bytes
        self._open_segment: WarcSegment | None = None
        self._last_number = 0

    def skip_to(self, name: str) -> None:
        """Continue the numbering after an existing segment."""
        self._last_number = segment_number(name) or 0

    def resume(self, name: str, size: int, *, has_captures: bool) -> int:
        """Reopen an unfinished segment with `size` valid bytes; return the number of bytes truncated.

        Args:
            name: Final name.
            size: Size of the complete records.
            has_captures: Whether it contains a capture, not only the warcinfo record.
        """
        self.close()  # only the last segment can be open
        self.skip_to(name)
        self._open_segment = WarcSegment(self._folder, name, size, has_captures=has_captures)
        return self._open_segment.truncate_torn()

    def append(self, pieces: Iterator[bytes], size: int) -> tuple[str, int, int]:
        """Append gzip members together; return the name of the segment, and their offset and size in it.

        `size` is the approximate uncompressed size.
        """
        segment = self._segment_for(size + (size >> 10) + _GZIP_OVERHEAD_BYTES)
        offset = segment.size
        segment.append(pieces)
        segment.has_captures = True
        return segment.name, offset, segment.size - offset

    def now(self) -> str:
        """Return the current time as 14 digits."""
        return dates.from_epoch(str(int(self._clock.now())))

    def _segment_for(self, size: int) -> WarcSegment:
        """Return the segment for `size` more bytes, with its warcinfo record written."""
        segment = self._open_segment
        if segment is not None and segment.has_captures and segment.size + size > self._max_bytes:
            self.close()
            segment = None
        if segment is None:
            segment = self._open_segment = WarcSegment(self._folder, segment_name(self._last_number + 1))
            self._last_number += 1
        if segment.size == 0:
            info = format_warcinfo(segment.name, self._software, self.now())
            segment.append(compress_member([info], len(info)))
        return segment

    def sync(self) -> None:
        """Sync everything appended so far to disk."""
        if self._open_segment is not None:
            self._open_segment.sync()

    def close(self) -> None:
        """Finish the open segment; the next append starts a new one."""
        segment, self._open_segment = self._open_segment, None
        if segment is not None:
            segment.finalize()
