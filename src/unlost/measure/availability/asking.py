"""Asks archives what they have of a site: lists where they list, else page by page, within their limits."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Protocol

from unlost.aggregate.asking import UpstreamResult, UpstreamClient
from unlost.aggregate.route import RouteTarget, RouteProvider
from unlost.aggregate.wish import RoutingOptions
from unlost.archives.archive import Archive
from unlost.archives.repository import ArchiveClient
from unlost.crawl.resource import LiveResource
from unlost.measure.availability.listing import SiteListing, fetch_listing
from unlost.measure.availability.standing import ArchiveHolding
from unlost.measure.visits.present import ListingResult, CurrentVisit

MAX_FAILURES = 5
"""So many in a row, and an archive is not asked any more in this visit."""


UrlProber = Callable[[list[str]], Awaitable[list[LiveResource]]]
"""Looks at addresses of a living site, and tells what is there."""


@dataclass(slots=True)
class _UnseenResource:
    """An address that archives list, and the site was not seen to have."""

    order: bytes
    uri: str
    held: list[ArchiveHolding] = field(default_factory=list)


class CheckProgress(Protocol):
    """Is told how far the asking has come."""

    def listing_finished(self, listed: ListingResult) -> None:
        """Take how a list ended."""
        ...

    def queries_done(self, done: int, total: int) -> None:
        """Take how many single questions were asked, of how many."""
        ...


class NullProgress:
    """Tells nobody."""

    def listing_finished(self, listed: ListingResult) -> None:
        """Take how a list ended."""

    def queries_done(self, done: int, total: int) -> None:
        """Take how many single questions were asked."""


@dataclass(frozen=True, slots=True)
class ArchiveAccess:
    """With what archives are asked.

    archives: those that might have something, by id. repositories: for lists. asker: for single pages.
    router: says who may have a page, by maps; of the archives that it knows, all are asked otherwise.
    keepers: for copies.
    """

    archives: Mapping[str, Archive]
    listing_clients: Mapping[str, ArchiveClient]
    upstream: UpstreamClient
    router: RouteProvider
    capture_clients: Mapping[str, ArchiveClient] = field(default_factory=dict)


@dataclass(slots=True)
class ArchiveQueryResult:
    """What came of asking.

    given_up: archives that were not asked to the end, with the last thing that they said.
    """

    given_up: dict[str, str] = field(default_factory=dict)


class AvailabilityQuery:
    """One visit's questions. What was answered is kept in the visit, and not asked again.

    sample: how many pages are asked for one by one, at most; None for all. thorough: ask every archive for every page,
    also where another is known to have it.
    look: looks at addresses of the site that archives list and it was not seen to have; None if nobody can.
    beside: how many of them are looked at, at most.
    """

    def __init__(
        self,
        visit: CurrentVisit,
        access: ArchiveAccess,
        *,
        sample: int | None = None,
        thorough: bool = False,
        probe: UrlProber | None = None,
        max_probed: int = 0,
        progress: CheckProgress | None = None,
    ) -> None:
        self._visit = visit
        self._access = access
        self._sample = sample
        self._thorough = thorough
        self._probe = probe
        self._max_probed = max_probed
        self._unseen: dict[str, _UnseenResource] = {}
        self._progress = progress or NullProgress()
        self._result = ArchiveQueryResult()

    async def run(self, prefixes: Sequence[str]) -> ArchiveQueryResult:
        """Ask all archives; return what came of it. prefixes: what to ask for lists of."""
        await self._fetch_listings(prefixes)
        await self._probe_unseen()
        await self._query_resources()
        return self._result

    async def _fetch_listings(self, prefixes: Sequence[str]) -> None:
        done = {(each.archive, each.prefix) for each in self._visit.listings() if each.is_whole}
        await run_all(
            self._fetch_listings_of(repository, [each for each in prefixes if (name, each) not in done])
            for name, repository in self._access.listing_clients.items()
        )

    async def _fetch_listings_of(self, repository: ArchiveClient, prefixes: Sequence[str]) -> None:
        for prefix in prefixes:
            listed, found = await fetch_listing(repository, prefix)
            if listed is None:
                return
            beside = found.held.keys() - self._visit.filter_seen(list(found.held))
            listed = replace(listed, beside=len(beside))
            self._sample_unseen(found, beside)
            self._visit.record_listing(listed, found.held)
            self._progress.listing_finished(listed)
            if not listed.is_whole:
                # A second list would most likely end the same way, and all of them are needed.
                return

    def _sample_unseen(self, found: SiteListing, keys: set[str]) -> None:
        """Choose, of what archives list besides, as many as are looked at: those with the lowest hashes."""
        if self._probe is None:
            return
        for key in keys:
            chosen = self._unseen.get(key)
            if chosen is None:
                chosen = self._unseen[key] = _UnseenResource(sha256(key.encode()).digest(), found.uris[key])
            chosen.held.append(found.held[key])
        if len(self._unseen) > self._max_probed:
            kept = sorted(self._unseen.items(), key=lambda each: each[1].order)[: self._max_probed]
            self._unseen = dict(kept)

    async def _probe_unseen(self) -> None:
        if self._probe is None or not self._unseen:
            return
        found = await self._probe([each.uri for each in self._unseen.values()])
        self._visit.record_live(found)
        for archive in self._access.archives:
            of_it = {key: held for key, each in self._unseen.items() for held in each.held if held.archive == archive}
            self._visit.record_holdings(of_it)

    async def _query_resources(self) -> None:
        """Ask one by one the archives that have not listed the site: each at its own pace, for one page at a time."""
        left = [name for name in self._access.archives if name not in self._visit.complete_listings()]
        if not left:
            return
        if not self._visit.sample():  # else it goes on with those that were drawn before
            self._visit.draw_sample(self._sample, include_held=self._thorough)
        questions: dict[str, list[tuple[int, str, str | None, RouteTarget]]] = {name: [] for name in left}
        answered = self._visit.answered_queries()
        total = 0
        for number, uri, mime in self._visit.sample():
            route = self._access.router.route(uri, RoutingOptions())
            asked = {choice.archive.id: choice for choice in route.targets}
            for name in left:
                if (number, name) in answered:
                    continue
                choice = asked.get(name)
                if choice is None:
                    # Its map says that it has nothing: maps never deny what is held.
                    self._visit.record_query(number, name, None, has_answered=True)
                else:
                    questions[name].append((number, uri, mime, choice))
                    total += 1
        count = 0

        def one_more() -> None:
            nonlocal count
            count += 1
            self._progress.queries_done(count, total)

        await run_all(self._query_archive(name, each, one_more) for name, each in questions.items())

    async def _query_archive(
        self, name: str, questions: list[tuple[int, str, str | None, RouteTarget]], one_more: Callable[[], None]
    ) -> None:
        """Ask one archive for pages, one after the other, until it fails too often."""
        failures = 0
        for number, uri, mime, choice in questions:
            asked = await self._access.upstream.query(uri, choice, float("inf"))
            one_more()
            report = asked.report
            is_good = report.has_answered or report.outcome == "incomplete"
            self._visit.record_query(
                number, name, _holding_of_timemap(asked, choice.archive, mime), has_answered=is_good
            )
            failures = 0 if is_good else failures + 1
            if report.outcome == "not-now" or failures >= MAX_FAILURES:
                self._result.given_up[name] = report.message or report.outcome
                return


async def run_all(works: Iterable[Coroutine[object, object, None]]) -> None:
    """Do all at once; when one fails, the others are ended before anybody hears of it: they write into one file."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _holding_of_timemap(asked: UpstreamResult, archive: Archive, mime: str | None) -> ArchiveHolding | None:
    """Return what an archive has of a page, by its TimeMap, which does not tell good copies from others."""
    first, last = asked.mementos.first, asked.mementos.last
    if first is None or last is None:
        return None
    return ArchiveHolding(
        archive.id, len(asked.mementos), first.datetime, last.datetime, None, archive.is_migrated(mime)
    )
