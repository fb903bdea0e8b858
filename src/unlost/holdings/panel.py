"""Maps and filters of several archives, asked together about one page, in one call of the core."""

from collections.abc import Sequence
from enum import IntEnum

from unlost import _core
from unlost.errors import UsageError
from unlost.holdings.routing import ArchiveHoldings


class HoldingsMatch(IntEnum):
    """What one archive's map and filters say about a page, apart from how old they are."""

    UNCOVERED = 0
    """Nothing in the map covers it."""
    EXCLUDED = 1
    """The map excludes it."""
    NOT_IN_FILTERS = 2
    """There is no map, and no filter has it."""
    IN_FILTERS = 3
    """There is no map, and a filter has it."""
    LISTED = 4
    """The map lists the page itself, and there are no filters."""
    WILDCARD = 5
    """A wildcard of the map covers it, and there are no filters."""
    IN_BOTH = 6
    """The map covers it, and a filter has it."""
    LISTED_ONLY = 7
    """The map lists the page itself, no filter has it."""
    WILDCARD_ONLY = 8
    """A wildcard covers it, no filter has it: whether it may be held, their age decides."""
    DAMAGED = 9
    """Something turned out to be damaged: `Holdings.lookup_key` says what."""


class MultiLookup:
    """What is known of several archives, made by the same rules.

    rules: by which addresses become keys. size: how many archives there are.

    It is as safe with threads as what it is made of. Raises UsageError if the rules differ, or if there is nobody.
    """

    def __init__(self, holdings: Sequence[ArchiveHoldings]) -> None:
        rules = {each.rules for each in holdings}
        if len(rules) != 1:
            raise UsageError("holdings of one rule set are asked together: expected some, and all of the same")
        self.rules = rules.pop()
        self.size = len(holdings)
        self._core_lookup = _core.Panel(
            [(each.map.rows if each.map else None, [pages.file for pages in each.filters]) for each in holdings]
        )

    def lookup_key(self, key: str) -> bytes:
        """Return for each archive the number of a `Finding`, about a normal key as `unlost.uri.key` makes it."""
        return self._core_lookup.lookup_key(key)
