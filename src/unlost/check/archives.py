"""Queries archives for their holdings of a site.

Archives with a listing API are listed; the others are queried resource by resource. A sample of captures is fetched and
classified.
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
from unlost.clock import SystemClock
from unlost.crawl.models import LiveResource
from unlost.errors import ArchiveError, UnsupportedError, UriError
from unlost.http.circuit_breaker import BreakerRegistry, CircuitBreaker
from unlost.http.policy import POLICIES
from unlost.quality import PageResponse, classify_page
from unlost.registry.models import Archive

MAX_LISTED_URLS = 200_000
"""Maximum URLs of one listing, which take about 85 MB of memory. A longer listing is cut, and its archive is queried
resource by resource.
"""


def is_good_capture(capture: Capture) -> bool:
    """Return whether a capture is neither an error nor a redirect, according to the archive's index.

    Captures without a status, and revisits, count as good.

    >>> [is_good_capture(Capture("http://a/", "a)/", "20140210000001", status)) for status in (200, 404, None)]
    [True, False, True]
    """
    if capture.status is None or capture.revisit:
        return True
    return 200 <= capture.status < 300


@dataclass(slots=True)
class SiteListing:
    """The captures that one archive lists for a site, aggregated by URL key.

    Attributes:
        archive: The archive's id.
        held: The holding for each key, good captures only.
        uris: The URL of each key, as first listed.
        rows: Number of rows read, including captures that are not good.
    """

    archive: str
    held: dict[str, ArchiveHolding] = field(default_factory=dict)
    uris: dict[str, str] = field(default_factory=dict)
    rows: int = 0

    def add(self, capture: Capture) -> None:
        """Add one capture to the listing."""
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
        # One capture in the original format is enough to recover the resource in it.
        is_migrated = False if False in (before.migrated, capture.migrated) else before.migrated
        self.held[capture.key] = ArchiveHolding(
            self.archive,
            before.captures + 1,
            min(before.first, capture.datetime),
            max(before.last, capture.datetime),
            capture.digest if is_later else before.digest,
            is_migrated,
        )


async def fetch_listing(
    client: ArchiveClient,
    prefix: str,
    max_urls: int = MAX_LISTED_URLS,
    on_rows: Callable[[int], object] = lambda _: None,
) -> tuple[ListingResult | None, SiteListing]:
    """List the captures of a URL prefix.

    Errors of the archive are not raised: the rows listed before the error are valid.

    Args:
        client: The client of the archive.
        prefix: The URL prefix to list.
        max_urls: Stop after this many distinct URLs.
        on_rows: Called with the number of rows every 1,000 rows.

    Returns:
        The result of the listing and its contents. The former is None if the archive has no listing API.
    """
    archive = client.archive.id
    listing = SiteListing(archive)
    try:
        async for capture in client.list_prefix(prefix):
            listing.add(capture)
            if listing.rows % 1_000 == 0:
                on_rows(listing.rows)
            if len(listing.held) > max_urls:
                return ListingResult(
                    archive, prefix, False, listing.rows, 0, f"more than {max_urls:,} addresses"
                ), listing
    except UnsupportedError:
        return None, listing
    except ArchiveError as error:
        return ListingResult(archive, prefix, False, listing.rows, 0, str(error)[:300]), listing
    return ListingResult(archive, prefix, True, listing.rows), listing


UrlProber = Callable[[list[str]], Awaitable[list[LiveResource]]]
"""Requests URLs of a live site, and returns the responses as resources."""


@dataclass(slots=True)
class _UnseenResource:
    """A URL that archives list and the crawl did not find.

    Attributes:
        order: Hash of its key, which decides whether it is sampled.
        uri: The URL as first listed.
        held: The holdings of archives.
    """

    order: bytes
    uri: str
    held: list[ArchiveHolding] = field(default_factory=list)


class CheckProgress(Protocol):
    """Receives the progress of the queries."""

    def listing_finished(self, listed: ListingResult) -> None:
        """Report that a listing ended."""
        ...

    def queries_done(self, done: int, total: int) -> None:
        """Report the number of single-resource queries that are done, and of all."""
        ...


class NullProgress:
    """Ignores all progress."""

    def listing_finished(self, listed: ListingResult) -> None:
        """Ignore the listing."""

    def queries_done(self, done: int, total: int) -> None:
        """Ignore the numbers."""


@dataclass(frozen=True, slots=True)
class ArchiveAccess:
    """The clients for querying archives.

    Attributes:
        archives: The archives that may hold captures of the site, by id.
        listing_clients: Clients for CDX listings, by archive id.
        upstream: Client for queries about single resources.
        router: Selects the archives to query for a resource, from their MementoMaps; an archive without a map is always
            queried.
        capture_clients: Clients that fetch captures, by archive id.
    """

    archives: Mapping[str, Archive]
    listing_clients: Mapping[str, ArchiveClient]
    upstream: UpstreamClient
    router: RouteProvider
    capture_clients: Mapping[str, ArchiveClient] = field(default_factory=dict)


@dataclass(slots=True)
class ArchiveQueryResult:
    """The result of querying archives.

    Attributes:
        given_up: The archives whose queries were not completed, each with its last error.
    """

    given_up: dict[str, str] = field(default_factory=dict)


class AvailabilityQuery:
    """Queries archives during one visit. Responses are stored in the visit and not requested again when it resumes.

    Args:
        visit: The visit in progress.
        access: The clients.
        sample: Maximum number of resources that are queried one by one; None for all.
        thorough: Query every archive for every resource, even if another archive is known to hold it.
        probe: Requests URLs that archives list and the crawl did not find; None if the site cannot be requested.
        max_probed: Maximum number of such URLs.
        progress: Receives the progress.
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
        """Query all archives.

        Args:
            prefixes: The URL prefixes to list.
        """
        await self._fetch_listings(prefixes)
        await self._probe_unseen()
        await self._query_resources()
        return self._result

    async def _fetch_listings(self, prefixes: Sequence[str]) -> None:
        done = {(each.archive, each.prefix) for each in self._visit.listings() if each.is_whole}
        await run_all(
            self._fetch_listings_of(client, [each for each in prefixes if (archive, each) not in done])
            for archive, client in self._access.listing_clients.items()
        )

    async def _fetch_listings_of(self, client: ArchiveClient, prefixes: Sequence[str]) -> None:
        for prefix in prefixes:
            result, listing = await fetch_listing(client, prefix)
            if result is None:
                return
            unseen = listing.held.keys() - self._visit.filter_seen(list(listing.held))
            result = replace(result, beside=len(unseen))
            self._sample_unseen(listing, unseen)
            self._visit.record_listing(result, listing.held)
            self._progress.listing_finished(result)
            if not result.is_whole:
                # Another listing would probably fail, too, and the listings count only if all of them are complete.
                return

    def _sample_unseen(self, listing: SiteListing, keys: set[str]) -> None:
        """Sample the URLs that were listed but not crawled: those with the lowest hashes, the same at every visit."""
        if self._probe is None:
            return
        for key in keys:
            resource = self._unseen.get(key)
            if resource is None:
                resource = self._unseen[key] = _UnseenResource(sha256(key.encode()).digest(), listing.uris[key])
            resource.held.append(listing.held[key])
        if len(self._unseen) > self._max_probed:
            sampled = sorted(self._unseen.items(), key=lambda each: each[1].order)[: self._max_probed]
            self._unseen = dict(sampled)

    async def _probe_unseen(self) -> None:
        if self._probe is None or not self._unseen:
            return
        resources = await self._probe([each.uri for each in self._unseen.values()])
        self._visit.record_live(resources)
        for archive in self._access.archives:
            holdings = {
                key: held for key, each in self._unseen.items() for held in each.held if held.archive == archive
            }
            self._visit.record_holdings(holdings)

    async def _query_resources(self) -> None:
        """Query the archives without a complete listing, in parallel, each one resource at a time."""
        remaining = [name for name in self._access.archives if name not in self._visit.complete_listings()]
        if not remaining:
            return
        if not self._visit.sample():  # a resumed visit has one already
            self._visit.draw_sample(self._sample, include_held=self._thorough)
        queries: dict[str, list[tuple[int, str, str | None, RouteTarget]]] = {name: [] for name in remaining}
        answered = self._visit.answered_queries()
        total = 0
        for resource_id, uri, mime in self._visit.sample():
            route = self._access.router.route(uri, RoutingOptions())
            targets = {target.archive.id: target for target in route.targets}
            for name in remaining:
                if (resource_id, name) in answered:
                    continue
                target = targets.get(name)
                if target is None:
                    # MementoMaps have no false negatives, so this counts as a negative response.
                    self._visit.record_query(resource_id, name, None, has_answered=True)
                else:
                    queries[name].append((resource_id, uri, mime, target))
                    total += 1
        count = 0

        def count_query() -> None:
            nonlocal count
            count += 1
            self._progress.queries_done(count, total)

        await run_all(self._query_archive(name, each, count_query) for name, each in queries.items())

    async def _query_archive(
        self, name: str, queries: list[tuple[int, str, str | None, RouteTarget]], on_query: Callable[[], None]
    ) -> None:
        """Query one archive for one resource after the other, until its circuit opens."""
        breaker = CircuitBreaker(SystemClock(), POLICIES["check"], name)
        for resource_id, uri, mime, target in queries:
            result = await self._access.upstream.query(uri, target, float("inf"))
            on_query()
            report = result.report
            is_good = report.has_answered or report.outcome == "incomplete"
            self._visit.record_query(
                resource_id, name, _holding_of_timemap(result, target.archive, mime), has_answered=is_good
            )
            if is_good:
                breaker.record_success()
            else:
                breaker.record_failure(report.outcome, report.message)
            if report.outcome == "not-now" or not breaker.allows_request():
                self._result.given_up[name] = report.message or report.outcome
                return


