"""How a crawl ended."""

from collections.abc import Mapping
from dataclasses import dataclass

from unlost.crawl.resource import CrawlOutcome


@dataclass(frozen=True, slots=True)
class CrawlResult:
    """What a run leaves.

    counts: how many addresses ended how, over all runs. queued: how many are still to be visited.
    left_out: how many links were not followed, by the reason; those to other sites are not counted.
    waiting: hosts that said to come back later, and when, in seconds since 1970.
    unreachable: how many addresses are forbidden only since robots.txt could not be had.
    limit: which limit of the plan ended it: `resources` or `bytes`; None if none did.
    is_stopped: whether somebody stopped it.
    """

    counts: Mapping[CrawlOutcome, int]
    queued: int
    excluded_links: Mapping[str, int]
    suspended_hosts: Mapping[str, float]
    robots_unreachable: int
    limit: str | None
    is_stopped: bool

    @property
    def is_done(self) -> bool:
        """Whether another run would find nothing to do, unless the plan's limits are raised."""
        return not self.is_stopped and not self.suspended_hosts and not self.robots_unreachable
