"""How a run of a recovery ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from unlost.recover.doors import Suspension
from unlost.recover.state.resources import ResourceStatus


@dataclass(frozen=True, slots=True)
class RecoveryRunResult:
    """How a run ended.

    counts: resources by standing. closed: archives that are not asked for now, and why.
    unlisted: archives whose list is not whole, and why; those that have no lists are not among them.
    failed: how many resources are missing since an archive failed, and may be had another time.
    trapped: links that were not followed, by reason.
    is_stopped: whether somebody stopped it.
    is_enough: whether there is as much as the plan allows: the same plan recovers no more.
    doubtful: how many of the recovered resources have no capture but one that the quality verdict speaks against.
    left_out: listed resources that are not fetched, by the reason.
    session_ids: listed URLs with a session id, which were taken for the URL without it.
    unlistable: archives that cannot list all they hold, and why: `unsupported` or `cut`.
    unconfirmed: how many listed resources wait for a confirmation, since there are so many.
    other_host_lookups: queries for resources of other hosts, over all runs.
    """

    counts: Mapping[ResourceStatus, int]
    suspended: Mapping[str, Suspension]
    unlisted: Mapping[str, str]
    failed: int
    skipped_links: Mapping[str, int]
    is_stopped: bool
    has_reached_limit: bool
    doubtful: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    unlistable: Mapping[str, str] = field(default_factory=dict)
    unconfirmed: int = 0
    other_host_lookups: int = 0
    session_ids: int = 0

    @property
    def is_done(self) -> bool:
        """Return whether there is nothing left to do."""
        return not (
            self.counts[ResourceStatus.QUEUED] or self.suspended or self.unlisted or self.failed or self.unconfirmed
        )
