"""What is kept of a copy, or of a live page, once its body has been looked at."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha1
from typing import BinaryIO

from unlost.archives.repository import FetchedCapture
from unlost.dates import from_http
from unlost.errors import DateError, DocumentError
from unlost.formats.media_types import is_textual
from unlost.measure.overlap.directives import noarchive_robots
from unlost.pages.documents import DocumentReader, detect_document_kind
from unlost.pages.text import ExtractedText, extract_text
from unlost.pages.told import replace_surrogates
from unlost.pages.verdicts import PageResponse, VerdictKind, classify_page

_MAX_TEXT_BODY_BYTES = 16 << 20  # bytes of a body whose text is compared: pages and most documents are far below it
_MAX_TEXT_LENGTH = 1 << 20  # characters that are kept of one
_MAX_HEADER_LENGTH = 200  # of a header
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PageObservation:
    """A copy, or a live page.

    datetime: of the copy, or when the page was looked at; 14 digits. status, mime: as they came.
    size: bytes of the body without codings. truncated: why it is known not to be whole, in a word; None if it is.
    modified: Last-Modified, 14 digits; None if there is none, or no date. cache_control: the header.
    noarchive: the robots that are asked not to keep it, with spaces; None for what is no HTML.
    digest: SHA-1 of the body, hexadecimal. text: its text, as `packed` has it; None if it has none.
    """

    datetime: str
    status: int | None
    mime: str | None
    size: int
    truncated: str | None = None
    modified: str | None = None
    cache_control: str | None = None
    noarchive: str | None = None
    digest: str | None = None
    text: bytes | None = None


def snapshot_response(
    uri: str,
    datetime: str,
    status: int | None,
    mime: str | None,
    headers: Sequence[tuple[str, str]],
    body: BinaryIO,
    truncated: str | None = None,
    documents: DocumentReader | None = None,
) -> PageObservation:
    """Return what is kept of an answer. body: at its beginning, without codings. Raises nothing for what is in it.

    documents: gives the text of PDF, PostScript and Office files; without it these have none.
    """
    beginning = body.read(_MAX_TEXT_BODY_BYTES)
    size, digest = len(beginning), sha1(beginning, usedforsecurity=False)
    while block := body.read(_BLOCK_BYTES):
        size += len(block)
        digest.update(block)
    is_html = mime in ("text/html", "application/xhtml+xml")
    text = _extract_text(beginning, mime, uri, headers, documents if size == len(beginning) else None)
    return PageObservation(
        datetime,
        status,
        None if mime is None else _printable_header(mime),
        size,
        truncated,
        _parse_last_modified(_header(headers, "last-modified")),
        _printable_header(_header(headers, "cache-control")),
        " ".join(noarchive_robots(beginning, headers)) if is_html else None,
        digest.hexdigest(),
        None if text is None else compress_text(text.text),
    )


def snapshot_capture(copy: FetchedCapture, documents: DocumentReader | None = None) -> PageObservation:
    """Return what is kept of a copy from an archive; its body is closed."""
    capture = copy.capture
    with copy.body:
        copy.body.seek(0)
        return snapshot_response(
            capture.uri, capture.datetime, capture.status, capture.mime, copy.headers, copy.body, copy.truncated,
            documents,
        )  # fmt: skip


def is_archive_error_page(copy: FetchedCapture) -> bool:
    """Return whether what came as a copy is a page by which an archive says that it has none."""
    capture = copy.capture
    copy.body.seek(0)
    page = PageResponse(
        capture.uri, capture.datetime, capture.status, capture.mime, copy.body.read(1 << 20), copy.headers
    )
    found = classify_page(page)
    return found is not None and found.kind is VerdictKind.ARCHIVE_ERROR


def compress_text(text: str) -> bytes:
    """Return a text in little room: a bounded part of it."""
    return zlib.compress(text[:_MAX_TEXT_LENGTH].encode("utf-8", "replace"), 6)


def decompress_text(text: bytes) -> str:
    """Return it again; what is damaged, or more than is ever kept, is cut."""
    try:
        return zlib.decompressobj().decompress(text, 4 * _MAX_TEXT_LENGTH).decode("utf-8", "replace")
    except (zlib.error, TypeError):
        return ""


def _extract_text(
    body: bytes, mime: str | None, uri: str, headers: Sequence[tuple[str, str]], documents: DocumentReader | None
) -> ExtractedText | None:
    kind = detect_document_kind(body, mime, uri) if documents is not None else None
    if documents is not None and kind is not None:
        try:
            return documents.extract_text(body, kind)
        except DocumentError:
            return None
    return extract_text(body, mime, uri, _charset(headers)) if mime and is_textual(mime) else None


def _header(headers: Sequence[tuple[str, str]], name: str) -> str | None:
    return next((value for each, value in headers if each.lower() == name), None)


def _printable_header(text: str | None) -> str | None:
    return None if text is None else replace_surrogates(text[:_MAX_HEADER_LENGTH])


def _parse_last_modified(header: str | None) -> str | None:
    try:
        return None if header is None else from_http(header)
    except DateError:
        return None


def _charset(headers: Sequence[tuple[str, str]]) -> str | None:
    _, found, charset = (_header(headers, "content-type") or "").lower().partition("charset=")
    return charset.partition(";")[0].strip(" \"'")[:40] if found else None
