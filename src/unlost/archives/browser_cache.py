"""Responses stored by a browser, in its cache or in a HAR file, and an archive client for them.

Readers of one format (chromium_cache, firefox_cache, har) yield `CachedResponse` objects; `CachedResponseClient`
serves the latest response of each URL as an archive client. Nothing is sent over the network.
"""

import asyncio
import errno
import os
import re
import stat
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import BinaryIO, ParamSpec, TypeVar

from unlost.archives import datetime_negotiation
from unlost.archives.base import FetchedCapture
from unlost.archives.cdx import PrefixQuery
from unlost.capture import Capture
from unlost.errors import ArchiveFileError, DateError, FailedError, ListCutError, UriError, UsageError
from unlost.http.content_encoding import ContentDecoder, UndecodableError, decode_chunks, parse_content_encoding
from unlost.http.models import MAX_BODY_BYTES, BodyTooLargeError, spool_body
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive
from unlost.uri import key

CachedHeaders = tuple[tuple[str, str], ...]
"""Header fields as (name, value) pairs, in order."""
Chunks = Generator[bytes, None, None]
"""A body, in pieces."""
MAX_KEY_BYTES = 1 << 16
"""Longest URL of an entry. Entries with longer URLs are skipped."""
MAX_HEAD_BYTES = 1 << 20
"""Largest response head. Browsers accept less."""
CHUNK_BYTES = 1 << 16
"""Bytes of a body that are read at once."""
MAX_ENTRIES = 1_000_000
"""Largest number of URLs held in memory, at about 800 bytes each (measured). Browsers store a hundredth of that."""
_STATUS = re.compile(r"HTTP(?:/[0-9.]{1,8})? +([1-5][0-9][0-9])(?![0-9])", re.IGNORECASE)
_WEB_URL = re.compile(r"https?://[^\x00-\x20]+", re.IGNORECASE)

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A complete response to a GET request, as described by its entry, without its body.

    Attributes:
        uri: The requested URL, without fragment.
        datetime: When the response was received, 14 digits, UTC.
        status: Its status.
        mime: Its media type; None if unknown.
        redirect: The target of a redirect.
        length: Size of the stored body in bytes; None if the entry has no body.
        filename: The file, relative to the cache directory, with `/` as separator.
        offset: Where the entry begins in it, in bytes of its decompressed text.
    """

    uri: str
    datetime: str
    status: int
    mime: str | None
    redirect: str | None
    length: int | None
    filename: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class CachedContent:
    """A response with its body.

    Attributes:
        response: The response.
        headers: Its header fields.
        coding: Value of Content-Encoding for the stored body; empty for none.
        chunks: The stored body. Iterate over it once and close it, in one thread. Raises ArchiveFileError for a damaged
            entry.
    """

    response: CachedResponse
    headers: CachedHeaders
    coding: str
    chunks: Chunks


class TruncatedEntryError(ArchiveFileError):
    """An entry is truncated: the browser is still writing it, or crashed."""


def entry_problem(error: OSError | DateError | ArchiveFileError, filename: str, offset: int = 0) -> Problem:
    """Return the problem to count for an unreadable entry: `unreadable`, `bad-date`, `truncated` or `damaged`."""
    if isinstance(error, OSError):
        return Problem("unreadable", filename, None, offset, error.strerror or type(error).__name__)
    kinds = {DateError: "bad-date", TruncatedEntryError: "truncated"}
    return Problem(kinds.get(type(error), "damaged"), filename, None, offset, str(error))


def open_regular_file(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises OSError for anything else, such as a pipe, which might never end."""
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "expected a file, found a folder, a pipe or a device")
    return os.fdopen(number, "rb")


