"""From a record in a recovery's WARCs back to the copy that was stored."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from unlost.archives.bodies.body import new_body
from unlost.archives.repository import StoredCopy
from unlost.errors import ArchiveFileError
from unlost.formats.warc_writing.digests import sha1_digest
from unlost.formats.warc_writing.folder import WarcFolder, number_of
from unlost.formats.warc_writing.http_head import headers_of
from unlost.formats.warc_writing.kept_record import ForeignError, KeptRecord
from unlost.formats.warc_writing.members import TornError
from unlost.recover.record import Record
from unlost.recover.warc_records import REFERS_TO, record_id


def original_of(folder: WarcFolder, record: Record) -> tuple[str, str, int]:
    """Return which record has the body of a record: its id, its file and its offset in bytes.

    Raises ArchiveFileError if a revisit is not there any more, or not as it was.
    """
    if not record.capture.revisit:
        return record_id(record), record.file, record.offset
    with _kept(folder, record.file, record.offset, record_id(record)) as revisit:
        return _referred(revisit)


def open_copy(folder: WarcFolder, record: Record) -> StoredCopy:
    """Return the copy that a record keeps; of a revisit, with the body of its original.

    A revisit without headers of its own has those of its original, too. Raises ArchiveFileError, or another InputError,
    if it is not there any more, or not as it was.
    """
    headers = None
    number, file, offset = record_id(record), record.file, record.offset
    if record.capture.revisit:
        with _kept(folder, file, offset, number) as revisit:
            if head := revisit.http_head():
                headers = headers_of(head)
            number, file, offset = _referred(revisit)
    with _kept(folder, file, offset, number) as kept:
        came = headers_of(kept.http_head())
        body = _body(kept, record.capture.digest)
    return StoredCopy(record.capture, came if headers is None else headers, body, record.truncated, record.source)


def first_bytes(folder: WarcFolder, record: Record, count: int) -> bytes:
    """Return the beginning of the body that a record keeps, at most so many bytes; the rest is not looked at.

    Raises as `open_copy`, for what it looks at.
    """
    number, file, offset = original_of(folder, record)
    with _kept(folder, file, offset, number) as kept:
        kept.http_head()
        found = b""
        for piece in kept.pieces():
            found += piece
            if len(found) >= count:
                break
        return found[:count]


@contextmanager
def _kept(folder: WarcFolder, file: str, offset: int, number: str) -> Iterator[KeptRecord]:
    """Give the record with that id at that place."""
    try:
        with folder.reading(file) as opened:
            yield _checked(KeptRecord(opened, offset), number)
    except (TornError, ForeignError):
        message = f"expected at byte {offset} the record that was kept there, found something else, or damage"
        raise ArchiveFileError(f"{folder.path / file}: {message}: put back the whole file") from None


def _checked(kept: KeptRecord, number: str) -> KeptRecord:
    if kept.fields.get("WARC-Record-ID") != number:
        raise ForeignError
    return kept


def _referred(revisit: KeptRecord) -> tuple[str, str, int]:
    file, _, offset = revisit.fields.get(REFERS_TO, "").partition(" ")
    if not offset.isdecimal() or number_of(file) is None:  # never a path to somewhere else
        raise ForeignError
    return revisit.fields.get("WARC-Refers-To", ""), file, int(offset)


def _body(kept: KeptRecord, digest: str | None) -> BinaryIO:
    """Return the body at its beginning, once all of it was seen to be as it was."""
    body, hashed = new_body(), hashlib.sha1(usedforsecurity=False)
    try:
        for piece in kept.pieces():
            hashed.update(piece)
            body.write(piece)
        kept.end()
    except BaseException:
        body.close()
        raise
    if sha1_digest(hashed) != digest:
        body.close()
        raise ForeignError
    body.seek(0)
    return body
