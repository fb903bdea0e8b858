"""What came of one recovery, in numbers."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from unlost.comparison import ResourceCounts, SiteDifference, success_levels

Tally = tuple[int, int]
"""How many the original has, and how many of them came back."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of recovering one site.

    site: its name. week: in which it was lost. policy: by which it was recovered, and from which archives.
    counts: identical, changed, missing, added. similar: of changed texts, those that are almost identical.
    texts: the changed texts. held: of the missing, those that an archive is known to hold.
    groups: HTML, images and other. queries: addresses with and without `?`. depths: of paths, up to three and deeper.
    given: how many resources each archive gave, added ones too. requests: how many each was sent.
    """

    site: str
    week: int
    policy: str
    archives: tuple[str, ...]
    counts: ResourceCounts
    similar: int = 0
    texts: int = 0
    held: int = 0
    groups: Mapping[str, Tally] = field(default_factory=dict)
    queries: Mapping[str, Tally] = field(default_factory=dict)
    depths: Mapping[str, Tally] = field(default_factory=dict)
    given: Mapping[str, int] = field(default_factory=Counter)
    requests: Mapping[str, int] = field(default_factory=Counter)

    @property
    def difference(self) -> SiteDifference:
        """The difference vector."""
        return SiteDifference.of(self.counts)

    @property
    def levels(self) -> tuple[float, ...]:
        """The success on the five levels, s1 to s5; the lower, the better."""
        return tuple(each.success for each in success_levels(self.counts, self.similar, self.held))

    @property
    def recovered(self) -> float:
        """The share of the original that came back, changed or not."""
        return self.counts.back / self.counts.original

    @property
    def total_requests(self) -> int:
        """Requests to all archives."""
        return sum(self.requests.values())

    @property
    def efficiency(self) -> float:
        """Recovered resources for each request, added ones too."""
        return self.counts.recovered / self.total_requests if self.total_requests else 0.0

    @property
    def efficiency_without_added(self) -> float:
        """The same, of what the original has."""
        return self.counts.back / self.total_requests if self.total_requests else 0.0
