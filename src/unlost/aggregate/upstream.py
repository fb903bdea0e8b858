"""Queries one archive for all mementos of a page, within a deadline, and classifies the outcome."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import quote

from unlost.aggregate.models import LAST_MEMENTO, ArchiveOutcome, ArchiveReport
from unlost.aggregate.router import RouteTarget
from unlost.archives import timemap
from unlost.archives.factory import create_client
from unlost.archives.memento_urls import url_host
from unlost.archives.timemap import TimeMapClient
from unlost.capture import Capture
from unlost.clock import Clock
from unlost.errors import (
    ArchiveError,
    ExcludedError,
    FailedError,
    InputError,
    ListCutError,
    NotNowError,
    UnsupportedError,
    UsageError,
)
from unlost.http.models import HttpClient
from unlost.http.pool import ConnectTimeoutError
from unlost.http.rate_limiter import NOT_SENT
from unlost.logs import upstream
from unlost.memento.timemap import Mementos, MementoTuple
from unlost.problems import Problems
from unlost.registry.models import Archive, ArchiveKind

if TYPE_CHECKING:
    from unlost.archives.base import ArchiveClient

MAX_UPSTREAM_BYTES = 1 << 27
"""How much one archive may list of one page, by the memory that it takes: more than a million mementos. The rest
is left out and reported."""

NO_MEMENTOS = Mementos()
"""No copies."""

THREADED_MERGE_MEMENTOS = 20_000
"""Copies that take so long to be sorted that others get their turn meanwhile."""

TIMER_TOLERANCE = 0.01
"""Seconds that a timer may be early: event loops count in milliseconds."""

_BATCH_MEMENTOS = 5_000  # copies that are put together at a time
_ROW_BYTES = 40  # what a copy takes besides its address: a date, the id of the archive
_MAX_MESSAGE_LENGTH = 300  # characters
_ASCII = "".join(map(chr, range(0x21, 0x7F)))

_OUTCOMES: dict[str, upstream.UpstreamOutcome] = {
    "refused": "refused",
    "dns": "dns",
    "unreachable": "refused",
    "proxy": "refused",
    "tls": "tls",
    "timeout": "timeout",
    "reset": "reset",
    "too-large": "too-large",
    "malformed": "malformed",
    "redirects": "redirect",
    "foreign": "malformed",
}


_UNREACHABLE_KINDS = ("refused", "dns", "unreachable", "proxy", "tls")


class UpstreamResult(NamedTuple):
    """What came of asking one archive for one page.

    choice: why it was asked. time: when the answer, or the failure, was there, in seconds since 1970.
    endpoint: what was asked. mementos: the copies that it listed. report: the same in numbers and words.
    known_ends: whether the first and the last of the mementos are the first and the last that it has.
    ended: the outcome, but where a list broke off (`incomplete`) what broke it off; `hit` for a list that the archive
        itself cuts, or of which it has no more to tell.
    retry_at: when its rate limit or block admits requests again, in seconds since 1970; None if none holds them back.
    """

    uri: str
    target: RouteTarget
    time: float
    endpoint: upstream.UpstreamEndpoint
    mementos: Mementos
    report: ArchiveReport
    final_outcome: ArchiveOutcome
    known_ends: tuple[bool, bool] = (True, True)
    retry_at: float | None = None


class UpstreamClient:
    """Asks archives, through one courier; the clients of those that need one are kept.

    courier: should have less patience than the deadlines have seconds: then limits are never taken for slowness.
    """

    def __init__(self, client: HttpClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._clients: dict[str, ArchiveClient] = {}

    async def query(self, uri: str, target: RouteTarget, until: float, closest_to: str | None = None) -> UpstreamResult:
        """Return what an archive lists of a page, and what came of it. Raises nothing of what an archive can do.

        until: the deadline, by the time of the event loop. Whoever waits ends it then by cancelling its task, which is
            answered: one timer does for all archives. Cancelled earlier, it is cancelled.
        selects: as in `Wish`. A TimeGate is queried for half of the time at most; if it fails, so is the TimeMap.
        What was listed before the deadline, or before a failure, is kept.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        heap = _MementoCollector()
        outcome: ArchiveOutcome
        ended: ArchiveOutcome
        word: ArchiveOutcome | None = None
        message = ""
        retry_at: float | None = None
        known_ends: tuple[bool, bool] | None = None
        try:
            if closest_to is not None and _uses_timegate(target.archive):
                known_ends = await self._query_timegate(uri, target.archive, closest_to, until, heap)
            if known_ends is None:
                await self._list_mementos(uri, target.archive, heap)
        except (ArchiveError, InputError, OSError, UsageError) as error:
            word, message = classify_error(error), str(error)[:_MAX_MESSAGE_LENGTH]
            if isinstance(error, NotNowError) and error.reason != "busy":
                retry_at = error.until
        except asyncio.CancelledError as error:
            if loop.time() < until - TIMER_TOLERANCE:
                raise
            _absorb_cancellation()
            word, message = _deadline_outcome(error, loop.time() - begun)
        mementos = await merge_mementos(heap.parts) if heap.parts else NO_MEMENTOS
        count = len(mementos)
        if word is None and not count and heap.without_url:
            word = "incomplete"  # it has the page
        if word is None:
            outcome = ended = "hit" if count else "miss"
        else:
            outcome = "incomplete" if count else word
            ended = "hit" if word == "incomplete" else word
        if heap.without_url or heap.problems.counts:
            message = "; ".join(filter(None, [message, *heap.describe_skipped()]))
        took = round(1000 * (loop.time() - begun), 3)
        report = ArchiveReport(target.archive.id, target.reason, outcome, count, took, message)
        endpoint = endpoint_of(target.archive) if known_ends is None else "timegate"
        ends = known_ends or (True, True)
        return UpstreamResult(uri, target, self._clock.now(), endpoint, mementos, report, ended, ends, retry_at)

    async def _query_timegate(
        self, uri: str, archive: Archive, closest_to: str, until: float, heap: "_MementoCollector"
    ) -> tuple[bool, bool] | None:
        """Put what a TimeGate names on a heap; return which ends are among it. None if the TimeGate failed."""
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(now + (until - now) / 2):
                found = await timemap.query_timegate(
                    archive, self._client, uri, None if closest_to == LAST_MEMENTO else closest_to
                )
        except TimeoutError:
            return None
        except FailedError as error:
            if error.kind in _UNREACHABLE_KINDS and url_host(archive.timegate or "") == url_host(archive.timemap or ""):
                raise  # nor would its TimeMap be
            return None
        if found is None:
            return True, True
        heap.add(found.mementos, found.mementos.size)
        return found.knows_first, found.knows_last

    async def _list_mementos(self, uri: str, archive: Archive, heap: "_MementoCollector") -> None:
        """Put everything that an archive lists of a page on a heap. Raises whatever keeps it from listing more."""
        # The TimeMaps of archive.today are behind captchas, which its own client knows.
        if archive.timemap is not None and archive.kind is not ArchiveKind.ARCHIVE_TODAY:
            async for page in TimeMapClient(archive, self._client, heap.problems).pages(uri):
                heap.add(page, page.size)
                heap.check_size(archive)
            return
        repository = self._clients.get(archive.id)
        if repository is None:
            repository = self._clients[archive.id] = create_client(archive, self._client)
        captures = repository.captures(uri)
        await _collect_captures(archive, cast("AsyncGenerator[Capture, None]", captures), heap)  # as all clients are


