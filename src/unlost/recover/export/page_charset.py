"""Has a page say itself what it is written in, where only its server did."""

import re

from unlost.pages.rewriting import rewrite_links
from unlost.recover.export.placing.true_type import SVG, HTML, CSS, XHTML

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

    >>> self_told("<!doctype html><html lang=ru><title>Да</title>".encode("koi8-r"), "text/html", "koi8-r")[:55]
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
