"""Dividing bytes between a map and a filter beside it."""

from collections.abc import Callable

MAX_FILTER_BITS = 16
"""A filter of more bits for each key would be wrong less often than once in 65,536 times."""

FILTER_OVERHEAD = 1.13
"""Bits that a static filter takes for each bit of each key."""

FILTER_HEADER_BYTES = 1024
"""Bytes that a filter takes beside that, at most."""


def estimate_filter_bytes(keys: int, bits: int) -> int:
    """Return about how many bytes a filter of so many keys has; 0 for no bits, which is no filter.

    >>> filter_size(1_000_000, 8), filter_size(1_000_000, 0)
    (1131024, 0)
    """
    return round(FILTER_OVERHEAD * bits * keys / 8) + FILTER_HEADER_BYTES if bits else 0


def choose_filter_bits(budget: int, keys: int, smallest: float, loss_at: Callable[[float], float]) -> int:
    """Return how many bits the filter beside a map gets for each key, from 0 (none) to 16.

    A page is taken for held if map and filter say so. Of the pages that are not, a filter of b bits lets one in 2^b
    pass; so what is expected to be wrong is what the map gets wrong, `loss_at` of the bytes that are left to it, less
    that. `smallest` is how many bytes a map has at least. The fewest bits win where it makes no difference.

    >>> divide(100_000, 80_000, 10_000, lambda size: 1 - size / 1_000_000)
    7
    """
    best, fewest = 0, float("inf")
    for bits in range(MAX_FILTER_BITS + 1):
        left = budget - estimate_filter_bytes(keys, bits)
        if bits and left < smallest:
            break
        wrong = loss_at(left) / 2**bits
        if wrong < fewest:
            best, fewest = bits, wrong
    return best
