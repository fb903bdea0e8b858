"""Links of pages, style sheets, sitemaps and feeds, and URLs that scripts may request."""

import re
from dataclasses import dataclass
from enum import StrEnum

from unlost import _core
from unlost.html.text import replace_surrogates

MAX_SCRIPT_URLS = 10_000
"""Maximum candidates of one body. A script with more URLs is data, not code."""
_SCRIPT = re.compile(r"(java|ecma)script|json", re.IGNORECASE)
_SCRIPT_FILE = re.compile(r"\.(m?js|json)$", re.IGNORECASE)


class LinkKind(StrEnum):
    """What a link is for."""

    PAGE = "page"
    """Links to another page: `<a>`, frames, refresh, entries of sitemaps and feeds."""
    REQUISITE = "requisite"
    """Needed to render the page: images, style sheets, scripts, fonts, audio and video."""
    LIST = "list"
    """Links to a list of pages: a sitemap or a feed."""


@dataclass(frozen=True, slots=True)
class Link:
    """A resolved link.

    Attributes:
        uri: Absolute HTTP(S) URL without a fragment.
        kind: What the link is for. A URL with several kinds results in several links.
    """

    uri: str
    kind: LinkKind


_LINK_KINDS = {kind.value: kind for kind in LinkKind}


@dataclass(frozen=True, slots=True)
class LinkScan:
    """The links of a body, and what is missing.

    Attributes:
        links: Each pair of URL and kind once, in order of first appearance.
        omitted: Number of links that were omitted because they are too long or too many.
        cut: Whether only a part of the body was parsed: it is too long, or its compression is damaged.
    """

    links: list[Link]
    omitted: int
    cut: bool


def scan_links(body: bytes, mime: str | None, base: str, charset: str | None = None) -> LinkScan:
    """Return the links of a body as `extract_links` does, and whether they are complete."""
    links, omitted, cut = _core.find_links(
        body, replace_surrogates(mime), replace_surrogates(base), replace_surrogates(charset)
    )
    return LinkScan([Link(uri, _LINK_KINDS[kind]) for uri, kind in links], omitted, cut)


def extract_links(body: bytes, mime: str | None, base: str, charset: str | None = None) -> list[Link]:
    """Extract the links of a body, each pair of URL and kind once, in order of first appearance.

    URLs are absolute, without a fragment, and normalized as browsers do it. Invalid input never raises. Limits are in
    docs/pages.md. Thread-safe; releases the GIL while it parses a long body.

    Args:
        body: HTML, XHTML, SVG, CSS, a sitemap, RSS, Atom, `robots.txt` or a `sitemap.txt` list of URLs; gzipped or not.
            Other types have no links.
        mime: Declared media type, with or without parameters; None if unknown. The first bytes of the body and the URL
            override it.
        base: URL of the body, the base of relative URLs. A `<base>` element overrides it.
        charset: Declared charset; None if unknown. A byte order mark overrides it, it overrides a declaration in the
            body, and an unknown name is ignored.

    >>> extract_links(b'<a href="../b.html#top">B</a><img src=c.png>', "text/html", "http://a.example/d/")
    [Link(uri='http://a.example/b.html', kind=<LinkKind.PAGE: 'page'>),
     Link(uri='http://a.example/d/c.png', kind=<LinkKind.REQUISITE: 'requisite'>)]
    """
    return scan_links(body, mime, base, charset).links


def find_urls_in_script(body: bytes, base: str) -> list[str]:
    r"""Return URLs that a script may request, each once, in order of first appearance; at most 10,000.

    Candidates are string literals that consist of a URL: HTTP(S) URLs, paths that begin with `/` and end like a file or
    a folder, and other strings that end like a file; and literals that the script navigates to (`location = "next"`,
    `location.href`, `location.replace()`, `location.assign()`). Operands of `+` and namespace names
    (`http://www.w3.org/2000/svg`) are excluded. The result is a guess.

    Args:
        body: JavaScript or JSON, from a file or a page.
        base: URL of the page that runs the script.

    >>> find_urls_in_script(b"a('img/a.png'); b('/img/' + name); c('https:\\/\\/b.example\\/')", "http://a.example/d/")
    ['http://a.example/d/img/a.png', 'https://b.example/']
    """
    return _core.script_candidates(body, replace_surrogates(base))


def find_script_urls(
    body: bytes, mime: str | None, uri: str, *, is_html: bool, charset: str | None = None
) -> list[str]:
    r"""Return URLs that scripts may request, each once, in order of first appearance; at most `MAX_SCRIPT_URLS`.

    Candidates of a page are strings in inline scripts and event handlers, as `find_urls_in_script` finds them, and
    values of `data-*` attributes that have the form of a URL and are not links. They are guesses: request one only if
    it is known to be archived. Invalid input never raises.

    Args:
        body: An HTML page, JavaScript or JSON. Other types have no candidates.
        mime: Declared media type.
        uri: URL of the body.
        is_html: Whether the body is a page.
        charset: Declared charset of a page; None if unknown.

    >>> page = b"<body onload='load(\"/head.html\")' data-next=/2.html><script>show('/img/a.png')</script>"
    >>> find_script_urls(page, "text/html", "http://a.example/", is_html=True)
    ['http://a.example/head.html', 'http://a.example/2.html', 'http://a.example/img/a.png']
    """
    if is_html:
        html_type = mime if "html" in (mime or "").lower() else "text/html"
        return _core.page_candidates(
            body, replace_surrogates(html_type), replace_surrogates(uri), replace_surrogates(charset)
        )[:MAX_SCRIPT_URLS]
    if _SCRIPT.search(mime or "") or _SCRIPT_FILE.search(re.split("[?#]", uri, maxsplit=1)[0]):
        return find_urls_in_script(body, uri)[:MAX_SCRIPT_URLS]
    return []