async def run_all(coroutines: Iterable[Coroutine[object, object, None]]) -> None:
    """Run coroutines concurrently.

    If one fails, cancel the others and wait for them before raising, since they share a database.
    """
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _holding_of_timemap(result: UpstreamResult, archive: Archive, mime: str | None) -> ArchiveHolding | None:
    """Return the holding of an archive according to its TimeMap, which does not tell errors from good captures."""
    first, last = result.mementos.first, result.mementos.last
    if first is None or last is None:
        return None
    return ArchiveHolding(
        archive.id, len(result.mementos), first.datetime, last.datetime, None, archive.is_migrated(mime)
    )


GOOD_CAPTURE = ""
"""The verdict on a resource that has a good capture."""
_MAX_ARCHIVES = 2  # per page; the archives with the newest captures come first
_CONCURRENT_PAGES = 4
_MAX_CLASSIFIED_BYTES = 1 << 20  # of a capture's body


class CaptureSampler:
    """Fetches captures of a pseudo-random sample of pages, and classifies them.

    Only pages that are on the web and in archives are sampled. Pages that already have a verdict are not fetched again.

    Args:
        visit: The visit in progress.
        clients: Clients that fetch captures, by archive id.
        max_pages: Size of the sample.
    """

    def __init__(self, visit: CurrentVisit, clients: Mapping[str, ArchiveClient], max_pages: int) -> None:
        self._visit = visit
        self._clients = clients
        self._max_pages = max_pages
        self._breakers = BreakerRegistry(SystemClock(), POLICIES["check-captures"])

    async def classify_sample(self, archives: tuple[str, ...]) -> None:
        """Classify the sample and store the verdicts.

        A page whose captures cannot be fetched gets no verdict, so that a later run tries it again.
        """
        candidates = [
            (sha256(availability.live.key.encode("utf-8", "surrogatepass")).digest(), resource_id, availability)
            for resource_id, availability in self._visit.numbered_availabilities(archives)
            if availability.is_classifiable
        ]
        candidates.sort(key=lambda each: each[0])
        classified = self._visit.verdicts()
        remaining = iter(
            [
                (resource_id, each)
                for _, resource_id, each in candidates[: self._max_pages]
                if resource_id not in classified
            ]
        )

        async def work() -> None:
            for resource_id, availability in remaining:
                verdict = await self._verdict(availability)
                if verdict is not None:
                    self._visit.record_verdict(resource_id, verdict)

        await run_all(work() for _ in range(_CONCURRENT_PAGES))

    async def _verdict(self, availability: ResourceAvailability) -> str | None:
        """Return the verdict on a page: `GOOD_CAPTURE` if one capture is good, None if a capture could not be fetched.

        From each archive the last capture is fetched, then the first one if the last is bad.
        """
        first_verdict: str | None = None
        for holding in sorted(availability.held, key=lambda each: each.last, reverse=True)[:_MAX_ARCHIVES]:
            for date in dict.fromkeys((holding.last, holding.first)):
                verdict = await self._classify_capture(holding.archive, availability.live.uri, date)
                if verdict is None:
                    return None
                if verdict == GOOD_CAPTURE:
                    return GOOD_CAPTURE
                first_verdict = first_verdict or verdict
        return first_verdict

    async def _classify_capture(self, archive: str, uri: str, date: str) -> str | None:
        client = self._clients.get(archive)
        if client is None or not self._breakers.allows_request(archive):
            return None
        try:
            capture = await client.get(uri, date)
        except (ArchiveError, UriError) as error:
            self._breakers.breaker(archive).record_failure(type(error).__name__, str(error))
            return None
        self._breakers.record_success(archive)
        return "absent" if capture is None else await asyncio.to_thread(_classify_body, capture)


def _classify_body(fetched: FetchedCapture) -> str:
    capture = fetched.capture
    with fetched.body:
        fetched.body.seek(0)
        body = fetched.body.read(_MAX_CLASSIFIED_BYTES)
    if capture.status is not None and not 200 <= capture.status < 300:
        return "error"
    verdict = classify_page(
        PageResponse(capture.uri, capture.datetime, capture.status, capture.mime, body, fetched.headers)
    )
    return GOOD_CAPTURE if verdict is None else verdict.kind.value
