"""Renders bodies for an export: rewrites links, removes archive toolbars, decompresses, and declares charsets."""

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

_SNIFFED_BYTES = 1024  # browsers look for a charset declaration in this many bytes
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_META = re.compile(rb"<meta\b[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"<\?xml\b[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})", re.IGNORECASE)
_XML_DECLARATION = re.compile(rb"<\?xml\b[^>]{0,200}\?>")
_CSS = re.compile(rb'@charset "([^"]{1,40})";')
# What may precede the content of <head>; a document type must remain the first.
# Groups are atomic and quantifiers possessive against catastrophic backtracking; quoted text does not end a tag.
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
    r"""Return a body that is displayed the same without the charset of its Content-Type header.

    At most one declaration is inserted. The body is returned unchanged if it is ASCII, declares the same charset
    itself, or has the charset that browsers assume by default (windows-1252).

    Args:
        body: The body.
        mime: The sniffed media type.
        declared: The charset in the Content-Type header; None without one, then the body is returned unchanged.

    >>> declare_charset("<!doctype html><html lang=ru><title>Да</title>".encode("koi8-r"), "text/html", "koi8-r")[:55]
    b'<!doctype html><html lang=ru><meta charset="KOI8-R"><ti'
    """
    if declared is None or mime not in (HTML, XHTML, SVG, CSS) or _is_ascii(body) or body.startswith(_BYTE_ORDER_MARKS):
        return body
    own = _declaration_in_body(body[:_SNIFFED_BYTES], mime)
    if own is not None and own.lower() == declared.lower().encode("ascii", "replace"):
        return body
    charset = _detected_charset(body, mime, declared)
    is_same = charset == _detected_charset(body, mime, None)  # also if the declared charset is unknown
    if charset is None or (is_same and (own is not None or charset in _DEFAULT_CHARSETS)):
        return body
    if charset in _UTF_16:
        return _UTF_16[charset] + body
    return _insert_declaration(body, mime, charset.encode(), has_own=own is not None)


def _is_ascii(body: bytes) -> bool:
    """Return whether a body is the same in every charset: ASCII without NUL (UTF-16) and ESC (ISO-2022-JP)."""
    return body.isascii() and b"\0" not in body and b"\x1b" not in body


def _declaration_in_body(head: bytes, mime: str) -> bytes | None:
    """Return the charset that a body declares itself."""
    match = _CSS.match(head) if mime == CSS else _XML.match(head) if mime != HTML else _META.search(head)
    return match[1] if match else None


def _detected_charset(body: bytes, mime: str, declared: str | None) -> str | None:
    """Return the charset in which a browser decodes a body."""
    return rewrite_links(body, mime, "http://page.invalid/", declared, lambda _uri, _use: None).charset


def _insert_declaration(body: bytes, mime: str, charset: bytes, *, has_own: bool) -> bytes:
    if mime == CSS:
        style_sheet = _CSS.sub(b"", body, count=1) if has_own else body
        return b'@charset "%b";' % charset + style_sheet
    if mime == HTML:
        match = _BEFORE_HEAD_CONTENT.match(body, 0, _SNIFFED_BYTES)
        end = match.end() if match else 0
        return b'%b<meta charset="%b">%b' % (body[:end], charset, body[end:])  # the first counts
    declaration = _XML_DECLARATION.match(body)
    return b'<?xml version="1.0" encoding="%b"?>%b' % (charset, body[declaration.end() :] if declaration else body)


MAX_REWRITTEN_BYTES = 32 << 20
"""Size of a body up to which it is rewritten, as for `rewrite_links`. Larger ones are streamed unchanged."""
_MAX_DECOMPRESSED_BYTES = 64 << 20
_MAX_REDIRECT_PAGE_BYTES = 256 << 10  # size of a page that only redirects, including an archive's additions
_MAX_MEMBERS = 100  # gzip members of a body; servers send one or a few
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


@dataclass(slots=True)
class RenderedBody:
    """A body to write.

    Attributes:
        body: The content.
        charset: Its charset, if the server declared it or the body was transcoded; None if unknown.
        links_rewritten: Number of links that were rewritten.
        links_unchanged: Number of links that were skipped because they are too long or too many.
        counts: Number of URLs by `LinkTargetKind`.
        changes: Other changes: `charset` (declared), `transcoded`, `unpacked`, `cleaned`, `too-long`.
    """

    body: BinaryIO
    charset: str | None = None
    links_rewritten: int = 0
    links_unchanged: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    changes: list[str] = field(default_factory=list)


