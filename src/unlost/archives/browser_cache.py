"""Responses that a browser stored, in its cache or in a HAR file, and an archive client for them.

Readers of one format (chromium_cache, firefox_cache, har) yield `CachedResponse`s; `CachedResponseArchive` serves the
latest response of each URL as an archive client. Nothing is sent over the network.
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
from unlost.archives.prefix_query import PrefixQuery
from unlost.capture import Capture
from unlost.errors import ArchiveFileError, DateError, FailedError, ListCutError, UriError, UsageError
from unlost.http.body import MAX_BODY_BYTES, BodyTooLargeError, spool_body
from unlost.http.content_encoding import ContentDecoder, UndecodableError, decode_chunks, parse_content_encoding
from unlost.problems import Problem, Problems
from unlost.registry.models import Archive
from unlost.uri import key

CachedHeaders = tuple[tuple[str, str], ...]
"""Fields as (name, value), in their order."""
Chunks = Generator[bytes, None, None]
"""A body, piece by piece."""
MAX_KEY_BYTES = 1 << 16
"""The longest address of an entry: what is longer is no address that anybody asks for, and records stay small."""
MAX_HEAD_BYTES = 1 << 20
"""The longest head of a response: browsers themselves take less."""
CHUNK_BYTES = 1 << 16
"""Bytes of a body that are read at once."""
_STATUS = re.compile(r"HTTP(?:/[0-9.]{1,8})? +([1-5][0-9][0-9])(?![0-9])", re.IGNORECASE)
_WEB_URL = re.compile(r"https?://[^\x00-\x20]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """A whole response to a GET, as its entry tells, without the body.

    uri: as it was asked for, without a fragment.
    datetime: when the response came, 14 digits, UTC.
    length: bytes of the body as it is stored; None if the entry has no body.
    filename: the file, below the folder, with `/` between its parts.
    offset: where the entry begins in it, in bytes of its decompressed text.
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

    coding: what the body is packed in, as Content-Encoding says it; empty if in nothing.
    chunks: the body as it is stored, to be read once, and closed, in one thread. Raises ArchiveFileError where it is
        not what was stored.
    """

    response: CachedResponse
    headers: CachedHeaders
    coding: str
    chunks: Chunks


class TruncatedEntryError(ArchiveFileError):
    """Something without its end: the browser is writing it, or died over it."""


def entry_problem(error: OSError | DateError | ArchiveFileError, filename: str, offset: int = 0) -> Problem:
    """Return what to count where an entry could not be read: `unreadable`, `bad-date`, `truncated` or `damaged`."""
    if isinstance(error, OSError):
        return Problem("unreadable", filename, None, offset, error.strerror or type(error).__name__)
    kinds = {DateError: "bad-date", TruncatedEntryError: "truncated"}
    return Problem(kinds.get(type(error), "damaged"), filename, None, offset, str(error))


def open_regular_file(path: Path) -> BinaryIO:
    """Open a file for reading, and nothing else: a pipe under a file's name would never end. Raises OSError."""
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "expected a file, found a folder, a pipe or a device")
    return os.fdopen(number, "rb")


def parse_response_head(lines: Iterable[bytes]) -> tuple[int, CachedHeaders] | None:
    r"""Return status and fields of the head of a response, cut into lines; None if it is none.

    >>> parse_response_head([b"HTTP/1.1 200 OK", b"Content-Type: text/html", b"", b"no field"])
    (200, (('Content-Type', 'text/html'),))
    """
    texts = [line.decode("latin-1") for line in lines]  # which keeps every byte
    found = _STATUS.match(texts[0]) if texts else None
    if found is None:
        return None
    pairs = (text.partition(":") for text in texts[1:])
    fields = tuple((name.strip(), value.strip()) for name, colon, value in pairs if colon and name.strip())
    return int(found[1]), fields


def get_header(headers: CachedHeaders, name: str) -> str | None:
    """Return the first value of a field, in whatever case; None if there is none."""
    return next((value for each, value in headers if each.lower() == name), None)


def content_encoding_of(headers: CachedHeaders) -> str:
    """Return what a body is packed in, as all fields Content-Encoding together say."""
    return ", ".join(value for name, value in headers if name.lower() == "content-encoding")


