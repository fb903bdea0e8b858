"""From a WARC or ARC record to a fetched capture: payload without its codings, headers, revisits."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

from unlost import dates, uri
from unlost.archives.base import FetchedCapture
from unlost.capture import Capture
from unlost.errors import DateError, FailedError, UriError
from unlost.http.body import MAX_BODY_BYTES, BodyTooLargeError, ByteReader, iter_pieces, spool_body
from unlost.http.content_encoding import (
    MAX_CODINGS,
    ContentDecoder,
    UndecodableError,
    decode_chunks,
    parse_content_encoding,
)
from unlost.registry.models import Archive
from unlost.warc.reader import StoredRecord

_CHUNKED = "chunked"
_PIECE = 1 << 16
_SIZE_LINE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\n]*)?\r?\n")
_MAX_SIZE_LINE = 4096


class _NotChunkedError(Exception):
    """What is there is not in chunks, whatever a header says."""


class _TruncatedChunksError(Exception):
    """What is there is in chunks up to here, and no further."""


def decode_payload(source: ByteReader, headers: Sequence[tuple[str, str]], limit: int) -> tuple[BinaryIO, bool]:
    r"""Return a body without the codings that headers name, at its beginning, and whether it broke off in one of them.

    limit: bytes, of the body as it is stored and after its codings. Raises `body.TooLargeError`, UndecodableError.

    >>> import io
    >>> body, is_broken = decode_payload(io.BytesIO(b"3\r\nabc\r\n0\r\n\r\n"), [("Transfer-Encoding", "chunked")], 100)
    >>> body.read(), is_broken
    (b'abc', False)
    """
    left, is_broken = _codings(headers), False
    if len(left) > MAX_CODINGS:
        raise UndecodableError(f"in {len(left)} codings, where at most {MAX_CODINGS} are undone")
    body = spool_body(iter_pieces(source), limit)
    try:
        while left:
            # Chunked is undone from file to file: that it is none may be known only after megabytes.
            count = left.index(_CHUNKED) if _CHUNKED in left else len(left)
            undo = _dechunk if count == 0 else _decode
            body, broke = undo(body, left[:count], limit)
            left, is_broken = left[count or 1 :], is_broken or broke
    except BaseException:
        body.close()
        raise
    return body, is_broken


def _codings(headers: Sequence[tuple[str, str]]) -> list[str]:
    """Return the codings that headers name, in the order in which they are to be undone: those of the transfer first.

    >>> _codings([("Content-Encoding", "deflate, GZIP"), ("transfer-encoding", "Chunked")])
    ['chunked', 'gzip', 'deflate']
    """
    return [
        coding
        for field in ("transfer-encoding", "content-encoding")
        for coding in parse_content_encoding(value for name, value in headers if name.lower() == field)
    ]


def _decode(body: BinaryIO, codings: list[str], limit: int) -> tuple[BinaryIO, bool]:
    decoder = ContentDecoder(codings)
    with body:
        return spool_body(decode_chunks(iter_pieces(body), decoder), limit), decoder.damage is not None


def _dechunk(body: BinaryIO, _: list[str], limit: int) -> tuple[BinaryIO, bool]:
    is_broken = False

    def until_broken() -> Iterator[bytes]:
        nonlocal is_broken
        try:
            yield from _iter_chunks(body)
        except _TruncatedChunksError:
            is_broken = True

    try:
        found = spool_body(until_broken(), limit)
    except _NotChunkedError:
        body.seek(0)
        return body, False
    body.close()
    return found, is_broken


def _iter_chunks(source: BinaryIO) -> Iterator[bytes]:
    """Yield what is in chunks. For that, the first chunk must end where it says, with the next one behind it."""
    chunks = 0
    while True:
        line = source.readline(_MAX_SIZE_LINE)
        size = _SIZE_LINE.fullmatch(line)
        if size is None:
            raise _NotChunkedError if chunks == 0 or (chunks == 1 and line) else _TruncatedChunksError
        left = int(size[1], 16)
        if left == 0:
            return
        while left and (piece := source.read(min(left, _PIECE))):
            left -= len(piece)
            yield piece
        end = source.readline(2)
        if left or not end:
            raise _TruncatedChunksError
        if end not in (b"\r\n", b"\n"):
            raise _NotChunkedError if chunks == 0 else _TruncatedChunksError
        chunks += 1


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
