"""Fetches single pages of a living site for a look at it: politely, with redirects, and without waiting for long."""

from hashlib import sha1
from typing import Self
from urllib.parse import urljoin

from unlost import dates
from unlost.archives.asking.addresses import parse_url
from unlost.clock import Clock
from unlost.crawl.polite import PoliteFetcher
from unlost.crawl.robots import MemoryRobotsStore
from unlost.crawl.visitor import FetchResponse, FetchRequest, Fetcher
from unlost.errors import RobotsError, SiteError, SiteWaitError
from unlost.formats.digests import normalize_digest
from unlost.measure.watching.glimpse import MAX_PAGE_BYTES, FetchedPage

_MAX_REDIRECTS = 5
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)


class PolitePageFetcher:
    """Fetches pages; a `Glances`. Use it as an async context manager.

    homes: the sites that a person named. delay: seconds between two requests to one host.
    """

    def __init__(
        self, homes: list[str], clock: Clock, contact: str | None, delay: float, *, proxies: bool = False
    ) -> None:
        self._clock = clock
        self._robots = MemoryRobotsStore()
        self._fetcher = Fetcher(homes, clock, contact, use_proxies=proxies)
        # A site that wants to be left alone is: that is what a look says of it.
        self._polite_fetcher = PoliteFetcher(
            self._fetcher, self._robots, clock, delay if contact else 2 * delay, max_wait=0.0
        )

    async def __aenter__(self) -> Self:
        """Open the connections."""
        await self._fetcher.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self._fetcher.__aexit__(None, None, None)

    async def fetch(self, uri: str) -> FetchedPage:
        """Return what came of asking for a page."""
        now = dates.from_epoch(str(int(self._clock.now())))
        at, found = uri, FetchedPage(uri, now)
        for _ in range(_MAX_REDIRECTS + 1):
            try:
                answer = await self._polite_fetcher.fetch(FetchRequest(at, max_bytes=MAX_PAGE_BYTES))
            except RobotsError as error:
                return self._forbidden_page(uri, at, now, error) if found.status is None else found
            except SiteWaitError as error:
                return FetchedPage(uri, now, at, 503, error=str(error)) if found.status is None else found
            except SiteError as error:
                return FetchedPage(uri, now, error=str(error)) if found.status is None else found
            with answer.body:
                found = _make_page(uri, answer, now)
            target = answer.header("location")
            if answer.status not in _REDIRECT_STATUSES or not target:
                return found
            at = urljoin(at, target)
            found = FetchedPage(uri, now, at, answer.status, error="it redirects and leads nowhere")
        return found

    def _forbidden_page(self, uri: str, at: str, now: str, error: RobotsError) -> FetchedPage:
        """Return what is known of a page that may not be asked for: if robots.txt failed, how it did."""
        if not error.is_temporary:
            return FetchedPage(uri, now, at, error=str(error), is_forbidden=True)
        kept = self._robots.get(parse_url(at).origin)
        return FetchedPage(
            uri, now, at if kept and kept.status else "", kept.status if kept else None, error=str(error)
        )


def _make_page(uri: str, answer: FetchResponse, now: str) -> FetchedPage:
    body = answer.body.read(MAX_PAGE_BYTES)
    mime, _, parameters = (answer.header("content-type") or "").partition(";")
    charset = parameters.partition("charset=")[2].strip("\"' ") or None
    digest = normalize_digest(f"sha1:{sha1(body, usedforsecurity=False).hexdigest()}")
    return FetchedPage(uri, now, answer.uri, answer.status, mime.strip().lower() or None, charset, body, digest)
