"""Archive files on this machine as an archive: a folder of WARC, ARC and WACZ files, or one of them."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from unlost.archives import closeness
from unlost.archives.archive import Archive
from unlost.archives.bodies.body import MAX_BODY_BYTES
from unlost.archives.local.current_index import IndexUpdater
from unlost.archives.local.file_copies import FileCaptureReader
from unlost.archives.local.file_index import WarcFileIndex
from unlost.archives.local.file_tables import IndexedCapture
from unlost.archives.prefix import PrefixQuery
from unlost.archives.repository import FetchedCapture
from unlost.clock import Clock, SystemClock
from unlost.errors import FailedError, UsageError
from unlost.formats.capture import Capture
from unlost.formats.problems import Problems
from unlost.uri import key as key_of

_PAGE_ROWS = 500
_MAX_NEAREST = 10  # captures on each side of a date that are tried before a page is given up


class ArchiveFiles:
    """All archive files below `archive.folder`, which may be a single file, as a repository.

    The files are indexed on first use, in an SQLite file in the user's cache folder; one that changes is indexed anew.
    Captures have a `filename` relative to the folder, and no URI-M.

    max_bytes: the largest body that is handed out. on_message: is told, in a line, what the user should know. on_file:
    is told which file is being indexed. Both are called in other threads.
    """

    def __init__(
        self,
        archive: Archive,
        *,
        max_bytes: int = MAX_BODY_BYTES,
        clock: Clock | None = None,
        on_message: Callable[[str], object] | None = None,
        on_file: Callable[[str], object] | None = None,
    ) -> None:
        if archive.folder is None:
            raise UsageError(f"{archive.id}: expected a `folder` with archive files, found none")
        root = Path(archive.folder).expanduser().resolve()
        self._archive = archive
        self._index = IndexUpdater(root, archive.id, clock or SystemClock(), on_message, on_file)
        self._captures_reader = FileCaptureReader(archive, root, max_bytes)

    @property
    def archive(self) -> Archive:
        """What the registry says about it."""
        return self._archive

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the captures of an address by date, of any status. Raises UriError, FailedError."""
        key = key_of(uri)
        async for capture in self._list_captures(key, key + "\0", closeness.ALL_TIME):
            yield capture

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield the captures below a prefix by key and date. Raises UriError, DateError, FailedError."""
        span = closeness.pad_range(first, last)
        for low, high in PrefixQuery.parse(prefix).ranges:
            async for capture in self._list_captures(low, high, span):
                yield capture

    async def fetch(self, capture: Capture) -> FetchedCapture | None:
        """Return the copy that a capture names by file and offset, else the closest to its date. Raises FailedError.

        The body of a revisit is that of the record that it names, else of one with the same digest.
        """
        if capture.key is not None and capture.offset is not None:
            found = await self._index.query(lambda index: index.find_record(capture))
            try:
                if found is not None:
                    return await self._read(found)
            except FailedError as error:
                if error.kind not in ("foreign", "malformed"):
                    raise
                await self._index.refresh(force=True)  # the file may have changed since it was indexed
                found = await self._index.query(lambda index: index.find_record(capture))
                if found is not None:
                    return await self._read(found)
        return await self.get(capture.uri, capture.datetime)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Return the copy closest to a date, or the last one. Raises UriError, DateError, FailedError.

        A copy that cannot be read gives way to the next closest.
        """
        key, (first, last) = key_of(uri), closeness.date_span(date)
        found = await self._index.query(lambda index: index.captures_near(key, last, _MAX_NEAREST))
        failure = None
        for each in sorted(found, key=lambda each: closeness.distance_rank(each.capture.datetime, first, last)):
            try:
                return await self._read(each)
            except FailedError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return None

    async def last_capture_date(self, uri: str) -> str | None:
        """Return the date of the last capture of an address, 14 digits. Raises UriError, FailedError."""
        key = key_of(uri)
        return await self._index.query(lambda index: index.last_date(key))

    async def problems(self) -> Problems:
        """Return what could not be read of the files: kinds as docs/warc.md has them, and `unreadable` files."""
        return await self._index.query(WarcFileIndex.problems)

    async def _list_captures(self, low: str, high: str, span: tuple[str, str]) -> AsyncIterator[Capture]:
        place = None
        while page := await self._index.query(partial(_query_page, low, high, span, place)):
            for found in page:
                capture = found.capture
                yield replace(capture, archive=self._archive.id, migrated=self._archive.is_migrated(capture.mime))
            place = page[-1].position

    async def _read(self, found: IndexedCapture) -> FetchedCapture:
        return await self._index.query(lambda index: self._captures_reader.read(found, index))


def _query_page(
    low: str, high: str, span: tuple[str, str], place: tuple[str, str, int] | None, index: WarcFileIndex
) -> list[IndexedCapture]:
    return index.captures_between(low, high, span, place, _PAGE_ROWS)
