"""What a recovery will cost: how many requests to which archive, and how many days under its daily limit."""

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
    """

    archive: str
    lists: int
    copies: int
    days: int


def costs(archives: Mapping[str, Archive], scope: Scope, serving: Serving, state: State, share: float) -> list[Cost]:
    """Return what is left to ask of each archive, at most, if everything that is listed in scope is wanted.

    Of captures with the same bytes, one is fetched. What pages link to that no list has cannot be known.
    share: how much of a limit is used.
    """
    lists = dict.fromkeys(archives, 0)
    copies = dict.fromkeys(archives, 0)
    seen: set[str] = set()
    for part in state.resources.parts(Standing.LISTED, Standing.QUEUED):
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
    return [
        Cost(name, lists[name], copies[name], _days(archive, lists[name], copies[name], share))
        for name, archive in archives.items()
    ]


def _days(archive: Archive, lists: int, copies: int, share: float) -> int:
    asked = {Work.INDEX: lists, Work.REPLAY: copies}
    days = [
        math.ceil(sum(asked.get(work, 0) for work in quota.works) / max(1, int(quota.requests * share)))
        for quota in archive.quotas
    ]
    return max(days, default=0)
