"""Pages as bytes: where a block goes, and pages without the blocks that they carry."""

import re

from unlost.vault.block import BEGIN_MARKER, END_MARKER
from unlost.vault.carriers import SCRIPT_TYPE

_TAIL_BYTES = 1024
"""Bytes at the end of a page in which the end of its body is looked for: what is behind it is short."""

NOTICE_CLASS = "unlost-vault-notice"

VAULT_PATH = "/unlost-vault/"
"""Where pages are that are made only to carry blocks."""

INDEX_LINK = f'<link rel="archives" href="{VAULT_PATH}index.html">\n'.encode("ascii")
"""In every page that carries blocks, if there is anything to lead to: crawlers find what something links to."""

_CARRIED_BLOCK = re.compile(
    rb'(?:<!--\s*|<template>\s*|<script type="?' + re.escape(SCRIPT_TYPE.encode()) + rb'"?>\s*)'
    + re.escape(BEGIN_MARKER) + rb"(?:(?!" + re.escape(BEGIN_MARKER) + rb").)*?" + re.escape(END_MARKER)
    + rb"\s*(?:-->|</template>|</script>)\n?",
    re.DOTALL,
)  # fmt: skip
_NOTICE = re.compile(rb'<p class="' + NOTICE_CLASS.encode() + rb'">[^<]*</p>\n?')
_BODY_END = re.compile(rb"</body\s*>", re.IGNORECASE)
# A mark, or as pages begin with a tag, the tag's first letter.
_UTF16_STARTS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"<\0", "utf-16-le"), (b"\0<", "utf-16-be"))


def strip_blocks(body: bytes) -> bytes:
    """Return a page without blocks and notices: byte for byte what it was before they were put in."""
    wide = detect_utf16(body)
    if wide is not None:
        mark, text = body[:2], body[2:].decode(wide, "surrogatepass").encode("utf-8", "surrogatepass")
        bare = _strip(text)
        return body if bare == text else mark + bare.decode("utf-8", "surrogatepass").encode(wide, "surrogatepass")
    return _strip(body)


def _strip(body: bytes) -> bytes:
    return _NOTICE.sub(b"", _CARRIED_BLOCK.sub(b"", body).replace(INDEX_LINK, b"")) if BEGIN_MARKER in body else body


def insert_blocks(body: bytes, blocks: bytes) -> bytes:
    """Return a page that carries what is given, ASCII, before the end of its body, or at its own end."""
    wide = detect_utf16(body)
    if wide is not None:
        made = _insert(body[2:].decode(wide, "surrogatepass").encode("utf-8", "surrogatepass"), blocks)
        return body[:2] + made.decode("utf-8", "surrogatepass").encode(wide, "surrogatepass")
    return _insert(body, blocks)


def _insert(body: bytes, blocks: bytes) -> bytes:
    at = insertion_point(body)
    return body[:at] + blocks + body[at:]


def insertion_point(body: bytes) -> int:
    """Return where a page's body ends, if that is in its last bytes; else the end of all.

    >>> insertion_point(b"<p>a</p></body></html>")
    8
    """
    tail = max(0, len(body) - _TAIL_BYTES)
    return max((found.start() for found in _BODY_END.finditer(body, tail)), default=len(body))


def detect_utf16(body: bytes) -> str | None:
    """Return which UTF-16 a page is in, told by its first bytes; None if it is in something that has ASCII."""
    if len(body) % 2:
        return None
    for mark, charset in _UTF16_STARTS:
        if body.startswith(mark):
            try:
                body[2:].decode(charset)
            except UnicodeDecodeError:
                return None
            return charset
    return None


def render_notice(date: str) -> bytes:
    """Return a visible line about when a page was changed: caches took comments alone for no change."""
    return f'<p class="{NOTICE_CLASS}">This page was modified on {date}.</p>\n'.encode("ascii")
