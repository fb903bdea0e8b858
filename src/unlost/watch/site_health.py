"""Health of a site: fetches the home page and known pages politely, and decides whether it is still the same site.

A site is fine if at least one known page still has its text. Only otherwise are the pages classified: verdicts on a
home page alone would be wrong for every site that is redesigned.
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
from unlost.http.policy import MAX_WAITS, RETRIES
from unlost.http.url import parse_url
from unlost.quality import ClassifierContext, PageResponse, ReferencePage, VerdictKind, classify_page

MAX_PAGE_BYTES = 512 << 10
"""Size in bytes of the part of a page that is fetched; the classifier reads half of it."""


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """The result of fetching a page, after redirects.

    Attributes:
        uri: The requested URL.
        datetime: Time of the request, 14 digits.
        final_url: URL of the response.
        status: HTTP status; None without a response.
        mime: Declared media type.
        charset: Declared charset.
        body: At most `MAX_PAGE_BYTES`, without content coding.
        digest: SHA-1 as in WARC files; None if unknown.
        error: What went wrong; empty if a response came.
        is_forbidden: Whether robots.txt forbids the request.
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
        """Whether the status is 2xx."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def response(self) -> PageResponse:
        """The page for the classifier."""
        return PageResponse(self.uri, self.datetime, self.status, self.mime, self.body, (), self.charset)

    def text(self) -> str:
        """Return the visible text."""
        read = extract_text(self.body, self.mime, self.final_url or self.uri, self.charset)
        return "" if read is None else read.text


class PageFetcher(Protocol):
    """Fetches pages of a live site politely."""

    async def fetch(self, uri: str) -> FetchedPage:
        """Fetch a page. Errors of the site are part of the result and are not raised."""
        ...


_MAX_REDIRECTS = 5
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)


class PolitePageFetcher:
    """A `PageFetcher` that respects robots.txt and rate limits. An async context manager.

    Args:
        homes: URLs of the sites that the user named.
        clock: The clock.
        contact: Email address or URL for the User-Agent header; without one, the delay is doubled.
        delay: Seconds between two requests to one host.
        proxies: Whether the proxies of the environment are used.
    """

    def __init__(
        self, homes: list[str], clock: Clock, contact: str | None, delay: float, *, proxies: bool = False
    ) -> None:
        self._clock = clock
        self._robots = MemoryRobotsStore()
        self._fetcher = Fetcher(homes, clock, contact, use_proxies=proxies)
        # No waiting for Retry-After: a site that demands a wait has the health WAIT.
        self._polite_fetcher = PoliteFetcher(
            self._fetcher, self._robots, clock, delay if contact else 2 * delay, max_wait=MAX_WAITS["watch"]
        )

    async def __aenter__(self) -> Self:
        """Open the connections."""
        await self._fetcher.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self._fetcher.__aexit__(None, None, None)

    async def fetch(self, uri: str) -> FetchedPage:
        """Fetch a page, following up to 5 redirects."""
        now = dates.from_epoch(str(int(self._clock.now())))
        url, page = uri, FetchedPage(uri, now)
        for _ in range(_MAX_REDIRECTS + 1):
            try:
                response = await self._polite_fetcher.fetch(FetchRequest(url, max_bytes=MAX_PAGE_BYTES))
            except RobotsError as error:
                return self._forbidden_page(uri, url, now, error) if page.status is None else page
            except SiteWaitError as error:
                return FetchedPage(uri, now, url, 503, error=str(error)) if page.status is None else page
            except SiteError as error:
                return FetchedPage(uri, now, error=str(error)) if page.status is None else page
            with response.body:
                page = _make_page(uri, response, now)
            target = response.header("location")
            if response.status not in _REDIRECT_STATUSES or not target:
                return page
            url = urljoin(url, target)
            page = FetchedPage(uri, now, url, response.status, error="redirects to an unavailable page")
        return page

    def _forbidden_page(self, uri: str, url: str, now: str, error: RobotsError) -> FetchedPage:
        """Return the result for a page that robots.txt forbids, or whose robots.txt could not be fetched."""
        if not error.is_temporary:
            return FetchedPage(uri, now, url, error=str(error), is_forbidden=True)
        robots = self._robots.get(parse_url(url).origin)
        return FetchedPage(
            uri, now, url if robots and robots.status else "", robots.status if robots else None, error=str(error)
        )


def _make_page(uri: str, response: FetchResponse, now: str) -> FetchedPage:
    body = response.body.read(MAX_PAGE_BYTES)
    mime, _, parameters = (response.header("content-type") or "").partition(";")
    charset = parameters.partition("charset=")[2].strip("\"' ") or None
    digest = normalize_digest(f"sha1:{sha1(body, usedforsecurity=False).hexdigest()}")
    return FetchedPage(uri, now, response.uri, response.status, mime.strip().lower() or None, charset, body, digest)


MAX_KNOWN_PAGES = 8
"""Known pages of a site, in addition to the home page."""
_MAX_TEXT_LENGTH = 20_000  # characters of a page that are compared
_MIN_RESEMBLANCE = 0.4  # share of equal 3-word shingles that an edited page still reaches
_MAX_FOLLOWED_LINKS = 3  # links of a changed home page that are tried before the site counts as missing
# Matches the reasons of soft-404 verdicts that indicate a temporary error.
_TEMPORARY = re.compile(
    r"maintenance|wartung|temporar|vorübergehend|be (right )?back|back soon|in kürze|updating|database|mysql|sql|"
    r"server error|serverfehler|server too busy|unavailable|indisponible|bandwidth|technical|went wrong|gone wrong|"
    r"error occurred|error has occurred|unexpected|gateway|zur ?zeit|derzeit|momentané|503|502|500",
    re.IGNORECASE,
)
_WAIT_STATUSES = (429, 503)
_SUFFIXES = addresses.SuffixList()


class SiteHealth(StrEnum):
    """Health of a site at one visit."""

    FINE = "fine"
    """The site is available."""
    WAIT = "wait"
    """The site is temporarily unavailable, by its own account."""
    UNRESPONSIVE = "unresponsive"
    """No response, or only server errors."""
    MISSING = "missing-content"
    """The server responds, but no content of the site is left."""
    PARKED = "parked"
    """The domain is parked."""
    HIJACKED = "hijacked"
    """Another site is at the domain."""
    MOVED = "moved"
    """The site redirects to another domain."""
    UNSEEN = "unseen"
    """Unknown, since robots.txt forbids the requests."""

    @property
    def is_gone(self) -> bool:
        """Whether the site is unavailable as far as one visit can tell."""
        return self not in (SiteHealth.FINE, SiteHealth.WAIT, SiteHealth.UNSEEN)


@dataclass(frozen=True, slots=True)
class KnownPage:
    """A page that was good at an earlier visit.

    Attributes:
        uri: The URL.
        datetime: Time of the request, 14 digits.
        digest: SHA-1 as in WARC files; None if unknown.
        text: The beginning of its visible text.
    """

    uri: str
    datetime: str
    digest: str | None
    text: str


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The result of a health check.

    Attributes:
        health: The health.
        reason: Explanation of the health.
        pages: The known pages for the next visit: those of this visit if the site is fine, otherwise the same as
            before.
    """

    health: SiteHealth
    reason: str
    pages: tuple[KnownPage, ...]


