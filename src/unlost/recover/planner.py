"""Plans the next request for a resource: fetch a capture, query an archive for its captures, or nothing more."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from unlost.capture import Capture
from unlost.html.links import LinkKind
from unlost.recover import ranking
from unlost.recover.listings import ListingCoverage
from unlost.recover.options import RecoverOptions, RecoverPolicy
from unlost.recover.ranking import CapturePreference, CaptureQuality
from unlost.recover.state.captures import CaptureOutcome, CaptureRow
from unlost.recover.state.resources import RecoveryResource

WORST_FETCHED = CaptureQuality.EMPTY
"""What is worse than this in an index is not fetched: it tells that the page was gone."""

MAX_FETCHES_PER_RESOURCE = 20
"""How many captures of one resource are asked for, until one is good: more would be as bad, and cost as much."""

MAX_CONSECUTIVE_REJECTIONS = 3
"""How many captures of one resource are rejected one after the other, before some are passed over."""

_PENDING_OUTCOMES = (None, CaptureOutcome.DEFERRED, CaptureOutcome.RETRY)


@dataclass(frozen=True, slots=True)
class FetchCapture:
    """Fetch this capture, of which its index says so much."""

    listed: CaptureRow
    quality: CaptureQuality

    @property
    def archive(self) -> str:
        """Who has it."""
        return self.listed.capture.archive or ""


@dataclass(frozen=True, slots=True)
class QueryCaptures:
    """Ask this archive which captures it has of the page."""

    archive: str


Step = FetchCapture | QueryCaptures


@dataclass(frozen=True, slots=True)
class BestCapture:
    """The best copy of a resource that is stored."""

    quality: CaptureQuality
    capture: Capture


@dataclass(frozen=True, slots=True)
class FetchPlanner:
    """The rules by which a plan goes on.

    is_own: whether an address belongs to the site.
    """

    options: RecoverOptions
    is_own: Callable[[str], bool]

    def next_step(
        self,
        resource: RecoveryResource,
        listed: Sequence[CaptureRow],
        asked: Mapping[str, str],
        stored: BestCapture | None,
        coverage: ListingCoverage,
        closed: Collection[str] = (),
        among: Sequence[str] | None = None,
    ) -> Step | None:
        """Return the next step; None if nothing better than what is stored can be had.

        listed: all captures of the resource. asked: the archives that were asked for it alone.
        stored: the best copy that is stored; None if there is none.
        closed: archives that are not asked for now: of two captures with the same bytes, the other's is fetched.
        among: the archives that may be queried for the resource alone, in this order; None for all.
        """
        left = self.remaining_fetches(resource, listed, stored)
        best = left[0] if left else None
        is_good = best is not None and best.quality <= CaptureQuality.MIGRATED
        if self._may_query_archives(resource, stored.quality if stored else None, is_good, is_asked=bool(asked)):
            possible = coverage.archives_to_query(resource.uri, asked, among)
            if possible:
                return QueryCaptures(next((archive for archive in possible if archive not in closed), possible[0]))
        if best is None:
            return None
        best = left[_index_after_rejections(left, sum(each.outcome is CaptureOutcome.REJECTED for each in listed))]
        if best.archive in closed:
            same = (each for each in left if each.quality == best.quality and _has_same_payload(each, best))
            return next((each for each in same if each.archive not in closed), best)
        return best

    def remaining_fetches(
        self, resource: RecoveryResource, listed: Sequence[CaptureRow], stored: BestCapture | None
    ) -> list[FetchCapture]:
        """Return the captures that would be better than what is stored, and were not tried yet, the best first.

        What archives have gained since then is not better for being newer; what failed before it was stored is.
        """
        plan = self.options
        if (
            not plan.all_versions
            and sum(each.outcome not in _PENDING_OUTCOMES for each in listed) >= MAX_FETCHES_PER_RESOURCE
        ):
            return []
        captures = [each.capture for each in listed]
        by_mark = {_capture_key(each.capture): each for each in listed}
        is_requisite = resource.link_kind is LinkKind.REQUISITE
        # Nothing links to a resource that is shown in the place of another: then it should fit the page that needs it.
        near = resource.page_datetime if plan.at is not None or not resource.is_linked else None
        wish = CapturePreference(plan.at, near, plan.first, plan.last, plan.most_recent, is_requisite)
        ranked = ranking.rank_captures(captures, wish, self.is_own, resource.name, ignore_case=plan.ignore_case)
        if plan.all_versions:
            chosen = ranking.distinct_versions([each for each in ranked if each[0] <= WORST_FETCHED])
        else:
            chosen = [each for each in ranked if each[0] <= WORST_FETCHED]
        found = [FetchCapture(by_mark[_capture_key(capture)], worth) for worth, capture in chosen]
        rejected = [each.capture for each in listed if each.outcome is CaptureOutcome.REJECTED]
        left = [
            each
            for each in found
            if each.listed.outcome in _PENDING_OUTCOMES
            and not any(ranking.has_same_payload(each.listed.capture, other) for other in rejected)
        ]
        if stored is None or plan.all_versions:
            return left
        marks = [_capture_key(capture) for _, capture in ranked]
        place = marks.index(_capture_key(stored.capture)) if _capture_key(stored.capture) in marks else 0
        before = set(marks[:place])
        return [
            each
            for each in left
            if each.quality < stored.quality
            or (
                each.listed.outcome is CaptureOutcome.RETRY
                and each.quality == stored.quality
                and _capture_key(each.listed.capture) in before
            )
        ]

    def _may_query_archives(
        self, resource: RecoveryResource, stored: CaptureQuality | None, is_good: bool, *, is_asked: bool
    ) -> bool:
        """Return whether archives are asked for captures that are not known yet.

        Where no list has anything good, all are that may have something; of a requisite the first that is found will
        do. The naive policy asks all of them for every page.
        """
        if stored is not None and stored <= CaptureQuality.MIGRATED:
            return False
        if self.options.most_recent or self.options.all_versions or not is_good:
            return True
        return resource.link_kind is not LinkKind.REQUISITE and (is_asked or self.options.policy is RecoverPolicy.NAIVE)


def _index_after_rejections(left: Sequence[FetchCapture], rejected: int) -> int:
    """Return which capture to take when so many of a resource were rejected: after some, ever further ones.

    Who has lost a domain has lost it for years, in which it was captured often.
    """
    alike = sum(each.quality == left[0].quality for each in left)
    return (
        0
        if rejected < MAX_CONSECUTIVE_REJECTIONS
        else min(2 ** min(rejected - MAX_CONSECUTIVE_REJECTIONS + 1, 30) - 1, alike - 1)
    )


def _capture_key(capture: Capture) -> tuple[str | None, str, str]:
    """Return what tells captures of a resource apart."""
    return capture.archive, capture.datetime, capture.uri


def _has_same_payload(one: FetchCapture, other: FetchCapture) -> bool:
    return ranking.has_same_payload(one.listed.capture, other.listed.capture)
