"""Where the copies of a recovery are kept: WARCs that are whole whatever happens."""

import base64
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from unlost import dates
from unlost.archives.bodies.body import new_body, pieces_of
from unlost.archives.repository import StoredCopy
from unlost.clock import Clock
from unlost.errors import ArchiveFileError, InputError
from unlost.formats.capture import Capture
from unlost.recover import warc_records
from unlost.recover.adoption import check_known, records_behind
from unlost.recover.http_head import headers_of, http_head
from unlost.recover.members import AS_IT_IS, LEVEL, TornError, packed
from unlost.recover.record import Record
from unlost.recover.warc_folder import WarcFolder, name_of, number_of
from unlost.recover.warc_reading import ForeignError, KeptRecord

_AT_ONCE = 1 << 20  # bytes: what is smaller is appended by one write
_OVERHEAD = 1 << 13  # bytes that headers and metadata take, beside addresses

# Types that are compressed by themselves: to do it again takes time and saves nothing.
_COMPRESSED = ("image/", "audio/", "video/", "font/woff", "application/font-woff", "application/zip",
    "application/gzip", "application/x-gzip", "application/x-7z", "application/x-rar", "application/vnd.rar",
    "application/x-bzip", "application/java-archive", "application/vnd.openxmlformats")  # fmt: skip
_NOT_COMPRESSED = ("image/svg", "image/bmp", "image/x-", "image/vnd.microsoft.icon", "audio/midi", "audio/wav")


@dataclass(slots=True)
class _Writing:
    """The file that is being written.

    name: its final name. file: its descriptor.
    size: bytes that are whole; what lies behind them is cut off before anything is appended.
    records: whether it has any beside its first.
    """

    name: str
    file: int
    size: int
    records: bool


