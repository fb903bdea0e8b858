"""Records in the WARC files of a recovery: data model, headers and metadata, reading and verification."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import BinaryIO

from unlost.archives.base import FetchedCapture
from unlost.capture import Capture
from unlost.errors import ArchiveFileError, InputError
from unlost.http.models import new_body
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
    """A record in a WARC file of the recovery.

    Attributes:
        capture: The capture as the archive returned it. `digest` is that of the stored body (`sha1:` and base 32),
            `length` its size in bytes. `revisit_of` names the capture with the body if this one has none.
        listed_digest: The digest in the archive's index; None if there was none.
        source: The URL that the bytes came from; None for a local file.
        truncated: Why the body is incomplete, as in `FetchedCapture`.
        recovered: When it was stored, 14 digits.
        file: Name of the WARC file in the recovery's folder `warc`.
        offset: Offset of the record in bytes.
        size: Size of the record and its metadata record in bytes.
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
"""Header field of a revisit: file name and offset of the record with the body."""
_REVISIT = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"  # WARC 1.1, section 6.7.2
_MIGRATED = {True: "yes", False: "no", None: "unknown"}
_MIGRATED_VALUES = {word: value for value, word in _MIGRATED.items()}
_UNKNOWN = "unknown"


def record_id(record: RecoveryRecord) -> str:
    """Return the WARC-Record-ID of a stored record."""
    capture = record.capture
    kind = "revisit" if capture.revisit else "response"
    return make_record_id(kind, capture.uri, capture.datetime, capture.archive, capture.digest, record.recovered)


def response_header(record: RecoveryRecord, warc_id: str, block_digest: str, length: int) -> bytes:
    """Return the header of a response record, up to its block.

    Args:
        record: The record.
        warc_id: Its WARC-Record-ID.
        block_digest: Digest of the block.
        length: Size of the block in bytes.

    Raises:
        UriError: No record can have this URL.
        DateError: The date is invalid.
    """
    reason = record.truncated
    fields = [
        ("WARC-Type", "response"),
        *_common_fields(record, warc_id),
        ("WARC-Payload-Digest", record.capture.digest),
        ("WARC-Block-Digest", block_digest),
        ("WARC-Truncated", reason if reason is None or reason in TRUNCATION_REASONS else "unspecified"),
        *_provenance_fields(record),
        ("Content-Type", HTTP_RESPONSE_TYPE),
        ("Content-Length", str(length)),
    ]
    return format_record_header(fields)


def revisit_header(
    record: RecoveryRecord, warc_id: str, original: tuple[str, str, int], block_digest: str, length: int
) -> bytes:
    """Return the header of a revisit record, up to its block, which is an HTTP head or empty.

    Args:
        record: The record.
        warc_id: Its WARC-Record-ID.
        original: WARC-Record-ID, file and offset of the record with the body.
        block_digest: Digest of the block.
        length: Size of the block in bytes.

    Raises:
        UriError, DateError: As `response_header`.
    """
    original_id, file, offset = original
    uri, datetime = record.capture.revisit_of or ("", "")
    fields = [
        ("WARC-Type", "revisit"),
        *_common_fields(record, warc_id),
        ("WARC-Profile", _REVISIT),
        ("WARC-Refers-To", original_id),
        ("WARC-Refers-To-Target-URI", escape_target_uri(uri)),
        ("WARC-Refers-To-Date", format_record_date(datetime)),
        (REFERS_TO, f"{file} {offset}"),
        ("WARC-Payload-Digest", record.capture.digest),
        ("WARC-Block-Digest", block_digest),
        *_provenance_fields(record),
        ("Content-Type", HTTP_RESPONSE_TYPE if length else None),
        ("Content-Length", str(length)),
    ]
    return format_record_header(fields)


def _common_fields(record: RecoveryRecord, warc_id: str) -> warc_fields.WarcFields:
    capture = record.capture
    yield "WARC-Record-ID", warc_id
    yield "WARC-Target-URI", escape_target_uri(capture.uri)
    yield "WARC-Date", format_record_date(capture.datetime)


