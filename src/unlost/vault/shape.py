"""How many blocks of which size, and how many of them suffice."""

from dataclasses import dataclass

from unlost._core import MAX_VAULT_BLOCKS

MAX_BLOCKS = MAX_VAULT_BLOCKS
"""Of one segment."""

BLOCK_UNIT = 64
"""Bytes: blocks are multiples of it, as the code works on so many at once."""


def count_needed_blocks(size: int, limit: int) -> int:
    """Return how many blocks of at most `limit` bytes hold `size` bytes: equation 26 of the dissertation.

    >>> [blocks_needed(1 << 20, kib << 10) for kib in (50, 100, 150)]
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
