"""Looks at live pages: as their sites wish, and as far as a comparison with copies needs it."""

import asyncio
from typing import BinaryIO, Self
from urllib.parse import urljoin

from unlost import uri as addresses
from unlost.archives.asking.addresses import parse
from unlost.clock import Clock
from unlost.crawl.polite import PoliteVisitor
from unlost.crawl.robots import MemoryRobots
from unlost.crawl.visitor import Answer, Request, Visitor
from unlost.errors import RobotsError, SiteError, SiteWaitError, UriError
from unlost.measure.overlap.copies import Seen, seen_of
from unlost.pages.documents import Documents
from unlost.pages.verdicts import Answer as Page
from unlost.pages.verdicts import Kind, verdict_of

_REDIRECTS = 5
_MOVED = (301, 302, 303, 307, 308)
_MOST_BYTES = 16 << 20  # of a page: as much as documents may have, and more than pages do
_JUDGED = 1 << 20  # bytes of a page whose words are looked at
_ABSENT = frozenset({Kind.SOFT_404, Kind.PARKED})
_WAIT_SECONDS = 60.0  # how long a site may keep us waiting by saying so: others are to be looked at, too


class PoliteWeb:
    """The live web, politely; a `LiveWeb`. Use it as an async context manager.

    contact: an address of mail or of a page, for whoever looks after a site; without one, pauses are twice as long.
    delay: seconds between two requests to one host. documents: gives the text of documents.
    """

    def __init__(self, clock: Clock, contact: str | None, delay: float, documents: Documents | None = None) -> None:
        self._robots = MemoryRobots()
        self._visitor = Visitor((), clock, contact)
        pause = delay if contact else 2 * delay
        self._polite = PoliteVisitor(self._visitor, self._robots, clock, pause, patience=_WAIT_SECONDS)
        self._documents = documents

    async def __aenter__(self) -> Self:
        """Open the connections."""
        await self._visitor.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self._visitor.__aexit__(None, None, None)

    async def look(self, uri: str) -> tuple[str, Seen | None]:
        """Return what came of it, as `LiveWeb` has it.

        Redirects are followed to what archives cannot tell from the page: https for http, with `www` or without. One
        that leads to another page is the answer.
        """
        self._visitor.give(uri)
        at = uri
        for left in reversed(range(_REDIRECTS + 1)):
            try:
                answer = await self._polite.visit(Request(at, max_bytes=_MOST_BYTES))
            except RobotsError as error:
                return self._forbidden(at, error), None
            except SiteWaitError:
                return "told-to-wait", None
            except SiteError:
                return "silent", None
            target = _same_page(at, answer)
            if target is None or not left:
                return await asyncio.to_thread(self._seen, uri, answer)
            answer.body.close()
            at = target
        raise AssertionError  # the last one is the answer

    def _forbidden(self, at: str, error: RobotsError) -> str:
        """Return what is known of a page that may not be asked for: whoever has no robots.txt may be gone."""
        if not error.is_for_now:
            return "forbidden"
        kept = self._robots.get(parse(at).origin)
        return "silent" if kept is None or kept.status is None else "told-to-wait"

    def _seen(self, uri: str, answer: Answer) -> tuple[str, Seen]:
        mime = (answer.header("content-type") or "").partition(";")[0].strip().lower() or None
        with answer.body as body:
            outcome = "absent" if _is_absent(uri, answer, mime, body) else "answered"
            return outcome, seen_of(
                uri, answer.moment, answer.status, mime, answer.headers, body, answer.truncated, self._documents
            )


def _same_page(at: str, answer: Answer) -> str | None:
    """Return where an answer leads if that is the same page by another name, else None."""
    location = answer.header("location")
    if answer.status not in _MOVED or not location:
        return None
    try:
        target = urljoin(at, location.strip())
        return target if addresses.key(target) == addresses.key(at) else None
    except (UriError, ValueError):
        return None


def _is_absent(uri: str, answer: Answer, mime: str | None, body: BinaryIO) -> bool:
    """Return whether a site says in words, though not by the status, that there is no such page."""
    page = Page(uri, answer.moment, answer.status, mime, body.read(_JUDGED), answer.headers)
    body.seek(0)
    found = verdict_of(page)
    return found is not None and found.kind in _ABSENT
