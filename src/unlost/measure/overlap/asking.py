"""Asks archives for the pages of a list, all archives at once and each within its limits, and fetches some copies."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from unlost.aggregate.asking import outcome_of
from unlost.archives.repository import Repository
from unlost.archives.sampling.sampler import MAX_FAILURES, Stop
from unlost.errors import ArchiveError, ExcludedError, ListCutError, NotNowError, UnsupportedError, UriError
from unlost.formats.capture import Capture
from unlost.measure.overlap.copies import Seen, is_archives_own, seen_copy
from unlost.measure.overlap.live import LiveWeb
from unlost.measure.overlap.state import FETCHED, VISITED, OverlapState, Page, rank
from unlost.measure.overlap.tally import Tally
from unlost.pages.documents import Documents

_T = TypeVar("_T")


class Asking:
    """Asks what a state does not know yet.

    repositories: whom to ask. fetch: how many copies of each archive to fetch, at most, over all runs.
    live: looks at the live pages of these; None if nobody is to. concurrency: questions to one archive at once, and
        live pages at once. documents: gives the text of documents.
    on_done: is told of every question that was answered, or failed.
    """

    def __init__(
        self,
        state: OverlapState,
        repositories: Sequence[Repository],
        *,
        fetch: int,
        live: LiveWeb | None = None,
        concurrency: int = 4,
        documents: Documents | None = None,
        on_done: Callable[[], object] = lambda: None,
    ) -> None:
        self._state = state
        self._repositories = repositories
        self._fetch = fetch
        self._live = live
        self._concurrency = concurrency
        self._documents = documents
        self._on_done = on_done
        self._stops: dict[str, Stop] = {}
        self._failures: dict[str, int] = {}

    async def run(self) -> dict[str, Stop]:
        """Ask all that is left; return why which archives were not asked to the end.

        What fails is passed over; the next run asks for it again. Raises InputError, OSError if what came cannot be
        kept.
        """
        await self._at_once(self._ask_archive(each) for each in self._repositories)
        if self._live is not None:
            ids = [each.archive.id for each in self._repositories]
            # In an order at random, so that few wait for one site: how fast that may be asked is known there.
            pages = sorted(self._state.unvisited(ids, self._fetch), key=lambda page: rank(0, page.key))
            left = iter(pages)
            await self._at_once(self._work(left, self._visit, "") for _ in range(self._concurrency))
        for stop in self._stops.values():
            if not isinstance(stop.error, ArchiveError):
                raise stop.error
        return self._stops

    async def _at_once(self, work: Iterable[Awaitable[None]]) -> None:
        async with asyncio.TaskGroup() as group:
            for each in work:
                group.create_task(_awaited(each))

    async def _ask_archive(self, repository: Repository) -> None:
        archive = repository.archive.id
        pages = self._state.unanswered(archive)
        await self._at_once(
            self._work(pages, lambda page: self._ask(repository, page), archive) for _ in range(self._concurrency)
        )
        if self._fetch and archive not in self._stops:
            # Only now: which are the first in the order at random is known when all have been asked for.
            copies = iter(self._state.unfetched(archive, self._fetch))
            await self._at_once(
                self._work(copies, lambda copy: self._fetch_copy(repository, *copy), archive)
                for _ in range(self._concurrency)
            )

    async def _work(self, questions: Iterator[_T], ask: Callable[[_T], Awaitable[bool]], archive: str) -> None:
        """Ask one after the other until there is none, or the archive is not to be asked any more."""
        while archive not in self._stops and (question := next(questions, None)) is not None:
            try:
                has_answered = await ask(question)
            except Exception as error:  # noqa: BLE001  raised by `run`, when the others have kept what they were told
                self._stops.setdefault(archive, Stop(error))
                return
            self._failures[archive] = 0 if has_answered else self._failures.get(archive, 0) + 1
            self._on_done()

    async def _ask(self, repository: Repository, page: Page) -> bool:
        """Ask for a list, and keep what came of it. Raises NotNowError, UnsupportedError."""
        archive, tally = repository.archive.id, Tally()
        try:
            async for capture in repository.captures(page.uri):
                tally.add(capture)
            outcome = "hit" if tally.mementos else "miss"
        except (NotNowError, UnsupportedError):
            raise
        except ExcludedError:
            outcome, tally = "excluded", Tally()
        except (ArchiveError, UriError) as error:
            # What was listed before is right: that it holds the page is known.
            tally.is_cut = True
            is_list = isinstance(error, ListCutError) and tally.mementos
            outcome = "hit" if is_list else "malformed" if isinstance(error, UriError) else outcome_of(error)
            if not is_list:
                self._state.answer(page, archive, outcome, Tally())
                return self._has_failed(archive, error)
        self._state.answer(page, archive, outcome, tally)
        return True

    def _has_failed(self, archive: str, error: Exception) -> bool:
        """Stop asking an archive that fails again and again; return False."""
        if self._failures.get(archive, 0) + 1 >= MAX_FAILURES:
            self._stops.setdefault(archive, Stop(error, MAX_FAILURES))
        return False

    async def _fetch_copy(self, repository: Repository, page: Page, capture: Capture) -> bool:
        """Fetch a copy, and keep what is seen of it. Raises NotNowError."""
        archive = repository.archive.id
        seen: Seen | None = None
        try:
            copy = await repository.fetch(capture)
            if copy is None:
                outcome = "absent"
            elif is_archives_own(copy):
                outcome = "archive-error"
                copy.body.close()
            else:
                outcome, seen = "copy", await asyncio.to_thread(seen_copy, copy, self._documents)
        except NotNowError:
            raise
        except ArchiveError as error:
            outcome = outcome_of(error)
            if outcome not in FETCHED:
                self._state.fetched(page, archive, outcome, None)
                return self._has_failed(archive, error)
        self._state.fetched(page, archive, outcome, seen)
        return True

    async def _visit(self, page: Page) -> bool:
        """Look at a live page."""
        if self._live is None:
            return False
        outcome, seen = await self._live.look(page.uri)
        self._state.visited(page, outcome, seen)
        return outcome in VISITED


async def _awaited(work: Awaitable[None]) -> None:
    await work
