"""Where the files of an exported site go."""

from types import TracebackType
from typing import BinaryIO, Protocol, Self


class ExportTarget(Protocol):
    """A folder or a packed file that is being written.

    Use it as a context manager: it has its final name once the block has ended well; after an error nothing is left
    under that name, and what was there before still is.
    """

    def __enter__(self) -> Self:
        """Begin it. Raises InputError where something is in its place, OSError where it cannot be written."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Give it its name, or take it away if there was an error."""
        ...

    def add(self, path: str, body: BinaryIO, modified: str) -> None:
        """Write a file.

        path: relative, with slashes. body: is read to its end. modified: 14 digits, becomes the file's date.

        Raises UsageError for a path that leads out of the target, or that was written before; OSError if it cannot be
        written.
        """
        ...
