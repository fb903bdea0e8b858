"""Archive client for local files: a directory of WARC, ARC and WACZ files, or one such file.

The files are indexed on first use in the user's cache directory, and again when they change. The body of a revisit is
that of the record to which it refers, or of a record with the same digest. A record must have the URL and date that the
index says; otherwise its file is indexed again.
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
from unlost.archives.cdx import PrefixQuery
from unlost.archives.warc_file_index import IndexedCapture, IndexingStoppedError, WarcFileIndex
from unlost.capture import Capture
from unlost.clock import Clock, SystemClock
from unlost.errors import ArchiveFileError, FailedError, InputError, UsageError
from unlost.http.models import MAX_BODY_BYTES
from unlost.index.warc_index import is_archive_file
from unlost.problems import Problems
from unlost.registry.models import Archive
from unlost.uri import key as key_of
from unlost.warc import reader, wacz
from unlost.warc.reader import StoredRecord

MAX_EXTRACTED_BYTES = 4 << 30
"""Largest deflated WARC file that is extracted from a WACZ."""
_MAX_EXTRACTED_WARCS = 2  # extracted files at a time, to limit disk space
_COPY_BYTES = 1 << 16
_DAMAGE_ERRORS = (zipfile.BadZipFile, EOFError, zlib.error)
_MAX_ORIGINALS = 10  # records that may have the body of a revisit
_MAX_NEAREST = 10  # captures on each side of a date that are tried if the closest one cannot be read
_REFRESH_SECONDS = 10.0  # between checks for new and changed files
_PAGE_ROWS = 500

_T = TypeVar("_T")


class RecordOpener:
    """Opens records, and caches WARC files extracted from a WACZ during its lifetime. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._extracted: dict[tuple[Path, str, int, int], Path] = {}
        self._extracted_count = 0

    def open(self, path: Path, member: str | None, offset: int, skip: int) -> StoredRecord:
        """Open a record. Raises ArchiveFileError, OSError."""
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
        """Return an extracted WARC file. A record that is open stays readable after the file is deleted."""
        path_stat = path.stat()
        name = (path, info.filename, path_stat.st_size, path_stat.st_mtime_ns)
        if name in self._extracted:
            return self._extracted[name]
        while len(self._extracted) >= _MAX_EXTRACTED_WARCS:
            self._extracted.pop(next(iter(self._extracted))).unlink(missing_ok=True)
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="unlost-wacz-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._extracted_count += 1
        file = self._folder / str(self._extracted_count)
        remaining = MAX_EXTRACTED_BYTES
        try:
            # Damage ends the extraction; the record may be before it.
            with archive.open(info) as source, file.open("wb") as target, suppress(*_DAMAGE_ERRORS):
                while remaining >= 0 and (piece := source.read(_COPY_BYTES)):
                    remaining -= len(piece)
                    target.write(piece)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
            file.unlink(missing_ok=True)
            raise ArchiveFileError(f"{path}/{info.filename}: {error}") from None
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        if remaining < 0:
            file.unlink()
            message = f"{path}/{info.filename}: expected at most {MAX_EXTRACTED_BYTES} bytes in a deflated WARC"
            raise ArchiveFileError(message)
        self._extracted[name] = file
        return file


class FileCaptureReader:
    """Reads captures from the files below a directory, or from one file. Call it in a thread.

    Args:
        archive: The archive's entry in the registry.
        root: The directory or file.
        max_bytes: Largest body that is returned.
    """

    def __init__(self, archive: Archive, root: Path, max_bytes: int) -> None:
        self._archive = archive
        self._root = root
        self._max_bytes = max_bytes
        self._records = RecordOpener()

    def read(self, indexed: IndexedCapture, index: WarcFileIndex) -> FetchedCapture:
        """Return a capture with its body. Raises FailedError, of kind `malformed` if no file has the body."""
        record = self._open(indexed)
        if not indexed.capture.revisit:
            return self._with_body(record, indexed)
        failure = FailedError(
            f"{indexed.capture.filename}: the record says `as before`, and what was before is not in these files",
            self._archive.id,
            "malformed",
        )
        for original in index.find_originals(indexed.capture, _MAX_ORIGINALS):
            try:
                fetched = self._with_body(self._open(original), original)
            except FailedError as error:
                failure = error
                continue
            return warc_capture.apply_revisit(record, indexed.capture, fetched)
        raise failure

    def _open(self, indexed: IndexedCapture) -> StoredRecord:
        path = self._root if self._root.is_file() else self._root / os.fsdecode(indexed.path)
        try:
            record = self._records.open(path, indexed.member, indexed.capture.offset or 0, indexed.capture.skip or 0)
        except (ArchiveFileError, OSError) as error:
            raise FailedError(str(error), self._archive.id, "malformed") from error
        warc_capture.check_record_identity(record, indexed.capture, self._archive)
        return record

    def _with_body(self, record: StoredRecord, indexed: IndexedCapture) -> FetchedCapture:
        try:
            return warc_capture.read_capture(record, indexed.capture, self._archive, self._max_bytes)
        except OSError as error:
            raise FailedError(str(error), self._archive.id, "malformed") from error


