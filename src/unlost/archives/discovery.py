"""Where an archive publishes its MementoMap: links with `rel=mementomap`, in its headers and on its home page.

Addresses are found and nothing more: whoever wants a map asks for it, and checks it, like everything from elsewhere.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from unlost.archives.archive import Archive, RequestKind
from unlost.archives.asking.question import HttpClient, HttpRequest, HttpResponse
from unlost.archives.registry.fields import is_http_url
from unlost.archives.spelling import normalize_input_url
from unlost.errors import ArchiveError

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
