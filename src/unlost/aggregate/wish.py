"""Which archives somebody wants to be asked, and how fresh the answer must be."""

from dataclasses import dataclass, replace
from typing import Self

LAST_MEMENTO = "last"
"""What `Wish.selects` is for the last memento."""


@dataclass(frozen=True, slots=True)
class RoutingOptions:
    """Which archives to ask. Answers to equal wishes are the same answer.

    archives: the ids of the only archives to ask, also if they are off; None for all that are on.
    broadcast: whether to ask all of them, whatever their maps and filters say.
    top_k: how many to ask at most: those that most likely have the page.
    min_probability: how likely an archive must have the page to be asked, 0 to 1. Above 0, pages are missed that are
        held: it buys precision with recall.
    prefers: ids of archives that are asked and no others, if any of them may have the page; for a first try.
    selects: only the memento closest to this date is needed, 14 digits, or the last one (`LAST`); None for all
        mementos. Archives that have a TimeGate are queried by it then.
    """

    archives: frozenset[str] | None = None
    broadcast: bool = False
    top_k: int | None = None
    min_probability: float = 0.0
    preferred: frozenset[str] | None = None
    closest_to: str | None = None

    @property
    def for_all_mementos(self) -> Self:
        """The same wish for all mementos."""
        return self if self.closest_to is None else replace(self, closest_to=None)

    @property
    def needs_likelihood(self) -> bool:
        """Whether it matters how likely an archive has the page, and not only whether it may."""
        return self.top_k is not None or self.min_probability > 0


@dataclass(frozen=True, slots=True)
class CacheControl:
    """Whether an answer that was kept will do.

    no_cache: nothing that was kept will do; what comes is kept.
    only_if_cached: no archive is to be asked.
    """

    no_cache: bool = False
    only_if_cached: bool = False
