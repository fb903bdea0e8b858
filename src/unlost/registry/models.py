"""Archive, the entry of one web archive in the registry, and its parts: request kinds, rate limits, prefix listings."""

from dataclasses import dataclass
from enum import StrEnum


class ArchiveKind(StrEnum):
    """How an archive is asked; there is one client for each."""

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
    """The live web, which no registry has; `unlost.recover.sources` opens it."""


class RequestKind(StrEnum):
    """What a question costs the archive: limits are for one or several of these."""

    INDEX = "index"
    """Lists of captures: CDX queries and TimeMaps."""
    REPLAY = "replay"
    """Captures themselves, and TimeGates."""
    SEARCH = "search"
    """Full-text search."""


@dataclass(frozen=True, slots=True)
class SourcedNumber:
    """A number that somebody measured or announced.

    source: where it is from, in words; never empty.
    """

    value: float
    source: str


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `requests` in any `seconds`, for questions of these kinds together.

    requests: as the archive or its users say; what is really sent is less (`manners.admission` says how much).
    source: where the number is from, in words; never empty.
    is_default: whether it is a guess of the shipped registry, for an archive that is registered without limits.
    """

    requests: int
    seconds: float
    works: tuple[RequestKind, ...]
    source: str
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class PrefixListing:
    """How an archive lists the addresses that it holds below a prefix.

    matches: which questions it answers, of `exact`, `prefix`, `host` and `domain`.
    rows_per_page: how many rows one request asks for.
    cap: how many rows one query gives at most; None if there is no cap known. Where a list leads on, it has more.
    """

    matches: tuple[str, ...]
    rows_per_page: SourcedNumber
    cap: SourcedNumber | None = None


@dataclass(frozen=True, slots=True)
class Archive:
    """One archive, as the registry has it.

    id: what options, captures and files call it; lower case, unique in its registry.
    timemap, timegate: addresses before which nothing and behind which the URI-R is put.
    cdx: the address of its index server, without a query; for Common Crawl, of the list of its crawls.
    replay: the address of a stored copy as it was captured, with `{datetime}` and `{uri}` in it; for Common Crawl, of
        a WARC, with `{filename}`.
    search: the address of its full-text search, with `{terms}` in it.
    folder: where the files are, of an archive on this machine.
    deep: whether it keeps versions, or only the last one (flat).
    canonical, migrated: the media types, `text/html` or `image/*` or `*`, that come back as they were captured, and
        those that the archive changed: the more specific pattern decides.
    limits: rates; every one that is for a kind of question must be kept.
    quotas: the same for a day of UTC, counted on disk: their `seconds` is 86,400.
    mementomap: a file or an address of its MementoMap.
    filters: files or addresses of its filters, which together have everything that it holds.
    hit_rate: the share of questions that it had an answer to, where there is no map.
    page_bytes: how many bytes of a page it keeps at most; None if no limit is known.
    enabled: whether it is asked unless it is named.
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
        """Return whether this archive changes what has a media type; None if it does not say, or the type is unknown.

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
