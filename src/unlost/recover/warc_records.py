"""Records in the WARCs of a recovery.

The data model, their headers and metadata, and how they are read and verified.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import BinaryIO

from unlost.archives.base import FetchedCapture
from unlost.capture import Capture
from unlost.errors import ArchiveFileError, InputError
from unlost.http.body import new_body
from unlost.warc import records as warc_fields
from unlost.warc.records import (
    HTTP_RESPONSE_TYPE,
    RECORD_END,
    TRUNCATION_REASONS,
    WARC_FIELDS_TYPE,
    ForeignRecordError,
    TruncatedRecordError,
    WrittenRecord,
    decode_value,
    encode_value,
    escape_target_uri,
    format_record_date,
    format_record_header,
    format_sha1,
    make_record_id,
    parse_http_head,
)
from unlost.warc.writer import WarcFolder, segment_number


@dataclass(frozen=True, slots=True)
class RecoveryRecord:
    """A record in a WARC of the recovery.

    capture: what came back: address, date, status, type and redirect of the copy itself, its archive and its URI-M.
        `digest` is that of the body that is kept here, `sha1:` and base 32; `length` is the number of its bytes;
        `revisit_of` names the record here that has the body, if this one has none of its own.
    listed_digest: the digest that the archive's index gives for it; None if there was none.
    source: the address that the bytes came from; None where it was a file.
    truncated: why the body is known not to be whole, as in StoredCopy.
    recovered: when it was kept, 14 digits.
    file, offset, size: the WARC's name in the recovery's folder `warc`, and where in it, in bytes.
    """

    capture: Capture
    listed_digest: str | None
    source: str | None
    truncated: str | None
    recovered: str
    file: str
    offset: int
    size: int


REFERS_TO = "Unlost-Refers-To"
"""The field of a revisit that says where the body is: a file's name, and an offset in bytes."""
_REVISIT = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_MIGRATED = {True: "yes", False: "no", None: "unknown"}
_MIGRATED_VALUES = {word: value for value, word in _MIGRATED.items()}
_UNKNOWN = "unknown"


def record_id(record: RecoveryRecord) -> str:
    """Return the WARC-Record-ID of a record that is kept."""
    capture = record.capture
    kind = "revisit" if capture.revisit else "response"
    return make_record_id(kind, capture.uri, capture.datetime, capture.archive, capture.digest, record.recovered)


def response_header(record: RecoveryRecord, number: str, block_digest: str, length: int) -> bytes:
    """Return the header of a response record, up to its block, which has that digest and that many bytes.

    number: its id, as `record_id` has it.
    Raises UriError for an address that no record can have, DateError for a date that is none.
    """
    reason = record.truncated
    fields = [
        ("WARC-Type", "response"),
        *_common_fields(record, number),
        ("WARC-Payload-Digest", record.capture.digest),
        ("WARC-Block-Digest", block_digest),
        ("WARC-Truncated", reason if reason is None or reason in TRUNCATION_REASONS else "unspecified"),
        *_provenance_fields(record),
        ("Content-Type", HTTP_RESPONSE_TYPE),
        ("Content-Length", str(length)),
    ]
    return format_record_header(fields)


def revisit_header(
    record: RecoveryRecord, number: str, original: tuple[str, str, int], block_digest: str, length: int
) -> bytes:
    """Return the header of a revisit record, up to its block, which is the head of an answer or nothing.

    original: of the record that has the body, its id, its file and its offset. Raises as `response_head`.
    """
    original_id, file, offset = original
    uri, moment = record.capture.revisit_of or ("", "")
    fields = [
        ("WARC-Type", "revisit"),
        *_common_fields(record, number),
        ("WARC-Profile", _REVISIT),
        ("WARC-Refers-To", original_id),
        ("WARC-Refers-To-Target-URI", escape_target_uri(uri)),
        ("WARC-Refers-To-Date", format_record_date(moment)),
        (REFERS_TO, f"{file} {offset}"),
        ("WARC-Payload-Digest", record.capture.digest),
        ("WARC-Block-Digest", block_digest),
        *_provenance_fields(record),
        ("Content-Type", HTTP_RESPONSE_TYPE if length else None),
        ("Content-Length", str(length)),
    ]
    return format_record_header(fields)


def _common_fields(record: RecoveryRecord, number: str) -> warc_fields.WarcFields:
    capture = record.capture
    yield "WARC-Record-ID", number
    yield "WARC-Target-URI", escape_target_uri(capture.uri)
    yield "WARC-Date", format_record_date(capture.datetime)


def _provenance_fields(record: RecoveryRecord) -> warc_fields.WarcFields:
    """Yield what must not be lost where a record is taken alone. pywb has the first two of what comes from archives."""
    capture = record.capture
    source = record.source or capture.urim
    yield "WARC-Source-URI", escape_target_uri(source) if source else None
    yield "WARC-Creation-Date", format_record_date(record.recovered)
    yield "Unlost-Archive", None if capture.archive is None else encode_value(capture.archive)
    yield "Unlost-URI-M", escape_target_uri(capture.urim) if capture.urim else None
    yield "Unlost-Listed-Digest", None if record.listed_digest is None else encode_value(record.listed_digest)


