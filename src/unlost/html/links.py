"""Links of pages, style sheets, sitemaps and feeds, and URLs that scripts may request."""

import re
from dataclasses import dataclass
from enum import StrEnum

from unlost import _core
from unlost.html.text import replace_surrogates


class LinkKind(StrEnum):
    """What a link is for."""

    PAGE = "page"
    """It leads to another page: `<a>`, frames, refresh, entries of sitemaps and feeds."""
    REQUISITE = "requisite"
    """It is needed to show the page: images, style sheets, scripts, fonts, sound and film."""
    LIST = "list"
    """It leads to a list of pages: a sitemap or a feed."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link, resolved.

    uri: an absolute address of http or https, without a fragment.
    use: what it is for; if the same address is used for several things, each is a link of its own.
    """

    uri: str
    kind: LinkKind


_LINK_KINDS = {use.value: use for use in LinkKind}


@dataclass(frozen=True, slots=True)
class LinkScan:
    """What was found in a body, and what was not.

    links: each address with a use once, in the order of appearance.
    left_out: how many were left out since they were too long or too many.
    cut: whether the body was longer than what is read of one, or damaged where it was unpacked.
    """

    links: list[Link]
    omitted: int
    cut: bool


def scan_links(body: bytes, mime: str | None, base: str, charset: str | None = None) -> LinkScan:
    """Return the links of a body like `links`, and whether that is all of them."""
    found, left_out, cut = _core.find_links(
        body, replace_surrogates(mime), replace_surrogates(base), replace_surrogates(charset)
    )
    return LinkScan([Link(uri, _LINK_KINDS[use]) for uri, use in found], left_out, cut)


def extract_links(body: bytes, mime: str | None, base: str, charset: str | None = None) -> list[Link]:
    """Return the links of a body, each address with a use once, in the order of appearance.

    body: HTML, XHTML, SVG, CSS, a sitemap, RSS, Atom, `robots.txt` or a list of addresses `sitemap.txt`; gzipped or
        not. In anything else nothing is found, and nothing is ever raised for what is in it.
    mime: its type as it was told, with or without parameters; None if it was not. The body's first bytes and its
        address correct it.
    base: the address that the body was found at, which relative addresses are relative to. A `<base>` in it goes
        before.
    charset: what the body was said to be written in; None if that was not said. A byte order mark goes before, a name
        that nobody knows does not count; what the document itself says comes next.

    Addresses are of http or https, without fragment, spelled as a browser would ask for them. Limits are in
    docs/pages.md. May be called from several threads; others run while a long body is read.

    >>> links(b'<a href="../b.html#top">B</a><img src=c.png>', "text/html", "http://a.example/d/")
    [Link(uri='http://a.example/b.html', use=<Use.PAGE: 'page'>),
     Link(uri='http://a.example/d/c.png', use=<Use.REQUISITE: 'requisite'>)]
    """
    return scan_links(body, mime, base, charset).links


def find_urls_in_script(body: bytes, base: str) -> list[str]:
    r"""Return addresses that a script may ask for, each once, in the order of appearance; at most 10,000.

    body: JavaScript or JSON, as a file or out of a page.
    base: the address of the page that the script runs in.

    These are strings that are nothing but a URL: of http or https, one that begins with `/` and ends like a file or a
    folder, or any other that ends like a file; and strings that the script navigates to (`location = "next"`,
    `location.href`, `location.replace()`, `location.assign()`). Strings that are put together with others by `+` are
    not among them, and names that look like URLs (`http://www.w3.org/2000/svg`) neither. They are guesses.

    >>> find_urls_in_script(b"a('img/a.png'); b('/img/' + name); c('https:\\/\\/b.example\\/')", "http://a.example/d/")
    ['http://a.example/d/img/a.png', 'https://b.example/']
    """
    return _core.script_candidates(body, replace_surrogates(base))


MAX_SCRIPT_URLS = 10_000
"""URLs of one body: more are data, not a program."""
_SCRIPT = re.compile(r"(java|ecma)script|json", re.IGNORECASE)
_SCRIPT_FILE = re.compile(r"\.(m?js|json)$", re.IGNORECASE)


def find_script_urls(
    body: bytes, mime: str | None, uri: str, *, is_html: bool, charset: str | None = None
) -> list[str]:
    r"""Return URLs that scripts may request, each once, in the order of appearance; at most `MOST`.

    body: a page, or a file of JavaScript or JSON; in anything else nothing is found. mime: as it was told.
    uri: its URL. is_html: whether it is a page.
    charset: what a page was said to be written in; None if that was not said.

    Of a page, these are strings of its inline scripts and event handlers, as `script_candidates` finds them, and values
    of `data-*` attributes that look like a URL and are not links. They are guesses, to be requested only if they are
    known to be archived. Nothing is raised for what is in it.

    >>> page = b"<body onload='load(\"/head.html\")' data-next=/2.html><script>show('/img/a.png')</script>"
    >>> find_script_urls(page, "text/html", "http://a.example/", is_html=True)
    ['http://a.example/head.html', 'http://a.example/2.html', 'http://a.example/img/a.png']
    """
    if is_html:
        told = mime if "html" in (mime or "").lower() else "text/html"
        return _core.page_candidates(
            body, replace_surrogates(told), replace_surrogates(uri), replace_surrogates(charset)
        )[:MAX_SCRIPT_URLS]
    if _SCRIPT.search(mime or "") or _SCRIPT_FILE.search(re.split("[?#]", uri, maxsplit=1)[0]):
        return find_urls_in_script(body, uri)[:MAX_SCRIPT_URLS]
    return []
