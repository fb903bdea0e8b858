"""The erasure code of vaults (Reed-Solomon over GF(2^16)): n blocks, any r of which restore the content.

GF(2^16) allows thousands of blocks. A spare block depends on the content and its index alone, so that further ones can
be made when a site grows. `CodeShape` contains the parameters. `encode_blocks` and `decode_blocks` work in stripes, so
that memory use does not grow with the file.
"""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO

from unlost._core import MAX_VAULT_BLOCKS, decode_rows, encode_rows
from unlost.errors import InputError

MAX_BLOCKS = MAX_VAULT_BLOCKS
"""Maximum number of blocks of one segment."""
BLOCK_UNIT = 64
"""Block sizes are multiples of this number of bytes, which the SIMD code processes at once."""

STRIPE_BYTES = 32 << 20
"""Size of one stripe over all blocks in a block file. With larger stripes, memory is allocated for each stripe, which
takes as long as coding it.
"""
_DECODE_STRIPE_BYTES = 200 << 20
"""Size of one stripe over all blocks during decoding. With smaller stripes, small writes dominate."""


def count_needed_blocks(size: int, limit: int) -> int:
    """Return how many blocks of at most `limit` bytes contain `size` bytes: equation 26 of the dissertation.

    >>> [count_needed_blocks(1 << 20, kib << 10) for kib in (50, 100, 150)]
    [21, 11, 7]
    """
    return max(1, -(-size // limit))


@dataclass(frozen=True, slots=True)
class CodeShape:
    """Parameters of a code.

    Attributes:
        size: Bytes of the content.
        block: Bytes of each block, a multiple of `BLOCK_UNIT`.
        needed: Number of blocks that suffice to restore the content (the dissertation's r).
        count: Number of blocks in total (the dissertation's n).
    """

    size: int
    block: int
    needed: int
    count: int

    @property
    def loss_tolerance(self) -> float:
        """The fraction of blocks that may be lost."""
        return 1 - self.needed / self.count


def smallest_shape(size: int, needed: int, count: int) -> CodeShape:
    """Return the shape with the smallest blocks of which `needed` contain `size` bytes.

    Its `needed` is lower if fewer blocks of that size suffice.

    >>> smallest_shape(1000, 4, 10)
    CodeShape(size=1000, block=256, needed=4, count=10)
    """
    block = max(1, -(-size // (needed * BLOCK_UNIT))) * BLOCK_UNIT
    return CodeShape(size, block, count_needed_blocks(size, block), count)


def stripe_width(shape: CodeShape) -> int:
    """Return the number of consecutive bytes of each block in a block file."""
    return _stripe_step(shape, STRIPE_BYTES)


def encode_blocks(content: BinaryIO, shape: CodeShape, target: BinaryIO) -> None:
    """Write all blocks of a content into an empty file, in stripes: a piece of each block, then the next stripe.

    Blocks stored one after the other would be written in small pieces, which takes longer than the coding.
    Use `read_block` to read a block.

    Args:
        content: A file of `shape.size` bytes.
        shape: Parameters of the code.
        target: The empty file.

    Raises:
        InputError: No code has this shape.
    """
    content_fd, target_fd = content.fileno(), target.fileno()
    stripes = list(_stripes(shape, STRIPE_BYTES))
    # A second thread reads the next stripe and writes the previous one while this one is coded.
    with ThreadPoolExecutor(1) as disk:
        next_rows = disk.submit(_read_stripe, content_fd, shape, *stripes[0])
        pending_write: Future[None] | None = None
        for position, (start, _) in enumerate(stripes):
            rows = next_rows.result()
            if position + 1 < len(stripes):
                next_rows = disk.submit(_read_stripe, content_fd, shape, *stripes[position + 1])
            parity = encode_rows(rows, shape.needed, shape.count)
            if pending_write is not None:
                pending_write.result()
            pending_write = disk.submit(_write_stripe, target_fd, start * shape.count, rows, parity)
            del rows, parity  # free the memory before the next stripe is allocated
        if pending_write is not None:
            pending_write.result()


def _read_stripe(source: int, shape: CodeShape, start: int, width: int) -> bytes:
    """Return a stripe of the data blocks; the last one is padded with zeros."""
    if width == shape.block:
        return os.pread(source, shape.size, 0).ljust(shape.needed * width, b"\0")
    offsets = range(start, shape.needed * shape.block, shape.block)
    return b"".join([os.pread(source, width, offset).ljust(width, b"\0") for offset in offsets])


def _write_stripe(sink: int, offset: int, *pieces: bytes) -> None:
    for piece in pieces:
        _write_all(sink, offset, memoryview(piece))
        offset += len(piece)


def _write_all(sink: int, offset: int, remaining: memoryview) -> None:
    while remaining:
        count = os.pwrite(sink, remaining, offset)
        remaining, offset = remaining[count:], offset + count


def read_block(blocks: BinaryIO, shape: CodeShape, index: int) -> bytes:
    """Return one block from a file written by `encode_blocks`. Raises InputError if the file is too short."""
    data = b"".join(
        os.pread(blocks.fileno(), width, start * shape.count + index * width)
        for start, width in _stripes(shape, STRIPE_BYTES)
    )
    if len(data) != shape.block:
        raise InputError(f"block {index} is missing: pack again")
    return data


def read_content(blocks: BinaryIO, shape: CodeShape) -> bytes:
    """Return the content from a file written by `encode_blocks`. Raises InputError if the file is too short."""
    return b"".join(read_block(blocks, shape, index) for index in range(shape.needed))[: shape.size]


def decode_blocks(source: BinaryIO, offsets: Mapping[int, int], shape: CodeShape, target: BinaryIO) -> None:
    """Restore the content from any `shape.needed` blocks.

    The caller must check the hash of the result against the version.

    Args:
        source: A file with the blocks.
        offsets: Offset of each available block in `source`, by index.
        shape: Parameters of the code.
        target: Receives the content.

    Raises:
        InputError: There are too few blocks.
    """
    # Data blocks, which have the lowest indices, are preferred because they are only copied.
    chosen = sorted(offsets)[: shape.needed]
    source.flush()
    source_fd, target_fd = source.fileno(), target.fileno()
    os.ftruncate(target_fd, shape.needed * shape.block)
    for start, width in _stripes(shape, _DECODE_STRIPE_BYTES):
        rows = b"".join(os.pread(source_fd, width, offsets[index] + start) for index in chosen)
        decoded = memoryview(decode_rows(rows, chosen, shape.needed, shape.count))
        for index in range(shape.needed):
            _write_all(target_fd, index * shape.block + start, decoded[index * width : (index + 1) * width])
        del rows, decoded
    os.ftruncate(target_fd, shape.size)


def _stripes(shape: CodeShape, total_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield offset and width of each stripe within a block; `total_bytes` is the size of one over all blocks."""
    step = _stripe_step(shape, total_bytes)
    for start in range(0, shape.block, step):
        yield start, min(step, shape.block - start)


def _stripe_step(shape: CodeShape, total_bytes: int) -> int:
    return min(max(total_bytes // shape.count // BLOCK_UNIT, 1) * BLOCK_UNIT, shape.block)
