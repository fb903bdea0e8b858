"""The copies of pages in archive files: a record's body, and for a record without one, that of the one it speaks of."""

import os
from pathlib import Path

from unlost.archives.archive import Archive
from unlost.archives.bodies import warc_copy
from unlost.archives.local.file_index import WarcFileIndex
from unlost.archives.local.file_records import RecordOpener
from unlost.archives.local.file_tables import IndexedCapture
from unlost.archives.repository import FetchedCapture
from unlost.errors import ArchiveFileError, FailedError
from unlost.formats.warc import StoredRecord

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
            return warc_copy.apply_revisit(record, found.capture, copy)
        raise failure

    def _open(self, found: IndexedCapture) -> StoredRecord:
        path = self._root if self._root.is_file() else self._root / os.fsdecode(found.path)
        try:
            record = self._records.open(path, found.member, found.capture.offset or 0, found.capture.skip or 0)
        except (ArchiveFileError, OSError) as error:
            raise FailedError(str(error), self._archive.id, "malformed") from error
        warc_copy.check_record_identity(record, found.capture, self._archive)
        return record

    def _with_body(self, record: StoredRecord, found: IndexedCapture) -> FetchedCapture:
        try:
            return warc_copy.read_capture(record, found.capture, self._archive, self._max_bytes)
        except OSError as error:
            raise FailedError(str(error), self._archive.id, "malformed") from error
