"""What is in an answer: its type, its links, and whether it asks not to be kept."""

import re
from dataclasses import dataclass

from unlost import dates
from unlost.archives.asking.addresses import parse_url, resolve_redirect
from unlost.crawl.tags import header_forbids_archiving, page_forbids_archiving
from unlost.crawl.visitor import FetchResponse
from unlost.errors import DateError
from unlost.pages.link import Link
from unlost.pages.links import scan_links

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
