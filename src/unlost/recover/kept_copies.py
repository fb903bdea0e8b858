"""From a record in a recovery's WARCs back to the copy that was stored."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from unlost.archives.bodies.body import new_body
from unlost.archives.repository import FetchedCapture
from unlost.errors import ArchiveFileError
from unlost.formats.warc_writing.digests import format_sha1
from unlost.formats.warc_writing.folder import WarcFolder, segment_number
from unlost.formats.warc_writing.http_head import parse_http_head
from unlost.formats.warc_writing.kept_record import ForeignRecordError, WrittenRecord
from unlost.formats.warc_writing.members import TruncatedRecordError
from unlost.recover.record import RecoveryRecord
from unlost.recover.warc_records import REFERS_TO, record_id


def find_original(folder: WarcFolder, record: RecoveryRecord) -> tuple[str, str, int]:
    """Return which record has the body of a record: its id, its file and its offset in bytes.

    Raises ArchiveFileError if a revisit is not there any more, or not as it was.
    """
    if not record.capture.revisit:
        return record_id(record), record.file, record.offset
    with _open_record(folder, record.file, record.offset, record_id(record)) as revisit:
        return _referred_record(revisit)


def open_capture(folder: WarcFolder, record: RecoveryRecord) -> FetchedCapture:
    """Return the copy that a record keeps; of a revisit, with the body of its original.

    A revisit without headers of its own has those of its original, too. Raises ArchiveFileError, or another InputError,
    if it is not there any more, or not as it was.
    """
    headers = None
    number, file, offset = record_id(record), record.file, record.offset
    if record.capture.revisit:
        with _open_record(folder, file, offset, number) as revisit:
            if head := revisit.http_head():
                headers = parse_http_head(head)
            number, file, offset = _referred_record(revisit)
    with _open_record(folder, file, offset, number) as kept:
        came = parse_http_head(kept.http_head())
        body = _verified_body(kept, record.capture.digest)
    return FetchedCapture(record.capture, came if headers is None else headers, body, record.truncated, record.source)


def read_first_bytes(folder: WarcFolder, record: RecoveryRecord, count: int) -> bytes:
    """Return the beginning of the body that a record keeps, at most so many bytes; the rest is not looked at.

    Raises as `open_copy`, for what it looks at.
    """
    number, file, offset = find_original(folder, record)
    with _open_record(folder, file, offset, number) as kept:
        kept.http_head()
        found = b""
        for piece in kept.pieces():
            found += piece
            if len(found) >= count:
                break
        return found[:count]


@contextmanager
def _open_record(folder: WarcFolder, file: str, offset: int, number: str) -> Iterator[WrittenRecord]:
    """Give the record with that id at that place."""
    try:
        with folder.open_to_read(file) as opened:
            yield _check_record_id(WrittenRecord(opened, offset), number)
    except (TruncatedRecordError, ForeignRecordError):
        message = f"expected at byte {offset} the record that was kept there, found something else, or damage"
        raise ArchiveFileError(f"{folder.path / file}: {message}: put back the whole file") from None


def _check_record_id(stored: WrittenRecord, number: str) -> WrittenRecord:
    if stored.fields.get("WARC-Record-ID") != number:
        raise ForeignRecordError
    return stored


def _referred_record(revisit: WrittenRecord) -> tuple[str, str, int]:
    file, _, offset = revisit.fields.get(REFERS_TO, "").partition(" ")
    if not offset.isdecimal() or segment_number(file) is None:  # never a path to somewhere else
        raise ForeignRecordError
    return revisit.fields.get("WARC-Refers-To", ""), file, int(offset)


def _verified_body(stored: WrittenRecord, digest: str | None) -> BinaryIO:
    """Return the body at its beginning, once all of it was seen to be as it was."""
    body, hashed = new_body(), hashlib.sha1(usedforsecurity=False)
    try:
        for piece in stored.pieces():
            hashed.update(piece)
            body.write(piece)
        stored.end()
    except BaseException:
        body.close()
        raise
    if format_sha1(hashed) != digest:
        body.close()
        raise ForeignRecordError
    body.seek(0)
    return body
