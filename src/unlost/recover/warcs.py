"""Where the copies of a recovery are kept: WARCs that are whole whatever happens."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from unlost import dates
from unlost.archives.bodies.body import pieces_of
from unlost.archives.repository import StoredCopy
from unlost.clock import Clock
from unlost.errors import ArchiveFileError, InputError
from unlost.formats.capture import Capture
from unlost.recover import warc_records
from unlost.recover.adoption import check_known, records_behind
from unlost.recover.digests import digests_of
from unlost.recover.http_head import http_head
from unlost.recover.kept_copies import open_copy, original_of
from unlost.recover.members import AS_IT_IS, LEVEL, packed
from unlost.recover.record import Record
from unlost.recover.warc_file import WarcFile
from unlost.recover.warc_folder import WarcFolder, name_of, number_of
from unlost.recover.warc_reading import ForeignError

_IN_MEMORY = 1 << 20  # bytes of a body that is read once; a larger one is read from its file twice
_OVERHEAD = 1 << 13  # bytes: more than gzip adds to what it cannot make smaller, beside one in a thousand

# Types that are compressed by themselves: to do it again takes time and saves nothing.
_COMPRESSED = (
    "image/avif", "image/gif", "image/jp", "image/pjpeg", "image/png", "image/webp", "audio/aac", "audio/mp",
    "audio/ogg", "audio/webm", "video/", "font/woff", "application/font-woff", "application/x-font-woff",
    "application/zip", "application/x-zip", "application/gzip", "application/x-gzip", "application/x-7z",
    "application/x-rar", "application/vnd.rar", "application/x-bzip", "application/x-xz", "application/java-archive",
    "application/vnd.openxmlformats", "application/vnd.oasis", "application/epub", "application/ogg",
)  # fmt: skip


class Warcs:
    """The WARCs of one recovery: a folder with `unlost-00001.warc.gz`, …; one is open at a time.

    docs/recovery-files.md says what is in them. Copies are stored by one thread at a time, of one process: the lock of
    the recovery's state sees to that. They may be opened by any thread, at any time, also before `adopt`.

    folder: is made by `adopt` if it is not there; its parent must be. A link is refused, and so is one in it.
    software: who writes, for the first record of each file.
    max_bytes: how large a file may grow; one that has a single copy may be larger.
    cut: how many bytes `adopt` cut off, torn by a kill or a loss of power.

    Everything it raises is an InputError; a call that raises has kept nothing.
    """

    def __init__(self, folder: Path, clock: Clock, software: str, *, max_bytes: int = 1 << 30) -> None:
        self.cut = 0
        self._folder = WarcFolder(folder)
        self._clock = clock
        self._software = software
        self._max_bytes = max_bytes
        self._writing: WarcFile | None = None
        self._last = 0
        self._is_ready = False

    def adopt(self, known: Mapping[str, int]) -> Iterator[Record]:
        """Yield every whole record that the state does not know, in order; then cut off what is torn at the end.

        known: for each file, by its final name, up to which byte the state knows its records: offset and size of its
            last one together. Files that the state does not know at all are read from their beginning.

        Exhaust it before anything is stored. Raises InputError for a file that is missing, shorter than what is known
        of it, damaged although it was ended, or not of a recovery.
        """
        self.close()
        self._folder.make()
        files = self._folder.files()
        check_known(self._folder, [name for name, _ in files], known)
        for name, is_open in files:
            end = known.get(name, 0)
            has_copies = end > 0
            with self._folder.reading(name) as file, self._ours(name):
                for record, end in records_behind(file, name, end):  # noqa: B007, B020  the last end is wanted
                    if record is not None:
                        has_copies = True
                        yield record
                size = os.fstat(file).st_size
            self._last = number_of(name) or 0
            if is_open:
                self.close()  # only the last one is written further
                self._writing = WarcFile(self._folder, name, end, has_copies=has_copies)
                self.cut += self._writing.mend()
            elif end < size:
                raise self._damaged(name, end)
        self._is_ready = True

    @contextmanager
    def _ours(self, name: str) -> Iterator[None]:
        """Say which file was not written here."""
        try:
            yield
        except ForeignError:
            message = "not a WARC of this recovery: move it away, and the same command goes on"
            raise ArchiveFileError(f"{self._folder.path / name}: {message}") from None

    def _damaged(self, name: str, place: int) -> InputError:
        return ArchiveFileError(
            f"{self._folder.path / name}: damaged at byte {place}: put back the whole file, or move it away and delete "
            "state.sqlite: what it had is then asked for again"
        )

    def store(self, copy: StoredCopy, listed: Capture | None) -> Record:
        """Keep a copy, and return where. Its body is read to its end, and left at its beginning.

        listed: what the archive's index says of it.

        Raises UriError for an address and DateError for a date that no record can have: pass over that copy. Any other
        InputError says that nothing can be written now: the file is as before, and takes more once there is room.
        """
        body, length = _body(copy.body)
        told = copy.capture
        head, left_out = http_head(told.status, copy.headers, length, told.mime, told.redirect)
        digest, block = digests_of(head, _pieces(body))
        capture = replace(told, digest=digest, length=length, revisit=False, revisit_of=None)
        record = self._new(capture, listed.digest if listed else None, copy.source, copy.truncated)
        number = warc_records.record_id(record)
        begin = warc_records.response_head(record, number, block, len(head) + length) + head
        text = chain([begin], _pieces(body), [warc_records.END])
        about = warc_records.metadata(record, number, left_out)
        kept = self._append(record, text, len(begin) + length, _level(capture.mime), about)
        copy.body.seek(0)
        return kept

    def store_same(self, capture: Capture, of: Record) -> Record:
        """Keep a capture whose body is known, from an index, to be that of a record here; return where.

        What the index does not tell of it is taken to be as in that record. Raises as `store` does, and
        ArchiveFileError if the record is not there any more.
        """
        before = of.capture
        original = original_of(self._folder, of)
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
        # A head of its own only where the index knows better: that of the original has all headers.
        is_as_before = (status, same.mime, same.redirect) == (before.status, before.mime, before.redirect)
        head = b"" if is_as_before else http_head(status, (), None, same.mime, same.redirect)[0]
        number = warc_records.record_id(record)
        text = warc_records.revisit_head(record, number, original, digests_of(head, ())[1], len(head))
        text += head + warc_records.END
        return self._append(record, [text], len(text), LEVEL, warc_records.metadata(record, number, 0))

    def _new(self, capture: Capture, listed_digest: str | None, source: str | None, truncated: str | None) -> Record:
        """Return a record that has no place yet."""
        return Record(capture, listed_digest, source, truncated, self._now(), "", 0, 0)

    def _now(self) -> str:
        return dates.from_epoch(str(int(self._clock.now())))

    def _append(self, record: Record, text: Iterable[bytes], size: int, level: int, about: bytes) -> Record:
        """Append a record of so many bytes, and the one about it, as one; return it with its place."""
        if not self._is_ready:
            raise RuntimeError("exhaust `adopt` before anything is stored")
        file = self._file_for(size + (size >> 10) + len(about) + _OVERHEAD)
        offset = file.size
        file.append(chain(packed(text, size, level), packed([about], len(about))))
        file.has_copies = True
        return replace(record, file=file.name, offset=offset, size=file.size - offset)

    def _file_for(self, size: int) -> WarcFile:
        """Return the file that so many bytes go to, with its first record in it."""
        file = self._writing
        if file is not None and file.has_copies and file.size + size > self._max_bytes:
            self.close()
            file = None
        if file is None:
            file = self._writing = WarcFile(self._folder, name_of(self._last + 1))
            self._last += 1
        if file.size == 0:
            info = warc_records.warcinfo(file.name, self._software, self._now())
            file.append(packed([info], len(info)))
        return file

    def open(self, record: Record) -> StoredCopy:
        """Return what was stored; of a revisit, with the body of the record that it refers to.

        Its headers come as they are kept: docs/recovery-files.md says what cannot be. Raises ArchiveFileError, or
        another InputError, if the record is not there any more, or not as it was.
        """
        return open_copy(self._folder, record)

    def size_of(self, name: str) -> int:
        """Return how many bytes a file has, by its final name. Raises InputError if it is not there."""
        with self._folder.reading(name) as file:
            return os.fstat(file).st_size

    def sync(self) -> None:
        """Return when everything that was stored is on the disk: after that, a loss of power takes none of it."""
        if self._writing is not None:
            self._writing.sync()

    def close(self) -> None:
        """End the open file: it gets its final name. The next copy would begin another one."""
        file, self._writing = self._writing, None
        if file is not None:
            file.end()


def _body(body: BinaryIO) -> tuple[bytes | BinaryIO, int]:
    """Return a body, or its bytes if they are few, and how many there are."""
    body.seek(0)
    first = body.read(_IN_MEMORY)
    if len(first) < _IN_MEMORY:
        return first, len(first)
    return body, body.seek(0, os.SEEK_END)


def _pieces(body: bytes | BinaryIO) -> Iterator[bytes]:
    """Yield all of a body, however often that is asked for."""
    if isinstance(body, bytes):
        yield body
        return
    body.seek(0)
    yield from pieces_of(body)


def _level(mime: str | None) -> int:
    return AS_IT_IS if mime is not None and mime.startswith(_COMPRESSED) else LEVEL
