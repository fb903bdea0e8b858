"""Where the copies of a recovery are kept: WARCs that are whole whatever happens."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

from unlost.archives.repository import StoredCopy
from unlost.clock import Clock
from unlost.errors import ArchiveFileError, InputError
from unlost.formats.capture import Capture
from unlost.formats.warc_writing.digests import digests_of
from unlost.formats.warc_writing.folder import WarcFolder
from unlost.formats.warc_writing.http_head import http_head
from unlost.formats.warc_writing.kept_record import ForeignError
from unlost.formats.warc_writing.members import LEVEL, packed
from unlost.formats.warc_writing.payload import Payload, level_for
from unlost.formats.warc_writing.records import END
from unlost.formats.warc_writing.volumes import Volumes
from unlost.recover import warc_records
from unlost.recover.adoption import check_known, records_behind
from unlost.recover.kept_copies import open_copy, original_of
from unlost.recover.record import Record


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
        self._volumes = Volumes(self._folder, clock, software, max_bytes)
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
            self._volumes.pass_by(name)
            if is_open:
                self.cut += self._volumes.go_on(name, end, has_copies=has_copies)
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
        body = Payload(copy.body)
        length = body.length
        told = copy.capture
        head, left_out = http_head(told.status, copy.headers, length, told.mime, told.redirect)
        digest, block = digests_of(head, body.pieces())
        capture = replace(told, digest=digest, length=length, revisit=False, revisit_of=None)
        record = self._new(capture, listed.digest if listed else None, copy.source, copy.truncated)
        number = warc_records.record_id(record)
        begin = warc_records.response_head(record, number, block, len(head) + length) + head
        text = chain([begin], body.pieces(), [END])
        about = warc_records.metadata(record, number, left_out)
        kept = self._append(record, text, len(begin) + length, level_for(capture.mime), about)
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
        text += head + END
        return self._append(record, [text], len(text), LEVEL, warc_records.metadata(record, number, 0))

    def _new(self, capture: Capture, listed_digest: str | None, source: str | None, truncated: str | None) -> Record:
        """Return a record that has no place yet."""
        return Record(capture, listed_digest, source, truncated, self._volumes.now(), "", 0, 0)

    def _append(self, record: Record, text: Iterable[bytes], size: int, level: int, about: bytes) -> Record:
        """Append a record of so many bytes, and the one about it, as one; return it with its place."""
        if not self._is_ready:
            raise RuntimeError("exhaust `adopt` before anything is stored")
        members = chain(packed(text, size, level), packed([about], len(about)))
        file, offset, kept = self._volumes.append(members, size + len(about))
        return replace(record, file=file, offset=offset, size=kept)

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
        self._volumes.sync()

    def close(self) -> None:
        """End the open file: it gets its final name. The next copy would begin another one."""
        self._volumes.close()
