"""Queries archives for what they have of a site.

Archives with a listing API are listed, others are queried for single resources. Samples of captures are classified.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Protocol

from unlost.aggregate.models import RoutingOptions
from unlost.aggregate.router import RouteProvider, RouteTarget
from unlost.aggregate.upstream import UpstreamClient, UpstreamResult
from unlost.archives.base import ArchiveClient, FetchedCapture
from unlost.capture import Capture
from unlost.check.availability import ArchiveHolding, ResourceAvailability
from unlost.check.visit_store import CurrentVisit, ListingResult
from unlost.crawl.models import LiveResource
from unlost.errors import ArchiveError, UnsupportedError, UriError
from unlost.quality import PageResponse, classify_page
from unlost.registry.models import Archive

MAX_LISTED_URLS = 200_000
"""Of one list, some 85 MB of memory; a list of more is cut, and its archive asked for single addresses instead."""


def is_good_capture(capture: Capture) -> bool:
    """Return whether a capture is of a page, as far as its index tells: no error, no redirect.

    >>> [is_good_capture(Capture("http://a/", "a)/", "20140210000001", status)) for status in (200, 404, None)]
    [True, False, True]
    """
    if capture.status is None or capture.revisit:
        return True
    return 200 <= capture.status < 300


@dataclass(slots=True)
class SiteListing:
    """Captures of a site, added up by key. uris: how each is spelled. rows: how many were listed, of whatever kind."""

    archive: str
    held: dict[str, ArchiveHolding] = field(default_factory=dict)
    uris: dict[str, str] = field(default_factory=dict)
    rows: int = 0

    def add(self, capture: Capture) -> None:
        """Take one capture."""
        self.rows += 1
        if capture.key is None or not is_good_capture(capture):
            return
        before = self.held.get(capture.key)
        if before is None:
            self.uris[capture.key] = capture.uri
            self.held[capture.key] = ArchiveHolding(
                self.archive, 1, capture.datetime, capture.datetime, capture.digest, capture.migrated
            )
            return
        is_later = capture.datetime >= before.last
        # One copy in its own format is enough for it to come back so.
        kept = False if False in (before.migrated, capture.migrated) else before.migrated
        self.held[capture.key] = ArchiveHolding(
            self.archive,
            before.copies + 1,
            min(before.first, capture.datetime),
            max(before.last, capture.datetime),
            capture.digest if is_later else before.digest,
            kept,
        )


async def fetch_listing(
    repository: ArchiveClient,
    prefix: str,
    max_urls: int = MAX_LISTED_URLS,
    on_rows: Callable[[int], object] = lambda _: None,
) -> tuple[ListingResult | None, SiteListing]:
    """Return how a lister query ended, and what was listed; None in the first place if the archive has no such list.

    Nothing is raised that an archive could cause: what it listed before it failed is right. tell: gets the number of
    rows now and then.
    """
    archive = repository.archive.id
    found = SiteListing(archive)
    try:
        async for capture in repository.list_prefix(prefix):
            found.add(capture)
            if found.rows % 1_000 == 0:
                on_rows(found.rows)
            if len(found.held) > max_urls:
                return ListingResult(archive, prefix, False, found.rows, 0, f"more than {max_urls:,} addresses"), found
    except UnsupportedError:
        return None, found
    except ArchiveError as error:
        return ListingResult(archive, prefix, False, found.rows, 0, str(error)[:300]), found
    return ListingResult(archive, prefix, True, found.rows), found


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


GOOD_CAPTURE = ""
"""Stands for a copy that nothing speaks against."""
_MAX_ARCHIVES = 2  # that are asked for copies of one page, those with the newest first
_CONCURRENT_PAGES = 4  # pages
_MAX_CLASSIFIED_BYTES = 1 << 20  # bytes of a copy whose words are looked at
_MAX_CAPTURE_FAILURES = 3  # in a row, after which an archive is not asked for copies any more


class CaptureSampler:
    """Fetches copies of pages that are on the web and in archives, drawn as good as at random, and judges them.

    repositories: whom to ask. most: how many pages. What was judged before is not fetched again.
    """

    def __init__(self, visit: CurrentVisit, repositories: Mapping[str, ArchiveClient], max_pages: int) -> None:
        self._visit = visit
        self._repositories = repositories
        self._max_pages = max_pages
        self._failures: dict[str, int] = {}

    async def classify_sample(self, archives: tuple[str, ...]) -> None:
        """Judge them, and keep what came of it. What an archive fails to give is not judged: a later run may."""
        there = [
            (sha256(standing.live.key.encode("utf-8", "surrogatepass")).digest(), number, standing)
            for number, standing in self._visit.numbered_availabilities(archives)
            if standing.is_classifiable
        ]
        there.sort(key=lambda each: each[0])
        known = self._visit.verdicts()
        left = iter([(number, each) for _, number, each in there[: self._max_pages] if number not in known])

        async def work() -> None:
            for number, standing in left:
                verdict = await self._verdict(standing)
                if verdict is not None:
                    self._visit.record_verdict(number, verdict)

        await run_all(work() for _ in range(_CONCURRENT_PAGES))

    async def _verdict(self, standing: ResourceAvailability) -> str | None:
        """Return what is wrong with the copies of a page, in a word, `GOOD` if one is good; None if nobody can tell.

        Of each archive its last copy is fetched, and its first one if that is bad.
        """
        first_word: str | None = None
        for held in sorted(standing.held, key=lambda each: each.last, reverse=True)[:_MAX_ARCHIVES]:
            for date in dict.fromkeys((held.last, held.first)):
                word = await self._classify_capture(held.archive, standing.live.uri, date)
                if word is None:
                    return None
                if word == GOOD_CAPTURE:
                    return GOOD_CAPTURE
                first_word = first_word or word
        return first_word

    async def _classify_capture(self, archive: str, uri: str, date: str) -> str | None:
        repository = self._repositories.get(archive)
        if repository is None or self._failures.get(archive, 0) >= _MAX_CAPTURE_FAILURES:
            return None
        try:
            copy = await repository.get(uri, date)
        except (ArchiveError, UriError):
            self._failures[archive] = self._failures.get(archive, 0) + 1
            return None
        self._failures[archive] = 0
        return "absent" if copy is None else await asyncio.to_thread(_classify_body, copy)


def _classify_body(copy: FetchedCapture) -> str:
    capture = copy.capture
    with copy.body:
        copy.body.seek(0)
        body = copy.body.read(_MAX_CLASSIFIED_BYTES)
    if capture.status is not None and not 200 <= capture.status < 300:
        return "error"
    found = classify_page(PageResponse(capture.uri, capture.datetime, capture.status, capture.mime, body, copy.headers))
    return GOOD_CAPTURE if found is None else found.kind.value
