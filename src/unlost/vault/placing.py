"""Which page carries which block: the same as before wherever that can be."""

import hashlib
from collections.abc import Iterable, Mapping

BlockLocation = tuple[str, int]
"""A segment and the number of a block in it."""


def sort_pages_by_hash(keys: Iterable[str]) -> list[str]:
    """Return pages in an order in which neighbours are none on the site: what archives miss, they miss by folders."""
    return sorted(keys, key=lambda key: hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest())


def assign_blocks(
    counts: Mapping[str, int], pages: Iterable[str], previous: Mapping[str, BlockLocation] | None = None
) -> dict[str, BlockLocation]:
    """Return which block each page carries: as many pages for each segment as `counts` says.

    before: what pages carried; a page keeps its segment and number if there is still one such.
    """
    usable = set(pages)
    placed: dict[str, BlockLocation] = {}
    free = {name: set(range(count)) for name, count in counts.items()}
    for page, (name, index) in (previous or {}).items():
        if page in usable and index in free.get(name, ()):
            placed[page] = (name, index)
            free[name].remove(index)
    waiting = iter([page for page in sort_pages_by_hash(usable) if page not in placed])
    for name in sorted(free):
        for index, page in zip(sorted(free[name]), waiting, strict=False):
            placed[page] = (name, index)
    return placed


def locate_unlisted_block(key: str, counts: Mapping[str, int]) -> BlockLocation | None:
    """Return the block of a page that nobody placed, by its name alone: the same for every process and client."""
    total = sum(counts.values())
    if total == 0:
        return None
    number = int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()[:8], "big") % total
    for name in sorted(counts):
        if number < counts[name]:
            return name, number
        number -= counts[name]
    return None
