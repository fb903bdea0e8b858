"""Visits sites on schedule, checks them, and records losses. Also estimates the number of queries per day."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Protocol

from unlost import dates
from unlost import uri as addresses
from unlost.check.archives import ArchiveAccess, UrlProber
from unlost.check.checker import (
    CheckOptions,
    CheckResult,
    SiteSource,
    check_site,
    containing_folder,
    resume_or_begin_visit,
)
from unlost.check.history import VisitHistory
from unlost.check.visit_store import SiteVisit, VisitDatabase, translate_visit_errors
from unlost.clock import Clock
from unlost.crawl.models import CrawlOutcome, LiveResource
from unlost.errors import OfflineError
from unlost.http.circuit_breaker import CircuitBreaker
from unlost.http.policy import POLICIES
from unlost.registry.models import Archive
from unlost.watch.losses import LossHook, LossStore, SiteLoss, detect_loss
from unlost.watch.site_health import HealthCheck, PageFetcher, SiteHealth, check_health

_DAY_SECONDS = 86_400.0


def daily_queries(collections: int, bins: int, types: int, repositories: int, singles: int = 0) -> int:
    """Return the number of daily queries for test collections, as in the dissertation.

    One query is sent for each bin and media type, and one for each resource that must be queried singly, as images
    must.

    Args:
        collections: Number of test collections.
        bins: Number of bins in a collection.
        types: Number of media types in a bin.
        repositories: Number of archives.
        singles: Number of resources in a collection that are queried singly.

    >>> daily_queries(4, 30, 2, 3), daily_queries(4, 30, 2, 3, singles=222)
    (720, 3384)
    """
    return collections * bins * types * repositories + collections * singles * repositories


@dataclass(frozen=True, slots=True)
class QueryEstimate:
    """The queries that a watch sends to one archive.

    Attributes:
        archive: The archive's id.
        lists: Listing queries (pages of CDX listings) per visit, over all sites.
        singles: Maximum number of single-resource queries per visit.
        visits: Visits per day.
        quota: Queries per day that the archive allows; None without a limit.
    """

    archive: str
    lists: int
    singles: int
    visits: float
    quota: int | None = None

    @property
    def daily(self) -> int:
        """Queries per day.

        >>> QueryEstimate("a", lists=3, singles=100, visits=0.5).daily
        52
        """
        return ceil((self.lists + self.singles) * self.visits)

    @property
    def exceeds_quota(self) -> bool:
        """Whether the estimate exceeds the daily quota."""
        return self.quota is not None and self.daily > self.quota


@dataclass(frozen=True, slots=True)
class SiteSize:
    """Size of a site, as far as known.

    Attributes:
        prefixes: Number of URL prefixes to list.
        resources: Number of resources that are queried singly in archives without a listing API.
        rows: Number of captures in an archive's listing, at least one per resource.
    """

    prefixes: int
    resources: int
    rows: int


def estimate_queries(archive: Archive, sizes: list[SiteSize], every: float, share: float) -> QueryEstimate:
    """Return the queries that a watch sends to an archive.

    An archive with a listing API is queried page by page, one listing per prefix (a bin with all media types). Any
    other archive is queried once for each resource.

    Args:
        archive: The archive.
        sizes: Sizes of the watched sites.
        every: Seconds between two visits.
        share: Share of the archive's quota that may be used.
    """
    lists = singles = 0
    for size in sizes:
        if archive.lister is not None:
            pages = max(1, ceil(size.rows / max(1, size.prefixes) / max(1.0, archive.lister.rows_per_page.value)))
            lists += daily_queries(1, size.prefixes * pages, 1, 1)
        elif archive.folder is None:
            singles += daily_queries(1, 0, 1, 1, singles=size.resources)
    quota = min((int(each.requests * share) for each in archive.quotas), default=None)
    return QueryEstimate(archive.id, lists, singles, _DAY_SECONDS / every, quota)


MAX_KNOWN_URLS = 10_000
"""Known resources of a site that are requested at every visit, even if no page links to them any more."""
_MAX_SLEEP_SECONDS = 3_600.0  # after which the clock is read again, since it may have been set


class SiteOpener(Protocol):
    """Opens sites for visits."""

    @property
    def page_fetcher(self) -> PageFetcher:
        """Fetches single pages of the sites."""
        ...

    def open(self, url: str, visit: int, known: Sequence[str]) -> AbstractAsyncContextManager[SiteSource]:
        """Open a site for a visit, or for resuming one.

        Args:
            url: URL of the site.
            visit: Id of the visit.
            known: URLs to request even if no page links to them.
        """
        ...


@dataclass(frozen=True, slots=True)
class VisitResult:
    """The result of one visit.

    Attributes:
        url: URL of the site.
        check: The result of the check.
        health: Health of the site.
        loss: The current loss, or the one that has just ended; None if there is none.
        is_news: Whether this visit recorded the loss or its end.
        undated_visits: Number of earlier visits that lost their dates because the clock was set back.
        hook_error: Error of the loss hook; None if it succeeded or was not run.
    """

    url: str
    check: CheckResult
    health: HealthCheck
    loss: SiteLoss | None
    is_news: bool
    undated_visits: int
    hook_error: str | None = None


class GoneSite:
    """A site that is gone: all known resources count as not on the web, without any request."""

    knows_links = False
    probe: UrlProber | None = None

    def __init__(self, url: str, known: Sequence[str], moment: str) -> None:
        self._url = url
        self._known = known
        self._moment = moment

    async def resources(self) -> AsyncIterator[LiveResource]:
        """Yield all known resources as failed."""
        for uri in dict.fromkeys((self._url, *self._known)):
            yield LiveResource(uri, addresses.key(uri), CrawlOutcome.FAILED, seen=self._moment)

    def prefixes(self) -> Sequence[str]:
        """Return the URL prefix to list in archives."""
        return [containing_folder(self._url)]


class Watcher:
    """Visits sites and stores the observations in a database, which is open only during a visit.

    Args:
        file: Path of the database.
        clock: The clock.
        sites: Opens the sites.
        access: Clients for querying archives.
        options: How thoroughly archives are queried.
        interval: Seconds between two visits of a site.
        on_loss: Command to run when a site is lost.
        on_visit: Receives the result of each visit.
        check_network: Returns an error if the local network is down. Called before a site counts as gone.
        on_offline: Receives that error in `watch`, which then pauses as `POLICIES["watch"]` says.
    """

    def __init__(
        self,
        file: Path,
        clock: Clock,
        sites: SiteOpener,
        access: ArchiveAccess,
        options: CheckOptions,
        *,
        interval: float,
        on_loss: LossHook | None = None,
        on_visit: Callable[[VisitResult], None] = lambda _: None,
        check_network: Callable[[], Awaitable[OfflineError | None]] | None = None,
        on_offline: Callable[[OfflineError], None] = lambda _: None,
    ) -> None:
        self._file = file
        self._clock = clock
        self._sites = sites
        self._access = access
        self._options = options
        self._interval = interval
        self._on_loss = on_loss
        self._on_visit = on_visit
        self._probe_network = check_network
        self._on_offline = on_offline
        self._network_breaker = CircuitBreaker(clock, POLICIES["watch"])

    async def watch(self, urls: Sequence[str]) -> None:
        """Visit sites on schedule until cancelled."""
        while True:
            try:
                for url in urls:
                    if self.next_visit_time(url) <= self._clock.now():
                        await self.visit(url)
                        self._network_breaker.record_success()
            except OfflineError as error:
                self._network_breaker.record_failure("offline", str(error))
                self._on_offline(error)
                breaker = self._network_breaker
                while not breaker.allows_request() and (suspension := breaker.suspension) is not None:
                    await self._clock.sleep(suspension.until - self._clock.now())
                continue
            remaining = min(map(self.next_visit_time, urls)) - self._clock.now()
            await self._clock.sleep(min(_MAX_SLEEP_SECONDS, max(1.0, remaining)))

    def next_visit_time(self, url: str) -> float:
        """Return when the next visit is due, in seconds since 1970; now if a visit was interrupted."""
        with translate_visit_errors(self._file), VisitDatabase(self._file) as database:
            history = VisitHistory(database, database.get_or_add_site(url))
            last, now = history.last_time(), self._clock.now()
            # If the last visit is in the future, the clock was wrong.
            if last is None or history.unfinished_visit() is not None or last - now > self._interval:
                return now
            return last + self._interval

    async def visit(self, url: str) -> VisitResult:
        """Visit one site, or resume an interrupted visit.

        Raises:
            OfflineError: The local network is down; the visit is discarded.
        """
        with translate_visit_errors(self._file), VisitDatabase(self._file) as database:
            history = VisitHistory(database, database.get_or_add_site(url))
            losses = LossStore(database, history.site)
            visit, undated_visits = await resume_or_begin_visit(history, self._clock)
            try:
                health = losses.health_at(visit)
                if health is None:
                    health = await check_health(url, losses.known_pages(), self._sites.page_fetcher)
                    await self._check_network(health)
                    losses.record_health(visit, health)
                known = history.known_urls(MAX_KNOWN_URLS)
                async with self._site(url, health.health, known, visit) as site:
                    result = await check_site(history, visit, site, self._access, self._options)
            except OfflineError:
                history.discard_visit(visit)
                raise
            recorded: list[tuple[SiteLoss | None, bool]] = []
            health_state = health.health
            # The loss is recorded in the transaction that finishes the visit: a killed process leaves both or none.
            history.finish_visit(
                visit, result.archives, lambda: recorded.append(self._update_losses(losses, visit, health_state))
            )
            loss, is_news = recorded[0]
            hook_error = await self._run_hook(url, losses, loss)
            visit_result = VisitResult(url, result, health, loss, is_news, undated_visits, hook_error)
        self._on_visit(visit_result)
        return visit_result

    async def _check_network(self, check: HealthCheck) -> None:
        """Raise OfflineError if a site seems to be gone and the local network is down."""
        if (
            check.health.is_gone
            and self._probe_network is not None
            and (error := await self._probe_network()) is not None
        ):
            raise error

    def _site(
        self, url: str, health: SiteHealth, known: Sequence[str], visit: SiteVisit
    ) -> AbstractAsyncContextManager[SiteSource]:
        moment = dates.from_epoch(str(int(visit.time)))
        if health.is_gone:
            return nullcontext(GoneSite(url, known, moment))
        if health is not SiteHealth.FINE:
            return nullcontext(_UnavailableSite())
        return self._sites.open(url, visit.id, known)

    def _update_losses(self, losses: LossStore, visit: SiteVisit, health: SiteHealth) -> tuple[SiteLoss | None, bool]:
        """Record a loss or its end; return the loss, and whether it was recorded now."""
        before = losses.last_loss()
        is_lost = before is not None and before.over is None
        if is_lost and health is SiteHealth.FINE:
            losses.record_recovery(visit)
            return losses.last_loss(), True
        detected = detect_loss(losses.recent_health())
        if detected is None or is_lost:
            return (before if is_lost else None), False
        losses.record_loss(visit, detected)
        return losses.last_loss(), True

    async def _run_hook(self, url: str, losses: LossStore, loss: SiteLoss | None) -> str | None:
        """Run the loss hook once for each loss, or again if it was interrupted; return its error."""
        if self._on_loss is None or loss is None or loss.over is not None or loss.is_notified:
            return None
        since = dates.to_iso(dates.from_epoch(str(int(loss.since))))
        error = await asyncio.to_thread(self._on_loss.run, url, loss.kind.value, loss.reason, since)
        losses.mark_notified(loss)
        return error


class _UnavailableSite:
    """A site that is temporarily unavailable: nothing is requested."""

    knows_links = False
    probe: UrlProber | None = None

    async def resources(self) -> AsyncIterator[LiveResource]:
        """Yield nothing."""
        nothing: tuple[LiveResource, ...] = ()
        for each in nothing:
            yield each

    def prefixes(self) -> Sequence[str]:
        """Return nothing."""
        return ()
