"""Visits sites again and again: looks at each, checks it, and says what has become of it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from unlost import dates
from unlost import uri as addresses
from unlost.clock import Clock
from unlost.crawl.resource import LiveResource, CrawlOutcome
from unlost.errors import OfflineError
from unlost.measure.availability.asking import UrlProber, ArchiveAccess
from unlost.measure.availability.checking import (
    CheckResult,
    CheckOptions,
    SiteSource,
    resume_or_begin_visit,
    check_site,
)
from unlost.measure.availability.sources import folder_url
from unlost.measure.visits.file import VisitDatabase, translate_sqlite_errors
from unlost.measure.visits.history import VisitHistory
from unlost.measure.visits.losses import LossStore, SiteLoss
from unlost.measure.visits.present import SiteVisit
from unlost.measure.watching.glimpse import PageFetcher
from unlost.measure.watching.looking import SiteHealth, HealthCheck, check_health
from unlost.measure.watching.loss import detect_loss
from unlost.measure.watching.on_loss import LossHook

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
