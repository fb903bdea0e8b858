"""Rejects soft 404s.

Parked and hijacked pages as they are fetched, and gets a second capture where one is not enough to tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from unlost import dates
from unlost.quality import (
    ClassifierContext,
    PageResponse,
    PageVerdict,
    ReferencePage,
    classify_page,
    is_suspicious,
    make_reference_page,
    page_identity,
)
from unlost.recover import warc_store
from unlost.recover.options import EventCallback
from unlost.recover.planner import FetchCapture
from unlost.recover.ranking import CaptureQuality
from unlost.recover.state.captures import CaptureOutcome
from unlost.recover.state.store import RecoveryState
from unlost.recover.warc_records import RecoveryRecord
from unlost.recover.warc_store import StoredCapture, WarcStore

_MAX_PAGES = 48  # pages of a site that are remembered, of at most 20,000 characters each
_MAX_CONTEXT_PAGES = 6  # of them, for one page
_MAX_YEARS_APART = 1  # year: as long as the frame of a site stays about the same


class SiteContext:
    """Remembers good pages of the site, and what it answers where nothing is."""

    def __init__(self) -> None:
        self._good: dict[str, ReferencePage] = {}  # by address and date
        self._absent: list[ReferencePage] = []

    def classify(self, page: PageResponse) -> PageVerdict | None:
        """Return why a page is not to be taken for what it seems to be; None if it is good, or nobody can tell."""
        return classify_page(page, self._context(page))

    def add_good_page(self, page: PageResponse) -> None:
        """Remember a good page."""
        is_root = urlsplit(page.uri).path in ("", "/")
        if len(self._good) < _MAX_PAGES or is_root:
            self._good[f"{page.uri} {page.datetime}"] = make_reference_page(page)
            if len(self._good) > 2 * _MAX_PAGES:
                del self._good[next(iter(self._good))]

    def add_error_page(self, page: PageResponse) -> None:
        """Remember what the site answers with an honest status where nothing is."""
        self._absent = [*self._absent[-3:], make_reference_page(page)]

    def needs_earlier_page(self, page: PageResponse) -> bool:
        """Return whether a page looks like that of a site which was taken over, and nothing from before is known."""
        return not self._earlier_pages(page) and is_suspicious(page)

    def _context(self, page: PageResponse) -> ClassifierContext:
        year = int(page.datetime[:4])
        near = [known for known in self._good.values() if abs(int(known.datetime[:4]) - year) <= _MAX_YEARS_APART]
        others = [known for known in near if page_identity(known.uri) != page_identity(page.uri)]
        home = next((known for known in reversed(others) if urlsplit(known.uri).path in ("", "/")), None)
        absent = (known for known in self._absent if abs(int(known.datetime[:4]) - year) <= _MAX_YEARS_APART)
        return ClassifierContext(self._earlier_pages(page), others[:_MAX_CONTEXT_PAGES], home, next(absent, None))

    def _earlier_pages(self, page: PageResponse) -> tuple[ReferencePage, ...]:
        """Return pages from before: of the same address first, then the oldest."""
        here = page_identity(page.uri)
        before = [known for known in self._good.values() if known.datetime < page.datetime]
        return tuple(
            sorted(before, key=lambda known: (page_identity(known.uri) != here, known.datetime))[:_MAX_CONTEXT_PAGES]
        )


_PAGES_FROM_EARLIER_RUNS = 12  # good pages of an earlier run, to judge others by
_TAKEOVER_GAP = timedelta(days=30)  # a domain that lapsed is sold a month later, at the earliest


@dataclass(frozen=True, slots=True)
class _PendingCapture:
    """A copy that looks like that of a site which was taken over. record: its id; listed: of its capture."""

    record: int
    listed: int
    stored: StoredCapture
    quality: CaptureQuality


class QualityGate:
    """Judges captures as they are fetched.

    is_dropping: whether a rejected capture is never good enough. Otherwise it is kept where there is no better one.
    """

    def __init__(self, state: RecoveryState, warcs: WarcStore, on_event: EventCallback, *, drop_rejected: bool) -> None:
        self._state = state
        self._warcs = warcs
        self._on_event = on_event
        self._rejected_quality = CaptureQuality.REJECTED if drop_rejected else CaptureQuality.DOUBTFUL
        self._context: SiteContext | None = None
        self._pending: dict[int, _PendingCapture] = {}  # by resource

    def classify(self, page: PageResponse | None, quality: CaptureQuality) -> PageVerdict | None:
        """Return why a copy is rejected that is worth so much else; None if it is not. What is good is learned from."""
        if page is None:
            return None
        judging = self._site_context()
        verdict = judging.classify(page) if quality <= CaptureQuality.PARTIAL else None
        if quality is CaptureQuality.ERROR and page.status in (404, 410):
            judging.add_error_page(page)
        elif (
            verdict is None
            and quality in (CaptureQuality.GOOD, CaptureQuality.MIGRATED)
            and not judging.needs_earlier_page(page)
        ):
            judging.add_good_page(page)
        return verdict

    def reject(
        self, number: int, record: RecoveryRecord, quality: CaptureQuality, verdict: PageVerdict
    ) -> CaptureQuality:
        """Store and report that a record was rejected; return its worth. worth: without the verdict."""
        self._state.records.set_quality(number, self._rejected_quality)
        self._state.rejections.add(number, quality, verdict.kind.value, verdict.reason)
        capture = record.capture
        known = {"uri": capture.uri, "archive": capture.archive, "datetime": capture.datetime}
        self._on_event("rejected", {**known, "verdict": verdict.kind.value, "reason": verdict.reason})
        return self._rejected_quality

    def is_pending(self, resource: int) -> bool:
        """Return whether a resource waits for a second opinion."""
        return resource in self._pending

    def defer(self, resource: int, number: int, listed: int, stored: StoredCapture, quality: CaptureQuality) -> bool:
        """Take note of a copy whose site may have been taken over, if nothing from before is known; return whether.

        Its links are not to be followed until somebody can tell.
        """
        if (
            stored.page is None
            or quality > CaptureQuality.MIGRATED
            or not self._site_context().needs_earlier_page(stored.page)
        ):
            return False
        self._pending[resource] = _PendingCapture(number, listed, stored, quality)
        self._state.set_refollow_links(refollow=True)  # whoever is killed now has its links to follow yet
        return True

    def next_opinion(self, resource: int, left: Sequence[FetchCapture]) -> FetchCapture | None:
        """Return the oldest capture that tells what was there long before a doubted one; None if there is none.

        left: the captures of the resource that were not tried yet.
        """
        doubt = self._pending.get(resource)
        if doubt is None:
            return None
        latest = _before_takeover(doubt.stored.record.capture.datetime)
        before = [
            each for each in left if each.quality <= CaptureQuality.MIGRATED and each.listed.capture.datetime < latest
        ]
        return min(before, key=lambda each: each.listed.capture.datetime, default=None)

    def resolve(self, resource: int, opinion: int | None) -> StoredCapture | None:
        """End a doubt; return the copy that was doubted, if it was right, so that its links are followed.

        opinion: the id of a record from before; None if there is none. If the doubted copy is rejected, that record is
        worth less than what is known to be good, so that the last good one is looked for.
        """
        doubt = self._pending.pop(resource)
        page = doubt.stored.page
        verdict = None if page is None else self._site_context().classify(page)
        if verdict is None:
            if page is not None:
                self._site_context().add_good_page(page)
            return doubt.stored
        self.reject(doubt.record, doubt.stored.record, doubt.quality, verdict)
        self._state.captures.set_outcome(doubt.listed, CaptureOutcome.REJECTED)
        if opinion is not None and self._state.records.get(opinion).quality <= CaptureQuality.MIGRATED:
            self._state.records.set_quality(opinion, CaptureQuality.UNKNOWN)
        self._state.resources.set_best_record(resource, self._state.records.best(resource))
        return None

    def _site_context(self) -> SiteContext:
        """Return what is known of the site, also from earlier runs."""
        if self._context is None:
            self._context = SiteContext()
            for kept in self._state.records.good_pages(_PAGES_FROM_EARLIER_RUNS):
                page = warc_store.load_stored(self._warcs, kept.record).page
                if page is not None:
                    self._context.add_good_page(page)
        return self._context


def _before_takeover(datetime: str) -> str:
    """Return when a site was what it was, if it was taken over by that time; both 14 digits."""
    try:
        return dates.from_datetime(dates.to_datetime(datetime) - _TAKEOVER_GAP)
    except OverflowError:  # archives list dates of the year 1
        return ""
