"""Visits sites on schedule, checks each, records losses; estimates how many queries that takes a day."""

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
from unlost.check.checker import CheckOptions, CheckResult, SiteSource, check_site, folder_url, resume_or_begin_visit
from unlost.check.history import VisitHistory
from unlost.check.visit_store import SiteVisit, VisitDatabase, translate_sqlite_errors
from unlost.clock import Clock
from unlost.crawl.models import CrawlOutcome, LiveResource
from unlost.errors import OfflineError
from unlost.registry.models import Archive
from unlost.watch.losses import LossHook, LossStore, SiteLoss, detect_loss
from unlost.watch.site_health import HealthCheck, PageFetcher, SiteHealth, check_health

_DAY_SECONDS = 86_400.0


def daily_queries(collections: int, bins: int, types: int, repositories: int, singles: int = 0) -> int:
    """Return how many queries a round over test collections takes: one for each bin and type, and one for each single.

    singles: what has to be asked for by itself in each collection, as images have to be.

    >>> daily_queries(4, 30, 2, 3), daily_queries(4, 30, 2, 3, singles=222)
    (720, 3384)
    """
    return collections * bins * types * repositories + collections * singles * repositories


@dataclass(frozen=True, slots=True)
class QueryEstimate:
    """What one archive is asked by a watch.

    lists: lister queries a visit, over all sites: each is a page of a list. singles: addresses a visit that are asked
    for one by one, at most. visits: a day. quota: how many questions a day it takes; None if it has no such limit.
    """

    archive: str
    lists: int
    singles: int
    visits: float
    quota: int | None = None

    @property
    def daily(self) -> int:
        """How many it is asked a day.

        >>> QueryEstimate("a", lists=3, singles=100, visits=0.5).daily
        52
        """
        return ceil((self.lists + self.singles) * self.visits)

    @property
    def exceeds_quota(self) -> bool:
        """Whether its daily limit does not allow that."""
        return self.quota is not None and self.daily > self.quota


@dataclass(frozen=True, slots=True)
class SiteSize:
    """How large a site is, as far as is known.

    prefixes: how many lists it takes. resources: how many are asked for one by one where there is no list.
    rows: how many captures an archive lists of it, at least one of each resource.
    """

    prefixes: int
    resources: int
    rows: int


