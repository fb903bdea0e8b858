"""What the records of a recovery's WARCs say, docs/recovery-files.md has it; and the Record that they say it of."""

from dataclasses import replace

from unlost.formats.capture import Capture
from unlost.formats.warc_writing import fields as warc_fields
from unlost.formats.warc_writing.fields import address, from_plain, plain
from unlost.formats.warc_writing.records import END, FIELDS, HTTP_RESPONSE, REASONS, head_of, id_of, iso
from unlost.recover.record import Record

REFERS_TO = "Unlost-Refers-To"
"""The field of a revisit that says where the body is: a file's name, and an offset in bytes."""

_REVISIT = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
_MIGRATED = {True: "yes", False: "no", None: "unknown"}
_SAID = {word: value for value, word in _MIGRATED.items()}
_UNKNOWN = "unknown"


def record_id(record: Record) -> str:
    """Return the WARC-Record-ID of a record that is kept."""
    capture = record.capture
    kind = "revisit" if capture.revisit else "response"
    return id_of(kind, capture.uri, capture.datetime, capture.archive, capture.digest, record.recovered)


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
        ("WARC-Truncated", reason if reason is None or reason in REASONS else "unspecified"),
        *_provenance(record),
        ("Content-Type", HTTP_RESPONSE),
        ("Content-Length", str(length)),
    ]
    return head_of(fields)


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
        ("WARC-Refers-To-Date", iso(moment)),
        (REFERS_TO, f"{file} {offset}"),
        ("WARC-Payload-Digest", record.capture.digest),
        ("WARC-Block-Digest", block_digest),
        *_provenance(record),
        ("Content-Type", HTTP_RESPONSE if length else None),
        ("Content-Length", str(length)),
    ]
    return head_of(fields)


def _common(record: Record, number: str) -> warc_fields.Fields:
    capture = record.capture
    yield "WARC-Record-ID", number
    yield "WARC-Target-URI", address(capture.uri)
    yield "WARC-Date", iso(capture.datetime)


def _provenance(record: Record) -> warc_fields.Fields:
    """Yield what must not be lost where a record is taken alone. pywb has the first two of what comes from archives."""
    capture = record.capture
    source = record.source or capture.urim
    yield "WARC-Source-URI", address(source) if source else None
    yield "WARC-Creation-Date", iso(record.recovered)
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
        ("WARC-Record-ID", id_of("metadata", number)),
        ("WARC-Target-URI", address(capture.uri)),
        ("WARC-Date", iso(record.recovered)),
        ("WARC-Concurrent-To", number),
        ("Content-Type", FIELDS),
        ("Content-Length", str(len(block))),
    ]
    return head_of(fields) + block + END


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
