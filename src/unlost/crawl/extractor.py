"""Extracts media type, redirect, links, and the prohibition of archiving (`noarchive`) from a response."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from unlost import dates
from unlost.crawl.fetcher import FetchResponse
from unlost.errors import DateError
from unlost.html.links import Link, scan_links
from unlost.http.models import PRODUCT_TOKEN
from unlost.http.url import parse_url, resolve_redirect

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_MAX_BODY_BYTES = 32 << 20  # the link scanner reads no more
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_HTML = re.compile(rb"\s*<(!doctype\s+html|html)", re.IGNORECASE)
_SITEMAP = re.compile(rb"<(?:\w+:)?(urlset|sitemapindex)\b")
_MIME = re.compile(r"[\w.+-]+/[\w.+-]+")
_GZIP = b"\x1f\x8b"

_MAX_HEAD_BYTES = 512 << 10  # meta tags are searched for in the beginning of a page only
_MAX_META_TAGS = 1_000
_META = re.compile(r"<meta(?=[\s/])([^<>]{0,4000})>", re.IGNORECASE)
_COMMENTS_AND_SCRIPTS = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|textarea|noframes|xmp)\b.*?(?:</\1|\Z)", re.IGNORECASE | re.DOTALL
)
# The look-behind and the possessive quantifiers make matching linear on long attribute names without values.
_ATTRIBUTE = re.compile(r"""(?:^|(?<=[\s"'/]))([^\s"'>/=]++)\s*+=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_FORBIDDING_DIRECTIVES = {"noarchive", "none"}
_VALUED_DIRECTIVES = {"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"}


def header_forbids_archiving(values: Iterable[str]) -> bool:
    """Return whether these values of X-Robots-Tag forbid storing the page.

    >>> header_forbids_archiving(["otherbot: noarchive, nofollow"])
    False
    >>> header_forbids_archiving(["nofollow", "unlost: none"])
    True
    """
    return any(_directives_forbid(value) for value in values)


def _directives_forbid(value: str) -> bool:
    is_ours = True
    for rule in value.lower().split(","):
        word, colon, directive = rule.strip().partition(":")
        if colon and word.strip() not in _VALUED_DIRECTIVES:
            # A user agent: the directives that follow apply to it alone.
            is_ours, word = word.strip() == PRODUCT_TOKEN, directive
        if is_ours and word.strip() in _FORBIDDING_DIRECTIVES:
            return True
    return False


def page_forbids_archiving(body: bytes) -> bool:
    """Return whether `<meta name="robots">`, or a meta tag with our product token, forbids storing the page.

    Args:
        body: HTML in any encoding compatible with ASCII, or UTF-16 with a byte order mark.

    >>> page_forbids_archiving(b"<meta content='NoArchive, nofollow' name=robots>")
    True
    >>> page_forbids_archiving(b"<!-- <meta name=robots> -->")
    False
    """
    head = body[:_MAX_HEAD_BYTES]
    text = head.decode("utf-16", "replace") if head[:2] in (b"\xff\xfe", b"\xfe\xff") else head.decode("latin-1")
    if "<meta" not in text.lower():
        return False
    for count, tag in enumerate(_META.finditer(_COMMENTS_AND_SCRIPTS.sub(" ", text))):
        if count >= _MAX_META_TAGS:
            break
        attributes = {name.lower(): a or b or c for name, a, b, c in _ATTRIBUTE.findall(tag[1])}
        if attributes.get("name", "").strip().lower() in ("robots", PRODUCT_TOKEN):
            words = re.split(r"[\s,]+", attributes.get("content", "").lower())
            if _FORBIDDING_DIRECTIVES.intersection(words):
                return True
    return False


@dataclass(frozen=True, slots=True)
class ExtractedContents:
    """What a response contains.

    Attributes:
        mime: Declared media type in lower case, without parameters.
        last_modified: 14 digits, UTC.
        redirect: Absolute target of a redirect; None if the response is no redirect, or its target no HTTP(S) URL.
        links: Absolute links; empty unless the status is 2xx.
        is_noarchive: Whether header or page forbids archiving.
        is_sitemap: Whether the body is a sitemap or a sitemap index, or is gzipped.
    """

    mime: str | None
    last_modified: str | None
    redirect: str | None
    links: list[Link]
    is_noarchive: bool
    is_sitemap: bool


def extract_contents(response: FetchResponse) -> ExtractedContents:
    """Parse a response. Leaves its body at position 0."""
    content_type = response.header("content-type") or ""
    match = _MIME.match(content_type.strip())
    mime = match[0].lower() if match else None
    response.body.seek(0)
    body = response.body.read(_MAX_BODY_BYTES)
    response.body.seek(0)
    is_html = "html" in (mime or "") or _HTML.match(body, 0, 512) is not None
    tags = [value for name, value in response.headers if name.lower() == "x-robots-tag"]
    links: list[Link] = []
    if 200 <= response.status < 300:
        charset = _CHARSET.search(content_type)
        links = scan_links(body, content_type or None, response.uri, charset[1] if charset else None).links
    is_sitemap = _SITEMAP.search(body, 0, 4096) is not None or body.startswith(_GZIP)
    return ExtractedContents(
        mime,
        _parse_http_date(response.header("last-modified")),
        _redirect_target(response),
        links,
        header_forbids_archiving(tags) or (is_html and page_forbids_archiving(body)),
        is_sitemap,
    )


def _redirect_target(response: FetchResponse) -> str | None:
    location = response.header("location")
    if response.status not in REDIRECT_STATUSES or not location:
        return None
    try:
        target = resolve_redirect(location, parse_url(response.uri))
    except ValueError:
        return None
    return str(target)


def _parse_http_date(value: str | None) -> str | None:
    try:
        return None if value is None else dates.from_http(value[:100])
    except DateError:
        return None
