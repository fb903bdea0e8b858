"""Health of a site: fetches the home page and known pages politely, and says whether it is still the same site.

As long as one known page says what it said, the site is fine. Only otherwise is it classified what is in its place.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha1
from itertools import islice
from typing import Protocol, Self
from urllib.parse import urljoin, urlsplit

from unlost import dates
from unlost import uri as addresses
from unlost.capture import normalize_digest
from unlost.clock import Clock
from unlost.crawl.fetcher import Fetcher, FetchRequest, FetchResponse
from unlost.crawl.politeness import PoliteFetcher
from unlost.crawl.robots import MemoryRobotsStore
from unlost.errors import RobotsError, SiteError, SiteWaitError, UriError
from unlost.html.links import LinkKind, extract_links
from unlost.html.text import extract_text, text_resemblance
from unlost.http.url import parse_url
from unlost.quality import ClassifierContext, PageResponse, ReferencePage, VerdictKind, classify_page

MAX_PAGE_BYTES = 512 << 10
"""Of a page, that is looked at: verdicts read half of it."""


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """What came of asking for a page, redirects followed.

    uri: what was asked for. final: where the answer came from. status: None if no answer came.
    mime, charset: as they were told. body: at most `MAX_BYTES`, without codings. datetime: 14 digits.
    digest: as in WARCs; None if it is not known.
    trouble: what went wrong, in words, if no answer came. is_forbidden: whether robots.txt kept us from asking.
    """

    uri: str
    datetime: str
    final_url: str = ""
    status: int | None = None
    mime: str | None = None
    charset: str | None = None
    body: bytes = b""
    digest: str | None = None
    error: str = ""
    is_forbidden: bool = False

    @property
    def is_good(self) -> bool:
        """Whether it came with a good status."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def response(self) -> PageResponse:
        """The same, to be judged."""
        return PageResponse(self.uri, self.datetime, self.status, self.mime, self.body, (), self.charset)

    def text(self) -> str:
        """Return what a reader sees."""
        read = extract_text(self.body, self.mime, self.final_url or self.uri, self.charset)
        return "" if read is None else read.text


class PageFetcher(Protocol):
    """Whoever fetches pages of a living site, politely."""

    async def fetch(self, uri: str) -> FetchedPage:
        """Return what came of asking for a page; raises nothing that a site could cause."""
        ...


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


MAX_KNOWN_PAGES = 8
"""How many pages a look knows, the home page not counted."""
_MAX_TEXT_LENGTH = 20_000  # characters of a known page: as much as is ever compared
_MIN_RESEMBLANCE = 0.4  # of the shingles of three words: a page that was worked on still has so many
_MAX_FOLLOWED_LINKS = 3  # links of a home page that are tried before it is said to lead nowhere
_MAX_ATTEMPTS = 3  # for the home page: one request in a hundred fails anywhere
# What a verdict quotes of pages that are away for a while.
_TEMPORARY = re.compile(
    r"maintenance|wartung|temporar|vorübergehend|be (right )?back|back soon|in kürze|updating|database|mysql|sql|"
    r"server error|serverfehler|server too busy|unavailable|indisponible|bandwidth|technical|went wrong|gone wrong|"
    r"error occurred|error has occurred|unexpected|gateway|zur ?zeit|derzeit|momentané|503|502|500",
    re.IGNORECASE,
)
_WAIT_STATUSES = (429, 503)
_SUFFIXES = addresses.SuffixList()


class SiteHealth(StrEnum):
    """How a site looks."""

    FINE = "fine"
    """It is there."""
    WAIT = "wait"
    """It says that it is away for a while."""
    UNRESPONSIVE = "unresponsive"
    """Nothing answers, or only errors of the server."""
    MISSING = "missing-content"
    """Something answers, but nothing of the site is there."""
    PARKED = "parked"
    """The domain has no site any more."""
    HIJACKED = "hijacked"
    """Another site is in its place."""
    MOVED = "moved"
    """It leads to another domain."""
    UNSEEN = "unseen"
    """Its robots.txt does not want us to look."""

    @property
    def is_gone(self) -> bool:
        """Whether the site is not there, as far as one look can tell."""
        return self not in (SiteHealth.FINE, SiteHealth.WAIT, SiteHealth.UNSEEN)


@dataclass(frozen=True, slots=True)
class KnownPage:
    """A page that was good. digest: of its bytes; text: a bounded part."""

    uri: str
    datetime: str
    digest: str | None
    text: str


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """How a site looks, why that is said, and which pages are known now: those of a fine site, else as before."""

    health: SiteHealth
    reason: str
    pages: tuple[KnownPage, ...]


