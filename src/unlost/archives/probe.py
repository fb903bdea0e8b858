"""Probes archives: whether each responds for one page, and where it publishes its MementoMap."""

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
from unlost.registry.fields import is_http_url
from unlost.registry.models import Archive, RequestKind
from unlost.uri.normalize import normalize_input_url

MEMENTOMAP_RELATION = "mementomap"
_MAX_LINKS = 10  # of one answer: an archive has a map, or a few
_MAX_HEADER = 1 << 14  # characters of Link headers: servers send no more
_MAX_HEAD = 1 << 16  # bytes of a page in which its head must end
_MAX_PAGE = 1 << 22  # bytes of a home page that is of any use
_MAX_MEMENTO_BYTES = 1 << 24  # bytes of a copy, which a TimeGate sends along with its header
# An address in angle brackets, and its parameters; RFC 8288.
_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[^\s=;,"<>]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^\s;,"]*))?)*)')
_PARAMETER = re.compile(r';\s*([^\s=;,"<>]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*)))?')


@dataclass(frozen=True, slots=True)
class MapLink:
    """Where a map is said to be.

    address: absolute, http or https.
    found: where it is said: `Link header of URL` or `page URL`.
    """

    url: str
    source: str


@dataclass(frozen=True, slots=True)
class MapDiscovery:
    """What was found, and what could not be looked at and why, in a sentence each."""

    maps: tuple[MapLink, ...] = ()
    problems: tuple[str, ...] = ()


async def discover_maps(
    archive: Archive, client: HttpClient, uri: str, timemap: HttpResponse | None = None
) -> MapDiscovery:
    """Look for an archive's maps in the answer to a TimeMap, on its home page, then at its TimeGate; end at the first.

    uri: a page to ask the TimeGate for. timemap: an answer that is there already. At most two questions are asked.
    Raises UriError; what an archive fails in is among the problems.
    """
    maps = maps_in_headers(timemap) if timemap is not None else []
    problems = []
    questions = [HttpRequest(home, RequestKind.REPLAY, max_bytes=_MAX_PAGE)] if (home := _home_url(archive)) else []
    if archive.timegate is not None:
        address = archive.timegate + normalize_input_url(uri)
        questions.append(HttpRequest(address, RequestKind.REPLAY, max_bytes=_MAX_MEMENTO_BYTES, max_redirects=0))
    for question in questions:
        if maps:
            break
        try:
            reply = await client.send(archive, question)
        except ArchiveError as error:
            problems.append(f"{question.url}: {error}")
            continue
        # What a TimeGate shows is an archived page: only its headers are the archive's own.
        maps = [*maps_in_headers(reply), *(maps_in_page(reply) if question.url == home else ())]
    return MapDiscovery(tuple(maps), tuple(problems))


def maps_in_headers(response: HttpResponse) -> list[MapLink]:
    """Return the maps that the Link headers of an answer name."""
    header = ", ".join(value for name, value in response.headers if name.lower() == "link")[:_MAX_HEADER]
    targets = (link[1] for link in _LINK.finditer(header) if MEMENTOMAP_RELATION in _relations(link[2]))
    return _unique_map_links(targets, response.url, f"Link header of {response.url}")


def _relations(parameters: str) -> list[str]:
    for name, quoted, plain in _PARAMETER.findall(parameters):
        if name.lower() == "rel":  # a second one counts for nothing, by the standard
            return str(quoted or plain).lower().split()
    return []


def maps_in_page(response: HttpResponse) -> list[MapLink]:
    """Return the maps that the head of a page names, if it is HTML."""
    if "html" not in (response.header("Content-Type") or "").lower():
        return []
    response.body.seek(0)
    head = _HeadParser()
    # Not closed, as what the limit cuts off is no link. A broken declaration ends it: what is before that counts.
    with suppress(AssertionError):
        head.feed(response.body.read(_MAX_HEAD).decode("utf-8", "replace"))
    base = _absolute_url(response.url, head.base) or response.url
    return _unique_map_links(head.targets, base, f"page {response.url}")


class _HeadParser(HTMLParser):
    """The links to maps in the head of a page, and its base."""

    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.targets: list[str] = []
        self._is_over = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a link, or the base."""
        self._is_over |= tag == "body"
        if self._is_over:
            return
        values = dict(reversed(attrs))  # of two with a name the first counts
        if tag == "base" and not self.base:
            self.base = values.get("href") or ""
        if tag == "link" and MEMENTOMAP_RELATION in (values.get("rel") or "").lower().split():
            self.targets.append(values.get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        """Notice the end of the head."""
        self._is_over |= tag == "head"


def _unique_map_links(targets: Iterable[str], base: str, found: str) -> list[MapLink]:
    """Return the first few of the addresses that are web addresses, absolute, each once."""
    addresses = (_absolute_url(base, target) for target in targets)
    unique = dict.fromkeys(address for address in addresses if address is not None and is_http_url(address))
    return [MapLink(address, found) for address in list(unique)[:_MAX_LINKS]]


def _absolute_url(base: str, target: str) -> str | None:
    """Return an address made absolute, without its fragment; None for what is none."""
    if not (target := target.strip()):
        return None
    try:
        return urljoin(base, target).partition("#")[0]
    except ValueError:
        return None


def _home_url(archive: Archive) -> str | None:
    """Return the address of the page that an archive's host shows first; None for one on this machine."""
    place = archive.timegate or archive.timemap or archive.cdx or archive.replay
    if place is None:
        return None
    parts = urlsplit(place)
    return f"{parts.scheme}://{parts.netloc}/"


