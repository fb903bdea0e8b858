"""Queries all archives for the pages of a list, each within its limits, and fetches sampled captures and live pages."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import BinaryIO, Protocol, Self, TypeVar
from urllib.parse import urljoin

from unlost import uri as addresses
from unlost.aggregate.upstream import classify_error
from unlost.archives.base import ArchiveClient
from unlost.archives.sampler import MAX_CONSECUTIVE_FAILURES, EarlyStop
from unlost.capture import Capture
from unlost.clock import Clock
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


class LiveWebClient(Protocol):
    """Whoever looks at live pages, politely: robots.txt, one question at a time to a site, and pauses between them."""

    async def fetch_snapshot(self, uri: str) -> tuple[str, PageObservation | None]:
        """Return what came of it, and what was seen.

        `answered` with what was seen, whatever its status; `absent` if that says in words that there is no such page;
        `silent` if no answer came; `forbidden` if robots.txt does not want it to be looked at; any other word if
        nobody can tell now. Raises nothing for what a server does.
        """
        ...


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


_T = TypeVar("_T")


class OverlapSurvey:
    """Asks what a state does not know yet.

    repositories: whom to ask. fetch: how many copies of each archive to fetch, at most, over all runs.
    live: looks at the live pages of these; None if nobody is to. concurrency: questions to one archive at once, and
        live pages at once. documents: gives the text of documents.
    on_done: is told of every question that was answered, or failed.
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
        self._failures: dict[str, int] = {}

    async def run(self) -> dict[str, EarlyStop]:
        """Ask all that is left; return why which archives were not asked to the end.

        What fails is passed over; the next run asks for it again. Raises InputError, OSError if what came cannot be
        kept.
        """
        await self._run_all(self._query_archive(each) for each in self._clients)
        if self._live_client is not None:
            ids = [each.archive.id for each in self._clients]
            # In an order at random, so that few wait for one site: how fast that may be asked is known there.
            pages = sorted(self._state.unvisited(ids, self._max_fetches), key=lambda page: random_rank(0, page.key))
            left = iter(pages)
            await self._run_all(self._run_worker(left, self._visit_live_page, "") for _ in range(self._concurrency))
        for stop in self._stops.values():
            if not isinstance(stop.error, ArchiveError):
                raise stop.error
        return self._stops

    async def _run_all(self, work: Iterable[Awaitable[None]]) -> None:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(_await(each))

    async def _query_archive(self, repository: ArchiveClient) -> None:
        archive = repository.archive.id
        pages = self._state.unanswered(archive)
        await self._run_all(
            self._run_worker(pages, lambda page: self._query_page(repository, page), archive)
            for _ in range(self._concurrency)
        )
        if self._max_fetches and archive not in self._stops:
            # Only now: which are the first in the order at random is known when all have been asked for.
            copies = iter(self._state.unfetched(archive, self._max_fetches))
            await self._run_all(
                self._run_worker(copies, lambda copy: self._fetch_capture(repository, *copy), archive)
                for _ in range(self._concurrency)
            )

    async def _run_worker(self, questions: Iterator[_T], ask: Callable[[_T], Awaitable[bool]], archive: str) -> None:
        """Ask one after the other until there is none, or the archive is not to be asked any more."""
        while archive not in self._stops and (question := next(questions, None)) is not None:
            try:
                has_answered = await ask(question)
            except Exception as error:  # noqa: BLE001  raised by `run`, when the others have kept what they were told
                self._stops.setdefault(archive, EarlyStop(error))
                return
            self._failures[archive] = 0 if has_answered else self._failures.get(archive, 0) + 1
            self._on_done()

    async def _query_page(self, repository: ArchiveClient, page: OverlapPage) -> bool:
        """Ask for a list, and keep what came of it. Raises NotNowError, UnsupportedError."""
        archive, tally = repository.archive.id, TimeMapSummary()
        try:
            async for capture in repository.captures(page.uri):
                tally.add(capture)
            outcome = "hit" if tally.mementos else "miss"
        except (NotNowError, UnsupportedError):
            raise
        except ExcludedError:
            outcome, tally = "excluded", TimeMapSummary()
        except (ArchiveError, UriError) as error:
            # What was listed before is right: that it holds the page is known.
            tally.is_cut = True
            is_list = isinstance(error, ListCutError) and tally.mementos
            outcome = "hit" if is_list else "malformed" if isinstance(error, UriError) else classify_error(error)
            if not is_list:
                self._state.record_listing(page, archive, outcome, TimeMapSummary())
                return self._record_failure(archive, error)
        self._state.record_listing(page, archive, outcome, tally)
        return True

    def _record_failure(self, archive: str, error: Exception) -> bool:
        """Stop asking an archive that fails again and again; return False."""
        if self._failures.get(archive, 0) + 1 >= MAX_CONSECUTIVE_FAILURES:
            self._stops.setdefault(archive, EarlyStop(error, MAX_CONSECUTIVE_FAILURES))
        return False

    async def _fetch_capture(self, repository: ArchiveClient, page: OverlapPage, capture: Capture) -> bool:
        """Fetch a copy, and keep what is seen of it. Raises NotNowError."""
        archive = repository.archive.id
        seen: PageObservation | None = None
        try:
            copy = await repository.fetch(capture)
            if copy is None:
                outcome = "absent"
            elif is_archive_error_page(copy):
                outcome = "archive-error"
                copy.body.close()
            else:
                outcome, seen = "copy", await asyncio.to_thread(snapshot_capture, copy, self._documents)
        except NotNowError:
            raise
        except ArchiveError as error:
            outcome = classify_error(error)
            if outcome not in FETCH_OUTCOMES:
                self._state.record_fetch(page, archive, outcome, None)
                return self._record_failure(archive, error)
        self._state.record_fetch(page, archive, outcome, seen)
        return True

    async def _visit_live_page(self, page: OverlapPage) -> bool:
        """Look at a live page."""
        if self._live_client is None:
            return False
        outcome, seen = await self._live_client.fetch_snapshot(page.uri)
        self._state.record_visit(page, outcome, seen)
        return outcome in VISIT_OUTCOMES


async def _await(work: Awaitable[None]) -> None:
    await work
