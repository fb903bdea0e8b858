"""Configurations that a routing evaluation compares, and their results for one or more archives."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Literal

from unlost.mementomap.budget import MapBudget
from unlost.mementomap.compact import NO_LIMIT
from unlost.mementomap.readers import InputReport
from unlost.statistics import Proportion

WEIGHTS = (4.0, 2.0, 1.0, 0.5, 0.25, 0.0)
"""Weights of the MementoMap paper's evaluation."""
WEIGHT_PAIRS: tuple[tuple[float, float], ...] = tuple(product(WEIGHTS, WEIGHTS))
"""All 36 pairs of host and path weights, as in that evaluation."""
ConfigurationFamily = Literal["keys", "policy", "weights", "filter", "budget", "both"]


@dataclass(frozen=True, slots=True)
class RoutingConfiguration:
    """A way to describe an archive's holdings.

    Attributes:
        weights: Host and path weights; infinite weights roll up nothing.
        budget: Size budget that replaces the weights.
        bits: Bits per key of an additional filter; 0 for none.
        divides_budget: Whether the budget is divided between map and filter.
        policy: Policy of a profile that replaces the map.
        min_probability: Minimum estimated probability for a query to be routed; above 0 it trades recall for precision.
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
        """Whether frequencies give a likelihood for each key: in profiles, and in maps without filter or budget."""
        return self.budget is None and not self.bits

    @property
    def family(self) -> ConfigurationFamily:
        """Family for tables and colours.

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
    """Return the configurations to evaluate: the full map, profiles, weighted maps, host maps with a filter, budgets.

    Args:
        weights: Pairs of host and path weights.
        bits: Bits per key of filters.
        budgets: Size budgets.
        with_filter: Whether budgets are divided between map and filter.
        policies: Policies of profiles.
        min_probabilities: Thresholds; for each, the ranked configurations are repeated.

    >>> [one.name for one in list_configurations([(4, 1)], [8], [MapBudget.parse("9KB")])]
    ['all keys', 'weights 4,1', 'hosts + 8 bits', 'budget 9000 bytes']
    >>> [one.name for one in list_configurations(policies=["DDom"], min_probabilities=[0.05])]
    ['all keys', 'policy DDom', 'all keys, p >= 0.05', 'policy DDom, p >= 0.05']
    """
    configurations = [
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
    ranked = [one for one in configurations if one.is_ranked]
    return configurations + [
        replace(one, name=f"{one.name}, p >= {minimum:g}", min_probability=minimum)
        for minimum in min_probabilities
        for one in ranked
    ]


@dataclass(frozen=True, slots=True)
class ConfigurationSize:
    """Size of a configuration.

    Attributes:
        lines: Rows of the map or profile, without header and total.
        bytes: Size of map and filter together.
        compressed: Compressed size; filters are counted uncompressed.
        bits: Bits per key of the filter.
    """

    lines: int
    bytes: int
    compressed: int
    bits: int = 0


@dataclass(frozen=True, slots=True)
class RoutingResult:
    """Result of one configuration for one archive.

    Attributes:
        keys: Keys of the index, the baseline: pages, or whole URLs (URI-Rs) if these are the ground truth.
        query_count: Number of queries.
        predicted: Queries for which the archive would be queried.
        present: Predicted queries that are held.
        held: Queries that are held.
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
        """Relative cost as in the papers: lines per key of the baseline."""
        return self.size.lines / self.keys if self.keys else 0.0

    @property
    def precision(self) -> Proportion:
        """Share of the predicted queries that are held."""
        return Proportion(self.present, self.predicted)

    @property
    def recall(self) -> Proportion:
        """Share of the held queries that are predicted; 1 unless a minimum probability applies."""
        return Proportion(self.present, self.held)

    @property
    def accuracy(self) -> Proportion:
        """Share of correct predictions."""
        wrong = (self.predicted - self.present) + (self.held - self.present)
        return Proportion(self.query_count - wrong, self.query_count)

    def to_row(self) -> dict[str, object]:
        """Return the row for JSON and CSV."""
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
        for name, proportion in (("precision", self.precision), ("accuracy", self.accuracy), ("recall", self.recall)):
            low, high = proportion.interval()
            row |= {name: proportion.value, f"{name}_count": proportion.count, f"{name}_of": proportion.total}
            row |= {f"{name}_low": low, f"{name}_high": high}
        return row


@dataclass(slots=True)
class ArchiveEvaluation:
    """Results of one archive.

    Attributes:
        archive: Archive name; empty if there is only one.
        index_report: Report on the lines of the index.
        query_report: Report on the lines of the query logs.
        false_negatives: Configuration and key of a held query that was not predicted, at most one per configuration.
    """

    archive: str = ""
    results: list[RoutingResult] = field(default_factory=list)
    index_report: InputReport = field(default_factory=InputReport)
    query_report: InputReport = field(default_factory=InputReport)
    false_negatives: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class UpstreamLoad:
    """Requests to all archives together, if each is queried according to its configuration.

    Attributes:
        broadcast: Requests without routing.
        routed: Requests with routing.
        present: Routed requests that find something.
        compressed: Bytes of all maps, profiles and filters.
    """

    configuration: RoutingConfiguration
    broadcast: int
    routed: int
    present: int
    compressed: int

    @property
    def saved(self) -> Proportion:
        """Share of requests saved."""
        return Proportion(self.broadcast - self.routed, self.broadcast)

    def to_row(self) -> dict[str, object]:
        """Return the row for JSON."""
        return {
            "configuration": self.configuration.name,
            "broadcast": self.broadcast,
            "asked": self.routed,
            "present": self.present,
            "saved": self.saved.value,
            "compressed": self.compressed,
        }


def upstream_loads(evaluations: Sequence[ArchiveEvaluation]) -> list[UpstreamLoad]:
    """Return the load of each configuration over all archives."""
    return [
        UpstreamLoad(
            results[0].configuration,
            sum(each.query_count for each in results),
            sum(each.predicted for each in results),
            sum(each.present for each in results),
            sum(each.size.compressed for each in results),
        )
        for results in zip(*(each.results for each in evaluations), strict=True)
    ]


def pareto_optimal_results(results: Sequence[RoutingResult]) -> list[RoutingResult]:
    """Return the Pareto-optimal results by compressed size and accuracy, smallest first. The first of equals wins."""
    front: list[RoutingResult] = []
    for each in sorted(results, key=lambda one: (one.size.compressed, -(one.accuracy.value or 0.0))):
        if not front or (each.accuracy.value or 0.0) > (front[-1].accuracy.value or 0.0):
            front.append(each)
    return front