async def check_health(home: str, known: Sequence[KnownPage], fetcher: PageFetcher) -> HealthCheck:
    """Check the health of a site. Errors of the site are part of the result and are not raised.

    Sends at most `2 * MAX_KNOWN_PAGES + 6` requests.

    Args:
        home: URL of the home page.
        known: Known pages; empty at the first visit.
        fetcher: Fetches the pages.
    """
    first = await _fetch_home(home, fetcher)
    others = [page for page in known if _page_key(page.uri) != _page_key(home)][:MAX_KNOWN_PAGES]
    pages = [await fetcher.fetch(page.uri) for page in others]
    known_home = next((page for page in known if _page_key(page.uri) == _page_key(home)), None)
    pairs = list(zip(pages, others, strict=True)) + ([(first, known_home)] if known_home is not None else [])
    if any(_is_as_before(*pair) for pair in pairs):
        return await _fine_result("known pages are unchanged", home, first, pages, known, fetcher)
    if first.is_forbidden or (pages and all(each.is_forbidden for each in pages)):
        return HealthCheck(SiteHealth.UNSEEN, "disallowed by robots.txt", tuple(known))
    health, reason = await _classify_gone_site(home, first, pages, known, fetcher)
    if health is not SiteHealth.FINE:
        return HealthCheck(health, reason, tuple(known))
    return await _fine_result(reason, home, first, pages, known, fetcher)


