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
from unlost.http.circuit_breaker import BreakerPermit, CircuitBreaker
from unlost.http.models import HttpClient
from unlost.http.policy import FAILURE_OUTCOMES
from unlost.http.pool import ConnectTimeoutError
from unlost.http.rate_limiter import NOT_SENT
from unlost.logs import upstream
from unlost.memento.timemap import Mementos, MementoTuple
from unlost.problems import Problems
from unlost.registry.models import Archive, ArchiveKind

if TYPE_CHECKING:
    from unlost.archives.base import ArchiveClient

MAX_UPSTREAM_BYTES = 1 << 27
"""Memory that the mementos of one archive for one page may take: more than a million mementos. The rest is left out and
reported."""

NO_MEMENTOS = Mementos()
"""An empty list of mementos."""

THREADED_MERGE_MEMENTOS = 20_000
"""Number of mementos from which they are merged in a thread, because sorting would block the event loop."""

TIMER_TOLERANCE = 0.01
"""Seconds that a timer may be early, because event loops have a resolution of milliseconds."""

_BATCH_MEMENTOS = 5_000  # converted at a time
_ROW_BYTES = 40  # of a memento in addition to its URL: the date and the archive's ID
_MAX_MESSAGE_LENGTH = 300  # characters
_ASCII = "".join(map(chr, range(0x21, 0x7F)))

# By the kind of a FailedError; other kinds are `malformed`.
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
_UNREACHABLE_KINDS = ("refused", "dns", "unreachable", "proxy", "tls")  # failures of the host, not of one endpoint


