"""Plans the next request for a resource: fetch a capture, query an archive for captures, or none.

The next step is computed from the stored captures, outcomes and records; it is not stored. So there is nothing to
repair after a crash, and a listing that arrives late changes what is done next.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from unlost.capture import Capture
from unlost.html.links import LinkKind
from unlost.recovery import ranking
from unlost.recovery.listings import ListingCoverage
from unlost.recovery.options import RecoverOptions, RecoverPolicy
from unlost.recovery.ranking import CapturePreference, CaptureQuality
from unlost.recovery.state.captures import CaptureOutcome, CaptureRow
from unlost.recovery.state.resources import RecoveryResource

WORST_FETCHED = CaptureQuality.EMPTY
"""Captures that the index shows to be worse are not fetched: the page did not exist at the time."""

MAX_FETCHES_PER_RESOURCE = 20
"""Maximum number of captures of one resource that are fetched. Further ones are unlikely to be better."""

MAX_CONSECUTIVE_REJECTIONS = 3
"""Consecutive rejected captures of one resource from which further ones are skipped."""

_PENDING_OUTCOMES = (None, CaptureOutcome.DEFERRED, CaptureOutcome.RETRY)


@dataclass(frozen=True, slots=True)
class FetchCapture:
    """Fetch this capture, which has this quality according to its index."""

    listed: CaptureRow
    quality: CaptureQuality

    @property
    def archive(self) -> str:
        """The archive that holds the capture."""
        return self.listed.capture.archive or ""


@dataclass(frozen=True, slots=True)
class QueryCaptures:
    """Query this archive for its captures of the resource."""

    archive: str


Step = FetchCapture | QueryCaptures


@dataclass(frozen=True, slots=True)
class BestCapture:
    """The best stored capture of a resource."""

    quality: CaptureQuality
    capture: Capture


@dataclass(frozen=True, slots=True)
class FetchPlanner:
    """Decides what to request next for a resource.

    Attributes:
        options: The options of the recovery.
        is_own: Returns whether a URL is on one of the site's hosts.
    """

    options: RecoverOptions
    is_own: Callable[[str], bool]

    def next_step(
        self,
        resource: RecoveryResource,
        listed: Sequence[CaptureRow],
        queried: Mapping[str, str],
        stored: BestCapture | None,
        coverage: ListingCoverage,
        suspended: Collection[str] = (),
        allowed: Sequence[str] | None = None,
    ) -> Step | None:
        """Return the next step, or None if nothing better than the stored capture is available.

        Args:
            resource: The resource.
            listed: All listed captures of the resource.
            queried: The archives already queried for this resource, with the outcome.
            stored: The best stored capture; None if there is none.
            coverage: What the listings cover.
            suspended: Archives that may not be queried now. If another archive has a capture with the same bytes, that
                is fetched instead.
            allowed: The archives that may be queried for this resource, in order of preference; None for all.
        """
        remaining = self.remaining_fetches(resource, listed, stored)
        best = remaining[0] if remaining else None
        is_good = best is not None and best.quality <= CaptureQuality.MIGRATED
        if self._may_query_archives(resource, stored.quality if stored else None, is_good, has_queried=bool(queried)):
            possible = coverage.archives_to_query(resource.uri, queried, allowed)
            if possible:
                return QueryCaptures(next((archive for archive in possible if archive not in suspended), possible[0]))
        if best is None:
            return None
        best = remaining[
            _index_after_rejections(remaining, sum(each.outcome is CaptureOutcome.REJECTED for each in listed))
        ]
        if best.archive in suspended:
            same = (each for each in remaining if each.quality == best.quality and _has_same_payload(each, best))
            return next((each for each in same if each.archive not in suspended), best)
        return best

    def remaining_fetches(
        self, resource: RecoveryResource, listed: Sequence[CaptureRow], stored: BestCapture | None
    ) -> list[FetchCapture]:
        """Return the captures better than the stored one that were not requested yet, best first.

        A capture that an archive added since then is not better for being newer; one that failed before the stored
        capture was fetched is.
        """
        options = self.options
        if (
            not options.all_versions
            and sum(each.outcome not in _PENDING_OUTCOMES for each in listed) >= MAX_FETCHES_PER_RESOURCE
        ):
            return []
        captures = [each.capture for each in listed]
        rows_by_key = {_capture_key(each.capture): each for each in listed}
        is_requisite = resource.link_kind is LinkKind.REQUISITE
        # A substitute has no links of its own: it should fit the page that needs the resource it replaces.
        page_datetime = resource.page_datetime if options.at is not None or not resource.is_linked else None
        preference = CapturePreference(
            options.at, page_datetime, options.first, options.last, options.most_recent, is_requisite
        )
        ranked = ranking.rank_captures(
            captures, preference, self.is_own, resource.name, ignore_case=options.ignore_case
        )
        if options.all_versions:
            chosen = ranking.distinct_versions([each for each in ranked if each[0] <= WORST_FETCHED])
        else:
            chosen = [each for each in ranked if each[0] <= WORST_FETCHED]
        fetches = [FetchCapture(rows_by_key[_capture_key(capture)], quality) for quality, capture in chosen]
        rejected = [each.capture for each in listed if each.outcome is CaptureOutcome.REJECTED]
        remaining = [
            each
            for each in fetches
            if each.listed.outcome in _PENDING_OUTCOMES
            and not any(ranking.has_same_payload(each.listed.capture, other) for other in rejected)
        ]
        if stored is None or options.all_versions:
            return remaining
        keys = [_capture_key(capture) for _, capture in ranked]
        position = keys.index(_capture_key(stored.capture)) if _capture_key(stored.capture) in keys else 0
        preceding = set(keys[:position])
        return [
            each
            for each in remaining
            if each.quality < stored.quality
            or (
                each.listed.outcome is CaptureOutcome.RETRY
                and each.quality == stored.quality
                and _capture_key(each.listed.capture) in preceding
            )
        ]

    def _may_query_archives(
        self, resource: RecoveryResource, stored: CaptureQuality | None, is_good: bool, *, has_queried: bool
    ) -> bool:
        """Return whether to query archives for captures that no listing contains.

        They are queried if no listing has a good capture. The first capture of a requisite is enough. The naive policy
        queries all archives for every page.
        """
        if stored is not None and stored <= CaptureQuality.MIGRATED:
            return False
        if self.options.most_recent or self.options.all_versions or not is_good:
            return True
        return resource.link_kind is not LinkKind.REQUISITE and (
            has_queried or self.options.policy is RecoverPolicy.NAIVE
        )


def _index_after_rejections(remaining: Sequence[FetchCapture], rejected: int) -> int:
    """Return the index of the capture to fetch after a number of rejections.

    A domain that has changed hands usually has years of captures of its new content. After
    `MAX_CONSECUTIVE_REJECTIONS`, captures are skipped, twice as many after each further rejection.
    """
    same_quality = sum(each.quality == remaining[0].quality for each in remaining)
    return (
        0
        if rejected < MAX_CONSECUTIVE_REJECTIONS
        else min(2 ** min(rejected - MAX_CONSECUTIVE_REJECTIONS + 1, 30) - 1, same_quality - 1)
    )


def _capture_key(capture: Capture) -> tuple[str | None, str, str]:
    """Return the key that identifies a capture among those of a resource."""
    return capture.archive, capture.datetime, capture.uri


def _has_same_payload(one: FetchCapture, other: FetchCapture) -> bool:
    return ranking.has_same_payload(one.listed.capture, other.listed.capture)
