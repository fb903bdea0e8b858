"""What the records of a recovery's WARCs say, docs/recovery-files.md has it; and the Record that they say it of."""

import json
import uuid
from dataclasses import replace
from functools import lru_cache

from unlost import dates
from unlost.formats.capture import Capture
from unlost.recover import warc_fields
from unlost.recover.record import Record
from unlost.recover.warc_fields import address, from_plain, plain

VERSION = b"WARC/1.1\r\n"
END = b"\r\n\r\n"
"""What stands behind the block of every record."""

REFERS_TO = "Unlost-Refers-To"
"""The field of a revisit that says where the body is: a file's name, and an offset in bytes."""

_REVISIT = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_CONFORMS_TO = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_HTTP = "application/http; msgtype=response"
_FIELDS = "application/warc-fields"

# Reasons that WARC knows; others are `unspecified` in it, and told in the metadata.
_REASONS = {"length", "time", "disconnect", "unspecified"}

# Record ids are made of what records hold, within this namespace: the same recovery makes the same file.
_NAMESPACE = uuid.UUID("5b3b5e0c-8a0c-5d0e-9d7a-6d1f7f0c2a11")

_MIGRATED = {True: "yes", False: "no", None: "unknown"}
_SAID = {word: value for value, word in _MIGRATED.items()}
_UNKNOWN = "unknown"


def _id(*parts: str | None) -> str:
    return f"<urn:uuid:{uuid.uuid5(_NAMESPACE, json.dumps(parts))}>"


_iso = lru_cache(16)(dates.to_iso)
"""Many records are kept in the same second, and copies of a page's parts were often stored in one."""


def record_id(record: Record) -> str:
    """Return the WARC-Record-ID of a record that is kept."""
    capture = record.capture
    kind = "revisit" if capture.revisit else "response"
    return _id(kind, capture.uri, capture.datetime, capture.archive, capture.digest, record.recovered)


def warcinfo(file: str, software: str, moment: str) -> bytes:
    """Return the first record of a file: who wrote it, and in which format.

    moment: when it was begun, 14 digits.
    """
    about = [("software", plain(software)), ("format", "WARC File Format 1.1"), ("conformsTo", _CONFORMS_TO)]
    block = warc_fields.written(about)
    fields = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Record-ID", _id("warcinfo", file, software, moment)),
        ("WARC-Date", _iso(moment)),
        ("WARC-Filename", file),
        ("Content-Type", _FIELDS),
        ("Content-Length", str(len(block))),
    ]
    return VERSION + warc_fields.written(fields) + b"\r\n" + block + END


def response_head(record: Record, number: str, block_digest: str, length: int) -> bytes:
    """Return the header of a response record, up to its block, which has that digest and that many bytes.

    number: its id, as `record_id` has it.
    Raises UriError for an address that no record can have, DateError for a date that is none.
    """
    reason = record.truncated
    fields = [
        ("WARC-Type", "response"),
        *_common(record, number),
        ("WARC-Payload-Digest", record.capture.digest),
        ("WARC-Block-Digest", block_digest),
        ("WARC-Truncated", reason if reason is None or reason in _REASONS else "unspecified"),
        *_provenance(record),
        ("Content-Type", _HTTP),
        ("Content-Length", str(length)),
    ]
    return VERSION + warc_fields.written(fields) + b"\r\n"


def revisit_head(record: Record, number: str, original: tuple[str, str, int], block_digest: str, length: int) -> bytes:
    """Return the header of a revisit record, up to its block, which is the head of an answer or nothing.

    original: of the record that has the body, its id, its file and its offset. Raises as `response_head`.
    """
    original_id, file, offset = original
    uri, moment = record.capture.revisit_of or ("", "")
    fields = [
        ("WARC-Type", "revisit"),
        *_common(record, number),
        ("WARC-Profile", _REVISIT),
        ("WARC-Refers-To", original_id),
        ("WARC-Refers-To-Target-URI", address(uri)),
        ("WARC-Refers-To-Date", _iso(moment)),
        (REFERS_TO, f"{file} {offset}"),
        ("WARC-Payload-Digest", record.capture.digest),
        ("WARC-Block-Digest", block_digest),
        *_provenance(record),
        ("Content-Type", _HTTP if length else None),
        ("Content-Length", str(length)),
    ]
    return VERSION + warc_fields.written(fields) + b"\r\n"


def _common(record: Record, number: str) -> warc_fields.Fields:
    capture = record.capture
    yield "WARC-Record-ID", number
    yield "WARC-Target-URI", address(capture.uri)
    yield "WARC-Date", _iso(capture.datetime)


def _provenance(record: Record) -> warc_fields.Fields:
    """Yield what must not be lost where a record is taken alone. pywb has the first two of what comes from archives."""
    capture = record.capture
    source = record.source or capture.urim
    yield "WARC-Source-URI", address(source) if source else None
    yield "WARC-Creation-Date", _iso(record.recovered)
    yield "Unlost-Archive", None if capture.archive is None else plain(capture.archive)
    yield "Unlost-URI-M", address(capture.urim) if capture.urim else None
    yield "Unlost-Listed-Digest", None if record.listed_digest is None else plain(record.listed_digest)


def metadata(record: Record, number: str, headers_left_out: int) -> bytes:
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
    block = warc_fields.written(
        [
            *((name, None if value is None else plain(value)) for name, value in texts.items()),
            ("status", _UNKNOWN if capture.status is None else str(capture.status)),
            ("migrated", _MIGRATED[capture.migrated]),
            *((name, None if value is None else str(value)) for name, value in numbers.items()),
            ("revisit-of-uri", None if revisited[0] is None else plain(revisited[0])),
            ("revisit-of-date", revisited[1]),
        ]
    )
    fields = [
        ("WARC-Type", "metadata"),
        ("WARC-Record-ID", _id("metadata", number)),
        ("WARC-Target-URI", address(capture.uri)),
        ("WARC-Date", _iso(record.recovered)),
        ("WARC-Concurrent-To", number),
        ("Content-Type", _FIELDS),
        ("Content-Length", str(len(block))),
    ]
    return VERSION + warc_fields.written(fields) + b"\r\n" + block + END


def record_of(block: bytes, file: str, offset: int, size: int) -> Record:
    """Return the Record that the block of a metadata record tells of. Raises ValueError for a block that is none."""
    said = warc_fields.read(block)

    def text(name: str) -> str | None:
        return from_plain(said[name]) if name in said else None

    def must(name: str) -> str:
        value = text(name)
        if value is None:
            raise ValueError(name)
        return value

    def number(name: str) -> int | None:
        return int(said[name]) if name in said else None

    if said.get("migrated") not in _SAID:
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
        migrated=_SAID[said["migrated"]],
        filename=text("filename"),
        offset=number("offset"),
        skip=number("skip"),
    )
    if revisited is not None:
        capture = replace(capture, revisit=True, revisit_of=(revisited, must("revisit-of-date")))
    return Record(
        capture, text("listed-digest"), text("source"), text("truncated"), must("recovered"), file, offset, size
    )
