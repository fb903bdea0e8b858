"""Looks at live pages: as their sites wish, and as far as a comparison with copies needs it."""

import asyncio
from typing import BinaryIO, Self
from urllib.parse import urljoin

from unlost import uri as addresses
from unlost.archives.asking.addresses import parse_url
from unlost.clock import Clock
from unlost.crawl.polite import PoliteFetcher
from unlost.crawl.robots import MemoryRobotsStore
from unlost.crawl.visitor import FetchResponse, FetchRequest, Fetcher
from unlost.errors import RobotsError, SiteError, SiteWaitError, UriError
from unlost.measure.overlap.copies import PageObservation, snapshot_response
from unlost.pages.documents import DocumentReader
from unlost.pages.verdicts import PageResponse as Page
from unlost.pages.verdicts import VerdictKind, classify_page

_MAX_REDIRECTS = 5
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_MAX_BODY_BYTES = 16 << 20  # of a page: as much as documents may have, and more than pages do
_CLASSIFIED_BYTES = 1 << 20  # bytes of a page whose words are looked at
_ABSENT_KINDS = frozenset({VerdictKind.SOFT_404, VerdictKind.PARKED})
_MAX_WAIT_SECONDS = 60.0  # how long a site may keep us waiting by saying so: others are to be looked at, too


class PoliteLiveWebClient:
    """The live web, politely; a `LiveWeb`. Use it as an async context manager.

    contact: an address of mail or of a page, for whoever looks after a site; without one, pauses are twice as long.
    delay: seconds between two requests to one host. documents: gives the text of documents.
    """

    def __init__(
        self, clock: Clock, contact: str | None, delay: float, documents: DocumentReader | None = None
    ) -> None:
        self._robots = MemoryRobotsStore()
        self._visitor = Fetcher((), clock, contact)
        pause = delay if contact else 2 * delay
        self._polite = PoliteFetcher(self._visitor, self._robots, clock, pause, max_wait=_MAX_WAIT_SECONDS)
        self._documents = documents

    async def __aenter__(self) -> Self:
        """Open the connections."""
        await self._visitor.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self._visitor.__aexit__(None, None, None)

    async def fetch_snapshot(self, uri: str) -> tuple[str, PageObservation | None]:
        """Return what came of it, as `LiveWeb` has it.

        Redirects are followed to what archives cannot tell from the page: https for http, with `www` or without. One
        that leads to another page is the answer.
        """
        self._visitor.allow_origin(uri)
        at = uri
        for left in reversed(range(_MAX_REDIRECTS + 1)):
            try:
                answer = await self._polite.fetch(FetchRequest(at, max_bytes=_MAX_BODY_BYTES))
            except RobotsError as error:
                return self._blocked_outcome(at, error), None
            except SiteWaitError:
                return "told-to-wait", None
            except SiteError:
                return "silent", None
            target = _same_page_redirect(at, answer)
            if target is None or not left:
                return await asyncio.to_thread(self._take_snapshot, uri, answer)
            answer.body.close()
            at = target
        raise AssertionError  # the last one is the answer

    def _blocked_outcome(self, at: str, error: RobotsError) -> str:
        """Return what is known of a page that may not be asked for: whoever has no robots.txt may be gone."""
        if not error.is_temporary:
            return "forbidden"
        kept = self._robots.get(parse_url(at).origin)
        return "silent" if kept is None or kept.status is None else "told-to-wait"

    def _take_snapshot(self, uri: str, answer: FetchResponse) -> tuple[str, PageObservation]:
        mime = (answer.header("content-type") or "").partition(";")[0].strip().lower() or None
        with answer.body as body:
            outcome = "absent" if _is_soft_404(uri, answer, mime, body) else "answered"
            return outcome, snapshot_response(
                uri, answer.requested_at, answer.status, mime, answer.headers, body, answer.truncated, self._documents
            )


def _same_page_redirect(at: str, answer: FetchResponse) -> str | None:
    """Return where an answer leads if that is the same page by another name, else None."""
    location = answer.header("location")
    if answer.status not in _REDIRECT_STATUSES or not location:
        return None
    try:
        target = urljoin(at, location.strip())
        return target if addresses.key(target) == addresses.key(at) else None
    except (UriError, ValueError):
        return None


def _is_soft_404(uri: str, answer: FetchResponse, mime: str | None, body: BinaryIO) -> bool:
    """Return whether a site says in words, though not by the status, that there is no such page."""
    page = Page(uri, answer.requested_at, answer.status, mime, body.read(_CLASSIFIED_BYTES), answer.headers)
    body.seek(0)
    found = classify_page(page)
    return found is not None and found.kind in _ABSENT_KINDS
