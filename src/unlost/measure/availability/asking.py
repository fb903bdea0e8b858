"""Asks archives what they have of a site: lists where they list, else page by page, within their limits."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Protocol

from unlost.aggregate.asking import Asked, Asker
from unlost.aggregate.route import Choice, Routes
from unlost.aggregate.wish import Wish
from unlost.archives.archive import Archive
from unlost.archives.repository import Repository
from unlost.crawl.resource import LiveResource
from unlost.measure.availability.listing import Listing, ask_for_list
from unlost.measure.availability.standing import Held
from unlost.measure.visits.present import Listed, Present

FAILURES = 5
"""So many in a row, and an archive is not asked any more in this visit."""


Looks = Callable[[list[str]], Awaitable[list[LiveResource]]]
"""Looks at addresses of a living site, and tells what is there."""


@dataclass(slots=True)
class _Beside:
    """An address that archives list, and the site was not seen to have."""

    order: bytes
    uri: str
    held: list[Held] = field(default_factory=list)


class Progress(Protocol):
    """Is told how far the asking has come."""

    def listed(self, listed: Listed) -> None:
        """Take how a list ended."""
        ...

    def asked(self, done: int, total: int) -> None:
        """Take how many single questions were asked, of how many."""
        ...


class Silent:
    """Tells nobody."""

    def listed(self, listed: Listed) -> None:
        """Take how a list ended."""

    def asked(self, done: int, total: int) -> None:
        """Take how many single questions were asked."""


@dataclass(frozen=True, slots=True)
class Means:
    """With what archives are asked.

    archives: those that might have something, by id. repositories: for lists. asker: for single pages.
    router: says who may have a page, by maps; of the archives that it knows, all are asked otherwise.
    keepers: for copies.
    """

    archives: Mapping[str, Archive]
    repositories: Mapping[str, Repository]
    asker: Asker
    router: Routes
    keepers: Mapping[str, Repository] = field(default_factory=dict)


@dataclass(slots=True)
class Result:
    """What came of asking.

    given_up: archives that were not asked to the end, with the last thing that they said.
    """

    given_up: dict[str, str] = field(default_factory=dict)


class Asking:
    """One visit's questions. What was answered is kept in the visit, and not asked again.

    sample: how many pages are asked for one by one, at most; None for all. thorough: ask every archive for every page,
    also where another is known to have it.
    look: looks at addresses of the site that archives list and it was not seen to have; None if nobody can.
    beside: how many of them are looked at, at most.
    """

    def __init__(
        self,
        present: Present,
        means: Means,
        *,
        sample: int | None = None,
        thorough: bool = False,
        look: Looks | None = None,
        beside: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self._present = present
        self._means = means
        self._sample = sample
        self._thorough = thorough
        self._look = look
        self._most_beside = beside
        self._beside: dict[str, _Beside] = {}
        self._progress = progress or Silent()
        self._result = Result()

    async def ask(self, prefixes: Sequence[str]) -> Result:
        """Ask all archives; return what came of it. prefixes: what to ask for lists of."""
        await self._lists(prefixes)
        await self._look_beside()
        await self._singles()
        return self._result

    async def _lists(self, prefixes: Sequence[str]) -> None:
        done = {(each.archive, each.prefix) for each in self._present.lists() if each.is_whole}
        await all_of(
            self._lists_of(repository, [each for each in prefixes if (name, each) not in done])
            for name, repository in self._means.repositories.items()
        )

    async def _lists_of(self, repository: Repository, prefixes: Sequence[str]) -> None:
        for prefix in prefixes:
            listed, found = await ask_for_list(repository, prefix)
            if listed is None:
                return
            beside = found.held.keys() - self._present.is_seen(list(found.held))
            listed = replace(listed, beside=len(beside))
            self._note_beside(found, beside)
            self._present.note_list(listed, found.held)
            self._progress.listed(listed)
            if not listed.is_whole:
                # A second list would most likely end the same way, and all of them are needed.
                return

    def _note_beside(self, found: Listing, keys: set[str]) -> None:
        """Choose, of what archives list besides, as many as are looked at: those with the lowest hashes."""
        if self._look is None:
            return
        for key in keys:
            chosen = self._beside.get(key)
            if chosen is None:
                chosen = self._beside[key] = _Beside(sha256(key.encode()).digest(), found.uris[key])
            chosen.held.append(found.held[key])
        if len(self._beside) > self._most_beside:
            kept = sorted(self._beside.items(), key=lambda each: each[1].order)[: self._most_beside]
            self._beside = dict(kept)

    async def _look_beside(self) -> None:
        if self._look is None or not self._beside:
            return
        found = await self._look([each.uri for each in self._beside.values()])
        self._present.see(found)
        for archive in self._means.archives:
            of_it = {key: held for key, each in self._beside.items() for held in each.held if held.archive == archive}
            self._present.hold(of_it)

    async def _singles(self) -> None:
        """Ask one by one the archives that have not listed the site: each at its own pace, for one page at a time."""
        left = [name for name in self._means.archives if name not in self._present.whole_lists()]
        if not left:
            return
        if not self._present.drawn():  # else it goes on with those that were drawn before
            self._present.draw(self._sample, also_held=self._thorough)
        questions: dict[str, list[tuple[int, str, str | None, Choice]]] = {name: [] for name in left}
        answered = self._present.answered()
        total = 0
        for number, uri, mime in self._present.drawn():
            route = self._means.router.route(uri, Wish())
            asked = {choice.archive.id: choice for choice in route.asked}
            for name in left:
                if (number, name) in answered:
                    continue
                choice = asked.get(name)
                if choice is None:
                    # Its map says that it has nothing: maps never deny what is held.
                    self._present.note_asked(number, name, None, has_answered=True)
                else:
                    questions[name].append((number, uri, mime, choice))
                    total += 1
        count = 0

        def one_more() -> None:
            nonlocal count
            count += 1
            self._progress.asked(count, total)

        await all_of(self._ask_one(name, each, one_more) for name, each in questions.items())

    async def _ask_one(
        self, name: str, questions: list[tuple[int, str, str | None, Choice]], one_more: Callable[[], None]
    ) -> None:
        """Ask one archive for pages, one after the other, until it fails too often."""
        failures = 0
        for number, uri, mime, choice in questions:
            asked = await self._means.asker.ask(uri, choice, float("inf"))
            one_more()
            report = asked.report
            is_good = report.has_answered or report.outcome == "incomplete"
            self._present.note_asked(number, name, _held(asked, choice.archive, mime), has_answered=is_good)
            failures = 0 if is_good else failures + 1
            if report.outcome == "not-now" or failures >= FAILURES:
                self._result.given_up[name] = report.message or report.outcome
                return


async def all_of(works: Iterable[Coroutine[object, object, None]]) -> None:
    """Do all at once; when one fails, the others are ended before anybody hears of it: they write into one file."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _held(asked: Asked, archive: Archive, mime: str | None) -> Held | None:
    """Return what an archive has of a page, by its TimeMap, which does not tell good copies from others."""
    first, last = asked.mementos.first, asked.mementos.last
    if first is None or last is None:
        return None
    return Held(archive.id, len(asked.mementos), first.datetime, last.datetime, None, archive.is_migrated(mime))
