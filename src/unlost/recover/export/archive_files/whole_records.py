"""Records of a recovery's WARCs, read to their end to see that they are as they were kept."""

import hashlib
from dataclasses import dataclass

from unlost.formats.warc_writing.digests import sha1_digest
from unlost.formats.warc_writing.folder import number_of
from unlost.formats.warc_writing.http_head import headers_of
from unlost.formats.warc_writing.kept_record import ForeignError, KeptRecord
from unlost.formats.warc_writing.members import TornError
from unlost.recover.record import Record
from unlost.recover.warc_records import REFERS_TO, record_of

BEGINNING = 1 << 16
"""Bytes of a body that are kept: titles stand there."""

Place = tuple[int, int]
"""Where a record is: the number of its file, its offset in bytes."""


class BadRecordError(Exception):
    """A record that is not as it was kept; the message says how. Never seen by users: it is counted as a problem."""


@dataclass(frozen=True, slots=True)
class WholeRecord:
    """A record, and the metadata behind it, both whole, with the digests that they should have.

    record: what the metadata tells; its size is that of both. number: its WARC-Record-ID.
    headers, beginning: of the answer; those of a revisit may be none.
    refers_to: of a revisit, the id and the place of the record with its body.
    """

    record: Record
    number: str
    headers: tuple[tuple[str, str], ...]
    beginning: bytes
    refers_to: tuple[str, Place] | None


def read_whole(file: int, name: str, offset: int) -> WholeRecord:
    """Return the record at an offset of an open file, once all of it was read. Raises BadRecordError.

    name: the final name of the file.
    """
    try:
        kept = _kept(file, offset, "response", "revisit")
        head = kept.http_head()
        beginning = _checked_body(kept, head)
        number = kept.fields["WARC-Record-ID"]
        about = KeptRecord(file, kept.end())
        if about.kind != "metadata" or about.fields.get("WARC-Concurrent-To") != number:
            raise BadRecordError("expected metadata about it behind it, found something else")
        block, end = about.block(), about.end()
        record = record_of(block, name, offset, end - offset)
        if record.capture.digest != kept.fields.get("WARC-Payload-Digest"):
            raise BadRecordError("expected the digest that its metadata tells, found another one")
        return WholeRecord(record, number, tuple(headers_of(head)), beginning, _referred(kept))
    except (TornError, ForeignError, ValueError, KeyError):
        raise BadRecordError("expected the record that was kept there, found something else, or damage") from None
    except OSError as error:  # a disk that is damaged itself
        raise BadRecordError(f"cannot be read: {error.strerror}") from None


def referred_place(file: int, offset: int) -> Place:
    """Return the place that a revisit refers to. Raises BadRecordError."""
    try:
        referred = _referred(_kept(file, offset, "revisit"))
    except (TornError, ForeignError, OSError):
        referred = None
    if referred is None:
        raise BadRecordError("expected the revisit that was kept there, found something else, or damage")
    return referred[1]


def _kept(file: int, offset: int, *kinds: str) -> KeptRecord:
    if offset < 0:  # a state may say anything
        raise ForeignError
    kept = KeptRecord(file, offset)
    if kept.kind not in kinds:
        raise ForeignError
    return kept


def _checked_body(kept: KeptRecord, head: bytes) -> bytes:
    """Read the rest of a record, and return how its body begins. Raises BadRecordError if it has another digest."""
    payload = hashlib.sha1(usedforsecurity=False)
    block = hashlib.sha1(head + b"\r\n" if head else b"", usedforsecurity=False)
    beginning = bytearray()
    for piece in kept.pieces():
        payload.update(piece)
        block.update(piece)
        beginning += piece[: BEGINNING - len(beginning)]
    told = kept.fields.get("WARC-Payload-Digest")
    is_as_told = kept.kind == "revisit" or sha1_digest(payload) == told
    if not is_as_told or sha1_digest(block) != kept.fields.get("WARC-Block-Digest"):
        raise BadRecordError("expected the digest that it was kept with, found another one")
    return bytes(beginning)


def _referred(kept: KeptRecord) -> tuple[str, Place] | None:
    if kept.kind != "revisit":
        return None
    file, _, offset = kept.fields.get(REFERS_TO, "").partition(" ")
    number = number_of(file)
    if number is None or not (offset.isascii() and offset.isdecimal()):
        raise ForeignError
    return kept.fields.get("WARC-Refers-To", ""), (number, int(offset))
