"""Opens the sources of a recovery: archives, files on this machine, and the live site."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from unlost.archives.archive import Archive, ArchiveKind, RequestKind
from unlost.archives.asking.courier import ArchiveHttpClient
from unlost.archives.opening import create_client
from unlost.archives.repository import ArchiveClient
from unlost.clock import Clock
from unlost.crawl.polite import PoliteFetcher
from unlost.crawl.robots import MemoryRobotsStore
from unlost.crawl.visitor import FetchResponse, FetchRequest, Fetcher
from unlost.recover.live_site import MAX_WAIT_SECONDS, LiveSiteClient
from unlost.recover.plan import RecoverOptions
from unlost.recover.state.state import RecoveryState

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
