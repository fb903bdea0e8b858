"""Generated files that are too large to store."""

import itertools
from collections.abc import Iterator
from io import BytesIO


class GeneratedFile:
    """A file whose bytes come from an iterator of chunks; records the largest read."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._chunk = BytesIO()
        self.largest = 0

    def readline(self, size: int, /) -> bytes:
        """Return the next line with its end, or the next `size` bytes of it."""
        out = bytearray()
        while len(out) < size and not out.endswith(b"\n"):
            line_part = self._chunk.readline(size - len(out))
            if not line_part:
                next_chunk = next(self._chunks, None)
                if next_chunk is None:
                    break
                self._chunk = BytesIO(next_chunk)
            out += line_part
        self.largest = max(self.largest, len(out))
        return bytes(out)


def long_line(before: bytes, after: bytes, megabytes: int = 100) -> GeneratedFile:
    """Return a file with one line of `megabytes` MiB between two texts."""
    return GeneratedFile(itertools.chain([before], itertools.repeat(b"x" * (1 << 20), megabytes), [after]))
