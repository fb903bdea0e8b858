"""Rejects copies that are not what they seem to be, and gets a second opinion where nobody can tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from unlost import dates
from unlost.pages.verdicts import Answer, Verdict
from unlost.recover import keeping
from unlost.recover.choice import Worth
from unlost.recover.judging import Judging
from unlost.recover.keeping import Kept
from unlost.recover.record import Record
from unlost.recover.state.captures import Outcome
from unlost.recover.state.state import State
from unlost.recover.steps import Fetch
from unlost.recover.telling import Tell
from unlost.recover.warcs import Warcs

_REMEMBERED = 12  # good pages of an earlier run, to judge others by
_LONG_BEFORE = timedelta(days=30)  # a domain that lapsed is sold a month later, at the earliest


@dataclass(frozen=True, slots=True)
class _Doubt:
    """A copy that looks like that of a site which was taken over. record: its id; listed: of its capture."""

    record: int
    listed: int
    kept: Kept
    worth: Worth


class Rejecting:
    """Judges captures as they are fetched.

    is_dropping: whether a rejected capture is never good enough. Otherwise it is kept where there is no better one.
    """

    def __init__(self, state: State, warcs: Warcs, tell: Tell, *, is_dropping: bool) -> None:
        self._state = state
        self._warcs = warcs
        self._tell = tell
        self._rejected = Worth.REJECTED if is_dropping else Worth.DOUBTFUL
        self._judging: Judging | None = None
        self._doubts: dict[int, _Doubt] = {}  # by resource

    def verdict(self, page: Answer | None, worth: Worth) -> Verdict | None:
        """Return why a copy is rejected that is worth so much else; None if it is not. What is good is learned from."""
        if page is None:
            return None
        judging = self._known()
        verdict = judging.verdict(page) if worth <= Worth.PARTIAL else None
        if worth is Worth.ERROR and page.status in (404, 410):
            judging.learn_absent(page)
        elif verdict is None and worth in (Worth.GOOD, Worth.MIGRATED) and not judging.needs_past(page):
            judging.learn(page)
        return verdict

    def reject(self, number: int, record: Record, worth: Worth, verdict: Verdict) -> Worth:
        """Store and report that a record was rejected; return its worth. worth: without the verdict."""
        self._state.records.value(number, self._rejected)
        self._state.rejections.add(number, worth, verdict.kind.value, verdict.reason)
        capture = record.capture
        known = {"uri": capture.uri, "archive": capture.archive, "datetime": capture.datetime}
        self._tell("rejected", {**known, "verdict": verdict.kind.value, "reason": verdict.reason})
        return self._rejected

    def is_doubted(self, resource: int) -> bool:
        """Return whether a resource waits for a second opinion."""
        return resource in self._doubts

    def doubt(self, resource: int, number: int, listed: int, kept: Kept, worth: Worth) -> bool:
        """Take note of a copy whose site may have been taken over, if nothing from before is known; return whether.

        Its links are not to be followed until somebody can tell.
        """
        if kept.page is None or worth > Worth.MIGRATED or not self._known().needs_past(kept.page):
            return False
        self._doubts[resource] = _Doubt(number, listed, kept, worth)
        self._state.follow_again(is_wanted=True)  # whoever is killed now has its links to follow yet
        return True

    def opinion(self, resource: int, left: Sequence[Fetch]) -> Fetch | None:
        """Return the oldest capture that tells what was there long before a doubted one; None if there is none.

        left: the captures of the resource that were not tried yet.
        """
        doubt = self._doubts.get(resource)
        if doubt is None:
            return None
        latest = _long_before(doubt.kept.record.capture.datetime)
        before = [each for each in left if each.worth <= Worth.MIGRATED and each.listed.capture.datetime < latest]
        return min(before, key=lambda each: each.listed.capture.datetime, default=None)

    def decide(self, resource: int, opinion: int | None) -> Kept | None:
        """End a doubt; return the copy that was doubted, if it was right, so that its links are followed.

        opinion: the id of a record from before; None if there is none. If the doubted copy is rejected, that record is
        worth less than what is known to be good, so that the last good one is looked for.
        """
        doubt = self._doubts.pop(resource)
        page = doubt.kept.page
        verdict = None if page is None else self._known().verdict(page)
        if verdict is None:
            if page is not None:
                self._known().learn(page)
            return doubt.kept
        self.reject(doubt.record, doubt.kept.record, doubt.worth, verdict)
        self._state.captures.tried(doubt.listed, Outcome.REJECTED)
        if opinion is not None and self._state.records.get(opinion).worth <= Worth.MIGRATED:
            self._state.records.value(opinion, Worth.UNKNOWN)
        self._state.resources.choose(resource, self._state.records.best(resource))
        return None

    def _known(self) -> Judging:
        """Return what is known of the site, also from earlier runs."""
        if self._judging is None:
            self._judging = Judging()
            for kept in self._state.records.good(_REMEMBERED):
                page = keeping.reread(self._warcs, kept.record).page
                if page is not None:
                    self._judging.learn(page)
        return self._judging


def _long_before(datetime: str) -> str:
    """Return when a site was what it was, if it was taken over by that time; both 14 digits."""
    try:
        return dates.from_datetime(dates.to_datetime(datetime) - _LONG_BEFORE)
    except OverflowError:  # archives list dates of the year 1
        return ""
