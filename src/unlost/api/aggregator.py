"""Who has a page, and when: all archives asked at once, for Python programs with and without `async`."""

from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack, ExitStack
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Self

from unlost import home
from unlost.aggregate.wish import CacheControl, RoutingOptions
from unlost.api.choosing import ArchiveSelection, select_archives
from unlost.api.loop_thread import LoopThread
from unlost.api.messages import log_info
from unlost.api.moments import DateLike
from unlost.api.timemap import Memento, TimeMap
from unlost.errors import UsageError
from unlost.service.address import parse_typed_url
from unlost.service.assembly import ServiceOptions, build_service

if TYPE_CHECKING:
    from unlost.aggregate.found import MementoFinder


class AsyncAggregator:
    """Asks all archives at once for the copies of pages. Use it as an async context manager.

    archives: which there are: None for the registry that is shipped, the path of a registry, or archives themselves.
    only: the ids of the only ones to ask, also if they are off.
    maps: files of MementoMaps by the id of the archive: who has nothing by its map is not asked.
    contact: your mail address or page, which archives are told; without one they are asked half as often.
    deadline: seconds that one answer may take; what has not come by then is left out, and said to be.
    broadcast: whether to ask all archives, whatever their maps say.
    top_k: how many to ask at most: those that most likely have the page.

    Answers are kept in memory while the block lasts. Limits of archives are kept together with all other programs of
    this user that use unlost. Raises UsageError, InputError for archives that are not there.

    >>> import asyncio
    >>> from unlost.testing import FakeArchive
    >>> async def main(archive: FakeArchive) -> None:
    ...     async with AsyncAggregator([archive.registry_entry()]) as aggregator:
    ...         timemap = await aggregator.timemap("http://lost.example/")
    ...         print(len(timemap), timemap[0].datetime.year)
    >>> with FakeArchive({"http://lost.example/": [("2014", "old"), ("2016", "new")]}) as archive:
    ...     asyncio.run(main(archive))
    2 2014
    """

    def __init__(
        self,
        archives: ArchiveSelection = None,
        *,
        only: Collection[str] = (),
        maps: Mapping[str, str | PathLike[str]] | None = None,
        contact: str | None = None,
        deadline: float = 10.0,
        broadcast: bool = False,
        top_k: int | None = None,
    ) -> None:
        found = tuple(select_archives(archives, only, maps).values())
        self._routing = RoutingOptions(None, broadcast, top_k)
        self._options = ServiceOptions(
            found, home.state_folder(), home.cache_folder(), log_info, deadline, contact=contact, stays=False
        )
        self._stack = AsyncExitStack()
        self._finder: MementoFinder | None = None

    async def __aenter__(self) -> Self:
        """Read the maps, and be ready to ask."""
        parts = await self._stack.enter_async_context(build_service(self._options))
        self._finder = parts.finder
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        self._finder = None
        await self._stack.__aexit__(kind, error, trace)

    async def timemap(self, url: str, *, fresh: bool = False) -> TimeMap:
        """Return all copies of a page. fresh: whether an answer from before will not do.

        An archive that fails or is late raises nothing: it is among `TimeMap.failures`. Raises UriError for what is no
        address of a page, BusyError if more than a thousand pages are being looked for at once.
        """
        if self._finder is None:
            raise UsageError("an aggregator is asked inside of its `with` block")
        return TimeMap(await self._finder.find(parse_typed_url(url), self._routing, CacheControl(no_cache=fresh)))

    async def closest(self, url: str, when: DateLike | None = None) -> Memento | None:
        """Return the copy of a page that is closest to a moment, without one the last; None if none was found.

        Whether all archives answered is known to `timemap` only: see `TimeMap.failures`. Raises as `timemap` does, and
        DateError.
        """
        return (await self.timemap(url)).closest(when)


class Aggregator:
    """The same for programs without `async`: use it as a context manager, and do not await anything.

    It takes what `AsyncAggregator` takes. It has an event loop of its own, in a thread of its own: it works inside of
    any program, in notebooks too, and several threads may ask it at once.

    >>> from unlost.testing import FakeArchive
    >>> with FakeArchive({"http://lost.example/": [("2014", "old"), ("2016", "new")]}) as archive:
    ...     with Aggregator([archive.registry_entry()]) as aggregator:
    ...         aggregator.closest("lost.example", "2015-11").datetime.year
    2016
    """

    def __init__(
        self,
        archives: ArchiveSelection = None,
        *,
        only: Collection[str] = (),
        maps: Mapping[str, str | PathLike[str]] | None = None,
        contact: str | None = None,
        deadline: float = 10.0,
        broadcast: bool = False,
        top_k: int | None = None,
    ) -> None:
        self._async_aggregator = AsyncAggregator(
            archives, only=only, maps=maps, contact=contact, deadline=deadline, broadcast=broadcast, top_k=top_k
        )
        self._stack = ExitStack()
        self._loop: LoopThread | None = None

    def __enter__(self) -> Self:
        """Read the maps, and be ready to ask."""
        with ExitStack() as stack:
            loop = stack.enter_context(LoopThread("unlost.Aggregator"))
            loop.run(self._async_aggregator.__aenter__())
            stack.callback(lambda: loop.run(self._async_aggregator.__aexit__(None, None, None)))
            self._stack = stack.pop_all()
        self._loop = loop
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections, and end the thread."""
        self._loop = None
        self._stack.__exit__(kind, error, trace)

    def timemap(self, url: str, *, fresh: bool = False) -> TimeMap:
        """Return all copies of a page, as `AsyncAggregator.timemap` does."""
        return self._running.run(self._async_aggregator.timemap(url, fresh=fresh))

    def closest(self, url: str, when: DateLike | None = None) -> Memento | None:
        """Return the copy of a page that is closest to a moment, as `AsyncAggregator.closest` does."""
        return self._running.run(self._async_aggregator.closest(url, when))

    @property
    def _running(self) -> LoopThread:
        if self._loop is None:
            raise UsageError("an aggregator is asked inside of its `with` block")
        return self._loop
