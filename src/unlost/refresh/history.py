"""The change history of a log: all pairs of consecutive visits, counted, and the hosts whose headers are unreliable."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from unlost._core import VisitHistory, VisitPairing
from unlost.refresh.change_rate import ChangeRate, estimate_change_rate
from unlost.refresh.confidence import ClusteredShare, ConfidenceInterval, wilson_interval
from unlost.refresh.decision_matrix import DecisionMatrix
from unlost.refresh.visit import Visit, VisitRow

_BATCH_SIZE = 4096
_BOOTSTRAP_SAMPLES = 500  # hosts are drawn anew: the ends of 95 % then lie on the 12 outermost draws
MIN_HOSTS = 20  # with fewer, some kinds of hosts are not there, and a host has nobody to be compared with


@dataclass(frozen=True, slots=True)
class HostHistory:
    """What a log has of one host.

    name: with its port, in lower case.
    visits, tagged, dated: successful visits; those with a tag, with a date.
    server: what its server called itself last, without a version; None if it did not.
    matrix: its own pairs.
    """

    name: str
    visits: int
    tagged: int
    dated: int
    server: str | None
    matrix: DecisionMatrix


class ChangeHistory:
    """The pairs of a log. Made by `Reading.finish` of `unlost.refresh.log_reader`, or `of` visits.

    tally: what became of the visits, by name: `successful`, `not_modified`, `failed`, `without_digest` (skipped),
        `without_host` make up all of them; `duplicate` and `out_of_order` are of the successful ones; `tagged`, `dated`
        how many of these had the header; `pages`, `pairs`, `hosts`.

    With by_text, a change is one of the text, wherever the log knows that of both visits.
    """

    def __init__(self, core: VisitHistory) -> None:
        self.core = core
        self.tally = dict(core.tally())

    @classmethod
    def from_visits(cls, visits: Iterable[Visit]) -> "ChangeHistory":
        """Return the history of visits, in whatever order.

        >>> same = [Visit("http://a.example/", "x", etag='"1"', time=time) for time in (0, 5, 9)]
        >>> History.of(same).matrix().unchanged
        (0, 0, 0, 0, 0, 0, 0, 2, 0)
        """
        return cls.from_rows(visit.row for visit in visits)

    @classmethod
    def from_rows(cls, rows: Iterable[VisitRow]) -> "ChangeHistory":
        """Return the same of rows."""
        pairing = VisitPairing()
        rest = iter(rows)
        while batch := list(islice(rest, _BATCH_SIZE)):
            pairing.add_rows(batch)
        return cls(pairing.finish())

    @property
    def visits(self) -> int:
        """All visits of the log."""
        return sum(
            self.tally[name] for name in ("successful", "not_modified", "failed", "without_digest", "without_host")
        )

    def matrix(self, *, by_text: bool = False) -> DecisionMatrix:
        """Return the decision matrix."""
        return DecisionMatrix.from_pairs(self.core.matrix(by_text))

    def hosts(self, *, by_text: bool = False) -> Iterator[HostHistory]:
        """Yield all hosts, in the order in which they came first."""
        for first in range(0, self.tally["hosts"], _BATCH_SIZE):
            for name, visits, tagged, dated, server, cells in self.core.hosts(first, first + _BATCH_SIZE, by_text):
                yield HostHistory(name, visits, tagged, dated, server, DecisionMatrix.from_pairs(cells))

    def host_changes(
        self, bits: int, since: int, *, by_text: bool = False
    ) -> Iterator[tuple[str, dict[int, tuple[int, int]]]]:
        """Yield what each host with pairs did, as a policy has it: of pairs before a time only those that changed.

        bits: indicators, as `unlost.refresh.decision_matrix.bits_of` has them. since: seconds since 1970.
        """
        for first in range(0, self.tally["hosts"], _BATCH_SIZE):
            for name, groups in self.core.seen(first, first + _BATCH_SIZE, by_text, bits, since):
                if groups:
                    yield name, dict(groups)

    def change_rates(self, *, by_text: bool = False) -> Iterator[ChangeRate | None]:
        """Yield how often the pages of each host change, in the order of `hosts`; None where no page was seen twice."""
        for number in range(self.tally["hosts"]):
            yield estimate_change_rate(self.core.intervals(number, by_text))

    def bootstrap_reliability(
        self, schemes: Iterable[int], seed: int, *, by_text: bool = False, samples: int = _BOOTSTRAP_SAMPLES
    ) -> list[ConfidenceInterval]:
        """Return between which shares the reliability of schemes lies if other hosts are visited: a bootstrap by host.

        With fewer than 20 hosts, which tell nothing of others, it is as if pages were independent.
        """
        found = []
        for one in self.core.resample(by_text, list(schemes), samples, seed):
            part, whole, part_squared, product, whole_squared, hosts, deviations = one
            missed = ClusteredShare(part, whole, part_squared, product, whole_squared, hosts)
            span = (
                missed.bootstrap_interval(deviations)
                if hosts >= MIN_HOSTS
                else wilson_interval(missed.part, missed.whole)
            )
            found.append(ConfidenceInterval(1 - span.high, 1 - span.low))
        return found

    def tags_by_server(self) -> list[tuple[str | None, tuple[int, int, int]]]:
        """Return how many hosts of each server send a tag always, sometimes and never; the most frequent server first.

        Hosts without a `Server` header stand under None.
        """
        rows = [(server, (counts[0], counts[1], counts[2])) for server, counts in self.core.tags_by_server()]
        return sorted(rows, key=lambda row: (-sum(row[1]), row[0] or ""))


_HONEST_PRIOR = (
    5.0  # visits of an honest host: 3 lies of 3 are not yet believed to be a habit (3/8), 15 of 15 are (15/20)
)
_MIN_FALSE_RATE = 0.5  # more often wrong than right


@dataclass(frozen=True, slots=True)
class UnreliableHost:
    """A host whose indicator stays the same when pages change.

    indicator: `date` or `tag`. lies, claims: how many pages had changed, of how many that it said the same of.
    rate: the share of lies to be expected, drawn towards that of honest hosts.
    """

    host: str
    indicator: str
    false_claims: int
    claims: int
    rate: float

    @property
    def is_always_false(self) -> bool:
        """Whether every claim was a lie."""
        return self.false_claims == self.claims


def find_unreliable_hosts(history: ChangeHistory, *, by_text: bool = False) -> list[UnreliableHost]:
    """Return the hosts that more likely than not lie out of habit, those with the most lies first."""
    found = []
    for host, (date_lies, date_claims, tag_lies, tag_claims) in history.core.lying(by_text):
        for indicator, lies, claims in (("date", date_lies, date_claims), ("tag", tag_lies, tag_claims)):
            rate = lies / (claims + _HONEST_PRIOR)
            if rate > _MIN_FALSE_RATE:
                found.append(UnreliableHost(host, indicator, lies, claims, rate))
    return sorted(found, key=lambda one: (-one.false_claims, one.host, one.indicator))
