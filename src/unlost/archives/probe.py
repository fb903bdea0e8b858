"""Probes archives: whether each responds for one page, and where it publishes its MementoMap.

The link relation `mementomap` is searched for in the Link header of a TimeMap, on the home page, and in the Link header
of the TimeGate. For an archive with a TimeMap, no client is involved, so that a fault of a client is not taken for one
of the archive.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from unlost.archives.base import has_content
from unlost.archives.factory import create_client
from unlost.clock import Clock
from unlost.errors import ArchiveError, ExcludedError, FailedError, InputError, NotNowError
from unlost.http.models import HttpClient, HttpRequest, HttpResponse
from unlost.memento import timemap as memento_timemap
from unlost.problems import Problems
from unlost.registry.loader import is_http_url
from unlost.registry.models import Archive, RequestKind
from unlost.uri.normalize import normalize_input_url

MEMENTOMAP_RELATION = "mementomap"
_MAX_LINKS = 10  # of one response; an archive has one map, or a few
_MAX_HEADER = 1 << 14  # characters of Link headers; servers send less
_MAX_HEAD = 1 << 16  # bytes of a page in which its head must end
_MAX_PAGE = 1 << 22  # bytes of a home page
_MAX_MEMENTO_BYTES = 1 << 24  # bytes of a memento, which a TimeGate may send in its response
_MAX_TIMEMAP_BYTES = 1 << 24  # bytes of a TimeMap that are worth downloading for a probe: a hundred thousand mementos
_MAX_COUNTED = 10_000  # captures that are counted without a TimeMap
# A URL in angle brackets and its parameters (RFC 8288, section 3).
_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[^\s=;,"<>]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*))?)*)')
_PARAMETER = re.compile(r';\s*([^\s=;,"<>]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?')


@dataclass(frozen=True, slots=True)
class MapLink:
    """A link to a MementoMap.

    Attributes:
        url: Absolute URL, http or https.
        source: Where the link is: `Link header of URL` or `page URL`.
    """

    url: str
    source: str


@dataclass(frozen=True, slots=True)
class MapDiscovery:
    """The maps found, and what could not be searched and why, in a sentence each."""

    maps: tuple[MapLink, ...] = ()
    problems: tuple[str, ...] = ()


async def discover_maps(
    archive: Archive, client: HttpClient, uri: str, timemap: HttpResponse | None = None
) -> MapDiscovery:
    """Search for an archive's maps: in a TimeMap's response, on the home page, then at the TimeGate.

    The search ends with the first response that names a map, after at most two requests.

    Args:
        archive: The archive.
        client: Sends the requests.
        uri: A page to request from the TimeGate.
        timemap: The response to a TimeMap request, if there is one.

    Returns:
        The maps. Failed requests are among its problems.

    Raises:
        UriError: The page has no valid URL.
    """
    maps = maps_in_headers(timemap) if timemap is not None else []
    problems = []
    requests = [HttpRequest(home, RequestKind.REPLAY, max_bytes=_MAX_PAGE)] if (home := _home_url(archive)) else []
    if archive.timegate is not None:
        url = archive.timegate + normalize_input_url(uri)
        requests.append(HttpRequest(url, RequestKind.REPLAY, max_bytes=_MAX_MEMENTO_BYTES, max_redirects=0))
    for request in requests:
        if maps:
            break
        try:
            response = await client.send(archive, request)
        except ArchiveError as error:
            problems.append(f"{request.url}: {error}")
            continue
        # The body of a TimeGate's response may be an archived page; only its headers are the archive's own.
        maps = [*maps_in_headers(response), *(maps_in_page(response) if request.url == home else ())]
    return MapDiscovery(tuple(maps), tuple(problems))


def maps_in_headers(response: HttpResponse) -> list[MapLink]:
    """Return the maps that the Link headers of a response name."""
    header = ", ".join(value for name, value in response.headers if name.lower() == "link")[:_MAX_HEADER]
    targets = (link[1] for link in _LINK.finditer(header) if MEMENTOMAP_RELATION in _relations(link[2]))
    return _unique_map_links(targets, response.url, f"Link header of {response.url}")


def _relations(parameters: str) -> list[str]:
    for name, quoted, plain in _PARAMETER.findall(parameters):
        if name.lower() == "rel":  # further ones are ignored (RFC 8288, section 3.3)
            return str(quoted or plain).lower().split()
    return []


def maps_in_page(response: HttpResponse) -> list[MapLink]:
    """Return the maps that the head of an HTML page names."""
    if "html" not in (response.header("Content-Type") or "").lower():
        return []
    response.body.seek(0)
    head = _HeadParser()
    # Not closed: an element cut off by the limit is not a link. An invalid declaration ends the parsing.
    with suppress(AssertionError):
        head.feed(response.body.read(_MAX_HEAD).decode("utf-8", "replace"))
    base = _absolute_url(response.url, head.base) or response.url
    return _unique_map_links(head.targets, base, f"page {response.url}")


class _HeadParser(HTMLParser):
    """Finds the links to maps in the head of a page, and its base URL."""

    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.targets: list[str] = []
        self._is_over = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Store a link to a map, or the base URL."""
        self._is_over |= tag == "body"
        if self._is_over:
            return
        values = dict(reversed(attrs))  # of duplicate attributes, the first one counts
        if tag == "base" and not self.base:
            self.base = values.get("href") or ""
        if tag == "link" and MEMENTOMAP_RELATION in (values.get("rel") or "").lower().split():
            self.targets.append(values.get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        """Detect the end of the head."""
        self._is_over |= tag == "head"


def _unique_map_links(targets: Iterable[str], base: str, source: str) -> list[MapLink]:
    """Return the first links to http or https URLs, without duplicates."""
    urls = (_absolute_url(base, target) for target in targets)
    unique = dict.fromkeys(url for url in urls if url is not None and is_http_url(url))
    return [MapLink(url, source) for url in list(unique)[:_MAX_LINKS]]


def _absolute_url(base: str, target: str) -> str | None:
    """Return an absolute URL without its fragment; None for an invalid one."""
    if not (target := target.strip()):
        return None
    try:
        return urljoin(base, target).partition("#")[0]
    except ValueError:
        return None


def _home_url(archive: Archive) -> str | None:
    """Return the URL of the home page on an archive's host; None for a local archive."""
    url = archive.timegate or archive.timemap or archive.cdx or archive.replay
    if url is None:
        return None
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of probing one archive.

    Attributes:
        archive: The archive.
        outcome: `answered`; `excluded` if the archive does not serve the page, which is a response, too; else a kind in
            `unlost.http.models.FAILURE_KINDS`, or the reason of a `NotNowError`.
        message: The error message; empty if the archive responded.
        seconds: Time until the response, without the search for maps.
        capture_count: Number of captures of the page that it lists.
        has_more: Whether it has more captures than were counted. For a very long list, none are counted.
        first: Date of the earliest capture, 14 digits; None if there are none.
        last: Date of the latest capture, 14 digits; None if there are none.
        maps: Where it publishes its MementoMap.
        problems: What could not be searched for a map.
    """

    archive: Archive
    outcome: str
    message: str
    seconds: float
    capture_count: int = 0
    has_more: bool = False
    first: str | None = None
    last: str | None = None
    maps: tuple[MapLink, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def has_answered(self) -> bool:
        """Whether the archive responded, with captures or without."""
        return self.outcome in ("answered", "excluded")


async def probe_archives(
    archives: Iterable[Archive], client: HttpClient, uri: str, clock: Clock, timeout: float
) -> AsyncIterator[ProbeResult]:
    """Query archives for one page concurrently, and yield the results in order of completion.

    Args:
        archives: The archives.
        client: Sends the requests.
        uri: The page.
        clock: Measures the time.
        timeout: Seconds for one archive to respond, and again for the search for its maps.

    Raises:
        OSError: A local failure, such as a full disk.
        InputError: A local file cannot be read.
    """
    tasks = [asyncio.create_task(_probe(archive, client, uri, clock, timeout)) for archive in archives]
    try:
        for done in asyncio.as_completed(tasks):
            yield await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _ListedCaptures:
    """The captures of a page that an archive lists, and the response to a TimeMap request."""

    capture_count: int
    has_more: bool = False
    first: str | None = None
    last: str | None = None
    response: HttpResponse | None = None


async def _probe(archive: Archive, client: HttpClient, uri: str, clock: Clock, timeout: float) -> ProbeResult:
    begin = clock.now()
    try:
        async with asyncio.timeout(timeout):
            listed = await _query_captures(archive, client, uri)
    except TimeoutError:
        return ProbeResult(archive, "timeout", f"no answer within {timeout:g} s", clock.now() - begin)
    except ArchiveError as error:
        return ProbeResult(archive, _outcome(error), str(error), clock.now() - begin)
    except (InputError, OSError) as error:
        if archive.folder is None:
            raise  # a local failure: rate limits that cannot be stored, a full disk
        return ProbeResult(archive, "unreachable", str(error), clock.now() - begin)
    seconds = clock.now() - begin
    try:
        async with asyncio.timeout(timeout):
            discovery = await discover_maps(archive, client, uri, listed.response)
    except TimeoutError:
        discovery = MapDiscovery(problems=(f"no map was found within {timeout:g} s",))
    return ProbeResult(
        archive,
        "answered",
        "",
        seconds,
        listed.capture_count,
        listed.has_more,
        listed.first,
        listed.last,
        discovery.maps,
        discovery.problems,
    )


def _outcome(error: ArchiveError) -> str:
    match error:
        case ExcludedError():
            return "excluded"
        case NotNowError():
            return error.reason
        case FailedError():
            return error.kind
        case _:  # it does not support this query
            return "malformed"


async def _query_captures(archive: Archive, client: HttpClient, uri: str) -> _ListedCaptures:
    """Return the captures of a page from the TimeMap, the smallest request there is, or from the archive's client."""
    if archive.timemap is None:
        return await _count_captures(archive, client, uri)
    request = HttpRequest(archive.timemap + normalize_input_url(uri), RequestKind.INDEX, max_bytes=_MAX_TIMEMAP_BYTES)
    try:
        response = await client.send(archive, request)
    except FailedError as error:
        if error.kind == "too-large":  # the archive has responded
            return _ListedCaptures(0, has_more=True)
        raise
    if not has_content(archive, response):
        return _ListedCaptures(0, response=response)
    problems = Problems()
    timemap = memento_timemap.read_timemap(response.body.read(), problems)
    if not timemap.mementos and problems.total:
        problem = next(iter(problems.first.values()))
        raise FailedError(f"expected a TimeMap: {problem.message}", archive.id, "malformed")
    dates = [memento.datetime for memento in timemap.mementos]
    own = timemap.self_link.uri if timemap.self_link else None
    has_more = any(link.uri != own and link.type in (None, memento_timemap.MEDIA_TYPE) for link in timemap.timemaps)
    return _ListedCaptures(len(dates), has_more, min(dates, default=None), max(dates, default=None), response)


async def _count_captures(archive: Archive, client: HttpClient, uri: str) -> _ListedCaptures:
    dates = []
    captures = create_client(archive, client).captures(uri)
    async for capture in captures:
        dates.append(capture.datetime)
        if len(dates) == _MAX_COUNTED:
            return _ListedCaptures(len(dates), True, min(dates), max(dates))
    return _ListedCaptures(len(dates), False, min(dates, default=None), max(dates, default=None))
