"""Keeps a copy, and reads the links in it."""

import os
import re
from dataclasses import dataclass

from unlost.archives.bodies.digest_check import has_digest
from unlost.archives.repository import StoredCopy
from unlost.formats.capture import Capture
from unlost.pages.banners import cleaned
from unlost.pages.link import Link
from unlost.pages.links import links
from unlost.pages.scripts import candidates
from unlost.pages.verdicts import Answer
from unlost.recover.record import Record
from unlost.recover.warcs import Warcs

_MAX_READ = 32 << 20  # bytes: more are not read for links anyway
_CODINGS = tuple(
    prefix + name for prefix in ("", "x-archive-orig-") for name in ("content-encoding", "transfer-encoding")
)
_MAX_JUDGED = 512 << 10  # bytes: longer pages are judged by their beginning
_HTML = re.compile(rb"\s*<(!doctype\s+html|html)", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a copy.

    size: of its body, in bytes. links: those in it, resolved.
    is_as_listed: whether it has the digest that its archive's index gives; None if nobody can tell.
    page: what it says, to be judged, if it is HTML; None if it is not.
    candidates: URLs that scripts in it may request.
    """

    record: Record
    size: int
    links: list[Link]
    is_as_listed: bool | None
    page: Answer | None
    candidates: list[str]


def keep(warcs: Warcs, copy: StoredCopy, listed: Capture | None) -> Kept:
    """Store a copy and read its links. It waits for the disk: call it in a thread, one at a time. Raises OSError."""
    size = copy.body.seek(0, os.SEEK_END)
    copy.body.seek(0)
    record = warcs.store(copy, listed)
    return _kept(record, size, copy)


def keep_same(warcs: Warcs, capture: Capture, of: Record) -> Kept:
    """Store that a capture has the same bytes as a record, and read the links in them. As `keep`."""
    record = warcs.store_same(capture, of)
    return reread(warcs, record)


def reread(warcs: Warcs, record: Record) -> Kept:
    """Read the links of a record that was stored before."""
    copy = warcs.open(record)
    with copy.body:
        size = copy.body.seek(0, os.SEEK_END)
        return _kept(record, size, copy)


def unread(record: Record) -> Kept:
    """Return a record that was stored before, without what is in it: a redirect."""
    return Kept(record, 0, [], None, None, [])


def _is_as_listed(copy: StoredCopy, record: Record) -> bool | None:
    """Indexes have the digest of what was sent, in whatever codings; a body of another digest was cut, most likely."""
    listed = record.listed_digest
    if listed is None or record.capture.revisit or any(copy.header(name) for name in _CODINGS):
        return None
    # That of the record is SHA-1, as nearly every index has it: then it need not be computed again.
    return listed == record.capture.digest or has_digest(copy.body, listed)


def _kept(record: Record, size: int, copy: StoredCopy) -> Kept:
    is_as_listed = _is_as_listed(copy, record)
    copy.body.seek(0)
    body, capture = copy.body.read(_MAX_READ), copy.capture
    if capture.migrated:  # what is kept stays as it came; what it says, and where it leads, is the page's own
        body = cleaned(body, copy.source or capture.urim or "").body
    told = _CHARSET.search(copy.header("content-type") or "")
    charset = told[1] if told else None
    found = links(body, capture.mime, capture.uri, charset)
    page = None
    is_html = _is_html(capture.mime, body)
    if is_html:
        shown = body[:_MAX_JUDGED]
        page = Answer(capture.uri, capture.datetime, capture.status, "text/html", shown, copy.headers, charset)
    guesses = candidates(body, capture.mime, capture.uri, is_html=is_html, charset=charset)
    return Kept(record, size, found, is_as_listed, page, guesses)


def _is_html(mime: str | None, body: bytes) -> bool:
    """Return whether a body is a page: also one that stands in the place of an image or a style sheet."""
    return "html" in (mime or "").lower() or _HTML.match(body, 0, 512) is not None
