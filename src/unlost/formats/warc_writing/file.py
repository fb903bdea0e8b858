"""The WARC that is being written: what is appended to it is there as a whole, or not at all."""

import os
import weakref
from collections.abc import Iterator

from unlost.formats.warc_writing.folder import WarcFolder

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