def _deadline_outcome(error: asyncio.CancelledError, seconds: float) -> tuple[ArchiveOutcome, str]:
    """Return the outcome of a request that was cancelled at the deadline, and a message."""
    if NOT_SENT in error.args:
        return "not-now", f"no request was sent within {seconds:.3g} s: earlier ones are not answered"
    return "timeout", f"not answered within {seconds:.3g} s"


def _uses_timegate(archive: Archive) -> bool:
    """Return whether the TimeGate of an archive is queried; that of archive.today is behind captchas."""
    return (
        archive.timegate is not None and archive.timemap is not None and archive.kind is not ArchiveKind.ARCHIVE_TODAY
    )


def endpoint_of(archive: Archive) -> upstream.UpstreamEndpoint:
    """Return what is asked of an archive: lists of any kind are called TimeMaps."""
    return "timegate" if archive.timemap is None and archive.cdx is None and archive.timegate else "timemap"


def classify_error(error: Exception) -> ArchiveOutcome:  # noqa: PLR0911  one for each word
    """Return the word for what an archive raised.

    >>> classify_error(FailedError("status 500", "a", "status")), classify_error(ExcludedError("it does not show it", "a"))
    ('http-5xx', 'excluded')
    """
    match error:
        case NotNowError() | UnsupportedError() | UsageError():
            return "not-now"  # it was not asked
        case ExcludedError():
            return "excluded"
        case ListCutError():
            return "incomplete"
        case FailedError(kind="status"):
            return _status_outcome(str(error))
        case FailedError(kind="unreachable"):
            return "timeout" if isinstance(error.__cause__, ConnectTimeoutError) else "refused"
        case FailedError():
            return _OUTCOMES.get(error.kind, "malformed")
        case _:
            return "not-now"  # the account of its limits cannot be read or written: then nothing is sent


