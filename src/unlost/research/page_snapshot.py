"""Features of a capture or live page for comparison: type, size, digest, text, robots and cache directives."""

import re
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha1
from html.parser import HTMLParser
from typing import BinaryIO

from unlost.archives.base import FetchedCapture
from unlost.dates import from_http
from unlost.documents import DocumentReader, detect_document_kind
from unlost.errors import DateError, DocumentError
from unlost.html.text import ExtractedText, extract_text, replace_surrogates
from unlost.media_types import is_textual
from unlost.quality import PageResponse, VerdictKind, classify_page

_MAX_HEAD_BYTES = 1 << 16  # prefix of a page that is searched for meta tags
_MAX_ROBOTS = 10  # robots stored per page
_ROBOT = re.compile(r"[a-z0-9_.*-]{1,40}")
_NOARCHIVE_TOKENS = frozenset({"noarchive", "nocache", "none"})
_NO_CACHE_DIRECTIVES = frozenset({"no-cache", "no-store", "private"})
ALL_ROBOTS = "robots"
"""Name that addresses all robots."""

_MAX_TEXT_BODY_BYTES = 16 << 20  # of a body from which text is extracted
_MAX_TEXT_LENGTH = 1 << 20  # characters of text that are stored
_MAX_HEADER_LENGTH = 200  # characters of a header that are stored
_BLOCK_BYTES = 1 << 20


def noarchive_robots(body: bytes, headers: Iterable[tuple[str, str]] = ()) -> tuple[str, ...]:
    """Return the robots that a page forbids to archive it, sorted; `robots` means all robots.

    `none` counts as `noarchive`: it means noindex and nofollow, which keep a page out of archives as well.

    Args:
        body: HTML; only its beginning is parsed.
        headers: Response headers; X-Robots-Tag is evaluated.

    >>> noarchive_robots(b'<meta name=googlebot content="noarchive"><meta name="robots" content="NOINDEX, NoArchive">')
    ('googlebot', 'robots')
    >>> noarchive_robots(b"", [("X-Robots-Tag", "otherbot: noarchive"), ("X-Robots-Tag", "noindex")])
    ('otherbot',)
    """
    parser = _RobotsMetaParser()
    parser.feed_safely(body[:_MAX_HEAD_BYTES].decode("latin-1"))
    directives = [*parser.directives, *_header_directives(headers)]
    names = {name for name, content in directives if _NOARCHIVE_TOKENS & _directive_tokens(content)}
    return tuple(sorted(names)[:_MAX_ROBOTS])


def forbids_caching(cache_control: str | None) -> bool:
    """Return whether a Cache-Control header has `no-cache`, `no-store` or `private`.

    >>> [forbids_caching(each) for each in ("max-age=0, No-Store", 'private="x"', "public", None)]
    [True, True, False, False]
    """
    parts = (cache_control or "").lower().split(",")
    return any(part.partition("=")[0].strip() in _NO_CACHE_DIRECTIVES for part in parts)


def _directive_tokens(content: str) -> frozenset[str]:
    return frozenset(re.split(r"[\s,;]+", content.lower()))


def _header_directives(headers: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    for name, value in headers:
        if name.lower() == "x-robots-tag":
            robot, colon, rest = value.partition(":")
            # `unavailable_after: date` contains a colon without naming a robot.
            is_named = bool(colon) and _ROBOT.fullmatch(robot.strip().lower()) and robot.strip() != "unavailable_after"
            yield (robot.strip().lower(), rest) if is_named else (ALL_ROBOTS, value)


class _RobotsMetaParser(HTMLParser):
    """Collects name and content of the meta tags for robots."""

    def __init__(self) -> None:
        super().__init__()
        self.directives: list[tuple[str, str]] = []

    def feed_safely(self, text: str) -> None:
        """Parse as much as possible."""
        with suppress(AssertionError):  # raised by html.parser for a malformed declaration; tags before it count
            self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect a meta tag."""
        values = {name: value or "" for name, value in reversed(attrs)}
        name = values.get("name", "").strip().lower()
        is_robot = name == ALL_ROBOTS or name.endswith("bot") or name in ("slurp", "teoma")
        if tag == "meta" and is_robot and _ROBOT.fullmatch(name):
            self.directives.append((name, values.get("content", "")[:500]))


@dataclass(frozen=True, slots=True)
class PageObservation:
    """Features of a capture or a live page.

    Attributes:
        datetime: Capture date, or time of the request to the live page; 14 digits.
        status: HTTP status.
        mime: Media type.
        size: Size of the body without content codings, in bytes.
        truncated: Reason why the body is incomplete; None if it is complete.
        modified: Last-Modified, 14 digits; None if absent or invalid.
        cache_control: Cache-Control header.
        noarchive: Space-separated robots that the page forbids to archive it; None if it is not HTML.
        digest: SHA-1 of the body, hexadecimal.
        text: Text compressed by `compress_text`; None if it has none.
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
    """Return the features of a response. Malformed content raises no errors.

    Args:
        uri: URL of the page.
        datetime: Capture date, 14 digits.
        status: HTTP status.
        mime: Media type.
        headers: Response headers.
        body: Body without content codings, positioned at its beginning.
        truncated: Reason why the body is incomplete.
        documents: Extracts the text of PDF, PostScript and Office files; None to ignore their text.
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


def snapshot_capture(fetched: FetchedCapture, documents: DocumentReader | None = None) -> PageObservation:
    """Return the features of a fetched capture, and close its body."""
    capture = fetched.capture
    with fetched.body:
        fetched.body.seek(0)
        return snapshot_response(
            capture.uri, capture.datetime, capture.status, capture.mime, fetched.headers, fetched.body,
            fetched.truncated, documents,
        )  # fmt: skip


def is_archive_error_page(fetched: FetchedCapture) -> bool:
    """Return whether the body is an error page of the archive instead of the capture."""
    capture = fetched.capture
    fetched.body.seek(0)
    page = PageResponse(
        capture.uri, capture.datetime, capture.status, capture.mime, fetched.body.read(1 << 20), fetched.headers
    )
    verdict = classify_page(page)
    return verdict is not None and verdict.kind is VerdictKind.ARCHIVE_ERROR


def compress_text(text: str) -> bytes:
    """Return the text compressed, truncated to `_MAX_TEXT_LENGTH`."""
    return zlib.compress(text[:_MAX_TEXT_LENGTH].encode("utf-8", "replace"), 6)


def unpack_text(text: bytes) -> str:
    """Return the text; empty if the data is damaged."""
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
    _, separator, charset = (_header(headers, "content-type") or "").lower().partition("charset=")
    return charset.partition(";")[0].strip(" \"'")[:40] if separator else None
