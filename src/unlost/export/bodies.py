"""Bodies as they are exported: links rewritten, archive toolbars removed, decompressed, with their charset declared."""

import io
import os
import re
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import BinaryIO

from unlost.archives.base import FetchedCapture
from unlost.export.links import PageLinkRewriter
from unlost.export.media_types import CSS, GZIP_MAGIC, HTML, REWRITTEN_TYPES, SVG, XHTML
from unlost.html.archive_toolbar import remove_archive_toolbar
from unlost.html.redirect_stub import redirect_stub_target
from unlost.html.rewrite import rewrite_links

_SNIFFED_BYTES = 1024  # bytes in which browsers look for it
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_META = re.compile(rb"<meta\b[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"<\?xml\b[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})", re.IGNORECASE)
_XML_DECLARATION = re.compile(rb"<\?xml\b[^>]{0,200}\?>")
_CSS = re.compile(rb'@charset "([^"]{1,40})";')
# What may stand before the head of a page; a document type must stay the first.
# Whatever was passed over stays so, and what is in quotes ends no tag.
_SPACE = rb"(?>\s|<!--(?:-?>|.*?--!?>))*+"
_ATTRIBUTES = rb"(?:\s(?>[^>\"']|\"[^\"]*\"|'[^']*')*+)?"
_BEFORE_HEAD_CONTENT = re.compile(
    rb"(?>"
    + _SPACE
    + rb"<\?xml[^>]*>)?"
    + _SPACE
    + rb"(?><!doctype[^>]*>)?"
    + _SPACE
    + rb"(?><html"
    + _ATTRIBUTES
    + rb">)?"
    + _SPACE
    + rb"(?><head"
    + _ATTRIBUTES
    + rb">)?",
    re.IGNORECASE | re.DOTALL,
)
_DEFAULT_CHARSETS = frozenset({"windows-1252"})
_UTF_16 = {"UTF-16LE": b"\xff\xfe", "UTF-16BE": b"\xfe\xff"}


def declare_charset(body: bytes, mime: str | None, declared: str | None) -> bytes:
    r"""Return a body that shows the same without what its server said it was written in; the very body if it does.

    mime: its true type. told: what the server said; None if it said nothing, and then nothing is done.

    One declaration is put in, and nothing else is changed; nothing is where all bytes are ASCII, where the body says
    the same itself, and where browsers would take it for that anyway (windows-1252).

    >>> declare_charset("<!doctype html><html lang=ru><title>Да</title>".encode("koi8-r"), "text/html", "koi8-r")[:55]
    b'<!doctype html><html lang=ru><meta charset="KOI8-R"><ti'
    """
    if declared is None or mime not in (HTML, XHTML, SVG, CSS) or _is_ascii(body) or body.startswith(_BYTE_ORDER_MARKS):
        return body
    own = _declaration_in_body(body[:_SNIFFED_BYTES], mime)
    if own is not None and own.lower() == declared.lower().encode("ascii", "replace"):
        return body
    charset = _detected_charset(body, mime, declared)
    is_same = charset == _detected_charset(body, mime, None)  # also if nobody knows what was told
    if charset is None or (is_same and (own is not None or charset in _DEFAULT_CHARSETS)):
        return body
    if charset in _UTF_16:
        return _UTF_16[charset] + body
    return _insert_declaration(body, mime, charset.encode(), has_own=own is not None)


def _is_ascii(body: bytes) -> bool:
    """Return whether a body is the same in every charset: ASCII without the zeros of UTF-16 and ESC of ISO-2022-JP."""
    return body.isascii() and b"\0" not in body and b"\x1b" not in body


def _declaration_in_body(head: bytes, mime: str) -> bytes | None:
    """Return what a body says itself."""
    found = _CSS.match(head) if mime == CSS else _XML.match(head) if mime != HTML else _META.search(head)
    return found[1] if found else None


def _detected_charset(body: bytes, mime: str, declared: str | None) -> str | None:
    """Return what a body is taken for."""
    return rewrite_links(body, mime, "http://page.invalid/", declared, lambda _uri, _use: None).charset


def _insert_declaration(body: bytes, mime: str, charset: bytes, *, has_own: bool) -> bytes:
    if mime == CSS:
        rest = _CSS.sub(b"", body, count=1) if has_own else body
        return b'@charset "%b";' % charset + rest
    if mime == HTML:
        found = _BEFORE_HEAD_CONTENT.match(body, 0, _SNIFFED_BYTES)
        place = found.end() if found else 0
        return b'%b<meta charset="%b">%b' % (body[:place], charset, body[place:])  # the first counts
    begin = _XML_DECLARATION.match(body)
    return b'<?xml version="1.0" encoding="%b"?>%b' % (charset, body[begin.end() :] if begin else body)


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