def _provenance_fields(record: RecoveryRecord) -> warc_fields.WarcFields:
    """Yield the fields that say where a record came from. pywb writes the first two for captures of other archives."""
    capture = record.capture
    source = record.source or capture.urim
    yield "WARC-Source-URI", escape_target_uri(source) if source else None
    yield "WARC-Creation-Date", format_record_date(record.recovered)
    yield "Unlost-Archive", None if capture.archive is None else encode_value(capture.archive)
    yield "Unlost-URI-M", escape_target_uri(capture.urim) if capture.urim else None
    yield "Unlost-Listed-Digest", None if record.listed_digest is None else encode_value(record.listed_digest)


def metadata_record(record: RecoveryRecord, warc_id: str, headers_left_out: int) -> bytes:
    """Return the metadata record of a record, with all its attributes, so that the database can be rebuilt."""
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
        ("WARC-Record-ID", make_record_id("metadata", warc_id)),
        ("WARC-Target-URI", escape_target_uri(capture.uri)),
        ("WARC-Date", format_record_date(record.recovered)),
        ("WARC-Concurrent-To", warc_id),
        ("Content-Type", WARC_FIELDS_TYPE),
        ("Content-Length", str(len(block))),
    ]
    return format_record_header(fields) + block + RECORD_END


def parse_metadata(block: bytes, file: str, offset: int, size: int) -> RecoveryRecord:
    """Parse the block of a metadata record. Raises ValueError if it is invalid."""
    fields = warc_fields.parse_fields(block)

    def text(name: str) -> str | None:
        return decode_value(fields[name]) if name in fields else None

    def required(name: str) -> str:
        value = text(name)
        if value is None:
            raise ValueError(name)
        return value

    def number(name: str) -> int | None:
        return int(fields[name]) if name in fields else None

    if fields.get("migrated") not in _MIGRATED_VALUES:
        raise ValueError("migrated")
    revisited = text("revisit-of-uri")
    capture = Capture(
        uri=required("uri"),
        key=text("key"),
        datetime=required("stored"),
        status=None if required("status") == _UNKNOWN else number("status"),
        mime=text("mime"),
        digest=required("digest"),
        length=number("length"),
        redirect=text("redirect"),
        archive=text("archive"),
        urim=text("urim"),
        migrated=_MIGRATED_VALUES[fields["migrated"]],
        filename=text("filename"),
        offset=number("offset"),
        skip=number("skip"),
    )
    if revisited is not None:
        capture = replace(capture, revisit=True, revisit_of=(revisited, required("revisit-of-date")))
    return RecoveryRecord(
        capture, text("listed-digest"), text("source"), text("truncated"), required("recovered"), file, offset, size
    )


def check_known_files(folder: WarcFolder, files: list[str], known: Mapping[str, int]) -> None:
    """Raise InputError if a file known to the database is missing or shorter than known."""
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
    """Yield the complete records after an offset, each with its end; at the start of a file, first (None, end).

    An incomplete record ends the iteration. A record counts only with its metadata record, because one write has both.

    Raises:
        ForeignRecordError: A complete record was not written by this software.
    """
    offset, size = start, os.fstat(file).st_size
    while offset < size:
        try:
            if offset == 0:
                end = _end_of_warcinfo(file)
                yield None, end
            else:
                record, end = _record_at(file, name, offset)
                yield record, end
        except TruncatedRecordError:
            return
        offset = end


def _end_of_warcinfo(file: int) -> int:
    first = WrittenRecord(file, 0)
    if first.record_type != "warcinfo":
        raise ForeignRecordError
    return first.end()


