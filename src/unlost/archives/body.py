"""The body of an answer: in memory while it is small, else in a temporary file."""

import tempfile
from typing import TYPE_CHECKING, BinaryIO, cast

_IN_MEMORY = 1 << 20  # bytes

if TYPE_CHECKING:
    _Spooled = tempfile.SpooledTemporaryFile[bytes]
else:
    _Spooled = tempfile.SpooledTemporaryFile


class _Body(_Spooled):
    """A file that is closed, and gone, with the last reference to it."""

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()


def new_body() -> BinaryIO:
    """Return an empty body to write to and read from."""
    return cast("BinaryIO", _Body(_IN_MEMORY))