def parse_response_head(lines: Iterable[bytes]) -> tuple[int, CachedHeaders] | None:
    r"""Parse the lines of a response head into status and header fields; None if it is not one.

    >>> parse_response_head([b"HTTP/1.1 200 OK", b"Content-Type: text/html", b"", b"no field"])
    (200, (('Content-Type', 'text/html'),))
    """
    texts = [line.decode("latin-1") for line in lines]  # preserves all bytes
    match = _STATUS.match(texts[0]) if texts else None
    if match is None:
        return None
    pairs = (text.partition(":") for text in texts[1:])
    fields = tuple((name.strip(), value.strip()) for name, colon, value in pairs if colon and name.strip())
    return int(match[1]), fields


def get_header(headers: CachedHeaders, name: str) -> str | None:
    """Return the first value of a header field, or None. `name` must be in lower case."""
    return next((value for each, value in headers if each.lower() == name), None)


def content_encoding_of(headers: CachedHeaders) -> str:
    """Return the value of all Content-Encoding fields together."""
    return ", ".join(value for name, value in headers if name.lower() == "content-encoding")


def parse_mime(value: str | None) -> str | None:
    """Return the media type of a Content-Type value, in lower case and without parameters; None if it is invalid.

    >>> parse_mime("Text/HTML; charset=utf-8"), parse_mime(""), parse_mime("a b")
    ('text/html', None, None)
    """
    mime = (value or "").partition(";")[0].strip().lower()
    return mime if re.fullmatch(r"[!-~]+/[!-~]+", mime) and len(mime) <= 200 else None


def redirect_location(status: int, headers: CachedHeaders) -> str | None:
    """Return the Location of a redirect; None for other responses."""
    location = get_header(headers, "location")
    return location[:MAX_KEY_BYTES] if location and 300 <= status < 400 else None


def parse_web_url(text: str) -> str | None:
    """Return an http or https URL without its fragment; None for others, such as `data:` URLs.

    >>> parse_web_url("http://a.com/b#c"), parse_web_url("data:,x"), parse_web_url("http://a b/")
    ('http://a.com/b', None, None)
    """
    url = text.partition("#")[0]
    return url if len(url) <= MAX_KEY_BYTES and _WEB_URL.fullmatch(url) else None


def is_partial(status: int, headers: CachedHeaders, length: int) -> bool:
    """Return whether a stored body is incomplete: a range, or shorter than Content-Length.

    Browsers do not store bodies of redirects.
    """
    declared = get_header(headers, "content-length") or ""
    if status == 206 or 300 <= status < 400:
        return status == 206
    return declared.isascii() and declared.isdigit() and len(declared) < 19 and length < int(declared)


ReadResponses = Callable[[Path, Problems, Counter[str]], Generator[CachedResponse, None, None]]
OpenContent = Callable[[Path, CachedResponse], CachedContent | None]


class _ScanStoppedError(Exception):
    """All callers were cancelled while the directory was scanned."""


