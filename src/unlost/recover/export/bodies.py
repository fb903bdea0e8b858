"""The body of a resource as it goes into the export."""

import io
import os
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import BinaryIO

from unlost.archives.repository import FetchedCapture
from unlost.pages.banners import remove_archive_toolbar
from unlost.pages.redirect_stub import redirect_stub_target
from unlost.pages.rewriting import rewrite_links
from unlost.recover.export.links import PageLinkRewriter
from unlost.recover.export.page_charset import declare_charset
from unlost.recover.export.placing.true_type import GZIP_MAGIC, REWRITTEN_TYPES

MAX_REWRITTEN_BYTES = 32 << 20
"""Bytes of a body that is rewritten, as `rewrite` has it. Longer ones are passed on as they are, piece by piece."""

_MAX_DECOMPRESSED_BYTES = 64 << 20
_MAX_REDIRECT_PAGE_BYTES = 256 << 10  # bytes of a page that may be nothing but a redirect, with what an archive added
_MAX_MEMBERS = 100  # of a gzipped body: servers make one, or a few
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


@dataclass(slots=True)
class RenderedBody:
    """A body to write.

    charset: what it is written in, if the server told or it was written anew; None if nobody knows.
    changed, left: links, as `rewrite` counts them. counts: addresses, as PageLinks counts them.
    done: what else was done to it: `charset` (declared), `transcoded`, `unpacked`, `cleaned`, `too-long`.
    """

    body: BinaryIO
    charset: str | None = None
    links_rewritten: int = 0
    links_unchanged: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    changes: list[str] = field(default_factory=list)


def declared_charset(copy: FetchedCapture) -> str | None:
    """Return what a server said that a body is written in; None if it said nothing."""
    found = _CHARSET.search(copy.header("content-type") or "")
    return found[1] if found else None


def render_body(copy: FetchedCapture, mime: str | None, links: PageLinkRewriter) -> RenderedBody:
    """Return the body of a copy with links that lead to files.

    mime: its true type. Only pages, style sheets and drawings are read into memory, and only up to 32 MiB.
    """
    told = declared_charset(copy)
    if mime not in REWRITTEN_TYPES:
        return RenderedBody(copy.body, told)
    size = copy.body.seek(0, os.SEEK_END)
    copy.body.seek(0)
    if size > MAX_REWRITTEN_BYTES:
        return RenderedBody(copy.body, told, changes=["too-long"])
    body = before = copy.body.read()
    result = RenderedBody(copy.body, told)
    if body.startswith(GZIP_MAGIC):
        body = _decompress(body)
        _add_change(result, "unpacked", body is not before)
    if copy.capture.migrated:
        clean = remove_archive_toolbar(body, copy.source or copy.capture.urim or "").body
        _add_change(result, "cleaned", clean != body)
        body = clean
    new = rewrite_links(
        body,
        mime,
        copy.capture.uri,
        told,
        links,
        drop_base=True,
        drop_integrity=True,
        drop_csp=True,
        replace_candidate=links.file_url,
        directory=links.directory,
        page=links.relative_url,
    )
    links.add_cached_counts(new.groups)
    result.links_rewritten, result.links_unchanged, result.counts = new.changed, new.skipped, links.counts
    _add_change(result, "transcoded", new.transcoded_from is not None)
    _add_change(result, "too-long", new.is_truncated)
    if new.transcoded_from is not None or told is not None:
        result.charset = new.charset or told
    body = new.body
    if new.transcoded_from is None:
        body = declare_charset(new.body, mime, told)
        _add_change(result, "charset", body is not new.body)
    copy.body.seek(0)
    if body is not before:
        result.body = io.BytesIO(body)
    return result


def redirect_target(copy: FetchedCapture, mime: str | None) -> str | None:
    """Return the URL that a page redirects to if it is nothing but a redirect; None for anything else.

    mime: its true type. The body is read from its beginning, and is there again.
    """
    if mime is None or "html" not in mime.lower() or copy.capture.status not in (None, 200):
        return None
    copy.body.seek(0)
    body = copy.body.read(_MAX_REDIRECT_PAGE_BYTES + 1)
    copy.body.seek(0)
    if len(body) > _MAX_REDIRECT_PAGE_BYTES:
        return None
    if copy.capture.migrated:
        body = remove_archive_toolbar(body, copy.source or copy.capture.urim or "").body
    return redirect_stub_target(body, mime, copy.capture.uri, declared_charset(copy))


def _add_change(result: RenderedBody, what: str, is_so: bool) -> None:
    if is_so:
        result.changes.append(what)


def _decompress(body: bytes) -> bytes:
    """Return what a gzipped body holds, in all its members; itself if it is damaged, or holds too much."""
    found, rest = bytearray(), body
    for _ in range(_MAX_MEMBERS):
        unpacker = zlib.decompressobj(31)
        try:
            found += unpacker.decompress(rest, _MAX_DECOMPRESSED_BYTES + 1 - len(found))
        except zlib.error:
            return body
        if not unpacker.eof or len(found) > _MAX_DECOMPRESSED_BYTES:
            return body
        rest = unpacker.unused_data
        if not rest:
            return bytes(found)
    return body
