"""Sources of a recovery: clients of archives, files on this machine, and the live site."""

import asyncio
import hashlib
import json
from base64 import b32encode
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urljoin

from unlost.archives.base import ArchiveClient, FetchedCapture
from unlost.archives.factory import create_client
from unlost.capture import Capture
from unlost.clock import Clock
from unlost.crawl.fetcher import Fetcher, FetchRequest, FetchResponse
from unlost.crawl.politeness import PoliteFetcher
from unlost.crawl.robots import MemoryRobotsStore
from unlost.errors import (
    ExcludedError,
    FailedError,
    NotNowError,
    RobotsError,
    SiteError,
    SiteWaitError,
    UnsupportedError,
    UriError,
)
from unlost.http.client import ArchiveHttpClient
from unlost.http.policy import MAX_WAITS
from unlost.recovery.options import RecoverOptions
from unlost.recovery.state.store import RecoveryState
from unlost.registry.models import Archive, ArchiveKind, RequestKind
from unlost.uri import key as uri_key
from unlost.uri.names import page_name
from unlost.uri.normalize import normalize_input_url

LIVE_ARCHIVE = Archive("live", "Live site", ArchiveKind.LIVE, deep=False)
"""The registry entry of the live site; its captures have this archive id."""
MAX_LIVE_BODY_BYTES = 1 << 28
"""Largest body that is read from the live site, as for a capture from an archive."""
_MAX_CACHED_RESPONSES = 64  # responses that were listed and not fetched yet; an evicted one is requested again
_MAX_REDIRECTS = 5  # between spellings of a URL: to https, to `www`, to the final slash
_FORBIDDEN = (401, 403, 451)
_CHUNK = 1 << 20


class LiveSiteClient:
    """An `ArchiveClient` that requests pages from the live site.

    The live site has no listing. The only capture of a URL is the response to a request for it, which `fetch` then
    returns. Status 401, 403 or 451 and a Disallow rule in robots.txt mean that the page is excluded; any other client
    error, such as 404 or 410, that the site does not have it; a server error or 429 that the request failed.

    Args:
        fetcher: Sends the requests. It obeys robots.txt, the delay between requests, and Retry-After.
        archive: The registry entry.
    """

    def __init__(self, fetcher: PoliteFetcher, archive: Archive = LIVE_ARCHIVE) -> None:
        self._fetcher = fetcher
        self._archive = archive
        self._cached: OrderedDict[str, FetchedCapture] = OrderedDict()

    @property
    def archive(self) -> Archive:
        """The registry entry."""
        return self._archive

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the capture made by a request for the URL, if the site has the page.

        Raises:
            ExcludedError: The site or its robots.txt forbids the request.
            NotNowError: The host requested a wait.
            FailedError: The request failed.
        """
        fetched = await self._request(uri)
        if fetched is None:
            return
        self._cache(fetched)
        yield fetched.capture

    async def list_prefix(
        self,
        prefix: str,
        first: str | None = None,  # noqa: ARG002  required by the protocol
        last: str | None = None,  # noqa: ARG002
    ) -> AsyncIterator[Capture]:
        """Raise UnsupportedError: a live site has no listing. Its sitemap is a resource like any other."""
        raise UnsupportedError(f"the live site has no listing of {prefix[:80]}", self._archive.id)
        yield  # makes this a generator

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return the response that was listed, or request it again. Raises the errors of `captures`."""
        cached = self._cached.pop(capture.uri, None)
        return cached if cached is not None else await self._request(capture.uri)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:  # noqa: ARG002  always the present
        """Return the current response of the site. Raises the errors of `captures`."""
        return await self._request(uri)

    async def last_capture_date(self, uri: str) -> str | None:
        """Return the current time if the site has the page. Raises the errors of `captures`."""
        fetched = await self._request(uri)
        if fetched is None:
            return None
        fetched.body.close()
        return fetched.capture.datetime

    def _cache(self, fetched: FetchedCapture) -> None:
        previous = self._cached.pop(fetched.capture.uri, None)
        if previous is not None:
            previous.body.close()
        self._cached[fetched.capture.uri] = fetched
        if len(self._cached) > _MAX_CACHED_RESPONSES:
            self._cached.popitem(last=False)[1].body.close()

    async def _request(self, uri: str) -> FetchedCapture | None:
        response = await self._send(normalize_input_url(uri))
        visited = {response.uri}
        # A redirect to another spelling of the URL is the same page.
        while (target := _redirect_target(response)) and _is_same_resource(target, uri) and target not in visited:
            response.body.close()
            if len(visited) > _MAX_REDIRECTS:
                raise FailedError(f"more than {_MAX_REDIRECTS} redirects", self._archive.id, "redirects")
            response = await self._send(target)
            visited |= {target, response.uri}
        if 200 <= response.status < 400:
            return await self._stored_capture(response)
        response.body.close()
        if response.status in _FORBIDDEN:
            raise ExcludedError(f"the live site responds with status {response.status}", self._archive.id)
        if response.status >= 500 or response.status == 429:
            raise FailedError(f"status {response.status}", self._archive.id, "status")
        return None

    async def _send(self, url: str) -> FetchResponse:
        try:
            return await self._fetcher.fetch(FetchRequest(url, max_bytes=MAX_LIVE_BODY_BYTES))
        except SiteWaitError as error:
            raise NotNowError(str(error), self._archive.id, error.until, error.kind) from error
        except RobotsError as error:
            if error.is_temporary:
                raise FailedError(str(error), self._archive.id, "unreachable") from error
            raise ExcludedError(str(error), self._archive.id) from error
        except SiteError as error:
            raise FailedError(str(error), self._archive.id, error.kind) from error

    async def _stored_capture(self, response: FetchResponse) -> FetchedCapture:
        mime = (response.header("content-type") or "").partition(";")[0].strip().lower() or None
        capture = Capture(
            uri=response.uri,
            key=uri_key(response.uri),
            datetime=response.requested_at,
            status=response.status,
            mime=mime,
            digest=await asyncio.to_thread(_digest, response.body),
            length=response.size,
            redirect=_redirect_target(response),
            archive=self._archive.id,
            migrated=False,
        )
        return FetchedCapture(capture, response.headers, response.body, response.truncated, response.uri)


