"""What the records of a recovery's WARCs say, docs/recovery-files.md has it; and the Record that they say it of."""

from dataclasses import replace

from unlost.formats.capture import Capture
from unlost.formats.warc_writing import fields as warc_fields
from unlost.formats.warc_writing.fields import escape_target_uri, decode_value, encode_value
from unlost.formats.warc_writing.records import (
    RECORD_END,
    WARC_FIELDS_TYPE,
    HTTP_RESPONSE_TYPE,
    TRUNCATION_REASONS,
    format_record_header,
    make_record_id,
    format_record_date,
)
from unlost.recover.record import RecoveryRecord

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
