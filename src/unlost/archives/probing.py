"""Whether archives answer: each is asked for one page, all at once, and what came of it is told beside the others."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from unlost.archives.archive import Archive, RequestKind
from unlost.archives.asking.question import HttpClient, HttpRequest, HttpResponse
from unlost.archives.clients.statuses import has_content
from unlost.archives.discovery import MapDiscovery, MapLink, discover_maps
from unlost.archives.opening import create_client
from unlost.archives.spelling import normalize_input_url
from unlost.clock import Clock
from unlost.errors import ArchiveError, ExcludedError, FailedError, InputError, NotNowError
from unlost.formats import linkformat
from unlost.formats.problems import Problems

_MAX_TIMEMAP_BYTES = 1 << 24  # bytes of a list that is worth its way for a test: a hundred thousand copies
_MAX_COUNTED = 10_000  # that are counted where there is no TimeMap: enough to see that there is something


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What came of asking one archive.

    outcome: one word: `answered`; `excluded` if it does not show the page, which is an answer, too; else a kind of
        `unlost.archives.failures.KINDS`, or the reason why it was not asked (of `NotNowError`).
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
    timemap = linkformat.read_timemap(reply.body.read(), problems)
    if not timemap.mementos and problems.total:
        problem = next(iter(problems.first.values()))
        raise FailedError(f"expected a TimeMap: {problem.message}", archive.id, "malformed")
    dates = [memento.datetime for memento in timemap.mementos]
    own = timemap.self_link.uri if timemap.self_link else None
    more = any(link.uri != own and link.type in (None, linkformat.MEDIA_TYPE) for link in timemap.timemaps)
    return _ListedCaptures(len(dates), more, min(dates, default=None), max(dates, default=None), reply)


async def _count_captures(archive: Archive, client: HttpClient, uri: str) -> _ListedCaptures:
    dates = []
    captures = create_client(archive, client).captures(uri)
    async for capture in captures:
        dates.append(capture.datetime)
        if len(dates) == _MAX_COUNTED:
            return _ListedCaptures(len(dates), True, min(dates), max(dates))
    return _ListedCaptures(len(dates), False, min(dates, default=None), max(dates, default=None))
