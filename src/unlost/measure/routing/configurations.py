"""What is tried: profiles by policies, maps by weights or to a budget, filters beside them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from unlost.holdings.budget import MapBudget
from unlost.holdings.compaction import NO_LIMIT

WEIGHTS = (4.0, 2.0, 1.0, 0.5, 0.25, 0.0)
"""Of the second paper's evaluation; it tries every pair of them."""

WEIGHT_PAIRS: tuple[tuple[float, float], ...] = tuple(product(WEIGHTS, WEIGHTS))
"""Weights of hosts and paths: all 36."""

ConfigurationFamily = Literal["keys", "policy", "weights", "filter", "budget", "both"]


@dataclass(frozen=True, slots=True)
class RoutingConfiguration:
    """One way to say what an archive holds.

    weights: of hosts and paths; infinite rolls nothing up. budget: in their place. bits: of the filter for each key; 0
    for none. divides: the budget's bytes are divided between map and filter. policy: a profile in the place of a map.
    min_probability: how likely what is predicted must be held; above 0, recall is given away for precision.
    """

    name: str
    weights: tuple[float, float] = (NO_LIMIT, NO_LIMIT)
    budget: MapBudget | None = None
    bits: int = 0
    divides_budget: bool = False
    policy: str | None = None
    min_probability: float = 0.0

    @property
    def is_ranked(self) -> bool:
        """Whether frequencies tell how likely something is held: they do in profiles and in maps without filters."""
        return self.budget is None and not self.bits

    @property
    def family(self) -> ConfigurationFamily:
        """What it is one of, for tables and colours.

        >>> [one.family for one in configurations([(4, 1)], [8], policies=["DDom"])]
        ['keys', 'policy', 'weights', 'filter']
        """
        if self.policy is not None:
            return "policy"
        if self.budget is not None:
            return "both" if self.divides_budget else "budget"
        if self.bits:
            return "filter"
        return "keys" if self.weights == (NO_LIMIT, NO_LIMIT) else "weights"


def list_configurations(
    weights: Iterable[tuple[float, float]] = (),
    bits: Sequence[int] = (),
    budgets: Sequence[MapBudget] = (),
    *,
    with_filter: bool = False,
    policies: Sequence[str] = (),
    min_probabilities: Sequence[float] = (),
) -> list[RoutingConfiguration]:
    """Return what to try: the map as it is, profiles, a map for each pair of weights, filters beside hosts, budgets.

    >>> [one.name for one in configurations([(4, 1)], [8], [Budget.parse("9KB")])]
    ['all keys', 'weights 4,1', 'hosts + 8 bits', 'budget 9000 bytes']

    min_probabilities: profiles and maps by weights again for each, asked only where it is that likely.

    >>> [one.name for one in configurations(policies=["DDom"], min_probabilities=[0.05])]
    ['all keys', 'policy DDom', 'all keys, p >= 0.05', 'policy DDom, p >= 0.05']
    """
    tried = [
        RoutingConfiguration("all keys"),
        *(RoutingConfiguration(f"policy {one}", policy=one) for one in policies),
        *(RoutingConfiguration(f"weights {host:g},{path:g}", (host, path)) for host, path in weights),
        *(RoutingConfiguration(f"hosts + {one} bits", (NO_LIMIT, 0.0), bits=one) for one in bits),
        *(
            RoutingConfiguration(
                f"budget {one.size} {one.unit}{' + filter' if with_filter else ''}",
                budget=one,
                divides_budget=with_filter,
            )
            for one in budgets
        ),
    ]
    ranked = [one for one in tried if one.is_ranked]
    return tried + [
        replace(one, name=f"{one.name}, p >= {least:g}", min_probability=least)
        for least in min_probabilities
        for one in ranked
    ]