def _record_at(file: int, name: str, offset: int) -> tuple[RecoveryRecord, int]:
    record = WrittenRecord(file, offset)
    warc_id = record.fields.get("WARC-Record-ID")
    if record.record_type not in ("response", "revisit"):
        raise ForeignRecordError
    metadata = WrittenRecord(file, record.end())
    if metadata.record_type != "metadata" or metadata.fields.get("WARC-Concurrent-To") != warc_id:
        raise ForeignRecordError
    block, end = metadata.block(), metadata.end()
    try:
        return parse_metadata(block, name, offset, end - offset), end
    except ValueError:
        raise ForeignRecordError from None


def find_original(folder: WarcFolder, record: RecoveryRecord) -> tuple[str, str, int]:
    """Return WARC-Record-ID, file and offset of the record that has the body.

    Raises:
        ArchiveFileError: A revisit no longer exists or was changed.
    """
    if not record.capture.revisit:
        return record_id(record), record.file, record.offset
    with _open_record(folder, record.file, record.offset, record_id(record)) as revisit:
        return _referred_record(revisit)


def open_capture(folder: WarcFolder, record: RecoveryRecord) -> FetchedCapture:
    """Return the stored capture. A revisit has the body of its original, and its headers unless it has its own.

    Raises:
        ArchiveFileError: The record no longer exists or was changed.
        InputError: The file cannot be read.
    """
    headers = None
    warc_id, file, offset = record_id(record), record.file, record.offset
    if record.capture.revisit:
        with _open_record(folder, file, offset, warc_id) as revisit:
            if head := revisit.http_head():
                headers = parse_http_head(head)
            warc_id, file, offset = _referred_record(revisit)
    with _open_record(folder, file, offset, warc_id) as stored:
        stored_headers = parse_http_head(stored.http_head())
        body = _verified_body(stored, record.capture.digest)
    return FetchedCapture(
        record.capture, stored_headers if headers is None else headers, body, record.truncated, record.source
    )


def read_first_bytes(folder: WarcFolder, record: RecoveryRecord, count: int) -> bytes:
    """Return the first `count` bytes of a stored body. The rest is not verified.

    Raises:
        ArchiveFileError, InputError: As `open_capture`.
    """
    warc_id, file, offset = find_original(folder, record)
    with _open_record(folder, file, offset, warc_id) as stored:
        stored.http_head()
        data = b""
        for piece in stored.pieces():
            data += piece
            if len(data) >= count:
                break
        return data[:count]


@contextmanager
def _open_record(folder: WarcFolder, file: str, offset: int, warc_id: str) -> Iterator[WrittenRecord]:
    """Open the record at an offset and check its WARC-Record-ID."""
    try:
        with folder.open_to_read(file) as opened:
            yield _check_record_id(WrittenRecord(opened, offset), warc_id)
    except (TruncatedRecordError, ForeignRecordError):
        message = f"expected at byte {offset} the record that was kept there, found something else, or damage"
        raise ArchiveFileError(f"{folder.path / file}: {message}: put back the whole file") from None


def _check_record_id(stored: WrittenRecord, warc_id: str) -> WrittenRecord:
    if stored.fields.get("WARC-Record-ID") != warc_id:
        raise ForeignRecordError
    return stored


def _referred_record(revisit: WrittenRecord) -> tuple[str, str, int]:
    file, _, offset = revisit.fields.get(REFERS_TO, "").partition(" ")
    if not offset.isdecimal() or segment_number(file) is None:  # never a path outside the folder
        raise ForeignRecordError
    return revisit.fields.get("WARC-Refers-To", ""), file, int(offset)


def _verified_body(stored: WrittenRecord, digest: str | None) -> BinaryIO:
    """Return the body, rewound, after its digest was verified."""
    body, sha1 = new_body(), hashlib.sha1(usedforsecurity=False)
    try:
        for piece in stored.pieces():
            sha1.update(piece)
            body.write(piece)
        stored.end()
    except BaseException:
        body.close()
        raise
    if format_sha1(sha1) != digest:
        body.close()
        raise ForeignRecordError
    body.seek(0)
    return body
