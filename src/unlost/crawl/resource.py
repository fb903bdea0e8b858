"""What a crawl learned of one address of a living site."""

from dataclasses import dataclass
from enum import Enum


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
