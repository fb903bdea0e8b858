"""The media type that a body has, whatever it was said to have."""

import re
import zlib

SNIFFED_BYTES = 4096
"""How many first bytes are looked at."""

HTML, XHTML, SVG, CSS = "text/html", "application/xhtml+xml", "image/svg+xml", "text/css"
REWRITTEN_TYPES = frozenset({HTML, XHTML, SVG, CSS})
"""Types whose links are rewritten."""

GZIP_MAGIC = b"\x1f\x8b"

_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,100}")
_GENERIC_TYPES = frozenset(
    {"application/octet-stream", "binary/octet-stream", "application/force-download", "application/x-unknown",
     "application/unknown", "unknown/unknown", "application/download", "application/x-download"}
)  # fmt: skip
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"%PDF-", "application/pdf"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
)
# Whatever was passed over stays so: of many comments, each could else end with any other, in ways without number.
_BEGIN = rb"(?:\xef\xbb\xbf)?(?>\s|<!--.*?-->|<\?xml[^>]*>)*+"
_HTML = re.compile(_BEGIN + rb"<(?:!doctype\s+html|html|head|body|title|frameset)\b", re.IGNORECASE | re.DOTALL)
_SVG = re.compile(_BEGIN + rb"(?:<!doctype\s+svg[^>]*>\s*)?<svg\b", re.IGNORECASE | re.DOTALL)
_FEED = re.compile(_BEGIN + rb"<(?:rss|feed|rdf:RDF|urlset|sitemapindex)\b", re.DOTALL)
_BY_EXTENSION = {"html": HTML, "htm": HTML, "xhtml": XHTML, "css": CSS, "svg": SVG, "js": "text/javascript"}


def declared_type(mime: str | None) -> str | None:
    """Return a type as it was told, without parameters; None if it is none, or says nothing.

    >>> told_type("Text/HTML; charset=x"), told_type("application/octet-stream"), told_type("unk")
    ('text/html', None, None)
    """
    essence = (mime or "").partition(";")[0].strip().lower()
    return essence if _TYPE.fullmatch(essence) and essence not in _GENERIC_TYPES else None


def sniff_type(mime: str | None, head: bytes, extension: str) -> str | None:
    r"""Return the type of a body; None if nothing tells.

    mime: as it was told. head: its first bytes, also gzipped. ending: of the path of its address, without the dot.

    >>> true_type("text/html", b"\x89PNG\r\n\x1a\n", "php"), true_type("application/pdf", b"<html>", "pdf")
    ('image/png', 'text/html')
    >>> true_type(None, b"a {}", "css"), true_type("text/plain", b"<html>", "txt")
    ('text/css', 'text/plain')
    """
    told = declared_type(mime)
    if head.startswith(GZIP_MAGIC):
        if told not in REWRITTEN_TYPES:
            return told
        head = _decompress_head(head)
        told = told if head else "application/gzip"
    return (
        _type_by_signature(head) or _text_type(told, head.replace(b"\0", b"")) or _BY_EXTENSION.get(extension.lower())
    )


def _text_type(declared: str | None, head: bytes) -> str | None:
    """Return the type of what may be a text. head: without the zeros of UTF-16."""
    if declared == "text/plain":  # browsers show it as it is
        return declared
    if _FEED.match(head):
        return "application/xml" if declared in (None, HTML) else declared
    if declared not in (HTML, XHTML, SVG) and _HTML.match(head):
        return HTML
    if declared in (None, "text/xml", "application/xml") and _SVG.match(head):
        return SVG
    return declared


def _type_by_signature(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((told for signature, told in _SIGNATURES if head.startswith(signature)), None)


def _decompress_head(head: bytes) -> bytes:
    """Return the beginning of what a gzipped body holds; nothing if it is damaged."""
    try:
        return zlib.decompressobj(31).decompress(head, SNIFFED_BYTES)
    except zlib.error:
        return b""
