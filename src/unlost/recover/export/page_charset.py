"""Has a page say itself what it is written in, where only its server did."""

import re

from unlost.pages.rewriting import rewrite
from unlost.recover.export.placing.true_type import DRAWING, PAGE, STYLE, XHTML

_HEAD = 1024  # bytes in which browsers look for it
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_META = re.compile(rb"<meta\b[^>]{0,300}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_XML = re.compile(rb"<\?xml\b[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})", re.IGNORECASE)
_XML_BEGIN = re.compile(rb"<\?xml\b[^>]{0,200}\?>")
_CSS = re.compile(rb'@charset "([^"]{1,40})";')
# What may stand before the head of a page; a document type must stay the first.
# Whatever was passed over stays so, and what is in quotes ends no tag.
_SPACE = rb"(?>\s|<!--(?:-?>|.*?--!?>))*+"
_ATTRIBUTES = rb"(?:\s(?>[^>\"']|\"[^\"]*\"|'[^']*')*+)?"
_BEFORE = re.compile(
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
_GUESSED = frozenset({"windows-1252"})
_UTF_16 = {"UTF-16LE": b"\xff\xfe", "UTF-16BE": b"\xfe\xff"}


def self_told(body: bytes, mime: str | None, told: str | None) -> bytes:
    r"""Return a body that shows the same without what its server said it was written in; the very body if it does.

    mime: its true type. told: what the server said; None if it said nothing, and then nothing is done.

    One declaration is put in, and nothing else is changed; nothing is where all bytes are ASCII, where the body says
    the same itself, and where browsers would take it for that anyway (windows-1252).

    >>> self_told("<!doctype html><html lang=ru><title>Да</title>".encode("koi8-r"), "text/html", "koi8-r")[:55]
    b'<!doctype html><html lang=ru><meta charset="KOI8-R"><ti'
    """
    if told is None or mime not in (PAGE, XHTML, DRAWING, STYLE) or _is_plain(body) or body.startswith(_MARKS):
        return body
    own = _own(body[:_HEAD], mime)
    if own is not None and own.lower() == told.lower().encode("ascii", "replace"):
        return body
    charset = _charset(body, mime, told)
    is_same = charset == _charset(body, mime, None)  # also if nobody knows what was told
    if charset is None or (is_same and (own is not None or charset in _GUESSED)):
        return body
    if charset in _UTF_16:
        return _UTF_16[charset] + body
    return _declared(body, mime, charset.encode(), has_own=own is not None)


def _is_plain(body: bytes) -> bool:
    """Return whether a body is the same in every charset: ASCII without the zeros of UTF-16 and ESC of ISO-2022-JP."""
    return body.isascii() and b"\0" not in body and b"\x1b" not in body


def _own(head: bytes, mime: str) -> bytes | None:
    """Return what a body says itself."""
    found = _CSS.match(head) if mime == STYLE else _XML.match(head) if mime != PAGE else _META.search(head)
    return found[1] if found else None


def _charset(body: bytes, mime: str, told: str | None) -> str | None:
    """Return what a body is taken for."""
    return rewrite(body, mime, "http://page.invalid/", told, lambda _uri, _use: None).charset


def _declared(body: bytes, mime: str, charset: bytes, *, has_own: bool) -> bytes:
    if mime == STYLE:
        rest = _CSS.sub(b"", body, count=1) if has_own else body
        return b'@charset "%b";' % charset + rest
    if mime == PAGE:
        found = _BEFORE.match(body, 0, _HEAD)
        place = found.end() if found else 0
        return b'%b<meta charset="%b">%b' % (body[:place], charset, body[place:])  # the first counts
    begin = _XML_BEGIN.match(body)
    return b'<?xml version="1.0" encoding="%b"?>%b' % (charset, body[begin.end() :] if begin else body)
