"""Archive files on this machine as an archive: a folder of WARC, ARC and WACZ files, or one of them.

The files are indexed on first use in the user's cache folder, and again when they change. A revisit gets its body from
the record it refers to, or from one with the same digest.
"""

import asyncio
import hashlib
import os
import shutil
import sqlite3
import tempfile
import threading
import weakref
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TypeVar

from unlost import paths
from unlost.archives import datetime_negotiation, warc_capture
from unlost.archives.base import FetchedCapture
from unlost.archives.prefix_query import PrefixQuery
from unlost.archives.warc_file_index import IndexedCapture, IndexingStoppedError, WarcFileIndex
from unlost.capture import Capture
from unlost.clock import Clock, SystemClock
from unlost.errors import ArchiveFileError, FailedError, InputError, UsageError
from unlost.http.body import MAX_BODY_BYTES
from unlost.index.warc_index import is_archive_file
from unlost.problems import Problems
from unlost.registry.models import Archive
from unlost.uri import key as key_of
from unlost.warc import reader, wacz
from unlost.warc.reader import StoredRecord

MAX_EXTRACTED_BYTES = 4 << 30
"""The largest WARC that is taken out of a WACZ that has it deflated."""
_MAX_EXTRACTED_WARCS = 2  # WARCs taken out, at a time: their disk space is nobody's else
_COPY_BYTES = 1 << 16
_DAMAGE_ERRORS = (zipfile.BadZipFile, EOFError, zlib.error)


