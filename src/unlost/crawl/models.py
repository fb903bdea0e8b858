"""Configuration and results of a crawl."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum

MAX_RESOURCE_BYTES = 64 << 20
"""Default limit of one body: larger than pages and images. Longer bodies, such as films, are truncated and marked so.
"""
DEFAULT_DELAY_SECONDS = 1.0
"""Delay between two requests to one host, acceptable to site operators from an unknown crawler."""
MAX_SIMILAR_URLS = 5_000
"""URLs of one shape that no sitemap lists: almost an hour and a half of requests at one per second."""

ADJUSTABLE_FIELDS = frozenset({"resources", "bytes_in_all", "bytes_each", "delay", "hosts_at_once", "alike"})
"""Fields of `CrawlConfig` that may change from one run to the next. A change of any other field makes it another crawl.
"""


class ScopeType(StrEnum):
    """Which pages belong to the crawled site."""

    HOST = "host"
    """The hosts of the seeds; `www` and the scheme do not matter."""
    DOMAIN = "domain"
    """The hosts of the seeds and their subdomains."""
    PREFIX = "prefix"
    """The folders of the seeds."""


@dataclass(frozen=True, slots=True)
class CrawlConfig:
    """What to crawl, and with which limits.

    The field names are stored in the state, to detect that a folder belongs to another crawl.

    Attributes:
        starts: Seed URLs.
        reach: Which URLs belong to the site of the seeds.
        extra: Further URLs, fetched on any host; they do not widen the scope.
        hops: Maximum number of links from a seed; None for no limit. Sitemap entries count as one link away.
        depth: Maximum number of folders in a path; None for `traps.MAX_PATH_SEGMENTS`.
        resources: Maximum number of URLs to fetch over all runs; None for no limit.
        bytes_in_all: Maximum number of bytes to fetch over all runs; None for no limit. Responses being received when
            it is reached are completed.
        bytes_each: Limit of one body after content decoding; longer ones are truncated.
        include: Regular expressions; if there are any, a URL must match one of them (search, not full match).
        exclude: Regular expressions; a URL must match none of them.
        links: Whether to follow links to pages.
        parts: Whether to fetch images, style sheets, scripts and other page requisites.
        foreign_parts: Whether to fetch page requisites on other hosts, too.
        sitemaps: Whether to read sitemaps and fetch their entries.
        delay: Minimum seconds between two requests to one host; robots.txt or a slow host can extend it.
        hosts_at_once: Number of hosts fetched in parallel, one request each.
        alike: Number of URLs of one shape without a sitemap entry that are fetched before they count as a trap.
        keep_noarchive: Whether to store pages that say `noarchive`; for operators who crawl their own site.
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


class CrawlOutcome(Enum):
    """Final status of a URL."""

    FETCHED = "fetched"  # a response of any HTTP status
    FORBIDDEN = "forbidden"  # disallowed by robots.txt
    FAILED = "failed"  # no response
    EXCLUDED = "left-out"  # a trap, beyond a limit, or out of scope


@dataclass(frozen=True, slots=True)
class LiveResource:
    """The latest observation of one URL of a live site.

    Attributes:
        uri: The URL.
        key: Its SURT key, as in CDX indexes.
        outcome: Final status of the URL in the crawl.
        status: HTTP status.
        mime: Declared media type.
        length: Bytes of the body without content codings.
        digest: Digest of the body as in WARC-Payload-Digest.
        seen: Date of the request: 14 digits, UTC.
        last_modified: Date of the Last-Modified header: 14 digits, UTC.
        redirect: Absolute target of a redirect.
        hops: Number of links from a seed; None if the URL is not reachable from a seed by links.
        linked_from: Number of crawled pages that link to it.
        is_in_sitemap: Whether a sitemap lists it.
        is_noarchive: Whether the robots meta tag or X-Robots-Tag says `noarchive`.
        cache_control: Value of the header.
        etag: Value of the header.
        reason: Why it failed, was forbidden or excluded, or an anomaly of its redirect; see docs/crawl.md.
        truncated: Why the body is incomplete, as in `FetchResponse`; `digest` and `length` are of the received part.
        file: Name of the WARC file in the folder `warc` that contains the response; None if none does.
        offset: Offset of the record in `file`, in bytes.
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
    """Result of a run.

    Attributes:
        counts: Number of URLs by outcome, over all runs.
        queued: Number of URLs still to be fetched.
        excluded_links: Number of links not followed, by reason; links to other sites are not counted.
        suspended_hosts: Hosts that were still suspended at the end, with the time to retry in seconds since 1970.
        robots_unreachable: Number of URLs forbidden only because robots.txt could not be fetched.
        limit: The limit that ended the run, `resources` or `bytes`; None if none did.
        is_stopped: Whether the run was stopped by its caller.
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
        """Whether another run would find nothing to do, unless a limit is raised."""
        return not self.is_stopped and not self.suspended_hosts and not self.robots_unreachable