_MAX_TIMEMAP_BYTES = 1 << 24  # bytes of a list that is worth its way for a test: a hundred thousand copies
_MAX_COUNTED = 10_000  # that are counted where there is no TimeMap: enough to see that there is something


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What came of asking one archive.

    outcome: one word: `answered`; `excluded` if it does not show the page, which is an answer, too; else a kind of
        `unlost.http.models.KINDS`, or the reason why it was not asked (of `NotNowError`).
    message: what it said instead of an answer; empty if it answered.
    copies: how many copies of the page it lists. `more`: it has more than were counted, which may be none if its list
        is a very long one.
    first, last: the dates of the earliest and the latest of them, 14 digits; None if there are none.
    seconds: until the answer was there, without the search for maps.
    maps: where it says that its MementoMap is. problems: what could not be looked at for one.
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
        """Whether it answered, whatever the answer."""
        return self.outcome in ("answered", "excluded")


async def probe_archives(
    archives: Iterable[Archive], client: HttpClient, uri: str, clock: Clock, timeout: float
) -> AsyncIterator[ProbeResult]:
    """Ask archives for one page at once and yield what came of each, in the order in which they are done.

    patience: seconds that one archive has to answer, and again as many to tell of its maps.
    Raises OSError and InputError where it is not an archive that is at fault.
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
    """What an archive lists of a page; reply: the answer to a TimeMap."""

    copies: int
    more: bool = False
    first: str | None = None
    last: str | None = None
    reply: HttpResponse | None = None


async def _probe(archive: Archive, client: HttpClient, uri: str, clock: Clock, timeout: float) -> ProbeResult:
    begin = clock.now()
    try:
        async with asyncio.timeout(timeout):
            held = await _query_captures(archive, client, uri)
    except TimeoutError:
        return ProbeResult(archive, "timeout", f"no answer within {timeout:g} s", clock.now() - begin)
    except ArchiveError as error:
        return ProbeResult(archive, _outcome(error), str(error), clock.now() - begin)
    except (InputError, OSError) as error:
        if archive.folder is None:
            raise  # not the archive's fault: limits that cannot be kept, a full disk
        return ProbeResult(archive, "unreachable", str(error), clock.now() - begin)
    seconds = clock.now() - begin
    try:
        async with asyncio.timeout(timeout):
            discovery = await discover_maps(archive, client, uri, held.reply)
    except TimeoutError:
        discovery = MapDiscovery(problems=(f"no map was found within {timeout:g} s",))
    return ProbeResult(
        archive,
        "answered",
        "",
        seconds,
        held.copies,
        held.more,
        held.first,
        held.last,
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
        case _:  # it cannot be asked for a page, or not for all of them
            return "malformed"


async def _query_captures(archive: Archive, client: HttpClient, uri: str) -> _ListedCaptures:
    """Return what an archive lists of a page: by its TimeMap, the smallest question there is, or as its client does."""
    if archive.timemap is None:
        return await _count_captures(archive, client, uri)
    question = HttpRequest(archive.timemap + normalize_input_url(uri), RequestKind.INDEX, max_bytes=_MAX_TIMEMAP_BYTES)
    try:
        reply = await client.send(archive, question)
    except FailedError as error:
        if error.kind == "too-large":  # it has answered, and more than we wanted to know
            return _ListedCaptures(0, more=True)
        raise
    if not has_content(archive, reply):
        return _ListedCaptures(0, reply=reply)
    problems = Problems()
    timemap = memento_timemap.read_timemap(reply.body.read(), problems)
    if not timemap.mementos and problems.total:
        problem = next(iter(problems.first.values()))
        raise FailedError(f"expected a TimeMap: {problem.message}", archive.id, "malformed")
    dates = [memento.datetime for memento in timemap.mementos]
    own = timemap.self_link.uri if timemap.self_link else None
    more = any(link.uri != own and link.type in (None, memento_timemap.MEDIA_TYPE) for link in timemap.timemaps)
    return _ListedCaptures(len(dates), more, min(dates, default=None), max(dates, default=None), reply)


async def _count_captures(archive: Archive, client: HttpClient, uri: str) -> _ListedCaptures:
    dates = []
    captures = create_client(archive, client).captures(uri)
    async for capture in captures:
        dates.append(capture.datetime)
        if len(dates) == _MAX_COUNTED:
            return _ListedCaptures(len(dates), True, min(dates), max(dates))
    return _ListedCaptures(len(dates), False, min(dates, default=None), max(dates, default=None))
