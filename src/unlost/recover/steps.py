"""What to do next for a resource: fetch a capture, ask an archive for its list of one page, or nothing more."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from unlost.formats.capture import Capture
from unlost.pages.link import Use
from unlost.recover import choice
from unlost.recover.choice import Wish, Worth
from unlost.recover.knowledge import Knowledge
from unlost.recover.plan import Plan, Policy
from unlost.recover.state.captures import Listed, Outcome
from unlost.recover.state.resources import Resource

WORTH_FETCHING = Worth.EMPTY
"""What is worse than this in an index is not fetched: it tells that the page was gone."""

TRIES = 20
"""How many captures of one resource are asked for, until one is good: more would be as bad, and cost as much."""

PATIENCE = 3
"""How many captures of one resource are rejected one after the other, before some are passed over."""

_OPEN = (None, Outcome.PUT_OFF, Outcome.AGAIN)


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetch this capture, of which its index says so much."""

    listed: Listed
    worth: Worth

    @property
    def archive(self) -> str:
        """Who has it."""
        return self.listed.capture.archive or ""


@dataclass(frozen=True, slots=True)
class AskFor:
    """Ask this archive which captures it has of the page."""

    archive: str


Step = Fetch | AskFor


@dataclass(frozen=True, slots=True)
class Stored:
    """The best copy of a resource that is stored."""

    worth: Worth
    capture: Capture


@dataclass(frozen=True, slots=True)
class Steps:
    """The rules by which a plan goes on.

    is_own: whether an address belongs to the site.
    """

    plan: Plan
    is_own: Callable[[str], bool]

    def next(
        self,
        resource: Resource,
        listed: Sequence[Listed],
        asked: Mapping[str, str],
        stored: Stored | None,
        knowledge: Knowledge,
        closed: Collection[str] = (),
        among: Sequence[str] | None = None,
    ) -> Step | None:
        """Return the next step; None if nothing better than what is stored can be had.

        listed: all captures of the resource. asked: the archives that were asked for it alone.
        stored: the best copy that is stored; None if there is none.
        closed: archives that are not asked for now: of two captures with the same bytes, the other's is fetched.
        among: the archives that may be queried for the resource alone, in this order; None for all.
        """
        left = self.left(resource, listed, stored)
        best = left[0] if left else None
        is_good = best is not None and best.worth <= Worth.MIGRATED
        if self._may_ask(resource, stored.worth if stored else None, is_good, is_asked=bool(asked)):
            possible = knowledge.possible(resource.uri, asked, among)
            if possible:
                return AskFor(next((archive for archive in possible if archive not in closed), possible[0]))
        if best is None:
            return None
        best = left[_beyond(left, sum(each.outcome is Outcome.REJECTED for each in listed))]
        if best.archive in closed:
            same = (each for each in left if each.worth == best.worth and _same(each, best))
            return next((each for each in same if each.archive not in closed), best)
        return best

    def left(self, resource: Resource, listed: Sequence[Listed], stored: Stored | None) -> list[Fetch]:
        """Return the captures that would be better than what is stored, and were not tried yet, the best first.

        What archives have gained since then is not better for being newer; what failed before it was stored is.
        """
        plan = self.plan
        if not plan.all_versions and sum(each.outcome not in _OPEN for each in listed) >= TRIES:
            return []
        captures = [each.capture for each in listed]
        by_mark = {_mark(each.capture): each for each in listed}
        is_requisite = resource.use is Use.REQUISITE
        # Nothing links to a resource that is shown in the place of another: then it should fit the page that needs it.
        near = resource.near if plan.at is not None or not resource.is_linked else None
        wish = Wish(plan.at, near, plan.first, plan.last, plan.most_recent, is_requisite)
        ranked = choice.ranked(captures, wish, self.is_own, resource.name, ignore_case=plan.ignore_case)
        if plan.all_versions:
            chosen = choice.versions([each for each in ranked if each[0] <= WORTH_FETCHING])
        else:
            chosen = [each for each in ranked if each[0] <= WORTH_FETCHING]
        found = [Fetch(by_mark[_mark(capture)], worth) for worth, capture in chosen]
        rejected = [each.capture for each in listed if each.outcome is Outcome.REJECTED]
        left = [
            each
            for each in found
            if each.listed.outcome in _OPEN
            and not any(choice.same_payload(each.listed.capture, other) for other in rejected)
        ]
        if stored is None or plan.all_versions:
            return left
        marks = [_mark(capture) for _, capture in ranked]
        place = marks.index(_mark(stored.capture)) if _mark(stored.capture) in marks else 0
        before = set(marks[:place])
        return [
            each
            for each in left
            if each.worth < stored.worth
            or (
                each.listed.outcome is Outcome.AGAIN
                and each.worth == stored.worth
                and _mark(each.listed.capture) in before
            )
        ]

    def _may_ask(self, resource: Resource, stored: Worth | None, is_good: bool, *, is_asked: bool) -> bool:
        """Return whether archives are asked for captures that are not known yet.

        Where no list has anything good, all are that may have something; of a requisite the first that is found will
        do. The naive policy asks all of them for every page.
        """
        if stored is not None and stored <= Worth.MIGRATED:
            return False
        if self.plan.most_recent or self.plan.all_versions or not is_good:
            return True
        return resource.use is not Use.REQUISITE and (is_asked or self.plan.policy is Policy.NAIVE)


def _beyond(left: Sequence[Fetch], rejected: int) -> int:
    """Return which capture to take when so many of a resource were rejected: after some, ever further ones.

    Who has lost a domain has lost it for years, in which it was captured often.
    """
    alike = sum(each.worth == left[0].worth for each in left)
    return 0 if rejected < PATIENCE else min(2 ** min(rejected - PATIENCE + 1, 30) - 1, alike - 1)


def _mark(capture: Capture) -> tuple[str | None, str, str]:
    """Return what tells captures of a resource apart."""
    return capture.archive, capture.datetime, capture.uri


def _same(one: Fetch, other: Fetch) -> bool:
    return choice.same_payload(one.listed.capture, other.listed.capture)