async def check_health(home: str, known: Sequence[KnownPage], fetcher: PageFetcher) -> HealthCheck:
    """Look at a site. home: its address. known: pages that were good at the last fine look; none at the first.

    Sends some requests, at most `2 * KNOWN_PAGES` + 6. Raises nothing that a site could cause.
    """
    first = await _fetch_home(home, fetcher)
    others = [page for page in known if _page_key(page.uri) != _page_key(home)][:MAX_KNOWN_PAGES]
    seen = [await fetcher.fetch(page.uri) for page in others]
    before = next((page for page in known if _page_key(page.uri) == _page_key(home)), None)
    pairs = list(zip(seen, others, strict=True)) + ([(first, before)] if before is not None else [])
    if any(_is_as_before(glimpse, page) for glimpse, page in pairs):
        return await _fine_result("pages that are known are as they were", home, first, seen, known, fetcher)
    if first.is_forbidden or (seen and all(each.is_forbidden for each in seen)):
        return HealthCheck(SiteHealth.UNSEEN, "its robots.txt does not want us to look", tuple(known))
    look, reason = await _classify_gone_site(home, first, seen, known, fetcher)
    if look is not SiteHealth.FINE:
        return HealthCheck(look, reason, tuple(known))
    return await _fine_result(reason, home, first, seen, known, fetcher)


async def _fetch_home(home: str, glances: PageFetcher) -> FetchedPage:
    """Fetch the home page, again if no answer comes: a look must not hang on one request."""
    for _ in range(_MAX_ATTEMPTS - 1):
        found = await glances.fetch(home)
        if found.status is not None and found.status not in (500, 502, 504):
            return found
    return await glances.fetch(home)


def _is_as_before(glimpse: FetchedPage, page: KnownPage) -> bool:
    """Return whether a known page still says what it said."""
    if not glimpse.is_good:
        return False
    if glimpse.digest is not None and glimpse.digest == page.digest:
        return True
    text = glimpse.text()[:_MAX_TEXT_LENGTH]
    return bool(text.strip()) and text_resemblance(text, page.text, 3) >= _MIN_RESEMBLANCE


async def _classify_gone_site(  # noqa: PLR0911  a way out for each look
    home: str, first: FetchedPage, seen: Sequence[FetchedPage], known: Sequence[KnownPage], glances: PageFetcher
) -> tuple[SiteHealth, str]:
    """Return what stands in the place of a site of which no known page is as it was."""
    answers = [each for each in (first, *seen) if each.status is not None]
    if not answers:
        return SiteHealth.UNRESPONSIVE, first.error or "no answer"
    if any(each.status in _WAIT_STATUSES for each in answers) and not first.is_good:
        return SiteHealth.WAIT, f"status {first.status}" if first.status else "some pages say to wait"
    if all((each.status or 0) >= 500 for each in answers):
        return SiteHealth.UNRESPONSIVE, f"status {answers[0].status} everywhere"
    if first.status is not None and (found := _detect_move(home, first, seen)) is not None:
        return found
    if first.is_good:
        return await _classify_home_page(first, seen, known, glances)
    if not known:
        return (
            (SiteHealth.MISSING, f"status {first.status}") if first.status else (SiteHealth.UNRESPONSIVE, first.error)
        )
    if any(each.is_good and _classify(each, known) is None for each in seen):
        return SiteHealth.FINE, "the home page is missing, other pages are there"
    return SiteHealth.MISSING, f"{_format_status(first)} at home, and nothing that is known elsewhere"


async def _classify_home_page(  # noqa: PLR0911
    first: FetchedPage, seen: Sequence[FetchedPage], known: Sequence[KnownPage], glances: PageFetcher
) -> tuple[SiteHealth, str]:
    """Judge a home page that came with a good status and is not as it was."""
    verdict = _classify(first, known)
    if verdict is not None and verdict[0] is VerdictKind.PARKED:
        return SiteHealth.PARKED, verdict[1]
    if verdict is not None and verdict[0] is VerdictKind.HIJACKED:
        return SiteHealth.HIJACKED, verdict[1]
    if verdict is not None and verdict[0] is VerdictKind.SOFT_404:
        return (SiteHealth.WAIT if _TEMPORARY.search(verdict[1]) else SiteHealth.MISSING), verdict[1]
    if not known:
        return SiteHealth.FINE, "it is looked at for the first time"
    if any(each.is_good and _classify(each, known) is None and _is_other(each, first) for each in seen):
        return SiteHealth.FINE, "the pages have changed"
    for uri in islice(_own_links(first), _MAX_FOLLOWED_LINKS):
        led = await glances.fetch(uri)
        if led.is_good and _classify(led, known) is None and _is_other(led, first):
            return SiteHealth.FINE, "it looks different, and leads to other pages"
    if len(known) == 1:
        return SiteHealth.FINE, "its only page has changed"
    return SiteHealth.MISSING, "only a home page is left, which is another one and leads nowhere"


