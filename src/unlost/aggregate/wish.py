"""Which archives somebody wants to be asked, and how fresh the answer must be."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wish:
    """Which archives to ask. Answers to equal wishes are the same answer.

    archives: the ids of the only archives to ask, also if they are off; None for all that are on.
    broadcast: whether to ask all of them, whatever their maps and filters say.
    top_k: how many to ask at most: those that most likely have the page.
    """

    archives: frozenset[str] | None = None
    broadcast: bool = False
    top_k: int | None = None


@dataclass(frozen=True, slots=True)
class Freshness:
    """Whether an answer that was kept will do.

    no_cache: nothing that was kept will do; what comes is kept.
    only_if_cached: no archive is to be asked.
    """

    no_cache: bool = False
    only_if_cached: bool = False