def _redirect_target(response: FetchResponse) -> str | None:
    location = response.header("location") if 300 <= response.status < 400 else None
    if not location:
        return None
    try:
        return urljoin(response.uri, location.strip())
    except ValueError:
        return location


def _is_same_resource(one: str, other: str) -> bool:
    try:
        return page_name(one) == page_name(other)
    except UriError:
        return False


def _digest(body: BinaryIO) -> str:
    digest = hashlib.sha1(usedforsecurity=False)
    body.seek(0)
    while data := body.read(_CHUNK):
        digest.update(data)
    body.seek(0)
    return f"sha1:{b32encode(digest.digest()).decode()}"


LIVE_DELAY_SECONDS = 1.0
"""Seconds between two requests to one host of the live site, unless the user or robots.txt requires more."""
_SOURCE_PATHS = "source-paths"  # fact: the paths of local sources, as JSON


@asynccontextmanager
async def open_sources(
    archives: Mapping[str, Archive],
    http_client: ArchiveHttpClient,
    options: RecoverOptions,
    clock: Clock,
    *,
    contact: str | None = None,
    delay: float = LIVE_DELAY_SECONDS,
    proxies: bool = False,
) -> AsyncIterator[dict[str, ArchiveClient]]:
    """Yield the clients of archives by id. The connections to the live site are closed at exit.

    Args:
        archives: Registry entries by id.
        http_client: Sends the requests to archives. Requests to the live site are added to its `request_counts`.
        options: What to recover.
        clock: The source of time.
        contact: Contact sent in the user agent, also to the live site. Without one, the delay is doubled.
        delay: Seconds between two requests to one host of the live site.
        proxies: Whether to use the proxies from the environment.
    """
    async with AsyncExitStack() as stack:
        clients: dict[str, ArchiveClient] = {}
        for name, archive in archives.items():
            if archive.kind is not ArchiveKind.LIVE:
                clients[name] = create_client(archive, http_client)
                continue
            fetcher = _CountingFetcher((options.url, *options.urls), clock, contact, use_proxies=proxies)
            fetcher.count_in(http_client.request_counts, name)
            await stack.enter_async_context(fetcher)
            pause = delay if contact else 2 * delay
            polite = PoliteFetcher(fetcher, MemoryRobotsStore(), clock, pause, max_wait=MAX_WAITS["recover"])
            clients[name] = LiveSiteClient(polite, archive)
        yield clients


class _CountingFetcher(Fetcher):
    """A fetcher that counts its requests, including those for robots.txt."""

    _sent: Counter[tuple[str, RequestKind]]
    _name: str

    def count_in(self, sent: Counter[tuple[str, RequestKind]], name: str) -> None:
        """Count requests in `sent` under this archive id."""
        self._sent, self._name = sent, name

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Count the request and send it."""
        self._sent[self._name, RequestKind.REPLAY] += 1
        return await super().fetch(request)


def store_source_paths(state: RecoveryState, archives: Mapping[str, Archive]) -> None:
    """Store the paths of local sources, and clear the listings if an archive id now refers to another path.

    Otherwise a file of the same name in another folder would count as listed.
    """
    previous: dict[str, str] = json.loads(state.fact(_SOURCE_PATHS) or "{}")
    current = {
        name: str(Path(archive.folder).expanduser().resolve())
        for name, archive in archives.items()
        if archive.folder is not None
    }
    if any(previous.get(name, path) != path for name, path in current.items()):
        state.listings.clear()
    if previous | current != previous:
        state.set_fact(_SOURCE_PATHS, json.dumps(previous | current, sort_keys=True))
