"""The links that lead on from a page, a style sheet or a list of pages."""

from dataclasses import dataclass

from unlost import _core
from unlost.pages.link import Link, LinkKind
from unlost.pages.told import replace_surrogates

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