def declared_charset(fetched: FetchedCapture) -> str | None:
    """Return the charset in the Content-Type header, or None."""
    match = _CHARSET.search(fetched.header("content-type") or "")
    return match[1] if match else None


def render_body(fetched: FetchedCapture, mime: str | None, links: PageLinkRewriter) -> RenderedBody:
    """Return the body of a capture with links rewritten to files of the export.

    Only HTML, CSS and SVG are read into memory, and only up to `MAX_REWRITTEN_BYTES`.

    Args:
        fetched: The capture.
        mime: The sniffed media type.
        links: Resolves the links.
    """
    declared = declared_charset(fetched)
    if mime not in REWRITTEN_TYPES:
        return RenderedBody(fetched.body, declared)
    size = fetched.body.seek(0, os.SEEK_END)
    fetched.body.seek(0)
    if size > MAX_REWRITTEN_BYTES:
        return RenderedBody(fetched.body, declared, changes=["too-long"])
    body = original = fetched.body.read()
    result = RenderedBody(fetched.body, declared)
    if body.startswith(GZIP_MAGIC):
        body = _decompress(body)
        _add_change(result, "unpacked", body is not original)
    if fetched.capture.migrated:
        cleaned = remove_archive_toolbar(body, fetched.source or fetched.capture.urim or "").body
        _add_change(result, "cleaned", cleaned != body)
        body = cleaned
    rewritten = rewrite_links(
        body,
        mime,
        fetched.capture.uri,
        declared,
        links,
        drop_base=True,
        drop_integrity=True,
        drop_csp=True,
        replace_candidate=links.file_url,
        directory=links.directory,
        page=links.relative_url,
    )
    links.add_cached_counts(rewritten.groups)
    result.links_rewritten, result.links_unchanged, result.counts = rewritten.changed, rewritten.skipped, links.counts
    _add_change(result, "transcoded", rewritten.transcoded_from is not None)
    _add_change(result, "too-long", rewritten.is_truncated)
    if rewritten.transcoded_from is not None or declared is not None:
        result.charset = rewritten.charset or declared
    body = rewritten.body
    if rewritten.transcoded_from is None:
        body = declare_charset(rewritten.body, mime, declared)
        _add_change(result, "charset", body is not rewritten.body)
    fetched.body.seek(0)
    if body is not original:
        result.body = io.BytesIO(body)
    return result


def redirect_target(fetched: FetchedCapture, mime: str | None) -> str | None:
    """Return the URL that a page redirects to if it only redirects; otherwise None. The body is rewound.

    Args:
        fetched: The capture.
        mime: The sniffed media type.
    """
    if mime is None or "html" not in mime.lower() or fetched.capture.status not in (None, 200):
        return None
    fetched.body.seek(0)
    body = fetched.body.read(_MAX_REDIRECT_PAGE_BYTES + 1)
    fetched.body.seek(0)
    if len(body) > _MAX_REDIRECT_PAGE_BYTES:
        return None
    if fetched.capture.migrated:
        body = remove_archive_toolbar(body, fetched.source or fetched.capture.urim or "").body
    return redirect_stub_target(body, mime, fetched.capture.uri, declared_charset(fetched))


def _add_change(result: RenderedBody, change: str, is_changed: bool) -> None:
    if is_changed:
        result.changes.append(change)


def _decompress(body: bytes) -> bytes:
    """Decompress a gzipped body with all its members; return it unchanged if it is damaged or too large."""
    decompressed, remaining = bytearray(), body
    for _ in range(_MAX_MEMBERS):
        decompressor = zlib.decompressobj(31)
        try:
            decompressed += decompressor.decompress(remaining, _MAX_DECOMPRESSED_BYTES + 1 - len(decompressed))
        except zlib.error:
            return body
        if not decompressor.eof or len(decompressed) > _MAX_DECOMPRESSED_BYTES:
            return body
        remaining = decompressor.unused_data
        if not remaining:
            return bytes(decompressed)
    return body
