"""TimeMaps of pages from all archives, for synchronous and asynchronous Python programs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, overload

from unlost import dates, paths
from unlost.aggregate.factory import AggregatorConfig, build_aggregator
from unlost.aggregate.models import AggregateResult, CacheControl, RoutingOptions
from unlost.aggregate.request import parse_typed_url
from unlost.aggregate.serializers import serialize_timemap
from unlost.aggregate.urls import ServiceUrls
from unlost.api.arguments import ArchiveSelection, DateLike, log_info, parse_date, select_archives
from unlost.api.loop_thread import LoopThread
from unlost.errors import UsageError
from unlost.memento import timemap

if TYPE_CHECKING:
    from unlost.aggregate.models import MementoFinder


_DEFAULT_BASE_URL = "http://localhost:1208"  # the default of `unlost serve`


class Memento(NamedTuple):
    """A memento of a page.

    Attributes:
        datetime: When it was captured, in UTC.
        archive: ID of the archive.
        uri: Its URL in the archive (URI-M).
    """

    datetime: datetime
    archive: str
    uri: str


class TimeMap(Sequence[Memento]):
    """The mementos of one page from all archives, ordered by date. It is a sequence of `Memento`.

    Attributes:
        uri: The original URL (URI-R).
        failures: Error messages of archives that failed, by ID. They may hold mementos that are not included.
        asked: IDs of the archives that were selected for the look-up.
        passed_over: IDs of the archives that were not selected, because they are known to hold nothing.
    """

    def __init__(self, result: AggregateResult) -> None:
        self._result = result
        self.uri = result.uri
        self.failures: Mapping[str, str] = {each.archive: each.message or each.outcome for each in result.failures}
        self.asked = tuple(each.archive for each in result.reports)
        self.passed_over = result.passed_over

    def __repr__(self) -> str:
        """Return the page and the number of mementos."""
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<TimeMap of {self.uri}: {len(self)} copies{failed}>"

    def __len__(self) -> int:
        """Return the number of mementos."""
        return len(self._result.mementos)

    @overload
    def __getitem__(self, index: int) -> Memento: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Memento]: ...
    def __getitem__(self, index: int | slice) -> Memento | Sequence[Memento]:
        """Return a memento, or a list of mementos for a slice."""
        if isinstance(index, slice):
            return [_to_memento(each) for each in self._result.mementos[index]]
        return _to_memento(self._result.mementos[index])

    def __iter__(self) -> Iterator[Memento]:
        """Yield all mementos."""
        return map(_to_memento, self._result.mementos)

    @property
    def is_whole(self) -> bool:
        """Whether every archive responded completely."""
        return not self.failures

    def closest(self, when: DateLike | None = None) -> Memento | None:
        """Return the memento closest to a date, by default the last one; None if there is none.

        A memento dated in the future is returned only for a date in the future, or if there is no other.

        Raises:
            DateError: The date is invalid.
        """
        index = self._result.closest_index(None if when is None else dates.pad(parse_date(when)))
        return None if index is None else self[index]

    def rendered(self, form: Literal["link", "json", "cdxj", "text"] = "link", base: str = _DEFAULT_BASE_URL) -> bytes:
        """Return the TimeMap as a document. The links in it begin with `base`, the URL of an aggregator."""
        return serialize_timemap(self._result, ServiceUrls(base), form)


def _to_memento(memento: timemap.MementoTuple) -> Memento:
    return Memento(dates.to_datetime(memento.datetime), memento.archive, memento.uri)


class AsyncAggregator:
    """Queries all archives at once for mementos of pages. Use it as an async context manager.

    Results are cached in memory while the context is open. Rate limits of archives are shared with all processes of the
    user that use unlost.

    Args:
        archives: None for the built-in registry, the path of a registry file, or archives.
        only: IDs of the archives to use, including disabled ones; empty for all enabled archives.
        maps: MementoMap files by archive ID. An archive that holds nothing according to its map is not queried.
        contact: Your email address or web page, sent to archives. Without one, request rates are halved.
        deadline: Maximum seconds for a result. Archives that have not answered by then are reported as failures.
        broadcast: Whether to query all archives regardless of their maps.
        top_k: Maximum number of archives to query, those most likely to hold the page first; None for no limit.

    Raises:
        UsageError: An ID is unknown, or no archive is left.
        InputError: The registry cannot be read.

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
        selected = tuple(select_archives(archives, only, maps).values())
        self._routing = RoutingOptions(None, broadcast, top_k)
        self._config = AggregatorConfig(
            selected,
            paths.state_folder(),
            paths.cache_folder(),
            log_info,
            deadline,
            contact=contact,
            is_long_running=False,
            exploration_share=0.0,  # what is learned is not stored
        )
        self._stack = AsyncExitStack()
        self._finder: MementoFinder | None = None

    async def __aenter__(self) -> Self:
        """Read the maps and open the aggregator."""
        components = await self._stack.enter_async_context(build_aggregator(self._config))
        self._finder = components.aggregator
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        self._finder = None
        await self._stack.__aexit__(kind, error, trace)

    async def timemap(self, url: str, *, fresh: bool = False) -> TimeMap:
        """Return all mementos of a page.

        An archive that fails or is late is reported in `TimeMap.failures` and raises no error.

        Args:
            url: The original URL.
            fresh: Whether to bypass the cache.

        Raises:
            UriError: The URL is invalid.
            BusyError: More than a thousand pages are being queried at once.
        """
        if self._finder is None:
            raise UsageError("an aggregator is asked inside of its `with` block")
        return TimeMap(await self._finder.find(parse_typed_url(url), self._routing, CacheControl(no_cache=fresh)))

    async def closest(self, url: str, when: DateLike | None = None) -> Memento | None:
        """Return the memento of a page that is closest to a date, by default the last one; None if none was found.

        Only `timemap` shows whether all archives answered, in `TimeMap.failures`.

        Raises:
            UriError, BusyError: As `timemap`.
            DateError: The date is invalid.
        """
        return (await self.timemap(url)).closest(when)


class Aggregator:
    """The synchronous form of `AsyncAggregator`, with the same arguments. Use it as a context manager.

    It runs an event loop in its own thread, so it works in any program, including notebooks, and several threads may
    use it concurrently.

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
        """Read the maps and open the aggregator."""
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
        """Close all connections and stop the thread."""
        self._loop = None
        self._stack.__exit__(kind, error, trace)

    def timemap(self, url: str, *, fresh: bool = False) -> TimeMap:
        """Return all mementos of a page, as `AsyncAggregator.timemap`."""
        return self._running.run(self._async_aggregator.timemap(url, fresh=fresh))

    def closest(self, url: str, when: DateLike | None = None) -> Memento | None:
        """Return the memento of a page that is closest to a date, as `AsyncAggregator.closest`."""
        return self._running.run(self._async_aggregator.closest(url, when))

    @property
    def _running(self) -> LoopThread:
        if self._loop is None:
            raise UsageError("an aggregator is asked inside of its `with` block")
        return self._loop
