"""What a recovery will cost: how many requests to which archive, and how long they take within its limits."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from unlost.archives.archive import Archive, Work
from unlost.recover.scope import Scope
from unlost.recover.serving import Serving
from unlost.recover.state.resources import Standing
from unlost.recover.state.state import State
from unlost.recover.steps import AskFor, Fetch


@dataclass(frozen=True, slots=True)
class Cost:
    """What one archive will be asked, at most.

    lists: of single pages, where it has no list of all. copies: to fetch.
    days: at its daily limits, with the share of them that is used; 0 without such.
    seconds: at its rate limits, in the same way; 0 without such.
    """

    archive: str
    lists: int
    copies: int
    days: int
    seconds: float


def costs(
    archives: Mapping[str, Archive],
    scope: Scope,
    serving: Serving,
    state: State,
    share: float,
    most: int | None = None,
) -> list[Cost]:
    """Return what is left to ask of each archive, at most, if everything that is listed in scope is wanted.

    Of captures with the same bytes, one is fetched. What pages link to that no list has cannot be known.
    share: how much of a limit is used. most: how many resources to look at; of more, the rest is taken to be alike.
    """
    lists = dict.fromkeys(archives, 0)
    copies = dict.fromkeys(archives, 0)
    seen: set[str] = set()
    looked_at = 0
    for part in state.resources.parts(Standing.LISTED, Standing.QUEUED):
        if most is not None and looked_at >= most:
            break
        looked_at += len(part)
        for resource in part:
            if not scope.admits(resource.uri, resource.use, 0):
                continue
            step = serving.step(resource)
            if isinstance(step, AskFor):
                lists[step.archive] += 1
            elif isinstance(step, Fetch):
                digest = step.listed.capture.digest
                if digest is None or digest not in seen:
                    copies[step.archive] += 1
                if digest is not None:
                    seen.add(digest)
    counts = state.resources.counts()
    factor = max(1.0, (counts[Standing.LISTED] + counts[Standing.QUEUED]) / looked_at) if looked_at else 1.0
    return [
        _cost(archive, math.ceil(lists[name] * factor), math.ceil(copies[name] * factor), share)
        for name, archive in archives.items()
    ]


def _cost(archive: Archive, lists: int, copies: int, share: float) -> Cost:
    return Cost(
        archive.id, lists, copies, _days(archive, lists, copies, share), _seconds(archive, lists, copies, share)
    )


def _seconds(archive: Archive, lists: int, copies: int, share: float) -> float:
    asked = {Work.INDEX: lists, Work.REPLAY: copies}
    found = (
        sum(asked.get(work, 0) for work in limit.works) * limit.seconds / max(1.0, limit.requests * share)
        for limit in archive.limits
    )
    return max(found, default=0.0)


def _days(archive: Archive, lists: int, copies: int, share: float) -> int:
    asked = {Work.INDEX: lists, Work.REPLAY: copies}
    days = [
        math.ceil(sum(asked.get(work, 0) for work in quota.works) / max(1, int(quota.requests * share)))
        for quota in archive.quotas
    ]
    return max(days, default=0)
