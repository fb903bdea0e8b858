"""What a recovery will cost: how many requests to which archive, and how long they take within its limits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from unlost.recover.fetcher import ResourceFetcher
from unlost.recover.planner import FetchCapture, QueryCaptures
from unlost.recover.scope import RecoveryScope
from unlost.recover.state.resources import ResourceStatus
from unlost.recover.state.store import RecoveryState
from unlost.registry.models import Archive, RequestKind


@dataclass(frozen=True, slots=True)
class ArchiveCost:
    """What one archive will be asked, at most.

    lists: of single pages, where it has no list of all. copies: to fetch.
    days: at its daily limits, with the share of them that is used; 0 without such.
    seconds: at its rate limits, in the same way; 0 without such.
    """

    archive: str
    capture_queries: int
    fetches: int
    days: int
    seconds: float


def estimate_costs(
    archives: Mapping[str, Archive],
    scope: RecoveryScope,
    fetcher: ResourceFetcher,
    state: RecoveryState,
    share: float,
    max_resources: int | None = None,
) -> list[ArchiveCost]:
    """Return what is left to ask of each archive, at most, if everything that is listed in scope is wanted.

    Of captures with the same bytes, one is fetched. What pages link to that no list has cannot be known.
    share: how much of a limit is used. most: how many resources to look at; of more, the rest is taken to be alike.
    """
    lists = dict.fromkeys(archives, 0)
    copies = dict.fromkeys(archives, 0)
    seen: set[str] = set()
    looked_at = 0
    for part in state.resources.batches(ResourceStatus.LISTED, ResourceStatus.QUEUED):
        if max_resources is not None and looked_at >= max_resources:
            break
        looked_at += len(part)
        for resource in part:
            if not scope.admits(resource.uri, resource.link_kind, 0):
                continue
            step = fetcher.next_step(resource)
            if isinstance(step, QueryCaptures):
                lists[step.archive] += 1
            elif isinstance(step, FetchCapture):
                digest = step.listed.capture.digest
                if digest is None or digest not in seen:
                    copies[step.archive] += 1
                if digest is not None:
                    seen.add(digest)
    counts = state.resources.counts()
    factor = max(1.0, (counts[ResourceStatus.LISTED] + counts[ResourceStatus.QUEUED]) / looked_at) if looked_at else 1.0
    return [
        _archive_cost(archive, math.ceil(lists[name] * factor), math.ceil(copies[name] * factor), share)
        for name, archive in archives.items()
    ]


def _archive_cost(archive: Archive, lists: int, copies: int, share: float) -> ArchiveCost:
    return ArchiveCost(
        archive.id, lists, copies, _days(archive, lists, copies, share), _seconds(archive, lists, copies, share)
    )


def _seconds(archive: Archive, lists: int, copies: int, share: float) -> float:
    asked = {RequestKind.INDEX: lists, RequestKind.REPLAY: copies}
    found = (
        sum(asked.get(work, 0) for work in limit.works) * limit.seconds / max(1.0, limit.requests * share)
        for limit in archive.limits
    )
    return max(found, default=0.0)


def _days(archive: Archive, lists: int, copies: int, share: float) -> int:
    asked = {RequestKind.INDEX: lists, RequestKind.REPLAY: copies}
    days = [
        math.ceil(sum(asked.get(work, 0) for work in quota.works) / max(1, int(quota.requests * share)))
        for quota in archive.quotas
    ]
    return max(days, default=0)
