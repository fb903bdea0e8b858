"""The keys of a map without wildcards of its own making, to be asked what lies below a folder."""

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from unlost.holdings.map import Map

_PLACEHOLDER_PAGE = "-"  # a page that stands for any: what holds all of a folder holds it


class MapKeyIndex:
    """A sorted, plain map in its file. Close it, or use it in a `with` block."""

    def __init__(self, path: Path) -> None:
        self._map = Map.open(path)
        with path.open("rb") as file:
            self._text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let the file go."""
        self._text.close()

    def contains(self, pages: Sequence[str]) -> list[bool]:
        """Return for each normal key of a page whether it is held."""
        return [answer.held for answer in self._map.lookup_keys_many(pages)]

    def contains_below(self, folder: str) -> bool:
        """Return whether anything is held whose key begins with `com,a)/b/`, or a wildcard holds all of that."""
        return self._has_prefix(folder.encode()) or self.contains([folder + _PLACEHOLDER_PAGE])[0]

    def contradicts(self, exclusion: str) -> bool:
        """Return whether they say otherwise than an exclusion: they hold its page, or something below its wildcard."""
        if exclusion.endswith("/*"):
            return self.contains_below(exclusion[:-1])
        if exclusion.endswith(",*"):
            # Pages of the host itself, and of those below it.
            return self.contains_below(f"{exclusion[:-2]})/") or self._has_prefix(exclusion[:-1].encode())
        return self.contains([exclusion])[0]

    def _has_prefix(self, prefix: bytes) -> bool:
        low = self._lower_bound(prefix)
        return self._text[low : low + len(prefix)] == prefix

    def _lower_bound(self, prefix: bytes) -> int:
        """Return where the first line begins that does not come before a prefix."""
        low, high = 0, len(self._text)
        while low < high:
            middle = self._text.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = self._text.find(b"\n", middle) + 1
            if self._text[middle:end] < prefix:
                low = end
            else:
                high = middle
        return low
