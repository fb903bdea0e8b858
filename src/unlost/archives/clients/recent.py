"""Knows what was seen not long ago, in bounded memory: archives repeat rows, mostly beside each other."""

from collections.abc import Hashable

REMEMBERED_ROWS = 1 << 17
"""How many different rows are remembered at least. A page of the largest lister has 150,000."""


class RecentlySeen:
    """The last rows that were seen.

    >>> recent = Recent()
    >>> recent.is_new("a"), recent.is_new("b"), recent.is_new("a")
    (True, True, False)
    """

    def __init__(self, remembered: int = REMEMBERED_ROWS) -> None:
        self._remembered = remembered
        self._now: set[int] = set()
        self._before: set[int] = set()

    def is_new(self, item: Hashable) -> bool:
        """Return whether something is seen for the first time, or was forgotten."""
        # 64 bits of a hash with a secret of the process: among a million rows, equal ones by accident do not occur.
        mark = hash(item)
        if mark in self._now or mark in self._before:
            return False
        if len(self._now) >= self._remembered:
            self._before, self._now = self._now, set()
        self._now.add(mark)
        return True
