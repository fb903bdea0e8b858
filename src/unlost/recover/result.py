"""How a run of a recovery ended."""

from collections.abc import Mapping
from dataclasses import dataclass

from unlost.recover.doors import Closing
from unlost.recover.state.resources import Standing


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended.

    counts: resources by standing. closed: archives that are not asked for now, and why.
    unlisted: archives whose list is not whole, and why; those that have no lists are not among them.
    failed: how many resources are missing since an archive failed, and may be had another time.
    trapped: links that were not followed, by reason.
    is_stopped: whether somebody stopped it.
    is_enough: whether there is as much as the plan allows: the same plan recovers no more.
    """

    counts: Mapping[Standing, int]
    closed: Mapping[str, Closing]
    unlisted: Mapping[str, str]
    failed: int
    trapped: Mapping[str, int]
    is_stopped: bool
    is_enough: bool

    @property
    def is_done(self) -> bool:
        """Return whether there is nothing left to do."""
        return not (self.counts[Standing.QUEUED] or self.closed or self.unlisted or self.failed)
