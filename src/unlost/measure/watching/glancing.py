"""Fetches single pages of a living site for a look at it: politely, with redirects, and without waiting for long."""

from hashlib import sha1
from typing import Self
from urllib.parse import urljoin

from unlost import dates
from unlost.archives.asking.addresses import parse
from unlost.clock import Clock
from unlost.crawl.polite import PoliteVisitor
from unlost.crawl.robots import MemoryRobots
from unlost.crawl.visitor import Answer, Request, Visitor
from unlost.errors import RobotsError, SiteError, SiteWaitError
from unlost.formats.digests import normal_digest
from unlost.measure.watching.glimpse import MAX_BYTES, Glimpse

_REDIRECTS = 5
_MOVED = (301, 302, 303, 307, 308)


class PoliteGlances:
    """Fetches pages; a `Glances`. Use it as an async context manager.

    homes: the sites that a person named. delay: seconds between two requests to one host.
    """

    def __init__(
        self, homes: list[str], clock: Clock, contact: str | None, delay: float, *, proxies: bool = False
    ) -> None:
        self._clock = clock
        self._robots = MemoryRobots()
        self._visitor = Visitor(homes, clock, contact, proxies=proxies)
        # A site that wants to be left alone is: that is what a look says of it.
        self._polite = PoliteVisitor(self._visitor, self._robots, clock, delay if contact else 2 * delay, patience=0.0)

    async def __aenter__(self) -> Self:
        """Open the connections."""
        await self._visitor.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self._visitor.__aexit__(None, None, None)

    async def glimpse(self, uri: str) -> Glimpse:
        """Return what came of asking for a page."""
        now = dates.from_epoch(str(int(self._clock.now())))
        at, found = uri, Glimpse(uri, now)
        for _ in range(_REDIRECTS + 1):
            try:
                answer = await self._polite.visit(Request(at, max_bytes=MAX_BYTES))
            except RobotsError as error:
                return self._forbidden(uri, at, now, error) if found.status is None else found
            except SiteWaitError as error:
                return Glimpse(uri, now, at, 503, trouble=str(error)) if found.status is None else found
            except SiteError as error:
                return Glimpse(uri, now, trouble=str(error)) if found.status is None else found
            with answer.body:
                found = _glimpse(uri, answer, now)
            target = answer.header("location")
            if answer.status not in _MOVED or not target:
                return found
            at = urljoin(at, target)
            found = Glimpse(uri, now, at, answer.status, trouble="it redirects and leads nowhere")
        return found

    def _forbidden(self, uri: str, at: str, now: str, error: RobotsError) -> Glimpse:
        """Return what is known of a page that may not be asked for: if robots.txt failed, how it did."""
        if not error.is_for_now:
            return Glimpse(uri, now, at, trouble=str(error), is_forbidden=True)
        kept = self._robots.get(parse(at).origin)
        return Glimpse(uri, now, at if kept and kept.status else "", kept.status if kept else None, trouble=str(error))


def _glimpse(uri: str, answer: Answer, now: str) -> Glimpse:
    body = answer.body.read(MAX_BYTES)
    mime, _, parameters = (answer.header("content-type") or "").partition(";")
    charset = parameters.partition("charset=")[2].strip("\"' ") or None
    digest = normal_digest(f"sha1:{sha1(body, usedforsecurity=False).hexdigest()}")
    return Glimpse(uri, now, answer.uri, answer.status, mime.strip().lower() or None, charset, body, digest)