class CachedResponseClient:
    """Archive client for a directory or file that one of the readers can read.

    The directory is scanned once, by the first call. Later changes are not noticed; deleted entries are missing. Of
    several responses of a URL, the last one with a body is served, or else the last one.

    The index of the cache is not used: it lags behind the entries. A body is found by asking the reader for the URL of
    its capture, never by the file name in the capture, which may come from a file of another user.

    Args:
        archive: The archive's entry in the registry, with `folder`.
        find_folder: Returns the cache directory, given that folder.
        read_responses: Yields the responses of the directory.
        open_content: Opens the body of a response; None if it was deleted.
        description: What the reader expects, for messages.

    Attributes:
        problems: Counts what could not be read.
        excluded_counts: Number of responses that are not complete pages, by kind: see docs/browser-caches.md.
    """

    def __init__(
        self,
        archive: Archive,
        find_folder: Callable[[Path], Path],
        read_responses: ReadResponses,
        open_content: OpenContent,
        description: str = "responses",
    ) -> None:
        if archive.folder is None:
            raise UsageError(
                f"{archive.id}: expected a `folder` in the entry of an archive on this machine, found none"
            )
        self._archive = archive
        self._path = Path(archive.folder).expanduser()
        self._find_folder = find_folder
        self._read_responses = read_responses
        self._open_content = open_content
        self._description = description
        self._lock = Lock()
        self._pending_calls = 0
        self._stop = Event()
        self._responses: dict[str, dict[str, CachedResponse]] | None = None
        self._is_truncated = False
        self.problems = Problems()
        self.excluded_counts: Counter[str] = Counter()

    @property
    def archive(self) -> Archive:
        """The archive's entry in the registry."""
        return self._archive

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the capture of a URL, then those of other spellings of the same page. Raises FailedError."""
        for response in await self._run_in_thread(self._find_responses, uri):
            yield self._capture(response)

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield the captures below a prefix, in the order of keys.

        Raises:
            UriError: The prefix is invalid.
            DateError: A date is invalid.
            FailedError: The directory cannot be read.
            ListCutError: It has too many entries. Raised after the last capture.
        """
        query = PrefixQuery.parse(prefix)
        begin, end = datetime_negotiation.pad_range(first, last)
        responses = await self._run_in_thread(self._load_responses)
        for each in sorted(filter(query.covers, responses)):
            for response in responses[each].values():
                if begin <= response.datetime <= end:
                    yield self._capture(response)
        if self._is_truncated:
            raise self._truncated_error()

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return the stored response of a capture's URL; None if it was deleted or has no body.

        Raises:
            FailedError: The entry cannot be read; of kind `malformed` if it is damaged or in an unknown coding.
        """
        for response in await self._run_in_thread(self._find_responses, capture.uri):
            if response.uri == capture.uri:
                return await self._run_in_thread(self._read_capture, response)
        return None

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Return the capture of a URL, or else of another spelling of the page, the closest to a date first.

        Returns None if there is none. Raises DateError, and FailedError as `fetch` does.
        """
        first, last = datetime_negotiation.date_span(date)
        responses = await self._run_in_thread(self._find_responses, uri)
        for response in sorted(responses, key=lambda each: _rank_for_date(each, uri, first, last)):
            fetched = await self._run_in_thread(self._read_capture, response)
            if fetched is not None:
                return fetched
        return None

    async def last_capture_date(self, uri: str) -> str | None:
        """Return when the response of a URL was received, 14 digits; None if there is none."""
        responses = await self._run_in_thread(self._find_responses, uri)
        return responses[0].datetime if responses else None

    async def _run_in_thread(self, call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function in a thread. A scan is stopped when all callers have been cancelled."""
        self._pending_calls += 1
        try:
            return await asyncio.to_thread(call, *args, **kwargs)
        finally:
            self._pending_calls -= 1
            if not self._pending_calls:
                self._stop.set()  # a thread cannot be cancelled, but polls this

    def _find_responses(self, uri: str) -> list[CachedResponse]:
        """Return the responses of a page: of the same URL first, then of other spellings, the latest first."""
        responses = self._load_responses()
        matches: dict[str, CachedResponse] = {}
        with suppress(UriError):  # an invalid URL has no responses
            matches = responses.get(key(uri), {})
        if self._is_truncated and not matches:
            raise self._truncated_error()
        return sorted(matches.values(), key=lambda each: (_has_spelling(each, uri), _rank_response(each)), reverse=True)

    def _load_responses(self) -> dict[str, dict[str, CachedResponse]]:
        """Return all responses by key and URL. The first call scans the directory."""
        with self._lock:
            if self._responses is None:
                self._responses = self._scan()
            return self._responses

    def _scan(self) -> dict[str, dict[str, CachedResponse]]:
        by_key: dict[str, dict[str, CachedResponse]] = {}
        problems, excluded_counts, count = Problems(), Counter[str](), 0
        self._stop.clear()
        if not self._pending_calls:
            raise _ScanStoppedError
        try:
            with closing(self._read_responses(self._find_folder(self._path), problems, excluded_counts)) as responses:
                for response in responses:
                    if self._stop.is_set() and not self._pending_calls:
                        raise _ScanStoppedError
                    try:
                        spellings = by_key.setdefault(key(response.uri), {})
                    except UriError:
                        excluded_counts["foreign-scheme"] += 1
                        continue
                    other = spellings.get(response.uri)
                    count += other is None
                    if count > MAX_ENTRIES:
                        self._is_truncated = True
                        break
                    if other is None or _rank_response(other) < _rank_response(response):
                        spellings[response.uri] = response
        except OSError as error:
            raise FailedError(
                f"{self._path}: cannot be read: {error.strerror or error}", self._archive.id, "unreachable"
            ) from error
        self.problems, self.excluded_counts = problems, excluded_counts
        if not by_key and not excluded_counts and problems.total:
            # A text that is not a HAR file, or an entirely damaged cache: an empty result would be misleading.
            first = next(iter(problems.first.values()))
            message = f"{self._path}: nothing in it could be read, first: {first.kind}: {first.message}"
            raise FailedError(message[:400], self._archive.id, "malformed")
        if not by_key and not excluded_counts:
            # Probably a directory that is not a cache.
            raise FailedError(f"{self._path}: expected {self._description}, found none", self._archive.id, "malformed")
        return by_key

    def _read_capture(self, response: CachedResponse) -> FetchedCapture | None:
        """Return a response with its decoded body; None if it was deleted."""
        if response.length is None:
            return None
        try:
            content = self._open_content(self._find_folder(self._path), response)
            if content is None:
                return None
            with closing(content.chunks):
                body = self._decode_body(content)
        except FileNotFoundError:
            return None
        except (ArchiveFileError, UndecodableError, OSError) as error:
            kind = "unreachable" if isinstance(error, OSError) else "malformed"
            raise FailedError(f"{response.filename}: {error}", self._archive.id, kind) from None
        return FetchedCapture(self._capture(content.response), content.headers, body)

    def _decode_body(self, content: CachedContent) -> BinaryIO:
        decoder = ContentDecoder(parse_content_encoding([content.coding]))
        try:
            body = spool_body(decode_chunks(content.chunks, decoder), MAX_BODY_BYTES)
        except BodyTooLargeError:
            message = f"{content.response.filename}: a body of more than {MAX_BODY_BYTES} bytes"
            raise FailedError(message, self._archive.id, "too-large") from None
        if decoder.damage is not None:
            body.close()
            # A browser does not use such an entry either, and requests the page again.
            raise ArchiveFileError(f"a body that is damaged: {decoder.damage}")
        return body

    def _capture(self, response: CachedResponse) -> Capture:
        return Capture(
            uri=response.uri,
            key=key(response.uri),
            datetime=response.datetime,
            status=response.status,
            mime=response.mime,
            length=response.length,
            redirect=response.redirect,
            archive=self._archive.id,
            migrated=self._archive.is_migrated(response.mime),
            filename=response.filename,
            offset=response.offset,
        )

    def _truncated_error(self) -> ListCutError:
        return ListCutError(f"{self._path}: only the first {MAX_ENTRIES} addresses were read", self._archive.id)


def _has_spelling(response: CachedResponse, uri: str) -> bool:
    return response.uri == uri.partition("#")[0]


def _rank_for_date(response: CachedResponse, uri: str, first: str, last: str) -> tuple[bool, bool, tuple[float, float]]:
    """Return a sort key for responses of a page: the same URL first, then those with a body, then the closest date."""
    return (
        not _has_spelling(response, uri),
        not _rank_response(response)[0],
        datetime_negotiation.distance_rank(response.datetime, first, last),
    )


def _rank_response(response: CachedResponse) -> tuple[bool, str]:
    """Return a sort key for responses of a URL: one with a body of its own, then the latest."""
    return response.length is not None and response.status != 304, response.datetime
