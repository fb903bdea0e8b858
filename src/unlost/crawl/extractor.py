"""Extracts what a response says: media type, redirect, links, and whether it forbids archiving (`noarchive`)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from unlost import dates
from unlost.crawl.fetcher import FetchResponse
from unlost.errors import DateError
from unlost.html.links import Link, scan_links
from unlost.http.url import parse_url, resolve_redirect
from unlost.http.user_agent import PRODUCT_TOKEN

_MAX_HEAD_BYTES = 512 << 10  # bytes of a page: browsers look for tags of this kind at its beginning
_MAX_META_TAGS = 1_000  # tags that are looked at
_META = re.compile(r"<meta(?=[\s/])([^<>]{0,4000})>", re.IGNORECASE)
_COMMENTS_AND_SCRIPTS = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|textarea|noframes|xmp)\b.*?(?:</\1|\Z)", re.IGNORECASE | re.DOTALL
)
# Names begin where something else ended: so a long one without a value is gone through once.
_ATTRIBUTE = re.compile(r"""(?:^|(?<=[\s"'/]))([^\s"'>/=]++)\s*+=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_FORBIDDING_DIRECTIVES = {"noarchive", "none"}
_VALUED_DIRECTIVES = {"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"}


def header_forbids_archiving(values: Iterable[str]) -> bool:
    """Return whether X-Robots-Tag, with these values, asks us not to keep a copy.

    >>> header_forbids_archiving(["otherbot: noarchive, nofollow"]), header_forbids_archiving(["nofollow", "unlost: none"])
    (False, True)
    """
    return any(_directives_forbid(value) for value in values)


def _directives_forbid(value: str) -> bool:
    is_ours = True
    for rule in value.lower().split(","):
        word, colon, rest = rule.strip().partition(":")
        if colon and word.strip() not in _VALUED_DIRECTIVES:
            # A program's name: the rules behind it are for that one alone.
            is_ours, word = word.strip() == PRODUCT_TOKEN, rest
        if is_ours and word.strip() in _FORBIDDING_DIRECTIVES:
            return True
    return False


def page_forbids_archiving(body: bytes) -> bool:
    """Return whether a page asks us not to keep a copy, by `<meta name=robots>`, or with our own name.

    body: HTML, in whatever letters: tags are ASCII in all of them, but for UTF-16, which begins with a mark.

    >>> page_forbids_archiving(b"<meta content='NoArchive, nofollow' name=robots>"), page_forbids_archiving(b"<!-- <meta name=robots> -->")
    (True, False)
    """
    head = body[:_MAX_HEAD_BYTES]
    text = head.decode("utf-16", "replace") if head[:2] in (b"\xff\xfe", b"\xfe\xff") else head.decode("latin-1")
    if "<meta" not in text.lower():
        return False
    for count, found in enumerate(_META.finditer(_COMMENTS_AND_SCRIPTS.sub(" ", text))):
        if count >= _MAX_META_TAGS:
            break
        told = {name.lower(): a or b or c for name, a, b, c in _ATTRIBUTE.findall(found[1])}
        if told.get("name", "").strip().lower() in ("robots", PRODUCT_TOKEN):
            words = re.split(r"[\s,]+", told.get("content", "").lower())
            if _FORBIDDING_DIRECTIVES.intersection(words):
                return True
    return False


REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_MAX_BODY_BYTES = 32 << 20  # bytes: more are not read for links anyway
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_HTML = re.compile(rb"\s*<(!doctype\s+html|html)", re.IGNORECASE)
_SITEMAP = re.compile(rb"<(?:\w+:)?(urlset|sitemapindex)\b")
_MIME = re.compile(r"[\w.+-]+/[\w.+-]+")
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class ExtractedContents:
    """What was found.

    mime: the type as it was told, in lower case, without parameters. last_modified: 14 digits.
    redirect: where the answer leads, absolute; None if nowhere, or to what is no address of http or https.
    links: resolved; none of what is no success. is_noarchive: whether it asks not to be kept.
    is_sitemap: whether it is one.
    """

    mime: str | None
    last_modified: str | None
    redirect: str | None
    links: list[Link]
    is_noarchive: bool
    is_sitemap: bool


def extract_contents(response: FetchResponse) -> ExtractedContents:
    """Return what is in an answer, whose body is left at its beginning."""
    told = response.header("content-type") or ""
    found = _MIME.match(told.strip())
    mime = found[0].lower() if found else None
    response.body.seek(0)
    body = response.body.read(_MAX_BODY_BYTES)
    response.body.seek(0)
    is_html = "html" in (mime or "") or _HTML.match(body, 0, 512) is not None
    tags = [value for name, value in response.headers if name.lower() == "x-robots-tag"]
    links: list[Link] = []
    if 200 <= response.status < 300:
        charset = _CHARSET.search(told)
        links = scan_links(body, told or None, response.uri, charset[1] if charset else None).links
    is_list = _SITEMAP.search(body, 0, 4096) is not None or body.startswith(_GZIP)
    return ExtractedContents(
        mime,
        _parse_http_date(response.header("last-modified")),
        _redirect_target(response),
        links,
        header_forbids_archiving(tags) or (is_html and page_forbids_archiving(body)),
        is_list,
    )


def _redirect_target(answer: FetchResponse) -> str | None:
    location = answer.header("location")
    if answer.status not in REDIRECT_STATUSES or not location:
        return None
    try:
        target = resolve_redirect(location, parse_url(answer.uri))
    except ValueError:
        return None
    return str(target)


def _parse_http_date(value: str | None) -> str | None:
    try:
        return None if value is None else dates.from_http(value[:100])
    except DateError:
        return None
