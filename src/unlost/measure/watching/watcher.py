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
from unlost.crawl.resource import LiveResource, Outcome
from unlost.errors import OfflineError
from unlost.measure.availability.asking import Looks, Means
from unlost.measure.availability.checking import Checked, Depth, LiveSite, begun, check_site
from unlost.measure.availability.sources import prefix_of
from unlost.measure.visits.file import VisitsFile, explained
from unlost.measure.visits.history import History
from unlost.measure.visits.losses import Losses, Lost
from unlost.measure.visits.present import Visit
from unlost.measure.watching.glimpse import Glances
from unlost.measure.watching.looking import Look, SiteLook, look_at
from unlost.measure.watching.loss import loss
from unlost.measure.watching.on_loss import OnLoss

MOST_KNOWN = 10_000
"""Resources of a site that are looked for at every visit, though nothing may lead to them any more."""

_OFFLINE_SECONDS = 600.0  # before sites are visited again after there was no network
_LONGEST_SLEEP = 3_600.0  # seconds, before the clock is looked at again: it may have jumped


class Sites(Protocol):
    """Whoever can visit sites."""

    @property
    def glances(self) -> Glances:
        """What fetches single pages of them."""
        ...

    def open(self, url: str, visit: int, known: Sequence[str]) -> AbstractAsyncContextManager[LiveSite]:
        """Give a site that is to be crawled at a visit, or where that was interrupted.

        known: addresses that are looked for, whatever leads to them.
        """
        ...


@dataclass(frozen=True, slots=True)
class Visited:
    """What one visit came to.

    look: how the site looked. lost: what is known of its loss, if it is lost, or has just been found again.
    is_news: whether this visit is the one that noticed it. struck: how many visits lost their dates, since the clock
    went back. trouble: what went wrong when somebody was to be told.
    """

    url: str
    checked: Checked
    look: SiteLook
    lost: Lost | None
    is_news: bool
    struck: int
    trouble: str | None = None


class GoneSite:
    """A site that is not there: whatever was known of it is not on the web, and nobody needs to look."""

    knows_links = False
    look: Looks | None = None

    def __init__(self, url: str, known: Sequence[str], moment: str) -> None:
        self._url = url
        self._known = known
        self._moment = moment

    async def resources(self) -> AsyncIterator[LiveResource]:
        """Yield all that was known, as not to be had."""
        for uri in dict.fromkeys((self._url, *self._known)):
            yield LiveResource(uri, addresses.key(uri), Outcome.FAILED, seen=self._moment)

    def prefixes(self) -> Sequence[str]:
        """Return what archives are asked for lists of."""
        return [prefix_of(self._url)]


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
        sites: Sites,
        means: Means,
        depth: Depth,
        *,
        every: float,
        on_loss: OnLoss | None = None,
        tell: Callable[[Visited], None] = lambda _: None,
        network: Callable[[], Awaitable[OfflineError | None]] | None = None,
        tell_offline: Callable[[OfflineError], None] = lambda _: None,
    ) -> None:
        self._file = file
        self._clock = clock
        self._sites = sites
        self._means = means
        self._depth = depth
        self._every = every
        self._on_loss = on_loss
        self._tell = tell
        self._network = network
        self._tell_offline = tell_offline

    async def watch(self, urls: Sequence[str]) -> None:
        """Visit sites whenever it is time, until it is cancelled."""
        while True:
            try:
                for url in urls:
                    if self.due(url) <= self._clock.now():
                        await self.visit(url)
            except OfflineError as error:
                self._tell_offline(error)
                await self._clock.sleep(_OFFLINE_SECONDS)
                continue
            left = min(map(self.due, urls)) - self._clock.now()
            await self._clock.sleep(min(_LONGEST_SLEEP, max(1.0, left)))

    def due(self, url: str) -> float:
        """Return when a site is to be visited next, in seconds since 1970; now if a visit was interrupted."""
        with explained(self._file), VisitsFile(self._file) as opened:
            history = History(opened, opened.site(url))
            last, now = history.last_time(), self._clock.now()
            # A last visit that is still to come is one of a clock that was wrong.
            if last is None or history.going_on() is not None or last - now > self._every:
                return now
            return last + self._every

    async def visit(self, url: str) -> Visited:
        """Visit one site, or go on with a visit that was interrupted, and return what came of it.

        Raises OfflineError if there is no network: then the visit is not counted.
        """
        with explained(self._file), VisitsFile(self._file) as opened:
            history = History(opened, opened.site(url))
            losses = Losses(opened, history.site)
            visit, struck = await begun(history, self._clock)
            try:
                found = losses.look(visit)
                if found is None:
                    found = await look_at(url, losses.pages(), self._sites.glances)
                    await self._check_network(found)
                    losses.note_look(visit, found)
                known = history.known(MOST_KNOWN)
                async with self._site(url, found.look, known, visit) as site:
                    checked = await check_site(history, visit, site, self._means, self._depth)
            except OfflineError:
                history.discard(visit)
                raise
            noted: list[tuple[Lost | None, bool]] = []
            look = found.look
            # With the end of the visit: a kill in between would let a loss go unnoticed until the next one.
            history.end(visit, checked.archives, lambda: noted.append(self._note_loss(losses, visit, look)))
            lost, is_news = noted[0]
            trouble = await self._run(url, losses, lost)
            visited = Visited(url, checked, found, lost, is_news, struck, trouble)
        self._tell(visited)
        return visited

    async def _check_network(self, found: SiteLook) -> None:
        """Raise OfflineError if a site seems to be gone, and the cause is the local network."""
        if found.look.is_gone and self._network is not None and (error := await self._network()) is not None:
            raise error

    def _site(self, url: str, look: Look, known: Sequence[str], visit: Visit) -> AbstractAsyncContextManager[LiveSite]:
        moment = dates.from_epoch(str(int(visit.time)))
        if look.is_gone:
            return nullcontext(GoneSite(url, known, moment))
        if look is not Look.FINE:
            return nullcontext(_Waiting())
        return self._sites.open(url, visit.id, known)

    def _note_loss(self, losses: Losses, visit: Visit, look: Look) -> tuple[Lost | None, bool]:
        """Note a loss, or that it is over; return it, and whether that is news."""
        before = losses.last()
        is_lost = before is not None and before.over is None
        if is_lost and look is Look.FINE:
            losses.found_again(visit)
            return losses.last(), True
        now = loss(losses.seen())
        if now is None or is_lost:
            return (before if is_lost else None), False
        losses.note(visit, now)
        return losses.last(), True

    async def _run(self, url: str, losses: Losses, lost: Lost | None) -> str | None:
        """Run what is to be run, once for each loss: again if it was interrupted."""
        if self._on_loss is None or lost is None or lost.over is not None or lost.is_told:
            return None
        since = dates.to_iso(dates.from_epoch(str(int(lost.since))))
        trouble = await asyncio.to_thread(self._on_loss.run, url, lost.kind.value, lost.reason, since)
        losses.told(lost)
        return trouble


class _Waiting:
    """A site that says to come back later: nothing is to be learned of it today."""

    knows_links = False
    look: Looks | None = None

    async def resources(self) -> AsyncIterator[LiveResource]:
        """Yield nothing."""
        nothing: tuple[LiveResource, ...] = ()
        for each in nothing:
            yield each

    def prefixes(self) -> Sequence[str]:
        """Return nothing."""
        return ()