async def _fetch_home(home: str, fetcher: PageFetcher) -> FetchedPage:
    """Fetch the home page, with retries on server errors and without a response."""
    page = await fetcher.fetch(home)
    for retry in range(RETRIES["watch"].retries):
        if not RETRIES["watch"].allows("silent" if page.status is None else str(page.status), retry):
            break
        page = await fetcher.fetch(home)
    return page


def _is_as_before(fetched: FetchedPage, known: KnownPage) -> bool:
    """Return whether a known page is unchanged or similar."""
    if not fetched.is_good:
        return False
    if fetched.digest is not None and fetched.digest == known.digest:
        return True
    text = fetched.text()[:_MAX_TEXT_LENGTH]
    return bool(text.strip()) and text_resemblance(text, known.text, 3) >= _MIN_RESEMBLANCE


async def _classify_gone_site(  # noqa: PLR0911  a return for each health
    home: str, first: FetchedPage, pages: Sequence[FetchedPage], known: Sequence[KnownPage], fetcher: PageFetcher
) -> tuple[SiteHealth, str]:
    """Return health and reason of a site without any unchanged known page."""
    responses = [each for each in (first, *pages) if each.status is not None]
    if not responses:
        return SiteHealth.UNRESPONSIVE, first.error or "no response"
    if any(each.status in _WAIT_STATUSES for each in responses) and not first.is_good:
        return SiteHealth.WAIT, f"status {first.status}" if first.status else "some pages ask to retry later"
    if all((each.status or 0) >= 500 for each in responses):
        return SiteHealth.UNRESPONSIVE, f"status {responses[0].status} for all pages"
    if first.status is not None and (move := _detect_move(home, first, pages)) is not None:
        return move
    if first.is_good:
        return await _classify_home_page(first, pages, known, fetcher)
    if not known:
        return (
            (SiteHealth.MISSING, f"status {first.status}") if first.status else (SiteHealth.UNRESPONSIVE, first.error)
        )
    if any(each.is_good and _classify(each, known) is None for each in pages):
        return SiteHealth.FINE, "the home page is missing, other pages are online"
    return SiteHealth.MISSING, f"home page: {_format_status(first)}; no known page is left"


async def _classify_home_page(  # noqa: PLR0911
    first: FetchedPage, pages: Sequence[FetchedPage], known: Sequence[KnownPage], fetcher: PageFetcher
) -> tuple[SiteHealth, str]:
    """Return health and reason by a changed home page with a good status."""
    verdict = _classify(first, known)
    if verdict is not None and verdict[0] is VerdictKind.PARKED:
        return SiteHealth.PARKED, verdict[1]
    if verdict is not None and verdict[0] is VerdictKind.HIJACKED:
        return SiteHealth.HIJACKED, verdict[1]
    if verdict is not None and verdict[0] is VerdictKind.SOFT_404:
        return (SiteHealth.WAIT if _TEMPORARY.search(verdict[1]) else SiteHealth.MISSING), verdict[1]
    if not known:
        return SiteHealth.FINE, "first visit"
    if any(each.is_good and _classify(each, known) is None and _is_other(each, first) for each in pages):
        return SiteHealth.FINE, "pages have changed"
    for uri in islice(_own_links(first), _MAX_FOLLOWED_LINKS):
        linked_page = await fetcher.fetch(uri)
        if linked_page.is_good and _classify(linked_page, known) is None and _is_other(linked_page, first):
            return SiteHealth.FINE, "redesigned, links to working pages"
    if len(known) == 1:
        return SiteHealth.FINE, "the only known page has changed"
    return SiteHealth.MISSING, "only a different home page without working links is left"


