"""The change history of a log: counted pairs of consecutive visits, and the hosts whose headers are unreliable."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from unlost._core import VisitHistory, VisitPairer
from unlost.refresh.confidence import (
    ChangeRate,
    ClusteredShare,
    ConfidenceInterval,
    estimate_change_rate,
    wilson_confidence,
)
from unlost.refresh.decision_matrix import DecisionMatrix
from unlost.refresh.visit import Visit, VisitRow

_BATCH_SIZE = 4096
_BOOTSTRAP_SAMPLES = 500  # the 2.5 % tails have 12 samples each
MIN_HOSTS = 20  # fewer hosts are not representative of others

# Added visits of a reliable host: 3 false claims of 3 are not a pattern yet (3/8), 15 of 15 are (15/20).
_HONEST_PRIOR = 5.0
_MIN_FALSE_RATE = 0.5


@dataclass(frozen=True, slots=True)
class HostHistory:
    """History of one host.

    Attributes:
        name: Host with port, in lower case.
        visits: Number of successful visits.
        tagged: Number of these with ETag.
        dated: Number of these with Last-Modified.
        server: Last value of the Server header without version; None if there was none.
        matrix: Decision matrix of the host's pairs.
    """

    name: str
    visits: int
    tagged: int
    dated: int
    server: str | None
    matrix: DecisionMatrix


class ChangeHistory:
    """The visit pairs of a log; created by `VisitLogReader.build_history` or `from_visits`.

    With `by_text`, methods count a change of the visible text instead of bytes, where the log has it for both visits.

    Attributes:
        visit_stats: Counts of visits. `successful`, `not_modified`, `failed`, `without_digest` (skipped) and
            `without_host` add up to all visits; `duplicate` and `out_of_order` are parts of `successful`; `tagged` and
            `dated` are successful visits with the header; further `pages`, `pairs` and `hosts`.
    """

    def __init__(self, core: VisitHistory) -> None:
        self.core = core
        self.visit_stats = dict(core.visit_stats())

    @classmethod
    def from_visits(cls, visits: Iterable[Visit]) -> "ChangeHistory":
        """Return the history of visits, in any order.

        >>> same = [Visit("http://a.example/", "x", etag='"1"', time=time) for time in (0, 5, 9)]
        >>> ChangeHistory.from_visits(same).matrix().unchanged
        (0, 0, 0, 0, 0, 0, 0, 2, 0)
        """
        return cls.from_rows(visit.row for visit in visits)

    @classmethod
    def from_rows(cls, rows: Iterable[VisitRow]) -> "ChangeHistory":
        """Return the history of visits given as rows."""
        pairer = VisitPairer()
        iterator = iter(rows)
        while batch := list(islice(iterator, _BATCH_SIZE)):
            pairer.add_rows(batch)
        return cls(pairer.finish())

    @property
    def visits(self) -> int:
        """Number of all visits in the log."""
        return sum(
            self.visit_stats[name]
            for name in ("successful", "not_modified", "failed", "without_digest", "without_host")
        )

    def matrix(self, *, by_text: bool = False) -> DecisionMatrix:
        """Return the decision matrix of all pairs."""
        return DecisionMatrix.from_pairs(self.core.matrix(by_text))

    def hosts(self, *, by_text: bool = False) -> Iterator[HostHistory]:
        """Yield all hosts in the order of their first visits."""
        for first in range(0, self.visit_stats["hosts"], _BATCH_SIZE):
            for name, visits, tagged, dated, server, cells in self.core.hosts(first, first + _BATCH_SIZE, by_text):
                yield HostHistory(name, visits, tagged, dated, server, DecisionMatrix.from_pairs(cells))

    def host_changes(
        self, bits: int, since: int, *, by_text: bool = False
    ) -> Iterator[tuple[str, dict[int, tuple[int, int]]]]:
        """Yield the changes of each host as a policy stores them. Of pairs before `since`, only changed ones count.

        Args:
            bits: Indicators, as from `decision_matrix.indicator_bits`.
            since: Seconds since 1970.
            by_text: Whether to count changes of the visible text.
        """
        for first in range(0, self.visit_stats["hosts"], _BATCH_SIZE):
            for name, groups in self.core.host_groups(first, first + _BATCH_SIZE, by_text, bits, since):
                if groups:
                    yield name, dict(groups)

    def change_rates(self, *, by_text: bool = False) -> Iterator[ChangeRate | None]:
        """Yield the change rate of each host's pages in the order of `hosts`; None if no page was visited twice."""
        for number in range(self.visit_stats["hosts"]):
            yield estimate_change_rate(self.core.intervals(number, by_text))

    def bootstrap_reliability(
        self, schemes: Iterable[int], seed: int, *, by_text: bool = False, samples: int = _BOOTSTRAP_SAMPLES
    ) -> list[ConfidenceInterval]:
        """Return confidence intervals of the reliability of schemes on other hosts, by a bootstrap over hosts.

        With fewer than `MIN_HOSTS` hosts, returns the intervals for independent pages.
        """
        intervals = []
        for sample in self.core.resample(by_text, list(schemes), samples, seed):
            part, whole, part_squared, product, whole_squared, hosts, deviations = sample
            missed = ClusteredShare(part, whole, part_squared, product, whole_squared, hosts)
            span = (
                missed.bootstrap_interval(deviations)
                if hosts >= MIN_HOSTS
                else wilson_confidence(missed.part, missed.whole)
            )
            intervals.append(ConfidenceInterval(1 - span.high, 1 - span.low))
        return intervals

    def tags_by_server(self) -> list[tuple[str | None, tuple[int, int, int]]]:
        """Return for each server how many hosts send an ETag always, sometimes and never, sorted by number of hosts.

        Hosts without Server header are listed under None.
        """
        rows = [(server, (counts[0], counts[1], counts[2])) for server, counts in self.core.tags_by_server()]
        return sorted(rows, key=lambda row: (-sum(row[1]), row[0] or ""))


@dataclass(frozen=True, slots=True)
class UnreliableHost:
    """A host whose indicator often stays the same although pages change.

    Attributes:
        host: Host with port, in lower case.
        indicator: `date` or `tag`.
        false_claims: Number of changed pages for which the indicator stayed the same.
        claims: Number of all pages for which it stayed the same.
        rate: Expected rate of false claims, shrunk towards that of reliable hosts.
    """

    host: str
    indicator: str
    false_claims: int
    claims: int
    rate: float

    @property
    def is_always_false(self) -> bool:
        """Whether all claims were false."""
        return self.false_claims == self.claims


def find_unreliable_hosts(history: ChangeHistory, *, by_text: bool = False) -> list[UnreliableHost]:
    """Return the hosts whose claims are more likely false than true, those with the most false claims first."""
    unreliable = []
    for host, (false_dates, date_claims, false_tags, tag_claims) in history.core.lying_hosts(by_text):
        for indicator, false_claims, claims in (("date", false_dates, date_claims), ("tag", false_tags, tag_claims)):
            rate = false_claims / (claims + _HONEST_PRIOR)
            if rate > _MIN_FALSE_RATE:
                unreliable.append(UnreliableHost(host, indicator, false_claims, claims, rate))
    return sorted(unreliable, key=lambda entry: (-entry.false_claims, entry.host, entry.indicator))
