"""From a file to blocks of which some suffice, and back: in stripes, so that memory does not grow with the file."""

import os
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from unlost._core import decode_rows, encode_rows
from unlost.vault.shape import UNIT, Shape

STRIPE_BYTES = 200 << 20
"""Of all blocks together that are in memory at once: with less, much of the time goes into writing small pieces."""

_PIECE = 1 << 20


def encode(content: BinaryIO, shape: Shape, target: BinaryIO) -> None:
    """Write all blocks of a content, one behind the other, into a file that can be read and written anywhere.

    content: a file of `shape.size` bytes. Raises InputError for a shape that no code has.
    """
    source, sink, block = content.fileno(), target.fileno(), shape.block
    # The last block that is content is filled up by zeros.
    os.ftruncate(sink, shape.count * block)
    for at in range(0, shape.size, _PIECE):
        os.pwrite(sink, os.pread(source, _PIECE, at), at)
    for start, width in _stripes(shape):
        rows = b"".join(
            os.pread(source, width, index * block + start).ljust(width, b"\0") for index in range(shape.needed)
        )
        made = memoryview(encode_rows(rows, shape.needed, shape.count))
        for index in range(shape.count - shape.needed):
            os.pwrite(sink, made[index * width : (index + 1) * width], (shape.needed + index) * block + start)


def decode(source: BinaryIO, places: Mapping[int, int], shape: Shape, target: BinaryIO) -> None:
    """Write the content again. places: where in the source each block begins, by its number: at least `shape.needed`.

    Whether it is what was coded is for the caller to check: its hash is the version. Raises InputError for too few.
    """
    # Blocks that are content are copied; the fewer others, the less there is to do.
    chosen = sorted(places)[: shape.needed]
    source.flush()
    fetch, sink = source.fileno(), target.fileno()
    os.ftruncate(sink, shape.needed * shape.block)
    for start, width in _stripes(shape):
        rows = b"".join(os.pread(fetch, width, places[index] + start) for index in chosen)
        made = memoryview(decode_rows(rows, chosen, shape.needed, shape.count))
        for index in range(shape.needed):
            os.pwrite(sink, made[index * width : (index + 1) * width], index * shape.block + start)
    os.ftruncate(sink, shape.size)


def _stripes(shape: Shape) -> Iterator[tuple[int, int]]:
    """Yield where in each block a stripe begins, and how wide it is."""
    step = max(STRIPE_BYTES // shape.count // UNIT, 1) * UNIT
    for start in range(0, shape.block, step):
        yield start, min(step, shape.block - start)
