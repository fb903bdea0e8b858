"""Removes what web archives insert into pages: toolbars, scripts, and rewritten links.

Only needed for mementos that cannot be had raw.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_MAX_HEAD_BYTES = 64 << 10  # bytes behind `<head>` in which what was put there begins and ends
_TAIL_BYTES = 16 << 10  # bytes at the end of a page, in which notes stand
_MAX_TOOLBAR_BYTES = 512 << 10  # bytes of a banner's own element
_DIV_TAG = re.compile(rb"<(/?)div\b", re.IGNORECASE)

# Between the archive's own comments.
_MARKER_PAIRS = (
    (b"<!-- BEGIN WAYBACK TOOLBAR INSERT -->", b"<!-- END WAYBACK TOOLBAR INSERT -->"),
    (b"<!-- WB Insert -->", b"<!-- End WB Insert -->"),
    (b"<!-- BEGIN WAYBACK BANNER -->", b"<!-- END WAYBACK BANNER -->"),
)
# The Wayback Machine tells only where its scripts end; they begin behind `<head>`.
_SCRIPTS_END = b"<!-- End Wayback Rewrite JS Include -->"
_HEAD_TAG = re.compile(rb"<head(?:\s[^>]{0,1000})?>", re.IGNORECASE)
_OWN_SCRIPT = re.compile(rb"\s*<(?:script|link)\b[^>]{0,500}(?:archive\.org|/_static/)", re.IGNORECASE)
# Comments, and in its early years a script, at the end of the page.
_FOOTER_COMMENTS = (
    re.compile(rb"<!--\s{0,20}FILE ARCHIVED ON [^<>]{0,2000}?-->\s?"),
    re.compile(rb"<!--\s{0,20}playback timings \(ms\):[^<>]{0,4000}?-->\s?"),
    re.compile(
        rb"<script[^>]{0,100}>\s{0,20}<!--\s{0,20}// FILE ARCHIVED ON .{0,6000}?</script>\s?", re.IGNORECASE | re.DOTALL
    ),
)
# archive.today shows the page below an element of its own.
_ARCHIVE_TODAY_HOST = re.compile(r"(?:^|\.)archive\.(?:today|is|ph|li|md|vn|fo)$")
_ARCHIVE_TODAY_HEADER = re.compile(rb"<div[^>]{0,100}\bid=[\"']?HEADER\b", re.IGNORECASE)
_MEMENTO_PATH = re.compile(r"(/(?:[^/?#]+/)*)\d{4,14}(?:[a-z]{2}_)?/")
_URL_START = rb"(?<=[\"'=(,;\s])"  # an address stands in an attribute, in `url(`, or in a list of them
_DATE = rb"\d{4,14}(?:[a-z]{2}_)?/"
_URL_LOOKAHEAD = rb"(?=(?:https?:)?/{1,2}[^/\s\"'<>]|mailto:|javascript:|data:|ftp:)"


@dataclass(frozen=True, slots=True)
class CleanedPage:
    """A page, or a style sheet, without what its archive added.

    banners: how many insertions were taken out. links: how many addresses were made the original ones again.
    """

    body: bytes
    banners: int
    links: int


def remove_archive_toolbar(body: bytes, source: str) -> CleanedPage:
    """Return a body without an archive's insertions, and with the addresses that its links had.

    source: the address of the copy in the archive, by which its own addresses in links are known. Where nothing of an
    archive's is found, the body comes back as it is. UTF-16 is not read. Linear in the length of the body.

    >>> page = b'<a href="/web/20140102030405/http://a.example/b">b</a>'
    >>> cleaned(page, "https://web.archive.org/web/20140102030405/http://a.example/")
    Cleaned(body=b'<a href="http://a.example/b">b</a>', banners=0, links=1)
    """
    spans = sorted(
        {*_marked_spans(body), *_script_spans(body), *_footer_spans(body), *_archive_today_spans(body, source)}
    )
    kept, place, banners = [], 0, 0
    for start, end in spans:
        if start < place:  # within the one before
            continue
        kept.append(body[place:start])
        place = end
        banners += 1
    found = b"".join((*kept, body[place:])) if spans else body
    pattern = _rewritten_link_pattern(source)
    if pattern is None:
        return CleanedPage(found, banners, 0)
    found, links = pattern.subn(b"", found)
    return CleanedPage(found, banners, links)


def _marked_spans(body: bytes) -> list[tuple[int, int]]:
    spans = []
    for first, last in _MARKER_PAIRS:
        start = body.find(first)
        while start >= 0:
            end = body.find(last, start)
            if end < 0:
                break
            end += len(last)
            # The file that pywb takes it from ends in a line end, which goes with it.
            spans.append((start, end + (last.startswith(b"<!-- End WB") and body[end : end + 1] == b"\n")))
            start = body.find(first, end)
    return spans


def _script_spans(body: bytes) -> list[tuple[int, int]]:
    """Return the scripts that the Wayback Machine puts behind `<head>`."""
    end = body.find(_SCRIPTS_END)
    head = _HEAD_TAG.search(body, 0, end) if end >= 0 else None
    if head is None or end - head.end() > _MAX_HEAD_BYTES or not _OWN_SCRIPT.match(body, head.end()):
        return []
    return [(head.end(), end + len(_SCRIPTS_END))]


def _footer_spans(body: bytes) -> list[tuple[int, int]]:
    tail = max(0, len(body) - _TAIL_BYTES)
    return [match.span() for pattern in _FOOTER_COMMENTS for match in pattern.finditer(body, tail)]


def _archive_today_spans(body: bytes, source: str) -> list[tuple[int, int]]:
    """Return the header that archive.today puts above a page: one element, to its end."""
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
    """Return what an archive puts before the addresses of links; None if its address does not tell."""
    host, path = _split_url(source)
    own = rb"(?:(?:https?:)?//" + re.escape(host.encode("ascii", "ignore")) + rb"(?::\d{1,5})?)"
    if _ARCHIVE_TODAY_HOST.search(host):
        return re.compile(_URL_START + own + rb"?/o/\w{4,8}/" + _URL_LOOKAHEAD, re.IGNORECASE)
    copy = _MEMENTO_PATH.match(path)
    if not host or copy is None:
        return None
    prefix = re.escape(copy[1].encode("ascii", "ignore"))
    return re.compile(_URL_START + own + rb"?" + prefix + _DATE + _URL_LOOKAHEAD, re.IGNORECASE)


def _split_url(source: str) -> tuple[str, str]:
    try:
        parts = urlsplit(source)
        return (parts.hostname or "").lower(), parts.path
    except ValueError:
        return "", ""