class UpstreamResult(NamedTuple):
    """Result of querying one archive for one page.

    Attributes:
        uri: The page.
        target: The archive, and why it was queried.
        time: When the response or the failure arrived, in seconds since 1970.
        endpoint: What was queried.
        mementos: The mementos listed.
        report: Outcome, counts and message.
        final_outcome: The outcome for the circuit breaker. Where the report says `incomplete`, this is what broke the
            list off; `hit` if the archive itself limits the list.
        known_ends: Whether the first and the last of the mementos are the first and the last that the archive has.
        retry_at: When its rate limit or block admits requests again, in seconds since 1970; None if there is none.
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


NEUTRAL_OUTCOMES = frozenset({"not-now", "limited", "dormant"})
"""The outcomes that count neither as success nor as failure of an archive: no request was sent."""


def record_outcome(
    breaker: CircuitBreaker, permit: BreakerPermit, outcome: str | None, message: str = "", uri: str = ""
) -> None:
    """Record the outcome of a request with the archive's circuit breaker.

    Outcomes that are neither failures nor neutral count as success, including `http-4xx`.

    Args:
        breaker: The circuit breaker.
        permit: The permission returned by `CircuitBreaker.acquire`.
        outcome: As `UpstreamResult.final_outcome`; None for a cancelled request.
        message: The error message of a failure.
        uri: The requested page.
    """
    if outcome is None or outcome in NEUTRAL_OUTCOMES:
        breaker.release(permit)
    elif outcome in FAILURE_OUTCOMES:
        breaker.record_failure(outcome, message, permit=permit, uri=uri)
    else:
        breaker.record_success(permit)


class UpstreamClient:
    """Queries archives through one HTTP client. Archive clients are created on demand and cached.

    The HTTP client should wait for rate limits for less time than the deadlines allow, so that rate-limited archives
    are not reported as slow.
    """

    def __init__(self, client: HttpClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._clients: dict[str, ArchiveClient] = {}

    async def query(self, uri: str, target: RouteTarget, until: float, closest_to: str | None = None) -> UpstreamResult:
        """Query an archive for a page. Failures of the archive are part of the result.

        Mementos received before the deadline or a failure are in the result.

        Args:
            uri: The page.
            target: The archive.
            until: Deadline, in the time of the event loop. The caller enforces it by cancelling the task, which then
                returns what it has received. If cancelled earlier, it raises CancelledError.
            closest_to: As in `RoutingOptions`. A TimeGate gets at most half of the time; if it fails, the TimeMap is
                queried.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        collector = _MementoCollector()
        outcome: ArchiveOutcome
        final_outcome: ArchiveOutcome
        failure: ArchiveOutcome | None = None
        message = ""
        retry_at: float | None = None
        known_ends: tuple[bool, bool] | None = None
        try:
            if closest_to is not None and _uses_timegate(target.archive):
                known_ends = await self._query_timegate(uri, target.archive, closest_to, until, collector)
            if known_ends is None:
                await self._list_mementos(uri, target.archive, collector)
        except (ArchiveError, InputError, OSError, UsageError) as error:
            failure, message = classify_error(error), str(error)[:_MAX_MESSAGE_LENGTH]
            if isinstance(error, NotNowError) and error.reason != "busy":
                retry_at = error.until
        except asyncio.CancelledError as error:
            if loop.time() < until - TIMER_TOLERANCE:
                raise
            _absorb_cancellation()
            failure, message = _deadline_outcome(error, loop.time() - started)
        mementos = await merge_mementos(collector.parts) if collector.parts else NO_MEMENTOS
        count = len(mementos)
        if failure is None and not count and collector.without_url:
            failure = "incomplete"  # it holds the page, but without a usable URL
        if failure is None:
            outcome = final_outcome = "hit" if count else "miss"
        else:
            outcome = "incomplete" if count else failure
            final_outcome = "hit" if failure == "incomplete" else failure
        if collector.without_url or collector.problems.counts:
            message = "; ".join(filter(None, [message, *collector.describe_skipped()]))
        duration_ms = round(1000 * (loop.time() - started), 3)
        report = ArchiveReport(target.archive.id, target.reason, outcome, count, duration_ms, message)
        endpoint = endpoint_of(target.archive) if known_ends is None else "timegate"
        ends = known_ends or (True, True)
        return UpstreamResult(uri, target, self._clock.now(), endpoint, mementos, report, final_outcome, ends, retry_at)

    async def _query_timegate(
        self, uri: str, archive: Archive, closest_to: str, until: float, collector: "_MementoCollector"
    ) -> tuple[bool, bool] | None:
        """Collect the mementos that a TimeGate names.

        Returns:
            Whether the first and the last memento are among them; None if the TimeGate failed.
        """
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(now + (until - now) / 2):
                selection = await timemap.query_timegate(
                    archive, self._client, uri, None if closest_to == LAST_MEMENTO else closest_to
                )
        except TimeoutError:
            return None
        except FailedError as error:
            if error.kind in _UNREACHABLE_KINDS and url_host(archive.timegate or "") == url_host(archive.timemap or ""):
                raise  # the TimeMap on the same host is unreachable, too
            return None
        if selection is None:
            # A 404 is believed: querying the TimeMap, too, would double the requests for pages that no archive holds.
            return True, True
        collector.add(selection.mementos, selection.mementos.memory_size)
        return selection.knows_first, selection.knows_last

    async def _list_mementos(self, uri: str, archive: Archive, collector: "_MementoCollector") -> None:
        """Collect all mementos that an archive lists for a page."""
        # The TimeMaps of archive.today are protected by captchas, which its own client handles.
        if archive.timemap is not None and archive.kind is not ArchiveKind.ARCHIVE_TODAY:
            async for page in TimeMapClient(archive, self._client, collector.problems).pages(uri):
                collector.add(page, page.memory_size)
                collector.check_size(archive)
            return
        client = self._clients.get(archive.id)
        if client is None:
            client = self._clients[archive.id] = create_client(archive, self._client)
        captures = cast(
            "AsyncGenerator[Capture, None]", client.captures(uri)
        )  # all clients implement it as a generator
        await _collect_captures(archive, captures, collector)


def _deadline_outcome(error: asyncio.CancelledError, seconds: float) -> tuple[ArchiveOutcome, str]:
    """Return the outcome and the message of a request cancelled at the deadline."""
    if NOT_SENT in error.args:
        return "not-now", f"no request was sent within {seconds:.3g} s: earlier ones are not answered"
    return "timeout", f"not answered within {seconds:.3g} s"


def _uses_timegate(archive: Archive) -> bool:
    """Return whether the TimeGate of an archive is queried; that of archive.today is protected by captchas."""
    return (
        archive.timegate is not None and archive.timemap is not None and archive.kind is not ArchiveKind.ARCHIVE_TODAY
    )


def endpoint_of(archive: Archive) -> upstream.UpstreamEndpoint:
    """Return which endpoint of an archive is queried; every kind of listing counts as a TimeMap."""
    return "timegate" if archive.timemap is None and archive.cdx is None and archive.timegate else "timemap"


def classify_error(error: Exception) -> ArchiveOutcome:  # noqa: PLR0911  one for each outcome
    """Return the outcome for an exception of an archive client.

    >>> classify_error(FailedError("status 500", "a", "status"))
    'http-5xx'
    >>> classify_error(ExcludedError("it does not show it", "a"))
    'excluded'
    """
    match error:
        case NotNowError() | UnsupportedError() | UsageError():
            return "not-now"  # no request was sent
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
            return "not-now"  # the rate limit state cannot be read or written, so no request was sent