class Warcs:
    """The WARCs of one recovery: a folder with `unlost-00001.warc.gz`, …; one is open at a time.

    docs/recovery-files.md says what is in them. Files are kept by one thread at a time, of one process: the lock of
    the state sees to that. Copies may be opened by any thread, at any time.

    folder: is made if it is not there; its parent must be. A link is refused, and so is one in it.
    software: who writes, for the first record of each file.
    max_bytes: how large a file may grow; one that has a single copy may be larger.

    Whatever it raises is an InputError, and then nothing of the call was kept.
    """

    def __init__(self, folder: Path, clock: Clock, software: str, *, max_bytes: int = 1 << 30) -> None:
        self._folder = WarcFolder(folder)
        self._clock = clock
        self._software = software
        self._max_bytes = max_bytes
        self._writing: _Writing | None = None
        self._last = 0
        self._is_ready = False
        self.cut = 0
        """Bytes that `adopt` cut off, torn by a kill or a loss of power."""

    def adopt(self, known: Mapping[str, int]) -> Iterator[Record]:
        """Yield every whole record that the state does not know, in order; then cut off what is torn at the end.

        known: for each file, by its final name, up to which byte the state knows its records: offset and size of its
            last one together. Files that the state does not know at all are read from their beginning.

        Exhaust it before anything is stored. Raises InputError for a file that is missing, shorter than what is known
        of it, damaged before its end, or not of a recovery.
        """
        self._folder.make()
        files = self._folder.files()
        check_known(self._folder, [name for name, _ in files], known)
        for name, is_open in files:
            start = end = known.get(name, 0)
            with self._folder.reading(name) as file, self._told(name):
                for record, end in records_behind(file, name, start):  # noqa: B007
                    if record is not None:
                        yield record
                size, has_records = os.fstat(file).st_size, start > 0
                has_records = end > 0 and (start > 0 or self._begins(file) < end)
            self._last = number_of(name) or 0
            if is_open:
                self._go_on(name, end, size, has_records=has_records)
            elif end < size:
                raise self._damaged(name, end)
        self._is_ready = True

    @staticmethod
    def _begins(file: int) -> int:
        """Return where the first record behind the one about the file begins."""
        return KeptRecord(file, 0).end()

    def _go_on(self, name: str, end: int, size: int, *, has_records: bool) -> None:
        """Cut off what is torn in a file that was not ended. The last of them is written further."""
        self.close()
        file = self._folder.appending(name, new=False)
        self._writing = _Writing(name, file, end, has_records)
        self.cut += size - end
        self._mend(self._writing)

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        """Say which file was not written here."""
        try:
            yield
        except ForeignError:
            message = "not a WARC of a recovery: move it away, and the same command goes on"
            raise InputError(f"{self._folder.path / name}: {message}") from None

    def _damaged(self, name: str, place: int) -> InputError:
        return ArchiveFileError(
            f"{self._folder.path / name}: damaged at byte {place}: put back the whole file, or move it away and delete "
            "state.sqlite: then what it had is asked for again"
        )

    def store(self, copy: StoredCopy, listed: Capture | None) -> Record:
        """Keep a copy, and return where. Its body is read to its end, and left at its beginning.

        listed: what the archive's index says of it.

        Raises UriError for an address and DateError for a date that no record can have: pass over that copy. Raises
        InputError if there is no room, or the file cannot be written: then it is as before, and what comes next is
        kept once there is room.
        """
        body = copy.body
        first, digest, length = _read(body)
        capture = replace(copy.capture, digest=digest, length=length, revisit=False, revisit_of=None)
        record = self._new(capture, listed.digest if listed else None, copy.source, copy.truncated)
        head, left_out = http_head(capture.status, copy.headers, length, capture.mime, capture.redirect)
        block_digest = _digest(chain([head], _again(first, body)))
        begin = warc_records.response_head(record, block_digest, len(head) + length)
        about = warc_records.metadata(record, left_out)
        size = len(begin) + len(head) + length
        text = chain([begin + head], _again(first, body), [warc_records.END])
        return self._append(record, packed(text, size, _level(capture.mime)), about, size)

    def store_same(self, capture: Capture, of: Record) -> Record:
        """Keep a capture whose body is known, from an index, to be that of a record here; return where.

        What the index does not tell of it is taken to be as in the record. Raises as `store` does.
        """
        before = of.capture
        original, place = self._original(of)
        status = before.status if capture.status is None else capture.status
        same = replace(
            capture,
            status=status,
            mime=before.mime if capture.mime is None else capture.mime,
            redirect=before.redirect if capture.redirect is None and status == before.status else capture.redirect,
            digest=before.digest,
            length=before.length,
            revisit=True,
            revisit_of=before.revisit_of or (before.uri, before.datetime),
        )
        record = self._new(same, capture.digest, of.source, of.truncated)
        told = (same.status, same.mime, same.redirect)
        # A head of its own only where the index knows better: the old one has all headers.
        is_as_before = told == (before.status, before.mime, before.redirect)
        head = b"" if is_as_before else http_head(same.status, (), None, same.mime, same.redirect)[0]
        begin = warc_records.revisit_head(record, original, place, _digest([head]), len(head))
        about = warc_records.metadata(record, 0)
        size = len(begin) + len(head)
        return self._append(record, packed([begin + head + warc_records.END], size), about, size)

    def _original(self, of: Record) -> tuple[str, str]:
        """Return the id of the record that has the body, and its place."""
        if not of.capture.revisit:
            return warc_records.record_id(of), f"{of.file} {of.offset}"
        with self._kept(of) as (kept, _):
            return kept.fields["WARC-Refers-To"], kept.fields[warc_records.REFERS_TO]

    def _new(
        self, capture: Capture, listed_digest: str | None, source: str | None, truncated: str | None
    ) -> Record:
        recovered = dates.from_epoch(str(int(self._clock.now())))
        return Record(capture, listed_digest, source, truncated, recovered, "", 0, 0)

    def _append(self, record: Record, packed_record: Iterator[bytes], about: bytes, size: int) -> Record:
        """Append a record and its metadata, as one, to the open file, or to a new one if that is full."""
        if not self._is_ready:
            raise RuntimeError("exhaust `adopt` before anything is stored")
        writing = self._room(size + (size >> 10) + len(about) + _OVERHEAD)
        offset = writing.size
        self._write(writing, chain(packed_record, packed([about], len(about))))
        writing.records = True
        return replace(record, file=writing.name, offset=offset, size=writing.size - offset)

    def _room(self, size: int) -> _Writing:
        """Return the file that so many bytes go to."""
        writing = self._writing
        if writing is not None and writing.records and writing.size + size > self._max_bytes:
            self.close()
            writing = None
        if writing is None:
            name = name_of(self._last + 1)
            writing = self._writing = _Writing(name, self._folder.appending(name, new=True), 0, records=False)
            self._last += 1
        if writing.size == 0:
            moment = dates.from_epoch(str(int(self._clock.now())))
            info = warc_records.warcinfo(writing.name, self._software, moment)
            self._write(writing, packed([info], len(info)))
        return writing

    def _write(self, writing: _Writing, pieces: Iterator[bytes]) -> None:
        """Append all pieces or none: small ones together, by one write."""
        self._mend(writing)
        end = writing.size
        try:
            for data in _gathered(pieces):
                view = memoryview(data)
                while view:
                    count = os.write(writing.file, view)
                    view, end = view[count:], end + count
        except BaseException as error:
            self._mend(writing)
            if isinstance(error, OSError):
                raise self._folder.unwritten(writing.name, error) from error
            raise
        writing.size = end

    def _mend(self, writing: _Writing) -> None:
        """Cut off what lies behind the last whole record."""
        try:
            if os.fstat(writing.file).st_size > writing.size:
                os.ftruncate(writing.file, writing.size)
        except OSError as error:
            raise self._folder.unwritten(writing.name, error) from error

    def open(self, record: Record) -> StoredCopy:
        """Return what was stored; of a revisit, with the body of the record that it refers to, and its headers if the
        revisit has none of its own.

        Headers come as they are kept: without what no header can have. Raises ArchiveFileError if it is not there any
        more, or not as it was.
        """
        with self._kept(record) as (kept, _):
            head = kept.http_head()
            if not record.capture.revisit:
                return StoredCopy(record.capture, headers_of(head), self._body(kept, record), record.truncated, record.source)
            name, _, offset = kept.fields[warc_records.REFERS_TO].partition(" ")
        with self._kept(replace(record, file=name, offset=int(offset))) as (original, _):
            headers = headers_of(original.http_head())
            if head:
                headers = headers_of(head)
            return StoredCopy(record.capture, headers, self._body(original, record), record.truncated, record.source)

    def close(self) -> None:
        """End the open file: it gets its final name, and is on the disk. One without a copy goes."""
