"""TimeMaps of pages from all archives, for Python programs with and without `async`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, overload

from unlost import dates, paths
from unlost.aggregate.models import AggregateResult, CacheControl, RoutingOptions
from unlost.aggregate.request import parse_typed_url
from unlost.aggregate.serializers import serialize_timemap
from unlost.aggregate.urls import ServiceUrls
from unlost.api.arguments import ArchiveSelection, DateLike, log_info, parse_date, select_archives
from unlost.api.loop_thread import LoopThread
from unlost.errors import UsageError
from unlost.memento import timemap
from unlost.web.factory import ServiceOptions, build_service

if TYPE_CHECKING:
    from unlost.aggregate.models import MementoFinder


_DEFAULT_BASE_URL = "http://localhost:1208"  # where `unlost serve` is by default


class Memento(NamedTuple):
    """One copy of a page. datetime: of its capture, in UTC. archive: who has it. uri: its address there (URI-M)."""

    datetime: datetime
    archive: str
    uri: str


class TimeMap(Sequence[Memento]):
    """The copies of one page, by date, from all archives that were asked: a sequence.

    uri: the page (URI-R).
    failures: the archives that did not say all that they have, and what was wrong: there may be more copies.
    asked: the ids of all archives that were to be asked. passed_over: of those that were not, since they are known to
        have nothing.
    """

    def __init__(self, found: AggregateResult) -> None:
        self._result = found
        self.uri = found.uri
        self.failures: Mapping[str, str] = {each.archive: each.message or each.outcome for each in found.failures}
        self.asked = tuple(each.archive for each in found.reports)
        self.passed_over = found.passed_over

    def __repr__(self) -> str:
        """Return the page and how many copies there are."""
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<TimeMap of {self.uri}: {len(self)} copies{failed}>"

    def __len__(self) -> int:
        """Return how many copies there are."""
        return len(self._result.mementos)

    @overload
    def __getitem__(self, place: int) -> Memento: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Memento]: ...
    def __getitem__(self, place: int | slice) -> Memento | Sequence[Memento]:
        """Return a copy, or some."""
        if isinstance(place, slice):
            return [_memento(each) for each in self._result.mementos[place]]
        return _memento(self._result.mementos[place])

    def __iter__(self) -> Iterator[Memento]:
        """Yield all copies."""
        return map(_memento, self._result.mementos)

    @property
    def is_whole(self) -> bool:
        """Whether every archive said all that it has to say."""
        return not self.failures

    def closest(self, when: DateLike | None = None) -> Memento | None:
        """Return the copy that is closest to a moment, without one the last; None if there are no copies.

        A copy dated in the future is returned only for a moment in the future, or if there are no others.
        Raises DateError.
        """
        place = self._result.closest_index(None if when is None else dates.pad(parse_date(when)))
        return None if place is None else self[place]

    def rendered(self, form: Literal["link", "json", "cdxj", "text"] = "link", base: str = _DEFAULT_BASE_URL) -> bytes:
        """Return it as others read it. base: the address of the aggregator that it says it is from."""
        return serialize_timemap(self._result, ServiceUrls(base), form)


def _memento(copy: timemap.MementoTuple) -> Memento:
    return Memento(dates.to_datetime(copy.datetime), copy.archive, copy.uri)


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
            found, paths.state_folder(), paths.cache_folder(), log_info, deadline, contact=contact, stays=False
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
