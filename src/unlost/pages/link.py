"""A link in a page, a style sheet or a list of pages."""

from dataclasses import dataclass
from enum import StrEnum


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