def metadata_record(record: RecoveryRecord, number: str, headers_left_out: int) -> bytes:
    """Return the metadata record of the record with that id: all that is known of it, so that it can be made again."""
    capture = record.capture
    texts = {
        "archive": capture.archive,
        "urim": capture.urim,
        "source": record.source,
        "uri": capture.uri,
        "key": capture.key,
        "stored": capture.datetime,
        "recovered": record.recovered,
        "digest": capture.digest,
        "listed-digest": record.listed_digest,
        "mime": capture.mime,
        "redirect": capture.redirect,
        "truncated": record.truncated,
        "filename": capture.filename,
    }
    numbers = {
        "length": capture.length,
        "offset": capture.offset,
        "skip": capture.skip,
        "headers-left-out": headers_left_out or None,
    }
    revisited = capture.revisit_of or (None, None)
    block = warc_fields.format_fields(
        [
            *((name, None if value is None else encode_value(value)) for name, value in texts.items()),
            ("status", _UNKNOWN if capture.status is None else str(capture.status)),
            ("migrated", _MIGRATED[capture.migrated]),
            *((name, None if value is None else str(value)) for name, value in numbers.items()),
            ("revisit-of-uri", None if revisited[0] is None else encode_value(revisited[0])),
            ("revisit-of-date", revisited[1]),
        ]
    )
    fields = [
        ("WARC-Type", "metadata"),
        ("WARC-Record-ID", make_record_id("metadata", number)),
        ("WARC-Target-URI", escape_target_uri(capture.uri)),
        ("WARC-Date", format_record_date(record.recovered)),
        ("WARC-Concurrent-To", number),
        ("Content-Type", WARC_FIELDS_TYPE),
        ("Content-Length", str(len(block))),
    ]
    return format_record_header(fields) + block + RECORD_END


def parse_metadata(block: bytes, file: str, offset: int, size: int) -> RecoveryRecord:
    """Return the Record that the block of a metadata record tells of. Raises ValueError for a block that is none."""
    said = warc_fields.parse_fields(block)

    def text(name: str) -> str | None:
        return decode_value(said[name]) if name in said else None

    def must(name: str) -> str:
        value = text(name)
        if value is None:
            raise ValueError(name)
        return value

    def number(name: str) -> int | None:
        return int(said[name]) if name in said else None

    if said.get("migrated") not in _MIGRATED_VALUES:
        raise ValueError("migrated")
    revisited = text("revisit-of-uri")
    capture = Capture(
        uri=must("uri"),
        key=text("key"),
        datetime=must("stored"),
        status=None if must("status") == _UNKNOWN else number("status"),
        mime=text("mime"),
        digest=must("digest"),
        length=number("length"),
        redirect=text("redirect"),
        archive=text("archive"),
        urim=text("urim"),
        migrated=_MIGRATED_VALUES[said["migrated"]],
        filename=text("filename"),
        offset=number("offset"),
        skip=number("skip"),
    )
    if revisited is not None:
        capture = replace(capture, revisit=True, revisit_of=(revisited, must("revisit-of-date")))
    return RecoveryRecord(
        capture, text("listed-digest"), text("source"), text("truncated"), must("recovered"), file, offset, size
    )


def check_known_files(folder: WarcFolder, files: list[str], known: Mapping[str, int]) -> None:
    """Raise InputError if a file that the state knows is not there, or not all of what it knows."""
    for name, end in sorted(known.items()):
        if name not in files:
            raise InputError(f"{folder.path / name}: {_data_loss_message(end, 'not there')}")
        with folder.open_to_read(name) as file:
            size = os.fstat(file).st_size
        if size < end:
            raise InputError(f"{folder.path / name}: {_data_loss_message(end, f'{size}')}")


def _data_loss_message(end: int, found: str) -> str:
    return (
        f"expected at least {end} bytes, found {found}: put back the whole file, or delete state.sqlite, and the same "
        "command reads what is here and asks for the rest again"
    )


def read_records_after(file: int, name: str, start: int) -> Iterator[tuple[RecoveryRecord | None, int]]:
    """Yield the whole records behind a byte of a file, each with where it ends; at the beginning first (None, end).

    What is torn ends it: a record counts only with its metadata behind it, since both are written at once. Raises
    ForeignError for what is whole, but was not written here.
    """
    place, size = start, os.fstat(file).st_size
    while place < size:
        try:
            if place == 0:
                end = _end_of_warcinfo(file)
                yield None, end
            else:
                record, end = _record_at(file, name, place)
                yield record, end
        except TruncatedRecordError:
            return
        place = end


def _end_of_warcinfo(file: int) -> int:
    first = WrittenRecord(file, 0)
    if first.record_type != "warcinfo":
        raise ForeignRecordError
    return first.end()


def _record_at(file: int, name: str, offset: int) -> tuple[RecoveryRecord, int]:
    kept = WrittenRecord(file, offset)
    told_of = kept.fields.get("WARC-Record-ID")
    if kept.record_type not in ("response", "revisit"):
        raise ForeignRecordError
    about = WrittenRecord(file, kept.end())
    if about.record_type != "metadata" or about.fields.get("WARC-Concurrent-To") != told_of:
        raise ForeignRecordError
    block, end = about.block(), about.end()
    try:
        return parse_metadata(block, name, offset, end - offset), end
    except ValueError:
        raise ForeignRecordError from None


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