def parse_mime(value: str | None) -> str | None:
    """Return the media type of a Content-Type, in lower case without parameters; None if there is none.

    >>> parse_mime("Text/HTML; charset=utf-8"), parse_mime(""), parse_mime("a b")
    ('text/html', None, None)
    """
    mime = (value or "").partition(";")[0].strip().lower()
    return mime if re.fullmatch(r"[!-~]+/[!-~]+", mime) and len(mime) <= 200 else None


def redirect_target(status: int, headers: CachedHeaders) -> str | None:
    """Return where a response redirects to, as it says it; None if it does not."""
    location = get_header(headers, "location")
    return location[:MAX_KEY_BYTES] if location and 300 <= status < 400 else None


def parse_web_url(text: str) -> str | None:
    """Return an address of the web without its fragment; None if it is none, as `data:` or an extension's.

    >>> parse_web_url("http://a.com/b#c"), parse_web_url("data:,x"), parse_web_url("http://a b/")
    ('http://a.com/b', None, None)
    """
    address = text.partition("#")[0]
    return address if len(address) <= MAX_KEY_BYTES and _WEB_URL.fullmatch(address) else None


def is_partial(status: int, headers: CachedHeaders, length: int) -> bool:
    """Return whether a stored body is less than the resource: a range, or shorter than the server announced.

    Browsers keep no bodies of redirects.
    """
    announced = get_header(headers, "content-length") or ""
    if status == 206 or 300 <= status < 400:
        return status == 206
    return announced.isascii() and announced.isdigit() and len(announced) < 19 and length < int(announced)


MAX_ENTRIES = 1_000_000
"""Addresses that are remembered, in some 800 bytes each (measured); browsers keep a hundredth of that."""
ReadResponses = Callable[[Path, Problems, Counter[str]], Generator[CachedResponse, None, None]]
OpenContent = Callable[[Path, CachedResponse], CachedContent | None]
_P = ParamSpec("_P")
_T = TypeVar("_T")


class _ScanStoppedError(Exception):
    """Nobody waits any more for what a folder has."""


