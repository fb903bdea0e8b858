"""Hosts whose headers say that nothing changed when something did."""

from dataclasses import dataclass

from unlost.refresh.history import ChangeHistory

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
