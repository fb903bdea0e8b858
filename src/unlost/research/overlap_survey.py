"""Surveys archives for the pages of a list, within their rate limits, and fetches sampled captures and live pages.

Every archive is queried for every page: routing by maps would save requests, and measure the maps instead of the
archives.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, Protocol, Self, TypeVar
from urllib.parse import urljoin

from unlost.aggregate.upstream import classify_error
from unlost.archives.base import ArchiveClient
from unlost.archives.sampler import EarlyStop
from unlost.capture import Capture
from unlost.clock import Clock, SystemClock
from unlost.crawl.fetcher import Fetcher, FetchRequest, FetchResponse
from unlost.crawl.politeness import PoliteFetcher
from unlost.crawl.robots import MemoryRobotsStore
from unlost.documents import DocumentReader
from unlost.errors import (
    ArchiveError,
    ExcludedError,
    ListCutError,
    NotNowError,
    RobotsError,
    SiteError,
    SiteWaitError,
    UnsupportedError,
    UriError,
)
from unlost.http.circuit_breaker import BreakerRegistry
from unlost.http.policy import MAX_WAITS, POLICIES
from unlost.http.url import parse_url
from unlost.quality import PageResponse as Page
from unlost.quality import VerdictKind, classify_page
from unlost.research.overlap_state import (
    FETCH_OUTCOMES,
    VISIT_OUTCOMES,
    OverlapPage,
    OverlapState,
    TimeMapSummary,
    random_rank,
)
from unlost.research.page_snapshot import PageObservation, is_archive_error_page, snapshot_capture, snapshot_response
from unlost.uri import key

_MAX_REDIRECTS = 5
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_MAX_BODY_BYTES = 16 << 20  # of a response
_CLASSIFIED_BYTES = 1 << 20  # of a body that are classified
_ABSENT_KINDS = frozenset({VerdictKind.SOFT_404, VerdictKind.PARKED})

_T = TypeVar("_T")


class LiveWebClient(Protocol):
    """Visits live pages politely: obeys robots.txt, and sends one request at a time to a site, with pauses."""

    async def fetch_snapshot(self, uri: str) -> tuple[str, PageObservation | None]:
        """Return the outcome of a visit and the snapshot of the page.

        The outcome is `answered` with a snapshot of any status; `absent` for a soft 404; `silent` if the server did not
        respond; `forbidden` by robots.txt; any other value if the liveness is unknown for now. Does not raise for
        server errors.
        """
        ...


class PoliteLiveWebClient:
    """A `LiveWebClient`. Use it as an async context manager.

    Args:
        clock: Clock for pauses.
        contact: Email address or URL for site operators; without it, pauses are doubled.
        delay: Seconds between two requests to one host.
        documents: Extracts the text of documents.
    """

    def __init__(
        self, clock: Clock, contact: str | None, delay: float, documents: DocumentReader | None = None
    ) -> None:
        self._robots = MemoryRobotsStore()
        self._fetcher = Fetcher((), clock, contact)
        pause_seconds = delay if contact else 2 * delay
        self._polite_fetcher = PoliteFetcher(
            self._fetcher, self._robots, clock, pause_seconds, max_wait=MAX_WAITS["overlap"]
        )
        self._documents = documents

    async def __aenter__(self) -> Self:
        """Open the HTTP client."""
        await self._fetcher.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the HTTP client."""
        await self._fetcher.__aexit__(None, None, None)

    async def fetch_snapshot(self, uri: str) -> tuple[str, PageObservation | None]:
        """Return the outcome of a visit and the snapshot of the page, as `LiveWebClient` specifies.

        Redirects to the same key (http to https, with or without `www`) are followed, because archives do not
        distinguish these URLs. A redirect to another page is the response itself.
        """
        self._fetcher.allow_origin(uri)
        url = uri
        for redirects_left in reversed(range(_MAX_REDIRECTS + 1)):
            try:
                response = await self._polite_fetcher.fetch(FetchRequest(url, max_bytes=_MAX_BODY_BYTES))
            except RobotsError as error:
                return self._blocked_outcome(url, error), None
            except SiteWaitError:
                return "told-to-wait", None
            except SiteError:
                return "silent", None
            target = _same_page_redirect(url, response)
            if target is None or not redirects_left:
                return await asyncio.to_thread(self._take_snapshot, uri, response)
            response.body.close()
            url = target
        raise AssertionError  # unreachable: the loop returns on the last redirect

    def _blocked_outcome(self, url: str, error: RobotsError) -> str:
        """Return the outcome for a blocked page. An unreachable robots.txt counts as silent."""
        if not error.is_temporary:
            return "forbidden"
        robots = self._robots.get(parse_url(url).origin)
        return "silent" if robots is None or robots.status is None else "told-to-wait"

    def _take_snapshot(self, uri: str, response: FetchResponse) -> tuple[str, PageObservation]:
        mime = (response.header("content-type") or "").partition(";")[0].strip().lower() or None
        with response.body as body:
            outcome = "absent" if _is_soft_404(uri, response, mime, body) else "answered"
            return outcome, snapshot_response(
                uri,
                response.requested_at,
                response.status,
                mime,
                response.headers,
                body,
                response.truncated,
                self._documents,
            )


