"""Results of one recovery, in numbers."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from unlost.comparison import ResourceCounts, SiteDifference, success_levels

RecoveredCount = tuple[int, int]
"""Number of original files, and how many of them were recovered."""


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """Result of the recovery of one site.

    Attributes:
        site: Name of the site.
        week: Week of the loss.
        policy: Recovery policy.
        archives: Archives that were queried.
        counts: Identical, changed, missing and added resources.
        similar: Changed texts that are almost identical.
        texts: Changed texts.
        held: Missing resources that an archive is known to hold.
        groups: Counts by HTML, images and other.
        queries: Counts by URLs with and without `?`.
        depths: Counts by path depth, up to three and deeper.
        resources_by_archive: Recovered resources of each archive, including added ones.
        requests_by_archive: Requests to each archive.
    """

    site: str
    week: int
    policy: str
    archives: tuple[str, ...]
    counts: ResourceCounts
    similar: int = 0
    texts: int = 0
    held: int = 0
    groups: Mapping[str, RecoveredCount] = field(default_factory=dict)
    queries: Mapping[str, RecoveredCount] = field(default_factory=dict)
    depths: Mapping[str, RecoveredCount] = field(default_factory=dict)
    resources_by_archive: Mapping[str, int] = field(default_factory=Counter)
    requests_by_archive: Mapping[str, int] = field(default_factory=Counter)

    @property
    def difference(self) -> SiteDifference:
        """The difference vector."""
        return SiteDifference.of(self.counts)

    @property
    def levels(self) -> tuple[float, ...]:
        """Success on the five levels, s1 to s5; lower is better."""
        return tuple(each.success for each in success_levels(self.counts, self.similar, self.held))

    @property
    def recovered(self) -> float:
        """Share of the original that was recovered, changed or not."""
        return self.counts.back / self.counts.original

    @property
    def total_requests(self) -> int:
        """Requests to all archives."""
        return sum(self.requests_by_archive.values())

    @property
    def efficiency(self) -> float:
        """Recovered resources per request, including added ones."""
        return self.counts.recovered / self.total_requests if self.total_requests else 0.0

    @property
    def efficiency_without_added(self) -> float:
        """Recovered resources of the original per request."""
        return self.counts.back / self.total_requests if self.total_requests else 0.0
