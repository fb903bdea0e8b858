"""Opens the sources of a recovery: archives, files on this machine, and the live site."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from unlost.archives.archive import Archive, Kind, Work
from unlost.archives.asking.courier import Courier
from unlost.archives.opening import open_repository
from unlost.archives.repository import Repository
from unlost.clock import Clock
from unlost.crawl.polite import PoliteVisitor
from unlost.crawl.robots import MemoryRobots
from unlost.crawl.visitor import Answer, Request, Visitor
from unlost.recover.live_site import PATIENCE_SECONDS, LiveSite
from unlost.recover.plan import Plan
from unlost.recover.state.state import State

DELAY_SECONDS = 1.0
"""Between two requests to one host of the live site, unless the user or robots.txt asks for more."""

_PATHS = "source-paths"  # the fact that says where the sources on this machine are


@asynccontextmanager
async def open_repositories(
    archives: Mapping[str, Archive],
    courier: Courier,
    plan: Plan,
    clock: Clock,
    *,
    contact: str | None = None,
    delay: float = DELAY_SECONDS,
    proxies: bool = False,
) -> AsyncIterator[dict[str, Repository]]:
    """Give the clients of archives, by id; the connections to the live site are closed at the end.

    courier: sends the requests to archives; requests to the live site are counted in its `sent`.
    contact: sent to the live site, too; without one the delay is doubled.
    delay: seconds between two requests to one host of the live site.
    """
    async with AsyncExitStack() as stack:
        repositories: dict[str, Repository] = {}
        for name, archive in archives.items():
            if archive.kind is not Kind.LIVE:
                repositories[name] = open_repository(archive, courier)
                continue
            visitor = _CountingVisitor((plan.url, *plan.urls), clock, contact, proxies=proxies)
            visitor.count_in(courier.sent, name)
            await stack.enter_async_context(visitor)
            pause = delay if contact else 2 * delay
            polite = PoliteVisitor(visitor, MemoryRobots(), clock, pause, patience=PATIENCE_SECONDS)
            repositories[name] = LiveSite(polite, archive)
        yield repositories


class _CountingVisitor(Visitor):
    """Counts its requests, those for robots.txt included."""

    _sent: Counter[tuple[str, Work]]
    _name: str

    def count_in(self, sent: Counter[tuple[str, Work]], name: str) -> None:
        """Count in `sent`, as requests to the source of this id."""
        self._sent, self._name = sent, name

    async def visit(self, request: Request) -> Answer:
        """Return the response. Raises SiteError."""
        self._sent[self._name, Work.REPLAY] += 1
        return await super().visit(request)


def note_paths(state: State, archives: Mapping[str, Archive]) -> None:
    """Store where the sources on this machine are, and forget the listings if an id now means another path.

    Otherwise a file of the same name in another folder would count as listed.
    """
    before: dict[str, str] = json.loads(state.fact(_PATHS) or "{}")
    now = {
        name: str(Path(archive.folder).expanduser().resolve())
        for name, archive in archives.items()
        if archive.folder is not None
    }
    if any(before.get(name, path) != path for name, path in now.items()):
        state.listings.forget()
    if before | now != before:
        state.keep_fact(_PATHS, json.dumps(before | now, sort_keys=True))
