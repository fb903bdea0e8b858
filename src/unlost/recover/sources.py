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

from unlost import uri as addresses
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
from unlost.recover.options import RecoverOptions
from unlost.recover.state.store import RecoveryState
from unlost.registry.models import Archive, ArchiveKind, RequestKind
from unlost.uri.names import page_name
from unlost.uri.normalize import normalize_input_url

LIVE_ARCHIVE = Archive("live", "Live site", ArchiveKind.LIVE, deep=False)
"""The entry of the live web; its id is that of every capture from there."""
MAX_WAIT_SECONDS = 60.0
"""How long a host may make the recovery wait by 429 or 503; the archives are queried meanwhile."""
MAX_LIVE_BODY_BYTES = 1 << 28
"""The largest body that is read: as much as of an archive's capture."""
_MAX_CACHED_RESPONSES = 64  # responses that were listed and not fetched yet; one that was dropped is requested again
_MAX_REDIRECTS = 5  # from one spelling of a URL to another: to https, to `www`, to the final slash
_FORBIDDEN = (401, 403, 451)
_CHUNK = 1 << 20


class LiveSiteClient:
    """Requests pages from the live web: a `Repository`.

    It has no listing. The list of captures of a URL is the response to one request for it, which `fetch` then returns.
    A response of 404, 410 or another client error means that the site does not have the page; 401, 403 and 451, and
    what robots.txt disallows, that it does not show it; a server error that it failed.

    visitor: sends the requests; it obeys robots.txt, the delay between requests, and Retry-After.
    """

    def __init__(self, visitor: PoliteFetcher, archive: Archive = LIVE_ARCHIVE) -> None:
        self._visitor = visitor
        self._archive = archive
        self._cached: OrderedDict[str, FetchedCapture] = OrderedDict()

    @property
    def archive(self) -> Archive:
        """Return its entry."""
        return self._archive

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the capture that a request for the URL makes, if the site has the page.

        Raises ExcludedError, NotNowError, FailedError.
        """
        copy = await self._request(uri)
        if copy is None:
            return
        self._cache(copy)
        yield copy.capture

    async def list_prefix(
        self,
        prefix: str,
        first: str | None = None,  # noqa: ARG002  as the protocol has it
        last: str | None = None,  # noqa: ARG002
    ) -> AsyncIterator[Capture]:
        """Raise UnsupportedError: a live site has no listing. Its sitemap is a resource like any other."""
        raise UnsupportedError(f"the live site has no listing of {prefix[:80]}", self._archive.id)
        yield  # makes this a generator

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return the response that was listed, or request it again. Raises as `captures` does."""
        held = self._cached.pop(capture.uri, None)
        return held if held is not None else await self._request(capture.uri)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:  # noqa: ARG002  there is only now
        """Return what the site responds now. Raises as `captures` does."""
        return await self._request(uri)

    async def last_capture_date(self, uri: str) -> str | None:
        """Return the current time if the site has the page. Raises as `captures` does."""
        copy = await self._request(uri)
        if copy is None:
            return None
        copy.body.close()
        return copy.capture.datetime

    def _cache(self, copy: FetchedCapture) -> None:
        before = self._cached.pop(copy.capture.uri, None)
        if before is not None:
            before.body.close()
        self._cached[copy.capture.uri] = copy
        if len(self._cached) > _MAX_CACHED_RESPONSES:
            self._cached.popitem(last=False)[1].body.close()

    async def _request(self, uri: str) -> FetchedCapture | None:
        answer = await self._visit(normalize_input_url(uri))
        seen = {answer.uri}
        # A redirect to another spelling of the URL is the same page.
        while (target := _redirect_target(answer)) and _is_same_resource(target, uri) and target not in seen:
            answer.body.close()
            if len(seen) > _MAX_REDIRECTS:
                raise FailedError(f"more than {_MAX_REDIRECTS} redirects", self._archive.id, "redirects")
            answer = await self._visit(target)
            seen |= {target, answer.uri}
        if 200 <= answer.status < 400:
            return await self._stored_capture(answer)
        answer.body.close()
        if answer.status in _FORBIDDEN:
            raise ExcludedError(f"the live site responds with status {answer.status}", self._archive.id)
        if answer.status >= 500 or answer.status == 429:
            raise FailedError(f"status {answer.status}", self._archive.id, "status")
        return None

    async def _visit(self, url: str) -> FetchResponse:
        try:
            return await self._visitor.fetch(FetchRequest(url, max_bytes=MAX_LIVE_BODY_BYTES))
        except SiteWaitError as error:
            raise NotNowError(str(error), self._archive.id, error.until, error.kind) from error
        except RobotsError as error:
            if error.is_temporary:
                raise FailedError(str(error), self._archive.id, "unreachable") from error
            raise ExcludedError(str(error), self._archive.id) from error
        except SiteError as error:
            raise FailedError(str(error), self._archive.id, error.kind) from error

    async def _stored_capture(self, answer: FetchResponse) -> FetchedCapture:
        mime = (answer.header("content-type") or "").partition(";")[0].strip().lower() or None
        capture = Capture(
            uri=answer.uri,
            key=addresses.key(answer.uri),
            datetime=answer.requested_at,
            status=answer.status,
            mime=mime,
            digest=await asyncio.to_thread(_digest, answer.body),
            length=answer.size,
            redirect=_redirect_target(answer),
            archive=self._archive.id,
            migrated=False,
        )
        return FetchedCapture(capture, answer.headers, answer.body, answer.truncated, answer.uri)


