"""Detects servers for which letter case in paths does not matter, and merges URLs that differ only in it."""

from collections.abc import Collection, Sequence

from unlost.recover.state.reading import CASE_INSENSITIVE_FACT
from unlost.recover.state.resources import RecoveryResource, ResourceStatus
from unlost.recover.state.state import RecoveryState

_MIN_MATCHING_GROUPS = 2  # groups of URLs that must have the same bytes; one may be a coincidence
_MIN_MATCH_RATIO = 4  # times as many groups with the same bytes as with other bytes
_MAX_GROUPS = 2_000  # that are compared
_MAX_CHECKED_GROUPS = 10


def merge_case_variants(state: RecoveryState, busy: Collection[int]) -> list[int]:
    """Make one resource of those whose URLs differ only in letter case, if the server ignores it.

    Returns the ids of the resources that are aliases of others now.

    busy: ids of resources that are being fetched, which stay as they are.

    A server ignores letter case if archives have the same bytes under URLs that differ only in it, and hardly ever
    other bytes. Bytes that many URLs have in common say nothing: they are error pages, or empty.
    """
    groups = state.resources.case_variants()
    if not groups or (not state.fact(CASE_INSENSITIVE_FACT) and not _ignores_case(state, groups[:_MAX_GROUPS])):
        return []
    state.set_fact(CASE_INSENSITIVE_FACT, "yes")
    merged: list[int] = []
    for group in groups:
        first = max(group, key=lambda each: (each.record is not None, each.is_linked, -each.id))
        for each in group:
            is_free = each.record is None and each.id not in busy and first.id not in busy
            if each is not first and is_free and each.status in (ResourceStatus.LISTED, ResourceStatus.QUEUED):
                state.resources.merge(first.id, each.id)
                merged.append(each.id)
    return merged


def _ignores_case(state: RecoveryState, groups: Sequence[Sequence[RecoveryResource]]) -> bool:
    alike: list[tuple[set[str], list[int]]] = []
    different = 0
    for group in groups:
        digests = state.captures.digests([each.id for each in group])
        known = [found for found in digests.values() if found]
        if len(known) < 2:
            continue
        shared = {each for i, one in enumerate(known) for other in known[i + 1 :] for each in one & other}
        if shared:
            alike.append((shared, list(digests)))
        else:
            different += 1
    if len(alike) < max(_MIN_MATCHING_GROUPS, _MIN_MATCH_RATIO * different):
        return False
    # Each look at who else has these bytes reads all captures.
    return sum(state.captures.is_distinctive(*each) for each in alike[:_MAX_CHECKED_GROUPS]) >= _MIN_MATCHING_GROUPS