def _status_outcome(message: str) -> upstream.UpstreamOutcome:
    match = re.search(r"status (\d)\d\d", message)
    # Without a number: a missing page of a TimeMap, 404.
    return cast("upstream.UpstreamOutcome", f"http-{match[1]}xx") if match and match[1] in "45" else "http-4xx"


class _MementoCollector:
    """Collects what an archive lists.

    Attributes:
        parts: The mementos.
        without_url: Number of captures without a URL.
        problems: Parts of a TimeMap that could not be parsed.
    """

    __slots__ = ("_bytes", "parts", "problems", "without_url")

    def __init__(self) -> None:
        self.parts: list[Mementos] = []
        self.without_url = 0
        self.problems = Problems()
        self._bytes = 0

    def add(self, part: Mementos, size: int) -> None:
        """Add mementos. `size` is the total length of their URLs."""
        self.parts.append(part)
        self._bytes += size + _ROW_BYTES * len(part)

    def describe_skipped(self) -> Iterator[str]:
        """Yield descriptions of what was left out."""
        if self.without_url:
            yield f"{self.without_url} copies without an address were left out"
        if self.problems.total:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self.problems.counts.items())
            yield f"{self.problems.total} parts of its list could not be read ({kinds})"

    def check_size(self, archive: Archive) -> None:
        """Raise ListCutError if the size limit is exceeded."""
        if self._bytes > MAX_UPSTREAM_BYTES:
            raise ListCutError(f"more than {MAX_UPSTREAM_BYTES >> 20} MB of copies: the rest was left out", archive.id)


async def merge_mementos(parts: list[Mementos]) -> Mementos:
    """Merge lists of mementos; long ones in a thread."""
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        return parts[0] if parts else NO_MEMENTOS
    if sum(map(len, parts)) < THREADED_MERGE_MEMENTOS:
        return Mementos.merge(parts)
    return await asyncio.to_thread(Mementos.merge, parts)


async def _collect_captures(
    archive: Archive, captures: AsyncGenerator[Capture, None], collector: _MementoCollector
) -> None:
    """Collect captures, including those received before an error or a cancellation."""
    rows: list[MementoTuple] = []
    size = 0
    try:
        async for capture in captures:
            url = capture_url(archive, capture)
            if url is None:
                collector.without_url += 1
                continue
            rows.append(MementoTuple(capture.datetime, archive.id, url))
            size += len(url)
            if len(rows) >= _BATCH_MEMENTOS:
                batch, batch_size, rows, size = rows, size, [], 0
                collector.add(Mementos(batch), batch_size)
            collector.check_size(archive)
    except BaseException:
        # An unclosed generator would hold its connection until garbage collection.
        await captures.aclose()
        raise
    finally:
        if rows:
            collector.add(Mementos(rows), size)


def _absorb_cancellation() -> None:
    """Undo the cancellation of the current task, since the caller awaits its partial result."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def capture_url(archive: Archive, capture: Capture) -> str | None:
    r"""Return the URL of a capture, or that of its record in a WARC file; None if it has neither.

    The URL is made printable ASCII without spaces, because it is written into headers and lines.

    >>> from unlost.registry.models import ArchiveKind
    >>> crawl = Archive("c", "C", ArchiveKind.COMMON_CRAWL, replay="https://data.example/{filename}")
    >>> capture_url(crawl, Capture("http://a/", "a)/", "20140210000001", filename="x.warc.gz", offset=7, length=3))
    'https://data.example/x.warc.gz#7-9'
    >>> capture_url(crawl, Capture("http://a/", "a)/", "20140210000001", urim="http://b/\r\nX: é"))
    'http://b/%0D%0AX:%20%C3%A9'
    """
    url = capture.urim
    if url is None:
        if capture.filename is None:
            return None
        template = archive.replay if archive.replay and "{filename}" in archive.replay else "file:{filename}"
        url = template.replace("{filename}", quote(capture.filename, errors="surrogateescape"))
        if capture.offset is not None:
            url += f"#{capture.offset}" + (f"-{capture.offset + capture.length - 1}" if capture.length else "")
    if url.isascii() and url.isprintable() and " " not in url:
        return url
    return quote(url.encode("utf-8", "surrogatepass"), safe=_ASCII)