class IndexUpdater:
    """Opens and updates the index of the archive files below a directory.

    The index is in the user's cache directory, or in a temporary one if that is not writable.

    Args:
        root: The directory or file.
        archive: ID of the archive, for errors.
        clock: Clock for the interval between checks.
        on_message: Receives warnings, in another thread.
        on_file: Receives the name of each file that is indexed, in another thread.
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
        """Return the result of a query, which runs in a thread. Raises FailedError."""
        await self.refresh()
        try:
            return await asyncio.to_thread(query, self._index)
        except sqlite3.DatabaseError:
            # Damaged, or deleted by a clean-up of the cache: it is created again, once.
            await self.refresh(force=True)
        try:
            return await asyncio.to_thread(query, self._index)
        except sqlite3.DatabaseError as error:
            raise FailedError(
                f"the index of {self._root} cannot be read: {error}", self._archive, "malformed"
            ) from error

    async def refresh(self, *, force: bool = False) -> None:
        """Check for new, changed and deleted files, unless that was done recently. Raises FailedError."""
        async with self._refresh_lock:
            moment = self._clock.now()
            if not force and self._refreshed_at is not None and moment < self._refreshed_at + _REFRESH_SECONDS:
                return
            stop = Event()
            try:
                await asyncio.to_thread(self._refresh_index, stop)
            except asyncio.CancelledError:
                stop.set()  # a thread cannot be cancelled, but polls this
                raise
            self._refreshed_at = self._clock.now()

    def _refresh_index(self, stop: Event) -> None:
        self._check_root()
        try:
            self._update(stop)
        except IndexingStoppedError:
            return  # the caller was cancelled
        except (OSError, sqlite3.OperationalError) as error:
            if self._is_temporary:
                raise self._failed_error(error, "unreachable") from error
            self._use_temporary(error)
            self._refresh_index(stop)

    def _check_root(self) -> None:
        """Raise FailedError for a directory that cannot be listed, and for a file that is not an archive file."""
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
            # Not a database, or a damaged one: the files are indexed again.
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


class WarcFilesClient:
    """Archive client for all archive files below `archive.folder`, or for a single file.

    The files are indexed on first use, in an SQLite file in the user's cache directory, and again when they change.
    Captures have a `filename` relative to the directory, and no URI-M.

    Args:
        archive: The archive's entry in the registry.
        max_bytes: Largest body that is returned.
        clock: Clock for the interval between checks for changed files.
        on_message: Receives warnings, in another thread.
        on_file: Receives the name of each file that is indexed, in another thread.
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
        """The archive's entry in the registry."""
        return self._archive

    async def captures(self, uri: str) -> AsyncIterator[Capture]:
        """Yield the captures of a URL by date, with any status. Raises UriError, FailedError."""
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
        """Return the capture that is named by file and offset, else the closest to its date. Raises FailedError.

        The body of a revisit is that of the record that it names, else of one with the same digest.
        """
        if capture.key is not None and capture.offset is not None:
            indexed = await self._index.query(lambda index: index.find_record(capture))
            try:
                if indexed is not None:
                    return await self._read(indexed)
            except FailedError as error:
                if error.kind not in ("foreign", "malformed"):
                    raise
                await self._index.refresh(force=True)  # the file may have changed since it was indexed
                indexed = await self._index.query(lambda index: index.find_record(capture))
                if indexed is not None:
                    return await self._read(indexed)
        return await self.get(capture.uri, capture.datetime)

    async def get(self, uri: str, date: str | None = None) -> FetchedCapture | None:
        """Return the capture closest to a date, or the last one. Raises UriError, DateError, FailedError.

        If a capture cannot be read, the next closest is returned.
        """
        key, (first, last) = key_of(uri), datetime_negotiation.date_span(date)
        nearest = await self._index.query(lambda index: index.captures_near(key, last, _MAX_NEAREST))
        failure = None
        for each in sorted(
            nearest, key=lambda each: datetime_negotiation.distance_rank(each.capture.datetime, first, last)
        ):
            try:
                return await self._read(each)
            except FailedError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return None

    async def last_capture_date(self, uri: str) -> str | None:
        """Return the date of the last capture of a URL, 14 digits. Raises UriError, FailedError."""
        key = key_of(uri)
        return await self._index.query(lambda index: index.last_date(key))

    async def problems(self) -> Problems:
        """Return what could not be read in the files: kinds as in docs/formats.md, and `unreadable` files."""
        return await self._index.query(WarcFileIndex.problems)

    async def _list_captures(self, low: str, high: str, span: tuple[str, str]) -> AsyncIterator[Capture]:
        position = None
        while page := await self._index.query(partial(_query_page, low, high, span, position)):
            for indexed in page:
                capture = indexed.capture
                yield replace(capture, archive=self._archive.id, migrated=self._archive.is_migrated(capture.mime))
            position = page[-1].position

    async def _read(self, indexed: IndexedCapture) -> FetchedCapture:
        return await self._index.query(lambda index: self._captures_reader.read(indexed, index))


def _query_page(
    low: str, high: str, span: tuple[str, str], position: tuple[str, str, int] | None, index: WarcFileIndex
) -> list[IndexedCapture]:
    return index.captures_between(low, high, span, position, _PAGE_ROWS)
