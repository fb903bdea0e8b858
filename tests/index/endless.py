"""Files that are too large to keep, made as they are read."""

import itertools
from collections.abc import Iterator
from io import BytesIO


class MadeFile:
    """A file whose bytes come from an iterator of pieces; remembers the largest amount that was asked for at once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = BytesIO()
        self.largest = 0

    def readline(self, size: int, /) -> bytes:
        """Return the next line with its end, or the next `size` bytes of it."""
        out = bytearray()
        while len(out) < size and not out.endswith(b"\n"):
            part = self._piece.readline(size - len(out))
            if not part:
                following = next(self._pieces, None)
                if following is None:
                    break
                self._piece = BytesIO(following)
            out += part
        self.largest = max(self.largest, len(out))
        return bytes(out)


def long_line(before: bytes, after: bytes, megabytes: int = 100) -> MadeFile:
    """Return a file with one line of so many megabytes between two texts."""
    return MadeFile(itertools.chain([before], itertools.repeat(b"x" * (1 << 20), megabytes), [after]))