def _same_page_redirect(url: str, response: FetchResponse) -> str | None:
    """Return the redirect target if it has the same key, else None."""
    location = response.header("location")
    if response.status not in _REDIRECT_STATUSES or not location:
        return None
    try:
        target = urljoin(url, location.strip())
        return target if key(target) == key(url) else None
    except (UriError, ValueError):
        return None


def _is_soft_404(uri: str, response: FetchResponse, mime: str | None, body: BinaryIO) -> bool:
    """Return whether the content of a response says that the page does not exist."""
    page = Page(uri, response.requested_at, response.status, mime, body.read(_CLASSIFIED_BYTES), response.headers)
    body.seek(0)
    verdict = classify_page(page)
    return verdict is not None and verdict.kind in _ABSENT_KINDS


class OverlapSurvey:
    """Runs the pending requests of a survey.

    Args:
        state: State of the survey.
        clients: Archives to query.
        max_fetches: Maximum number of captures to fetch per archive, over all runs.
        live_client: Visits the live versions of these pages; None to skip them.
        concurrency: Concurrent requests per archive, and concurrent live visits.
        documents: Extracts the text of documents.
        on_done: Called after each request, successful or not.
    """

    def __init__(
        self,
        state: OverlapState,
        clients: Sequence[ArchiveClient],
        *,
        max_fetches: int,
        live_client: LiveWebClient | None = None,
        concurrency: int = 4,
        documents: DocumentReader | None = None,
        on_done: Callable[[], object] = lambda: None,
    ) -> None:
        self._state = state
        self._clients = clients
        self._max_fetches = max_fetches
        self._live_client = live_client
        self._concurrency = concurrency
        self._documents = documents
        self._on_done = on_done
        self._stops: dict[str, EarlyStop] = {}
        self._breakers = BreakerRegistry(SystemClock(), POLICIES["sample"])

    async def run(self) -> dict[str, EarlyStop]:
        """Run all pending requests; return the archives that were abandoned, with the reason.

        Failed requests are skipped; the next run repeats them.

        Raises:
            InputError: The state file is damaged.
            OSError: A result could not be stored.
        """
        await self._run_all(self._query_archive(each) for each in self._clients)
        if self._live_client is not None:
            ids = [each.archive.id for each in self._clients]
            # In random order, so that consecutive pages are rarely of the same site, whose pauses they would wait for.
            pages = sorted(self._state.unvisited(ids, self._max_fetches), key=lambda page: random_rank(0, page.key))
            pending = iter(pages)
            await self._run_all(self._run_worker(pending, self._visit_live_page, "") for _ in range(self._concurrency))
        for stop in self._stops.values():
            if not isinstance(stop.error, ArchiveError):
                raise stop.error
        return self._stops

    async def _run_all(self, tasks: Iterable[Awaitable[None]]) -> None:
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(_await(task))

    async def _query_archive(self, client: ArchiveClient) -> None:
        archive = client.archive.id
        pages = self._state.unanswered(archive)
        await self._run_all(
            self._run_worker(pages, lambda page: self._query_page(client, page), archive)
            for _ in range(self._concurrency)
        )
        if self._max_fetches and archive not in self._stops:
            # After all listings, because the sample consists of the first archived pages in random order.
            captures = iter(self._state.unfetched(archive, self._max_fetches))
            await self._run_all(
                self._run_worker(captures, lambda item: self._fetch_capture(client, *item), archive)
                for _ in range(self._concurrency)
            )

    async def _run_worker(self, items: Iterator[_T], process: Callable[[_T], Awaitable[bool]], archive: str) -> None:
        """Process items until none is left or the archive is abandoned."""
        while archive not in self._stops and (item := next(items, None)) is not None:
            try:
                has_answered = await process(item)
            except Exception as error:  # noqa: BLE001  raised by `run` after the other workers have stored their results
                self._stops.setdefault(archive, EarlyStop(error))
                return
            if has_answered:
                self._breakers.record_success(archive)
            self._on_done()

    async def _query_page(self, client: ArchiveClient, page: OverlapPage) -> bool:
        """Query an archive for a page and store the listing.

        Raises:
            NotNowError: The archive is rate limited.
            UnsupportedError: The archive cannot list captures.
        """
        archive, summary = client.archive.id, TimeMapSummary()
        try:
            async for capture in client.captures(page.uri):
                summary.add(capture)
            outcome = "hit" if summary.mementos else "miss"
        except (NotNowError, UnsupportedError):
            raise
        except ExcludedError:
            outcome, summary = "excluded", TimeMapSummary()
        except (ArchiveError, UriError) as error:
            # A truncated listing still proves that the archive contains the page.
            summary.is_cut = True
            is_partial = isinstance(error, ListCutError) and summary.mementos
            outcome = "hit" if is_partial else "malformed" if isinstance(error, UriError) else classify_error(error)
            if not is_partial:
                self._state.record_listing(page, archive, outcome, TimeMapSummary())
                return self._record_failure(archive, error)
        self._state.record_listing(page, archive, outcome, summary)
        return True

    def _record_failure(self, archive: str, error: Exception) -> bool:
        """Abandon an archive after too many consecutive failures; return False."""
        if self._breakers.breaker(archive).record_failure(type(error).__name__, str(error)):
            self._stops.setdefault(archive, EarlyStop(error, POLICIES["sample"].failures))
        return False

    async def _fetch_capture(self, client: ArchiveClient, page: OverlapPage, capture: Capture) -> bool:
        """Fetch a capture and store its snapshot.

        Raises:
            NotNowError: The archive is rate limited.
        """
        archive = client.archive.id
        snapshot: PageObservation | None = None
        try:
            fetched = await client.fetch(capture)
            if fetched is None:
                outcome = "absent"
            elif is_archive_error_page(fetched):
                outcome = "archive-error"
                fetched.body.close()
            else:
                outcome, snapshot = "copy", await asyncio.to_thread(snapshot_capture, fetched, self._documents)
        except NotNowError:
            raise
        except ArchiveError as error:
            outcome = classify_error(error)
            if outcome not in FETCH_OUTCOMES:
                self._state.record_fetch(page, archive, outcome, None)
                return self._record_failure(archive, error)
        self._state.record_fetch(page, archive, outcome, snapshot)
        return True

    async def _visit_live_page(self, page: OverlapPage) -> bool:
        """Visit a live page and store its snapshot."""
        if self._live_client is None:
            return False
        outcome, snapshot = await self._live_client.fetch_snapshot(page.uri)
        self._state.record_visit(page, outcome, snapshot)
        return outcome in VISIT_OUTCOMES


async def _await(task: Awaitable[None]) -> None:
    await task