def estimate_queries(archive: Archive, sizes: list[SiteSize], every: float, share: float) -> QueryEstimate:
    """Return what an archive is asked by a watch of sites of such sizes.

    every: seconds between two visits. share: how much of a limit is used.
    An archive that lists a prefix is asked for a page of rows at a time, one list for each prefix (a bin, and one type,
    since lists have all types); any other for each resource by itself.
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
"""Resources of a site that are looked for at every visit, though nothing may lead to them any more."""
_OFFLINE_RETRY_SECONDS = 600.0  # before sites are visited again after there was no network
_MAX_SLEEP_SECONDS = 3_600.0  # seconds, before the clock is looked at again: it may have jumped


class SiteOpener(Protocol):
    """Whoever can visit sites."""

    @property
    def page_fetcher(self) -> PageFetcher:
        """What fetches single pages of them."""
        ...

    def open(self, url: str, visit: int, known: Sequence[str]) -> AbstractAsyncContextManager[SiteSource]:
        """Give a site that is to be crawled at a visit, or where that was interrupted.

        known: addresses that are looked for, whatever leads to them.
        """
        ...


@dataclass(frozen=True, slots=True)
class VisitResult:
    """What one visit came to.

    look: how the site looked. lost: what is known of its loss, if it is lost, or has just been found again.
    is_news: whether this visit is the one that noticed it. struck: how many visits lost their dates, since the clock
    went back. trouble: what went wrong when somebody was to be told.
    """

    url: str
    check: CheckResult
    health: HealthCheck
    loss: SiteLoss | None
    is_news: bool
    undated_visits: int
    hook_error: str | None = None


class GoneSite:
    """A site that is not there: whatever was known of it is not on the web, and nobody needs to look."""

    knows_links = False
    probe: UrlProber | None = None

    def __init__(self, url: str, known: Sequence[str], moment: str) -> None:
        self._url = url
        self._known = known
        self._moment = moment

    async def resources(self) -> AsyncIterator[LiveResource]:
        """Yield all that was known, as not to be had."""
        for uri in dict.fromkeys((self._url, *self._known)):
            yield LiveResource(uri, addresses.key(uri), CrawlOutcome.FAILED, seen=self._moment)

    def prefixes(self) -> Sequence[str]:
        """Return what archives are asked for lists of."""
        return [folder_url(self._url)]


class Watcher:
    """Visits sites, and keeps what it saw in a file, which it holds only while it visits one.

    every: seconds between two visits of a site. on_loss: what is run when one is lost.
    tell: gets what was seen, after each visit.
    network: returns the error that says that there is no network; None if there is one. It is asked before a site is
        said to be gone.
    tell_offline: gets that error in `watch`, which then tries again after some time.
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
        self._network = check_network
        self._on_offline = on_offline

    async def watch(self, urls: Sequence[str]) -> None:
        """Visit sites whenever it is time, until it is cancelled."""
        while True:
            try:
                for url in urls:
                    if self.next_visit_time(url) <= self._clock.now():
                        await self.visit(url)
            except OfflineError as error:
                self._on_offline(error)
                await self._clock.sleep(_OFFLINE_RETRY_SECONDS)
                continue
            left = min(map(self.next_visit_time, urls)) - self._clock.now()
            await self._clock.sleep(min(_MAX_SLEEP_SECONDS, max(1.0, left)))

    def next_visit_time(self, url: str) -> float:
        """Return when a site is to be visited next, in seconds since 1970; now if a visit was interrupted."""
        with translate_sqlite_errors(self._file), VisitDatabase(self._file) as opened:
            history = VisitHistory(opened, opened.get_or_add_site(url))
            last, now = history.last_time(), self._clock.now()
            # A last visit that is still to come is one of a clock that was wrong.
            if last is None or history.unfinished_visit() is not None or last - now > self._interval:
                return now
            return last + self._interval

    async def visit(self, url: str) -> VisitResult:
        """Visit one site, or go on with a visit that was interrupted, and return what came of it.

        Raises OfflineError if there is no network: then the visit is not counted.
        """
        with translate_sqlite_errors(self._file), VisitDatabase(self._file) as opened:
            history = VisitHistory(opened, opened.get_or_add_site(url))
            losses = LossStore(opened, history.site)
            visit, struck = await resume_or_begin_visit(history, self._clock)
            try:
                found = losses.health_at(visit)
                if found is None:
                    found = await check_health(url, losses.known_pages(), self._sites.page_fetcher)
                    await self._check_network(found)
                    losses.record_health(visit, found)
                known = history.known_urls(MAX_KNOWN_URLS)
                async with self._site(url, found.health, known, visit) as site:
                    checked = await check_site(history, visit, site, self._access, self._options)
            except OfflineError:
                history.discard_visit(visit)
                raise
            noted: list[tuple[SiteLoss | None, bool]] = []
            look = found.health
            # With the end of the visit: a kill in between would let a loss go unnoticed until the next one.
            history.finish_visit(visit, checked.archives, lambda: noted.append(self._note_loss(losses, visit, look)))
            lost, is_news = noted[0]
            trouble = await self._run_hook(url, losses, lost)
            visited = VisitResult(url, checked, found, lost, is_news, struck, trouble)
        self._on_visit(visited)
        return visited

    async def _check_network(self, found: HealthCheck) -> None:
        """Raise OfflineError if a site seems to be gone, and the cause is the local network."""
        if found.health.is_gone and self._network is not None and (error := await self._network()) is not None:
            raise error

    def _site(
        self, url: str, look: SiteHealth, known: Sequence[str], visit: SiteVisit
    ) -> AbstractAsyncContextManager[SiteSource]:
        moment = dates.from_epoch(str(int(visit.time)))
        if look.is_gone:
            return nullcontext(GoneSite(url, known, moment))
        if look is not SiteHealth.FINE:
            return nullcontext(_UnavailableSite())
        return self._sites.open(url, visit.id, known)

    def _note_loss(self, losses: LossStore, visit: SiteVisit, look: SiteHealth) -> tuple[SiteLoss | None, bool]:
        """Note a loss, or that it is over; return it, and whether that is news."""
        before = losses.last_loss()
        is_lost = before is not None and before.over is None
        if is_lost and look is SiteHealth.FINE:
            losses.record_recovery(visit)
            return losses.last_loss(), True
        now = detect_loss(losses.recent_health())
        if now is None or is_lost:
            return (before if is_lost else None), False
        losses.record_loss(visit, now)
        return losses.last_loss(), True

    async def _run_hook(self, url: str, losses: LossStore, lost: SiteLoss | None) -> str | None:
        """Run what is to be run, once for each loss: again if it was interrupted."""
        if self._on_loss is None or lost is None or lost.over is not None or lost.is_notified:
            return None
        since = dates.to_iso(dates.from_epoch(str(int(lost.since))))
        trouble = await asyncio.to_thread(self._on_loss.run, url, lost.kind.value, lost.reason, since)
        losses.mark_notified(lost)
        return trouble


class _UnavailableSite:
    """A site that says to come back later: nothing is to be learned of it today."""

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
