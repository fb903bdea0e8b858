"""Configurations that a routing evaluation compares, and their results for one archive and for several."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal

from unlost.mementomap.budget import MapBudget
from unlost.mementomap.compact import NO_LIMIT
from unlost.mementomap.readers import InputReport
from unlost.statistics import Proportion

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

        >>> [one.family for one in list_configurations([(4, 1)], [8], policies=["DDom"])]
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

    >>> [one.name for one in list_configurations([(4, 1)], [8], [MapBudget.parse("9KB")])]
    ['all keys', 'weights 4,1', 'hosts + 8 bits', 'budget 9000 bytes']

    min_probabilities: profiles and maps by weights again for each, asked only where it is that likely.

    >>> [one.name for one in list_configurations(policies=["DDom"], min_probabilities=[0.05])]
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


@dataclass(frozen=True, slots=True)
class ConfigurationSize:
    """What a configuration costs.

    lines: of map or profile, total and headers not counted. bytes, compressed: of map and filter together; a filter
    does not compress. bits: of the filter for each key.
    """

    lines: int
    bytes: int
    compressed: int
    bits: int = 0


@dataclass(frozen=True, slots=True)
class RoutingResult:
    """What came of one configuration.

    keys: of the index, which are the baseline: pages, or whole addresses (URI-Rs) where those are what is asked for.
    predicted: questions for which the archive would be asked. present: those of them that it holds. held: questions for
    what it holds.
    """

    configuration: RoutingConfiguration
    keys: int
    size: ConfigurationSize
    query_count: int
    predicted: int
    present: int
    held: int

    @property
    def cost(self) -> float:
        """Relative cost, as the papers have it: lines for each key of the baseline."""
        return self.size.lines / self.keys if self.keys else 0.0

    @property
    def precision(self) -> Proportion:
        """How many of the predicted are present."""
        return Proportion(self.present, self.predicted)

    @property
    def recall(self) -> Proportion:
        """How many of the present were predicted: all, or something is broken."""
        return Proportion(self.present, self.held)

    @property
    def accuracy(self) -> Proportion:
        """How many questions were answered rightly, either way."""
        wrong = (self.predicted - self.present) + (self.held - self.present)
        return Proportion(self.query_count - wrong, self.query_count)

    def to_row(self) -> dict[str, object]:
        """Return all of it as JSON and CSV have it."""
        row: dict[str, object] = {
            "configuration": self.configuration.name,
            "keys": self.keys,
            "lines": self.size.lines,
            "bytes": self.size.bytes,
            "compressed": self.size.compressed,
            "filter_bits": self.size.bits,
            "relative_cost": self.cost,
            "questions": self.query_count,
            "held": self.held,
            "predicted": self.predicted,
            "present": self.present,
        }
        for name, share in (("precision", self.precision), ("accuracy", self.accuracy), ("recall", self.recall)):
            low, high = share.interval()
            row |= {name: share.value, f"{name}_count": share.count, f"{name}_of": share.total}
            row |= {f"{name}_low": low, f"{name}_high": high}
        return row


@dataclass(slots=True)
class ArchiveEvaluation:
    """All results of one archive, what became of the lines of index and questions, and what was missed.

    archive: its name; empty if there is but one. missed: the configuration and the key of each question that was
    denied although the page is held; at most one for each configuration.
    """

    archive: str = ""
    results: list[RoutingResult] = field(default_factory=list)
    index_report: InputReport = field(default_factory=InputReport)
    query_report: InputReport = field(default_factory=InputReport)
    false_negatives: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UpstreamLoad:
    """What several archives are asked in all, if each is asked for what its configuration predicts.

    broadcast: requests if everybody were asked everything. asked: requests that are left. present: those of them that
    find something. compressed: bytes of all the maps, profiles and filters.
    """

    configuration: RoutingConfiguration
    broadcast: int
    routed: int
    present: int
    compressed: int

    @property
    def saved(self) -> Proportion:
        """How many requests need not be made."""
        return Proportion(self.broadcast - self.routed, self.broadcast)

    def to_row(self) -> dict[str, object]:
        """Return all of it as JSON has it."""
        return {
            "configuration": self.configuration.name,
            "broadcast": self.broadcast,
            "asked": self.routed,
            "present": self.present,
            "saved": self.saved.value,
            "compressed": self.compressed,
        }


def upstream_loads(evaluations: Sequence[ArchiveEvaluation]) -> list[UpstreamLoad]:
    """Return for each configuration what all archives together are asked."""
    return [
        UpstreamLoad(
            together[0].configuration,
            sum(each.query_count for each in together),
            sum(each.predicted for each in together),
            sum(each.present for each in together),
            sum(each.size.compressed for each in together),
        )
        for together in zip(*(each.results for each in evaluations), strict=True)
    ]


def pareto_front(results: Sequence[RoutingResult]) -> list[RoutingResult]:
    """Return those that none of the others beats: none is as small and more accurate, or smaller and as accurate.

    The smallest first. Of equals, the first counts.
    """
    best: list[RoutingResult] = []
    for each in sorted(results, key=lambda one: (one.size.compressed, -(one.accuracy.value or 0.0))):
        if not best or (each.accuracy.value or 0.0) > (best[-1].accuracy.value or 0.0):
            best.append(each)
    return best