def _classify(page: FetchedPage, known: Sequence[KnownPage]) -> tuple[VerdictKind, str] | None:
    earlier = [ReferencePage(known_page.uri, known_page.datetime, known_page.text) for known_page in known]
    verdict = classify_page(page.response, ClassifierContext(earlier=earlier))
    return None if verdict is None else (verdict.kind, verdict.reason)


def _is_other(page: FetchedPage, home: FetchedPage) -> bool:
    """Return whether a page differs from the home page; a site that is gone often has the same text at all URLs."""
    return text_resemblance(page.text()[:_MAX_TEXT_LENGTH], home.text()[:_MAX_TEXT_LENGTH], 3) < 0.9


def _detect_move(home: str, first: FetchedPage, pages: Sequence[FetchedPage]) -> tuple[SiteHealth, str] | None:
    """Return health and reason if the home page redirects to another domain and no known page is left on this one."""
    own = registered_domain(home)
    if not first.final_url or registered_domain(first.final_url) == own:
        return None
    # If other pages stay on the domain, only the home page redirects.
    staying = [each for each in pages if each.is_good and registered_domain(each.final_url or each.uri) == own]
    return None if staying else (SiteHealth.MOVED, f"redirects to {registered_domain(first.final_url)}")


async def _fine_result(
    reason: str,
    home: str,
    first: FetchedPage,
    seen: Sequence[FetchedPage],
    known: Sequence[KnownPage],
    fetcher: PageFetcher,
) -> HealthCheck:
    """Return that the site is fine, with up to `MAX_KNOWN_PAGES` good pages and the home page as known pages."""
    pages = [
        _make_known_page(each)
        for each in (first, *seen)
        if each.is_good and registered_domain(each.final_url or each.uri) == registered_domain(home)
    ]
    keys = {_page_key(page.uri) for page in pages} | {_page_key(page.uri) for page in known}
    if first.is_good:
        for uri in _own_links(first):
            if len(pages) > MAX_KNOWN_PAGES:
                break
            if _page_key(uri) in keys:
                continue
            keys.add(_page_key(uri))
            linked_page = await fetcher.fetch(uri)
            if not linked_page.is_good:
                break  # no more requests to a site with errors
            if linked_page.mime is None or "html" in linked_page.mime:
                pages.append(_make_known_page(linked_page))
    # A known page with a temporary error remains known, within the limit.
    good_keys = {_page_key(page.uri) for page in pages}
    failed_keys = {_page_key(each.uri) for each in (first, *seen) if each.status is None or each.status >= 500}
    pages += [page for page in known if _page_key(page.uri) in failed_keys - good_keys]
    return HealthCheck(SiteHealth.FINE, reason, tuple(pages[: MAX_KNOWN_PAGES + 1]))


def _make_known_page(page: FetchedPage) -> KnownPage:
    return KnownPage(page.uri, page.datetime, page.digest, page.text()[:_MAX_TEXT_LENGTH])


def _own_links(page: FetchedPage) -> list[str]:
    """Return the links of a page to other pages of its domain."""
    own = registered_domain(page.final_url or page.uri)
    links = extract_links(page.body, page.mime, page.final_url or page.uri, page.charset)
    own_key = _page_key(page.uri)
    return [
        each.uri
        for each in links
        if each.kind is LinkKind.PAGE and registered_domain(each.uri) == own and _page_key(each.uri) != own_key
    ]


def registered_domain(uri: str) -> str:
    """Return the registered domain of a URL; the host if it has none.

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


def _format_status(page: FetchedPage) -> str:
    return f"status {page.status}" if page.status else "no response"