def _status_outcome(message: str) -> upstream.UpstreamOutcome:
    found = re.search(r"status (\d)\d\d", message)
    # Without a number: a page of a list that is not there, 404.
    return cast("upstream.UpstreamOutcome", f"http-{found[1]}xx") if found and found[1] in "45" else "http-4xx"


class _MementoCollector:
    """What an archive has listed so far.

    parts: the copies. nameless: how many others had no address. problems: what of a TimeMap could not be read.
    """

    __slots__ = ("_bytes", "parts", "problems", "without_url")

    def __init__(self) -> None:
        self.parts: list[Mementos] = []
        self.without_url = 0
        self.problems = Problems()
        self._bytes = 0

    def add(self, part: Mementos, size: int) -> None:
        """Take some. size: characters of their addresses."""
        self.parts.append(part)
        self._bytes += size + _ROW_BYTES * len(part)

    def describe_skipped(self) -> Iterator[str]:
        """Yield sentences on what was left out."""
        if self.without_url:
            yield f"{self.without_url} copies without an address were left out"
        if self.problems.total:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self.problems.counts.items())
            yield f"{self.problems.total} parts of its list could not be read ({kinds})"

    def check_size(self, archive: Archive) -> None:
        """Raise ListCutError if it is as much as is taken."""
        if self._bytes > MAX_UPSTREAM_BYTES:
            raise ListCutError(f"more than {MAX_UPSTREAM_BYTES >> 20} MB of copies: the rest was left out", archive.id)


async def merge_mementos(parts: list[Mementos]) -> Mementos:
    """Return all copies of several lists; many of them are put together beside the event loop."""
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return parts[0] if parts else NO_MEMENTOS
    if sum(map(len, parts)) < THREADED_MERGE_MEMENTOS:
        return Mementos.merged(parts)
    return await asyncio.to_thread(Mementos.merged, parts)


async def _collect_captures(archive: Archive, captures: AsyncGenerator[Capture, None], heap: _MementoCollector) -> None:
    """Put captures on a heap, also those that came before an error or the end of the time."""
    rows: list[MementoTuple] = []
    size = 0
    try:
        async for capture in captures:
            address = capture_url(archive, capture)
            if address is None:
                heap.without_url += 1
                continue
            rows.append(MementoTuple(capture.datetime, archive.id, address))
            size += len(address)
            if len(rows) >= _BATCH_MEMENTOS:
                taken, taken_size, rows, size = rows, size, [], 0
                heap.add(Mementos(taken), taken_size)
            heap.check_size(archive)
    except BaseException:
        # A generator that is not closed would hold its connection until it is collected.
        await captures.aclose()
        raise
    finally:
        if rows:
            heap.add(Mementos(rows), size)


def _absorb_cancellation() -> None:
    """Go on though cancelled: the one who cancelled waits for an answer."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def capture_url(archive: Archive, capture: Capture) -> str | None:
    r"""Return the address of a copy; where it has none of its own, of the record in its file; None if nobody knows.

    Whatever an archive says, it is printable ASCII without spaces: it goes into headers and lines.

    >>> from unlost.registry.models import ArchiveKind
    >>> crawl = Archive("c", "C", ArchiveKind.COMMON_CRAWL, replay="https://data.example/{filename}")
    >>> capture_url(crawl, Capture("http://a/", "a)/", "20140210000001", filename="x.warc.gz", offset=7, length=3))
    'https://data.example/x.warc.gz#7-9'
    >>> capture_url(crawl, Capture("http://a/", "a)/", "20140210000001", urim="http://b/\r\nX: é"))
    'http://b/%0D%0AX:%20%C3%A9'
    """
    address = capture.urim
    if address is None:
        if capture.filename is None:
            return None
        template = archive.replay if archive.replay and "{filename}" in archive.replay else "file:{filename}"
        address = template.replace("{filename}", quote(capture.filename, errors="surrogateescape"))
        if capture.offset is not None:
            address += f"#{capture.offset}" + (f"-{capture.offset + capture.length - 1}" if capture.length else "")
    if address.isascii() and address.isprintable() and " " not in address:
        return address
    return quote(address.encode("utf-8", "surrogatepass"), safe=_ASCII)