def _redirect_target(answer: FetchResponse) -> str | None:
    location = answer.header("location") if 300 <= answer.status < 400 else None
    if not location:
        return None
    try:
        return urljoin(answer.uri, location.strip())
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
"""Between two requests to one host of the live site, unless the user or robots.txt asks for more."""
_SOURCE_PATHS = "source-paths"  # the fact that says where the sources on this machine are


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
    """Give the clients of archives, by id; the connections to the live site are closed at the end.

    courier: sends the requests to archives; requests to the live site are counted in its `sent`.
    contact: sent to the live site, too; without one the delay is doubled.
    delay: seconds between two requests to one host of the live site.
    """
    async with AsyncExitStack() as stack:
        repositories: dict[str, ArchiveClient] = {}
        for name, archive in archives.items():
            if archive.kind is not ArchiveKind.LIVE:
                repositories[name] = create_client(archive, http_client)
                continue
            visitor = _CountingFetcher((options.url, *options.urls), clock, contact, use_proxies=proxies)
            visitor.count_in(http_client.request_counts, name)
            await stack.enter_async_context(visitor)
            pause = delay if contact else 2 * delay
            polite = PoliteFetcher(visitor, MemoryRobotsStore(), clock, pause, max_wait=MAX_WAIT_SECONDS)
            repositories[name] = LiveSiteClient(polite, archive)
        yield repositories


class _CountingFetcher(Fetcher):
    """Counts its requests, those for robots.txt included."""

    _sent: Counter[tuple[str, RequestKind]]
    _name: str

    def count_in(self, sent: Counter[tuple[str, RequestKind]], name: str) -> None:
        """Count in `sent`, as requests to the source of this id."""
        self._sent, self._name = sent, name

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Return the response. Raises SiteError."""
        self._sent[self._name, RequestKind.REPLAY] += 1
        return await super().fetch(request)


def store_source_paths(state: RecoveryState, archives: Mapping[str, Archive]) -> None:
    """Store where the sources on this machine are, and forget the listings if an id now means another path.

    Otherwise a file of the same name in another folder would count as listed.
    """
    before: dict[str, str] = json.loads(state.fact(_SOURCE_PATHS) or "{}")
    now = {
        name: str(Path(archive.folder).expanduser().resolve())
        for name, archive in archives.items()
        if archive.folder is not None
    }
    if any(before.get(name, path) != path for name, path in now.items()):
        state.listings.clear()
    if before | now != before:
        state.set_fact(_SOURCE_PATHS, json.dumps(before | now, sort_keys=True))
