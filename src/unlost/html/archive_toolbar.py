"""Removes what web archives insert into pages: toolbars, scripts, and rewritten links.

Needed only for mementos that cannot be fetched raw (`id_`), such as those of archive.today.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_MAX_HEAD_BYTES = 64 << 10  # after `<head>`, within which inserted scripts end
_TAIL_BYTES = 16 << 10  # at the end of a page, where archives append their comments
_MAX_TOOLBAR_BYTES = 512 << 10  # of the element of a toolbar
_DIV_TAG = re.compile(rb"<(/?)div\b", re.IGNORECASE)

# Comments before and after insertions: of the Wayback Machine, of pywb, and of older versions.
_MARKER_PAIRS = (
    (b"<!-- BEGIN WAYBACK TOOLBAR INSERT -->", b"<!-- END WAYBACK TOOLBAR INSERT -->"),
    (b"<!-- WB Insert -->", b"<!-- End WB Insert -->"),
    (b"<!-- BEGIN WAYBACK BANNER -->", b"<!-- END WAYBACK BANNER -->"),
)
# The Wayback Machine marks only the end of its scripts, which begin after `<head>`.
_SCRIPTS_END = b"<!-- End Wayback Rewrite JS Include -->"
_HEAD_TAG = re.compile(rb"<head(?:\s[^>]{0,1000})?>", re.IGNORECASE)
_OWN_SCRIPT = re.compile(rb"\s*<(?:script|link)\b[^>]{0,500}(?:archive\.org|/_static/)", re.IGNORECASE)
# Comments of the Wayback Machine at the end of the page. In its early years they were in a script.
_FOOTER_COMMENTS = (
    re.compile(rb"<!--\s{0,20}FILE ARCHIVED ON [^<>]{0,2000}?-->\s?"),
    re.compile(rb"<!--\s{0,20}playback timings \(ms\):[^<>]{0,4000}?-->\s?"),
    re.compile(
        rb"<script[^>]{0,100}>\s{0,20}<!--\s{0,20}// FILE ARCHIVED ON .{0,6000}?</script>\s?", re.IGNORECASE | re.DOTALL
    ),
)
# archive.today puts an element of its own above the page.
_ARCHIVE_TODAY_HOST = re.compile(r"(?:^|\.)archive\.(?:today|is|ph|li|md|vn|fo)$")
_ARCHIVE_TODAY_HEADER = re.compile(rb"<div[^>]{0,100}\bid=[\"']?HEADER\b", re.IGNORECASE)
_MEMENTO_PATH = re.compile(r"(/(?:[^/?#]+/)*)\d{4,14}(?:[a-z]{2}_)?/")
_URL_START = rb"(?<=[\"'=(,;\s])"  # a URL begins an attribute, an argument of `url()`, or an item of a list
_DATE = rb"\d{4,14}(?:[a-z]{2}_)?/"  # a date and a modifier such as `im_`, `js_`, `cs_`
_URL_LOOKAHEAD = rb"(?=(?:https?:)?/{1,2}[^/\s\"'<>]|mailto:|javascript:|data:|ftp:)"


@dataclass(frozen=True, slots=True)
class CleanedPage:
    """A page or a style sheet without the archive's insertions.

    Attributes:
        body: The body.
        banners: Number of insertions that were removed.
        links: Number of rewritten links that were restored.
    """

    body: bytes
    banners: int
    links: int


def remove_archive_toolbar(body: bytes, source: str) -> CleanedPage:
    """Remove an archive's insertions from a body, and restore its links.

    A body without insertions is returned unchanged. UTF-16 is not supported. Takes linear time.

    Args:
        body: HTML or CSS.
        source: URL of the memento in the archive; identifies rewritten links.

    >>> page = b'<a href="/web/20140102030405/http://a.example/b">b</a>'
    >>> remove_archive_toolbar(page, "https://web.archive.org/web/20140102030405/http://a.example/")
    CleanedPage(body=b'<a href="http://a.example/b">b</a>', banners=0, links=1)
    """
    spans = sorted(
        {*_marked_spans(body), *_script_spans(body), *_footer_spans(body), *_archive_today_spans(body, source)}
    )
    pieces, position, banners = [], 0, 0
    for start, end in spans:
        if start < position:  # inside the previous span
            continue
        pieces.append(body[position:start])
        position = end
        banners += 1
    cleaned = b"".join((*pieces, body[position:])) if spans else body
    pattern = _rewritten_link_pattern(source)
    if pattern is None:
        return CleanedPage(cleaned, banners, 0)
    cleaned, links = pattern.subn(b"", cleaned)
    return CleanedPage(cleaned, banners, links)


def _marked_spans(body: bytes) -> list[tuple[int, int]]:
    spans = []
    for first, last in _MARKER_PAIRS:
        start = body.find(first)
        while start >= 0:
            end = body.find(last, start)
            if end < 0:
                break
            end += len(last)
            # pywb inserts a template that ends in a line break.
            spans.append((start, end + (last.startswith(b"<!-- End WB") and body[end : end + 1] == b"\n")))
            start = body.find(first, end)
    return spans


def _script_spans(body: bytes) -> list[tuple[int, int]]:
    """Return the span of the scripts that the Wayback Machine inserts after `<head>`."""
    end = body.find(_SCRIPTS_END)
    head = _HEAD_TAG.search(body, 0, end) if end >= 0 else None
    if head is None or end - head.end() > _MAX_HEAD_BYTES or not _OWN_SCRIPT.match(body, head.end()):
        return []
    return [(head.end(), end + len(_SCRIPTS_END))]


def _footer_spans(body: bytes) -> list[tuple[int, int]]:
    tail = max(0, len(body) - _TAIL_BYTES)
    return [match.span() for pattern in _FOOTER_COMMENTS for match in pattern.finditer(body, tail)]


def _archive_today_spans(body: bytes, source: str) -> list[tuple[int, int]]:
    """Return the span of the header element that archive.today puts above a page."""
    if not _ARCHIVE_TODAY_HOST.search(_split_url(source)[0]):
        return []
    start = _ARCHIVE_TODAY_HEADER.search(body)
    if start is None:
        return []
    depth = 0
    for tag in _DIV_TAG.finditer(body, start.start(), start.start() + _MAX_TOOLBAR_BYTES):
        depth += -1 if tag[1] else 1
        if depth == 0:
            end = body.find(b">", tag.end())
            return [(start.start(), end + 1)] if end >= 0 else []
    return []


def _rewritten_link_pattern(source: str) -> re.Pattern[bytes] | None:
    """Return a pattern for the prefix of rewritten links; None if `source` is not a known form of URI-M."""
    host, path = _split_url(source)
    origin = rb"(?:(?:https?:)?//" + re.escape(host.encode("ascii", "ignore")) + rb"(?::\d{1,5})?)"
    if _ARCHIVE_TODAY_HOST.search(host):
        return re.compile(_URL_START + origin + rb"?/o/\w{4,8}/" + _URL_LOOKAHEAD, re.IGNORECASE)
    memento_path = _MEMENTO_PATH.match(path)
    if not host or memento_path is None:
        return None
    prefix = re.escape(memento_path[1].encode("ascii", "ignore"))
    return re.compile(_URL_START + origin + rb"?" + prefix + _DATE + _URL_LOOKAHEAD, re.IGNORECASE)


def _split_url(source: str) -> tuple[str, str]:
    try:
        parts = urlsplit(source)
        return (parts.hostname or "").lower(), parts.path
    except ValueError:
        return "", ""
