"""Configuration of a crawl, what it learned of a resource, and the result of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

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


class CrawlOutcome(Enum):
    """How the visit of an address ended."""

    FETCHED = "fetched"  # there was an answer, whatever its status
    FORBIDDEN = "forbidden"  # robots.txt does not want it to be fetched
    FAILED = "failed"  # no answer came
    EXCLUDED = "left-out"  # a trap, a limit of the crawl, or out of its scope


@dataclass(frozen=True, slots=True)
class LiveResource:
    """One address of a living site, as a crawl saw it last.

    uri, key: the address, and what it is known by in indexes.
    status, mime, length, digest: of the answer; length in bytes of the body without codings, digest as in WARCs.
    seen, last_modified: 14 digits, UTC; the second as the server told it.
    redirect: where it leads, absolute.
    hops: links from where the crawl began; None if no link leads there.
    linked_from: how many pages of the site link to it, as far as they were seen.
    is_in_sitemap: whether a sitemap of the site names it.
    is_noarchive: whether the page or its headers ask not to be kept (robots meta tag or X-Robots-Tag).
    cache_control: the header, as it came.
    etag: the header, as it came.
    reason: in a word why it failed, was forbidden or left out, or what is strange about it; docs/crawl.md lists them.
    truncated: why the body is not whole, as in `Answer`; digest and length are then of what came.
    file, offset: the WARC in the crawl's folder `warc` that has it, and where in it, in bytes; None if none does.
    """

    uri: str
    key: str
    outcome: CrawlOutcome
    status: int | None = None
    mime: str | None = None
    length: int | None = None
    digest: str | None = None
    seen: str | None = None
    last_modified: str | None = None
    redirect: str | None = None
    hops: int | None = None
    linked_from: int = 0
    is_in_sitemap: bool = False
    is_noarchive: bool = False
    cache_control: str | None = None
    etag: str | None = None
    reason: str | None = None
    truncated: str | None = None
    file: str | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class CrawlResult:
    """What a run leaves.

    counts: how many addresses ended how, over all runs. queued: how many are still to be visited.
    left_out: how many links were not followed, by the reason; those to other sites are not counted.
    waiting: hosts that said to come back later, and when, in seconds since 1970.
    unreachable: how many addresses are forbidden only since robots.txt could not be had.
    limit: which limit of the plan ended it: `resources` or `bytes`; None if none did.
    is_stopped: whether somebody stopped it.
    """

    counts: Mapping[CrawlOutcome, int]
    queued: int
    excluded_links: Mapping[str, int]
    suspended_hosts: Mapping[str, float]
    robots_unreachable: int
    limit: str | None
    is_stopped: bool

    @property
    def is_done(self) -> bool:
        """Whether another run would find nothing to do, unless the plan's limits are raised."""
        return not self.is_stopped and not self.suspended_hosts and not self.robots_unreachable