def _classify(glimpse: FetchedPage, known: Sequence[KnownPage]) -> tuple[VerdictKind, str] | None:
    earlier = [ReferencePage(page.uri, page.datetime, page.text) for page in known]
    found = classify_page(glimpse.response, ClassifierContext(earlier=earlier))
    return None if found is None else (found.kind, found.reason)


def _is_other(glimpse: FetchedPage, home: FetchedPage) -> bool:
    """Return whether it is another page than the home page: a site that is gone says the same everywhere."""
    return text_resemblance(glimpse.text()[:_MAX_TEXT_LENGTH], home.text()[:_MAX_TEXT_LENGTH], 3) < 0.9


def _detect_move(home: str, first: FetchedPage, seen: Sequence[FetchedPage]) -> tuple[SiteHealth, str] | None:
    """Return that a site leads to another domain, if all that answers does."""
    own = registered_domain(home)
    if not first.final_url or registered_domain(first.final_url) == own:
        return None
    # Where others stay, it is the home page alone that leads elsewhere.
    stays = [each for each in seen if each.is_good and registered_domain(each.final_url or each.uri) == own]
    return None if stays else (SiteHealth.MOVED, f"it leads to {registered_domain(first.final_url)}")


async def _fine_result(
    reason: str,
    home: str,
    first: FetchedPage,
    seen: Sequence[FetchedPage],
    known: Sequence[KnownPage],
    glances: PageFetcher,
) -> HealthCheck:
    """Return that a site is fine, with the pages that are known from now on: up to `KNOWN_PAGES` that are good."""
    pages = [
        _make_known_page(each)
        for each in (first, *seen)
        if each.is_good and registered_domain(each.final_url or each.uri) == registered_domain(home)
    ]
    places = {_page_key(page.uri) for page in pages} | {_page_key(page.uri) for page in known}
    if first.is_good:
        for uri in _own_links(first):
            if len(pages) > MAX_KNOWN_PAGES:
                break
            if _page_key(uri) in places:
                continue
            places.add(_page_key(uri))
            found = await glances.fetch(uri)
            if not found.is_good:
                break  # a site that is not well is not looked at more
            if found.mime is None or "html" in found.mime:
                pages.append(_make_known_page(found))
    # A page that only failed today is known tomorrow, unless others have taken its place.
    there = {_page_key(page.uri) for page in pages}
    failed = {_page_key(each.uri) for each in (first, *seen) if each.status is None or each.status >= 500}
    pages += [page for page in known if _page_key(page.uri) in failed - there]
    return HealthCheck(SiteHealth.FINE, reason, tuple(pages[: MAX_KNOWN_PAGES + 1]))


def _make_known_page(glimpse: FetchedPage) -> KnownPage:
    return KnownPage(glimpse.uri, glimpse.datetime, glimpse.digest, glimpse.text()[:_MAX_TEXT_LENGTH])


def _own_links(page: FetchedPage) -> list[str]:
    """Return where a page leads within its own domain."""
    own = registered_domain(page.final_url or page.uri)
    found = extract_links(page.body, page.mime, page.final_url or page.uri, page.charset)
    here = _page_key(page.uri)
    return [
        each.uri
        for each in found
        if each.kind is LinkKind.PAGE and registered_domain(each.uri) == own and _page_key(each.uri) != here
    ]


def registered_domain(uri: str) -> str:
    """Return the registered domain of an address; of what has none, its host.

    >>> registered_domain("http://www.a.co.uk/x"), registered_domain("http://127.0.0.1:80/")
    ('a.co.uk', '127.0.0.1')
    """
    try:
        return _SUFFIXES.registered_domain(uri)
    except UriError:
        return (urlsplit(uri).hostname or "").lower()


def _page_key(uri: str) -> str:
    try:
        return addresses.key(uri)
    except UriError:
        return uri


def _format_status(glimpse: FetchedPage) -> str:
    return f"status {glimpse.status}" if glimpse.status else "no answer"
