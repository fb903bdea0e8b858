"""What a browser kept in a folder of this machine, as an archive: one copy of each address, none sent for."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import closing, suppress
from pathlib import Path
from threading import Event, Lock
from typing import BinaryIO, ParamSpec, TypeVar

from unlost.archives import closeness
from unlost.archives.archive import Archive
from unlost.archives.bodies.body import MAX_BODY_BYTES, TooLargeError, spooled
from unlost.archives.prefix import Prefix
from unlost.archives.repository import StoredCopy
from unlost.errors import ArchiveFileError, FailedError, ListCutError, UriError, UsageError
from unlost.formats.capture import Capture
from unlost.formats.contentcoding import Decoder, UndecodableError, codings_of, undone
from unlost.formats.kept import KeptContent, KeptResponse
from unlost.formats.problems import Problems
from unlost.uri import key

MAX_ENTRIES = 1_000_000
"""Addresses that are remembered, in some 800 bytes each (measured); browsers keep a hundredth of that."""

Read = Callable[[Path, Problems, Counter[str]], Generator[KeptResponse, None, None]]
Open = Callable[[Path, KeptResponse], KeptContent | None]

P = ParamSpec("P")
T = TypeVar("T")


class _StoppedError(Exception):
    """Nobody waits any more for what a folder has."""


class FlatFolder:
    """A folder, or a file, whose responses one reader of `unlost.formats` knows: a `Repository`.

    It is looked through when it is first asked something, once; whatever it has later is not noticed, and what is gone
    by then is not there. If an address was kept more than once, it has the last copy, or the last that has a body.

    problems: what could not be read.
    left_out: how many responses are no whole pages, by kind, as docs/browser-caches.md lists them.
    """

    def __init__(
        self,
        archive: Archive,
        find: Callable[[Path], Path],
        read: Read,
        open_content: Open,
        holds: str = "responses",
    ) -> None:
        """Take a reader, and `holds`: what it is that it reads, in a word for messages."""
        if archive.folder is None:
            raise UsageError(
                f"{archive.id}: expected a `folder` in the entry of an archive on this machine, found none"
            )
        self._archive = archive
        self._place = Path(archive.folder).expanduser()
        self._find, self._read, self._open, self._holds = find, read, open_content, holds
        self._lock = Lock()
        self._asking = 0
        self._stop = Event()
        self._held: dict[str, dict[str, KeptResponse]] | None = None
        self._is_cut = False
        self.problems = Problems()
        self.left_out: Counter[str] = Counter()

    @property
    def archive(self) -> Archive:
        """What the registry says about it."""
        return self._archive

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the copy of an address, then those of the same page by other spellings. Raises FailedError."""
        for response in await self._beside(self._copies, uri):
            yield self._capture(response)

    async def under(self, prefix: str, first: str | None = None, last: str | None = None) -> AsyncIterator[Capture]:
        """Yield what was kept below a prefix, in the order of keys.

        Raises UriError, DateError, FailedError; ListCutError behind the last if the folder has too many entries.
        """
        below = Prefix.below(prefix)
        begin, end = closeness.between(first, last)
        held = await self._beside(self._holdings)
        for each in sorted(filter(below.covers, held)):
            for response in held[each].values():
                if begin <= response.datetime <= end:
                    yield self._capture(response)
        if self._is_cut:
            raise self._cut()

    async def fetch(self, capture: Capture) -> StoredCopy | None:
        """Return what is kept now of a capture's address; None if it is gone, or has no body.

        Raises FailedError, of kind `malformed` if it is damaged or packed in a way that is not known.
        """
        for response in await self._beside(self._copies, capture.uri):
            if response.uri == capture.uri:
                return await self._beside(self._copy, response)
        return None

    async def get(self, uri: str, date: str | None = None) -> StoredCopy | None:
        """Return the one copy of an address, else of the same page by another spelling, the closest to a date first.

        None if there is none. Raises DateError, and as `fetch`.
        """
        first, last = closeness.span(date)
        found = await self._beside(self._copies, uri)
        for response in sorted(found, key=lambda each: _distance(each, uri, first, last)):
            copy = await self._beside(self._copy, response)
            if copy is not None:
                return copy
        return None

    async def crawl_date(self, uri: str) -> str | None:
        """Return when the copy of an address came, 14 digits; None if there is none."""
        copies = await self._beside(self._copies, uri)
        return copies[0].datetime if copies else None

    async def _beside(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a call returns that is made in a thread. When the last who waits gives up, the search ends."""
        self._asking += 1
        try:
            return await asyncio.to_thread(call, *args, **kwargs)
        finally:
            self._asking -= 1
            if not self._asking:
                self._stop.set()  # the thread cannot be ended, but it can be told

    def _copies(self, uri: str) -> list[KeptResponse]:
        """Return what is kept of a page: first as it is spelled, then the others, the last first."""
        held = self._holdings()
        found: dict[str, KeptResponse] = {}
        with suppress(UriError):  # what is no address is not kept
            found = held.get(key(uri), {})
        if self._is_cut and not found:
            raise self._cut()
        return sorted(found.values(), key=lambda each: (_is_spelled(each, uri), _worth(each)), reverse=True)

    def _holdings(self) -> dict[str, dict[str, KeptResponse]]:
        """Return what is kept, by key and address; looks for it if nobody has."""
        with self._lock:
            if self._held is None:
                self._held = self._scan()
            return self._held

    def _scan(self) -> dict[str, dict[str, KeptResponse]]:
        held: dict[str, dict[str, KeptResponse]] = {}
        problems, left_out, count = Problems(), Counter[str](), 0
        self._stop.clear()
        if not self._asking:
            raise _StoppedError
        try:
            with closing(self._read(self._find(self._place), problems, left_out)) as responses:
                for response in responses:
                    if self._stop.is_set() and not self._asking:
                        raise _StoppedError
                    try:
                        copies = held.setdefault(key(response.uri), {})
                    except UriError:
                        left_out["foreign-scheme"] += 1
                        continue
                    other = copies.get(response.uri)
                    count += other is None
                    if count > MAX_ENTRIES:
                        self._is_cut = True
                        break
                    if other is None or _worth(other) < _worth(response):
                        copies[response.uri] = response
        except OSError as error:
            raise FailedError(
                f"{self._place}: cannot be read: {error.strerror or error}", self._archive.id, "unreachable"
            ) from error
        self.problems, self.left_out = problems, left_out
        if not held and not left_out and problems.total:
            # A text that is no HAR file, a cache that is all damaged: "nothing held" would be a lie.
            first = next(iter(problems.first.values()))
            message = f"{self._place}: nothing in it could be read, first: {first.kind}: {first.message}"
            raise FailedError(message[:400], self._archive.id, "malformed")
        if not held and not left_out:
            # A folder that is no cache, most likely.
            raise FailedError(f"{self._place}: expected {self._holds}, found none", self._archive.id, "malformed")
        return held

    def _copy(self, response: KeptResponse) -> StoredCopy | None:
        """Return a response with its body, unpacked; None if it is gone."""
        if response.length is None:
            return None
        try:
            content = self._open(self._find(self._place), response)
            if content is None:
                return None
            with closing(content.chunks):
                body = self._unpacked(content)
        except FileNotFoundError:
            return None
        except (ArchiveFileError, UndecodableError, OSError) as error:
            kind = "unreachable" if isinstance(error, OSError) else "malformed"
            raise FailedError(f"{response.filename}: {error}", self._archive.id, kind) from None
        return StoredCopy(self._capture(content.response), content.headers, body)

    def _unpacked(self, content: KeptContent) -> BinaryIO:
        decoder = Decoder(codings_of([content.coding]))
        try:
            body = spooled(undone(content.chunks, decoder), MAX_BODY_BYTES)
        except TooLargeError:
            message = f"{content.response.filename}: a body of more than {MAX_BODY_BYTES} bytes"
            raise FailedError(message, self._archive.id, "too-large") from None
        if decoder.damage is not None:
            body.close()
            # A browser would not use it either, and asks again.
            raise ArchiveFileError(f"a body that is damaged: {decoder.damage}")
        return body

    def _capture(self, response: KeptResponse) -> Capture:
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

    def _cut(self) -> ListCutError:
        return ListCutError(f"{self._place}: only the first {MAX_ENTRIES} addresses were read", self._archive.id)


def _is_spelled(response: KeptResponse, uri: str) -> bool:
    return response.uri == uri.partition("#")[0]


def _distance(response: KeptResponse, uri: str, first: str, last: str) -> tuple[bool, bool, tuple[float, float]]:
    """Return what to choose a copy by for a date: its spelling, that it has a body of its own, then its date."""
    return not _is_spelled(response, uri), not _worth(response)[0], closeness.rank(response.datetime, first, last)


def _worth(response: KeptResponse) -> tuple[bool, str]:
    """Return what to choose a copy by: that it has a body of its own, then its date."""
    return response.length is not None and response.status != 304, response.datetime
