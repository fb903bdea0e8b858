"""Rejects soft 404s, parked pages and hijacked pages when they are fetched.

If one capture is not enough to decide, an earlier capture of the same page is fetched as a second opinion. A verdict
lowers the rank of a capture; it does not delete it.
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
from unlost.recovery import warc_store
from unlost.recovery.events import CaptureRejected, EventListener
from unlost.recovery.planner import FetchCapture
from unlost.recovery.ranking import CaptureQuality
from unlost.recovery.state.captures import CaptureOutcome
from unlost.recovery.state.store import RecoveryState
from unlost.recovery.warc_records import RecoveryRecord
from unlost.recovery.warc_store import StoredCapture, WarcStore

_MAX_PAGES = 48  # good pages of a site in memory, each with at most 20,000 characters
_MAX_CONTEXT_PAGES = 6  # pages that one page is compared with
_MAX_YEARS_APART = 1  # years in which the layout of a site stays about the same


class SiteContext:
    """Good pages and error pages of the site, as context for the classifier."""

    def __init__(self) -> None:
        self._good_pages: dict[str, ReferencePage] = {}  # by URL and datetime
        self._error_pages: list[ReferencePage] = []

    def classify(self, page: PageResponse) -> PageVerdict | None:
        """Return why a page is rejected; None if it is good or cannot be decided."""
        return classify_page(page, self._context(page))

    def add_good_page(self, page: PageResponse) -> None:
        """Add a good page. Above a limit, only home pages are added."""
        is_root = urlsplit(page.uri).path in ("", "/")
        if len(self._good_pages) < _MAX_PAGES or is_root:
            self._good_pages[f"{page.uri} {page.datetime}"] = make_reference_page(page)
            if len(self._good_pages) > 2 * _MAX_PAGES:
                del self._good_pages[next(iter(self._good_pages))]

    def add_error_page(self, page: PageResponse) -> None:
        """Add a page that the site served with status 404 or 410. The last four are retained."""
        self._error_pages = [*self._error_pages[-3:], make_reference_page(page)]

    def needs_earlier_page(self, page: PageResponse) -> bool:
        """Return whether a page looks hijacked or parked and no earlier page of the site is known."""
        return not self._earlier_pages(page) and is_suspicious(page)

    def _context(self, page: PageResponse) -> ClassifierContext:
        year = int(page.datetime[:4])
        near = [known for known in self._good_pages.values() if abs(int(known.datetime[:4]) - year) <= _MAX_YEARS_APART]
        others = [known for known in near if page_identity(known.uri) != page_identity(page.uri)]
        home = next((known for known in reversed(others) if urlsplit(known.uri).path in ("", "/")), None)
        error_page = (known for known in self._error_pages if abs(int(known.datetime[:4]) - year) <= _MAX_YEARS_APART)
        return ClassifierContext(self._earlier_pages(page), others[:_MAX_CONTEXT_PAGES], home, next(error_page, None))

    def _earlier_pages(self, page: PageResponse) -> tuple[ReferencePage, ...]:
        """Return earlier pages: those with the same URL first, then the oldest."""
        identity = page_identity(page.uri)
        before = [known for known in self._good_pages.values() if known.datetime < page.datetime]
        return tuple(
            sorted(before, key=lambda known: (page_identity(known.uri) != identity, known.datetime))[
                :_MAX_CONTEXT_PAGES
            ]
        )


_PAGES_FROM_EARLIER_RUNS = 12  # good pages of earlier runs used as context
_TAKEOVER_GAP = timedelta(days=30)  # an expired domain is sold a month later at the earliest


@dataclass(frozen=True, slots=True)
class _PendingCapture:
    """A capture that looks hijacked or parked.

    Attributes:
        record_id: Id of its record.
        capture_id: Id of its row in the table of captures.
        stored: The stored capture.
        quality: Its quality without a verdict.
    """

    record_id: int
    capture_id: int
    stored: StoredCapture
    quality: CaptureQuality


class QualityGate:
    """Classifies captures when they are fetched.

    Args:
        state: The database of the recovery.
        warcs: The WARC files of the recovery.
        on_event: Receives the events of the run.
        drop_rejected: Whether a rejected capture is never accepted. Otherwise it is accepted as doubtful if there is
            no better one.
    """

    def __init__(self, state: RecoveryState, warcs: WarcStore, on_event: EventListener, *, drop_rejected: bool) -> None:
        self._state = state
        self._warcs = warcs
        self._on_event = on_event
        self._rejected_quality = CaptureQuality.REJECTED if drop_rejected else CaptureQuality.DOUBTFUL
        self._context: SiteContext | None = None
        self._pending: dict[int, _PendingCapture] = {}  # by resource id

    def classify(self, page: PageResponse | None, quality: CaptureQuality) -> PageVerdict | None:
        """Return why a capture of this quality is rejected; None if it is not. Good pages are added to the context."""
        if page is None:
            return None
        context = self._site_context()
        verdict = context.classify(page) if quality <= CaptureQuality.PARTIAL else None
        if quality is CaptureQuality.ERROR and page.status in (404, 410):
            context.add_error_page(page)
        elif (
            verdict is None
            and quality in (CaptureQuality.GOOD, CaptureQuality.MIGRATED)
            and not context.needs_earlier_page(page)
        ):
            context.add_good_page(page)
        return verdict

    def reject(
        self, record_id: int, record: RecoveryRecord, quality: CaptureQuality, verdict: PageVerdict
    ) -> CaptureQuality:
        """Store and report the rejection of a record.

        Args:
            record_id: Id of the record.
            record: The record.
            quality: Its quality without the rejection.
            verdict: Why it is rejected.

        Returns:
            Its new quality.
        """
        self._state.records.set_quality(record_id, self._rejected_quality)
        self._state.rejections.add(record_id, quality, verdict.kind.value, verdict.reason)
        capture = record.capture
        self._on_event(
            CaptureRejected(capture.uri, capture.archive, capture.datetime, verdict.kind.value, verdict.reason)
        )
        return self._rejected_quality

    def is_pending(self, resource: int) -> bool:
        """Return whether a resource awaits a second opinion."""
        return resource in self._pending

    def defer(
        self, resource: int, record_id: int, capture_id: int, stored: StoredCapture, quality: CaptureQuality
    ) -> bool:
        """Defer the decision on a capture that looks hijacked or parked, if no earlier page is known.

        Its links are not followed until the decision.

        Args:
            resource: Id of the resource.
            record_id: Id of the record.
            capture_id: Id of the row in the table of captures.
            stored: The stored capture.
            quality: Its quality without a verdict.

        Returns:
            Whether the decision is deferred.
        """
        if (
            stored.page is None
            or quality > CaptureQuality.MIGRATED
            or not self._site_context().needs_earlier_page(stored.page)
        ):
            return False
        self._pending[resource] = _PendingCapture(record_id, capture_id, stored, quality)
        self._state.set_refollow_links(refollow=True)  # after a crash, its links are still to be followed
        return True

    def next_opinion(self, resource: int, remaining: Sequence[FetchCapture]) -> FetchCapture | None:
        """Return the oldest capture that shows the site well before a possible takeover; None if there is none.

        Args:
            resource: Id of the resource.
            remaining: The captures of the resource that were not fetched yet.
        """
        pending = self._pending.get(resource)
        if pending is None:
            return None
        latest = _before_takeover(pending.stored.record.capture.datetime)
        earlier = [
            each
            for each in remaining
            if each.quality <= CaptureQuality.MIGRATED and each.listed.capture.datetime < latest
        ]
        return min(earlier, key=lambda each: each.listed.capture.datetime, default=None)

    def resolve(self, resource: int, opinion: int | None) -> StoredCapture | None:
        """Decide on a pending capture.

        If it is rejected, the second opinion loses rank against captures known to be good, so that the last good
        capture is searched for.

        Args:
            resource: Id of the resource.
            opinion: Id of an earlier record; None if there is none.

        Returns:
            The pending capture if it is accepted, so that its links are followed; otherwise None.
        """
        pending = self._pending.pop(resource)
        page = pending.stored.page
        verdict = None if page is None else self._site_context().classify(page)
        if verdict is None:
            if page is not None:
                self._site_context().add_good_page(page)
            return pending.stored
        self.reject(pending.record_id, pending.stored.record, pending.quality, verdict)
        self._state.captures.set_outcome(pending.capture_id, CaptureOutcome.REJECTED)
        if opinion is not None and self._state.records.get(opinion).quality <= CaptureQuality.MIGRATED:
            self._state.records.set_quality(opinion, CaptureQuality.UNKNOWN)
        self._state.resources.set_best_record(resource, self._state.records.best(resource))
        return None

    def _site_context(self) -> SiteContext:
        """Return the context of the site, initialized from earlier runs."""
        if self._context is None:
            self._context = SiteContext()
            for row in self._state.records.good_pages(_PAGES_FROM_EARLIER_RUNS):
                page = warc_store.load_stored(self._warcs, row.record).page
                if page is not None:
                    self._context.add_good_page(page)
        return self._context


def _before_takeover(datetime: str) -> str:
    """Return the latest datetime at which a site taken over by `datetime` was still original; both 14 digits."""
    try:
        return dates.from_datetime(dates.to_datetime(datetime) - _TAKEOVER_GAP)
    except OverflowError:  # some archives list captures dated in the year 1
        return ""
