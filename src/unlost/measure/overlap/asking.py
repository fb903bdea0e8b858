"""Asks archives for the pages of a list, all archives at once and each within its limits, and fetches some copies."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from unlost.aggregate.asking import classify_error
from unlost.archives.repository import ArchiveClient
from unlost.archives.sampling.sampler import MAX_CONSECUTIVE_FAILURES, EarlyStop
from unlost.errors import ArchiveError, ExcludedError, ListCutError, NotNowError, UnsupportedError, UriError
from unlost.formats.capture import Capture
from unlost.measure.overlap.copies import PageObservation, is_archive_error_page, snapshot_capture
from unlost.measure.overlap.live import LiveWebClient
from unlost.measure.overlap.state import FETCH_OUTCOMES, VISIT_OUTCOMES, OverlapState, OverlapPage, random_rank
from unlost.measure.overlap.tally import TimeMapSummary
from unlost.pages.documents import DocumentReader

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
