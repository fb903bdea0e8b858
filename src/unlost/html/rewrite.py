"""Rewrites links in HTML, SVG and CSS. All other bytes are preserved."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from unlost import _core
from unlost.html.links import LinkKind
from unlost.html.text import replace_surrogates

_KINDS_BY_NUMBER = (LinkKind.PAGE, LinkKind.REQUISITE, LinkKind.LIST)  # in the order of the Rust core


class RewriteResult(NamedTuple):
    """A body with rewritten links.

    Attributes:
        body: The new body; the input itself if nothing changed.
        changed: Number of links that were replaced, counting each occurrence.
        skipped: Number of links that cannot be replaced because they are too long or too many. The callback was not
            called for them.
        transcoded_from: Original encoding of a body that was converted to UTF-8 with a byte order mark, because UTF-16
            and ISO-2022-JP cannot be edited in place; None otherwise. Declarations in the body are updated.
        charset: Current encoding, by its name in the WHATWG Encoding Standard; None for types without links.
        is_decompressed: Whether a gzipped body was decompressed.
        has_csp: Whether the page has a Content-Security-Policy in a `<meta>` element, which refers to its original URL.
        is_truncated: Whether the body is too long, or compressed and damaged. Then it is unchanged.
        groups: Number of links of each group of the `LinkDirectory`, each link counted once.
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
    """The replacements of links that pages of a site share, such as those of its navigation.

    With it, the callback of `rewrite_links` is called once per URL instead of once per URL and page. `max_bytes` limits
    the memory; links that are added when it is full are ignored.

    >>> site = LinkDirectory(1 << 20)
    >>> site.add("http://a.example/d/c.png", LinkKind.REQUISITE, "d/c.png")
    >>> page = b"<img src=/d/c.png>"
    >>> arguments = (page, "text/html", "http://a.example/", None, lambda *_: None)
    >>> rewrite_links(*arguments, directory=site, page="x/y.html").body
    b'<img src=../d/c.png>'
    """

    __slots__ = ("core",)

    def __init__(self, max_bytes: int) -> None:
        self.core = _core.LinkDirectory(max_bytes)

    def add(self, uri: str, kind: LinkKind, target: str | None, group: int = 0) -> None:
        """Add the replacement of a URL. The first replacement of a URL counts.

        Args:
            uri: The URL.
            kind: What the link is for.
            target: Path of a file relative to the root of the site, without a colon before its first slash; None leaves
                the link unchanged.
            group: Group of the link for `RewriteResult.groups`, 0 to 255.

        Raises:
            UsageError: Invalid target, as in `rewrite_links`.
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
    """Replace the links that `extract_links` finds in HTML, XHTML, SVG or CSS.

    Other types, including sitemaps and feeds, are returned unchanged. Limits are in docs/pages.md. Thread-safe;
    releases the GIL while it parses a long body.

    Args:
        body: The body; see `extract_links`, also for `mime`, `base` and `charset`.
        mime: Declared media type.
        base: URL of the body.
        charset: Declared charset.
        replace: Called once for each pair of URL and kind, in order of first appearance. Returns the new URL, absolute
            or relative, in percent-encoded ASCII; None leaves the link unchanged. The fragment of the link is retained
            unless the new URL has one. Exceptions are passed on.
        drop_base: Rename `<base href>` to `data-href`, so that relative URLs are relative to the page. Links that were
            not replaced, form actions and sources of quotations become absolute if they would resolve to another URL.
            Links that are only a fragment (`#top`) refer to the page itself.
        drop_integrity: On elements with a replaced URL, prefix `integrity` and `crossorigin` with `data-`, since
            browsers would otherwise reject the replacement.
        drop_csp: Rename `http-equiv` of a Content-Security-Policy `<meta>` element to `data-http-equiv`, so that it has
            no effect.
        replace_candidate: Called once for each URL that scripts of the page may request, and returns its replacement,
            or None to leave it unchanged. Candidates are values of `data-*` attributes that have the form of a URL and
            are not links, strings in event handlers that consist of a URL, and strings in inline scripts that the
            script navigates to (`location = "…"`, `location.href`, `location.replace()`, `location.assign()`). They are
            guesses: return a replacement only for a URL that is known to exist. By default, candidates are not
            searched.
        directory: Known replacements; `replace` is not called for them, and may add to it.
        page: Path of the new body relative to the root of the site. Targets of the directory are written relative to
            it.

    Raises:
        UsageError: A new URL is empty, longer than 8,000 characters, not ASCII, or contains white space or control
            characters.

    >>> page = b"<A class=x href='../b.html#top' >B</a> <img src=c.png><img src=d.png>"
    >>> new = {"http://a.example/b.html": "../b.html", "http://a.example/d/c.png": "img/c&d.png"}
    >>> rewrite_links(page, "text/html", "http://a.example/d/", None, lambda uri, kind: new.get(uri)).body
    b"<A class=x href='../b.html#top' >B</a> <img src=img/c&amp;d.png><img src=d.png>"
    """
    disable = (drop_base, drop_integrity, drop_csp)
    folder = page[: page.rfind("/") + 1]
    core_directory = None if directory is None else directory.core
    mime, base, charset = replace_surrogates(mime), replace_surrogates(base), replace_surrogates(charset)
    return RewriteResult(
        *_core.rewrite_links(
            body, mime, base, charset, disable, _KINDS_BY_NUMBER, replace, replace_candidate, core_directory, folder
        )
    )
