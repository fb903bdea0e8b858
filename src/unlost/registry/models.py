"""The registry entry of a web archive (`Archive`) and its parts: request kinds, rate limits, prefix listings.

Every number has a source: published by the archive, observed, or a choice of unlost.
"""

from dataclasses import dataclass
from enum import StrEnum


class ArchiveKind(StrEnum):
    """The protocol that an archive speaks. There is one client for each."""

    WAYBACK = "wayback"
    PYWB = "pywb"
    MEMENTO = "memento"
    COMMON_CRAWL = "commoncrawl"
    ARCHIVE_TODAY = "archive.today"
    FILES = "files"
    HAR = "har"
    CHROMIUM = "chromium"
    FIREFOX = "firefox"
    LIVE = "live"
    """The live web. Not allowed in a registry file; `unlost.recovery.sources` opens it."""


class RequestKind(StrEnum):
    """Kinds of requests that archives limit separately."""

    INDEX = "index"
    """CDX queries and TimeMaps."""
    REPLAY = "replay"
    """Captures and TimeGates."""
    SEARCH = "search"
    """Full-text search."""


@dataclass(frozen=True, slots=True)
class SourcedNumber:
    """A number that was measured or published, with its source.

    Attributes:
        value: The number.
        source: Where it is from, in words; never empty.
    """

    value: float
    source: str


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `requests` in any window of `seconds`, for requests of these kinds together.

    Attributes:
        requests: The limit as published or observed. Fewer requests are sent; see
            `unlost.http.rate_limit.DEFAULT_SHARE`.
        seconds: Length of the window.
        works: The kinds of requests that count.
        source: Where the number is from, in words; never empty.
        is_default: A default of the shipped registry, for archives that are registered without limits.
    """

    requests: int
    seconds: float
    works: tuple[RequestKind, ...]
    source: str
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class PrefixListing:
    """How an archive lists the captures below a URL prefix.

    Attributes:
        matches: Supported match types, of `exact`, `prefix`, `host` and `domain`.
        rows_per_page: Rows to request at once.
        cap: Maximum number of rows of one query, after which the listing continues with a resume key; None if unknown.
    """

    matches: tuple[str, ...]
    rows_per_page: SourcedNumber
    cap: SourcedNumber | None = None


@dataclass(frozen=True, slots=True)
class Archive:
    """One archive in the registry.

    Attributes:
        id: Name in options, captures and files; lower case, unique in its registry.
        name: Human-readable name.
        kind: The protocol that it speaks.
        timemap: URL prefix of its TimeMaps, to which the URI-R is appended.
        timegate: URL prefix of its TimeGate, to which the URI-R is appended.
        cdx: URL of its CDX server, without a query; for Common Crawl, of the list of crawls.
        replay: URL of a capture as it was archived, with `{datetime}` and `{uri}`; for Common Crawl, of a WARC file,
            with `{filename}`.
        search: URL of its full-text search, with `{terms}`.
        folder: Directory of a local archive.
        deep: Whether it stores all versions of a page; otherwise only the last one.
        canonical: Media types that it returns as archived, such as `text/html`, `image/*` or `*`.
        migrated: Media types that it converts. The more specific of the two patterns decides.
        lister: How it lists the captures below a prefix; None if it cannot.
        limits: Rate limits. Every limit that includes the kind of a request applies to it.
        quotas: Limits per day (UTC), counted on disk. Their `seconds` is 86,400.
        mementomap: File or URL of its MementoMap.
        filters: Files or URLs of filters, which together contain all its holdings.
        hit_rate: Share of requests for which it has a capture, used if there is no map.
        page_bytes: Maximum number of bytes of a page that it stores; None if unknown.
        enabled: Whether it is queried if no archives are selected by name.
    """

    id: str
    name: str
    kind: ArchiveKind
    timemap: str | None = None
    timegate: str | None = None
    cdx: str | None = None
    replay: str | None = None
    search: str | None = None
    folder: str | None = None
    deep: bool = True
    canonical: tuple[str, ...] = ("*",)
    migrated: tuple[str, ...] = ()
    lister: PrefixListing | None = None
    limits: tuple[RateLimit, ...] = ()
    quotas: tuple[RateLimit, ...] = ()
    mementomap: str | None = None
    filters: tuple[str, ...] = ()
    hit_rate: SourcedNumber | None = None
    page_bytes: SourcedNumber | None = None
    enabled: bool = True

    def is_migrated(self, mime: str | None) -> bool | None:
        """Return whether this archive converts pages of a media type; None if that is unknown, or the type is None.

        >>> banner = Archive("a", "A", ArchiveKind.MEMENTO, canonical=("*",), migrated=("text/html",))
        >>> banner.is_migrated("text/html"), banner.is_migrated("image/png"), banner.is_migrated(None)
        (True, False, None)
        """
        if mime is None:
            return None
        for pattern in (mime, mime.partition("/")[0] + "/*", "*"):
            if pattern in self.migrated:
                return True
            if pattern in self.canonical:
                return False
        return None
