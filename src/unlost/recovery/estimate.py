"""Estimates the cost of a recovery: requests by archive, and the time they take within the rate limits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from unlost.recovery.fetcher import ResourceFetcher
from unlost.recovery.planner import FetchCapture, QueryCaptures
from unlost.recovery.scope import RecoveryScope
from unlost.recovery.state.resources import ResourceStatus
from unlost.recovery.state.store import RecoveryState
from unlost.registry.models import Archive, RequestKind


@dataclass(frozen=True, slots=True)
class ArchiveCost:
    """Upper bound of the requests to one archive.

    Attributes:
        archive: Id of the archive.
        capture_queries: Queries for captures of single URLs.
        fetches: Captures to fetch.
        days: Days required by the daily quotas; 0 without quotas.
        seconds: Seconds required by the rate limits; 0 without limits.
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
    """Return an upper bound of the remaining requests to each archive, if everything listed in scope is fetched.

    Captures with the same digest count once. Links to unlisted URLs cannot be known in advance and are not counted.

    Args:
        archives: Registry entries by id.
        scope: The scope of the recovery.
        fetcher: Plans the next step for a resource.
        state: The database of the recovery.
        share: Fraction of the limits that is used.
        max_resources: Number of resources that are examined; the result is extrapolated to the others.
    """
    capture_queries = dict.fromkeys(archives, 0)
    fetches = dict.fromkeys(archives, 0)
    digests: set[str] = set()
    examined = 0
    for batch in state.resources.batches(ResourceStatus.LISTED, ResourceStatus.QUEUED):
        if max_resources is not None and examined >= max_resources:
            break
        examined += len(batch)
        for resource in batch:
            if not scope.admits(resource.uri, resource.link_kind, 0):
                continue
            step = fetcher.next_step(resource)
            if isinstance(step, QueryCaptures):
                capture_queries[step.archive] += 1
            elif isinstance(step, FetchCapture):
                digest = step.listed.capture.digest
                if digest is None or digest not in digests:
                    fetches[step.archive] += 1
                if digest is not None:
                    digests.add(digest)
    counts = state.resources.counts()
    factor = max(1.0, (counts[ResourceStatus.LISTED] + counts[ResourceStatus.QUEUED]) / examined) if examined else 1.0
    return [
        _archive_cost(archive, math.ceil(capture_queries[name] * factor), math.ceil(fetches[name] * factor), share)
        for name, archive in archives.items()
    ]


def _archive_cost(archive: Archive, capture_queries: int, fetches: int, share: float) -> ArchiveCost:
    return ArchiveCost(
        archive.id,
        capture_queries,
        fetches,
        _days(archive, capture_queries, fetches, share),
        _seconds(archive, capture_queries, fetches, share),
    )


def _seconds(archive: Archive, capture_queries: int, fetches: int, share: float) -> float:
    requests = {RequestKind.INDEX: capture_queries, RequestKind.REPLAY: fetches}
    durations = (
        sum(requests.get(kind, 0) for kind in limit.works) * limit.seconds / max(1.0, limit.requests * share)
        for limit in archive.limits
    )
    return max(durations, default=0.0)


def _days(archive: Archive, capture_queries: int, fetches: int, share: float) -> int:
    requests = {RequestKind.INDEX: capture_queries, RequestKind.REPLAY: fetches}
    days = [
        math.ceil(sum(requests.get(kind, 0) for kind in quota.works) / max(1, int(quota.requests * share)))
        for quota in archive.quotas
    ]
    return max(days, default=0)
