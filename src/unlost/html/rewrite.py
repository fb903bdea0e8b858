"""Rewrites links in HTML, SVG and CSS. All other bytes stay unchanged."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from unlost import _core
from unlost.html.links import LinkKind
from unlost.html.text import replace_surrogates

_KINDS_BY_NUMBER = (LinkKind.PAGE, LinkKind.REQUISITE, LinkKind.LIST)


class RewriteResult(NamedTuple):
    """A body with other links, and what was done to it.

    body: the very bytes that were given, if nothing was to change.
    changed: how many links were replaced, wherever they stand: the same address in two places is two.
    left: how many were not and never can be, since they are too long or too many; nobody was asked about them.
    transcoded_from: what the body was written in, if it is now in UTF-8, with a byte order mark, and says so wherever
        it says something: UTF-16 and ISO-2022-JP cannot be written piece by piece. None if it is written as it was.
    charset: what the body is written in now, by the name in the Encoding standard; None if it is nothing with links.
    unpacked: whether the body was gzipped, and is so no longer.
    csp: whether a page says by `<meta>` from where it may load what: a policy for where it once was.
    cut: whether it was longer than what is read of one, or packed and damaged; then it is as it was, and nobody was
        asked.
    groups: how many of the links were known to the directory, by their groups; each is counted once.
    """

    body: bytes
    changed: int
    skipped: int
    transcoded_from: str | None
    charset: str | None
    is_decompressed: bool
    has_csp: bool
    is_truncated: bool
    groups: Sequence[int] = ()


class LinkDirectory:
    """What links become on all pages of a site, so that each address is asked for once, not on every page.

    most: bytes of memory that it takes; what comes when it is full is asked for on each page.

    >>> site = LinkDirectory(1 << 20)
    >>> site.add("http://a.example/d/c.png", LinkKind.REQUISITE, "d/c.png")
    >>> page = b"<img src=/d/c.png>"
    >>> rewrite_links(page, "text/html", "http://a.example/", None, lambda *_: None, directory=site, page="x/y.html").body
    b'<img src=../d/c.png>'
    """

    __slots__ = ("core",)

    def __init__(self, max_bytes: int) -> None:
        self.core = _core.LinkDirectory(max_bytes)

    def add(self, uri: str, kind: LinkKind, target: str | None, group: int = 0) -> None:
        """Remember what an address becomes; of what is known already, the first counts.

        address: of a file, relative to the top of the site, with no colon before its first slash; None leaves the bytes
            as they are.
        group: 0 to 255; how many links of a page are of each is counted.

        Raises UsageError for an address as `rewrite` does.
        """
        self.core.add(uri, kind, target, group)


def rewrite_links(
    body: bytes,
    mime: str | None,
    base: str,
    charset: str | None,
    replace: Callable[[str, LinkKind], str | None],
    *,
    drop_base: bool = False,
    drop_integrity: bool = False,
    drop_csp: bool = False,
    replace_candidate: Callable[[str], str | None] | None = None,
    directory: LinkDirectory | None = None,
    page: str = "",
) -> RewriteResult:
    """Return HTML, XHTML, SVG or CSS with other addresses in the places of those that `links` finds in it.

    body, mime, base, charset: as for `unlost.html.links.links`, which finds the same. Anything else, also sitemaps and
        feeds, is returned as it was.
    replace: is asked once for each address with each use, in the order of appearance, and returns what is to stand
        there: an address, relative or absolute, in ASCII, escaped by percent signs where need be. None leaves the bytes
        as they are. Fragments stay, unless the new address has its own. What it raises passes through.
    drop_base: `<base href>` gets the name `data-href`, so that relative addresses are relative to the page again.
        Links that were not replaced, what forms ask for, and sources of quotations are then written in full if they
        would lead elsewhere without it. Fragments alone (`#top`) lead into the page itself.
    drop_integrity: on elements of which an address was replaced, `integrity` and `crossorigin`, by which browsers
        refuse copies, get names with `data-` before.
    drop_csp: a `<meta http-equiv=Content-Security-Policy>` gets `data-http-equiv`, so that it has no effect.
    replace_candidate: is called once for each URL that scripts of the page may use, and returns what replaces it, or
        None to leave it. These are values of `data-*` attributes that look like a URL and are not links, strings in
        event handlers that are nothing but a URL, and strings in inline scripts that the browser is sent to
        (`location = "…"`, `location.href`, `location.replace()`, `location.assign()`). They are guesses: return a URL
        only for one that is known to exist. The default is not to look for them.
    directory: what is in it is not asked for; `replace` may add to it.
    page: where the body will be, relative to the top of the site; what the directory knows is written relative to it.

    Raises UsageError for an address that is empty, longer than 8,000 letters, not in ASCII, or has blanks or control
    characters. Limits are in docs/pages.md. May be called from several threads; others run while a long body is read.

    >>> page = b"<A class=x href='../b.html#top' >B</a> <img src=c.png><img src=d.png>"
    >>> new = {"http://a.example/b.html": "../b.html", "http://a.example/d/c.png": "img/c&d.png"}
    >>> rewrite_links(page, "text/html", "http://a.example/d/", None, lambda uri, use: new.get(uri)).body
    b"<A class=x href='../b.html#top' >B</a> <img src=img/c&amp;d.png><img src=d.png>"
    """
    drops = (drop_base, drop_integrity, drop_csp)
    folder = page[: page.rfind("/") + 1]
    known = None if directory is None else directory.core
    mime, base, charset = replace_surrogates(mime), replace_surrogates(base), replace_surrogates(charset)
    return RewriteResult(
        *_core.rewrite_links(
            body, mime, base, charset, drops, _KINDS_BY_NUMBER, replace, replace_candidate, known, folder
        )
    )
