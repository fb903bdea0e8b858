"""The erasure code of vaults: n blocks of which any k restore the content.

`CodeShape` holds the parameters. `encode_blocks` and `decode_blocks` work in stripes, so that memory use does not grow
with the file.
"""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO

from unlost._core import MAX_VAULT_BLOCKS, decode_rows, encode_rows
from unlost.errors import InputError

MAX_BLOCKS = MAX_VAULT_BLOCKS
"""Of one segment."""
BLOCK_UNIT = 64
"""Bytes: blocks are multiples of it, as the code works on so many at once."""


def count_needed_blocks(size: int, limit: int) -> int:
    """Return how many blocks of at most `limit` bytes hold `size` bytes: equation 26 of the dissertation.

    >>> [count_needed_blocks(1 << 20, kib << 10) for kib in (50, 100, 150)]
    [21, 11, 7]
    """
    return max(1, -(-size // limit))


@dataclass(frozen=True, slots=True)
class CodeShape:
    """The numbers of one code.

    size: bytes that are coded. block: bytes of each block, a multiple of `UNIT`. needed: blocks that suffice, whichever
    they are (the dissertation's r). count: blocks that are made (its n).
    """

    size: int
    block: int
    needed: int
    count: int

    @property
    def loss_tolerance(self) -> float:
        """The share of blocks without which the rest suffices."""
        return 1 - self.needed / self.count


def smallest_shape(size: int, needed: int, count: int) -> CodeShape:
    """Return the shape with the smallest blocks of which `needed` hold `size` bytes; fewer, if these do, too.

    >>> shape_of(1000, 4, 10)
    Shape(size=1000, block=256, needed=4, count=10)
    """
    block = max(1, -(-size // (needed * BLOCK_UNIT))) * BLOCK_UNIT
    return CodeShape(size, block, count_needed_blocks(size, block), count)


STRIPE_BYTES = 32 << 20
"""Of all blocks together in one stripe of a file of blocks: with more, memory must be had anew for each stripe, which
takes as long as coding it."""
_DECODE_STRIPE_BYTES = 200 << 20
"""Of all blocks together that are decoded at once: with less, much of the time goes into writing small pieces."""


def stripe_width(shape: CodeShape) -> int:
    """Return how many bytes of each block stand together in a file of blocks."""
    return _stripe_step(shape, STRIPE_BYTES)


def encode_blocks(content: BinaryIO, shape: CodeShape, target: BinaryIO) -> None:
    """Write all blocks of a content into an empty file, for `read_block`: a stripe of all of them, then the next one.

    Blocks that stood one behind the other would be written in small pieces, which takes longer than coding does.
    content: a file of `shape.size` bytes. Raises InputError for a shape that no code has.
    """
    source, sink = content.fileno(), target.fileno()
    stripes = list(_stripes(shape, STRIPE_BYTES))
    # Another thread reads the next stripe and writes the last one while this one is coded.
    with ThreadPoolExecutor(1) as disk:
        coming = disk.submit(_read_stripe, source, shape, *stripes[0])
        written: Future[None] | None = None
        for number, (start, _) in enumerate(stripes):
            rows = coming.result()
            if number + 1 < len(stripes):
                coming = disk.submit(_read_stripe, source, shape, *stripes[number + 1])
            made = encode_rows(rows, shape.needed, shape.count)
            if written is not None:
                written.result()
            written = disk.submit(_write_stripe, sink, start * shape.count, rows, made)
            del rows, made  # so that the next ones take their place
        if written is not None:
            written.result()


def _read_stripe(source: int, shape: CodeShape, start: int, width: int) -> bytes:
    """Return a stripe of the content's own blocks; the last of them is filled up by zeros."""
    if width == shape.block:
        return os.pread(source, shape.size, 0).ljust(shape.needed * width, b"\0")
    offsets = range(start, shape.needed * shape.block, shape.block)
    return b"".join([os.pread(source, width, offset).ljust(width, b"\0") for offset in offsets])


def _write_stripe(sink: int, offset: int, *pieces: bytes) -> None:
    for piece in pieces:
        _write_all(sink, offset, memoryview(piece))
        offset += len(piece)


def _write_all(sink: int, offset: int, left: memoryview) -> None:
    while left:
        count = os.pwrite(sink, left, offset)
        left, offset = left[count:], offset + count


def read_block(blocks: BinaryIO, shape: CodeShape, index: int) -> bytes:
    """Return one block from what `encode` wrote. Raises InputError if the file ends before."""
    data = b"".join(
        os.pread(blocks.fileno(), width, start * shape.count + index * width)
        for start, width in _stripes(shape, STRIPE_BYTES)
    )
    if len(data) != shape.block:
        raise InputError(f"block {index} is missing: pack again")
    return data


def read_content(blocks: BinaryIO, shape: CodeShape) -> bytes:
    """Return all that was coded, from what `encode` wrote. Raises InputError if the file ends before."""
    return b"".join(read_block(blocks, shape, index) for index in range(shape.needed))[: shape.size]


def decode_blocks(source: BinaryIO, offsets: Mapping[int, int], shape: CodeShape, target: BinaryIO) -> None:
    """Write the content again. places: where in the source each block begins, by its number: at least `shape.needed`.

    Whether it is what was coded is for the caller to check: its hash is the version. Raises InputError for too few.
    """
    # Blocks that are content are copied; the fewer others, the less there is to do.
    chosen = sorted(offsets)[: shape.needed]
    source.flush()
    fetch, sink = source.fileno(), target.fileno()
    os.ftruncate(sink, shape.needed * shape.block)
    for start, width in _stripes(shape, _DECODE_STRIPE_BYTES):
        rows = b"".join(os.pread(fetch, width, offsets[index] + start) for index in chosen)
        made = memoryview(decode_rows(rows, chosen, shape.needed, shape.count))
        for index in range(shape.needed):
            _write_all(sink, index * shape.block + start, made[index * width : (index + 1) * width])
        del rows, made
    os.ftruncate(sink, shape.size)


def _stripes(shape: CodeShape, total_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield where in each block a stripe begins, and how wide it is. together: bytes of all blocks in one."""
    step = _stripe_step(shape, total_bytes)
    for start in range(0, shape.block, step):
        yield start, min(step, shape.block - start)


def _stripe_step(shape: CodeShape, total_bytes: int) -> int:
    return min(max(total_bytes // shape.count // BLOCK_UNIT, 1) * BLOCK_UNIT, shape.block)
