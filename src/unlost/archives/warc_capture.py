"""From a WARC or ARC record to a fetched capture: the decoded payload, headers, revisits.

Records may declare transfer and content codings that their body does not have. What is not in a declared coding is
returned unchanged; damage is reported, and everything before it is returned, because half a record is all there will
be.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

from unlost import dates, uri
from unlost.archives.base import FetchedCapture
from unlost.capture import Capture
from unlost.errors import DateError, FailedError, UriError
from unlost.http.content_encoding import (
    MAX_CODINGS,
    ContentDecoder,
    UndecodableError,
    decode_chunks,
    parse_content_encoding,
)
from unlost.http.models import MAX_BODY_BYTES, BodyTooLargeError, ByteReader, iter_pieces, spool_body
from unlost.registry.models import Archive
from unlost.warc.reader import StoredRecord

_CHUNKED = "chunked"
_READ_BYTES = 1 << 16
_SIZE_LINE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\n]*)?\r?\n")
_MAX_SIZE_LINE = 4096
_MAX_REASON_LENGTH = 40  # characters of WARC-Truncated


class _NotChunkedError(Exception):
    """A body is not chunked, although the header says so."""


class _TruncatedChunksError(Exception):
    """A body is chunked, but truncated."""


def decode_payload(source: ByteReader, headers: Sequence[tuple[str, str]], limit: int) -> tuple[BinaryIO, bool]:
    r"""Decode a payload.

    Args:
        source: The payload.
        headers: Header fields with its transfer and content codings.
        limit: Largest size in bytes, before and after decoding.

    Returns:
        The decoded body, positioned at its beginning, and whether it is truncated in one of its codings.

    Raises:
        BodyTooLargeError: The body is larger than `limit`.
        UndecodableError: It is in an unknown coding, or in more than `MAX_CODINGS`.

    >>> import io
    >>> source = io.BytesIO(b"3\r\nabc\r\n0\r\n\r\n")
    >>> body, is_truncated = decode_payload(source, [("Transfer-Encoding", "chunked")], 100)
    >>> body.read(), is_truncated
    (b'abc', False)
    """
    codings, is_truncated = _codings(headers), False
    if len(codings) > MAX_CODINGS:
        raise UndecodableError(f"in {len(codings)} codings, where at most {MAX_CODINGS} are undone")
    body = spool_body(iter_pieces(source), limit)
    try:
        while codings:
            # Chunks are decoded to another file, because it may take megabytes to find out that a body is not chunked.
            count = codings.index(_CHUNKED) if _CHUNKED in codings else len(codings)
            decode = _dechunk if count == 0 else _decode
            body, is_part_truncated = decode(body, codings[:count], limit)
            codings, is_truncated = codings[count or 1 :], is_truncated or is_part_truncated
    except BaseException:
        body.close()
        raise
    return body, is_truncated


def _codings(headers: Sequence[tuple[str, str]]) -> list[str]:
    """Return the codings that headers name, in the order of decoding: transfer codings first.

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
    is_truncated = False

    def until_truncated() -> Iterator[bytes]:
        nonlocal is_truncated
        try:
            yield from _iter_chunks(body)
        except _TruncatedChunksError:
            is_truncated = True

    try:
        decoded = spool_body(until_truncated(), limit)
    except _NotChunkedError:
        body.seek(0)
        return body, False
    body.close()
    return decoded, is_truncated


def _iter_chunks(source: BinaryIO) -> Iterator[bytes]:
    """Yield the content of chunks. The first chunk must be followed by another one where its size says."""
    chunks = 0
    while True:
        line = source.readline(_MAX_SIZE_LINE)
        size = _SIZE_LINE.fullmatch(line)
        if size is None:
            raise _NotChunkedError if chunks == 0 or (chunks == 1 and line) else _TruncatedChunksError
        remaining = int(size[1], 16)
        if remaining == 0:
            return
        while remaining and (piece := source.read(min(remaining, _READ_BYTES))):
            remaining -= len(piece)
            yield piece
        end = source.readline(2)
        if remaining or not end:
            raise _TruncatedChunksError
        if end not in (b"\r\n", b"\n"):
            raise _NotChunkedError if chunks == 0 else _TruncatedChunksError
        chunks += 1