class RecordOpener:
    """Opens records, and keeps the WARCs that it had to take out of a WACZ until it goes itself. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._extracted: dict[tuple[Path, str, int, int], Path] = {}
        self._extracted_count = 0

    def open(self, path: Path, member: str | None, offset: int, skip: int) -> StoredRecord:
        """Return a record. Raises ArchiveFileError, OSError."""
        if member is None:
            return reader.open_warc_record(path, offset, skip)
        wacz.check_wacz_directory(path)
        with zipfile.ZipFile(path) as archive:
            try:
                info = archive.getinfo(f"archive/{member}")
            except KeyError:
                raise ArchiveFileError(f"{path}: expected a member {ascii(member)[:100]}, found none") from None
            if info.compress_type != zipfile.ZIP_DEFLATED:
                return wacz.open_wacz_record(path, member, offset, skip)
            with self._lock:
                file = self._extract(archive, info, path)
                return reader.open_warc_record(file, offset, skip)

    def _extract(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> Path:
        """Return the WARC as a file. The record that is opened in it keeps it open, when its name is long gone."""
        known = path.stat()
        name = (path, info.filename, known.st_size, known.st_mtime_ns)
        if name in self._extracted:
            return self._extracted[name]
        while len(self._extracted) >= _MAX_EXTRACTED_WARCS:
            self._extracted.pop(next(iter(self._extracted))).unlink(missing_ok=True)
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="unlost-wacz-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._extracted_count += 1
        file = self._folder / str(self._extracted_count)
        left = MAX_EXTRACTED_BYTES
        try:
            # What came before a damage is written, and the record may be in it.
            with archive.open(info) as source, file.open("wb") as target, suppress(*_DAMAGE_ERRORS):
                while left >= 0 and (piece := source.read(_COPY_BYTES)):
                    left -= len(piece)
                    target.write(piece)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            file.unlink(missing_ok=True)
            raise ArchiveFileError(f"{path}/{info.filename}: {error}") from None
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        if left < 0:
            file.unlink()
            message = f"{path}/{info.filename}: expected at most {MAX_EXTRACTED_BYTES} bytes in a deflated WARC"
            raise ArchiveFileError(message)
        self._extracted[name] = file
        return file


_MAX_ORIGINALS = 10  # records that may have the body of a revisit


class FileCaptureReader:
    """Reads copies from the files below a folder, or from one file. It reads the disk: call it in a thread.

    max_bytes: the largest body that is handed out.
    """

    def __init__(self, archive: Archive, root: Path, max_bytes: int) -> None:
        self._archive = archive
        self._root = root
        self._max_bytes = max_bytes
        self._records = RecordOpener()

    def read(self, found: IndexedCapture, index: WarcFileIndex) -> FetchedCapture:
        """Return a copy with its body. Raises FailedError; of kind `malformed` also where no body is in these files."""
        record = self._open(found)
        if not found.capture.revisit:
            return self._with_body(record, found)
        failure = FailedError(
            f"{found.capture.filename}: the record says `as before`, and what was before is not in these files",
            self._archive.id,
            "malformed",
        )
        for original in index.find_originals(found.capture, _MAX_ORIGINALS):
            try:
                copy = self._with_body(self._open(original), original)
            except FailedError as error:
                failure = error
                continue
            return warc_capture.apply_revisit(record, found.capture, copy)
        raise failure

    def _open(self, found: IndexedCapture) -> StoredRecord:
        path = self._root if self._root.is_file() else self._root / os.fsdecode(found.path)
        try:
            record = self._records.open(path, found.member, found.capture.offset or 0, found.capture.skip or 0)
        except (ArchiveFileError, OSError) as error:
            raise FailedError(str(error), self._archive.id, "malformed") from error
        warc_capture.check_record_identity(record, found.capture, self._archive)
        return record

    def _with_body(self, record: StoredRecord, found: IndexedCapture) -> FetchedCapture:
        try:
            return warc_capture.read_capture(record, found.capture, self._archive, self._max_bytes)
        except OSError as error:
            raise FailedError(str(error), self._archive.id, "malformed") from error


_T = TypeVar("_T")
_REFRESH_SECONDS = 10.0  # so late are files seen that come or change


class IndexUpdater:
    """The index of the archive files below a folder, in the user's cache; where that cannot be, in a temporary one.

    archive: its id, for errors. on_message: is told, in a line, what the user should know. on_file: is told which file
    is being indexed; both are called in other threads.
    """

    def __init__(
        self,
        root: Path,
        archive: str,
        clock: Clock,
        on_message: Callable[[str], object] | None,
        on_file: Callable[[str], object] | None,
    ) -> None:
        self._root = root
        self._archive = archive
        self._clock = clock
        self._on_message = on_message
        self._on_file = on_file
        self._name = f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:32]}.sqlite"
        self._index = WarcFileIndex(root, paths.cache_folder() / "files" / self._name)
        self._is_temporary = False
        self._refreshed_at: float | None = None
        self._refresh_lock = asyncio.Lock()

    async def query(self, query: Callable[[WarcFileIndex], _T]) -> _T:
        """Return what a question to the index gives, which is asked in a thread. Raises FailedError."""
        await self.refresh()
        try:
            return await asyncio.to_thread(query, self._index)
        except sqlite3.DatabaseError:
            # Damaged, or removed by somebody who cleans up: it is made anew, once.
            await self.refresh(force=True)
        try:
            return await asyncio.to_thread(query, self._index)
        except sqlite3.DatabaseError as error:
            raise FailedError(
                f"the index of {self._root} cannot be read: {error}", self._archive, "malformed"
            ) from error

    async def refresh(self, *, force: bool = False) -> None:
        """Look for files that came, changed or went, if that was not done lately. Raises FailedError."""
        async with self._refresh_lock:
            moment = self._clock.now()
            if not force and self._refreshed_at is not None and moment < self._refreshed_at + _REFRESH_SECONDS:
                return
            stop = Event()
            try:
                await asyncio.to_thread(self._refresh_index, stop)
            except asyncio.CancelledError:
                stop.set()  # the thread cannot be ended, but it can be told
                raise
            self._refreshed_at = self._clock.now()

    def _refresh_index(self, stop: Event) -> None:
        self._check_root()
        try:
            self._update(stop)
        except IndexingStoppedError:
            return  # nobody waits for it
        except (OSError, sqlite3.OperationalError) as error:
            if self._is_temporary:
                raise self._failed_error(error, "unreachable") from error
            self._use_temporary(error)
            self._refresh_index(stop)

    def _check_root(self) -> None:
        """Raise FailedError for a folder that cannot be listed, and for a file that is no archive file."""
        try:
            self._root.stat()
            if self._root.is_dir():
                os.scandir(self._root).close()
            elif not self._root.is_file() or not is_archive_file(self._root):
                message = f"{self._root}: expected a folder, or a WARC, ARC or WACZ file, found something else"
                raise FailedError(message, self._archive, "malformed")
        except OSError as error:
            raise self._failed_error(error, "unreachable") from error
        except InputError as error:
            raise FailedError(str(error), self._archive, "unreachable") from error

    def _update(self, stop: Event) -> None:
        try:
            if not self._index.is_current():
                self._index.update(stop, self._on_file)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            # Not a database, or no whole one: what is in it can be had again.
            self._index.remove()
            self._index.update(stop, self._on_file)

    def _use_temporary(self, error: Exception) -> None:
        folder = Path(tempfile.mkdtemp(prefix="unlost-files-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._index, self._is_temporary = WarcFileIndex(self._root, folder / self._name), True
        if self._on_message is not None:
            self._on_message(
                f"{self._archive}: the index of {self._root} cannot be kept in {paths.cache_folder()}: {error}; it "
                "is made "
                "again each time. Set UNLOST_HOME to a folder that can be written"
            )

    def _failed_error(self, error: Exception, kind: str) -> FailedError:
        reason = error.strerror or error if isinstance(error, OSError) else error
        return FailedError(f"{self._root}: cannot be read: {reason}", self._archive, kind)


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
        async for capture in self._list_captures(key, key + "\0", datetime_negotiation.ALL_TIME):
            yield capture

    async def list_prefix(
        self, prefix: str, first: str | None = None, last: str | None = None
    ) -> AsyncIterator[Capture]:
        """Yield the captures below a prefix by key and date. Raises UriError, DateError, FailedError."""
        span = datetime_negotiation.pad_range(first, last)
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
        key, (first, last) = key_of(uri), datetime_negotiation.date_span(date)
        found = await self._index.query(lambda index: index.captures_near(key, last, _MAX_NEAREST))
        failure = None
        for each in sorted(
            found, key=lambda each: datetime_negotiation.distance_rank(each.capture.datetime, first, last)
        ):
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
