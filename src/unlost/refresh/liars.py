"""Hosts whose headers say that nothing changed when something did."""

from collections.abc import Iterable
from dataclasses import dataclass

from unlost.refresh.history import Host
from unlost.refresh.matrix import CELLS

_PRIOR = 5.0  # visits of an honest host: 3 lies of 3 are not yet believed to be a habit (3/8), 15 of 15 are (15/20)
_HABIT = 0.5  # more often wrong than right


@dataclass(frozen=True, slots=True)
class Liar:
    """A host whose indicator stays the same when pages change.

    indicator: `date` or `tag`. lies, claims: how many pages had changed, of how many with an indicator that was the same.
    rate: the share of lies to be expected, drawn towards that of honest hosts.
    """

    host: str
    indicator: str
    lies: int
    claims: int
    rate: float

    @property
    def always(self) -> bool:
        """Whether every claim was a lie."""
        return self.lies == self.claims


def liars_of(hosts: Iterable[Host]) -> list[Liar]:
    """Return the hosts that more likely than not lie out of habit, those with the most lies first."""
    found = []
    for host in hosts:
        for indicator, place in (("date", 0), ("tag", 1)):
            claims = [at for at, cell in enumerate(CELLS) if cell[place] == "s"]
            lies = sum(host.matrix.changed[at] for at in claims)
            if not lies:
                continue
            total = lies + sum(host.matrix.unchanged[at] for at in claims)
            rate = lies / (total + _PRIOR)
            if rate > _HABIT:
                found.append(Liar(host.name, indicator, lies, total, rate))
    return sorted(found, key=lambda one: (-one.lies, one.host, one.indicator))
