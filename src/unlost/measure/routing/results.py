"""What came of each configuration, for one archive and for several together."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from unlost.holdings.report import InputReport
from unlost.measure.intervals import Proportion
from unlost.measure.routing.configurations import RoutingConfiguration


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
            sum(each.questions for each in together),
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
