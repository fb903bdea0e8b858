"""What is tried: profiles by policies, maps by weights or to a budget, filters beside them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from unlost.holdings.budget import Budget
from unlost.holdings.compaction import NO_LIMIT

WEIGHTS = (4.0, 2.0, 1.0, 0.5, 0.25, 0.0)
"""Of the second paper's evaluation; it tries every pair of them."""

PAIRS: tuple[tuple[float, float], ...] = tuple(product(WEIGHTS, WEIGHTS))
"""Weights of hosts and paths: all 36."""

Family = Literal["keys", "policy", "weights", "filter", "budget", "both"]


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to say what an archive holds.

    weights: of hosts and paths; infinite rolls nothing up. budget: in their place. bits: of the filter for each key; 0
    for none. divides: the budget's bytes are divided between map and filter. policy: a profile in the place of a map.
    """

    name: str
    weights: tuple[float, float] = (NO_LIMIT, NO_LIMIT)
    budget: Budget | None = None
    bits: int = 0
    divides: bool = False
    policy: str | None = None

    @property
    def family(self) -> Family:
        """What it is one of, for tables and colours.

        >>> [one.family for one in configurations([(4, 1)], [8], policies=["DDom"])]
        ['keys', 'policy', 'weights', 'filter']
        """
        if self.policy is not None:
            return "policy"
        if self.budget is not None:
            return "both" if self.divides else "budget"
        if self.bits:
            return "filter"
        return "keys" if self.weights == (NO_LIMIT, NO_LIMIT) else "weights"


def configurations(
    weights: Iterable[tuple[float, float]] = (),
    bits: Sequence[int] = (),
    budgets: Sequence[Budget] = (),
    *,
    with_filter: bool = False,
    policies: Sequence[str] = (),
) -> list[Configuration]:
    """Return what to try: the map as it is, profiles, a map for each pair of weights, filters beside hosts, budgets.

    >>> [one.name for one in configurations([(4, 1)], [8], [Budget.parse("9KB")])]
    ['all keys', 'weights 4,1', 'hosts + 8 bits', 'budget 9000 bytes']
    """
    return [
        Configuration("all keys"),
        *(Configuration(f"policy {one}", policy=one) for one in policies),
        *(Configuration(f"weights {host:g},{path:g}", (host, path)) for host, path in weights),
        *(Configuration(f"hosts + {one} bits", (NO_LIMIT, 0.0), bits=one) for one in bits),
        *(
            Configuration(
                f"budget {one.size} {one.unit}{' + filter' if with_filter else ''}", budget=one, divides=with_filter
            )
            for one in budgets
        ),
    ]
