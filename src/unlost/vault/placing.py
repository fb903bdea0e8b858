"""Which page carries which block: the same as before wherever that can be."""

import hashlib
from collections.abc import Iterable, Mapping

Place = tuple[str, int]
"""A segment and the number of a block in it."""


def in_order(keys: Iterable[str]) -> list[str]:
    """Return pages in an order in which neighbours are none on the site: what archives miss, they miss by folders."""
    return sorted(keys, key=lambda key: hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest())


def place(
    counts: Mapping[str, int], pages: Iterable[str], before: Mapping[str, Place] | None = None
) -> dict[str, Place]:
    """Return which block each page carries: as many pages for each segment as `counts` says.

    before: what pages carried; a page keeps its segment and number if there is still one such.
    """
    usable = set(pages)
    placed: dict[str, Place] = {}
    free = {name: set(range(count)) for name, count in counts.items()}
    for page, (name, index) in (before or {}).items():
        if page in usable and index in free.get(name, ()):
            placed[page] = (name, index)
            free[name].remove(index)
    waiting = iter([page for page in in_order(usable) if page not in placed])
    for name in sorted(free):
        for index, page in zip(sorted(free[name]), waiting, strict=False):
            placed[page] = (name, index)
    return placed


def place_of_unlisted(key: str, names: Mapping[str, int]) -> Place | None:
    """Return the block of a page that nobody placed, by its name alone: the same for every process and client."""
    total = sum(names.values())
    if total == 0:
        return None
    number = int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()[:8], "big") % total
    for name in sorted(names):
        if number < names[name]:
            return name, number
        number -= names[name]
    return None
