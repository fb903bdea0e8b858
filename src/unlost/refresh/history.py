"""All pairs of consecutive visits of a log, counted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from unlost._core import VisitHistory, VisitPairing
from unlost.refresh.intervals import Clustered, Interval, wilson
from unlost.refresh.matrix import Matrix
from unlost.refresh.scheduling import ChangeRate, change_rate
from unlost.refresh.visit import Row, Visit

_AT_ONCE = 4096
_TIMES = 500  # hosts are drawn anew: the ends of 95 % then lie on the 12 outermost draws
FEWEST_HOSTS = 20  # with fewer, some kinds of hosts are not there, and a host has nobody to be compared with


@dataclass(frozen=True, slots=True)
class Host:
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
    matrix: Matrix


class History:
    """The pairs of a log. Made by `Reading.finish` of `unlost.refresh.reading`, or `of` visits.

    tally: what became of the visits, by name: `successful`, `not_modified`, `failed`, `without_digest` (skipped),
        `without_host` make up all of them; `duplicate` and `out_of_order` are of the successful ones; `tagged`, `dated`
        how many of these had the header; `pages`, `pairs`, `hosts`.

    With by_text, a change is one of the text, wherever the log knows that of both visits.
    """

    def __init__(self, core: VisitHistory) -> None:
        self.core = core
        self.tally = dict(core.tally())

    @classmethod
    def of(cls, visits: Iterable[Visit]) -> "History":
        """Return the history of visits, in whatever order.

        >>> same = [Visit("http://a.example/", "x", etag='"1"', time=time) for time in (0, 5, 9)]
        >>> History.of(same).matrix().unchanged
        (0, 0, 0, 0, 0, 0, 0, 2, 0)
        """
        return cls.of_rows(visit.row for visit in visits)

    @classmethod
    def of_rows(cls, rows: Iterable[Row]) -> "History":
        """Return the same of rows."""
        pairing = VisitPairing()
        rest = iter(rows)
        while batch := list(islice(rest, _AT_ONCE)):
            pairing.add_rows(batch)
        return cls(pairing.finish())

    @property
    def visits(self) -> int:
        """All visits of the log."""
        return sum(
            self.tally[name] for name in ("successful", "not_modified", "failed", "without_digest", "without_host")
        )

    def matrix(self, *, by_text: bool = False) -> Matrix:
        """Return the decision matrix."""
        return Matrix.of(self.core.matrix(by_text))

    def hosts(self, *, by_text: bool = False) -> Iterator[Host]:
        """Yield all hosts, in the order in which they came first."""
        for first in range(0, self.tally["hosts"], _AT_ONCE):
            for name, visits, tagged, dated, server, cells in self.core.hosts(first, first + _AT_ONCE, by_text):
                yield Host(name, visits, tagged, dated, server, Matrix.of(cells))

    def seen(self, bits: int, since: int, *, by_text: bool = False) -> Iterator[tuple[str, dict[int, tuple[int, int]]]]:
        """Yield what each host with pairs did, as a policy has it: of pairs before a time only those that changed.

        bits: indicators, as `unlost.refresh.cells.bits_of` has them. since: seconds since 1970.
        """
        for first in range(0, self.tally["hosts"], _AT_ONCE):
            for name, groups in self.core.seen(first, first + _AT_ONCE, by_text, bits, since):
                if groups:
                    yield name, dict(groups)

    def rates(self, *, by_text: bool = False) -> Iterator[ChangeRate | None]:
        """Yield how often the pages of each host change, in the order of `hosts`; None where no page was seen twice."""
        for number in range(self.tally["hosts"]):
            yield change_rate(self.core.intervals(number, by_text))

    def resampled(
        self, schemes: Iterable[int], seed: int, *, by_text: bool = False, times: int = _TIMES
    ) -> list[Interval]:
        """Return between which shares the reliability of schemes lies if other hosts are visited: a bootstrap by host.

        With fewer than 20 hosts, which tell nothing of others, it is as if pages were independent.
        """
        found = []
        for one in self.core.resample(by_text, list(schemes), times, seed):
            part, whole, part_squared, product, whole_squared, hosts, deviations = one
            missed = Clustered(part, whole, part_squared, product, whole_squared, hosts)
            span = missed.by_draws(deviations) if hosts >= FEWEST_HOSTS else wilson(missed.part, missed.whole)
            found.append(Interval(1 - span.high, 1 - span.low))
        return found

    def tags_by_server(self) -> list[tuple[str | None, tuple[int, int, int]]]:
        """Return how many hosts of each server send a tag always, sometimes and never; the most frequent server first.

        Hosts without a `Server` header stand under None.
        """
        rows = [(server, (counts[0], counts[1], counts[2])) for server, counts in self.core.tags_by_server()]
        return sorted(rows, key=lambda row: (-sum(row[1]), row[0] or ""))
