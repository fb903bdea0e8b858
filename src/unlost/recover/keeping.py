"""Keeps a copy, and reads the links in it."""

import os
import re
from dataclasses import dataclass

from unlost.archives.bodies.digest_check import matches_digest
from unlost.archives.repository import FetchedCapture
from unlost.formats.capture import Capture
from unlost.pages.banners import remove_archive_toolbar
from unlost.pages.link import Link
from unlost.pages.links import extract_links
from unlost.pages.scripts import find_script_urls
from unlost.pages.verdicts import PageResponse
from unlost.recover.record import RecoveryRecord
from unlost.recover.warcs import WarcStore

_MAX_READ = 32 << 20  # bytes: more are not read for links anyway
_CODING_HEADERS = tuple(
    prefix + name for prefix in ("", "x-archive-orig-") for name in ("content-encoding", "transfer-encoding")
)
_MAX_CLASSIFIED = 512 << 10  # bytes: longer pages are judged by their beginning
_HTML = re.compile(rb"\s*<(!doctype\s+html|html)", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StoredCapture:
    """What became of a copy.

    size: of its body, in bytes. links: those in it, resolved.
    is_as_listed: whether it has the digest that its archive's index gives; None if nobody can tell.
    page: what it says, to be judged, if it is HTML; None if it is not.
    candidates: URLs that scripts in it may request.
    """

    record: RecoveryRecord
    size: int
    links: list[Link]
    matches_listed_digest: bool | None
    page: PageResponse | None
    script_urls: list[str]


def store_capture(warcs: WarcStore, copy: FetchedCapture, listed: Capture | None) -> StoredCapture:
    """Store a copy and read its links. It waits for the disk: call it in a thread, one at a time. Raises OSError."""
    size = copy.body.seek(0, os.SEEK_END)
    copy.body.seek(0)
    record = warcs.store(copy, listed)
    return _read_stored(record, size, copy)


def store_revisit(warcs: WarcStore, capture: Capture, of: RecoveryRecord) -> StoredCapture:
    """Store that a capture has the same bytes as a record, and read the links in them. As `keep`."""
    record = warcs.store_revisit(capture, of)
    return load_stored(warcs, record)


def load_stored(warcs: WarcStore, record: RecoveryRecord) -> StoredCapture:
    """Read the links of a record that was stored before."""
    copy = warcs.open(record)
    with copy.body:
        size = copy.body.seek(0, os.SEEK_END)
        return _read_stored(record, size, copy)


def stored_redirect(record: RecoveryRecord) -> StoredCapture:
    """Return a record that was stored before, without what is in it: a redirect."""
    return StoredCapture(record, 0, [], None, None, [])


def _matches_listed_digest(copy: FetchedCapture, record: RecoveryRecord) -> bool | None:
    """Indexes have the digest of what was sent, in whatever codings; a body of another digest was cut, most likely."""
    listed = record.listed_digest
    if listed is None or record.capture.revisit or any(copy.header(name) for name in _CODING_HEADERS):
        return None
    # That of the record is SHA-1, as nearly every index has it: then it need not be computed again.
    return listed == record.capture.digest or matches_digest(copy.body, listed)


def _read_stored(record: RecoveryRecord, size: int, copy: FetchedCapture) -> StoredCapture:
    is_as_listed = _matches_listed_digest(copy, record)
    copy.body.seek(0)
    body, capture = copy.body.read(_MAX_READ), copy.capture
    if capture.migrated:  # what is kept stays as it came; what it says, and where it leads, is the page's own
        body = remove_archive_toolbar(body, copy.source or capture.urim or "").body
    told = _CHARSET.search(copy.header("content-type") or "")
    charset = told[1] if told else None
    found = extract_links(body, capture.mime, capture.uri, charset)
    page = None
    is_html = _is_html(capture.mime, body)
    if is_html:
        shown = body[:_MAX_CLASSIFIED]
        page = PageResponse(capture.uri, capture.datetime, capture.status, "text/html", shown, copy.headers, charset)
    guesses = find_script_urls(body, capture.mime, capture.uri, is_html=is_html, charset=charset)
    return StoredCapture(record, size, found, is_as_listed, page, guesses)


def _is_html(mime: str | None, body: bytes) -> bool:
    """Return whether a body is a page: also one that stands in the place of an image or a style sheet."""
    return "html" in (mime or "").lower() or _HTML.match(body, 0, 512) is not None