def check_record_identity(record: StoredRecord, capture: Capture, archive: Archive) -> None:
    """Raise FailedError of kind `foreign` if a record is of another URL or date than a capture."""
    url, moment = record.header("WARC-Target-URI"), record.header("WARC-Date")
    if url is None or not _is_same_page(url.strip("<>"), capture):
        shown = ascii(url or "")[1:-1][:80]
        raise FailedError(
            f"expected a record of the address that was asked for, found `{shown}`", archive.id, "foreign"
        )
    if _record_datetime(moment or "") != capture.datetime:
        shown = ascii(moment or "")[1:-1][:40]
        raise FailedError(f"expected a record of {capture.datetime}, found `{shown}`", archive.id, "foreign")


def _is_same_page(url: str, capture: Capture) -> bool:
    if url == capture.uri or "\ufffd" in url:
        return True  # each writer converts bytes that are not UTF-8 in its own way: only the date can be compared
    try:
        return uri.key(url) == capture.key
    except UriError:
        return False


def _record_datetime(moment: str) -> str | None:
    """Return the date of a record as 14 digits, which ARC records already have."""
    try:
        return dates.pad(moment) if moment.isdigit() else dates.from_iso(moment)
    except DateError:
        return None


def revisit_target(record: StoredRecord) -> tuple[str, str] | None:
    """Return the URL and the 14-digit date of the record with the body of a revisit, if the revisit names it."""
    url, moment = (
        record.header("WARC-Refers-To-Target-URI"),
        _record_datetime(record.header("WARC-Refers-To-Date") or ""),
    )
    return (url.strip("<>"), moment) if url and moment else None


def _is_not_modified(record: StoredRecord) -> bool:
    """Return whether a revisit only says that the page was not modified, so that the old headers apply."""
    profile = record.header("WARC-Profile") or ""
    return record.http_line is None or "not-modified" in profile or record.http_line.split(" ")[1:2] == ["304"]


def read_capture(
    record: StoredRecord, capture: Capture, archive: Archive, limit: int = MAX_BODY_BYTES
) -> FetchedCapture:
    """Return the capture in a record with a body. Reads the whole record: call it in a thread.

    Args:
        record: The record.
        capture: Its row of the index.
        archive: The archive.
        limit: Largest body in bytes.

    Raises:
        FailedError: Of kind `too-large` for a larger body, `malformed` for an unknown coding.
    """
    try:
        body, is_truncated = decode_payload(record.body, record.http_headers, limit)
    except BodyTooLargeError:
        message = f"expected a body of at most {limit} bytes, found a larger one"
        raise FailedError(message, archive.id, "too-large") from None
    except UndecodableError as error:
        raise FailedError(f"its body is {error}: take another capture", archive.id, "malformed") from None
    declared = record.header("WARC-Truncated")
    damage = "damage" if is_truncated or record.problems() else None
    return FetchedCapture(
        replace(capture, archive=archive.id, migrated=archive.is_migrated(capture.mime)),
        http_headers(record),
        body,
        declared[:_MAX_REASON_LENGTH] if declared else damage,
    )


def apply_revisit(record: StoredRecord, capture: Capture, original: FetchedCapture) -> FetchedCapture:
    """Return the capture of a revisit: its own date, headers and status if it has them, with the original's body.

    Args:
        record: The revisit record.
        capture: Its row of the index.
        original: The capture to which it refers.
    """
    old = original.capture
    if _is_not_modified(record):
        status, mime, headers = old.status, old.mime, original.headers
    else:
        status, mime, headers = capture.status, capture.mime or old.mime, record.http_headers
    capture = replace(
        capture,
        status=status,
        mime=mime,
        archive=old.archive,
        migrated=old.migrated,
        revisit_of=(old.uri, old.datetime),
    )
    return replace(original, capture=capture, headers=headers)


def http_headers(record: StoredRecord) -> tuple[tuple[str, str], ...]:
    """Return the headers of the HTTP message in a record; for a record without one, only its Content-Type."""
    if record.http_line is not None:
        return record.http_headers
    content_type = record.header("Content-Type")
    return (("Content-Type", content_type),) if content_type else ()
