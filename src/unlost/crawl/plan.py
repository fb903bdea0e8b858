"""What of the living web is to be visited, and how far, how much and how fast."""

from dataclasses import dataclass
from enum import StrEnum

MAX_RESOURCE_BYTES = 64 << 20
"""Of one body: more than pages and pictures have; films are cut there, and said to be."""

DEFAULT_DELAY_SECONDS = 1.0
"""Between two requests to one host: what site owners put up with from programs that they do not know."""

MAX_SIMILAR_URLS = 5_000
"""Addresses of one shape that no sitemap has: an hour and a half of requests, at one a second."""


class ScopeType(StrEnum):
    """What belongs to the site that the starts are pages of."""

    HOST = "host"
    """All of their hosts; with `www` or without is one host, so is http or https."""
    DOMAIN = "domain"
    """These hosts, and all hosts below them."""
    PREFIX = "prefix"
    """What lies in the folders of the starts."""


@dataclass(frozen=True, slots=True)
class CrawlConfig:
    """What somebody wants visited.

    starts: where to begin. reach: what belongs to their site.
    extra: further addresses that are visited wherever they are; nothing else belongs to the site for that.
    hops: how many links away from a start a page may be; None for any number. What a sitemap names counts as one away.
    depth: how many folders deep; None for as many as `traps.DEEPEST`.
    resources, bytes_in_all: how much to fetch at most, over all runs; None for no limit. Bodies are not cut for the
        second: what is on its way when it is reached is fetched whole.
    bytes_each: how much of one body, without its codings, is read: what is longer is cut.
    include, exclude: regular expressions, searched for in addresses: one of `include` must be found, if there are any,
        and none of `exclude`.
    links: whether links to pages are followed. parts: whether images, style sheets, scripts and the like are visited
        that pages of the site need; foreign_parts: also where they are on other hosts.
    sitemaps: whether they are read, and what they name is visited.
    delay: seconds between two requests to one host, at least; longer if robots.txt says so, or the host is slow.
    hosts_at_once: how many hosts are visited at the same time, each by one request.
    alike: how many addresses of one shape are visited that no sitemap names, before it is called a trap.
    keep_noarchive: whether bodies are kept although their page asks not to: for whoever it belongs to.
    """

    starts: tuple[str, ...]
    reach: ScopeType = ScopeType.HOST
    extra: tuple[str, ...] = ()
    hops: int | None = None
    depth: int | None = None
    resources: int | None = None
    bytes_in_all: int | None = None
    bytes_each: int = MAX_RESOURCE_BYTES
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    links: bool = True
    parts: bool = True
    foreign_parts: bool = False
    sitemaps: bool = True
    delay: float = DEFAULT_DELAY_SECONDS
    hosts_at_once: int = 4
    alike: int = MAX_SIMILAR_URLS
    keep_noarchive: bool = False


ADJUSTABLE_FIELDS = frozenset({"resources", "bytes_in_all", "bytes_each", "delay", "hosts_at_once", "alike"})
"""What may differ from one run of a crawl to the next; anything else would make it another crawl."""
