"""From a record of a WARC or ARC to the copy of a page."""

from dataclasses import replace

from unlost import dates, uri
from unlost.archives.archive import Archive
from unlost.archives.bodies.body import MAX_BODY_BYTES, BodyTooLargeError
from unlost.archives.bodies.record_body import decode_payload
from unlost.archives.repository import FetchedCapture
from unlost.errors import DateError, FailedError, UriError
from unlost.formats.capture import Capture
from unlost.formats.contentcoding import UndecodableError
from unlost.formats.warc import StoredRecord

_MAX_REASON_LENGTH = 40  # characters: of a word that stands in the header


def check_record_identity(record: StoredRecord, capture: Capture, archive: Archive) -> None:
    """Raise FailedError of kind `foreign` if a record is of another address or date than a capture."""
    address, moment = record.header("WARC-Target-URI"), record.header("WARC-Date")
    if address is None or not _is_same_page(address.strip("<>"), capture):
        shown = ascii(address or "")[1:-1][:80]
        raise FailedError(
            f"expected a record of the address that was asked for, found `{shown}`", archive.id, "foreign"
        )
    if _record_datetime(moment or "") != capture.datetime:
        shown = ascii(moment or "")[1:-1][:40]
        raise FailedError(f"expected a record of {capture.datetime}, found `{shown}`", archive.id, "foreign")


def _is_same_page(address: str, capture: Capture) -> bool:
    if address == capture.uri or "\ufffd" in address:
        return True  # bytes that are no UTF-8 are told by nobody in the same way: then the date alone must do
    try:
        return uri.key(address) == capture.key
    except UriError:
        return False


def _record_datetime(moment: str) -> str | None:
    """Return a record's date as 14 digits; in ARCs it is that already."""
    try:
        return dates.pad(moment) if moment.isdigit() else dates.from_iso(moment)
    except DateError:
        return None


def revisit_target(record: StoredRecord) -> tuple[str, str] | None:
    """Return the address and the 14-digit date of the record that has the body, if a revisit says so."""
    address, moment = (
        record.header("WARC-Refers-To-Target-URI"),
        _record_datetime(record.header("WARC-Refers-To-Date") or ""),
    )
    return (address.strip("<>"), moment) if address and moment else None


def _is_not_modified(record: StoredRecord) -> bool:
    """Return whether a revisit tells nothing of the page but that it had not changed: its headers are then the old."""
    profile = record.header("WARC-Profile") or ""
    return record.http_line is None or "not-modified" in profile or record.http_line.split(" ")[1:2] == ["304"]


def read_capture(
    record: StoredRecord, capture: Capture, archive: Archive, limit: int = MAX_BODY_BYTES
) -> FetchedCapture:
    """Return the copy that a record with a body holds. It reads all of it: call it in a thread.

    capture: what the index says of it.
    Raises FailedError of kind `too-large` for a body of more than `limit` bytes, `malformed` for a coding that cannot
    be undone.
    """
    try:
        body, is_broken = decode_payload(record.body, record.http_headers, limit)
    except BodyTooLargeError:
        message = f"expected a body of at most {limit} bytes, found a larger one"
        raise FailedError(message, archive.id, "too-large") from None
    except UndecodableError as error:
        raise FailedError(f"its body is {error}: take another capture", archive.id, "malformed") from None
    said = record.header("WARC-Truncated")
    damage = "damage" if is_broken or record.problems() else None
    return FetchedCapture(
        replace(capture, archive=archive.id, migrated=archive.is_migrated(capture.mime)),
        http_headers(record),
        body,
        said[:_MAX_REASON_LENGTH] if said else damage,
    )


def apply_revisit(record: StoredRecord, capture: Capture, original: FetchedCapture) -> FetchedCapture:
    """Return the copy that a revisit stands for: its date, another's body, its own headers and status if it has any.

    record, capture: the revisit. copy: of the record that it speaks of.
    """
    before = original.capture
    if _is_not_modified(record):
        status, mime, headers = before.status, before.mime, original.headers
    else:
        status, mime, headers = capture.status, capture.mime or before.mime, record.http_headers
    capture = replace(
        capture,
        status=status,
        mime=mime,
        archive=before.archive,
        migrated=before.migrated,
        revisit_of=(before.uri, before.datetime),
    )
    return replace(original, capture=capture, headers=headers)


def http_headers(record: StoredRecord) -> tuple[tuple[str, str], ...]:
    """Return the headers of the HTTP message in a record; of a record without one, its type is all there is."""
    if record.http_line is not None:
        return record.http_headers
    content_type = record.header("Content-Type")
    return (("Content-Type", content_type),) if content_type else ()