class CachedResponseArchive:
    """A folder, or a file, whose responses one reader of `unlost.formats` knows: a `Repository`.

    It is looked through when it is first asked something, once; whatever it has later is not noticed, and what is gone
    by then is not there. If an address was kept more than once, it has the last copy, or the last that has a body.

    problems: what could not be read.
    left_out: how many responses are no whole pages, by kind, as docs/browser-caches.md lists them.
    """

    def __init__(
        self,
        archive: Archive,
        find_folder: Callable[[Path], Path],
        read_responses: ReadResponses,
        open_content: OpenContent,
        description: str = "responses",
    ) -> None:
        """Take a reader, and `holds`: what it is that it reads, in a word for messages."""
        if archive.folder is None:
            raise UsageError(
                f"{archive.id}: expected a `folder` in the entry of an archive on this machine, found none"
            )
        self._archive = archive
        self._place = Path(archive.folder).expanduser()
        self._find_folder, self._read_responses, self._open_content, self._description = (
            find_folder,
            read_responses,
            open_content,
            description,
        )
        self._lock = Lock()
        self._pending_calls = 0
        self._stop = Event()
        self._responses: dict[str, dict[str, CachedResponse]] | None = None
        self._is_truncated = False
        self.problems = Problems()
        self.excluded_counts: Counter[str] = Counter()

    @property
    def archive(self) -> Archive:
        """What the registry says about it."""
        return self._archive

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the copy of an address, then those of the same page by other spellings. Raises FailedError."""
        for response in await self._run_in_thread(self._find_responses, uri):
            yield self._capture(response)

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield what was kept below a prefix, in the order of keys.

        Raises UriError, DateError, FailedError; ListCutError behind the last if the folder has too many entries.
        """
        below = PrefixQuery.parse(prefix)
        begin, end = datetime_negotiation.pad_range(first, last)
        held = await self._run_in_thread(self._load_responses)
        for each in sorted(filter(below.covers, held)):
            for response in held[each].values():
                if begin <= response.datetime <= end:
                    yield self._capture(response)
        if self._is_truncated:
            raise self._truncated_error()

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return what is kept now of a capture's address; None if it is gone, or has no body.

        Raises FailedError, of kind `malformed` if it is damaged or packed in a way that is not known.
        """
        for response in await self._run_in_thread(self._find_responses, capture.uri):
            if response.uri == capture.uri:
                return await self._run_in_thread(self._read_capture, response)
        return None

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Return the one copy of an address, else of the same page by another spelling, the closest to a date first.

        None if there is none. Raises DateError, and as `fetch`.
        """
        first, last = datetime_negotiation.date_span(date)
        found = await self._run_in_thread(self._find_responses, uri)
        for response in sorted(found, key=lambda each: _rank_for_date(each, uri, first, last)):
            copy = await self._run_in_thread(self._read_capture, response)
            if copy is not None:
                return copy
        return None

    async def last_capture_date(self, uri: str) -> str | None:
        """Return when the copy of an address came, 14 digits; None if there is none."""
        copies = await self._run_in_thread(self._find_responses, uri)
        return copies[0].datetime if copies else None

    async def _run_in_thread(self, call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what a call returns that is made in a thread. When the last who waits gives up, the search ends."""
        self._pending_calls += 1
        try:
            return await asyncio.to_thread(call, *args, **kwargs)
        finally:
            self._pending_calls -= 1
            if not self._pending_calls:
                self._stop.set()  # the thread cannot be ended, but it can be told

    def _find_responses(self, uri: str) -> list[CachedResponse]:
        """Return what is kept of a page: first as it is spelled, then the others, the last first."""
        held = self._load_responses()
        found: dict[str, CachedResponse] = {}
        with suppress(UriError):  # what is no address is not kept
            found = held.get(key(uri), {})
        if self._is_truncated and not found:
            raise self._truncated_error()
        return sorted(found.values(), key=lambda each: (_has_spelling(each, uri), _rank_response(each)), reverse=True)

    def _load_responses(self) -> dict[str, dict[str, CachedResponse]]:
        """Return what is kept, by key and address; looks for it if nobody has."""
        with self._lock:
            if self._responses is None:
                self._responses = self._scan()
            return self._responses

    def _scan(self) -> dict[str, dict[str, CachedResponse]]:
        held: dict[str, dict[str, CachedResponse]] = {}
        problems, left_out, count = Problems(), Counter[str](), 0
        self._stop.clear()
        if not self._pending_calls:
            raise _ScanStoppedError
        try:
            with closing(self._read_responses(self._find_folder(self._place), problems, left_out)) as responses:
                for response in responses:
                    if self._stop.is_set() and not self._pending_calls:
                        raise _ScanStoppedError
                    try:
                        copies = held.setdefault(key(response.uri), {})
                    except UriError:
                        left_out["foreign-scheme"] += 1
                        continue
                    other = copies.get(response.uri)
                    count += other is None
                    if count > MAX_ENTRIES:
                        self._is_truncated = True
                        break
                    if other is None or _rank_response(other) < _rank_response(response):
                        copies[response.uri] = response
        except OSError as error:
            raise FailedError(
                f"{self._place}: cannot be read: {error.strerror or error}", self._archive.id, "unreachable"
            ) from error
        self.problems, self.excluded_counts = problems, left_out
        if not held and not left_out and problems.total:
            # A text that is no HAR file, a cache that is all damaged: "nothing held" would be a lie.
            first = next(iter(problems.first.values()))
            message = f"{self._place}: nothing in it could be read, first: {first.kind}: {first.message}"
            raise FailedError(message[:400], self._archive.id, "malformed")
        if not held and not left_out:
            # A folder that is no cache, most likely.
            raise FailedError(f"{self._place}: expected {self._description}, found none", self._archive.id, "malformed")
        return held

    def _read_capture(self, response: CachedResponse) -> FetchedCapture | None:
        """Return a response with its body, unpacked; None if it is gone."""
        if response.length is None:
            return None
        try:
            content = self._open_content(self._find_folder(self._place), response)
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
            # A browser would not use it either, and asks again.
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
        return ListCutError(f"{self._place}: only the first {MAX_ENTRIES} addresses were read", self._archive.id)


def _has_spelling(response: CachedResponse, uri: str) -> bool:
    return response.uri == uri.partition("#")[0]


def _rank_for_date(response: CachedResponse, uri: str, first: str, last: str) -> tuple[bool, bool, tuple[float, float]]:
    """Return what to choose a copy by for a date: its spelling, that it has a body of its own, then its date."""
    return (
        not _has_spelling(response, uri),
        not _rank_response(response)[0],
        datetime_negotiation.distance_rank(response.datetime, first, last),
    )


def _rank_response(response: CachedResponse) -> tuple[bool, str]:
    """Return what to choose a copy by: that it has a body of its own, then its date."""
    return response.length is not None and response.status != 304, response.datetime
