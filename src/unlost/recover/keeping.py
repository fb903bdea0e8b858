"""Keeps a copy, and reads the links in it."""

import os
import re
from dataclasses import dataclass

from unlost.archives.bodies.digest_check import has_digest
from unlost.archives.repository import StoredCopy
from unlost.formats.capture import Capture
from unlost.pages.link import Link
from unlost.pages.links import links
from unlost.recover.record import Record
from unlost.recover.warcs import Warcs

_MAX_READ = 32 << 20  # bytes: more are not read for links anyway
_CODINGS = tuple(
    prefix + name for prefix in ("", "x-archive-orig-") for name in ("content-encoding", "transfer-encoding")
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of a copy.

    size: of its body, in bytes. links: those in it, resolved.
    is_as_listed: whether it has the digest that its archive's index gives; None if nobody can tell.
    """

    record: Record
    size: int
    links: list[Link]
    is_as_listed: bool | None


def keep(warcs: Warcs, copy: StoredCopy, listed: Capture | None) -> Kept:
    """Store a copy and read its links. It waits for the disk: call it in a thread, one at a time. Raises OSError."""
    size = copy.body.seek(0, os.SEEK_END)
    copy.body.seek(0)
    record = warcs.store(copy, listed)
    return Kept(record, size, _links(copy), _is_as_listed(copy, record))


def keep_same(warcs: Warcs, capture: Capture, of: Record) -> Kept:
    """Store that a capture has the same bytes as a record, and read the links in them. As `keep`."""
    record = warcs.store_same(capture, of)
    return reread(warcs, record)


def reread(warcs: Warcs, record: Record) -> Kept:
    """Read the links of a record that was stored before."""
    copy = warcs.open(record)
    with copy.body:
        size = copy.body.seek(0, os.SEEK_END)
        return Kept(record, size, _links(copy), _is_as_listed(copy, record))


def _is_as_listed(copy: StoredCopy, record: Record) -> bool | None:
    """Indexes have the digest of what was sent, in whatever codings; a body of another digest was cut, most likely."""
    listed = record.listed_digest
    if listed is None or record.capture.revisit or any(copy.header(name) for name in _CODINGS):
        return None
    # That of the record is SHA-1, as nearly every index has it: then it need not be computed again.
    return listed == record.capture.digest or has_digest(copy.body, listed)


def _links(copy: StoredCopy) -> list[Link]:
    copy.body.seek(0)
    charset = _CHARSET.search(copy.header("content-type") or "")
    return links(copy.body.read(_MAX_READ), copy.capture.mime, copy.capture.uri, charset[1] if charset else None)
