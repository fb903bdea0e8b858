"""Records of a recovery's WARCs, read to their end to see that they are as they were kept."""

import hashlib
from dataclasses import dataclass

from unlost.formats.warc_writing.digests import format_sha1
from unlost.formats.warc_writing.folder import segment_number
from unlost.formats.warc_writing.http_head import parse_http_head
from unlost.formats.warc_writing.kept_record import ForeignRecordError, WrittenRecord
from unlost.formats.warc_writing.members import TruncatedRecordError
from unlost.recover.record import RecoveryRecord
from unlost.recover.warc_records import REFERS_TO, parse_metadata

BODY_PREFIX_BYTES = 1 << 16
"""Bytes of a body that are kept: titles stand there."""

RecordLocation = tuple[int, int]
"""Where a record is: the number of its file, its offset in bytes."""


class BadRecordError(Exception):
    """A record that is not as it was kept; the message says how. Never seen by users: it is counted as a problem."""


@dataclass(frozen=True, slots=True)
class VerifiedRecord:
    """A record, and the metadata behind it, both whole, with the digests that they should have.

    record: what the metadata tells; its size is that of both. number: its WARC-Record-ID.
    headers, beginning: of the answer; those of a revisit may be none.
    refers_to: of a revisit, the id and the place of the record with its body.
    """

    record: RecoveryRecord
    record_id: str
    headers: tuple[tuple[str, str], ...]
    body_prefix: bytes
    refers_to: tuple[str, RecordLocation] | None


def read_verified(file: int, name: str, offset: int) -> VerifiedRecord:
    """Return the record at an offset of an open file, once all of it was read. Raises BadRecordError.

    name: the final name of the file.
    """
    try:
        kept = _read_record(file, offset, "response", "revisit")
        head = kept.http_head()
        beginning = _verified_prefix(kept, head)
        number = kept.fields["WARC-Record-ID"]
        about = WrittenRecord(file, kept.end())
        if about.record_type != "metadata" or about.fields.get("WARC-Concurrent-To") != number:
            raise BadRecordError("expected metadata about it behind it, found something else")
        block, end = about.block(), about.end()
        record = parse_metadata(block, name, offset, end - offset)
        if record.capture.digest != kept.fields.get("WARC-Payload-Digest"):
            raise BadRecordError("expected the digest that its metadata tells, found another one")
        return VerifiedRecord(record, number, tuple(parse_http_head(head)), beginning, _referred_record(kept))
    except (TruncatedRecordError, ForeignRecordError, ValueError, KeyError):
        raise BadRecordError("expected the record that was kept there, found something else, or damage") from None
    except OSError as error:  # a disk that is damaged itself
        raise BadRecordError(f"cannot be read: {error.strerror}") from None


def referred_location(file: int, offset: int) -> RecordLocation:
    """Return the place that a revisit refers to. Raises BadRecordError."""
    try:
        referred = _referred_record(_read_record(file, offset, "revisit"))
    except (TruncatedRecordError, ForeignRecordError, OSError):
        referred = None
    if referred is None:
        raise BadRecordError("expected the revisit that was kept there, found something else, or damage")
    return referred[1]


def _read_record(file: int, offset: int, *kinds: str) -> WrittenRecord:
    if offset < 0:  # a state may say anything
        raise ForeignRecordError
    kept = WrittenRecord(file, offset)
    if kept.record_type not in kinds:
        raise ForeignRecordError
    return kept


def _verified_prefix(stored: WrittenRecord, head: bytes) -> bytes:
    """Read the rest of a record, and return how its body begins. Raises BadRecordError if it has another digest."""
    payload = hashlib.sha1(usedforsecurity=False)
    block = hashlib.sha1(head + b"\r\n" if head else b"", usedforsecurity=False)
    beginning = bytearray()
    for piece in stored.pieces():
        payload.update(piece)
        block.update(piece)
        beginning += piece[: BODY_PREFIX_BYTES - len(beginning)]
    told = stored.fields.get("WARC-Payload-Digest")
    is_as_told = stored.record_type == "revisit" or format_sha1(payload) == told
    if not is_as_told or format_sha1(block) != stored.fields.get("WARC-Block-Digest"):
        raise BadRecordError("expected the digest that it was kept with, found another one")
    return bytes(beginning)


def _referred_record(stored: WrittenRecord) -> tuple[str, RecordLocation] | None:
    if stored.record_type != "revisit":
        return None
    file, _, offset = stored.fields.get(REFERS_TO, "").partition(" ")
    number = segment_number(file)
    if number is None or not (offset.isascii() and offset.isdecimal()):
        raise ForeignRecordError
    return stored.fields.get("WARC-Refers-To", ""), (number, int(offset))
